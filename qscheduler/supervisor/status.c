#include "qscheduler/supervisor/supervisor.h"

#include <stdio.h>
#include <string.h>

#include "base/text.h"

/* The first file system that takes no new mail; "": none. */
static const char *
room_trouble(const struct super *s)
{
	uint32_t i;

	for (i = 0; i < s->queues.nqueues; i++)
		if (s->queues.queues[i]->room.error < 0)
			return s->queues.queues[i]->room.text;
	return "";
}

void
status_make(const struct super *s, usec_t now, char *out, size_t size)
{
	unsigned counts[QUEUE_STATE_QUARANTINED + 1] = { 0 };
	const char *room = room_trouble(s);
	uint32_t i;

	for (i = 0; i < s->queues.nqueues; i++)
		counts[queue_state(s->queues.queues[i], now)]++;
	snprintf(out, size,
	    "%s%u queue%s open, %u closing, %u disabled, %u quarantined%s%s%s",
	    s->stopping ? "stopping: " : "", counts[QUEUE_STATE_OPEN],
	    text_plural(counts[QUEUE_STATE_OPEN]), counts[QUEUE_STATE_CLOSING],
	    counts[QUEUE_STATE_DISABLED], counts[QUEUE_STATE_QUARANTINED],
	    s->queues.sites.fd < 0 && !s->stopping
		? ", no delivery: no table of destinations"
		: "",
	    room[0] == '\0' ? "" : ", ", room);
	services_describe(s, out, size);
	if (s->reload.error[0] != '\0')
		snprintf(out + strlen(out), size - strlen(out),
		    ", old configuration in force: %s", s->reload.error);
}
