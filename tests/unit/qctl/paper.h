/* paper.h - a message without a spool, and what a worker writes about it. */
#ifndef TESTS_QCTL_PAPER_H
#define TESTS_QCTL_PAPER_H

#include "qctl/show/show.h"

struct paper {
	struct spool sp; /* no directory can be entered */
	struct message m;
	struct worker w;
	int ends[2];
};

/* A deferred message of sender to the recipients, ended by NULL; the second one
 * is delivered, the third one has failed. Content is "Subject: x\n\n1\033\t\n".
 */
void paper_open(struct paper *p, const char *sender, const char *const *rcpts);
/* The same, with what the sender asked of reports, of each recipient. */
void
paper_open_wishes(struct paper *p, const char *sender, const char *const *rcpts,
    const struct dsn_mail *mail, const struct dsn_rcpt *wish);
void paper_close(struct paper *p);
/* The text that the worker has written since the last call. */
const char *paper_text(struct paper *p);

#endif
