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

static void
slabs_init(struct slabs *slabs)
{
	struct page_source *from = &slabs->pages;

	pages_init(from);
	slab_init(&slabs->message, sizeof(struct sched_message), from);
	slab_init(&slabs->reading, sizeof(struct reading), from);
	slab_init(&slabs->job, sizeof(struct job), from);
	slab_init(&slabs->job_reading, sizeof(struct job_reading), from);
	slab_init(&slabs->peer, sizeof(struct peer), from);
	entry_slabs_init(slabs->entry, from);
	slab_init(&slabs->destination, sizeof(struct destination), from);
	slab_init(&slabs->index, sizeof(struct index_node), NULL);
}

static void
slabs_done(struct slabs *slabs)
{
	slab_done(&slabs->message);
	slab_done(&slabs->reading);
	slab_done(&slabs->job);
	slab_done(&slabs->job_reading);
	slab_done(&slabs->peer);
	entry_slabs_done(slabs->entry);
	slab_done(&slabs->destination);
	slab_done(&slabs->index);
	pages_done(&slabs->pages);
}

int
sched_new(const struct sched_params *params,
    const struct sched_transport_params *transports, uint32_t count,
    struct shared *sites, struct sched **ret_sched)
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
	TAILQ_INIT(&s->turns);
	TAILQ_INIT(&s->messages);
	TAILQ_INIT(&s->dead);
	RB_INIT(&s->due);
	slabs_init(&s->slabs);
	params_set(s, params);
	for (i = 0; i < count; i++)
		transport_init(&s->transports[i], s, i, &transports[i]);
	pool_set_bound(s);
	taken_spare(s, first);
	*ret_sched = s;
	return 0;
}

void
sched_free(struct sched **s)
{
	struct taken *taken;

	if (*s == NULL)
		return;
	ASSERT((*s)->figures.messages == 0);
	while ((taken = SLIST_FIRST(&(*s)->spare_taken)) != NULL) {
		SLIST_REMOVE_HEAD(&(*s)->spare_taken, spare);
		free(taken);
	}
	slabs_done(&(*s)->slabs);
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
		index_fill(&s->transports[i]);
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
	site_flush(s->sites, now);
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

/* ---- why a message waits, for people: nothing is decided here ---- */

struct explanation {
	uint32_t left; /* destinations that may still be told */
	uint32_t *budget;
	uint32_t told; /* recipients */
	void (*each)(void *ctx, const struct sched_wait *wait);
	void *ctx;
};

static bool
spend(struct explanation *x)
{
	if (*x->budget == 0)
		return false;
	--*x->budget;
	return true;
}

static uint32_t
count_recipients(struct explanation *x, const struct peer *p)
{
	const struct entry *e;
	uint32_t n = 0;

	for (e = p->entries.first; e != NULL; e = e->next) {
		n += e->nrcpts;
		if (!spend(x))
			break;
	}
	return n;
}

/* Peers before it in line for the destination. */
static void
count_line(struct explanation *x, struct peer *p, struct sched_wait *w)
{
	const uint32_t most = *x->budget;

	w->ahead = destination_line_before(p, most, &w->more);
	*x->budget -= w->ahead;
}

/* Jobs from the current one up to this one, which is behind it. */
static void
count_jobs(struct explanation *x, struct job *job, struct sched_wait *w)
{
	struct order_node *n = &job->order;
	const struct job *current = job->transport->current;

	if (current == NULL || current == job)
		return;
	do {
		n = TAILQ_PREV(n, order_list, link);
		w->ahead += n != NULL;
	} while (n != NULL && n != &current->order && spend(x));
	w->more = n != NULL && n != &current->order;
}

/* Rule 5: the current job is one that smaller ones may overtake. */
static bool
is_behind(const struct job *job)
{
	const struct job *current = job->transport->current;
	const struct sched_transport_params *p = &job->transport->params;

	return current != NULL && current != job &&
	    label_order(current->order.label, job->order.label) < 0 &&
	    p->delivery_slot_cost > 1 &&
	    current->total >=
	    (uint64_t)p->minimum_delivery_slots * p->delivery_slot_cost;
}

/* Rules 5.2 and 5.3, in hundredths of slots. */
static void
explain_slots(const struct job *job, struct sched_wait *w)
{
	const struct job *current = job->transport->current;
	const struct sched_transport_params *p = &job->transport->params;
	const int64_t cost = p->delivery_slot_cost;
	const int64_t needed = job_needed(job);

	w->other = job_view(current);
	w->have =
	    current->slots * 100 / cost + (int64_t)p->delivery_slot_loan * 100;
	if (job_affordable(current) >= needed)
		w->need = needed * (100 - (int64_t)p->delivery_slot_discount);
}

/* In the order of what would have to change first. */
static enum sched_reason
judge(const struct transport *t, const struct peer *p, enum site_state state)
{
	if (state == SITE_DEAD)
		return SCHED_WAITS_DEAD;
	if (t->params.process_limit == 0)
		return SCHED_WAITS_AGENT;
	if (state == SITE_FULL)
		return SCHED_WAITS_WINDOW;
	if (is_behind(p->job))
		return SCHED_WAITS_BEHIND;
	return t->busy >= t->params.process_limit ? SCHED_WAITS_LIMIT
						  : SCHED_WAITS_TURN;
}

static void
explain_peer(struct explanation *x, struct peer *p)
{
	const struct transport *t = p->job->transport;
	struct sched_wait w = {
		.transport = t->index,
		.destination = peer_name(p),
		.busy = t->busy,
		.limit = t->params.process_limit,
	};

	site_view(p->destination->site, &w.site);
	/* The view is of the last look: what the scheduler goes by. */
	w.site.state = (enum site_state)p->destination->state;
	w.reason = judge(t, p, w.site.state);
	w.recipients = count_recipients(x, p);
	if (w.reason == SCHED_WAITS_WINDOW)
		count_line(x, p, &w);
	else if (w.reason == SCHED_WAITS_BEHIND ||
	    w.reason == SCHED_WAITS_LIMIT)
		count_jobs(x, p->job, &w);
	if (w.reason == SCHED_WAITS_BEHIND)
		explain_slots(p->job, &w);
	x->told += w.recipients;
	x->left--;
	x->each(x->ctx, &w);
}

uint32_t
sched_explain(const struct sched_message *m, uint32_t most, uint32_t *budget,
    void (*each)(void *ctx, const struct sched_wait *wait), void *ctx)
{
	struct explanation x = {
		.left = most, .budget = budget, .each = each, .ctx = ctx
	};
	struct order_node *n;
	struct job *job;

	SLIST_FOREACH (job, &m->jobs, of_message)
		TAILQ_FOREACH (n, &job->ring, link) {
			if (x.left == 0)
				return x.told;
			explain_peer(&x, ORDER_OF(n, struct peer, ring));
		}
	return x.told;
}
