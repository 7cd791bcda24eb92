/* deliver-local/verdict.h - what became of one recipient, and where it comes
 * from: an error of a system call, the exit of a program, a text that begins
 * with an enhanced status code (RFC 3463).
 *
 * A verdict travels once, from the child that delivered to the process that
 * forked it, in one write of at most PIPE_BUF bytes. Both are the same image;
 * the receiver judges it all the same, for the child ran as somebody else.
 */
#ifndef DELIVER_LOCAL_VERDICT_H
#define DELIVER_LOCAL_VERDICT_H

#include "agent/agent.h"

#define VERDICT_TEXT_MAX 4000

struct verdict {
	uint32_t outcome; /* enum agent_outcome */
	char dsn[AGENT_DSN_MAX];
	char text[VERDICT_TEXT_MAX];
};
/* The bytes up to the end of the text are what travels. */
_Static_assert(sizeof(struct verdict) <= 4096, "one write to a pipe is whole");

void verdict_set(struct verdict *v, enum agent_outcome outcome, const char *dsn,
    const char *fmt, ...) PRINTF(4, 5);
/* `what` failed with -errno: "what: No space left on device". Mailbox errors
 * are temporary; the table in verdict.c has the codes. */
void verdict_error(struct verdict *v, int error, const char *what);
/* A program ended with this wait status, having said `output` (not cleaned).
 * Exit codes: sysexits, and 99, 100, 111 of qmail. */
void verdict_status(struct verdict *v, int status, const char *program,
    const char *output, size_t len);
/* "4.2.1 text": the code into dsn, *ret_rest after it and its blanks. 0, or
 * -EINVAL when text does not begin with a code of class 2, 4 or 5. */
int
verdict_code(const char *text, char dsn[AGENT_DSN_MAX], const char **ret_rest);
/* Transport `error`: nexthop is the reason, permanent unless it begins with
 * a code of class 4. */
void verdict_refuse(struct verdict *v, const char *nexthop);

/* Before its verdict a child may say that it gets on: one octet, which no
 * verdict begins with. */
#define VERDICT_PROGRESS 0xff
/* How many of len bytes at data are such octets, at their start. */
size_t verdict_progress_len(const char *data, size_t len);

int verdict_write(const struct verdict *v, int fd); /* -errno */
/* Judge len bytes as verdict_write() made them. -EBADMSG. */
int verdict_read(const void *data, size_t len, struct verdict *ret_verdict);

#endif
