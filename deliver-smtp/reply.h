/* deliver-smtp/reply.h - replies of an SMTP server, in bounded memory whatever
 * it sends (N6).
 *
 * A line is three digits, the first 2 to 5, then a blank or `-` and text, or
 * nothing; it ends with CRLF or a bare LF. Anything else, a
 * code that changes within a reply, a line above REPLY_LINE_MAX or a reply
 * above REPLY_LINES_MAX lines or REPLY_TEXT_MAX octets is -EPROTO: the two
 * sides do not understand each other and the connection must be dropped.
 *
 * Text is kept as it came; reply_text() cleans it. The parser owns the reply,
 * which is valid until the next reply_feed().
 */
#ifndef DELIVER_SMTP_REPLY_H
#define DELIVER_SMTP_REPLY_H

#include "base/buf.h"

#define REPLY_LINE_MAX  2048 /* RFC 5321: 512; extensions have longer ones */
#define REPLY_LINES_MAX 256
#define REPLY_TEXT_MAX  16384

#define DSN_SIZE        12 /* "5.999.999" with the NUL */

struct reply {
	unsigned code;   /* 200 to 599 */
	struct buf text; /* after the code, lines ended by LF */
	unsigned lines;
};

struct reply_parser {
	struct reply reply;
	bool whole; /* reply was given out, the next octet begins another */
	size_t line_len;
	char line[REPLY_LINE_MAX];
	const char *error; /* what was wrong, for -EPROTO */
};

void reply_init(struct reply_parser *p);
void reply_done(struct reply_parser *p);

/* Take octets up to the end of one reply. 1: p->reply is whole, *ret_used
 * octets were taken; 0: all were taken, more are needed; -EPROTO as above,
 * -ENOMEM. */
int reply_feed(
    struct reply_parser *p, const char *data, size_t len, size_t *ret_used);

/* The enhanced status code (RFC 2034) that the reply carries, if its class is
 * the code's, else one that fits the code (RFC 3463, RFC 5248). */
void reply_dsn(const struct reply *reply, char ret_dsn[DSN_SIZE]);
/* Append "550 5.1.1 text": lines joined by a blank, codes that repeat left
 * out, cleaned, at most max octets of text. -ENOMEM. */
int reply_text(const struct reply *reply, size_t max, struct buf *out);

#endif
