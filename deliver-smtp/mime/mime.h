/* deliver-smtp/mime/mime.h - content with octets above 127 for a server that
 * takes 7 bit alone (docs/DELIVERY.md, "The conversation").
 *
 *	mime.c        lines, parts and their fields, in both passes
 *	mime_field.c  the values of fields
 *	quoted.c      quoted-printable
 *
 * Two passes over the same octets, each in slices of any size: the survey finds
 * the parts that must change, and what cannot be changed; the conversion writes
 * the content anew. Both are pure functions of the octets. Memory is bounded,
 * whatever the content is.
 *
 * Soft: -ENOMEM. Nothing here logs; buffers are the caller's.
 */
#ifndef DELIVER_SMTP_MIME_MIME_H
#define DELIVER_SMTP_MIME_MIME_H

#include "base/buf.h"

/* ---- values of fields ---- */

/* RFC 2046 section 5.1.1: 70; some programs have longer ones. */
#define MIME_BOUNDARY_MAX 200

enum mime_kind {
	MIME_LEAF,
	MIME_MULTIPART,
	MIME_DIGEST,  /* a multipart whose parts are messages */
	MIME_SIGNED,  /* a multipart that a change would break */
	MIME_MESSAGE, /* a message within */
	MIME_OPAQUE,  /* may not be encoded, and is not looked into */
};
struct mime_type {
	enum mime_kind kind;
	char boundary[MIME_BOUNDARY_MAX + 1]; /* "": none, or no right one */
};
/* Of Content-Type, without line ends. */
void mime_type_parse(const char *value, size_t len, struct mime_type *ret_type);

enum mime_coding {
	MIME_CODING_NONE, /* not given, or 7bit */
	MIME_CODING_8BIT, /* or binary */
	MIME_CODING_DONE, /* base64, quoted-printable: of 7 bit by itself */
	MIME_CODING_UNKNOWN,
};
/* Of Content-Transfer-Encoding. */
enum mime_coding mime_coding_parse(const char *value, size_t len);

/* ---- quoted-printable (RFC 2045 section 6.7) ----
 *
 * LF and CRLF end a line; every other octet comes back as it was, a CR without
 * LF and blanks before a line end as well. No line has more than 76 octets or
 * begins with `-`, which could be taken for a boundary. */

struct quoted {
	size_t column;
	char blank; /* a blank or tab that waits for what follows; 0: none */
	bool cr;    /* the same of a CR */
};
/* Of one octet, at most. */
#define QUOTED_MAX 16
/* The number of octets that were written. */
size_t quoted_put(struct quoted *q, unsigned char c, char out[QUOTED_MAX]);
/* The octets that wait. */
size_t quoted_end(struct quoted *q, char out[QUOTED_MAX]);

/* ---- content ---- */

#define MIME_PARTS_MAX 4096 /* messages and parts that can be converted */
#define MIME_DEPTH_MAX 16

enum mime_fault {
	MIME_FINE,
	MIME_FAULT_HEADER,    /* the header of a part has such octets */
	MIME_FAULT_SIGNED,    /* within multipart/signed */
	MIME_FAULT_MALFORMED, /* where no encoding can be declared */
};

/* Findings of a survey. */
struct mime_plan {
	enum mime_fault fault;
	bool eight;       /* octets above 127 behind the header */
	bool header;      /* octets above 127 in the header of the message */
	bool header_utf8; /* and all of them are UTF-8 */
	uint32_t nparts;
	unsigned char change[MIME_PARTS_MAX / 8]; /* bits, in the order of
						   * headers */
};

struct mime;

/* plan NULL: a survey; else the conversion, and the plan lives as long.
 * -ENOMEM. */
int mime_new(const struct mime_plan *plan, struct mime **ret_mime);
void mime_free(struct mime **mime);
/* The next octets; of a conversion what can be written is appended to out, and
 * a survey has none (NULL). */
int mime_feed(struct mime *m, const char *data, size_t len, struct buf *out);
/* The content has ended. */
int mime_end(struct mime *m, struct buf *out);
/* Of a survey: nothing more of the header comes. */
bool mime_header_is_over(const struct mime *m);
/* Of a survey, complete after mime_end(). */
const struct mime_plan *mime_plan(const struct mime *m);

#endif
