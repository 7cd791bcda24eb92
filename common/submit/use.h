/* submit/use.h - what a user has in all queues of an instance, and whether that
 * is within the user's shares (docs/DOOR.md, "Shares"). queue-drop asks before
 * it takes a message, deliver-local before it expands one, qctl shows it.
 *
 * Soft: -errno. Never logs. */
#ifndef SUBMIT_USE_H
#define SUBMIT_USE_H

#include "config/conf.h"
#include "spool/spool.h"

struct use {
	uint64_t messages, bytes, inodes;
	/* number of those messages that are expansions of the user's mail */
	uint64_t made;
};

void use_add(struct use *to, const struct use *more);

/* Calls each() with every queue of the instance. sp, the queue of the caller,
 * is read whatever state the supervisor gives it. Another queue that the
 * supervisor has put aside, or whose page shows a disk that is late, is not,
 * since the disk may not answer. A disk that is slow alone is read, or a user
 * could make a disk slow to have mail uncounted. An error of each() is
 * forgotten, so that a broken disk is no fault of the user, unless limits of
 * this process are the cause: then -errno. */
int use_each_queue(const struct conf *conf, const struct spool *sp,
    int (*each)(void *arg, const struct spool *sp), void *arg);
/* waiting_accounts_read(), before the calls below. A file that cannot be read
 * is no fault of the user, unless limits of this process are the cause: then
 * -errno. */
int use_accounts_read(const char *path);
/* The drops of this account and its row of the table of spool/waiting.h, in all
 * queues. */
int use_count(const struct conf *conf, const struct spool *sp, uid_t account,
    struct use *ret);
/* Has this account at least so many drops in one queue? The call stops
 * reading at the last of these drops. False: also where the process cannot read
 * maildrop/. */
bool use_has_drops(const struct spool *sp, uid_t account, uint32_t count);
/* Does a supervisor of root run, so that drops are picked up? */
bool use_instance_runs(const struct conf *conf);
/* Tells of each drop in a queue; nothing where this process may not pass the
 * gate. account: of this one alone; USE_ALL: of every user. */
#define USE_ALL ((uid_t)-1)
int use_each_drop(const struct spool *sp, uid_t account,
    void (*take)(void *arg, uid_t account, const struct use *drop), void *arg);

/* Is no limit on this account: root, the system's own users, the user of a
 * private instance, trusted_users? */
bool
use_is_free(const struct conf *conf, const struct spool *sp, uid_t account);
/* Is a word of trusted_users this user: a number, or a name of /etc/passwd? No
 * other user database is asked: its modules would run with the rights of
 * queue-drop. */
bool use_is_trusted(const char *list, uid_t uid);

/* The end of each refusal for a limit on mail that waits. */
#define USE_REMEDY      "; see \"qctl shares\""
/* May `more` come to what is `there`? -1 with the reason: "5000 messages of uid
 * 1000 wait, the limit is 5000 (user_message_limit)" and USE_REMEDY. */
#define USE_REASON_SIZE 160
/* Write a reason. -1. */
int use_refuse(char reason[USE_REASON_SIZE], const char *fmt, ...) PRINTF(2, 3);
int use_check(const struct conf *conf, uid_t account, const struct use *there,
    const struct use *more, char reason[USE_REASON_SIZE]);

/* ---- use_file.c: QUEUE_BASE/users/UID, which the door writes ----
 *
 * The rate at its beginning, then a number for each slot, which is a door that
 * runs: 0, or the bytes that it has read plus one. The bytes that are locked
 * lie behind all of it. */

#define USE_SLOTS_MAX    250 /* with user_process_limit = 0 */
#define USE_RATE_WINDOW  (60 * USEC_PER_SEC)
#define USE_AT_RATE      0
#define USE_AT_SLOT(i)   ((off_t)64 + 8 * (off_t)(i))
#define USE_LOCK_RATE    ((off_t)1 << 20)
#define USE_LOCK_SLOT(i) (USE_LOCK_RATE + 1 + (off_t)(i))

/* The slots of a file. */
uint32_t use_slots(const struct conf *conf);
/* A lock of one byte (F_OFD_SETLK, …). 0: locked, or free where F_OFD_GETLK
 * asks; 1: F_OFD_GETLK found a lock; -errno. */
int use_lock(int fd, int command, off_t at, short type);
/* Adds the messages that doors are reading, and their bytes, but for one slot
 * (UINT32_MAX: none). A number in a slot without lock was left by a killed
 * door. */
void use_of_slots(int fd, uint32_t slots, uint32_t except, struct use *ret);
/* The mark of the rate, no earlier than now_wall and no later than a window
 * after it. A message moves the mark on by its share of a minute. */
usec_t use_rate_mark(int fd, usec_t now_wall);

#endif
