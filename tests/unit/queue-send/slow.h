/* tests/unit/queue-send/slow.h - a disk that answers slowly: calls of threads
 * wait at a gate. Tests of the suite `slow` share all of this. */
#ifndef UNIT_QUEUE_SEND_SLOW_H
#define UNIT_QUEUE_SEND_SLOW_H

#include <stdatomic.h>

#include "tests/unit/queue-send/world.h"

/* .init and .fini of a suite. */
void slow_set_up(void);
void slow_tear_down(void);
extern struct world slow_w;
/* Each call of a thread takes a byte here while the gate is closed. */
extern int slow_gate[2];
extern _Atomic bool slow_closed;
extern _Atomic bool slow_cold; /* nothing is in the memory of the kernel */
/* Removals, and names that are taken for one, take a byte, too. */
extern _Atomic bool slow_removes;
extern _Atomic bool slow_files; /* what a reload reads takes a byte */
extern atomic_int slow_came;    /* to the gate */

/* A rule about mail for these recipients is in force, with this number. */
#define SLOW_RULE 3
void slow_add_rule(const char *recipient);

void slow_close(void);
/* The opening of so many queues, from that one on, takes a byte each, and
 * nothing else does: 2, and those that are made. */
void slow_hang(unsigned queue, unsigned count);
/* As many calls go on, then all. */
void slow_open(int waiting);
void
slow_end(const struct world_delivery *delivery, enum agent_outcome outcome);

/* ---- acts of operators ---- */

extern struct spread slow_spread; /* to queue 2 */

/* The queue again, with threads for acts; and queue 2. */
void slow_use_act_threads(unsigned threads);
/* Waits until so many calls have come to the gate. */
void slow_await(int came);
/* The pass of the end of the queue that has begun; false: that takes long. */
bool slow_pass_ends(void);
/* A file there that nobody knows of. */
uint64_t slow_lay(enum spool_dir dir);
/* The act of world_do(), of world_hold() with a reason, or of world_spread().
 */
int slow_act(enum spool_act what, uint64_t inode);
/* The same act, which waits at the gate. */
void slow_act_waits(enum spool_act what, uint64_t inode);

#endif
