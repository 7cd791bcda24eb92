#include "queue-send/state/pure.h"

#include <string.h>

static void
move_on(struct rate *r, usec_t now)
{
	int64_t second = now / USEC_PER_SEC;

	if (second - r->second >= RATE_SECONDS) {
		memset(r->events, 0, sizeof(r->events));
		r->second = second;
	}
	while (r->second < second)
		r->events[++r->second % RATE_SECONDS] = 0;
}

void
rate_add(struct rate *r, usec_t now)
{
	move_on(r, now);
	r->events[r->second % RATE_SECONDS]++;
}

uint64_t
rate_read(struct rate *r, usec_t now)
{
	uint64_t sum = 0;
	int i;

	move_on(r, now);
	for (i = 0; i < RATE_SECONDS; i++)
		sum += r->events[i];
	return sum * 100 / RATE_SECONDS;
}
