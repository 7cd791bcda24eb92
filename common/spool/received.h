/* spool/received.h - the Received field that this system puts in front of what
 * is submitted: by which host, from which user, under which id, when. */
#ifndef SPOOL_RECEIVED_H
#define SPOOL_RECEIVED_H

#include "spool/accept.h"

#define RECEIVED_MAX 512

/* eol is that of the message: "\n" or "\r\n". The id is known before the file
 * has a name: its inode is. The length, or -errno. */
int received_format(const struct accept *a, const char *host, const char *eol,
    char out[RECEIVED_MAX]);

#endif
