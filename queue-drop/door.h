/* queue-drop/door.h - one submission through the door (docs/DOOR.md), and the
 * source of each part:
 *
 *	door     all of it in order, and the answer
 *	closed   why the gate is closed
 *	share    limits of one user
 *	stream   the records on standard input
 *
 * A part calls only parts below it; base/guard.h has the process and the paths
 * that it trusts, submit/use.h counts the mail of one user.
 */
#ifndef QUEUE_DROP_DOOR_H
#define QUEUE_DROP_DOOR_H

#include "config/conf.h"
#include "spool/accept.h"
#include "submit/use.h"

/* ---- stream: -errno of read(), -EPROTO for anything but records ----
 *
 * The records of spool/door.h. Bounded: a buffer of STREAM_BUFFER bytes,
 * whatever a record says of its length. */

#define STREAM_BUFFER 65536

struct stream {
	int fd;
	size_t from, to; /* the bytes of buf that are not taken */
	char buf[STREAM_BUFFER];
};

struct stream_record {
	char type;
	uint32_t left; /* bytes of it that are still to come */
};

void stream_init(struct stream *s, int fd);
/* The head of the next record. -EPROTO at the end of the input. */
int stream_next(struct stream *s, struct stream_record *ret_record);
/* Bytes of the record, at least one, until left is 0; valid until the next
 * call. The length. */
int64_t
stream_bytes(struct stream *s, struct stream_record *record, const char **ret);
/* All of a short record: -EPROTO when it is longer than max. */
int stream_short(
    struct stream *s, struct stream_record *record, char *out, uint32_t max);
/* 0 at the end of the input, -EPROTO when more follows. */
int stream_end(struct stream *s);

/* ---- share: -1 with the reason: "5000 messages of uid 1000 wait, the limit is
 * 5000 (user_message_limit)" ----
 *
 * The limits of one user: messages, bytes and inodes that wait, messages a
 * minute, doors at once. Three figures are added: the drops of the user in
 * maildrop/ of every queue, the user's row in gate/waiting of every queue, and
 * the messages that other doors of the user are reading. QUEUE_BASE/users/UID
 * holds the rate and, for each door that runs, a locked slot with the bytes
 * that it has read. Root, the user of a private instance and trusted_users are
 * not counted.
 *
 * A queue that the supervisor has put aside, or whose page shows a disk
 * that is late, is not read, since the disk may not answer, unless it is
 * the one that is dropped into. */

struct share {
	const struct conf *conf;
	uid_t uid;    /* the account, waiting_account() */
	bool counted; /* else this user is free */
	int file;     /* QUEUE_BASE/users/UID, or -1 */
	uint32_t slot, slots;
	struct use use;    /* without submissions under way */
	usec_t counted_at; /* CLOCK_MONOTONIC, of use */
	uint64_t told;     /* bytes, in our slot */
	int error; /* -errno of QUEUE_BASE/users/UID; 0: a limit is reached */
	char reason[USE_REASON_SIZE];
};

/* Before the message is read; sp is the queue that it is for. */
int
share_take(struct share *s, const struct conf *conf, const struct spool *sp);
/* This many bytes of the message have been read. */
int share_grows(struct share *s, uint64_t bytes);
/* Wait at most in_flow_delay while FLOW_DROPS drops of this user lie in
 * maildrop/ and an instance runs: drops of the user come faster than they are
 * picked up. Of any user, also one that is not counted. */
#define FLOW_DROPS 20
void share_pause(const struct share *s, const struct spool *sp);
/* The message is whole and about to be accepted: it counts for the rate. What
 * waits is counted anew where the message is large, or took a second or more.
 * bytes: of the message, as far as no file in maildrop/ has them. */
int share_pay(struct share *s, const struct spool *sp, uint64_t bytes);
void share_done(struct share *s);

/* ---- door ---- */

struct door {
	const char *base;
	uint32_t queue;
	uid_t uid;
	const struct spool_sys *sys;
	struct conf conf;
	struct spool sp;
	struct share share;
	struct stream in;
	struct accept accept;
	bool opened, begun; /* spool_close(), accept_end() are due */
	uint32_t rcpts;
	char host[CONF_HOST_SIZE];
	/* of a refusal: */
	int status; /* of sysexits.h */
	char reason[ROOM_TEXT_SIZE + 16];
};

/* closed.c: why this process may not pass the gate of the queue that is open:
 * path, mode and group of the program and of the gate. */
void door_explain_closed(const struct door *d, char *out, size_t size);

/* The exit code; the answer is on standard output, or on standard error. */
int door_main(int argc, char **argv);
/* The parts, for tests: arguments and instance; the message on d->in. 0, or -1
 * with status and reason. door_done() always. */
int door_open(struct door *d, int argc, char *const *argv, bool secure);
int door_take(struct door *d, struct queue_id *ret_id);
void door_done(struct door *d);

#endif
