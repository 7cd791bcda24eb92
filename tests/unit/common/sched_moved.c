/* Rule 5 among hundreds of jobs that have preempted and wait again, driven by
 * chance: each candidate is the one that a walk over the list finds. Arrivals,
 * totals and so scores are often equal; the current job is anywhere, as
 * destinations fill and get room. */
#include "sched/parts.h"

#include <criterion/criterion.h>

#include "sched_check.h"
#include "sched_table.h"

#define MESSAGES     800 /* at the same time */
#define DESTINATIONS 12
#define SLOW         8 /* from that one on */
#define DRIVES       12
#define STEPS        24000
#define CHECKED      2000 /* steps between two checks of everything */
#define MOST         100  /* entries of a message */

struct world {
	uint64_t dice;
	usec_t now;
	struct sched *s;
	struct shared *sites;
	struct transport *t;
	struct sched_message *messages[MESSAGES]; /* or NULL */
	struct sched_entry *running[4 * DESTINATIONS];
	uint32_t nrunning, steps;
	/* Of the selection that begins. */
	const struct job *current, *want;
	bool told;
	/* Counts of the drive, so that it shows what it is for. */
	uint32_t most_moved, most_behind, found_moved;
};

static uint32_t
roll(struct world *w, uint32_t low, uint32_t high)
{
	w->dice = w->dice * 6364136223846793005 + 1442695040888963407;
	return low + (uint32_t)(w->dice >> 33) % (high - low + 1);
}

/* ---- rule 5 by a walk ---- */

/* A clock that went back stays where it was. */
static usec_t
latest(const struct world *w)
{
	const struct sched_message *last =
	    TAILQ_LAST(&w->s->messages, message_list);
	usec_t now = w->now;

	if (now < w->t->searched)
		now = w->t->searched;
	return now < last->arrival ? last->arrival : now;
}

static uint64_t
age(const struct job *job, usec_t now)
{
	return (uint64_t)(now - job->message->arrival) + USEC_PER_SEC;
}

static bool
better(const struct job *a, const struct job *b, usec_t now)
{
	return age(a, now) * b->total > age(b, now) * a->total;
}

static const struct job *
walk(struct world *w, const struct job *current)
{
	const int64_t most = ((int64_t)job_needed(current) + current->slots) /
	    w->t->params.delivery_slot_cost;
	const struct order_node *n = &current->order;
	const struct job *job, *best = NULL;
	uint32_t moved = 0;

	while ((n = TAILQ_NEXT(n, link)) != NULL) {
		job = ORDER_OF(n, const struct job, order);
		moved += job->moved;
		if (job_needed(job) == 0 || job_needed(job) > most ||
		    job_has_children(job))
			continue;
		if (best == NULL || better(job, best, latest(w)))
			best = job;
	}
	if (moved > w->most_behind)
		w->most_behind = moved;
	return best;
}

static void
see_selected(void *ctx, const struct sched_decision *d)
{
	struct world *w = ctx;

	w->told = true;
	cr_assert_eq(d->current.owner, w->current->message->owner);
	if (d->preemption < SCHED_PREEMPT_NOBODY)
		return;
	cr_assert_eq(d->preemption == SCHED_PREEMPT_NOBODY, w->want == NULL);
	if (w->want == NULL)
		return;
	cr_assert_eq(d->candidate.owner, w->want->message->owner,
	    "message %lu, not %lu", (unsigned long)w->want->message->number,
	    (unsigned long)((struct sched_message **)d->candidate.owner)[0]
		->number);
}

/* ---- the drive ---- */

static void
new_message(struct world *w)
{
	static const char *const names[DESTINATIONS] = { "a", "b", "c", "d",
		"e", "f", "g", "h", "i", "j", "k", "l" };
	const struct sched_rcpt rcpt = { 0 };
	struct sched_message **m = w->messages;
	uint32_t n = roll(w, 1, roll(w, 0, 9) == 0 ? MOST : 4);
	const char *name = names[roll(
	    w, n > 4 ? 0 : SLOW / 2, n > 4 ? SLOW - 1 : DESTINATIONS - 1)];

	while (m < w->messages + MESSAGES && *m != NULL)
		m++;
	/* A third of the time nothing comes: a clock that goes back then stays
	 * behind all arrivals. */
	if (m == w->messages + MESSAGES || w->steps / 300 % 3 == 2)
		return;
	cr_assert_eq(sched_message_new(w->s, m, w->now, m), 0);
	if (roll(w, 0, 2) == 0)
		cr_assert_eq(sched_message_expect(*m, 0, n + 1), 0);
	for (; n > 0; n--) {
		if (roll(w, 0, 9) == 0)
			name = names[roll(w, 0, DESTINATIONS - 1)];
		cr_assert_eq(sched_rcpt_add(*m, 0, name, NULL, &rcpt), 0);
	}
	sched_batch_end(*m, roll(w, 0, 19) > 0, w->now);
}

static void
select_one(struct world *w)
{
	const struct job *current = w->t->current;
	struct sched_entry *e;

	if (w->nrunning == ARRAY_LEN(w->running))
		return;
	w->current = current;
	w->want = current == NULL ? NULL : walk(w, current);
	w->found_moved += w->want != NULL && w->want->moved;
	w->told = false;
	e = sched_select(w->s, w->now);
	cr_assert_eq(w->told, e != NULL);
	if (e != NULL)
		w->running[w->nrunning++] = e;
}

static void
free_if_over(struct sched_message **m)
{
	if (sched_message_waiting(*m) == 0 && sched_message_running(*m) == 0)
		sched_message_free(m);
}

/* Of some destinations deliveries take long. */
static void
end_one(struct world *w)
{
	uint32_t i;
	struct sched_message **m;

	if (w->nrunning == 0)
		return;
	i = roll(w, 0, w->nrunning - 1);
	if (w->running[i]->destination[0] >= 'a' + SLOW && roll(w, 0, 99) > 0)
		return;
	m = w->running[i]->owner;
	if (roll(w, 0, 19) == 0)
		sched_put_back(w->s, w->running[i], w->now);
	else
		sched_done(w->s, w->running[i], SITE_DELIVERED, NULL, w->now);
	w->running[i] = w->running[--w->nrunning];
	free_if_over(m);
}

static void
cancel_one(struct world *w)
{
	struct sched_message **m = &w->messages[roll(w, 0, MESSAGES - 1)];

	if (*m == NULL || roll(w, 0, 9) > 0)
		return;
	sched_message_cancel(*m);
	free_if_over(m);
}

/* Mostly not before the last message arrived. */
static void
go_back(struct world *w)
{
	const struct sched_message *last =
	    TAILQ_LAST(&w->s->messages, message_list);
	usec_t most = w->now - (last == NULL ? 0 : last->arrival);

	if (roll(w, 0, 9) == 0)
		most += USEC_PER_SEC;
	most /= 1000;
	if (most > 0 && most <= w->now / 1000)
		w->now -= (usec_t)roll(w, 0, (uint32_t)most) * 1000;
}

/* The clock goes back between two searches, and comes forward again: what the
 * first one has remembered does not hold for the second one. */
static void
select_earlier(struct world *w)
{
	const usec_t now = w->now;

	select_one(w);
	go_back(w);
	select_one(w);
	w->now = now;
}

static void
pass_time(struct world *w)
{
	if (roll(w, 0, 3) == 0)
		w->now += (usec_t)roll(w, 0, 2) * USEC_PER_SEC;
	else if (roll(w, 0, 30) == 0)
		w->now += (usec_t)roll(w, 0, 5000) * USEC_PER_SEC;
	else if (roll(w, 0, 3) == 0)
		go_back(w);
}

static void
step(struct world *w)
{
	static void (*const acts[])(struct world * w) = { new_message,
		new_message, select_one, select_one, select_one, select_one,
		select_earlier, end_one, end_one, end_one, cancel_one,
		pass_time };
	struct order_node *n;
	uint32_t moved = 0;

	w->steps++;
	acts[roll(w, 0, ARRAY_LEN(acts) - 1)](w);
	TAILQ_FOREACH (n, &w->t->jobs, link)
		moved += ORDER_OF(n, struct job, order)->moved;
	if (moved > w->most_moved)
		w->most_moved = moved;
}

static void
begin(struct world *w)
{
	const uint32_t window = roll(w, 1, 3);
	const struct sched_params params = { UINT32_MAX, 10, 20000 };
	const struct sched_watch watch = { .ctx = w, .selected = see_selected };
	const struct sched_transport_params transport = {
		.process_limit = 1000,
		.destination_recipient_limit = 1,
		.delivery_slot_cost = roll(w, 2, 4),
		.delivery_slot_discount = roll(w, 0, 2) * 50,
		.delivery_slot_loan = roll(w, 0, 20),
		.recipient_limit = 20000,
		.recipient_refill_limit = 1,
	};
	const struct site_params site = {
		.initial_destination_concurrency = window,
		.destination_concurrency_limit = window,
		.positive = { 1, WINDOW_FIXED },
	};
	const struct site_backoff backoff = { 1, 1, 0 };

	cr_assert_eq(table_new(&site, 1, &backoff, &w->sites), 0);
	cr_assert_eq(sched_new(&params, &transport, 1, w->sites, &w->s), 0);
	sched_set_watch(w->s, &watch);
	w->t = &w->s->transports[0];
	if (roll(w, 0, 1) == 0)
		w->s->job_labels.gap = 2;
}

static void
end(struct world *w)
{
	uint32_t i;

	sched_check(w->s);
	while (w->nrunning > 0)
		sched_done(w->s, w->running[--w->nrunning], SITE_DELIVERED,
		    NULL, w->now);
	for (i = 0; i < MESSAGES; i++)
		if (w->messages[i] != NULL)
			sched_message_free(&w->messages[i]);
	sched_free(&w->s);
	shared_free(&w->sites);
}

Test(sched_moved, candidates_are_those_of_a_walk)
{
	uint32_t moved = 0, behind = 0, found = 0, i;
	uint64_t seed;

	for (seed = 0; seed < DRIVES; seed++) {
		struct world w = { .dice = seed * 7919 };

		begin(&w);
		for (i = 0; i < STEPS; i++) {
			step(&w);
			if (i % CHECKED == 0)
				sched_check(w.s);
		}
		end(&w);
		moved = w.most_moved > moved ? w.most_moved : moved;
		behind = w.most_behind > behind ? w.most_behind : behind;
		found += w.found_moved;
	}
	/* There were as many as the name says. */
	cr_expect_gt(moved, 200);
	cr_expect_gt(behind, 200);
	cr_expect_gt(found, 1000);
}
