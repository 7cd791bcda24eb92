/* Requests of operators to a supervisor that has queues and no processes, in
 * this process: queues 1 and 2 are open, 7 is closing. */
#ifndef TESTS_QSCHEDULER_HAND_H
#define TESTS_QSCHEDULER_HAND_H

#include "qscheduler/supervisor/supervisor.h"

#define HAND_NOW (1000 * USEC_PER_SEC)

struct hand {
	struct super s;
	struct conf conf;
	struct sched_page page;
	struct ask_source source;     /* of the next requests */
	char text[SCHED_ANSWER_SIZE]; /* the last answer */
};
extern struct hand hand;

/* .init and .fini of a suite. */
void hand_setup(void);
void hand_teardown(void);

/* Waits until all that is to be on disk is there. */
void hand_pump(void);
void hand_tick(usec_t now);

/* A change is not yet on disk. */
bool hand_unsaved(void);
bool hand_holds(uint32_t queue, enum override_kind kind, usec_t now);

/* A request at HAND_NOW: its code, which was also answered. */
int hand_ask(struct msg *msg);
int hand_load(int32_t queue, uint32_t used, uint32_t limit, uint32_t seconds);
int hand_clear(int32_t queue);
int hand_disable(int32_t queue, uint32_t seconds, const char *reason);
int hand_enable(int32_t queue);

#endif
