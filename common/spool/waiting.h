/* spool/waiting.h - the waiting mail of each user in a queue: a table that
 * todo-proc counts and writes. It lies under two names, since two groups read
 * it: gate/waiting is for queue-drop, lock/waiting for members of group qmail
 * (deliver-local, queue-look).
 *
 * Lines of one length: "waiting 2" with the time of the last walk, then
 * "UID MESSAGES BYTES MADE" of every user who has mail in the queue, ascending
 * by UID. Not synced: after a crash todo-proc writes the table again.
 *
 * Soft: -errno; -EBADMSG for a foreign file. */
#ifndef SPOOL_WAITING_H
#define SPOOL_WAITING_H

#include "spool/spool.h"

/* The user who submitted a message: the owner of the file, since nobody can
 * forge an owner. A file that the system wrote (an expansion, a report) has in
 * its trailer the submitter of the message it was made of. In a private
 * instance one user owns all files, and the trailer has the submitter. */
uid_t
waiting_submitter(const struct spool *sp, uid_t owner, uint32_t trailer_uid);
/* The same of the open file of a message. */
uid_t
waiting_submitter_of(const struct spool *sp, int fd, uint32_t trailer_uid);
/* Was the file written by the system, not by a submitter? Never in a private
 * instance. */
bool waiting_is_made(const struct spool *sp, uid_t owner);

/* ---- accounts: all mail of one user, whose subordinate uids are others ----
 *
 * One thread of a process calls these functions. */

/* Reads the ranges of SUBUID_FILE. Failure: -errno of subuid_read(), and each
 * uid is an account of its own, as in a process that has not called this. */
int waiting_accounts_read(const char *path);
/* The account that the mail of this user is charged to: the owner of a
 * subordinate uid. */
uid_t waiting_account(uid_t uid);

struct waiting_user {
	uid_t uid; /* the submitter; of waiting_read() the account */
	uint64_t messages, bytes;
	uint64_t made; /* number of those messages that are expansions */
};

/* Sorts the rows. Each name has the old table or the new one. */
int waiting_write(const struct spool *sp, usec_t walked_wall,
    struct waiting_user *rows, size_t count);

/* The table of a queue, open; whichever name this process can reach. */
struct waiting_file {
	int fd;
	uint64_t count;     /* rows */
	usec_t walked_wall; /* the time of the last walk */
};
/* -ENOENT: there is none. waiting_close() always. */
int waiting_open(const struct spool *sp, struct waiting_file *ret_file);
int waiting_row(
    const struct waiting_file *f, uint64_t row, struct waiting_user *ret);
void waiting_close(struct waiting_file *f);
/* The sum of the rows of this account: zeros if there is no table or no such
 * row. */
int
waiting_read(const struct spool *sp, uid_t account, struct waiting_user *ret);

#endif
