/* smtp/server.h - the server's side of SMTP (RFC 5321) as a state machine:
 * octets in, replies and events out. No socket, no clock, no allocation.
 *
 *	server.c          octets, lines, content, answers
 *	server_command.c  the table of commands
 *	server_param.c    arguments and parameters of MAIL and RCPT
 *	server_reply.c    replies
 *	decode.c          content as it comes off the wire (smtp/smtp.h)
 *
 * The owner feeds octets and gets one event at a time:
 *
 *	for (;;) {
 *		event = smtp_server_feed(s, data, len, &used);
 *		...            the event, see enum smtp_server_event
 *	}
 *
 * MAIL, RCPT, DATA and END are questions: the owner answers each with
 * smtp_server_answer() before the next octet is fed. MAIL begins a transaction
 * and forgets an earlier one, so the owner needs no event for RSET or EHLO.
 * Everything else the machine answers by itself. How the input is cut into
 * slices changes neither replies nor events but for the cuts of the content.
 *
 * Replies gather in `out`; the owner writes these before it waits for input.
 *
 * Soft: nothing fails. Panics: misuse only. Never logs.
 */
#ifndef SMTP_SERVER_H
#define SMTP_SERVER_H

#include "base/address.h"
#include "base/dsn.h"
#include "smtp/smtp.h"

/* A command with its line end. RFC 5321 section 4.5.3.1.4 has 512 octets, and
 * each extension adds its parameters. */
#define SMTP_SERVER_LINE_MAX    2048
/* Room for the reply to a command and a 421 behind it, each of 512 octets at
 * most. */
#define SMTP_SERVER_REPLY_MAX   1024
#define SMTP_SERVER_OUT_MAX     4096
#define SMTP_SERVER_CONTENT_MAX 4096

/* Extensions that the owner offers, as bits. */
enum smtp_server_offer {
	SMTP_OFFER_PIPELINING = 1 << 0,
	SMTP_OFFER_SIZE = 1 << 1,
	SMTP_OFFER_8BITMIME = 1 << 2,
	SMTP_OFFER_SMTPUTF8 = 1 << 3,
	SMTP_OFFER_DSN = 1 << 4,
	SMTP_OFFER_ENHANCEDSTATUSCODES = 1 << 5,
};

struct smtp_server_rules {
	const char *host;   /* name of this system; lives as long as the server
			     */
	unsigned offer;     /* enum smtp_server_offer */
	uint64_t size_max;  /* octets of a message; 0: no limit */
	uint32_t rcpt_max;  /* recipients of a transaction; 0: no limit */
	uint32_t error_max; /* refusals between two messages, the next one ends
			       the session; 0: no limit */
	/* For clients of the network: a command or a line of content ends with
	 * CRLF only, so that no other server can see another end of a message
	 * than this one; EHLO or HELO comes first; paths are in brackets; an
	 * address above ASCII asks for SMTPUTF8. Otherwise a bare LF is a line
	 * end, as programs send that talk to `sendmail -bs`. */
	bool strict;
};

enum smtp_server_state {
	SMTP_AT_START, /* before EHLO or HELO */
	SMTP_AT_READY,
	SMTP_AT_MAIL, /* a sender is given */
	SMTP_AT_RCPT, /* and at least one recipient */
	SMTP_AT_CONTENT,
	SMTP_AT_CLOSED, /* nothing is taken any more */
	SMTP_SERVER_NSTATES,
};

enum smtp_server_event {
	SMTP_SERVER_WANT,    /* all octets are taken: write `out`, feed more */
	SMTP_SERVER_WRITE,   /* `out` is full: write it, feed the rest */
	SMTP_SERVER_MAIL,    /* `mail` is the sender: 250, or a refusal */
	SMTP_SERVER_RCPT,    /* `rcpt` is a recipient: 250, or a refusal */
	SMTP_SERVER_DATA,    /* content is to come: 354, or a refusal */
	SMTP_SERVER_CONTENT, /* `content` is the next part of it */
	SMTP_SERVER_END,     /* the content is complete: 250, or a refusal */
	SMTP_SERVER_CLOSE,   /* write `out` and close */
};

/* An address as envelopes carry it; a quoted local part only where it must be.
 * "" is the null sender. */
struct smtp_server_address {
	char text[ADDRESS_MAX + 1];
	bool has_domain;
};

struct smtp_server_mail {
	struct smtp_server_address address;
	uint64_t size; /* SIZE in octets; 0: not given */
	bool utf8;     /* SMTPUTF8 */
	struct dsn_mail dsn;
};

struct smtp_server_rcpt {
	struct smtp_server_address address;
	struct dsn_rcpt dsn;
};

/* The fields in the first part are the owner's to read. */
struct smtp_server {
	enum smtp_server_state state;
	struct smtp_server_mail mail; /* valid until the next MAIL */
	struct smtp_server_rcpt rcpt; /* valid until the next RCPT */
	/* The next part of the message: without the dots of SMTP, lines ended
	 * by LF. Valid until the next call. */
	char content[SMTP_SERVER_CONTENT_MAX];
	size_t content_len;
	/* Replies that are not written yet. */
	char out[SMTP_SERVER_OUT_MAX];
	size_t out_len;
	/* private */
	struct smtp_server_rules rules;
	enum smtp_server_event asked; /* question without an answer, or 0 */
	uint32_t rcpts, refused_rcpts, errors;
	struct smtp_decode decode;
	bool line_too_long;
	size_t line_len;
	char line[SMTP_SERVER_LINE_MAX + 1];
};

/* The greeting is in `out`. */
void
smtp_server_init(struct smtp_server *s, const struct smtp_server_rules *rules);

/* Take octets up to the next event; *ret_used says how many. data may be
 * anything when len is 0. */
enum smtp_server_event smtp_server_feed(
    struct smtp_server *s, const char *data, size_t len, size_t *ret_used);

/* The answer to the question that was asked. code is 200 to 599; dsn is an
 * enhanced status code, or NULL for a code that has none, as 354. Octets of the
 * text that are not printable ASCII become `?`, and a long text is cut. 421
 * ends the session. */
void smtp_server_answer(struct smtp_server *s, unsigned code, const char *dsn,
    const char *fmt, ...) PRINTF(4, 5);

/* End the session with 421, for a reason of the owner, at any time. */
void smtp_server_shut(struct smtp_server *s, const char *dsn, const char *text);

/* The first len octets of `out` were written. */
void smtp_server_written(struct smtp_server *s, size_t len);

#endif
