/* queue-send/pool.h - threads that wait for the disk in place of the loop, and
 * the event by which the loop hears of what they have done (docs/QUEUE.md,
 * "Moves", "Records", "Fetching").
 *
 * Each kind of work has a pool of its own, with threads of its own, so that
 * slow work (a sync, a removal) holds up no quick one. A task is a copy of all
 * that it needs, but for the descriptors of the queue and for what its owner
 * keeps alive until it has ended. */
#ifndef QUEUE_SEND_POOL_H
#define QUEUE_SEND_POOL_H

#include "spool/sync_pool.h"

/* A task that is no sync shows by this that the disk is slow. */
#define POOL_SLOW (50 * USEC_PER_MSEC)

struct event;
struct send;

struct pool {
	struct sync_pool *pool;
	struct event *done; /* a task has ended */
	unsigned threads;   /* set before; 0: the loop does it */
	struct send *send;
	void (*ended)(struct send *s, struct sync_task *task);
};

/* ended() is called by the loop with each task that a thread has done, which is
 * its own from then on. share: tasks for each wake-up of a thread. -ENOMEM. */
int pool_init(struct send *s, struct pool *p, unsigned share,
    void (*ended)(struct send *s, struct sync_task *task));
/* Also of one that was not initialised. False: a thread that hangs was left
 * behind (sync_pool_free()). */
bool pool_done(struct pool *p);
/* The task is a thread's, and then ended()'s; without threads it is done when
 * this returns, and ended() is called later. -EAGAIN: not one thread can be
 * started; the caller keeps the task. */
int pool_put(struct pool *p, struct sync_task *task);
/* ended() with what is done. */
void pool_take(struct pool *p);
/* At the end of a turn: pool_take() of what the loop was not told of, since it
 * is told of a share at a time, and the thread may hang with the next one;
 * sync_pool_press() for what waits behind one that hangs. Returns when to look
 * again. */
usec_t pool_look(struct pool *p);

#endif
