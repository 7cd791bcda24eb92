#include "sched/parts.h"

static struct sched_job_view
view_of(const struct job *job)
{
	return (struct sched_job_view){
		.owner = job->message->owner,
		.slots = job->slots,
		.total = job->total,
		.selected = job->selected,
	};
}

/* Rule 5.2: the most entries that the job can pay for before it ends. */
static uint32_t
affordable(const struct job *job)
{
	int64_t most = ((int64_t)job_needed(job) + job->slots) /
	    job->transport->params.delivery_slot_cost;

	return most > UINT32_MAX ? UINT32_MAX : (uint32_t)most;
}

/* Rule 5.3. Whole slots on the left, hundredths on both sides. */
static bool
is_paid(const struct job *current, const struct job *candidate)
{
	const struct sched_transport_params *p = &current->transport->params;
	int64_t slots = current->slots / p->delivery_slot_cost;

	return (slots + p->delivery_slot_loan) * 100 >=
	    (int64_t)job_needed(candidate) *
	    (100 - (int64_t)p->delivery_slot_discount);
}

/* Rule 5.4. */
static void
preempt(struct job *current, struct job *candidate)
{
	uint32_t cost = current->transport->params.delivery_slot_cost;
	int64_t price = (int64_t)job_needed(candidate) * cost;

	job_leave_tree(candidate);
	job_move_before(candidate, current);
	candidate->parent = current;
	LIST_INSERT_HEAD(&current->children, candidate, sibling);
	current->slots -= price;
	candidate->credit = price;
	candidate->price = cost;
	pool_preempt(candidate);
}

/* Rule 5; the job that is current after it. */
static struct job *
try_preempt(struct job *current, usec_t now, struct sched_decision *d)
{
	const struct sched_transport_params *p = &current->transport->params;
	uint32_t cost = p->delivery_slot_cost;
	struct job *candidate;

	d->current = view_of(current);
	d->preemption = SCHED_PREEMPT_OFF;
	if (cost < 2)
		return current;
	d->preemption = SCHED_PREEMPT_NO_SLOTS;
	if (current->slots <= 0)
		return current;
	d->preemption = SCHED_PREEMPT_SMALL;
	if (current->total < (uint64_t)p->minimum_delivery_slots * cost)
		return current;
	d->preemption = SCHED_PREEMPT_NOBODY;
	candidate =
	    candidate_best(current, affordable(current), now, &d->score);
	if (candidate == NULL)
		return current;
	d->candidate = view_of(candidate);
	d->preemption = SCHED_PREEMPT_UNPAID;
	if (!is_paid(current, candidate))
		return current;
	d->preemption = SCHED_PREEMPT_DONE;
	preempt(current, candidate);
	return candidate;
}

/* Its last entry was taken and no more will come. */
static void
end_if_over(struct job *job)
{
	if (job->waiting == 0 && job->fully_read)
		job_list_out(job);
	else
		candidate_update(job);
}

static void
tell_selected(struct sched *s, struct sched_decision *d, struct destination *at,
    const struct entry *e)
{
	if (s->watch.selected == NULL)
		return;
	d->entry = &e->pub;
	s->sites->view(at->site, &d->site);
	s->watch.selected(s->watch.ctx, d);
}

static struct entry *
take_entry(struct peer *p, struct sched_decision *decision)
{
	struct destination *d = p->destination;
	struct job *job = p->job;
	struct sched *s = job->transport->sched;
	struct entry *e;

	destination_ask(d);
	e = peer_take(p, ENTRY_RUNNING);
	destination_place(d);
	job->slots++;
	job->credit -= job->price;
	job->transport->busy++;
	s->figures.running++;
	e->pub.selected_at = s->now;
	decision->last = job->waiting == 0 && job->fully_read;
	end_if_over(job);
	tell_selected(s, decision, d, e);
	return e;
}

static struct entry *
select_from(struct transport *t, usec_t now)
{
	const struct site_table *sites = t->sched->sites;
	struct sched_decision decision = { 0 };
	struct job *current;
	struct peer *p;

	while ((current = transport_current(t)) != NULL) {
		current = try_preempt(current, now, &decision);
		p = transport_turn(t, current);
		if (sites->take(sites->table, p->destination->site, now) ==
		    SITE_ROOM)
			return take_entry(p, &decision);
		/* Another queue was faster. */
		destination_refresh(p->destination);
	}
	return NULL;
}

struct sched_entry *
sched_select(struct sched *s, usec_t now)
{
	struct transport *t;
	struct entry *e;
	uint32_t i;

	s->now = now;
	for (i = 0; i < s->count; i++) {
		t = &s->transports[(s->turn + i) % s->count];
		if (t->busy >= t->params.process_limit)
			continue;
		e = select_from(t, now);
		if (e != NULL) {
			s->turn = (t->index + 1) % s->count;
			return &e->pub;
		}
	}
	return NULL;
}

struct sched_entry *
sched_take_dead(struct sched *s, usec_t now)
{
	struct destination *d;
	struct site_view view;
	struct entry *e;
	struct job *job;

	s->now = now;
	while ((d = TAILQ_FIRST(&s->dead)) != NULL) {
		destination_refresh(d);
		if (d->state != SITE_DEAD)
			continue;
		job = d->front->job;
		e = peer_take(d->front, ENTRY_UNTRIED);
		destination_place(d);
		s->sites->view(d->site, &view);
		e->pub.why = view.why;
		e->pub.selected_at = now;
		end_if_over(job);
		return &e->pub;
	}
	return NULL;
}

static void
site_report(struct entry *e, enum site_result result, const char *why)
{
	struct destination *d = e->peer->destination;
	struct sched *s = d->transport->sched;
	struct site_step step;
	bool told = s->watch.step != NULL;

	s->sites->done(
	    s->sites->table, d->site, result, why, s->now, told ? &step : NULL);
	d->transport->busy--;
	s->figures.running--;
	if (told)
		s->watch.step(
		    s->watch.ctx, d->transport->index, d->name, &step);
	destination_refresh(d);
}

static struct entry *
private_entry(struct sched_entry *pub)
{
	return (struct entry *)(void *)pub;
}

void
sched_done(struct sched *s, struct sched_entry *entry, enum site_result result,
    const char *why, usec_t now)
{
	struct entry *e = private_entry(entry);
	struct destination *d = e->peer->destination;
	struct job *job = e->peer->job;

	s->now = now;
	if (e->state == ENTRY_RUNNING)
		site_report(e, result, why);
	entry_end(e);
	destination_release(d);
	if (job->fully_read)
		pool_pass(job);
	message_refill(job->message);
}

void
sched_put_back(struct sched *s, struct sched_entry *entry, usec_t now)
{
	struct entry *e = private_entry(entry);
	struct destination *d = e->peer->destination;
	struct job *job = e->peer->job;

	ASSERT(e->state == ENTRY_RUNNING);
	s->now = now;
	site_report(e, SITE_AGENT_DIED, NULL);
	candidate_drop(job);
	if (!job->listed)
		job_list_in(job);
	peer_untake(e);
	job->slots--;
	job->credit += job->price;
	candidate_update(job);
	destination_refresh(d);
}

void
sched_site_ready(struct sched *s, void *destination, usec_t now)
{
	s->now = now;
	destination_refresh(destination);
}
