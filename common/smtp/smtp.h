/* smtp/smtp.h - the words of SMTP and LMTP, for both ends: pure functions, no
 * socket, no clock. The server's side of a session is smtp/server.h.
 *
 *	reply.c   replies: reading them in bounded memory, status codes, text
 *	ehlo.c    the offer of a server in its answer to EHLO or LHLO
 *	path.c    an envelope address as the argument of MAIL and RCPT
 *	verp.h    a sender of its own for each recipient
 *	encode.c  message content as it goes over the wire
 *	decode.c  the same as it comes off the wire
 *
 * Soft: -errno. Nothing here logs; buffers are the caller's.
 */
#ifndef SMTP_SMTP_H
#define SMTP_SMTP_H

#include "base/address.h"
#include "base/buf.h"
#include "base/domain.h"

#include <sys/types.h>

/* ---- enhanced status codes (RFC 3463) ---- */

#define SMTP_DSN_SIZE 12 /* "5.999.999" with the NUL */

/* The length of the code at the start of s: a class of 2, 4 or 5, and twice a
 * dot with one to three digits, then a blank, a line end or the end of s. 0:
 * there is none. */
size_t smtp_dsn_len(const char *s, size_t len);

/* ---- replies ----
 *
 * A line is three digits, the first 2 to 5, then a blank, a tab or `-` and
 * text, or nothing; it ends with CRLF or a bare LF. Octets of a line above
 * SMTP_REPLY_LINE_MAX are dropped, as Postfix does. Anything else, a code that
 * changes within a reply, a line above SMTP_REPLY_TEXT_MAX octets or a reply
 * above SMTP_REPLY_LINES_MAX lines or SMTP_REPLY_TEXT_MAX octets is -EPROTO:
 * the two sides do not understand each other and the connection must be
 * dropped.
 *
 * Text is kept as it came; smtp_reply_text() cleans it. The parser owns the
 * reply, which is valid until the next smtp_reply_feed(). */

#define SMTP_REPLY_LINE_MAX  2048 /* RFC 5321: 512; extensions have more */
#define SMTP_REPLY_LINES_MAX 256
#define SMTP_REPLY_TEXT_MAX  16384

struct smtp_reply {
	unsigned code;   /* 200 to 599 */
	struct buf text; /* after the code, lines ended by LF */
	unsigned lines;
};

struct smtp_reply_parser {
	struct smtp_reply reply;
	bool whole; /* reply was given out, the next octet begins another */
	size_t line_len; /* without the octets that were dropped */
	size_t dropped;
	char line[SMTP_REPLY_LINE_MAX];
	const char *error; /* the fault, for -EPROTO */
};

void smtp_reply_init(struct smtp_reply_parser *p);
void smtp_reply_done(struct smtp_reply_parser *p);

/* Take octets up to the end of one reply. 1: p->reply is whole, *ret_used
 * octets were taken; 0: all were taken, more are needed; -EPROTO as above,
 * -ENOMEM. */
int smtp_reply_feed(struct smtp_reply_parser *p, const char *data, size_t len,
    size_t *ret_used);

/* The enhanced status code (RFC 2034) that the reply carries, if its class is
 * the code's, else one that fits the code (RFC 3463, RFC 5248). */
void
smtp_reply_dsn(const struct smtp_reply *reply, char ret_dsn[SMTP_DSN_SIZE]);
/* Append "550 5.1.1 text": lines joined by a blank, codes that repeat left
 * out, cleaned, at most max octets of text. -ENOMEM. */
int
smtp_reply_text(const struct smtp_reply *reply, size_t max, struct buf *out);

/* Append the lines of a reply as a server sends these, "250-text" and at last
 * "250 text", with LF as their ends. -ENOMEM. */
int
smtp_reply_lines(unsigned code, const char *text, size_t len, struct buf *out);

/* ---- EHLO ---- */

/* The mechanisms of AUTH that are known, the one to be preferred first. */
enum smtp_auth {
	SMTP_AUTH_SCRAM = 1 << 0, /* SCRAM-SHA-256, RFC 7677 */
	SMTP_AUTH_OAUTHBEARER = 1 << 1,
	SMTP_AUTH_XOAUTH2 = 1 << 2,
	SMTP_AUTH_PLAIN = 1 << 3,
	SMTP_AUTH_LOGIN = 1 << 4,
};
#define SMTP_AUTH_ALL ((1u << 5) - 1)

struct smtp_ehlo {
	bool pipelining;   /* RFC 2920 */
	bool eight_bit;    /* 8BITMIME, RFC 6152 */
	bool utf8;         /* SMTPUTF8, RFC 6531 */
	bool dsn;          /* DSN, RFC 3461 */
	bool chunking;     /* CHUNKING, RFC 3030 */
	bool starttls;     /* RFC 3207 */
	unsigned auth;     /* RFC 4954: enum smtp_auth, those that we know */
	bool size;         /* SIZE, RFC 1870 */
	uint64_t size_max; /* 0: no limit is told */
};

/* Keywords that are read have numbers from 0 on, below 32. -ENOENT. */
int smtp_keyword_find(const char *name, size_t len);
/* NULL: there is none of this number. */
const char *smtp_keyword_name(unsigned keyword);

/* The bit of a mechanism of AUTH, by its name without case; 0: it is not known.
 */
unsigned smtp_auth_find(const char *name, size_t len);
/* The name of the mechanism with bit 1 << number; NULL: there is none. */
const char *smtp_auth_name(unsigned number);

/* Keywords without case; a keyword that is unknown or not well-formed is
 * ignored, and so are those whose bits are in `ignored`. */
void smtp_ehlo_parse(const struct smtp_reply *reply, uint32_t ignored,
    struct smtp_ehlo *ret_ehlo);

/* ---- paths ---- */

/* Append `<address>`; "" gives `<>`. A local part that is neither a dot-string
 * nor a quoted string (RFC 5321 section 4.1.2) is quoted, so that no address
 * can end the path and begin a parameter. The dot of the root behind the domain
 * is left out. -EINVAL, nothing added: the domain has an octet that no quoting
 * makes fit; -ENOMEM. */
int smtp_path_add(struct buf *out, const char *address);
/* Append a local part that was given without quotes, quoted if it is no
 * dot-string. -ENOMEM. */
int smtp_local_add(struct buf *out, const char *text, size_t len);
/* Would smtp_path_add() take the address? */
bool smtp_path_is_fit(const char *address);
/* Does the address need SMTPUTF8 (RFC 6531)? */
bool smtp_path_is_utf8(const char *address);
/* The address for a server without SMTPUTF8, with its domain in A-labels (RFC
 * 6531 section 3.2). -EINVAL: it has none, with the reason in *ret_why, which
 * is NULL for a local part in UTF-8; -ENOMEM. */
int smtp_path_to_ascii(const char *address, char out[ADDRESS_FOLDED_MAX + 1],
    const char **ret_why);

/* Read the path at the start of s into ret_address: `<>` is "", a source route
 * is left out, a quoted local part that needs no quotes loses the quotes, and a
 * domain loses the dot of the root. *ret_domain: the address has a domain.
 * With `bare` an address without brackets is taken, too: it ends before a
 * blank. Dots in a local part may stand anywhere. The number of octets read;
 * -EINVAL: not a path (RFC 5321 section 4.1.2); -ENAMETOOLONG: an address above
 * ADDRESS_MAX. */
ssize_t smtp_path_parse(const char *s, bool bare,
    char ret_address[ADDRESS_MAX + 1], bool *ret_domain);

/* ---- content ----
 *
 * How the input is cut into slices never changes the output. docs/DELIVERY.md,
 * "Content", has the normal form:
 *
 *   CRLF, LF          CRLF
 *   a CR before none  a blank, as Postfix has it: CR and LF are never sent but
 *                     as CRLF, and a line is never made of one (a header field
 *                     cannot be smuggled in)
 *   "." first         ".." (RFC 5321 section 4.5.2), but not in a chunk
 *   a longer line     of the header: CRLF before a blank that is there, so that
 *                     unfolding gives the field back. Where no blank is in
 *                     reach, and in the body: CRLF and a blank after at most
 *                     998 octets, not inside a UTF-8 character
 *   no last line end  CRLF is added
 *   all else, NUL     as it is
 *
 * Cannot fail; owns nothing. */

/* RFC 5321 section 4.5.3.1.6: 1000 with the line end. */
#define SMTP_LINE_MAX        998
/* Room for `len` octets, encoded, and for a line that was held; the end needs
 * SMTP_ENCODE_MAX(0). */
#define SMTP_ENCODE_MAX(len) (3 * (len) + SMTP_LINE_MAX + 16)

struct smtp_encode {
	bool chunk;    /* set by the caller, for BDAT: nothing is doubled */
	bool cr;       /* a CR came last; the next octet decides its fate */
	bool body;     /* the header has ended */
	bool fields;   /* a line of the header has ended */
	bool folded;   /* the held line was cut off the line put last */
	size_t column; /* octets in a line of the body, without the dot put
			* before it */
	size_t held;   /* octets in the held line */
	size_t blanks; /* blanks at the beginning of the held line */
	char hold[SMTP_LINE_MAX]; /* line of the header, from its beginning or
				   * the last fold on */
};

/* Encode the next slice into out, which has room for SMTP_ENCODE_MAX(len); the
 * number of octets written. */
size_t smtp_encode_feed(
    struct smtp_encode *e, const char *data, size_t len, char *out);
/* The last line end where it is missing, and the dot that ends the message; a
 * chunk has none. */
size_t smtp_encode_end(struct smtp_encode *e, char *out);

/* Content off the wire: lines end with LF, the dot that begins a line is left
 * out, and a line of one dot is the end (RFC 5321 section 4.5.2). A line ends
 * with CRLF. A CR or LF that is no part of CRLF is an octet of the line, so
 * that only CRLF, a dot and CRLF end a message; with `bare_lf` LF alone ends a
 * line, too. Cannot fail; owns nothing. */
struct smtp_decode {
	bool bare_lf; /* set by the caller */
	bool end;     /* the line of one dot was read */
	int state;    /* private; 0: at the start of a line */
};

/* Decode the next slice into out, which has room for at least two octets. The
 * number of octets written; *ret_used is the number taken: all, unless `out`
 * is full or the end was read. */
size_t smtp_decode_feed(struct smtp_decode *d, const char *data, size_t len,
    char *out, size_t room, size_t *ret_used);

#endif
