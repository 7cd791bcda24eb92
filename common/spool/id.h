/* spool/id.h - the queue id for people, and the file name for tools.
 *
 * Upper-case hexadecimal, unique for ever: 14 digits of the arrival time in
 * microseconds, 2 of a random number, 3 of the queue number, then the inode
 * number without leading zeros. A restored backup has other inodes, so the same
 * message has another id; a reused inode has another time and random number.
 * The id finds the file without a search.
 */
#ifndef SPOOL_ID_H
#define SPOOL_ID_H

#include "base/base.h"

#define QUEUE_ID_SIZE        40                         /* with the NUL */
#define QUEUE_ID_ARRIVAL_MAX ((usec_t)0xffffffffffffff) /* the year 4253 */
#define QUEUE_NUM_MAX        4095 /* three hexadecimal digits */
#define QUEUE_FILE_MAX       24   /* the name of a queue file with the NUL */

struct queue_id {
	usec_t arrival_wall;
	uint8_t nonce;
	uint32_t queue;
	uint64_t inode;
};

static inline bool
queue_id_is(const struct queue_id *a, const struct queue_id *b)
{
	return a->inode == b->inode && a->arrival_wall == b->arrival_wall &&
	    a->nonce == b->nonce && a->queue == b->queue;
}

/* The arrival time is 0..QUEUE_ID_ARRIVAL_MAX, the queue 0..QUEUE_NUM_MAX. */
void queue_id_format(const struct queue_id *id, char out[QUEUE_ID_SIZE]);
/* -EINVAL for a text that queue_id_format() cannot have written. */
int queue_id_parse(const char *s, struct queue_id *ret_id);

/* The file's name in its (split) directory: the inode in decimal. */
void queue_file_name(uint64_t inode, char out[QUEUE_FILE_MAX]);
/* -EINVAL for a foreign name: any but the digits of a number above 0 without
 * leading zeros. */
int queue_file_parse(const char *name, uint64_t *ret_inode);

#endif
