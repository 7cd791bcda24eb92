#include "qsim/measure.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

const struct measure_class measure_classes[MEASURE_CLASSES] = {
	{ "1", 1 },
	{ "2-5", 5 },
	{ "6-50", 50 },
	{ "51-1000", 1000 },
	{ ">1000", UINT32_MAX },
};

/* The result of one message. */
struct outcome {
	usec_t last;       /* end of its last good delivery; -1: none was */
	uint32_t deferred; /* recipients */
};

struct run {
	const struct scenario *sc;
	const struct conf *conf;
	struct outcome *outcomes; /* [nmessages] */
	struct simulate_watch watch;
	/* The scenario without failures, for messages alone. */
	struct scenario healthy;
};

static int
note_report(void *ctx, const struct simulate_report *report)
{
	struct outcome *all = ctx, *o = &all[report->message - 1];

	if (report->result == SITE_DELIVERED)
		o->last = report->now;
	else
		o->deferred += report->entry->nrcpts;
	return 0;
}

static int
begin(struct run *run)
{
	const struct scenario *sc = run->sc;
	struct scenario_destination *d;
	uint32_t i;

	run->outcomes = calloc(sc->nmessages, sizeof(*run->outcomes));
	d = calloc(sc->ndestinations, sizeof(*d));
	if (run->outcomes == NULL || d == NULL) {
		free(d);
		return -ENOMEM;
	}
	for (i = 0; i < sc->nmessages; i++)
		run->outcomes[i].last = -1;
	for (i = 0; i < sc->ndestinations; i++)
		d[i] = (struct scenario_destination){
			.name = sc->destinations[i].name,
			.transport = sc->destinations[i].transport,
			.duration = sc->destinations[i].duration,
			.refuse = UINT32_MAX,
		};
	run->healthy = *sc;
	run->healthy.destinations = d;
	run->healthy.spread_pct = 0;
	return 0;
}

/* ---- alone ---- */

static int
alone(struct run *run, const struct scenario_message *m, usec_t *ret_delay)
{
	struct scenario_message only = *m;
	struct outcome outcome = { .last = -1 };
	const struct simulate_watch watch = {
		.ctx = &outcome,
		.reported = note_report,
	};
	int r;

	only.at = 0;
	run->healthy.messages = &only;
	run->healthy.nmessages = 1;
	r = simulate(&run->healthy, run->conf, 1, &watch, NULL);
	if (r == 0)
		*ret_delay = outcome.last;
	return r;
}

/* ---- the sums ---- */

static struct measure_part *
part_of(struct measure *m, uint32_t nrcpts)
{
	uint32_t i = 0;

	while (nrcpts > measure_classes[i].max)
		i++;
	return &m->parts[i];
}

static int
make_room(struct measure *m, const struct scenario *sc)
{
	uint32_t i;

	for (i = 0; i < sc->nmessages; i++)
		part_of(m, sc->messages[i].nrcpts)->messages++;
	for (i = 0; i < MEASURE_CLASSES; i++) {
		struct measure_part *p = &m->parts[i];

		if (p->messages == 0)
			continue;
		p->delays = calloc(p->messages, sizeof(*p->delays));
		if (p->delays == NULL)
			return -ENOMEM;
	}
	return 0;
}

/* A message that takes no time alone is not slowed down. */
static double
ratio(usec_t delay, usec_t alone_delay)
{
	return alone_delay <= 0 ? 1 : (double)delay / (double)alone_delay;
}

/* Messages of one line are the same, and stand side by side. */
static int
add_messages(struct run *run, struct measure *m)
{
	const struct scenario_message *last = NULL, *sm;
	const struct outcome *o = run->outcomes;
	usec_t alone_delay = 0;
	int r = 0;

	for (sm = run->sc->messages;
	     r == 0 && sm < run->sc->messages + run->sc->nmessages; sm++, o++) {
		struct measure_part *p = part_of(m, sm->nrcpts);

		p->rcpts += sm->nrcpts;
		p->deferred += o->deferred;
		if (o->last < 0)
			continue;
		if (last == NULL || last->line != sm->line)
			r = alone(run, sm, &alone_delay);
		last = sm;
		p->delays[p->ndelays++] =
		    (double)(o->last - sm->at) / (double)USEC_PER_SEC;
		if (o->deferred > 0)
			continue;
		p->slowdown += ratio(o->last - sm->at, alone_delay);
		p->nwhole++;
	}
	return r;
}

static int
compare_delays(const void *a, const void *b)
{
	const double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

static void
finish(struct measure *m)
{
	struct measure_part *p;

	for (p = m->parts; p < m->parts + MEASURE_CLASSES; p++) {
		if (p->ndelays == 0)
			continue;
		if (p->nwhole > 0)
			p->slowdown /= p->nwhole;
		qsort(
		    p->delays, p->ndelays, sizeof(*p->delays), compare_delays);
	}
}

int
measure_run(const struct scenario *sc, const struct conf *conf, uint64_t seed,
    const struct simulate_watch *progress, struct measure *ret_measure)
{
	struct run run = { .sc = sc, .conf = conf };
	struct measure m = { 0 };
	struct simulate_sums sums = { 0 };
	int r = begin(&run);

	if (progress != NULL)
		run.watch = *progress;
	run.watch.ctx = run.outcomes;
	run.watch.reported = note_report;
	if (r == 0)
		r = simulate(sc, conf, seed, &run.watch, &sums);
	if (r == 0)
		r = make_room(&m, sc);
	if (r == 0)
		r = add_messages(&run, &m);
	free(run.healthy.destinations);
	free(run.outcomes);
	if (r < 0) {
		measure_done(&m);
		return r;
	}
	m.end = sums.end;
	finish(&m);
	*ret_measure = m;
	return 0;
}

void
measure_done(struct measure *m)
{
	uint32_t i;

	for (i = 0; i < MEASURE_CLASSES; i++)
		free(m->parts[i].delays);
	*m = (struct measure){ 0 };
}

double
measure_mean(const struct measure_part *part)
{
	double sum = 0;
	uint32_t i;

	for (i = 0; i < part->ndelays; i++)
		sum += part->delays[i];
	return part->ndelays == 0 ? 0 : sum / part->ndelays;
}

double
measure_percentile(const struct measure_part *part, uint32_t percent)
{
	uint64_t rank =
	    ((uint64_t)part->ndelays * percent + 99) / 100; /* from 1 */

	if (part->ndelays == 0)
		return 0;
	return part->delays[rank == 0 ? 0 : rank - 1];
}
