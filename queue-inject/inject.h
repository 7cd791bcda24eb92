/* queue-inject/inject.h - one binary with a face for each of its names:
 * queue-inject, sendmail, qmail-queue, mailq, newaliases.
 *
 *	inject.c      the table of faces, signals, tasks
 *	options.c     command lines; options_sendmail.c that of sendmail
 *	beside.c      tasks of qctl: a list, a retry
 *	mail_face.c   a message with its header: queue-inject, sendmail
 *	qmail_face.c  a message and its envelope apart: qmail-queue
 *	run.c         the message into a queue (submit/submit.h)
 *	dialogue.c    messages that come by SMTP on standard input: sendmail -bs
 *	refusal.c     why not, and the exit code that says so
 *
 * A message is taken in three steps, each a face's own:
 *
 *   prepare   before a queue is chosen
 *   content   the message, into the queue file that was begun
 *   envelope  sender and recipients are complete
 *
 * Every failure is in `why`, and then nothing of the message is left anywhere.
 */
#ifndef QUEUE_INJECT_INJECT_H
#define QUEUE_INJECT_INJECT_H

#include "queue-inject/message.h"
#include "queue-inject/options.h"

/* The exit code: sysexits, or those of qmail-queue in its face. */
int inject_main(int argc, char **argv);

struct inject {
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
	bool has_envelope;
	struct refusal why;
};

struct face {
	const char *name;
	/* NULL: arguments are ignored, and this is the task. */
	int (*options)(int argc, char **argv, struct options *ret_options,
	    struct refusal *why);
	enum task task;
	int (*prepare)(struct inject *inject); /* -1: refused */
	/* -errno of the queue, or -1 with a reason in why. */
	int (*content)(struct inject *inject);
	int (*envelope)(struct inject *inject); /* NULL: it is known before */
	bool qmail_exits;                       /* exit codes of qmail-queue */
};

/* Take the message in and store it; 0, or -1 with a reason. */
int inject_run(struct inject *inject, struct queue_id *ret_id);
void inject_done(struct inject *inject);

/* The same in parts, for several messages of one input. Once: */
int inject_open(struct inject *inject);
/* And for each message, whose bytes are in inject->source: */
int inject_store(struct inject *inject, struct queue_id *ret_id);

/* dialogue.c: the dialogue of sendmail -bs, until QUIT or the end of the input.
 * 0, or -1 with the reason why the dialogue ended before. */
int dialogue_run(struct inject *inject);
/* Tell the client inject->why in place of a greeting; -1. */
int dialogue_turn_away(struct inject *inject);

/* Copy the rest of the source; the answer is that of content(). */
int inject_copy(struct inject *inject);

/* beside.c: becomes qctl, which lies beside this program; returns on failure.
 */
int beside_start(const struct options *o, struct refusal *why);

/* newaliases.c: prints each wrong line of the file of aliases, and puts the
 * file in force. 0; -1 with a reason. */
int
newaliases_run(const struct options *o, const char *name, struct refusal *why);

/* mail_face.c, qmail_face.c */
int mail_prepare(struct inject *inject);
int mail_content(struct inject *inject);
int qmail_prepare(struct inject *inject);
int qmail_envelope(struct inject *inject);

#endif
