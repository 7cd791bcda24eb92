/* deliver-local/room.h - room for a message in a mailbox: the reserve of the
 * file system, and mailbox_size_limit.
 *
 * Soft: -errno. A refusal sets ->text, any other error does not. Never logs.
 */
#ifndef DELIVER_LOCAL_ROOM_H
#define DELIVER_LOCAL_ROOM_H

#include "spool/room.h"
#include "spool/sys.h"

struct mailbox_room {
	struct room_want reserve;  /* space that stays free */
	uint64_t size_limit;       /* octets of the mailbox; 0: no limit */
	char text[ROOM_TEXT_SIZE]; /* out: reason of a refusal, else "" */
};

/* A file of a maildir counts as this many octets at least, so that the limit of
 * octets is one of files as well. */
#define MAILBOX_ROOM_FILE 4096

/* Checks that a message of len octets leaves the reserve of the file system of
 * fd free. -ENOSPC. A file system that is read-only, or that does not tell its
 * size, is not judged: writing shows the error. */
int mailbox_room_disk(struct mailbox_room *room, const struct spool_sys *sys,
    int fd, uint64_t len);
/* Checks that a mailbox of `size` octets may get len more. -EFBIG. */
int mailbox_room_size(struct mailbox_room *room, uint64_t size, uint64_t len);
/* Octets that a file of this size counts as in a maildir. */
uint64_t mailbox_room_of_file(uint64_t size);

#endif
