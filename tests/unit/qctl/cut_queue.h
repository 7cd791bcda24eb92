/* A queue on disk whose calls that change it can end: the nth of them, and all
 * after it, do nothing, as after a death. */
#ifndef TESTS_CUT_QUEUE_H
#define TESTS_CUT_QUEUE_H

#include "spool/spool.h"

struct cut_queue {
	char base[64];
	struct spool sp; /* queue 1 */
};

void cut_queue_open(struct cut_queue *q);
void cut_queue_close(struct cut_queue *q);
/* 0: never. */
void cut_queue_at(unsigned nth);
bool cut_queue_was_cut(void);
/* A message in incoming/ with recipients r0@x.test and so on; their notices:
 * enum dsn_notify. */
struct queue_id
cut_queue_put(struct cut_queue *q, uint32_t rcpts, uint8_t notify);
/* Its marks, in `dir`: "D.F"; with `set` they become these before. */
const char *cut_queue_marks(
    struct cut_queue *q, enum spool_dir dir, uint64_t inode, const char *set);
void cut_queue_add_reason(
    struct cut_queue *q, enum spool_dir dir, uint64_t name, uint32_t index);
/* Lines about recipient `index`, behind so many reports. */
uint32_t cut_queue_lines(
    struct cut_queue *q, uint64_t name, uint32_t index, uint32_t reports);

#endif
