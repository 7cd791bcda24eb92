/* queue-inject/job.h - one submission, from the command line to the queue.
 *
 *   prepare   what must be known before a queue is chosen
 *   content   the message, into the queue file that was begun
 *   envelope  sender and recipients are complete
 *
 * Each step is a face's own; store is the same for all. Whatever fails is in
 * `why`, and then nothing of the message is left anywhere.
 */
#ifndef QUEUE_INJECT_JOB_H
#define QUEUE_INJECT_JOB_H

#include "queue-inject/message.h"
#include "queue-inject/options.h"

struct job {
	const struct face *face;
	struct options options;
	const struct spool_sys *sys;
	struct conf conf;
	struct identity identity;
	struct source source;
	struct envelope envelope;
	struct message message;
	struct submit *submit;
	struct submission *submission;
	const char *eol;      /* of the message */
	uint64_t announced;   /* bytes on standard input, 0: unknown */
	usec_t deadline_mono; /* of the whole input */
	int stop_fd;          /* readable when a signal asks to stop */
	bool no_input;        /* standard input was closed at the start */
	bool waited;          /* for the active queue */
	bool has_envelope;
	struct refusal why;
};

struct face {
	const char *name;
	int (*options)(int argc, char **argv, struct options *ret_options,
	    struct refusal *why);
	int (*prepare)(struct job *job); /* -1: refused */
	/* -errno of the queue, or -1 with a reason in why. */
	int (*content)(struct job *job);
	int (*envelope)(struct job *job);
	int (*exit_code)(enum refusal_kind kind);
};

/* Take the message in and store it; 0, or -1 with a reason. */
int job_run(struct job *job, struct queue_id *ret_id);
void job_done(struct job *job);

/* Copy what is left of the source: as content() answers. */
int job_copy(struct job *job);

/* mail_face.c, qmail_face.c */
int mail_prepare(struct job *job);
int mail_content(struct job *job);
int mail_envelope(struct job *job);
int qmail_prepare(struct job *job);
int qmail_content(struct job *job);
int qmail_envelope(struct job *job);

#endif
