#include "deliver-local/room.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

int
mailbox_room_disk(struct mailbox_room *room, const struct spool_sys *sys,
    int fd, uint64_t len)
{
	struct statvfs v;

	if (sys->fstatvfs(fd, &v) < 0 || v.f_blocks == 0 ||
	    room_judge(&v, &room->reserve, len) != -ENOSPC)
		return 0;
	room_describe(
	    fd, "the file system", &room->reserve, len, -ENOSPC, room->text);
	return -ENOSPC;
}

int
mailbox_room_size(struct mailbox_room *room, uint64_t size, uint64_t len)
{
	if (room->size_limit == 0 ||
	    (size <= room->size_limit && len <= room->size_limit - size))
		return 0;
	snprintf(room->text, sizeof(room->text),
	    "the mailbox is full: %" PRIu64
	    " octets, and this message would exceed "
	    "mailbox_size_limit (%" PRIu64 "); remove mail from the mailbox, "
	    "or raise the limit",
	    size, room->size_limit);
	return -EFBIG;
}

uint64_t
mailbox_room_of_file(uint64_t size)
{
	return size < MAILBOX_ROOM_FILE ? MAILBOX_ROOM_FILE : size;
}
