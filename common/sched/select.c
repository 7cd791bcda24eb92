#include "sched/parts.h"

#include <errno.h>

/* Rule 5.3. Whole slots on the left, hundredths on both sides. */
static bool
is_paid(const struct job *current, uint32_t needed)
{
	const struct sched_transport_params *p = &current->transport->params;
	int64_t slots = current->slots / p->delivery_slot_cost;

	return (slots + p->delivery_slot_loan) * 100 >=
	    (int64_t)needed * (100 - (int64_t)p->delivery_slot_discount);
}

/* No job of the transport, wherever it stands, can preempt now. People who
 * watch want to know the best candidate, too. */
static bool
is_hopeless(const struct job *current, uint32_t most)
{
	uint32_t least = index_least_needed(current->transport);

	return least > most ||
	    (current->transport->sched->watch.selected == NULL &&
		!is_paid(current, least));
}

/* Rule 5.4. */
static void
preempt(struct job *current, struct job *candidate)
{
	uint32_t cost = current->transport->params.delivery_slot_cost;
	int64_t price = (int64_t)job_needed(candidate) * cost;

	job_leave_tree(candidate);
	job_pass_current(candidate);
	job_enter_tree(candidate, current);
	current->slots -= price;
	candidate->credit = price;
	candidate->price = cost;
	pool_preempt(candidate);
}

/* Rule 5. */
static void
try_preempt(struct job *current, struct sched_decision *d)
{
	const struct sched_transport_params *p = &current->transport->params;
	uint32_t cost = p->delivery_slot_cost;
	uint32_t most;
	struct job *candidate;

	d->current = job_view(current);
	d->preemption = SCHED_PREEMPT_OFF;
	if (cost < 2)
		return;
	d->preemption = SCHED_PREEMPT_NO_SLOTS;
	if (current->slots <= 0)
		return;
	d->preemption = SCHED_PREEMPT_SMALL;
	if (current->total < (uint64_t)p->minimum_delivery_slots * cost)
		return;
	d->preemption = SCHED_PREEMPT_NOBODY;
	most = job_affordable(current);
	if (is_hopeless(current, most))
		return;
	candidate = index_best(current->transport, most, &d->score);
	if (candidate == NULL)
		return;
	d->candidate = job_view(candidate);
	d->preemption = SCHED_PREEMPT_UNPAID;
	if (!is_paid(current, job_needed(candidate)) ||
	    !job_can_branch(current))
		return;
	d->preemption = SCHED_PREEMPT_DONE;
	preempt(current, candidate);
}

/* The last entry of the job was taken, and no more will come. */
static void
end_if_over(struct job *job)
{
	if (job->waiting == 0 && job->reading == NULL)
		job_list_out(job);
	else
		index_update(job);
}

static void
tell_selected(struct sched *s, struct sched_decision *d, struct destination *at,
    const struct taken *taken)
{
	if (s->watch.selected == NULL)
		return;
	d->entry = &taken->pub;
	site_view(at->site, &d->site);
	s->watch.selected(s->watch.ctx, d);
}

static void
take_entry(struct peer *p, struct sched_decision *decision, struct taken *taken)
{
	struct destination *d = p->destination;
	struct job *job = p->job;
	struct sched *s = job->transport->sched;

	destination_ask(job->transport, d);
	peer_take(p, true, taken);
	destination_place(job->transport, d);
	job->slots++;
	if (job_price(job) > 0)
		job->credit -= job->price;
	job->transport->busy++;
	s->figures.running++;
	decision->last = job->waiting == 0 && job->reading == NULL;
	end_if_over(job);
	tell_selected(s, decision, d, taken);
}

/* ---- looking ahead ---- */

/* The next selections mostly go along the ring of the current job, then along
 * the list. What they will touch is fetched into the processor's cache before,
 * one step of a chain of pointers with each selection, so that none is waited
 * for. Nothing is decided here. */
static void
fetch(const void *at)
{
	__builtin_prefetch(at);
	__builtin_prefetch((const char *)at + 64);
}

static void
fetch_entry(const struct peer *p)
{
	fetch(p->destination->site);
	if (p->entries.first != NULL)
		__builtin_prefetch(p->entries.first->next);
}

static void
look_along_ring(const struct job *job)
{
	const struct order_node *n = &job->turn->ring;
	const struct peer *p = job->turn;

	fetch_entry(p);
	n = order_next(&job->ring, n);
	p = ORDER_OF(n, const struct peer, ring);
	fetch(p->destination);
	__builtin_prefetch(p->entries.first);
	n = TAILQ_NEXT(n, link);
	if (n != NULL)
		fetch(ORDER_OF(n, const struct peer, ring));
}

static void
look_ahead(const struct transport *t)
{
	const struct job *job = t->current;

	if (job != NULL && job->turn != NULL)
		look_along_ring(job);
}

static bool
select_from(struct transport *t, usec_t now, struct taken *taken)
{
	struct sched_decision decision = { 0 };
	struct peer *p;

	if (t->first != NULL)
		try_preempt(t->current, &decision);
	while (t->first != NULL) {
		t->current = transport_first(t);
		p = transport_turn(t, t->current);
		if (site_take(p->destination->site, now) == SITE_ROOM) {
			p->destination->waits = false;
			take_entry(p, &decision, taken);
			look_ahead(t);
			return true;
		}
		/* Another queue was faster. */
		destination_refresh(t, p->destination);
	}
	return false;
}

/* Rule 4: the one that was chosen comes last, those that were skipped before
 * it. */
static void
rotate(struct sched *s, const struct transport *chosen)
{
	struct transport *t;

	do {
		t = TAILQ_FIRST(&s->turns);
		TAILQ_REMOVE(&s->turns, t, turn);
		TAILQ_INSERT_TAIL(&s->turns, t, turn);
	} while (t != chosen);
}

struct sched_entry *
sched_select(struct sched *s, usec_t now)
{
	struct taken *taken = taken_get(s);
	struct transport *t;

	if (taken == NULL)
		return NULL;
	s->now = now;
	TAILQ_FOREACH (t, &s->turns, turn) {
		if (t->busy >= t->params.process_limit ||
		    !select_from(t, now, taken))
			continue;
		rotate(s, t);
		return &taken->pub;
	}
	taken_spare(s, taken);
	return NULL;
}

struct sched_entry *
sched_take_dead(struct sched *s, usec_t now)
{
	struct taken *taken = taken_get(s);
	struct destination *d;
	struct site_view view;
	struct job *job;

	if (taken == NULL)
		return NULL;
	s->now = now;
	while ((d = TAILQ_FIRST(&s->dead)) != NULL) {
		job = d->first_peer->job;
		destination_refresh(job->transport, d);
		if (d->state != SITE_DEAD)
			continue;
		peer_take(d->first_peer, false, taken);
		destination_place(job->transport, d);
		site_view(d->site, &view);
		taken->pub.why = view.why;
		end_if_over(job);
		return &taken->pub;
	}
	taken_spare(s, taken);
	return NULL;
}

static void
report_site(struct taken *taken, const struct site_report *report)
{
	struct destination *d = taken->peer->destination;
	struct transport *t = taken->peer->job->transport;
	struct sched *s = t->sched;
	struct site_step step;
	bool told = s->watch.step != NULL;

	site_done(d->site, report, s->now, told ? &step : NULL);
	t->busy--;
	s->figures.running--;
	if (told)
		s->watch.step(
		    s->watch.ctx, t->index, taken->pub.destination, &step);
	destination_refresh(t, d);
}

static struct taken *
taken_of(struct sched_entry *pub)
{
	return (struct taken *)(void *)pub;
}

void
sched_report(struct sched *s, struct sched_entry *entry,
    const struct site_report *report, usec_t now)
{
	struct taken *taken = taken_of(entry);
	struct destination *d = taken->peer->destination;
	struct job *job = taken->peer->job;

	s->now = now;
	if (taken->has_place)
		report_site(taken, report);
	taken_end(taken);
	destination_release(job->transport, d);
	pool_pass(job);
	message_refill(job->message);
}

void
sched_done(struct sched *s, struct sched_entry *entry, enum site_result result,
    const char *why, usec_t now)
{
	const struct site_report report = { .result = result, .why = why };

	sched_report(s, entry, &report, now);
}

/* The place is given back, and the job can have the entry again. */
static void
take_back(struct taken *taken)
{
	const struct site_report report = { .result = SITE_AGENT_DIED };
	struct job *job = taken->peer->job;

	ASSERT(taken->has_place);
	report_site(taken, &report);
	if (!job->listed)
		job_list_in(job);
}

/* The job has not selected it. */
static void
give_account(struct job *job)
{
	job->slots--;
	if (job_price(job) > 0)
		job->credit += job->price;
	index_update(job);
}

void
sched_put_back(struct sched *s, struct sched_entry *entry, usec_t now)
{
	struct taken *taken = taken_of(entry);
	struct destination *d = taken->peer->destination;
	struct job *job = taken->peer->job;

	s->now = now;
	take_back(taken);
	peer_untake(taken);
	give_account(job);
	destination_refresh(job->transport, d);
}

int
sched_move(struct sched *s, struct sched_entry *entry, const char *destination,
    usec_t now)
{
	struct taken *taken = taken_of(entry);
	struct destination *from = taken->peer->destination, *d;
	struct job *job = taken->peer->job;
	struct peer *to;

	s->now = now;
	d = destination_get(job->transport, destination, 0);
	if (d == NULL)
		return -ENOMEM;
	ASSERT(d != from);
	to = peer_for_move(job, d);
	if (to == NULL) {
		destination_release(job->transport, d);
		return -ENOMEM;
	}
	take_back(taken);
	peer_move(taken, to);
	give_account(job);
	destination_release(job->transport, from);
	return 0;
}

void
sched_site_ready(struct sched *s, void *destination, usec_t now)
{
	struct destination *d = destination;
	struct transport *t;

	s->now = now;
	if (d->first_peer == NULL) /* tried when an agent is free */
		return;
	t = d->first_peer->job->transport;
	if (d->waits && t->busy >= t->params.process_limit)
		destination_step_aside(t, d);
	else
		destination_refresh(t, d);
}
