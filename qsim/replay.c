/* qsim replay: a line for each selection. */
#include "qsim/qsim.h"

#include <errno.h>
#include <inttypes.h>

struct replay {
	const struct scenario *sc;
	struct buf line;
};

int
replay_add_line(const struct scenario *sc,
    const struct simulate_selection *selection, struct buf *out)
{
	const struct sched_entry *e = selection->decision->entry;
	char time[QSIM_TIME_MAX];

	return buf_printf(out, "%s %" PRIu32 " %s/%s %" PRIu32 "\n",
	    qsim_time(selection->now, time), selection->message,
	    sc->conf.transports[e->transport].name, e->destination, e->nrcpts);
}

static int
print_selection(void *ctx, const struct simulate_selection *selection)
{
	struct replay *replay = ctx;
	int r;

	buf_reset(&replay->line);
	r = replay_add_line(replay->sc, selection, &replay->line);
	return r < 0 ? r : qsim_print(&replay->line);
}

int
replay_main(const struct options *o)
{
	struct scenario sc;
	struct replay replay = { .sc = &sc };
	const struct simulate_watch watch = {
		.ctx = &replay,
		.selected = print_selection,
	};
	int code = qsim_run(o, "replay", &watch, &sc);

	buf_done(&replay.line);
	return code;
}
