#include "submit/parts.h"

#include <criterion/criterion.h>
#include <errno.h>

#define NOW     (1000 * USEC_PER_SEC)
#define NQUEUES 6

/* Shared memory as a test has it: row i is of queue i + 1. */
struct shared {
	int sched_error;
	struct sched_page sched;
	int queue_error[NQUEUES];
	struct queue_page queues[NQUEUES];
};

static int
read_sched(void *arg, struct sched_page *ret_page)
{
	const struct shared *m = arg;

	*ret_page = m->sched;
	return m->sched_error;
}

static int
read_queue(void *arg, uint32_t queue, struct queue_page *ret_page)
{
	const struct shared *m = arg;

	if (queue == 0 || queue > NQUEUES)
		return -ENOENT;
	*ret_page = m->queues[queue - 1];
	return m->queue_error[queue - 1];
}

/* All of it open, fresh and idle. */
static void
shared_open(struct shared *m)
{
	uint32_t i;

	*m = (struct shared){ .sched.head.beat_mono = NOW - USEC_PER_SEC,
		.sched.threshold_pct = 90 };
	for (i = 0; i < NQUEUES; i++) {
		m->sched.rows[i].queue = i + 1;
		m->sched.rows[i].state = QUEUE_STATE_OPEN;
		m->queues[i].queue = i + 1;
		m->queues[i].head.beat_mono = NOW - USEC_PER_SEC;
		m->queues[i].local_limit = m->queues[i].remote_limit = 10;
	}
}

static uint32_t
pick(const struct queue_facts *facts, uint32_t turn)
{
	int i = choose_queue(facts, turn);

	return i < 0 ? 0 : facts->rows[i].queue;
}

/* What a case changes, and the queue that is chosen then (0: none). */
struct choose_case {
	const char *name;
	void (*change)(struct shared *m);
	uint32_t want;
	bool shut;
};

static void
others_state(struct shared *m, uint32_t state)
{
	uint32_t i;

	for (i = 0; i < NQUEUES; i++)
		if (i != 3)
			m->sched.rows[i].state = state;
}

static void
one_idle(struct shared *m)
{
	uint32_t i;

	for (i = 0; i < NQUEUES; i++)
		m->queues[i].remote_used = i == 3 ? 1 : 2;
}

static void
the_larger_ratio_counts(struct shared *m)
{
	uint32_t i;

	for (i = 0; i < NQUEUES; i++)
		m->queues[i].local_used = 5;
	m->queues[3].local_used = m->queues[3].remote_used = 4;
}

static void
least_backlog(struct shared *m)
{
	uint32_t i;

	for (i = 0; i < NQUEUES; i++)
		m->queues[i].incoming = 7;
	m->queues[3].incoming = 3;
	m->queues[3].active = 2;
	m->queues[3].maildrop = 1;
}

static void
full_queues_come_last(struct shared *m)
{
	uint32_t i;

	for (i = 0; i < NQUEUES; i++)
		m->queues[i].remote_used = i == 3 ? 8 : 9;
	m->queues[3].incoming = 1000000;
}

/* One queue has the connections to a destination, the others mail for it that
 * was never tried, and no load. */
static void
untried_mail_is_backlog(struct shared *m)
{
	uint32_t i;

	for (i = 0; i < NQUEUES; i++)
		m->queues[i].untried = 150;
	m->queues[3].untried = 0;
	m->queues[3].active = 40;
	m->queues[3].remote_used = 5;
}

static void
deferred_mail_is_none(struct shared *m)
{
	uint32_t i;

	for (i = 0; i < NQUEUES; i++)
		m->queues[i].untried = 2;
	m->queues[3].untried = 1;
	m->queues[3].deferred = 1000;
}

static void
others_closing(struct shared *m)
{
	others_state(m, QUEUE_STATE_CLOSING);
}

static void
others_disabled(struct shared *m)
{
	others_state(m, QUEUE_STATE_DISABLED);
}

static void
others_absurd(struct shared *m)
{
	others_state(m, 4711);
}

static void
others_quarantined(struct shared *m)
{
	others_state(m, QUEUE_STATE_QUARANTINED);
	m->queues[3].remote_used = 10;
}

static void
others_flag(struct shared *m)
{
	uint32_t i;

	for (i = 0; i < NQUEUES; i++)
		m->queues[i].disabled = i != 3;
	m->queues[3].remote_used = 10;
}

static void
others_stale(struct shared *m)
{
	uint32_t i;

	for (i = 0; i < NQUEUES; i++)
		if (i != 3)
			m->queues[i].head.beat_mono =
			    NOW - PAGE_STALE - USEC_PER_SEC;
	m->queues[3].remote_used = 10;
}

static void
others_missing(struct shared *m)
{
	static const int errors[] = { -ENOENT, -EACCES, -EPERM, 0, -EBADMSG,
		-EAGAIN };
	uint32_t i;

	for (i = 0; i < NQUEUES; i++)
		m->queue_error[i] = errors[i];
	m->queues[3].remote_used = 10;
}

static void
others_of_another_queue(struct shared *m)
{
	uint32_t i;

	for (i = 0; i < NQUEUES; i++)
		if (i != 3)
			m->queues[i].queue = 99;
	m->queues[3].remote_used = 10;
}

static void
others_huge(struct shared *m)
{
	uint32_t i;

	for (i = 0; i < NQUEUES; i++)
		if (i != 3)
			m->queues[i].incoming = m->queues[i].active =
			    UINT64_MAX;
	m->queues[3].incoming = 1000;
}

static void
no_limits(struct shared *m)
{
	uint32_t i;

	for (i = 0; i < NQUEUES; i++) {
		m->queues[i].local_limit = m->queues[i].remote_limit = 0;
		m->queues[i].incoming = i != 3;
	}
}

static void
negative(struct shared *m)
{
	uint32_t i;

	for (i = 0; i < NQUEUES; i++) {
		m->queues[i].local_limit = -1;
		m->queues[i].remote_used = -1000000000;
		m->queues[i].remote_limit = i == 3 ? 10 : -5;
		m->queues[i].incoming = i != 3;
	}
}

static void
all_stale(struct shared *m)
{
	uint32_t i;

	for (i = 0; i < NQUEUES; i++) {
		m->queue_error[i] = -ENOENT;
		m->sched.rows[i].state =
		    i == 3 ? QUEUE_STATE_OPEN : QUEUE_STATE_QUARANTINED;
	}
}

static void
others_full(struct shared *m)
{
	uint32_t i;

	for (i = 0; i < NQUEUES; i++)
		m->sched.rows[i].flags = i == 3 ? 0 : SCHED_ROW_FULL;
	m->queues[3].remote_used = 10;
}

static void
others_read_only(struct shared *m)
{
	uint32_t i;

	for (i = 0; i < NQUEUES; i++)
		m->sched.rows[i].flags = i == 3 ? 0 : SCHED_ROW_READ_ONLY;
	m->queue_error[3] = -ENOENT;
}

static void
all_disabled(struct shared *m)
{
	others_state(m, QUEUE_STATE_DISABLED);
	m->sched.rows[3].state = QUEUE_STATE_CLOSING;
}

static void
all_flagged(struct shared *m)
{
	uint32_t i;

	for (i = 0; i < NQUEUES; i++)
		m->queues[i].disabled = 1;
}

static void
no_rows(struct shared *m)
{
	others_state(m, QUEUE_STATE_NONE);
	m->sched.rows[3].state = QUEUE_STATE_NONE;
}

static void
sched_missing(struct shared *m)
{
	m->sched_error = -ENOENT;
}

static void
sched_stale(struct shared *m)
{
	all_disabled(m);
	m->sched.head.beat_mono = NOW - PAGE_STALE - USEC_PER_SEC;
}

static void
numbers_absurd(struct shared *m)
{
	uint32_t i;

	for (i = 0; i < PAGE_QUEUES_MAX; i++)
		m->sched.rows[i] = (struct sched_row){ .queue = UINT32_MAX - i,
			.state = QUEUE_STATE_OPEN };
}

static void
numbers_twice(struct shared *m)
{
	uint32_t i;

	for (i = 0; i < PAGE_QUEUES_MAX; i++)
		m->sched.rows[i] =
		    (struct sched_row){ .queue = 4, .state = QUEUE_STATE_OPEN };
}

static const struct choose_case cases[] = {
	{ "then least load", one_idle, 4, false },
	{ "the larger ratio is the load", the_larger_ratio_counts, 4, false },
	{ "least backlog", least_backlog, 4, false },
	{ "a full queue comes last", full_queues_come_last, 4, false },
	{ "untried mail is backlog", untried_mail_is_backlog, 4, false },
	{ "deferred mail is none", deferred_mail_is_none, 4, false },
	{ "closing is refused", others_closing, 4, false },
	{ "disabled is refused", others_disabled, 4, false },
	{ "an unknown state is refused", others_absurd, 4, false },
	{ "quarantined is the last choice", others_quarantined, 4, false },
	{ "the page's own flag is obeyed", others_flag, 4, false },
	{ "a stale page is not chosen", others_stale, 4, false },
	{ "a missing page is not chosen", others_missing, 4, false },
	{ "a page of another queue is none", others_of_another_queue, 4,
	    false },
	{ "sums do not wrap", others_huge, 4, false },
	{ "no limit is no division", no_limits, 4, false },
	{ "negative is nothing", negative, 4, false },
	{ "open goes before quarantined", all_stale, 4, false },
	{ "a full file system is the last choice", others_full, 4, false },
	{ "so is one that cannot be written", others_read_only, 4, false },
	{ "numbers twice count once", numbers_twice, 4, false },
	{ "all closing or disabled", all_disabled, 0, true },
	{ "all flagged", all_flagged, 0, true },
	{ "no rows: nothing is known", no_rows, 0, false },
	{ "no page: nothing is known", sched_missing, 0, false },
	{ "stale page: nothing is known", sched_stale, 0, false },
	{ "absurd numbers: nothing is known", numbers_absurd, 0, false },
};

Test(choose, I12_I13_D46_table)
{
	static struct shared m;
	struct choose_reader reader = { read_sched, read_queue, &m };
	struct queue_facts facts;
	size_t i;

	for (i = 0; i < ARRAY_LEN(cases); i++) {
		uint32_t turn;

		shared_open(&m);
		cases[i].change(&m);
		choose_judge(&reader, NOW, &facts);
		for (turn = 0; turn < 13; turn++)
			cr_expect_eq(pick(&facts, turn), cases[i].want,
			    "%s: %u", cases[i].name, pick(&facts, turn));
		cr_expect_eq(facts.shut, cases[i].shut, "%s", cases[i].name);
	}
}

Test(choose, equal_queues_take_turns)
{
	static struct shared m;
	struct choose_reader reader = { read_sched, read_queue, &m };
	struct queue_facts facts;
	uint32_t turn, count[NQUEUES + 1] = { 0 };

	shared_open(&m);
	m.queues[1].remote_used = 1;
	choose_judge(&reader, NOW, &facts);
	for (turn = UINT32_MAX - 50; turn != 49; turn++)
		count[pick(&facts, turn)]++;
	cr_expect_eq(count[2], 0);
	for (turn = 1; turn <= NQUEUES; turn++)
		if (turn != 2)
			cr_expect(count[turn] >= 18 && count[turn] <= 22,
			    "queue %u: %u", turn, count[turn]);
}

Test(choose, a_queue_that_failed_is_passed_over)
{
	static struct shared m;
	struct choose_reader reader = { read_sched, read_queue, &m };
	struct queue_facts facts;
	uint32_t seen = 0, i;

	shared_open(&m);
	others_quarantined(&m);
	choose_judge(&reader, NOW, &facts);
	cr_expect_eq(pick(&facts, 5), 4);
	for (i = 0; i < NQUEUES; i++) {
		int row = choose_queue(&facts, 5);

		cr_assert_geq(row, 0);
		seen |= 1u << facts.rows[row].queue;
		facts.rows[row].failed = true;
	}
	cr_expect_eq(seen, 0x7e, "each once");
	cr_expect_eq(pick(&facts, 5), 0);
}

Test(choose, I10_directories_where_nothing_is_known)
{
	static const uint32_t disk[] = { 1, 2, 3, 4, 0, 4096, 3 };
	static struct shared m;
	struct choose_reader reader = { read_sched, read_queue, &m };
	struct queue_facts facts;
	uint32_t turn, seen = 0;

	shared_open(&m);
	m.sched_error = -EBADMSG;
	m.queues[1].disabled = 1;
	m.queue_error[2] = -ENOENT;
	choose_judge(&reader, NOW, &facts);
	choose_add_disk(&facts, disk, ARRAY_LEN(disk), &reader, NOW);
	for (turn = 0; turn < 30; turn++)
		seen |= 1u << pick(&facts, turn);
	cr_expect_eq(seen, (1u << 1) | (1u << 3) | (1u << 4), "%x", seen);
	cr_expect_not(facts.shut);
}

Test(choose, I10_directories_do_not_undo_what_is_closed)
{
	static const uint32_t disk[] = { 1, 2, 3, 4, 5, 6, 7 };
	static struct shared m;
	struct choose_reader reader = { read_sched, read_queue, &m };
	struct queue_facts facts;
	uint32_t turn;

	shared_open(&m);
	others_state(&m, QUEUE_STATE_CLOSING);
	choose_judge(&reader, NOW, &facts);
	cr_assert_eq(pick(&facts, 0), 4);
	facts.rows[choose_queue(&facts, 0)].failed = true;
	choose_add_disk(&facts, disk, ARRAY_LEN(disk), &reader, NOW);
	for (turn = 0; turn < 10; turn++)
		cr_expect_eq(pick(&facts, turn), 7);
}

/* Random bytes in every page: a queue of 1…QUEUE_NUM_MAX or none. */
Test(choose, I12_fuzz)
{
	static struct shared m;
	struct choose_reader reader = { read_sched, read_queue, &m };
	struct queue_facts facts;
	uint32_t seed = 12, round;

	for (round = 0; round < 300; round++) {
		unsigned char *p = (unsigned char *)&m;
		size_t i;

		for (i = 0; i < sizeof(m); i++) {
			seed = seed * 1664525u + 1013904223u;
			p[i] = (unsigned char)(seed >> (8 + round % 16));
		}
		m.sched_error = 0;
		m.sched.head.beat_mono = NOW;
		for (i = 0; i < PAGE_QUEUES_MAX; i++)
			m.sched.rows[i].state %= 6;
		choose_judge(&reader, NOW, &facts);
		cr_assert_leq(facts.count, PAGE_QUEUES_MAX);
		cr_assert_leq(pick(&facts, round), 4095);
	}
}
