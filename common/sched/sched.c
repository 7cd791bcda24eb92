#include "sched/parts.h"

#include <errno.h>
#include <stdlib.h>

#define POOL_MAX 1000000000

uint32_t
sched_recipient_limit(uint32_t destination_recipient_limit)
{
	if (destination_recipient_limit == 0 ||
	    destination_recipient_limit > SCHED_ENTRY_RCPTS_MAX)
		return SCHED_ENTRY_RCPTS_MAX;
	return destination_recipient_limit;
}

static void
params_set(struct sched *s, const struct sched_params *params)
{
	s->params = *params;
	if (s->params.message_recipient_minimum == 0)
		s->params.message_recipient_minimum = 1;
}

static void
transport_set(struct transport *t, const struct sched_transport_params *params)
{
	t->params = *params;
	t->params.destination_recipient_limit =
	    sched_recipient_limit(params->destination_recipient_limit);
	/* Slots of a pool are counted in 32 bits. */
	if (t->params.recipient_limit > POOL_MAX)
		t->params.recipient_limit = POOL_MAX;
	if (t->params.extra_recipient_limit > POOL_MAX)
		t->params.extra_recipient_limit = POOL_MAX;
	if (t->params.delivery_slot_discount > 100)
		t->params.delivery_slot_discount = 100;
}

static void
transport_init(struct transport *t, struct sched *s, uint32_t index,
    const struct sched_transport_params *params)
{
	t->sched = s;
	t->index = index;
	TAILQ_INIT(&t->jobs);
	RB_INIT(&t->open);
	RB_INIT(&t->by_arrival);
	RB_INIT(&t->unread);
	transport_set(t, params);
	t->unused = t->params.recipient_limit;
}

int
sched_new(const struct sched_params *params,
    const struct sched_transport_params *transports, uint32_t count,
    const struct site_table *sites, struct sched **ret_sched)
{
	struct sched *s = calloc(1, sizeof(*s));
	struct taken *first;
	uint32_t i;

	if (s == NULL)
		return -ENOMEM;
	s->transports = calloc(count == 0 ? 1 : count, sizeof(*s->transports));
	/* One to begin with: without memory one delivery after the other can
	 * still run. */
	first = malloc(sizeof(*first));
	if (s->transports == NULL || first == NULL) {
		free(s->transports);
		free(first);
		free(s);
		return -ENOMEM;
	}
	s->count = count;
	s->sites = sites;
	s->job_labels = (struct order_labels){ ORDER_GAP, job_order_moved };
	s->ring_labels = (struct order_labels){ ORDER_GAP, peer_ring_moved };
	s->segment_most = SEGMENT_PARTS;
	TAILQ_INIT(&s->turns);
	TAILQ_INIT(&s->messages);
	TAILQ_INIT(&s->dead);
	RB_INIT(&s->due);
	params_set(s, params);
	for (i = 0; i < count; i++)
		transport_init(&s->transports[i], s, i, &transports[i]);
	pool_set_bound(s);
	taken_spare(s, first);
	*ret_sched = s;
	return 0;
}

static void
pools_free(struct sched *s)
{
	struct taken *taken;
	struct segment *segment;

	while ((taken = SLIST_FIRST(&s->spare_taken)) != NULL) {
		SLIST_REMOVE_HEAD(&s->spare_taken, spare);
		free(taken);
	}
	while ((segment = s->spare_segments) != NULL) {
		s->spare_segments = segment->up;
		free(segment);
	}
}

void
sched_free(struct sched **s)
{
	if (*s == NULL)
		return;
	ASSERT((*s)->figures.messages == 0);
	pools_free(*s);
	free((*s)->transports);
	free(*s);
	*s = NULL;
}

void
sched_set_watch(struct sched *s, const struct sched_watch *watch)
{
	s->watch = watch != NULL ? *watch : (struct sched_watch){ 0 };
}

/* Every destination with peers in line, once each: by its first_peer. */
static void
refresh_job(struct job *job)
{
	struct order_node *n;
	struct peer *p;

	TAILQ_FOREACH (n, &job->ring, link) {
		p = ORDER_OF(n, struct peer, ring);
		if (p->destination->first_peer == p)
			destination_refresh(job->transport, p->destination);
	}
}

static void
refresh_all(struct sched *s)
{
	struct sched_message *m;
	struct job *job;

	TAILQ_FOREACH (m, &s->messages, link) {
		SLIST_FOREACH (job, &m->jobs, of_message) {
			refresh_job(job);
			pool_pass(job);
		}
		message_refill(m);
	}
}

int
sched_configure(struct sched *s, const struct sched_params *params,
    const struct sched_transport_params *transports, uint32_t count, usec_t now)
{
	struct sched_transport_params old;
	uint32_t i;

	if (count != s->count)
		return -EINVAL;
	s->now = now;
	params_set(s, params);
	for (i = 0; i < count; i++) {
		old = s->transports[i].params;
		transport_set(&s->transports[i], &transports[i]);
		segment_fill(&s->transports[i]);
		pool_resize(&s->transports[i], old.recipient_limit);
	}
	pool_set_bound(s);
	refresh_all(s);
	return 0;
}

void
sched_set_process_limit(struct sched *s, uint32_t transport, uint32_t limit)
{
	ASSERT(transport < s->count);
	s->transports[transport].params.process_limit = limit;
}

void
sched_flush(struct sched *s, usec_t now)
{
	struct destination *d, *next;

	s->now = now;
	s->sites->flush(s->sites->table, now);
	for (d = TAILQ_FIRST(&s->dead); d != NULL; d = next) {
		next = TAILQ_NEXT(d, dead);
		destination_refresh(d->first_peer->job->transport, d);
	}
}

struct sched_figures
sched_figures(const struct sched *s)
{
	return s->figures;
}

uint32_t
sched_transport_running(const struct sched *s, uint32_t transport)
{
	return s->transports[transport].busy;
}
