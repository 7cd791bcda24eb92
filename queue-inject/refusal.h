/* queue-inject/refusal.h - why a message is not taken, and the exit code that
 * says so in each face (sysexits.h, and the codes of qmail-queue(8)).
 *
 * One table: a kind of refusal, its two exit codes, its enhanced status code.
 * A function that can refuse fills *why and returns -1; the text names the
 * object and the error; words from outside are cleaned.
 */
#ifndef QUEUE_INJECT_REFUSAL_H
#define QUEUE_INJECT_REFUSAL_H

#include "base/base.h"

#include <stdio.h>

enum refusal_kind {
	REFUSAL_NONE,
	REFUSAL_USAGE,
	REFUSAL_UNSUPPORTED, /* a task of another program */
	REFUSAL_NO_RECIPIENT,
	REFUSAL_ADDRESS,
	REFUSAL_ADDRESS_LONG,
	REFUSAL_ENVELOPE, /* of the qmail-queue face: its format */
	REFUSAL_TOO_BIG,
	REFUSAL_TOO_MANY,
	REFUSAL_HEADER,
	REFUSAL_READ, /* standard input or output */
	REFUSAL_TIMEOUT,
	REFUSAL_STOPPED, /* by a signal */
	REFUSAL_MEMORY,
	REFUSAL_CONFIG,
	REFUSAL_PERMISSION,
	REFUSAL_CLOSED,   /* a directory, or queue-drop, by its mode */
	REFUSAL_SPOOL,    /* no queue directory can be entered */
	REFUSAL_DISABLED, /* all queues are, or draining */
	REFUSAL_CREATE,
	REFUSAL_FULL,  /* of bytes, inodes, quota */
	REFUSAL_SHARE, /* of this user, at the door */
	REFUSAL_WRITE, /* or sync failed; a read-only file system */
	REFUSAL_NKINDS,
};

struct refusal {
	enum refusal_kind kind;
	char text[768];
};

int refuse(struct refusal *why, enum refusal_kind kind, const char *fmt, ...)
    PRINTF(3, 4);
/* For an -errno of the spool while a message is stored; `where` names it. */
int refuse_error(struct refusal *why, int error, const char *where);
/* For an -errno of an address, which is shown. */
int
refuse_address(struct refusal *why, int error, const char *address, size_t len);

int refusal_exit(enum refusal_kind kind, bool qmail);
/* The code of an SMTP reply, and the enhanced status code in it. */
unsigned refusal_reply(enum refusal_kind kind, const char **ret_dsn);
/* "NAME: X.Y.Z text" and a line end. */
void refusal_print(const struct refusal *why, const char *name, FILE *out);

#endif
