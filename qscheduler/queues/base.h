/* qscheduler/queues/base.h - QUEUE_BASE: the one supervisor on it, the queues
 * that were ever made in it, and what is to be done with each number.
 *
 * QUEUE_BASE/lock is held as long as the supervisor lives. QUEUE_BASE/queues
 * lists the numbers of all queues ever made, one a line: one that is listed
 * but not there, or there without its marker, is a file system that is not
 * mounted and not a first start. The operator takes the line out to
 * have it made anew.
 *
 * Soft: -errno with the words in *ret_error. Never logs. */
#ifndef QSCHEDULER_QUEUES_BASE_H
#define QSCHEDULER_QUEUES_BASE_H

#include "config/conf.h"
#include "daemon/daemon.h"
#include "spool/room.h"
#include "spool/spool.h"

#define BASE_LIST "queues"

struct base {
	char *path;
	int fd, lock;
	struct spool_owner owner;
	gid_t agents; /* the group of those who talk to strangers */
	bool listed[QUEUE_NUM_MAX + 1];
};

/* Make QUEUE_BASE if its parent is there, check it, lock it, read the
 * list. -EBUSY: another supervisor runs on it. */
int base_open(struct base *b, const char *path,
    const struct daemon_users *users, struct buf *ret_error);
void base_close(struct base *b);
/* Adds "PATH: what", what NULL: the words of r; r. */
int base_fail(struct buf *ret_error, int r, const char *path, const char *what);
/* place.c: opens the directory QUEUE_BASE, or makes it if its parent is there.
 * The descriptor, or -errno with words. private: of a user's own instance. */
int base_place_open(const char *path, bool private, struct buf *ret_error);
/* Would base_place_open() succeed for this user? Nothing is made. */
int base_place_judge(const char *path, struct buf *ret_error);
/* Which one it is, whatever its name: another one that is made in its place, or
 * was restored, has another identity. */
uint64_t base_identity(const struct base *b);
/* Read the list again; on failure it is as it was. */
int base_read_list(struct base *b, struct buf *ret_error);
/* Add a number for good, to the list as it is on disk now: an operator may
 * have changed it, and several processes of ours may do this at once. */
int base_list_add(struct base *b, uint32_t queue, struct buf *ret_error);

struct base_facts {
	bool wanted; /* by QUEUE_START, QUEUE_COUNT and the mode */
	bool listed;
	bool there;  /* a directory of this name */
	bool marked; /* with its marker: it can be opened */
	bool mail;   /* in maildrop, incoming, active, deferred or hold */
	bool sealed; /* retired: with its mark `closed` */
	int error;   /* of opening it, 0 or -errno */
	char why[SPOOL_ERROR_MAX]; /* words for the error */
};

enum verdict {
	VERDICT_SKIP = 1,
	VERDICT_OPEN,    /* run it */
	VERDICT_DRAIN,   /* run it, but nothing new comes */
	VERDICT_MAKE,    /* a first start: make it, then run it */
	VERDICT_DISABLE, /* shown, not run, nothing is made */
	VERDICT_LAST = VERDICT_DISABLE,
};

void
base_inspect(const struct base *b, uint32_t queue, struct base_facts *facts);
enum verdict base_judge(const struct base_facts *facts);
/* In words, what VERDICT_DISABLE is about, and what to do. */
int base_describe_lost(const struct base *b, uint32_t queue,
    const struct base_facts *facts, struct buf *out);
/* The error of base_check() in words: a queue that runs has lost its directory,
 * or a part of it. */
int base_describe_gone(int error, struct buf *out);
/* All of these read the disk, which may not answer: workers call them. */

/* Can new mail be stored? */
struct base_room {
	int error; /* 0, or -errno of room_is_error() */
	/* True: mail is accepted, but less than 9/8 of the reserve
	 * (queue_minfree_bytes, queue_minfree_inodes) is free. */
	bool scarce;
	uint64_t disk; /* the file system: of the error, else of the queue */
	char text[ROOM_TEXT_SIZE]; /* room_describe() of the error, else "" */
};
/* Is this queue's directory still what it was? 0 or -errno. The disk has
 * answered, to a write as well. *ret_room is about the file systems of the
 * queue and of QUEUE_BASE, which each submission writes to. */
int base_check(const struct base *b, uint32_t queue,
    const struct room_want *want, struct base_room *ret_room);
/* restored.c: -EUCLEAN when most files of a queue have names of other inodes,
 * as after a restore or a copy to another file system; the words name the
 * command that mends them. A single file among others is left to the queue,
 * which moves it to corrupt/. */
int
base_judge_names(const struct base *b, uint32_t queue, struct buf *ret_error);
/* 1: a process has the lock of queue-send, as "qctl check --repair" does. */
int base_is_taken(const struct base *b, uint32_t queue);
/* The words: of `looked` files `wrong` have names of other inodes. */
int base_describe_names(
    uint32_t queue, uint64_t wrong, uint64_t looked, struct buf *out);
/* Make or complete it, take its mark `closed` away, and list it. */
int base_make(
    struct base *b, uint32_t queue, uint32_t split, struct buf *ret_error);
/* Of a queue whose processes are gone: set its mark, take their locks, and
 * scan. 1: it is empty, and nothing can come any more; 0: it is not, and the
 * mark is gone again. -EAGAIN: another process has a lock. */
int base_seal(const struct base *b, uint32_t queue);

#endif
