/* queue-send/control.h - start, reload, flush and stop of queue-send
 * (control.c), its turn (turn.c): a bounded part of each kind of work; and the
 * clock of its last run (clock_file.c).
 * Every callback that leaves something to do calls send_wake(). */
#ifndef QUEUE_SEND_CONTROL_H
#define QUEUE_SEND_CONTROL_H

#include "queue-send/send.h"

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

#endif
