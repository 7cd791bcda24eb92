/* base/header.h - what the header of a message says, from its first bytes. */
#ifndef BASE_HEADER_H
#define BASE_HEADER_H

#include "base/base.h"

#define HEADER_READ_MAX       8192 /* as much of a message is read for it */
#define HEADER_MESSAGE_ID_MAX 256  /* with its NUL, as it is told */

/* The end of the first line of a message: "\r\n", or "\n", also without one. */
const char *header_line_end(const char *data, size_t len);

struct header_field {
	const char *name;
	size_t name_len;
	const char *value; /* behind the colon, with folds and line end */
	size_t value_len;
	const char *raw; /* all of it */
	size_t raw_len;
};

/* Read the field that the text begins with (RFC 5322 section 2.2, with the
 * blanks before the colon of section 4.5), to the end of its last line or of
 * the text. False: the first line is no field. */
bool
header_field_read(const char *text, size_t len, struct header_field *ret_field);
/* Compares without case. */
bool header_field_is(const struct header_field *field, const char *name);

/* The text of the next field of this name, behind the blanks and folds at its
 * beginning; the text of a fold goes on behind the end of its line. after: the
 * text of the field before it, or NULL. NULL: no field follows. */
const char *
header_find(const char *head, size_t len, const char *name, const char *after);
/* The first Message-ID of a header, without its brackets and, within them,
 * folds: "" without one, and for one that the end of `head` cuts. A longer one
 * is cut to size - 1. */
void header_message_id(const char *head, size_t len, char *out, size_t size);
/* Does it say that no person waits for this message: a list's (List-*), bulk
 * (Precedence: bulk, list, junk), sent by a program (Auto-Submitted, but `no';
 * RFC 3834)? */
bool header_is_automatic(const char *head, size_t len);

/* Counts the Received fields of a header that comes in pieces of any size. A
 * field counts when its colon is there. */
struct header_hops {
	uint32_t count;
	bool ended; /* the empty line was seen: more pieces change nothing */
	/* private */
	uint8_t matched; /* letters of the field's name */
	bool skips;      /* the rest of this line */
	bool cr;         /* so far the line is a CR */
};
/* A zeroed struct begins a header. */
void header_hops_add(struct header_hops *h, const char *data, size_t len);

#endif
