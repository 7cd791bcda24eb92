#include "queue-send/evacuation/targets.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/bytes.h"
#include "log/log.h"
#include "queue-send/message/path.h"
#include "queue-send/evacuation/evacuation.h"

#define SAY_EVERY (60 * USEC_PER_SEC)

static void
close_target(struct targets *ts, struct target *t)
{
	if (t->other == NULL)
		return;
	other_queue_free(&t->other);
	ts->nopen--;
}

void
targets_close(struct targets *ts)
{
	uint32_t i;

	for (i = 0; i < ts->count; i++)
		close_target(ts, &ts->list[i]);
	ts->count = 0;
}

/* Taken out of the list before; NULL: that has it not. */
static struct other_queue *
take_other(struct targets *ts, uint32_t queue)
{
	struct other_queue *other;
	uint32_t i;

	for (i = 0; i < ts->count; i++) {
		other = ts->list[i].other;
		if (ts->list[i].queue != queue || other == NULL)
			continue;
		ts->list[i].other = NULL;
		ts->nopen--;
		return other;
	}
	return NULL;
}

static void
add_target(struct targets *ts, struct targets *before, uint32_t queue)
{
	struct target *t = &ts->list[ts->count++];

	*t = (struct target){ .queue = queue,
		.other = take_other(before, queue) };
	ts->nopen += t->other != NULL;
}

void
targets_set(const struct send *s, struct targets *ts, const msg_blob *b)
{
	struct targets before = *ts;
	uint32_t i, queue;

	ts->count = ts->nopen = 0;
	for (i = 0; i < b->len / 4 && ts->count < PAGE_QUEUES_MAX; i++) {
		queue = bytes_get_u32(b->data + 4 * (size_t)i);
		if (queue > 0 && queue <= QUEUE_NUM_MAX && queue != s->sp.queue)
			add_target(ts, &before, queue);
	}
	targets_close(&before);
	/* Queues that end together begin with different targets. */
	ts->turn = s->sp.queue;
}

static void
pause_target(struct send *s, struct targets *ts, struct target *t, int error)
{
	t->not_before = s->now + s->conf->error_interval;
	close_target(ts, t);
	if (log_due(s->now, SAY_EVERY, &ts->said))
		log_warning("queue%" PRIu32 ": takes no mail of this queue: %s",
		    t->queue,
		    error == -ESHUTDOWN    ? "it is sealed"
			: error == -ESTALE ? "its directory is gone"
			: error == -EMEDIUMTYPE
			? "it has another layout, or a directory is missing"
			: strerror(-error));
}

static bool
may_have(struct send *s, struct targets *ts, struct target *t)
{
	if (t->foreign || s->now < t->not_before)
		return false;
	if (t->other != NULL || ts->nopen == EVACUATE_OPEN)
		return t->other != NULL;
	t->other = other_queue_get(s, t->queue);
	if (t->other == NULL)
		pause_target(s, ts, t, -ENOMEM);
	else
		ts->nopen++;
	return t->other != NULL;
}

int
targets_next(struct send *s, struct targets *ts, struct other_queue **ret_other)
{
	bool opening = false;
	uint32_t tries;
	int r;

	for (tries = 0; tries < ts->count; tries++) {
		struct target *t = &ts->list[ts->turn++ % ts->count];

		if (!may_have(s, ts, t))
			continue;
		r = other_queue_state(t->other);
		if (r == 0) {
			*ret_other = t->other;
			return 0;
		}
		opening |= r == -EAGAIN;
		if (r != -EAGAIN)
			pause_target(s, ts, t, r);
	}
	return opening ? -EAGAIN : -EBUSY;
}

void
targets_refused(struct send *s, struct targets *ts,
    const struct other_queue *other, int error)
{
	struct target *t = NULL;
	uint32_t i;

	for (i = 0; i < ts->count; i++)
		if (ts->list[i].other == other)
			t = &ts->list[i];
	if (t == NULL)
		return;
	t->foreign = error == -EXDEV;
	if (t->foreign)
		close_target(ts, t);
	else
		pause_target(s, ts, t, error);
}

void
targets_try_again(struct targets *ts)
{
	uint32_t i;

	for (i = 0; i < ts->count; i++)
		ts->list[i].not_before = 0;
}

bool
targets_are_foreign(const struct targets *ts)
{
	return targets_first_pause(ts) == USEC_NEVER;
}

usec_t
targets_first_pause(const struct targets *ts)
{
	usec_t first = USEC_NEVER;
	uint32_t i;

	for (i = 0; i < ts->count; i++)
		if (!ts->list[i].foreign && ts->list[i].not_before < first)
			first = ts->list[i].not_before;
	return first;
}
