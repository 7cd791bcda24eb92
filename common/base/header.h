/* base/header.h - what the header of a message says, from its first bytes. */
#ifndef BASE_HEADER_H
#define BASE_HEADER_H

#include "base/base.h"

#define HEADER_READ_MAX       8192 /* as much of a message is read for it */
#define HEADER_MESSAGE_ID_MAX 256  /* with its NUL, as it is told */

/* The text of the next field of this name, behind the blanks and folds at its
 * beginning; the text of a fold goes on behind the end of its line. after: the
 * text of the field before it, or NULL. NULL: no field follows. */
const char *header_find(
    const char *head, size_t len, const char *name, const char *after);
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
