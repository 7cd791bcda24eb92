#include "sched/parts.h"

#include "base/address.h"

#include <errno.h>
#include <string.h>

int
sched_message_new(struct sched *s, void *owner, usec_t now,
    struct sched_message **ret_message)
{
	struct sched_message *m = slab_get_zeroed(&s->slabs.message), *before;

	if (m == NULL)
		return -ENOMEM;
	m->reading = slab_get_zeroed(&s->slabs.reading);
	if (m->reading == NULL) {
		slab_put(&s->slabs.message, m);
		return -ENOMEM;
	}
	m->reading->message = m;
	s->now = now;
	m->sched = s;
	m->owner = owner;
	m->arrival = now;
	SLIST_INIT(&m->jobs);
	/* A clock that went back must not break the order of arrival. */
	before = TAILQ_LAST(&s->messages, message_list);
	if (before != NULL && m->arrival < before->arrival)
		m->arrival = before->arrival;
	m->number = ++s->number;
	TAILQ_INSERT_TAIL(&s->messages, m, link);
	s->figures.messages++;
	*ret_message = m;
	return 0;
}

void
sched_message_single(struct sched_message *m)
{
	ASSERT(m->reading != NULL && !m->reading->begun);
	m->single = true;
}

int
sched_message_expect(
    struct sched_message *m, uint32_t transport, uint32_t entries)
{
	struct job *job;

	if (transport >= m->sched->count)
		return -EINVAL;
	job = job_get(m, &m->sched->transports[transport]);
	if (job == NULL || job->reading == NULL)
		return -ENOMEM;
	job->reading->expected = entries;
	return 0;
}

/* nexthop, or local@nexthop; where nexthop begins, or -EINVAL. */
static int
make_name(
    char name[SITE_NAME_MAX + 1], const char *nexthop, const char *address)
{
	size_t local = address == NULL ? 0 : address_local_len(address);
	size_t at = address == NULL ? 0 : local + 1, len = strlen(nexthop);

	if (at + len > SITE_NAME_MAX)
		return -EINVAL;
	if (address != NULL) {
		memcpy(name, address, local);
		name[local] = '@';
	}
	memcpy(name + at, nexthop, len + 1);
	return (int)at;
}

/* Transports take turns in the order in which they were first used: a new one
 * comes last. */
static void
transport_use(struct transport *t)
{
	if (t->used)
		return;
	t->used = true;
	TAILQ_INSERT_TAIL(&t->sched->turns, t, turn);
}

/* nexthop begins at `at` in the name of the destination. */
static int
add(struct sched_message *m, struct transport *t, const char *name, size_t at,
    uint64_t group, const struct sched_rcpt *rcpt)
{
	struct sched *s = m->sched;
	struct destination *d;
	struct job *job;
	int r;

	ASSERT(m->reading != NULL); /* not after its last batch */
	job = job_get(m, t);
	if (job == NULL)
		return -ENOMEM;
	d = destination_get(t, name, at);
	if (d == NULL)
		return -ENOMEM;
	r = peer_add_rcpt(job, d, group, rcpt);
	if (r < 0) {
		destination_release(t, d);
		return r;
	}
	transport_use(t);
	pool_held(m, job, 1);
	m->waiting++;
	s->figures.waiting++;
	return 0;
}

int
sched_rcpt_add(struct sched_message *m, uint32_t transport, const char *nexthop,
    const char *address, const struct sched_rcpt *rcpt)
{
	char name[SITE_NAME_MAX + 1];
	struct transport *t;
	int at;

	if (transport >= m->sched->count)
		return -EINVAL;
	t = &m->sched->transports[transport];
	if (t->params.destination_recipient_limit != 1)
		address = NULL;
	at = make_name(name, nexthop, address);
	if (at < 0)
		return at;
	return add(m, t, name, (size_t)at, 0, rcpt);
}

int
sched_rcpt_add_shared(struct sched_message *m, uint32_t transport,
    const char *destination, uint64_t group, const struct sched_rcpt *rcpt)
{
	if (transport >= m->sched->count || strlen(destination) > SITE_NAME_MAX)
		return -EINVAL;
	return add(
	    m, &m->sched->transports[transport], destination, 0, group, rcpt);
}

static void
job_batch_end(struct job *job, bool all_read)
{
	bool was = job->listed;

	if (job->reading == NULL)
		return;
	if (!was && !RB_EMPTY(&job->reading->loading))
		job_list_in(job);
	job_take_loading(job);
	if (job->listed && !was)
		pool_link(job);
	if (all_read)
		job_read(job);
	job_recount(job);
	if (all_read && job->listed && job->waiting == 0)
		job_list_out(job);
	pool_pass(job);
}

void
sched_batch_end(struct sched_message *m, bool all_read, usec_t now)
{
	struct job *job;

	m->sched->now = now;
	if (m->reading == NULL)
		return;
	m->reading->begun = true;
	m->reading->asked = false;
	m->reading->read_at = now;
	SLIST_FOREACH (job, &m->jobs, of_message)
		job_batch_end(job, all_read);
	if (all_read)
		message_read(m);
	message_refill(m);
}

uint32_t
sched_message_waiting(const struct sched_message *m)
{
	return m->waiting;
}

uint32_t
sched_message_running(const struct sched_message *m)
{
	return m->running;
}

void *
sched_message_owner(const struct sched_message *m)
{
	return m->owner;
}

void
sched_message_cancel(struct sched_message *m)
{
	struct job *job;

	SLIST_FOREACH (job, &m->jobs, of_message) {
		job_drop_loading(job);
		job_read(job);
		job_drop_waiting(job);
		if (job->listed)
			job_list_out(job);
		pool_pass(job);
	}
	message_read(m);
}

void
sched_message_free(struct sched_message **message)
{
	struct sched_message *m = *message;
	struct sched *s;
	struct job *job;

	if (m == NULL)
		return;
	s = m->sched;
	ASSERT(m->running == 0);
	sched_message_cancel(m);
	ASSERT(m->held == 0);
	while ((job = SLIST_FIRST(&m->jobs)) != NULL) {
		SLIST_REMOVE_HEAD(&m->jobs, of_message);
		slab_put(&s->slabs.job, job);
	}
	TAILQ_REMOVE(&s->messages, m, link);
	s->figures.messages--;
	slab_put(&s->slabs.message, m);
	*message = NULL;
}
