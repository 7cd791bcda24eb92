/* deliver-smtp/reach/question.h - one question to the name servers, by c-ares
 * in the event loop.
 *
 * Each question has a channel of c-ares, and so a socket, of its own: its
 * source port is a new one (RFC 5452, section 9.2). A server that refuses, or
 * says that it cannot find out, is no answer as long as another server is left.
 *
 * Soft: -errno. The callback comes from the loop, never from inside the call
 * that begins the work, and not after the work was cancelled.
 */
#ifndef DELIVER_SMTP_REACH_QUESTION_H
#define DELIVER_SMTP_REACH_QUESTION_H

#include "deliver-smtp/reach/name_servers.h"

struct event_base;
struct ares_addrinfo;
struct question;

enum question_kind {
	QUESTION_MX,
	QUESTION_A,
	QUESTION_AAAA,
	/* Addresses by /etc/hosts (or the file that CARES_HOSTS in the
	 * environment names), then DNS with the search list of the system. */
	QUESTION_NATIVE,
	QUESTION_NATIVE_EXACT, /* without the search list */
	QUESTION_NKINDS,
};

struct question_answer {
	/* 0; -ENOENT: no such name; -ENODATA: the name has no such record;
	 * -EAGAIN: the servers did not say; -ENOMEM. */
	int error;
	const char *text; /* the error, for people; static */
	/* Without an error; the question's. The message of DNS, or of
	 * the native kinds the addresses in the order of RFC 6724. */
	const unsigned char *message;
	size_t len;
	const struct ares_addrinfo *addresses;
};
typedef void question_fn(void *arg, const struct question_answer *answer);

/* The servers, which learn from the answer, outlive the question. -ENOMEM,
 * -EIO. The question is gone when done() has returned. */
int question_start(struct name_servers *servers, struct event_base *base,
    enum question_kind kind, const char *name, question_fn *done, void *arg,
    struct question **ret_question);
void question_cancel(struct question **question);

#endif
