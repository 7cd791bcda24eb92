/* queue-inject/header.h - where the header of a message ends, and its fields.
 *
 * The header is gathered in one buffer of at most HEADER_MAX bytes, fed in
 * pieces of any size; nothing else of a message is ever held as a whole. It
 * ends at the first empty line, or before the first line that is not a field
 * (RFC 5322 section 2.2, with the blanks before the colon of section 4.5); a
 * line that begins with a blank belongs to the field before it, and is body
 * where there is none. Lines end in LF or CRLF; every byte is kept as it came.
 *
 * A first line "From …" in front of a field is the separator line of a
 * mailbox file: it is passed over. In front of anything else it is body.
 *
 * data:  [mailbox line] fields [empty line] [body that was already taken]
 *        0..begin       begin..end         body..data.len
 *
 * Soft: -EFBIG above HEADER_MAX, -ENOMEM. The owner calls header_done().
 */
#ifndef QUEUE_INJECT_HEADER_H
#define QUEUE_INJECT_HEADER_H

#include "base/buf.h"

#define HEADER_MAX      ((size_t)1 << 20)
#define HEADER_NAME_MAX 998 /* a line without a colon until here is body */

struct header {
	struct buf data;
	size_t begin, end; /* of the fields, valid when `complete` */
	size_t body;       /* where the body begins in data */
	bool complete;     /* the end was found */
	bool separated;    /* by an empty line */
	/* private */
	int state;
	size_t line; /* where the line that is being read begins */
};

/* Take from len bytes; *ret_used says how many, fewer than len only when the
 * header is complete. */
int
header_feed(struct header *h, const char *data, size_t len, size_t *ret_used);
/* The message ended. */
void header_finish(struct header *h);
void header_done(struct header *h);

struct header_field {
	const char *name; /* points into the header, as everything here */
	size_t name_len;
	const char *value; /* behind the colon, with folds and line end */
	size_t value_len;
	const char *raw; /* all of it */
	size_t raw_len;
};

/* The next field; *pos is 0 at first. False: there is none. */
bool header_next(
    const struct header *h, size_t *pos, struct header_field *ret_field);
/* Compares without case. */
bool header_field_is(const struct header_field *field, const char *name);
/* "\r\n" when the first line ends so, else "\n". */
const char *header_eol(const struct header *h);

#endif
