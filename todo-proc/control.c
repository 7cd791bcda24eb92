#include "todo-proc/control.h"

#include <string.h>

#include "base/clock.h"
#include "log/log.h"
#include "todo-proc/bells.h"
#include "todo-proc/hand.h"
#include "todo-proc/scan.h"
#include "todo-proc/waiting.h"
#include "todo-proc/watch.h"

/* ---- the loop ---- */

/* A bounded part of each, which says when it wants to go on. */
static usec_t (*const works[])(struct todo *t) = {
	scan_incoming_work,
	hand_work,
	scan_maildrop_work,
	waiting_work,
	hand_counts_work,
};

static TURN_WORKS(turn, todo, todo_tick, works)

    void todo_tick(struct todo *t)
{
	t->now = clock_mono();
	t->now_wall = clock_wall();
}

void
todo_kick(struct todo *t)
{
	turn_kick(&t->turn);
}

bool
todo_say(struct todo *t, int error)
{
	const size_t cause = (size_t)-error;

	return log_due(t->now, 60 * USEC_PER_SEC,
	    &t->said[cause < TODO_CAUSES ? cause : 0]);
}

usec_t
todo_mtime(const struct stat *st)
{
	return (usec_t)st->st_mtim.tv_sec * USEC_PER_SEC +
	    st->st_mtim.tv_nsec / 1000;
}

/* ---- start ---- */

int
todo_init(struct todo *t)
{
	int r;

	todo_tick(t);
	t->began_wall = t->now_wall;
	backlog_init(&t->backlog);
	scan_init(t);
	r = daemon_routes(t->conf, &t->routes);
	if (r < 0)
		return r;
	r = turn_init(&t->turn, t->base, turn, t);
	if (r < 0) {
		todo_done(t);
		return r;
	}
	waiting_init(t);
	watch_init(t);
	return 0;
}

void
todo_done(struct todo *t)
{
	watch_done(t);
	bells_done(t);
	hand_done(t);
	scan_done(t);
	waiting_done(t);
	backlog_done(&t->backlog);
	turn_done(&t->turn);
	route_free(&t->routes);
}

static int
start(struct daemon *d)
{
	struct todo *t = d->state;
	int r;

	t->d = d;
	t->base = d->base;
	t->conf = d->conf;
	t->lock = daemon_take_queue(d, &t->sp);
	if (t->lock < 0)
		return t->lock;
	r = todo_init(t);
	if (r < 0) {
		log_error("cannot start: %s", strerror(-r));
		daemon_leave_queue(&t->lock, &t->sp);
		return r;
	}
	todo_kick(t);
	daemon_ready(d);
	return 0;
}

static void
done(struct daemon *d)
{
	struct todo *t = d->state;

	todo_done(t);
	daemon_leave_queue(&t->lock, &t->sp);
}

/* ---- while it runs ---- */

static const struct daemon_link links[] = {
	{ "bell", bells_linked },
	{ "queue-send", hand_linked },
};

static void
linked(struct daemon *d, const char *name, int fd)
{
	struct todo *t = d->state;

	todo_tick(t);
	daemon_take_link(links, ARRAY_LEN(links), t, name, fd);
	todo_kick(t);
}

static void
reload(struct daemon *d, const struct conf *fresh)
{
	struct todo *t = d->state;

	todo_tick(t);
	(void)daemon_reroute(fresh, &t->routes);
	t->conf = fresh;
	todo_kick(t);
}

static void
flush(struct daemon *d)
{
	struct todo *t = d->state;

	t->incoming.wanted = true;
	t->maildrop.wanted = true;
	todo_kick(t);
}

/* Everything lies on disk: there is nothing to wait for. */
static void
stop(struct daemon *d, usec_t limit UNUSED)
{
	daemon_exit(d, 0);
}

const struct daemon_ops control_ops = {
	.name = "todo-proc",
	.user = DAEMON_AS_QMAILQ,
	.start = start,
	.linked = linked,
	.reload = reload,
	.flush = flush,
	.stop = stop,
	.done = done,
};
