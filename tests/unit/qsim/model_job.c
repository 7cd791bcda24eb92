/* Jobs: their list, their entries, preemption. */
#include "model_parts.h"

#include <stdlib.h>

void *
model_zeroed(size_t n, size_t size)
{
	void *p = calloc(n + 1, size);

	ASSERT(p != NULL);
	return p;
}

void *
model_grown(void *p, size_t n, size_t size)
{
	p = reallocarray(p, n, size);
	ASSERT(p != NULL);
	return p;
}

const struct conf_transport *
model_rules(const struct model *m, uint32_t transport)
{
	return &m->sc->conf.transports[transport];
}

static void
note(struct model *m, const struct job *j, uint32_t site, uint32_t nrcpts,
    bool deferred)
{
	struct model_output *o = m->out;

	if (o->n == o->room) {
		o->room = o->room * 2 + 64;
		o->picks = model_grown(o->picks, o->room, sizeof(*o->picks));
	}
	o->picks[o->n++] = (struct model_pick){ .at = m->now,
		.message = j->message,
		.transport = j->transport,
		.name = m->sites[site].name,
		.nrcpts = nrcpts,
		.deferred = deferred };
}

/* ---- the job list and the preemption tree ---- */

uint32_t
model_list_place(const struct list *l, const struct job *j)
{
	uint32_t i = 0;

	while (i < l->n && l->jobs[i] != j)
		i++;
	return i;
}

static void
list_remove(struct list *l, const struct job *j)
{
	uint32_t i;

	for (i = model_list_place(l, j); i + 1 < l->n; i++)
		l->jobs[i] = l->jobs[i + 1];
	l->n--;
}

void
model_list_insert(struct list *l, uint32_t at, struct job *j)
{
	uint32_t i;

	l->jobs = model_grown(l->jobs, l->n + 1, sizeof(*l->jobs));
	for (i = l->n++; i > at; i--)
		l->jobs[i] = l->jobs[i - 1];
	l->jobs[at] = j;
}

static bool
has_child(const struct list *l, const struct job *j)
{
	uint32_t i;

	for (i = 0; i < l->n; i++)
		if (l->jobs[i]->parent == j)
			return true;
	return false;
}

static void
leave_tree(struct model *m, struct job *j)
{
	struct list *l = &m->lists[j->transport];
	int64_t unused = (int64_t)j->needed - j->used;
	uint32_t i;

	if (j->parent != NULL && j->account)
		j->parent->slots += unused *
		    model_rules(m, j->transport)->sched.delivery_slot_cost;
	for (i = 0; i < l->n; i++)
		if (l->jobs[i]->parent == j) {
			l->jobs[i]->parent = j->parent;
			l->jobs[i]->account = false;
		}
	j->parent = NULL;
	j->account = false;
}

void
model_leave_list_if_done(struct model *m, struct job *j)
{
	struct list *l = &m->lists[j->transport];
	uint32_t next;

	if (j->npeers > 0)
		return;
	leave_tree(m, j);
	next = model_list_place(l, j) + 1;
	if (l->current == j)
		l->current = next < l->n ? l->jobs[next] : NULL;
	list_remove(l, j);
	free(j->peers);
	free(j);
}

/* ---- entries ---- */

static void
cut_entry(struct model *m, struct job *j, struct peer *p, bool deferred)
{
	uint32_t limit =
	    model_rules(m, j->transport)->sched.destination_recipient_limit;
	uint32_t size = p->left < limit ? p->left : limit;

	p->left -= size;
	j->selected++;
	note(m, j, p->site, size, deferred);
}

/* The ring is turned so that this peer is the last, or gone. */
void
model_take_entry(struct model *m, struct job *j, uint32_t peer)
{
	struct peer *turned = model_zeroed(j->npeers, sizeof(*turned));
	uint32_t i, n;

	cut_entry(m, j, &j->peers[peer], false);
	for (i = 0; i < j->npeers; i++)
		turned[i] = j->peers[(peer + 1 + i) % j->npeers];
	n = j->npeers;
	if (turned[n - 1].left == 0)
		n--;
	free(j->peers);
	j->peers = turned;
	j->npeers = n;
}

/* The others keep their turn. */
void
model_defer(struct model *m, struct job *j, uint32_t site)
{
	uint32_t i, n = 0;

	for (i = 0; i < j->npeers; i++) {
		while (j->peers[i].site == site && j->peers[i].left > 0)
			cut_entry(m, j, &j->peers[i], true);
		if (j->peers[i].left > 0)
			j->peers[n++] = j->peers[i];
	}
	j->npeers = n;
}

uint32_t
model_selectable_peer(struct model *m, const struct job *j)
{
	uint32_t i;

	for (i = 0; i < j->npeers; i++)
		if (model_site_has_room(&m->sites[j->peers[i].site], m->now))
			break;
	return i;
}

bool
model_is_full(struct model *m, const struct job *j)
{
	return model_selectable_peer(m, j) == j->npeers;
}

/* ---- preemption ---- */

static int64_t
needed(const struct job *j)
{
	return (int64_t)j->total - j->selected;
}

/* (age + 1 s) / total of a is greater than that of b. */
static bool
scores_higher(const struct model *m, const struct job *a, const struct job *b)
{
	return (m->now - a->since + USEC_PER_SEC) * b->total >
	    (m->now - b->since + USEC_PER_SEC) * a->total;
}

static struct job *
candidate(struct model *m, const struct job *current)
{
	const struct list *l = &m->lists[current->transport];
	int64_t cost =
	    model_rules(m, current->transport)->sched.delivery_slot_cost;
	int64_t most = (needed(current) + current->slots) / cost;
	struct job *best = NULL;
	uint32_t i;

	for (i = model_list_place(l, current) + 1; i < l->n; i++)
		if (!has_child(l, l->jobs[i]) && needed(l->jobs[i]) <= most &&
		    (best == NULL || scores_higher(m, l->jobs[i], best)))
			best = l->jobs[i];
	return best;
}

static bool
can_pay(const struct model *m, const struct job *current, const struct job *c)
{
	const struct conf_transport *r = model_rules(m, current->transport);
	int64_t have = current->slots / r->sched.delivery_slot_cost;

	return (have + r->sched.delivery_slot_loan) * 100 >=
	    needed(c) * (100 - (int64_t)r->sched.delivery_slot_discount);
}

void
model_preempt(struct model *m, struct list *l)
{
	struct job *current = l->current, *c;
	const struct conf_transport *r;
	int64_t cost;

	if (current == NULL)
		return;
	r = model_rules(m, current->transport);
	cost = r->sched.delivery_slot_cost;
	if (cost <= 1 || current->slots <= 0 ||
	    current->total < (int64_t)r->sched.minimum_delivery_slots * cost)
		return;
	c = candidate(m, current);
	if (c == NULL || !can_pay(m, current, c))
		return;
	leave_tree(m, c);
	list_remove(l, c);
	model_list_insert(l, model_list_place(l, current), c);
	current->slots -= needed(c) * cost;
	c->parent = current;
	c->account = true;
	c->needed = (uint32_t)needed(c);
	c->used = 0;
	l->current = c;
}
