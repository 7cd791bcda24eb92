/* report/report.h - a delivery status notification (RFC 3464): what became of
 * a message, for its sender. Pure: text from facts, no file, no clock.
 *
 * A multipart/report of three parts: words for people, message/delivery-status
 * for programs, and the message or its header. It is built in pieces, so that
 * any number of recipients needs bounded memory; between two calls the caller
 * may write away what is in `out` and empty it:
 *
 *   report_begin    header, first words
 *   report_say      words about a recipient: each one, in turn
 *   report_middle   last words, fields of the message
 *   report_state    fields of a recipient: each one again
 *   report_end      the message or its header, the last boundary
 *
 * All strings may be hostile, and so may the message: the structure of the
 * report does not depend on them (docs/REPORTS.md, "What cannot break it").
 * Lines end in LF and have at most 998 bytes; bytes above 127 are in a message
 * that is returned whole, and nowhere else.
 *
 * Soft: -ENOMEM, and the report is of no use. Ownership: strings are the
 * caller's, and live until report_end(). Never logs.
 */
#ifndef REPORT_REPORT_H
#define REPORT_REPORT_H

#include "base/buf.h"

/* Recipients that the words name; the rest are counted there, and have their
 * fields. */
#define REPORT_SAID_MAX     1000
/* A report says so much of its recipients at least, if there is so much to say:
 * words and fields, in octets. */
#define REPORT_RCPTS_MIN    (64 << 10)
/* The most of a header that is of use in `content`. */
#define REPORT_HEADER_MAX   (64 << 10)
#define REPORT_BOUNDARY_MAX 80

enum report_kind {
	REPORT_FAILURE,
	REPORT_DELAY,
	REPORT_SUCCESS,
	REPORT_DOUBLE, /* of a report that failed, for postmaster */
	REPORT_NKINDS,
};

enum report_action {
	REPORT_FAILED,
	REPORT_DELAYED,
	REPORT_DELIVERED,
	REPORT_RELAYED,
	REPORT_EXPANDED,
	REPORT_NACTIONS,
};

struct report_facts {
	enum report_kind kind;
	const char *host;   /* name of this system */
	const char *from;   /* address in From */
	const char *to;     /* recipient of the report */
	const char *sender; /* of the message; "" is the null sender */
	const char *id;     /* queue id of the message */
	const char *token;  /* of this report alone: letters and digits */
	const char *envid;  /* as xtext; NULL: unknown */
	usec_t now_wall, arrival_wall;
	usec_t until_wall; /* a delay: end of the attempts; 0: unknown */
	bool damaged; /* a delay: there is no attempt, an operator decides */
	const char *content; /* of the message, or its beginning */
	size_t content_len;
	bool whole; /* content is all of it, and is to be returned */
	/* Recipients that did not fit: a delay has no other report of these. */
	uint32_t more;
	bool mixed; /* a failure, and some recipients have the message */

	/* Private. */
	char boundary[REPORT_BOUNDARY_MAX];
	uint32_t said;
	int form; /* of the message in the report */
};

struct report_rcpt {
	const char *address;
	const char *orcpt; /* "rfc822;" and xtext; NULL: unknown */
	enum report_action action;
	const char *dsn;   /* "5.1.1" */
	const char *relay; /* "host[ip]:25", "none", … */
	const char *text;  /* the reason */
	usec_t when_wall;  /* of the last attempt; 0: unknown */
};

/* How much a report says of its recipients where a content of size_limit is
 * returned. */
uint64_t report_rcpts_limit(uint64_t size_limit);
int report_begin(struct report_facts *r, struct buf *out);
int report_say(
    struct report_facts *r, const struct report_rcpt *to, struct buf *out);
int report_middle(struct report_facts *r, struct buf *out);
int report_state(
    struct report_facts *r, const struct report_rcpt *to, struct buf *out);
int report_end(struct report_facts *r, struct buf *out);

#endif
