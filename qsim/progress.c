#include <inttypes.h>
#include <unistd.h>

#include "base/clock.h"
#include "qsim/qsim.h"

#define EVERY (300 * USEC_PER_MSEC)

void
progress_begin(struct progress *p, const struct options *o, const char *what,
    const char *unit)
{
	const bool lines = o->task == TASK_REPLAY || o->task == TASK_EXPLAIN;
	const bool shown = isatty(STDERR_FILENO) == 1 &&
	    !(lines && isatty(STDOUT_FILENO) == 1);

	*p = (struct progress){
		.what = what,
		.unit = unit,
		.on = o->progress || shown,
		/* A run that is over at once shows none, unless asked to. */
		.next = clock_mono() + (o->progress ? 0 : EVERY),
	};
}

void
progress_tell(void *ctx, uint64_t done, uint64_t all)
{
	struct progress *p = ctx;
	usec_t now;

	if (!p->on || all == 0)
		return;
	now = clock_mono();
	if (now < p->next)
		return;
	p->next = now + EVERY;
	p->shown = true;
	fprintf(stderr,
	    "\r%s: %3" PRIu64 " %% (%" PRIu64 " of %" PRIu64 " %s)\033[K",
	    p->what, done * 100 / all, done, all, p->unit);
	fflush(stderr);
}

void
progress_end(struct progress *p)
{
	if (p->shown)
		fprintf(stderr, "\r\033[K");
	p->shown = false;
}

int
qsim_run(const struct options *o, const char *what,
    const struct simulate_watch *watch, struct scenario *sc)
{
	struct simulate_watch with_progress = *watch;
	struct progress progress;
	int r, code = qsim_read(o->files[0], sc);

	if (code != 0)
		return code;
	with_progress.progress = progress_tell;
	with_progress.progress_ctx = &progress;
	progress_begin(&progress, o, what, "recipients");
	r = simulate(sc, &sc->conf, sc->seed, &with_progress, NULL);
	progress_end(&progress);
	scenario_done(sc);
	return qsim_ended(r);
}
