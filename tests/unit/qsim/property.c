/* Promises of the rules, on scenarios by chance. */
#include "qsim/simulate.h"
#include "random_scenario.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define SCENARIOS 1000

struct pick {
	usec_t at;
	uint32_t message; /* from 0 */
	uint32_t transport, destination;
	uint32_t first, last; /* recipients, by index */
};

/* A run: what was selected, and who preempted whom. */
struct log {
	const struct scenario *sc;
	const char *text;
	struct pick *picks;
	size_t n, room;
	uint32_t running[CONF_TRANSPORTS_MAX];
	bool *done;       /* recipients, of all messages in a row */
	uint32_t *base;   /* of a message in it */
	uint32_t *dealt;  /* recipients of a message selected or deferred */
	uint32_t *parent; /* a message; UINT32_MAX: never preempted another */
};

static void *
zeroed(size_t n, size_t size)
{
	void *p = calloc(n + 1, size);

	cr_assert_not_null(p);
	return p;
}

/* ---- invariants of every event ---- */

static void
each_once(struct log *l, const struct pick *p, const struct sched_entry *e)
{
	bool *done = l->done + l->base[p->message];
	uint32_t i;

	for (i = 0; i < e->nrcpts; i++) {
		cr_assert_lt(
		    e->rcpts[i].index, l->sc->messages[p->message].nrcpts);
		cr_assert_not(done[e->rcpts[i].index], "twice:\n%s", l->text);
		done[e->rcpts[i].index] = true;
		cr_assert(i == 0 || e->rcpts[i].index > e->rcpts[i - 1].index,
		    "the order in the file:\n%s", l->text);
	}
	l->dealt[p->message] += e->nrcpts;
}

static void
within_limits(struct log *l, const struct sched_decision *d)
{
	uint32_t t = d->entry->transport;
	const struct conf_transport *rules = &l->sc->conf.transports[t];
	uint32_t limit = rules->site.destination_concurrency_limit;

	cr_assert_leq(d->site.busy, d->site.window, "window:\n%s", l->text);
	cr_assert(limit == 0 || d->site.window <= limit, "limit:\n%s", l->text);
	l->running[t]++;
	cr_assert_leq(
	    l->running[t], rules->sched.process_limit, "agents:\n%s", l->text);
	cr_assert_leq(
	    d->entry->nrcpts, rules->sched.destination_recipient_limit);
}

static int
see_selected(void *ctx, const struct simulate_selection *s)
{
	const struct sched_decision *d = s->decision;
	const struct sched_entry *e = d->entry;
	struct log *l = ctx;
	struct pick *p;

	if (l->n == l->room) {
		l->room = l->room * 2 + 64;
		l->picks = reallocarray(l->picks, l->room, sizeof(*l->picks));
		cr_assert_not_null(l->picks);
	}
	p = &l->picks[l->n++];
	*p = (struct pick){ .at = s->now,
		.message = s->message - 1,
		.transport = e->transport,
		.destination = s->destination,
		.first = e->rcpts[0].index,
		.last = e->rcpts[e->nrcpts - 1].index };
	if (d->preemption == SCHED_PREEMPT_DONE)
		l->parent[simulate_number(l->sc, d->candidate.owner) - 1] =
		    simulate_number(l->sc, d->current.owner) - 1;
	within_limits(l, d);
	each_once(l, p, e);
	return 0;
}

static int
see_reported(void *ctx, const struct simulate_report *r)
{
	struct log *l = ctx;

	if (r->result == SITE_UNTRIED)
		l->dealt[r->message - 1] += r->entry->nrcpts;
	else
		l->running[r->entry->transport]--;
	return 0;
}

/* ---- a run ---- */

static void
log_done(struct log *l, struct scenario *sc)
{
	free(l->picks);
	free(l->done);
	free(l->base);
	free(l->dealt);
	free(l->parent);
	scenario_done(sc);
}

static void
run(const struct buf *text, struct scenario *ret_scenario, struct log *ret_log)
{
	struct log *l = ret_log;
	const struct simulate_watch watch = {
		.ctx = l, .selected = see_selected, .reported = see_reported
	};
	struct buf error = { 0 };
	uint32_t i, all = 0, n;

	cr_assert_eq(scenario_parse("property", buf_str(text), text->len,
			 ret_scenario, &error),
	    0, "%s:\n%s", buf_str(&error), buf_str(text));
	n = ret_scenario->nmessages;
	*l = (struct log){ .sc = ret_scenario, .text = buf_str(text) };
	l->base = zeroed(n, sizeof(*l->base));
	l->dealt = zeroed(n, sizeof(*l->dealt));
	l->parent = zeroed(n, sizeof(*l->parent));
	for (i = 0; i < n; i++) {
		l->base[i] = all;
		l->parent[i] = UINT32_MAX;
		all += ret_scenario->messages[i].nrcpts;
	}
	l->done = zeroed(all, sizeof(*l->done));
	cr_assert_eq(
	    simulate(ret_scenario, &ret_scenario->conf, 1, &watch, NULL), 0);
	for (i = 0; i < n; i++)
		cr_assert_eq(l->dealt[i], ret_scenario->messages[i].nrcpts,
		    "message %u:\n%s", i + 1, l->text);
}

/* ---- the order of each destination ---- */

static bool
comes_later(const struct log *l, uint32_t a, uint32_t b)
{
	usec_t at = l->sc->messages[a].at, bt = l->sc->messages[b].at;

	return at != bt ? at > bt : a > b;
}

/* First in, first out, but for what preempted: one selected earlier came
 * earlier, or the other was not there yet. Within a message as in the file;
 * where the recipient is the destination there is no such order. */
static void
fifo(const struct log *l, bool preemption)
{
	const struct pick *a, *b;

	for (a = l->picks; a < l->picks + l->n; a++)
		for (b = a + 1; b < l->picks + l->n; b++) {
			if (a->destination != b->destination)
				continue;
			if (l->sc->conf.transports[a->transport]
				.sched.destination_recipient_limit == 1)
				continue;
			if (a->message == b->message)
				cr_assert_lt(a->last, b->first, "%s", l->text);
			else if (comes_later(l, a->message, b->message) &&
			    l->sc->messages[b->message].at <= a->at)
				cr_assert(preemption &&
					l->parent[a->message] != UINT32_MAX,
				    "%u before %u:\n%s", a->message + 1,
				    b->message + 1, l->text);
		}
}

/* The text without the lines that say what preemption costs. */
static void
without_preemption(struct buf *text)
{
	struct buf other = { 0 };
	const char *at = buf_str(text), *end;

	cr_assert_eq(
	    buf_add_str(&other, "set default_delivery_slot_cost 0\n"), 0);
	for (; *at != '\0'; at = end) {
		end = strchr(at, '\n') + 1;
		if (memmem(at, (size_t)(end - at), "slot_cost", 9) == NULL)
			cr_assert_eq(
			    buf_add(&other, at, (size_t)(end - at)), 0);
	}
	buf_done(text);
	*text = other;
}

Test(property, limits_and_order)
{
	struct buf text = { 0 };
	struct scenario sc;
	struct log l;
	uint64_t seed;

	for (seed = 0; seed < SCENARIOS; seed++) {
		random_scenario(seed, &text);
		run(&text, &sc, &l);
		fifo(&l, true);
		log_done(&l, &sc);
	}
	buf_done(&text);
}

Test(property, order_of_arrival_without_preemption)
{
	struct buf text = { 0 };
	struct scenario sc;
	struct log l;
	uint64_t seed;

	for (seed = 0; seed < SCENARIOS; seed++) {
		random_scenario(seed, &text);
		without_preemption(&text);
		run(&text, &sc, &l);
		fifo(&l, false);
		log_done(&l, &sc);
	}
	buf_done(&text);
}

/* ---- the bounds of preemption ---- */

/* One agent, and room at every destination: no blockers, nobody dies. Then
 * between the first and the last selection of a job there are its own, as many
 * as its total, and those of jobs that preempted it, or preempted these. A job
 * gets 1/cost of a slot for each of its own and pays for all that preempt it;
 * what it may owe, loan and discount included, is never more than it can still
 * earn (rule 5.2). So those it was preempted by directly have at most
 *total/cost entries, each of them was preempted by at most 1/cost of its own,
 *and so on:
 *
 *	selections <= total * (k + 1) / k      if those were not preempted,
 *	selections <= total * k / (k - 1)      in any case. */
struct stay {
	uint32_t total;     /* entries */
	size_t first, last; /* selections, of the run */
	bool begun, preempted, nested;
};

static struct stay *
stays(const struct log *l)
{
	uint32_t n = l->sc->nmessages, i, p;
	struct stay *stay = zeroed(n, sizeof(*stay)), *s;
	size_t k;

	for (k = 0; k < l->n; k++) {
		s = &stay[l->picks[k].message];
		if (!s->begun)
			s->first = k;
		s->begun = true;
		s->last = k;
		s->total++;
	}
	for (i = 0; i < n; i++)
		if (l->parent[i] != UINT32_MAX)
			stay[l->parent[i]].preempted = true;
	for (i = 0; i < n; i++) {
		p = l->parent[i];
		if (p != UINT32_MAX && stay[i].preempted)
			stay[p].nested = true;
	}
	return stay;
}

struct bounds_seen {
	uint32_t preempted, nested; /* jobs */
};

static void
bounds(const struct log *l, struct bounds_seen *seen)
{
	uint64_t k = l->sc->conf.transports[0].sched.delivery_slot_cost, n, i;
	struct stay *stay = stays(l), *s;

	for (i = 0; i < l->sc->nmessages; i++) {
		s = &stay[i];
		n = s->last - s->first + 1;
		if (!s->nested)
			cr_assert_leq(n * k, s->total * (k + 1),
			    "message %lu:\n%s", (unsigned long)i + 1, l->text);
		cr_assert_leq(n * (k - 1), s->total * k, "message %lu:\n%s",
		    (unsigned long)i + 1, l->text);
		seen->preempted += s->preempted;
		seen->nested += s->nested;
	}
	free(stay);
}

/* Mail of all sizes, for one agent; a#0-N is N + 1 entries. */
static void
scenario_of_bulk(uint64_t seed, struct buf *text)
{
	struct dice d = { seed };
	uint32_t now = 0, n = dice_in(&d, 5, 60), top = dice_in(&d, 1, 3);

	buf_reset(text);
	cr_assert_eq(
	    buf_printf(text,
		"agents smtp 1\n"
		"set default_delivery_slot_cost %u\n"
		"set default_delivery_slot_discount %u\n"
		"set default_delivery_slot_loan %u\n"
		"set default_minimum_delivery_slots %u\n",
		dice_in(&d, 2, dice_pct(&d, 50) ? 3 : 10),
		dice_in(&d, 0, 4) * 25,
		dice_pct(&d, 50) ? 0 : dice_in(&d, 1, 50), dice_in(&d, 0, 3)),
	    0);
	while (n-- > 0) {
		now += dice_pct(&d, 50) ? 0 : dice_in(&d, 0, 20);
		cr_assert_eq(
		    buf_printf(text, "at %u msg a#0-%u\n", now,
			dice_in(&d, 0,
			    dice_in(&d, 0, top) == 0 ? 150
						     : dice_in(&d, 0, 20))),
		    0);
	}
}

Test(property, nobody_is_delayed_beyond_the_bounds)
{
	struct bounds_seen seen = { 0 };
	struct buf text = { 0 };
	struct scenario sc;
	struct log l;
	uint64_t seed;

	for (seed = 0; seed < SCENARIOS; seed++) {
		scenario_of_bulk(seed, &text);
		run(&text, &sc, &l);
		bounds(&l, &seen);
		log_done(&l, &sc);
	}
	buf_done(&text);
	/* There was preemption enough to test. */
	cr_expect_gt(seen.preempted, SCENARIOS);
	cr_expect_gt(seen.nested, SCENARIOS / 10);
}

/* ---- starvation ---- */

/* A bulk mail earns a slot in `cost` seconds, which the next mail of one
 * recipient takes, for a second: so often there comes one. A mail of two needs
 * two slots at once: it gets them as soon as it is the best candidate, which is
 * not later than its age is twice theirs, and then saved for it. */
Test(property, a_mail_of_two_is_not_starved_by_mails_of_one)
{
	struct buf text = { 0 };
	struct scenario sc;
	struct log l;
	uint32_t cost, i;
	size_t k;

	for (cost = 2; cost <= 10; cost++) {
		buf_reset(&text);
		cr_assert_eq(buf_printf(&text,
				 "agents smtp 1\n"
				 "set default_delivery_slot_cost %u\n"
				 "set default_delivery_slot_discount 0\n"
				 "set default_delivery_slot_loan 0\n"
				 "at 0 msg a#0-999\n"
				 "at 1 msg b#0-1\n",
				 cost),
		    0);
		for (i = 0; i < 100; i++)
			cr_assert_eq(
			    buf_printf(&text, "at %u msg c\n", i * (cost + 1)),
			    0);
		run(&text, &sc, &l);
		for (k = 0; k < l.n && l.picks[k].message != 1; k++)
			;
		cr_expect_leq(l.picks[k].at, 6 * cost * USEC_PER_SEC,
		    "cost %u: %ld s", cost,
		    (long)(l.picks[k].at / USEC_PER_SEC));
		log_done(&l, &sc);
	}
	buf_done(&text);
}
