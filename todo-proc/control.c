#include "todo-proc/todo.h"

#include <string.h>

#include "log/log.h"

/* ---- the loop ---- */

/* Each does a bounded part, and returns the time to go on. */
static usec_t (*const works[])(struct todo *t) = {
	scan_incoming_work,
	offer_work,
	scan_maildrop_work,
	waiting_work,
	offer_counts_work,
};

static turn_fn turn; /* at the end of this file */

/* ---- start ---- */

int
todo_init(struct todo *t)
{
	int r;

	todo_tick(t);
	t->began_wall = t->now_wall;
	inbox_init(&t->inbox);
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
	offer_done(t);
	scan_done(t);
	waiting_done(t);
	inbox_done(&t->inbox);
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
	{ "queue-send", offer_linked },
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

/* All state is on disk: there is nothing to wait for. */
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

/* ---- turns ---- */

static TURN_WORKS(turn, todo, todo_tick, works)
