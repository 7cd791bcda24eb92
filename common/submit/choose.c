#include "submit/parts.h"

static uint64_t
add_clamped(uint64_t a, uint64_t b)
{
	uint64_t sum;

	return __builtin_add_overflow(a, b, &sum) ? UINT64_MAX : sum;
}

/* Add what the page of an open queue says. A page that is stale still says that
 * the disk is late: queue-send itself may wait for the disk. full_pct: the load
 * from which on a queue counts as full. */
static void
judge_page(struct queue_fact *fact, const struct choose_reader *reader,
    uint32_t full_pct, usec_t now_mono)
{
	struct queue_page page;
	usec_t late;

	if (reader->queue(reader->arg, fact->queue, &page) < 0 ||
	    page.queue != fact->queue)
		return;
	late = queue_page_disk_late(&page, now_mono);
	fact->late = late >= DISK_SLOW ? late : 0;
	if (fact->late > 0 && fact->rank == RANK_BLIND)
		fact->rank = RANK_LATE;
	if (page_stale(&page.head, now_mono))
		return;
	if (page.disabled != 0) {
		fact->rank = RANK_NEVER;
		return;
	}
	if (fact->rank != RANK_BLIND && fact->rank != RANK_LATE)
		return;
	if (fact->late == 0)
		fact->rank = RANK_OPEN;
	fact->load_pct = queue_page_load(&page);
	fact->incoming = page.incoming;
	fact->is_full = fact->load_pct >= full_pct;
	fact->backlog = add_clamped(add_clamped(page.incoming, page.active),
	    add_clamped(page.maildrop, page.untried));
}

/* The rank of a row of the supervisor's page; RANK_NEVER also for a state that
 * no version of ours writes. A queue whose file system takes no mail is tried
 * last: the page may be older than the room. */
static enum queue_rank
rank_of_row(const struct sched_row *row)
{
	static const enum queue_rank ranks[] = {
		[QUEUE_STATE_NONE] = RANK_NEVER,
		[QUEUE_STATE_OPEN] = RANK_BLIND,
		[QUEUE_STATE_CLOSING] = RANK_NEVER,
		[QUEUE_STATE_DISABLED] = RANK_NEVER,
		[QUEUE_STATE_QUARANTINED] = RANK_DISK,
	};

	if (row->state >= ARRAY_LEN(ranks))
		return RANK_NEVER;
	if ((row->flags & SCHED_ROW_NO_MAIL) != 0 &&
	    ranks[row->state] == RANK_BLIND)
		return RANK_DISK;
	return ranks[row->state];
}

struct queue_fact *
choose_find(struct queue_facts *facts, uint32_t queue)
{
	size_t i;

	for (i = 0; i < facts->count; i++)
		if (facts->rows[i].queue == queue)
			return &facts->rows[i];
	return NULL;
}

/* NULL when the number is absurd, the queue known, or the table full. */
static struct queue_fact *
add_row(struct queue_facts *facts, uint32_t queue, enum queue_rank rank)
{
	struct queue_fact *fact;

	if (queue == 0 || queue > QUEUE_NUM_MAX ||
	    choose_find(facts, queue) != NULL ||
	    facts->count >= ARRAY_LEN(facts->rows))
		return NULL;
	fact = &facts->rows[facts->count++];
	*fact = (struct queue_fact){ .queue = queue, .rank = rank };
	return fact;
}

static bool
none_to_choose(const struct queue_facts *facts)
{
	size_t i;

	for (i = 0; i < facts->count; i++)
		if (facts->rows[i].rank != RANK_NEVER)
			return false;
	return true;
}

void
choose_judge(const struct choose_reader *reader, usec_t now_mono,
    struct queue_facts *ret_facts)
{
	struct sched_page sched;
	size_t i;

	ret_facts->count = 0;
	ret_facts->shut = false;
	if (reader->sched(reader->arg, &sched) < 0 ||
	    page_stale(&sched.head, now_mono))
		return;
	for (i = 0; i < ARRAY_LEN(sched.rows); i++) {
		const struct sched_row *row = &sched.rows[i];
		struct queue_fact *fact;

		if (row->state == QUEUE_STATE_NONE)
			continue;
		fact = add_row(ret_facts, row->queue, rank_of_row(row));
		if (fact != NULL && fact->rank != RANK_NEVER)
			judge_page(fact, reader, sched.threshold_pct, now_mono);
	}
	ret_facts->shut = ret_facts->count > 0 && none_to_choose(ret_facts);
}

void
choose_add_disk(struct queue_facts *facts, const uint32_t *queues, size_t count,
    const struct choose_reader *reader, usec_t now_mono)
{
	size_t i;

	for (i = 0; i < count; i++) {
		struct queue_fact *fact = add_row(facts, queues[i], RANK_DISK);

		if (fact != NULL)
			judge_page(fact, reader, UINT32_MAX, now_mono);
	}
	facts->shut = facts->count > 0 && none_to_choose(facts);
}

/* Less is better. */
static int
compare(const struct queue_fact *a, const struct queue_fact *b)
{
	if (a->rank != b->rank)
		return a->rank < b->rank ? -1 : 1;
	if (a->late != b->late)
		return a->late < b->late ? -1 : 1;
	if (a->is_full != b->is_full)
		return a->is_full ? 1 : -1;
	if (a->backlog != b->backlog)
		return a->backlog < b->backlog ? -1 : 1;
	if (a->load_pct != b->load_pct)
		return a->load_pct < b->load_pct ? -1 : 1;
	return 0;
}

static bool
candidate(const struct queue_fact *fact)
{
	return fact->rank != RANK_NEVER && !fact->failed;
}

int
choose_queue(const struct queue_facts *facts, uint32_t turn)
{
	const struct queue_fact *best = NULL;
	uint32_t equal = 0;
	size_t i;

	for (i = 0; i < facts->count; i++) {
		const struct queue_fact *fact = &facts->rows[i];
		int c = best == NULL ? -1 : compare(fact, best);

		if (!candidate(fact) || c > 0)
			continue;
		equal = c < 0 ? 1 : equal + 1;
		best = c < 0 ? fact : best;
	}
	if (best == NULL)
		return -1;
	turn %= equal;
	for (i = 0; i < facts->count; i++) {
		const struct queue_fact *fact = &facts->rows[i];

		if (candidate(fact) && compare(fact, best) == 0 && turn-- == 0)
			break;
	}
	return (int)i;
}
