#include "qscheduler/super.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "log/log.h"

static bool
is_in_range(const struct super *s, uint32_t number)
{
	return number >= s->queue_start &&
	    number - s->queue_start < s->queue_count;
}

static int
add_queue(struct super *s, uint32_t number, enum verdict verdict,
    const struct queue_facts *facts)
{
	const bool drain = verdict == VERDICT_DRAIN ||
	    (verdict == VERDICT_DISABLE && !facts->wanted);
	struct buf error = { 0 };
	struct queue *q;
	int r = 0;

	if (s->nqueues == PAGE_QUEUES_MAX) {
		log_error("ALERT: queue %" PRIu32 " is one too many: not run",
		    number);
		return 0;
	}
	q = queue_new(
	    s, number, drain ? QUEUE_STATE_CLOSING : QUEUE_STATE_OPEN);
	if (q == NULL)
		return -ENOMEM;
	s->queues[s->nqueues++] = q;
	if (verdict == VERDICT_DISABLE) {
		(void)buf_printf(&error,
		    "%s/queue%" PRIu32 ": was made once and is %s (%s); if it "
		    "is gone for good, take its line out of %s/queues",
		    s->base.path, number,
		    facts->there ? "not as it was" : "not there",
		    strerror(-facts->error), s->base.path);
		r = facts->error;
	} else {
		r = base_make(&s->base, number, s->conf->queue_split, &error);
		if (r == 0 && !facts->there)
			s->nqueues_disk++;
	}
	if (r < 0)
		queue_disable(q, buf_str(&error));
	else if (drain)
		log_info("queue %" PRIu32 " holds mail and is not among those "
			 "wanted: drained",
		    number);
	buf_done(&error);
	return 0;
}

/* -n: those that are there; the first start makes QUEUE_COUNT of them. */
static bool
is_wanted(const struct super *s, const struct queue_facts *facts,
    uint32_t number, bool any_there)
{
	if (s->options.mode == MODE_KEEP && any_there)
		return facts->marked || facts->listed;
	return is_in_range(s, number);
}

int
inventory(struct super *s)
{
	uint32_t disk[QUEUE_NUM_MAX], number;
	bool on_disk[QUEUE_NUM_MAX + 1] = { false };
	enum verdict verdict;
	int i, n, r = 0;

	n = spool_list(s->base.path, disk, ARRAY_LEN(disk));
	if (n < 0) {
		log_error("%s: %s", s->base.path, strerror(-n));
		return n;
	}
	for (i = 0; i < n; i++)
		on_disk[disk[i]] = true;
	s->nqueues_disk = (uint32_t)n;
	for (number = 1; r == 0 && number <= QUEUE_NUM_MAX; number++) {
		struct queue_facts facts = { 0 };

		if (!on_disk[number] && !s->base.listed[number] &&
		    !is_in_range(s, number))
			continue;
		base_look(&s->base, number, &facts);
		facts.wanted = is_wanted(s, &facts, number, n > 0);
		verdict = base_judge(&facts);
		if (verdict != VERDICT_SKIP)
			r = add_queue(s, number, verdict, &facts);
	}
	return r;
}
