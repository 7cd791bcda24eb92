/* spool/accept.h - accepting a message: one file, one fsync (docs/SPOOL.md).
 *
 *   accept_begin    check free space; open without a name
 *   …               write through accept_content() and a->writer
 *   accept_commit   trailer, lock, link into incoming/, one fsync: accepted
 *
 * Only this order of link and fsync survives power loss. Until accept_commit()
 * has returned 0 nothing is accepted, and a failure leaves nothing behind. A
 * failed fsync is not tried again: a second one may succeed without having
 * written.
 *
 * Soft: -errno. -ESHUTDOWN: the queue is sealed, maybe just now: choose
 * another. -ENOSPC, -EDQUOT, -EROFS, -EIO and so on: temporary, 4xx or 75;
 * -EFBIG, -EDESTADDRREQ, -EILSEQ, …: the message is refused for good.
 */
#ifndef SPOOL_ACCEPT_H
#define SPOOL_ACCEPT_H

#include "spool/queue_file.h"
#include "spool/room.h"
#include "spool/spool.h"

/* message_size_limit is for the submitted content. The fields that this system
 * puts in front of it (Received and the like) add at most this much, which any
 * check of an accepted message allows for. */
#define ACCEPT_ADDED_MAX (64 << 10)

struct accept_options {
	enum spool_dir dir; /* SPOOL_INCOMING, SPOOL_MAILDROP, SPOOL_PREPARED */
	const char *name;   /* in SPOOL_PREPARED (spool/prepared.h) */
	uint32_t flags;     /* enum queue_file_flags */
	uint64_t max_content;     /* with ACCEPT_ADDED_MAX; 0: no limit */
	struct room_want reserve; /* refuse with less free than this … */
	uint64_t announced;       /* … and the bytes to come; 0: unknown */
	bool strict;              /* sync the directory too */
	/* The queue was found open, and with ample room, just now:
	 * accept_begin() does not look again. accept_commit() looks at the seal
	 * all the same. */
	bool looked;
};

struct accept {
	const struct spool *sp;
	struct accept_options opt;
	struct queue_file_writer writer;
	int fd;
	uint32_t uid;
	uint64_t inode; /* of the open file, and its owner and mode then */
	uid_t owner;
	mode_t mode;
	bool ample;         /* found room for many more messages */
	uint64_t unchecked; /* written since the last check of free space */
	char temp_name[SPOOL_PATH_MAX]; /* "" with O_TMPFILE */
	char name[SPOOL_PATH_MAX];      /* once it is linked, else "" */
	bool accepted;
};

/* arrival_wall and uid go into the trailer and the queue id. -EACCES: this
 * process may not enter the directory. */
int accept_begin(struct accept *a, const struct spool *sp,
    const struct accept_options *opt, usec_t arrival_wall, uint32_t uid);
/* queue_file_add_content(), with a check of free space at each MiB.
 */
int accept_content(struct accept *a, const void *data, size_t len);
/* 0: accepted; *ret_id names it. The exclusive lock of the file is held from
 * before the link until accept_end(), so no reader takes it earlier. */
int accept_commit(struct accept *a, struct queue_id *ret_id);
/* Describes the failure of a call above, for the submitter: the text of
 * room_describe_queue() for a file system that takes no data, else
 * "queue3: No such file or directory". Valid until the queue is closed, also
 * after accept_end(). */
void
accept_describe(const struct accept *a, int error, char out[ROOM_TEXT_SIZE]);
/* Always called, also after a begin that failed: closes the file, and removes
 * it unless it was accepted. */
void accept_end(struct accept *a);

#endif
