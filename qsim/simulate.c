#include "qsim/simulate.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <bsd/sys/tree.h>

#include "qsim/simulate_parts.h"
#include "site/shared.h"

/* So many slots for each destination that no set of slots is full. */
#define SLOTS_EACH     4
#define PROGRESS_EVERY 4096 /* deliveries */

/* A delivery that runs. */
struct delivery {
	RB_ENTRY(delivery) link;
	usec_t ends;
	uint64_t number; /* of the deliveries, as they began */
	struct sched_entry *entry;
	uint32_t destination; /* index into those of the scenario */
	struct delivery_fate fate;
};
RB_HEAD(delivery_tree, delivery);

struct run {
	const struct scenario *sc;
	const struct simulate_watch *watch;
	struct shared *sites;
	struct sched *sched;
	struct servers *servers;
	struct delivery_tree running; /* the first to end first */
	uint32_t *order; /* of the messages: by time, then number */
	uint32_t next;   /* in order */
	struct sched_message **messages;
	struct simulate_sums sums;
	uint64_t all; /* recipients */
	usec_t now;
	struct sched_decision decision; /* of the last selection */
	struct site_step step;          /* of the last report */
};

static int
delivery_compare(const struct delivery *a, const struct delivery *b)
{
	if (a->ends != b->ends)
		return a->ends < b->ends ? -1 : 1;
	return (a->number > b->number) - (a->number < b->number);
}

TREE_GENERATE(delivery_tree, delivery, link, delivery_compare)

uint32_t
simulate_number(const struct scenario *sc, const void *owner)
{
	const struct scenario_message *m = owner;

	return (uint32_t)(m - sc->messages) + 1;
}

/* ---- calls of the scheduler ---- */

static void
keep_decision(void *ctx, const struct sched_decision *decision)
{
	struct run *run = ctx;

	run->decision = *decision;
}

static void
keep_step(void *ctx, uint32_t transport UNUSED, const char *destination UNUSED,
    const struct site_step *step)
{
	struct run *run = ctx;

	run->step = *step;
}

/* ---- start and end ---- */

static int
compare_times(const void *a, const void *b, void *scenario)
{
	const struct scenario *sc = scenario;
	const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
	const usec_t at = sc->messages[x].at, bt = sc->messages[y].at;

	if (at != bt)
		return at < bt ? -1 : 1;
	return x < y ? -1 : x > y;
}

/* Where the recipient is the destination, there are as many as recipients. */
static uint32_t
slots_for(const struct scenario *sc, const struct conf *conf)
{
	uint64_t names = sc->ndestinations, slots;
	uint32_t i;

	for (i = 0; i < sc->nrcpts; i++)
		if (conf->transports[sc->rcpts[i].transport]
			.sched.destination_recipient_limit == 1)
			names += sc->rcpts[i].count;
	slots = SLOTS_EACH * names + 1;
	return slots < SHARED_SLOTS_MAX ? (uint32_t)slots : SHARED_SLOTS_MAX;
}

static int
new_sched(struct run *run, const struct conf *conf, uint64_t seed)
{
	struct sched_transport_params transports[CONF_TRANSPORTS_MAX];
	struct site_params sites[CONF_TRANSPORTS_MAX];
	const char *names[CONF_TRANSPORTS_MAX];
	const struct shared_params params = {
		.sites = sites,
		.names = names,
		.count = conf->ntransports,
		.backoff = conf->backoff,
	};
	const struct sched_watch watch = {
		.ctx = run,
		.selected = keep_decision,
		.step = keep_step,
	};
	uint32_t i;
	int r;

	for (i = 0; i < conf->ntransports; i++) {
		transports[i] = conf->transports[i].sched;
		conf_site_params(conf, i, &sites[i]);
		names[i] = conf->transports[i].name;
	}
	r = shared_new_alone(
	    &params, slots_for(run->sc, conf), seed, &run->sites);
	if (r == 0)
		r = sched_new(&conf->sched, transports, conf->ntransports,
		    run->sites, &run->sched);
	if (r == 0)
		sched_set_watch(run->sched, &watch);
	return r;
}

static int
begin(struct run *run, const struct conf *conf, uint64_t seed)
{
	const struct scenario *sc = run->sc;
	struct scenario sorted = *sc;
	uint32_t i;
	int r = new_sched(run, conf, seed);

	if (r == 0)
		r = servers_new(sc, seed, &run->servers);
	if (r < 0)
		return r;
	run->order = calloc(sc->nmessages, sizeof(*run->order));
	run->messages = calloc(sc->nmessages, sizeof(struct sched_message *));
	if (run->order == NULL || run->messages == NULL)
		return -ENOMEM;
	for (i = 0; i < sc->nmessages; i++) {
		run->order[i] = i;
		run->all += sc->messages[i].nrcpts;
	}
	qsort_r(run->order, sc->nmessages, sizeof(*run->order), compare_times,
	    &sorted);
	return 0;
}

/* A run may end early, with deliveries that run and messages that wait. */
static void
end(struct run *run)
{
	struct delivery *d;
	uint32_t i;

	while ((d = RB_ROOT(&run->running)) != NULL) {
		sched_done(
		    run->sched, d->entry, SITE_AGENT_DIED, NULL, run->now);
		RB_REMOVE(delivery_tree, &run->running, d);
		free(d);
	}
	for (i = 0; run->messages != NULL && i < run->sc->nmessages; i++)
		if (run->messages[i] != NULL)
			sched_message_free(&run->messages[i]);
	free(run->messages);
	free(run->order);
	servers_free(&run->servers);
	if (run->sched != NULL)
		sched_free(&run->sched);
	shared_free(&run->sites);
}

/* ---- messages ---- */

/* The recipient's name matters where the destination is the recipient. */
static int
add_rcpts(struct run *run, struct sched_message *m,
    const struct scenario_rcpts *row, uint32_t *index)
{
	const struct scenario_destination *d =
	    &run->sc->destinations[row->destination];
	char address[SCENARIO_NAME_MAX + 16];
	uint32_t i;
	int r = 0;

	for (i = 1; r == 0 && i <= row->count; i++) {
		const struct sched_rcpt rcpt = {
			.offset = row->destination,
			.index = (*index)++,
		};

		snprintf(
		    address, sizeof(address), "%" PRIu32 "@%s", i, d->name);
		r = sched_rcpt_add(m, row->transport, d->name, address, &rcpt);
	}
	return r;
}

static int
arrive(struct run *run, uint32_t number)
{
	struct scenario_message *sm = &run->sc->messages[number];
	struct sched_message *m = NULL;
	uint32_t i, index = 0;
	int r = sched_message_new(run->sched, sm, run->now, &m);

	if (r < 0)
		return r;
	run->messages[number] = m;
	for (i = 0; r == 0 && i < sm->n; i++)
		r = add_rcpts(run, m, &run->sc->rcpts[sm->first + i], &index);
	if (r == 0)
		sched_batch_end(m, true, run->now);
	return r;
}

/* ---- ends ---- */

/* Recipients. */
static uint64_t
ended(const struct simulate_sums *s)
{
	return s->delivered + s->failed + s->untried;
}

static void
tell_progress(struct run *run)
{
	const struct simulate_sums *s = &run->sums;

	if (run->watch->progress != NULL && s->deliveries % PROGRESS_EVERY == 0)
		run->watch->progress(
		    run->watch->progress_ctx, ended(s), run->all);
}

static void
count(struct simulate_sums *sums, enum site_result result, uint32_t nrcpts)
{
	if (result == SITE_DELIVERED)
		sums->delivered += nrcpts;
	else if (result == SITE_UNTRIED)
		sums->untried += nrcpts;
	else
		sums->failed += nrcpts;
}

/* The end of an entry, reported; the end of the last one frees the message. */
static int
finish(struct run *run, struct sched_entry *entry, enum site_result result,
    const char *why)
{
	struct sched_message *m = entry->message;
	const uint32_t number = simulate_number(run->sc, entry->owner);
	struct sched_entry copy = *entry;
	char reason[SITE_WHY_MAX + 1];
	struct simulate_report report = {
		.now = run->now,
		.message = number,
		.destination = (uint32_t)entry->rcpts[0].offset,
		.entry = &copy,
		.result = result,
		.why = why == NULL ? NULL : reason,
		.step = result == SITE_UNTRIED ? NULL : &run->step,
	};
	int r = 0;

	/* The text of why may be freed with the entry. */
	if (why != NULL)
		snprintf(reason, sizeof(reason), "%s", why);
	count(&run->sums, result, entry->nrcpts);
	sched_report(run->sched, entry,
	    &(struct site_report){ result, number, why }, run->now);
	copy.rcpts = NULL;
	copy.destination = run->sc->destinations[report.destination].name;
	copy.nexthop = copy.destination;
	report.last =
	    sched_message_waiting(m) == 0 && sched_message_running(m) == 0;
	if (run->watch->reported != NULL)
		r = run->watch->reported(run->watch->ctx, &report);
	if (report.last)
		sched_message_free(&run->messages[number - 1]);
	return r;
}

static int
defer_dead(struct run *run)
{
	struct sched_entry *entry;
	int r = 0;

	while (
	    r == 0 && (entry = sched_take_dead(run->sched, run->now)) != NULL)
		r = finish(run, entry, SITE_UNTRIED, entry->why);
	return r;
}

static int
end_first(struct run *run)
{
	struct delivery *d = RB_MIN(delivery_tree, &run->running);
	int r;

	ASSERT(d != NULL);
	RB_REMOVE(delivery_tree, &run->running, d);
	servers_end(run->servers, d->destination, &d->fate);
	r = finish(run, d->entry, d->fate.result, d->fate.why);
	free(d);
	return r;
}

/* ---- selections ---- */

static int
start(struct run *run, struct sched_entry *entry)
{
	const uint32_t destination = (uint32_t)entry->rcpts[0].offset;
	const struct simulate_selection selection = {
		.now = run->now,
		.message = simulate_number(run->sc, entry->owner),
		.destination = destination,
		.decision = &run->decision,
	};
	struct delivery *d = malloc(sizeof(*d));
	int r = -ENOMEM;

	if (d != NULL)
		r = servers_begin(
		    run->servers, destination, run->now, &d->fate);
	if (r < 0) {
		free(d);
		sched_done(run->sched, entry, SITE_AGENT_DIED, NULL, run->now);
		return r;
	}
	d->number = run->sums.deliveries++;
	d->entry = entry;
	d->destination = destination;
	d->ends = run->now + d->fate.length;
	RB_INSERT(delivery_tree, &run->running, d);
	tell_progress(run);
	if (run->watch->selected == NULL)
		return 0;
	return run->watch->selected(run->watch->ctx, &selection);
}

static int
select_all(struct run *run)
{
	struct sched_entry *entry;
	int r = 0;

	while (r == 0 && (entry = sched_select(run->sched, run->now)) != NULL)
		r = start(run, entry);
	return r;
}

/* ---- time ---- */

static usec_t
next_arrival(const struct run *run)
{
	if (run->next == run->sc->nmessages)
		return USEC_NEVER;
	return run->sc->messages[run->order[run->next]].at;
}

static usec_t
next_end(struct run *run)
{
	const struct delivery *d = RB_MIN(delivery_tree, &run->running);

	return d == NULL ? USEC_NEVER : d->ends;
}

static void
on_ready(void *ctx, void *destination)
{
	struct run *run = ctx;

	sched_site_ready(run->sched, destination, run->now);
}

/* One queue alone has the table, so no place becomes free between events. */
static int
step(struct run *run)
{
	int r = 0;

	while (r == 0 && next_arrival(run) == run->now)
		r = arrive(run, run->order[run->next++]);
	while (r == 0 && next_end(run) == run->now)
		r = end_first(run);
	(void)shared_work(run->sites, run->now, on_ready, run);
	if (r == 0)
		r = defer_dead(run);
	return r == 0 ? select_all(run) : r;
}

int
simulate(const struct scenario *sc, const struct conf *conf, uint64_t seed,
    const struct simulate_watch *watch, struct simulate_sums *ret_sums)
{
	struct run run = {
		.sc = sc,
		.watch = watch,
		.running = RB_INITIALIZER(&run.running),
	};
	int r = begin(&run, conf, seed);

	while (r == 0) {
		const usec_t arrival = next_arrival(&run);
		const usec_t ends = next_end(&run);

		run.now = arrival < ends ? arrival : ends;
		if (run.now == USEC_NEVER)
			break;
		r = step(&run);
		run.sums.end = run.now;
	}
	if (r == 0 && ended(&run.sums) < run.all)
		r = -ENOMEM; /* nothing else keeps a selection from being made
			      */
	if (r == 0 && ret_sums != NULL)
		*ret_sums = run.sums;
	end(&run);
	return r;
}
