#include "todo-proc/todo.h"

#include <errno.h>
#include <string.h>

#include "log/log.h"

#define THREADS 4
#define QUICK   16 /* for a thread, of tasks that wait for no disk */

/* ---- the loop ---- */

static usec_t
look_work(struct todo *t)
{
	return executor_look(t->executor, t->now);
}

/* Each does a bounded part, and returns the time to go on. */
static usec_t (*const works[])(struct todo *t) = {
	scan_incoming_work,
	offer_work,
	scan_maildrop_work,
	waiting_work,
	offer_counts_work,
	look_work,
};

static turn_fn turn; /* at the end of this file */

static void
woken(void *arg)
{
	todo_tick(arg);
	todo_kick(arg);
}

/* ---- start ---- */

static int
start_threads(struct todo *t)
{
	const struct executor_owner owner = { t->base, t->sp.sys, t, woken };
	const struct executor_kind kind = {
		.threads = t->threads, .share_least = 1, .share_most = QUICK
	};

	return executor_new(&owner, &kind, 1, &t->executor);
}

static int
begin(struct todo *t)
{
	struct routing *routing = NULL;
	struct buf error = { 0 };
	int r = routing_read(t->conf, &routing, &error);

	if (r == 0)
		routing_put(&t->routings, routing);
	else
		log_error("%s", error.len > 0 ? buf_str(&error) : strerror(-r));
	buf_done(&error);
	if (r == 0)
		r = start_threads(t);
	if (r == 0)
		r = turn_init(&t->turn, t->base, turn, t);
	return r;
}

int
todo_init(struct todo *t)
{
	int r;

	todo_tick(t);
	t->began_wall = t->now_wall;
	inbox_init(&t->inbox);
	examine_init(t);
	scan_init(t);
	r = begin(t);
	if (r < 0) {
		todo_done(t);
		return r;
	}
	waiting_init(t);
	watch_init(t);
	return 0;
}

/* Tasks under way are forgotten, then dropped by the pool. Memory that a thread
 * uses while it hangs goes with the process. */
void
todo_done(struct todo *t)
{
	watch_done(t);
	bells_done(t);
	offer_done(t);
	scan_done(t);
	waiting_done(t);
	examine_done(t);
	t->hung |= !executor_free(&t->executor);
	inbox_done(&t->inbox);
	turn_done(&t->turn);
	if (!t->hung)
		routing_done(&t->routings);
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
	t->threads = spool_is_in_memory(&t->sp) ? 0 : THREADS;
	t->in_memory = spool_is_in_memory(&t->sp);
	r = todo_init(t);
	if (r < 0) {
		log_error("cannot start: %s",
		    r == -EAGAIN ? "no thread: " EXECUTOR_REMEDY
				 : strerror(-r));
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
	/* A call of such a thread ends before the lock is given, with the
	 * process. */
	if (!t->hung)
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

static int
read_routing(const struct conf *fresh, void **ret_made, struct buf *ret_error)
{
	struct routing *routing = NULL;
	int r = routing_read(fresh, &routing, ret_error);

	*ret_made = routing;
	return r;
}

static void
drop_routing(void *made)
{
	routing_free(made);
}

/* The same by a reload and a flush: an operator may have put right why a file
 * could not be read, or picked up. */
static void
try_again(struct todo *t)
{
	t->incoming.wanted = true;
	t->maildrop.wanted = true;
	todo_kick(t);
}

static void
reload(struct daemon *d, const struct conf *fresh)
{
	struct todo *t = d->state;

	todo_tick(t);
	if (d->made != NULL)
		routing_put(&t->routings, d->made);
	else
		log_error("reload: the old routing and aliases stay in force");
	t->conf = fresh;
	try_again(t);
}

static void
flush(struct daemon *d)
{
	struct todo *t = d->state;

	try_again(t);
}

static void
stop(struct daemon *d, usec_t limit UNUSED)
{
	struct todo *t = d->state;

	todo_tick(t);
	todo_leave(t, 0);
}

const struct daemon_ops control_ops = {
	.name = "todo-proc",
	.user = DAEMON_AS_QMAILQ,
	.start = start,
	.linked = linked,
	.read = read_routing,
	.drop = drop_routing,
	.reload = reload,
	.flush = flush,
	.stop = stop,
	.done = done,
};

/* ---- turns ---- */

#define LEAVE_WAIT USEC_PER_SEC

/* All state is on disk: what is under way may end or not. */
void
todo_leave(struct todo *t, int status)
{
	if (t->leaving)
		return;
	t->leaving = true;
	t->status = status;
	t->leave_at = t->now + LEAVE_WAIT;
	todo_kick(t);
}

static usec_t
leave_work(struct todo *t)
{
	waiting_leave(t);
	if (executor_under_way(t->executor) > 0 && t->now < t->leave_at)
		return t->leave_at;
	daemon_exit(t->d, t->status);
	return USEC_NEVER;
}

static TURN_WORKS(turn_at_work, todo, todo_tick, works)

    static usec_t (*const last_works[])(
	struct todo *t) = { look_work, leave_work };

static TURN_WORKS(turn_at_end, todo, todo_tick, last_works)

    static usec_t turn(void *arg)
{
	const struct todo *t = arg;

	return t->leaving ? turn_at_end(arg) : turn_at_work(arg);
}
