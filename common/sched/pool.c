#include "sched/parts.h"

static int
unread_compare(const struct job *a, const struct job *b)
{
	return message_order(a->message, b->message);
}

static int
due_compare(const struct sched_message *a, const struct sched_message *b)
{
	if (a->due_at != b->due_at)
		return a->due_at < b->due_at ? -1 : 1;
	return message_order(a, b);
}

TREE_GENERATE(unread_tree, job, unread, unread_compare)
TREE_GENERATE(due_tree, sched_message, due_link, due_compare)

static void
give(struct job *job, int64_t slots)
{
	job->limit += slots;
	job->transport->unused -= slots;
	message_refill(job->message);
}

/* What the job does not need, back to the pool. */
static void
give_back(struct job *job)
{
	int64_t unused = job->limit - (int64_t)job->held;

	if (unused > 0)
		give(job, -unused);
}

/* What the pool has, to the first unread job. */
static void
hand_out(struct transport *t)
{
	struct job *job = RB_MIN(unread_tree, &t->unread);

	if (job != NULL && t->unused > 0)
		give(job, t->unused);
}

static void
set_unread(struct job *job)
{
	struct unread_tree *tree = &job->transport->unread;
	bool unread = job->listed && !job->fully_read;

	if (unread == job->is_unread)
		return;
	job->is_unread = unread;
	if (unread)
		RB_INSERT(unread_tree, tree, job);
	else
		RB_REMOVE(unread_tree, tree, job);
}

void
pool_link(struct job *job)
{
	struct transport *t = job->transport;
	struct job *first = RB_MIN(unread_tree, &t->unread);

	if (first != NULL && unread_compare(job, first) < 0)
		give_back(first);
	set_unread(job);
	if (t->unused > 0)
		give(job, t->unused);
}

void
pool_pass(struct job *job)
{
	set_unread(job);
	if (job->is_unread)
		return;
	give_back(job);
	hand_out(job->transport);
}

void
pool_preempt(struct job *job)
{
	struct transport *t = job->transport;
	int64_t left = t->unused + t->params.extra_recipient_limit;

	if (job->is_unread && left > 0)
		give(job, (left + 1) / 2);
}

void
pool_resize(struct transport *t, uint32_t was, uint32_t is)
{
	t->unused += (int64_t)is - (int64_t)was;
	hand_out(t);
}

int64_t
message_room(const struct sched_message *m)
{
	int64_t room = m->sched->params.message_recipient_minimum;
	const struct job *job;

	SLIST_FOREACH (job, &m->jobs, of_message)
		room += job->limit;
	return room - (int64_t)m->held;
}

/* The least of its transports counts. */
static int64_t
refill_limit(const struct sched_message *m, usec_t *ret_delay)
{
	const struct sched_transport_params *params;
	const struct job *job;
	int64_t limit = INT64_MAX;
	usec_t delay = USEC_NEVER;

	SLIST_FOREACH (job, &m->jobs, of_message) {
		params = &job->transport->params;
		if (params->recipient_refill_limit < limit)
			limit = params->recipient_refill_limit;
		if (params->recipient_refill_delay < delay)
			delay = params->recipient_refill_delay;
	}
	*ret_delay = delay;
	return limit;
}

static usec_t
refill_at(const struct sched_message *m)
{
	int64_t room = message_room(m), limit;
	usec_t delay, at;

	limit = refill_limit(m, &delay);
	if (m->held == 0 || (room > 0 && room >= limit))
		return INT64_MIN;
	if (room <= 0)
		return USEC_NEVER;
	return __builtin_add_overflow(m->read_at, delay, &at) ? USEC_NEVER : at;
}

void
message_refill(struct sched_message *m)
{
	struct due_tree *tree = &m->sched->due;
	usec_t at = USEC_NEVER;

	if (m->begun && !m->reading && !m->all_read)
		at = refill_at(m);
	if (m->due && m->due_at == at)
		return;
	if (m->due)
		RB_REMOVE(due_tree, tree, m);
	m->due_at = at;
	m->due = at != USEC_NEVER;
	if (m->due)
		RB_INSERT(due_tree, tree, m);
}

struct sched_message *
sched_next_unread(struct sched *s, usec_t now)
{
	struct sched_message *m = RB_MIN(due_tree, &s->due);

	s->now = now;
	if (m == NULL || m->due_at > now)
		return NULL;
	m->reading = true;
	message_refill(m);
	return m;
}

usec_t
sched_unread_at(const struct sched *s)
{
	const struct sched_message *m =
	    RB_MIN(due_tree, (struct due_tree *)(uintptr_t)&s->due);

	return m == NULL ? USEC_NEVER : m->due_at;
}

uint32_t
sched_message_room(const struct sched_message *m)
{
	const struct sched_params *params = &m->sched->params;
	int64_t room = message_room(m);
	uint32_t all = m->sched->figures.recipients;

	if (!m->begun)
		room = (int64_t)params->message_recipient_limit - all;
	if (room < params->message_recipient_minimum &&
	    (!m->begun || m->held == 0))
		room = params->message_recipient_minimum;
	return room < 0 ? 0 : room > UINT32_MAX ? UINT32_MAX : (uint32_t)room;
}
