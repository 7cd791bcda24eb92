#include "queue-send/pool.h"

#include <errno.h>
#include <event2/event.h>

#include "queue-send/send.h"

void
pool_take(struct pool *p)
{
	struct sync_task *task;

	while ((task = sync_pool_take(p->pool)) != NULL) {
		p->ended(p->send, task);
		send_wake(p->send);
	}
}

usec_t
pool_look(struct pool *p)
{
	pool_take(p);
	return sync_pool_press(p->pool, p->send->now);
}

static void
on_done(evutil_socket_t fd UNUSED, short what UNUSED, void *arg)
{
	struct pool *p = arg;

	send_read_clocks(p->send);
	pool_take(p);
}

int
pool_init(struct send *s, struct pool *p, unsigned share,
    void (*ended)(struct send *s, struct sync_task *task))
{
	p->send = s;
	p->ended = ended;
	p->pool = sync_pool_new(s->sp.sys, p->threads);
	if (p->pool == NULL)
		return -ENOMEM;
	sync_pool_set_share(p->pool, share, share);
	sync_pool_set_slow(p->pool, POOL_SLOW);
	p->done = event_new(
	    s->base, sync_pool_fd(p->pool), EV_READ | EV_PERSIST, on_done, p);
	return p->done == NULL || event_add(p->done, NULL) < 0 ? -ENOMEM : 0;
}

bool
pool_done(struct pool *p)
{
	if (p->done != NULL)
		event_free(p->done);
	p->done = NULL;
	return sync_pool_free(&p->pool);
}

int
pool_put(struct pool *p, struct sync_task *task)
{
	return sync_pool_put(p->pool, task);
}
