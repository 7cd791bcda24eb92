/* queue-send/watch.h - what the scheduler does, in the log (docs/QUEUE.md has
 * the lines): always, when a destination dies and when it opens again; with
 * destination_concurrency_feedback_debug every delivery report with the window
 * it moved, and every selection with the slots it was made by.
 *
 * Of a death the queue tells that found it, once, however many share the
 * destination; the others say of each recipient why it waits.
 *
 * The scheduler opens a dead destination when it has something to ask it for,
 * which may be never. So that the log tells when its time was over, those that
 * died are kept here, at most WATCH_DEAD_MAX of them.
 */
#ifndef QUEUE_SEND_WATCH_H
#define QUEUE_SEND_WATCH_H

#include "base/base.h"

#include <bsd/sys/tree.h>

#define WATCH_DEAD_MAX 20000

struct send;
struct dead_site;

RB_HEAD(dead_names, dead_site);
RB_HEAD(dead_times, dead_site);

struct watch {
	struct dead_names names;
	struct dead_times times;
	uint32_t count;
};

void watch_init(struct send *s);
void watch_done(struct send *s);
/* Ask the scheduler for what the configuration wants to see. */
void watch_set(struct send *s);
/* Tell of destinations whose time is over. */
usec_t watch_work(struct send *s);
/* A flush opened all of them; how many there were. */
uint32_t watch_flushed(struct send *s);

#endif
