/* base/header.h - what the header of a message says, from its first bytes. */
#ifndef BASE_HEADER_H
#define BASE_HEADER_H

#include "base/base.h"

#define HEADER_READ_MAX       8192 /* as much of a message is read for it */
#define HEADER_MESSAGE_ID_MAX 256  /* with its NUL, as it is told */

/* The first Message-ID of a header, without its brackets, as it stands there:
 * "" without one, and for one that the end of `head` cuts. A longer one is cut
 * to size - 1. */
void header_message_id(const char *head, size_t len, char *out, size_t size);
/* Does it say that no person waits for this message: a list's (List-*), bulk
 * (Precedence: bulk, list, junk), sent by a program (Auto-Submitted, but `no';
 * RFC 3834)? */
bool header_is_automatic(const char *head, size_t len);

#endif
