#include "daemon/executor.h"

#include <errno.h>
#include <event2/event.h>
#include <stdlib.h>

/* The threads of one kind of work. */
struct lane {
	struct executor *executor;
	struct executor_kind kind;
	struct sync_pool *pool; /* NULL: the loop does the work */
	struct event *done;     /* a task has ended */
};

struct executor {
	struct executor_owner owner;
	unsigned nlanes;
	uint32_t under_way; /* tasks of all lanes */
	struct lane lanes[EXECUTOR_KINDS_MAX];
};

/* The ends of tasks that one turn of the loop takes: threads that end many
 * tasks after a hang hold up nothing else. The owner is woken, and takes the
 * rest in the next turn. */
#define ENDED_PER_TURN 64

static void
take_ended(struct lane *lane)
{
	const struct executor_owner *owner = &lane->executor->owner;
	struct sync_task *task;
	int n;

	for (n = 0; n < ENDED_PER_TURN; n++) {
		task = sync_pool_take(lane->pool);
		if (task == NULL)
			return;
		if (n == 0)
			owner->woken(owner->arg);
		lane->executor->under_way--;
		task->ended(owner->arg, task);
	}
}

static void
on_done(evutil_socket_t fd UNUSED, short what UNUSED, void *arg)
{
	take_ended(arg);
}

static int
start_lane(struct executor *x, struct lane *lane)
{
	const struct executor_kind *kind = &lane->kind;
	int r;

	lane->executor = x;
	if (kind->threads == 0)
		return 0;
	ASSERT(kind->share_least > 0);
	r = sync_pool_new(x->owner.sys, kind->threads, &lane->pool);
	if (r < 0)
		return r;
	sync_pool_set_share(lane->pool, kind->share_least, kind->share_most);
	sync_pool_set_slow(lane->pool, EXECUTOR_SLOW);
	lane->done = event_new(x->owner.base, sync_pool_fd(lane->pool),
	    EV_READ | EV_PERSIST, on_done, lane);
	return lane->done == NULL || event_add(lane->done, NULL) < 0 ? -ENOMEM
								     : 0;
}

int
executor_new(const struct executor_owner *owner,
    const struct executor_kind kinds[], unsigned n, struct executor **ret)
{
	struct executor *x = calloc(1, sizeof(*x));
	unsigned i;
	int r = 0;

	if (x == NULL)
		return -ENOMEM;
	x->owner = *owner;
	x->nlanes = n;
	for (i = 0; r == 0 && i < n; i++) {
		x->lanes[i].kind = kinds[i];
		r = start_lane(x, &x->lanes[i]);
	}
	if (r < 0)
		(void)executor_free(&x);
	*ret = x;
	return r;
}

bool
executor_free(struct executor **executor)
{
	struct executor *x = *executor;
	bool all = true;
	unsigned i;

	*executor = NULL;
	for (i = 0; x != NULL && i < x->nlanes; i++) {
		struct lane *lane = &x->lanes[i];

		if (lane->done != NULL)
			event_free(lane->done);
		if (!sync_pool_free(&lane->pool))
			all &= lane->kind.elsewhere;
	}
	free(x);
	return all;
}

void
executor_do(struct executor *x, unsigned kind, struct sync_task *task)
{
	struct lane *lane = &x->lanes[kind];

	if (lane->pool != NULL) {
		x->under_way++;
		sync_pool_put(lane->pool, task);
		return;
	}
	sync_task_run(x->owner.sys, task);
	task->ended(x->owner.arg, task);
}

uint32_t
executor_under_way(const struct executor *x)
{
	return x->under_way;
}

bool
executor_has_threads(const struct executor *x, unsigned kind)
{
	return x->lanes[kind].pool != NULL;
}

void
executor_take(struct executor *x, unsigned kind)
{
	if (executor_has_threads(x, kind))
		take_ended(&x->lanes[kind]);
}

usec_t
executor_look(struct executor *x, usec_t now)
{
	usec_t next = USEC_NEVER, at;
	unsigned i;

	for (i = 0; i < x->nlanes; i++) {
		struct lane *lane = &x->lanes[i];

		if (lane->pool == NULL || lane->kind.share_most == 1)
			continue;
		take_ended(lane);
		at = sync_pool_press(lane->pool, now);
		next = at < next ? at : next;
	}
	return next;
}

usec_t
executor_slow_at(const struct executor *x, unsigned kind, usec_t now)
{
	return executor_has_threads(x, kind)
	    ? sync_pool_slow_at(x->lanes[kind].pool, now)
	    : 0;
}

usec_t
executor_oldest(const struct executor *x, unsigned kind)
{
	return executor_has_threads(x, kind)
	    ? sync_pool_oldest(x->lanes[kind].pool)
	    : 0;
}

int
executor_fd(const struct executor *x, unsigned kind)
{
	return sync_pool_fd(x->lanes[kind].pool);
}
