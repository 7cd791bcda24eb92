/* deliver-smtp/talk.h - a dialogue over one connected socket: octets in and
 * out, the time limit of each state, the content in slices.
 *
 * Reports go to report() as they become known. When the dialogue is over
 * ended() is called, as the talk's last act; the owner frees it there (or
 * before it, at any time). What `end` points to lives until then.
 */
#ifndef DELIVER_SMTP_TALK_H
#define DELIVER_SMTP_TALK_H

#include "deliver-smtp/dialog.h"

struct event_base;
struct talk;

struct talk_task {
	struct dialog_task dialog;
	const usec_t *limits; /* of each state; copied */
	const char *content;  /* all of it, or NULL: in the queue file */
	int fd;               /* the queue file; both are the owner's */
	uint64_t content_off; /* and dialog.size octets from there */
};

struct talk_ops {
	dialog_report_fn *report;
	void (*ended)(void *arg, struct dialog_end *end);
};

/* The socket is the talk's from here on; on failure (-ENOMEM) too. */
int talk_start(struct event_base *base, int sock, const struct talk_task *task,
    const struct talk_ops *ops, void *arg, struct talk **ret_talk);
/* The connection is closed when it returns. */
void talk_free(struct talk **talk);
/* Every recipient without a report is deferred, from here; ended() is not
 * called. */
void talk_abandon(struct talk *t, const char *dsn, const char *text);
/* When the server had taken EHLO or HELO; 0: not yet. */
usec_t talk_handshaken_at(const struct talk *t);

#endif
