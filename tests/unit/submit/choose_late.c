/* The choice of a queue when disks let calls wait. */
#include "submit/parts.h"

#include <criterion/criterion.h>
#include <errno.h>

#define NOW  (1000 * USEC_PER_SEC)
#define LATE (NOW - DISK_SLOW)

/* Queues 1 and 2. The second has much to do. */
static struct sched_page sched;
static struct queue_page queues[2];

static int
read_sched(void *arg UNUSED, struct sched_page *ret_page)
{
	*ret_page = sched;
	return 0;
}

static int
read_queue(void *arg UNUSED, uint32_t queue, struct queue_page *ret_page)
{
	*ret_page = queues[queue - 1];
	return 0;
}

/* A queue as a case has it. */
struct as {
	usec_t since;
	bool full, stale;
	enum queue_state state;
};

static void
make(uint32_t queue, const struct as *as)
{
	struct queue_page *page = &queues[queue - 1];
	const usec_t age = as->stale ? PAGE_STALE + 1 : USEC_PER_SEC;

	sched.rows[queue - 1] = (struct sched_row){ .queue = queue,
		.state = as->state != QUEUE_STATE_NONE ? as->state
						       : QUEUE_STATE_OPEN };
	*page = (struct queue_page){ .head.beat_mono = NOW - age,
		.queue = queue,
		.local_limit = 10,
		.local_used = as->full ? 10 : 0,
		.incoming = queue == 2 ? 1000 : 0,
		.disk_since_mono = as->since };
}

/* mutation: in common/submit/choose.c, fact->late is always 0. */
Test(choose_late, D50_table)
{
	static const struct {
		const char *name;
		struct as one, two;
		uint32_t want;
	} rows[] = {
		{ "nothing is known", { 0 }, { 0 }, 1 },
		{ "none waits", { .since = NOW + 1 }, { .since = NOW + 1 }, 1 },
		{ "nearly late", { .since = LATE + 1 }, { 0 }, 1 },
		{ "late", { .since = LATE }, { .since = NOW }, 2 },
		{ "behind a full one", { .since = LATE }, { .full = true }, 2 },
		{ "behind an old page", { .since = LATE }, { .stale = true },
		    2 },
		{ "with an old page", { .since = LATE, .stale = true },
		    { .stale = true }, 2 },
		{ "before one that is put aside", { .since = LATE },
		    { .state = QUEUE_STATE_QUARANTINED }, 1 },
		{ "put aside, and late",
		    { .since = LATE, .state = QUEUE_STATE_QUARANTINED },
		    { .since = LATE }, 2 },
		{ "both: by backlog", { .since = LATE }, { .since = LATE }, 1 },
		{ "both: the shorter wait", { .since = LATE - 1 },
		    { .since = LATE }, 2 },
		{ "the shorter wait, full", { .since = LATE - 1 },
		    { .since = LATE, .full = true }, 2 },
		{ "put aside, by wait",
		    { .since = LATE, .state = QUEUE_STATE_QUARANTINED },
		    { .state = QUEUE_STATE_QUARANTINED }, 2 },
		{ "absurd", { .since = INT64_MIN }, { .since = INT64_MAX }, 1 },
		{ "closing, and late",
		    { .since = LATE, .state = QUEUE_STATE_CLOSING },
		    { .since = LATE }, 2 },
	};
	const struct choose_reader reader = { read_sched, read_queue, NULL };
	struct queue_facts facts;
	size_t i;
	int row;

	sched.head.beat_mono = NOW;
	sched.threshold_pct = 90;
	for (i = 0; i < ARRAY_LEN(rows); i++) {
		make(1, &rows[i].one);
		make(2, &rows[i].two);
		choose_judge(&reader, NOW, &facts);
		row = choose_queue(&facts, (uint32_t)i);
		cr_assert_geq(row, 0, "%s", rows[i].name);
		cr_expect_eq(
		    facts.rows[row].queue, rows[i].want, "%s", rows[i].name);
	}
}

/* The page of the supervisor is stale, because the supervisor has died. The
 * queues still run and publish their pages.
 * mutation: in common/submit/choose.c, compare() ignores `late`. */
Test(choose_late, D50_without_a_supervisor)
{
	static const uint32_t numbers[] = { 1, 2 };
	const struct choose_reader reader = { read_sched, read_queue, NULL };
	struct queue_facts facts;
	int row;

	sched.head.beat_mono = NOW - PAGE_STALE - 1;
	make(1, &(struct as){ .since = LATE });
	make(2, &(struct as){ 0 });
	choose_judge(&reader, NOW, &facts);
	cr_assert_eq(facts.count, 0);
	choose_add_disk(&facts, numbers, ARRAY_LEN(numbers), &reader, NOW);
	row = choose_queue(&facts, 0);
	cr_assert_geq(row, 0);
	cr_expect_eq(facts.rows[row].queue, 2);
}
