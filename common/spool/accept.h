/* spool/accept.h - accepting a message: one file, one fsync (docs/SPOOL.md).
 *
 *   accept_begin    look at free space; open without a name
 *   …               write through accept_content() and a->writer
 *   accept_commit   trailer, lock, link into incoming/, one fsync: accepted
 *
 * The order of link and fsync is the point: only this one survives power
 * loss. Until accept_commit() has returned 0 nothing was accepted, and
 * whatever fails leaves nothing behind. An fsync that failed is never tried
 * again as proof (D7).
 *
 * Soft: -errno. -ESHUTDOWN: the queue is closed, or was meanwhile: another.
 * -ENOSPC, -EDQUOT, -EROFS, -EIO and so on: temporary, say 4xx
 * or 75; -EFBIG, -EDESTADDRREQ, -EILSEQ, …: the message is refused for good.
 */
#ifndef SPOOL_ACCEPT_H
#define SPOOL_ACCEPT_H

#include "spool/queue_file.h"
#include "spool/spool.h"

/* message_size_limit is for what was submitted; what this system puts in front
 * of it (Received and the like) comes on top, at most so much. Whoever judges
 * an accepted message by the limit allows for it, too. */
#define ACCEPT_ADDED_MAX (64 << 10)

struct accept_options {
	enum spool_dir dir;      /* SPOOL_INCOMING or SPOOL_MAILDROP */
	uint64_t max_content;    /* with ACCEPT_ADDED_MAX, 0: none */
	uint64_t reserve_bytes;  /* refuse with less free than this … */
	uint64_t reserve_inodes; /* … or than this (f_favail, D5) */
	uint64_t announced;      /* … and what is still to come; 0: unknown */
	bool strict;             /* sync the directory too */
};

struct accept {
	const struct spool *sp;
	struct accept_options opt;
	struct queue_file_writer writer;
	int fd;
	uint32_t uid;
	uint64_t unlooked; /* written since the last look at the disk */
	char temp_name[SPOOL_PATH_MAX]; /* "" with O_TMPFILE; else beside */
	char name[SPOOL_PATH_MAX];      /* once it is linked, else "" */
	bool accepted;
};

/* arrival_wall and uid go into the trailer and the queue id. -EACCES: this
 * process may not enter the directory. */
int accept_begin(struct accept *a, const struct spool *sp,
    const struct accept_options *opt, usec_t arrival_wall, uint32_t uid);
/* queue_file_add_content(), with a look at what the disk has left at each MiB.
 */
int accept_content(struct accept *a, const void *data, size_t len);
/* 0: accepted; *ret_id names it. The exclusive lock of the file is held from
 * before the link until accept_end(), so no reader takes it earlier. */
int accept_commit(struct accept *a, struct queue_id *ret_id);
/* Always, also after a begin that failed: closes; removes what was not
 * accepted. */
void accept_end(struct accept *a);

#endif
