/* spool/id.h - the queue id that people see, and the file name that tools use.
 *
 * Upper-case hexadecimal, unique for ever: 14 digits of the arrival time in
 * microseconds, 2 of a random number, 3 of the queue number, then the inode
 * number without leading zeros. A restored backup has other inodes, so the
 * same message shows under another id (D21); a reused inode has another time
 * and random number (D22). The id finds the file without a search.
 */
#ifndef SPOOL_ID_H
#define SPOOL_ID_H

#include "base/base.h"

#define QUEUE_ID_SIZE        40                         /* with the NUL */
#define QUEUE_ID_ARRIVAL_MAX ((usec_t)0xffffffffffffff) /* the year 4253 */
#define QUEUE_NUM_MAX        4095 /* three digits; the name of a directory */
#define QUEUE_FILE_MAX       24   /* the name of a queue file with the NUL */

struct queue_id {
	usec_t arrival_wall;
	uint8_t nonce;
	uint32_t queue;
	uint64_t inode;
};

/* The arrival time is 0..QUEUE_ID_ARRIVAL_MAX, the queue 0..QUEUE_NUM_MAX. */
void queue_id_format(const struct queue_id *id, char out[QUEUE_ID_SIZE]);
/* -EINVAL for anything that queue_id_format() could not have written (A2). */
int queue_id_parse(const char *s, struct queue_id *ret_id);

/* The file's name in its (split) directory: the inode in decimal. */
void queue_file_name(uint64_t inode, char out[QUEUE_FILE_MAX]);
/* -EINVAL for a foreign name: anything but digits of a number above 0 without
 * leading zeros (D17). */
int queue_file_parse(const char *name, uint64_t *ret_inode);

#endif
