/* qctl/read/message.h - one message of a queue as a reader sees it, and the
 * walk over the messages of a queue.
 *
 * A reader takes no lock and changes nothing, so a message may move while it
 * is read. The open file stays the same message; where the name has gone, the
 * other directories are looked at. A walk visits a message that moves between
 * two directories once or twice, never with the data of another.
 *
 * Soft: -errno. Memory is bounded whatever the number of recipients: their
 * reasons are read for MESSAGE_BATCH of them at a time.
 */
#ifndef QCTL_READ_MESSAGE_H
#define QCTL_READ_MESSAGE_H

#include "spool/corrupt.h"
#include "spool/hold_note.h"

#define MESSAGE_BATCH    32768
#define MESSAGE_WHO_SIZE 64

struct message {
	const struct spool *sp;
	enum spool_dir dir;
	char name[256]; /* of the file in its directory */
	uint64_t inode;
	int fd; /* owned */
	uint64_t file_size;
	char damage[CORRUPT_WHY_MAX]; /* "": whole, and the rest is set */
	struct queue_file file;
	/* When damaged: in corrupt/ and deleted/ that of corrupt_id(), else the
	 * name. */
	char id[QUEUE_ID_SIZE];
	struct buf sender;
	struct dsn_mail dsn; /* wishes of the sender (base/dsn.h) */
	/* Of a deferred message, 0: at once; the end of a deleted one; else 0.
	 */
	usec_t due_wall;
};

/* A recipient with its last reason, if one was written. */
struct recipient {
	const struct queue_rcpt *rcpt;
	const char *reason; /* "4.4.1 connect to …", NULL */
	const char *relay;  /* with a reason */
	usec_t when_wall;   /* of the reason */
	bool told; /* all reasons so far are in reports to the sender */
};

/* The states that people see: names of directories. */
#define MESSAGE_STATES 7
extern const enum spool_dir message_states[MESSAGE_STATES];
/* "deferred"; of any directory in message_states. */
const char *message_state_name(enum spool_dir dir);
/* -EINVAL: no such state. */
int message_state_find(const char *name, size_t len, enum spool_dir *ret_dir);

/* spool_open() for a reader, under whose scans nothing is removed. -EACCES: the
 * directories of this queue may not be entered. */
int message_queue_open(struct spool *sp, const char *base, uint32_t queue);

/* Opens the message of this name; item->inode is 0 for drops and foreign names.
 * -ENOENT: it has moved, -EACCES. A file that is no whole message is opened all
 * the same, with the reason in m->damage. */
int message_open(struct message *m, const struct spool *sp, enum spool_dir dir,
    const struct spool_item *item);
/* Opens the message with this id, in whatever directory it is; without a
 * search, but for drops, whose names are read. -ENOENT: not in this queue. */
int message_find(
    struct message *m, const struct spool *sp, const struct queue_id *id);
/* Do damaged files of this directory have an id, by which acts find them? */
static inline bool
message_may_be_damaged(enum spool_dir dir)
{
	return dir == SPOOL_CORRUPT || dir == SPOOL_DELETED;
}
/* Was it given up by an operator? */
bool message_is_given_up(const struct message *m);
/* By whom it is on hold, an account or "uid 12"; -ENOENT: nothing says so. */
int message_hold(const struct message *m, struct hold_note *ret_note,
    char ret_who[static MESSAGE_WHO_SIZE]);
/* Called after a failed open, too. */
void message_close(struct message *m);

/* Calls each() for the recipients in the order of the file, until it returns
 * other than 0, and returns that. with_reasons: their reasons are read. */
int message_recipients(const struct message *m, bool with_reasons,
    int (*each)(const struct recipient *r, void *arg), void *arg);

/* The walk over the directories in `states` (bits of enum spool_dir), each
 * message opened; each() may return other than 0, which ends the walk and is
 * returned. A directory that cannot be read is told by trouble(), and the walk
 * goes on. With `complete' the names are read again until no message is met
 * that was there before the walk, and was not met yet: so none is missed that
 * moves meanwhile. Its memory is 8 bytes a message. -EAGAIN: messages move
 * faster than their names are read; -ENOMEM. walk.c */
struct message_walk {
	unsigned states;
	bool complete;
	int (*each)(struct message *m, void *arg);
	void (*trouble)(const char *what, int error, void *arg);
	/* Called for each name, before it is opened; NULL: nothing. */
	void (*step)(void *arg);
	void *arg;
};
int message_walk(const struct spool *sp, const struct message_walk *walk);

#endif
