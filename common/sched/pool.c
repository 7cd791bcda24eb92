#include "sched/parts.h"

static int
unread_compare(const struct job_reading *a, const struct job_reading *b)
{
	return message_order(a->job->message, b->job->message);
}

static int
due_compare(const struct reading *a, const struct reading *b)
{
	if (a->due_at != b->due_at)
		return a->due_at < b->due_at ? -1 : 1;
	return message_order(a->message, b->message);
}

TREE_GENERATE(unread_tree, job_reading, link, unread_compare)
TREE_GENERATE(due_tree, reading, link, due_compare)

static void
give(struct job *job, int64_t slots)
{
	job->limit = (int32_t)(job->limit + slots);
	job->transport->unused -= slots;
	message_refill(job->message);
}

/* Slots that the job does not need go back to the pool. Slots that it has lent
 * to another job of its message stay until the recipients of that job are done:
 * else the next message would borrow them again. */
static void
give_back(struct job *job)
{
	int64_t unused = job->limit - (int64_t)job->held;
	int64_t room = message_room(job->message);

	if (unused > room)
		unused = room;
	if (unused > 0)
		give(job, -unused);
}

/* The slots of the pool go to the first unread job. */
static void
hand_out(struct transport *t)
{
	struct job_reading *first = RB_MIN(unread_tree, &t->unread);

	if (first != NULL && t->unused > 0)
		give(first->job, t->unused);
}

/* A job that comes before the first unread one takes the slots that it has
 * left. */
void
pool_link(struct job *job)
{
	struct transport *t = job->transport;
	struct job_reading *r = job->reading, *first;

	first = RB_MIN(unread_tree, &t->unread);
	if (first != NULL &&
	    message_order(job->message, first->job->message) < 0)
		give_back(first->job);
	if (r != NULL && !r->unread) {
		RB_INSERT(unread_tree, &t->unread, r);
		r->unread = true;
	}
	if (t->unused > 0)
		give(job, t->unused);
}

void
pool_read(struct job *job, struct job_reading *reading)
{
	if (reading->unread)
		RB_REMOVE(unread_tree, &job->transport->unread, reading);
}

void
pool_pass(struct job *job)
{
	struct job *lender;

	if (job->reading != NULL)
		return;
	SLIST_FOREACH (lender, &job->message->jobs, of_message)
		if (lender->reading == NULL) {
			give_back(lender);
			hand_out(lender->transport);
		}
}

void
pool_preempt(struct job *job)
{
	struct transport *t = job->transport;
	int64_t left = t->unused + t->params.extra_recipient_limit;

	if (job->reading != NULL && left > 0)
		give(job, (left + 1) / 2);
}

void
pool_resize(struct transport *t, uint32_t was)
{
	t->unused += (int64_t)t->params.recipient_limit - (int64_t)was;
	hand_out(t);
}

int64_t
held_above(const struct sched *s, uint32_t held)
{
	uint32_t minimum = s->params.message_recipient_minimum;

	return held > minimum ? (int64_t)held - minimum : 0;
}

/* Rule 6 bounds all in memory by max(minimum * active_limit + sum over
 * transports(recipient_limit + extra_recipient_limit), recipient_limit). Slots
 * alone do not keep it: first batches need none. Each message may have its
 * minimum in any case, so recipients above the minima are bounded here. */
void
pool_set_bound(struct sched *s)
{
	const struct sched_params *p = &s->params;
	struct sched_message *m;
	int64_t slots = 0, first;
	uint32_t i;

	for (i = 0; i < s->count; i++)
		slots += (int64_t)s->transports[i].params.recipient_limit +
		    s->transports[i].params.extra_recipient_limit;
	first = (int64_t)p->message_recipient_limit -
	    (int64_t)p->message_recipient_minimum * p->message_active_limit;
	s->above_most = slots > first ? slots : first;
	s->above = 0;
	TAILQ_FOREACH (m, &s->messages, link)
		s->above += held_above(s, m->held);
}

/* The part of `room` that the bound leaves, and at least what the message lacks
 * of its minimum. */
static int64_t
within_bound(const struct sched_message *m, int64_t room)
{
	const struct sched *s = m->sched;
	int64_t lacks =
	    (int64_t)s->params.message_recipient_minimum - (int64_t)m->held;
	int64_t left = s->above_most - s->above;

	if (left < 0)
		left = 0;
	if (lacks > 0)
		left += lacks;
	return room < left ? room : left;
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
refill_at(const struct reading *r)
{
	int64_t room = within_bound(r->message, message_room(r->message));
	int64_t limit;
	usec_t delay, at;

	limit = refill_limit(r->message, &delay);
	if (r->message->held == 0 || (room > 0 && room >= limit))
		return INT64_MIN;
	if (room <= 0)
		return USEC_NEVER;
	return __builtin_add_overflow(r->read_at, delay, &at) ? USEC_NEVER : at;
}

static void
due_at(struct reading *r, usec_t at)
{
	struct due_tree *tree = &r->message->sched->due;

	if (r->due && r->due_at == at)
		return;
	if (r->due)
		RB_REMOVE(due_tree, tree, r);
	r->due_at = at;
	r->due = at != USEC_NEVER;
	if (r->due)
		RB_INSERT(due_tree, tree, r);
}

void
message_refill(struct sched_message *m)
{
	struct reading *r = m->reading;

	if (r != NULL)
		due_at(r, r->begun && !r->asked ? refill_at(r) : USEC_NEVER);
}

void
message_read(struct sched_message *m)
{
	if (m->reading == NULL)
		return;
	due_at(m->reading, USEC_NEVER);
	slab_put(&m->sched->slabs.reading, m->reading);
	m->reading = NULL;
}

/* Other messages may have used the room meanwhile; the message is due again
 * after its next delivery. */
struct sched_message *
sched_next_unread(struct sched *s, usec_t now)
{
	struct reading *r;

	s->now = now;
	while ((r = RB_MIN(due_tree, &s->due)) != NULL && r->due_at <= now) {
		message_refill(r->message);
		if (!r->due || r->due_at > now)
			continue;
		r->asked = true;
		message_refill(r->message);
		return r->message;
	}
	return NULL;
}

usec_t
sched_unread_at(const struct sched *s)
{
	const struct reading *r =
	    RB_MIN(due_tree, (struct due_tree *)(uintptr_t)&s->due);

	return r == NULL ? USEC_NEVER : r->due_at;
}

uint32_t
sched_message_room(const struct sched_message *m)
{
	const struct sched_params *params = &m->sched->params;
	int64_t room = message_room(m);

	if (m->reading == NULL)
		return 0;
	if (!m->reading->begun)
		room = (int64_t)params->message_recipient_limit -
		    (int64_t)m->sched->figures.recipients;
	if (room < params->message_recipient_minimum &&
	    (!m->reading->begun || m->held == 0))
		room = params->message_recipient_minimum;
	room = within_bound(m, room);
	return room < 0 ? 0 : room > UINT32_MAX ? UINT32_MAX : (uint32_t)room;
}

void
pool_held(struct sched_message *m, struct job *job, int64_t change)
{
	struct sched *s = m->sched;

	s->above -= held_above(s, m->held);
	job->held = (uint32_t)(job->held + change);
	m->held = (uint32_t)(m->held + change);
	s->above += held_above(s, m->held);
	s->figures.recipients = (uint32_t)(s->figures.recipients + change);
}
