#include "qscheduler/super.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/clock.h"
#include "log/log.h"

static bool
is_in_range(const struct super *s, uint32_t number, uint32_t count)
{
	return number >= s->queue_start && number - s->queue_start < count;
}

/* What cannot be made or is lost is in the table nevertheless, disabled. */
static void
open_queue(struct super *s, struct queue *q, const struct queue_facts *facts,
    bool drain)
{
	const bool lost = base_judge(facts) == VERDICT_DISABLE;
	struct buf error = { 0 };
	bool bad = lost ||
	    base_make(&s->base, q->number, s->conf->queue_split, &error) < 0;

	if (facts->stuck < 0)
		log_warning("queue %" PRIu32 ": drops of an earlier version "
			    "stay in maildrop: %s",
		    q->number, strerror(-facts->stuck));
	if (lost)
		(void)base_describe_lost(&s->base, q->number, facts, &error);
	if (!bad)
		queue_note_disk(s, q->number);
	if (drain)
		retire_begin(q, "not among those wanted", clock_mono());
	if (bad)
		queue_disable(q, buf_str(&error));
	else if (drain)
		log_info("queue %" PRIu32 " holds mail and is not among those "
			 "wanted: drained",
		    q->number);
	buf_done(&error);
}

static int
add_queue(struct super *s, uint32_t number, const struct queue_facts *facts)
{
	struct queue *q;

	if (s->nqueues == PAGE_QUEUES_MAX) {
		log_error("ALERT: queue %" PRIu32 " is one too many: not run "
			  "before another one is retired",
		    number);
		return 0;
	}
	q = queue_new(s, number, QUEUE_STATE_OPEN);
	if (q == NULL)
		return -ENOMEM;
	(void)queue_insert(q);
	open_queue(s, q, facts, !facts->wanted);
	return 0;
}

/* -n: those that are there; the first start makes QUEUE_COUNT of them. */
static bool
is_wanted(const struct super *s, const struct queue_facts *facts,
    uint32_t number, bool any_there)
{
	if (s->options.mode == MODE_KEEP && any_there)
		return facts->marked || facts->listed;
	return is_in_range(s, number, s->queue_count);
}

/* What a load made is there for the load: a restart in the midst of it keeps
 * the queues that have mail, and those that it does not need close by its
 * rules, from the top. */
static bool
is_kept(const struct super *s, const struct queue_facts *facts, uint32_t number)
{
	return s->options.mode == MODE_DYNAMIC && facts->mail &&
	    is_in_range(s, number, s->queue_max);
}

static int
look_at(struct super *s, uint32_t number, bool any_there, bool with_mail)
{
	struct queue_facts facts = { 0 };

	base_look(&s->base, number, &facts);
	facts.wanted = is_wanted(s, &facts, number, any_there) ||
	    is_kept(s, &facts, number);
	if (base_judge(&facts) == VERDICT_SKIP) {
		objects_remove_stale(s, number);
		return 0;
	}
	return facts.mail == with_mail ? add_queue(s, number, &facts) : 0;
}

static int
look_at_all(struct super *s, bool any_there, bool with_mail)
{
	uint32_t number;
	int r = 0;

	for (number = 1; r == 0 && number <= QUEUE_NUM_MAX; number++)
		if (queue_find(s, number) == NULL &&
		    (s->on_disk[number] || s->base.listed[number] ||
			is_in_range(s, number, s->queue_count)))
			r = look_at(s, number, any_there, with_mail);
	return r;
}

int
inventory(struct super *s)
{
	uint32_t disk[QUEUE_NUM_MAX];
	int i, r, n = spool_list(s->base.path, disk, ARRAY_LEN(disk));

	if (n < 0) {
		log_error("%s: %s", s->base.path, strerror(-n));
		return n;
	}
	for (i = 0; i < n; i++)
		queue_note_disk(s, disk[i]);
	/* Where there is not room for all, those with mail come first. */
	r = look_at_all(s, n > 0, true);
	return r < 0 ? r : look_at_all(s, n > 0, false);
}
