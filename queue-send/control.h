/* queue-send/control.h - start, reload, flush and stop of queue-send
 * (control.c), its turn (turn.c): a bounded part of each kind of work; and the
 * clock of its last run (clock_file.c).
 * Every callback that leaves something to do calls send_wake(). */
#ifndef QUEUE_SEND_CONTROL_H
#define QUEUE_SEND_CONTROL_H

#include "queue-send/state/send.h"

extern const struct daemon_ops control_ops;

/* The state on a spool that is open and ours (sp, lock, conf, base are set);
 * send_done() frees all of it but those. -errno. */
int send_init(struct send *s);
void send_done(struct send *s);

/* Knowledge of jumps of the clock outlives the process, and the time at which
 * the clock was seen last shows at the next start that it is wrong
 * (docs/QUEUE.md, "Age"). Loaded before the clocks are read. */
void clock_file_load(struct send *s);
usec_t clock_file_work(struct send *s);

/* Nothing runs, is to be recorded, moved or removed. */
bool stop_is_over(const struct send *s);

/* The turn_fn of a struct send. */
usec_t send_turn(void *arg);

/* A link of the supervisor: takes the descriptor. */
void links_linked(struct send *s, const char *name, int fd);

/* ---- publish.c: the page /queueN: load, mail that waits, counters, ages ----
 *
 * At most ten times a second when something has changed, else every
 * PUBLISH_IDLE as a sign of life. A load above the threshold is told to the
 * supervisor, too, at most every LOAD_EVERY. */

/* The segment, made by the supervisor: maps it and closes the descriptor. */
int publish_linked(void *send, int fd);
/* The message queue of the supervisor, for load reports; ours from here on. */
int publish_requests_linked(void *send, int fd);
usec_t publish_work(struct send *s);
void publish_done(struct send *s);
/* Fill in a page; also for tests, which have no segment. */
void publish_fill(struct send *s, struct queue_page *page);

#endif
