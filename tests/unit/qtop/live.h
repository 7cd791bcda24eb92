/* The live screen on a terminal of the test: pages in memory that the test and
 * the child that draws share, so that they change under it; they are fresh at
 * each reading. */
#ifndef TESTS_QTOP_LIVE_H
#define TESTS_QTOP_LIVE_H

#include "fake.h"
#include "terminal.h"

extern struct fake *shared;
extern struct terminal t;

void live_setup(void);
void live_teardown(void);
/* So many open, idle queues. */
void live_show(uint32_t queues);
void live_disable_by_hand(struct sched_row *row, const char *reason);
/* The body of the child: screen_run(). */
int live_draw(void *arg);
/* Types q. The terminal knew everything that was written to it, and the exit
 * code is 0. */
void live_quit(void);

#endif
