/* deliver-smtp/encode.h - message content as it goes over the wire: a pure
 * streaming function. How the input is cut into slices never changes the
 * output. docs/DELIVERY.md, "Content", has the normal form:
 *
 *   CRLF, LF          CRLF
 *   a CR before none  a blank, as Postfix has it: CR and LF are never sent but
 *                     as CRLF (S1), and a line is never made of one (a header
 *                     field cannot be smuggled in)
 *   "." first         ".." (RFC 5321 section 4.5.2)
 *   a longer line     folded after at most 998 octets by CRLF and a blank, not
 *                     inside a UTF-8 character
 *   no last line end  it is added
 *   all else, NUL     as it is
 *
 * Cannot fail; owns nothing.
 */
#ifndef DELIVER_SMTP_ENCODE_H
#define DELIVER_SMTP_ENCODE_H

#include "base/base.h"

/* RFC 5321 section 4.5.3.1.6: 1000 with the line end. */
#define ENCODE_LINE_MAX 998
/* Room for what `len` octets can become; the end needs ENCODE_MAX(0). */
#define ENCODE_MAX(len) (3 * (len) + 16)

struct encode {
	size_t column; /* octets in this line, without the dot put before it */
	bool cr;       /* a CR came last, its fate depends on what follows */
};

/* Encode the next slice into out, which has room for ENCODE_MAX(len); the
 * number of octets written. */
size_t encode_feed(struct encode *e, const char *data, size_t len, char *out);
/* The last line end where it is missing, and the dot that ends the message. */
size_t encode_end(struct encode *e, char *out);

#endif
