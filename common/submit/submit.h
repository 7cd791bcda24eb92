/* submit/submit.h - put messages into the queues of an instance: the one way
 * in for everything that accepts mail.
 *
 * struct submit has what a program knows of the queues: their load, read anew
 * after SUBMIT_FACTS_AGE, and their open directories. struct submission is one
 * message on its way in, and after that the next one. A program has one
 * submit, and one submission for each message that it takes at the same time.
 *
 *	submission_begin     choose a queue, open a file, put the Received field
 *	submission_added, submission_content ...
 *	submission_sender, submission_rcpt ...
 *	submission_commit    on disk for good; the doorbell is rung, and new
 *			     mail that comes too fast is slowed down
 *	submission_abort     after any failure; begin again, or give up
 *
 * A queue that cannot be opened is passed over for the next one. Where this
 * process may not write to `incoming` the message goes through the program
 * queue-drop, which puts a Received field of its own and judges addresses,
 * sizes and the user's share (docs/DOOR.md).
 *
 * Soft: -errno of spool/accept.h. -EAGAIN: all queues are draining or disabled;
 * -ENOENT: no queue directory. Of the door: -ENOSPC and -ESHUTDOWN of this
 * queue, -EUSERS the share of this user, -EFBIG, -E2BIG too many recipients,
 * -EINVAL an address, -EDESTADDRREQ, -EIO anything else, also its death;
 * -ETIMEDOUT: the disk of a queue is late, and nothing was promised.
 * submission_reason() says which queue and why. Panics: misuse only. Never
 * logs. Blocks for the disk and the door; one thread at a time.
 *
 * Ownership: conf outlives the submit, and the submit its submissions. Data and
 * addresses are copied or written before a call returns.
 */
#ifndef SUBMIT_SUBMIT_H
#define SUBMIT_SUBMIT_H

#include "config/conf.h"
#include "spool/accept.h"

#define SUBMIT_FACTS_AGE (100 * USEC_PER_MSEC)

struct submit;
struct submission;

/* -ENOMEM. */
int submit_new(const struct conf *conf, const struct spool_sys *sys,
    struct submit **ret_submit);
/* No submission is left. NULL is nothing. */
void submit_free(struct submit **submit);

/* -ENOMEM. */
int submission_new(struct submit *submit, struct submission **ret_submission);
/* A message that is not committed leaves nothing behind. NULL is nothing. */
void submission_free(struct submission **submission);

/* The contents of the Received field, and the size that is to come. */
struct submit_origin {
	uint32_t uid;
	const char *host;   /* of this system */
	const char *eol;    /* of the message: "\n" or "\r\n" */
	uint64_t announced; /* bytes that are to come; 0: unknown */
};

int submission_begin(struct submission *m, const struct submit_origin *origin);
/* -EFBIG: with this the content is larger than message_size_limit. */
int submission_content(struct submission *m, const void *data, size_t len);
/* Fields that the program adds do not count against that limit. */
int submission_added(struct submission *m, const void *data, size_t len);
/* One sender, "" for the null sender, then at least one recipient. */
int submission_sender(struct submission *m, const char *address, size_t len);
int submission_rcpt(struct submission *m, const char *address, size_t len);
/* Wishes of the sender (base/dsn.h): right behind the sender, and right behind
 * the recipient that it is of; or not at all. -EBADRQC: no value that RFC 3461
 * allows. */
int submission_dsn(struct submission *m, const struct dsn_mail *dsn);
int submission_rcpt_dsn(struct submission *m, const struct dsn_rcpt *dsn);
/* The message cannot be begun in another queue, as one of more than 64 KiB: the
 * call waits for the disk of this queue, however long the disk takes. */
void submission_stay(struct submission *m);
/* 0: accepted, and *ret_id names it. While new mail comes faster than it leaves
 * incoming/ the call returns up to in_flow_delay later, or when stop_fd (-1:
 * none) is readable (docs/QUEUE.md, "The flow of new mail"). */
int
submission_commit(struct submission *m, int stop_fd, struct queue_id *ret_id);
/* Nothing of the message stays. error: the result of a call above, noted
 * against the queue; 0: the message was refused, the queue is well. */
void submission_abort(struct submission *m, int error);
/* After submission_abort() with this error: begin the same message in another
 * queue, if that can help; the error otherwise. An error that leaves it open
 * whether the message is on disk (EIO) is the end: an fsync that failed is
 * never tried again. */
int submission_again(
    struct submission *m, int error, const struct submit_origin *origin);
/* Of the last failure: "queue3: No space left on device". */
const char *submission_reason(const struct submission *m);

/* ---- parts of an acceptance, for queue-drop, which has its queue ---- */

/* The reserve of the configuration, for this writer. */
struct room_want
submit_reserve(const struct conf *conf, enum room_writer writer);
/* Limits and the reserve of the configuration. */
struct accept_options submit_accept_options(
    const struct conf *conf, enum spool_dir dir, enum room_writer writer);
/* The class of a submitter: root, or a user. */
enum room_writer submit_writer(uid_t uid);

#define SUBMIT_RECEIVED_MAX 512

/* The Received field: by which host, from which user, under which id, when. eol
 * is that of the message: "\n" or "\r\n". The id is known before the file has
 * a name: its inode is. The length, or -errno. */
int submit_received(const struct accept *a, const char *host, const char *eol,
    char out[SUBMIT_RECEIVED_MAX]);

#endif
