/* deliver-local/maildir.h - put a message into a maildir, so that it survives
 * power loss from the moment that this says 0 (docs/DELIVERY.md).
 *
 *	write an unnamed file in new/, fsync it, link it to new/UNIQUE,
 *	fsync new/
 *
 * A reader sees a whole file or none. Where there are no unnamed files it is
 * written as tmp/UNIQUE and renamed. Whatever fails leaves nothing behind; an
 * fsync that failed is not tried again (D7). Run as the user that owns it.
 *
 * No link is followed from the first directory on that is not root's (walk.h),
 * and all work is done through the descriptors of the directories.
 */
#ifndef DELIVER_LOCAL_MAILDIR_H
#define DELIVER_LOCAL_MAILDIR_H

#include "deliver-local/message.h"
#include "spool/sys.h"

/* A file of ours in tmp/ this old was left by a process that died. */
#define MAILDIR_TMP_AGE (36 * 3600 * USEC_PER_SEC)

struct maildir {
	const struct spool_sys *sys; /* the seam for tests */
	const char *path;
	const char *host;  /* of this machine, for unique names */
	uint64_t delivery; /* counts the deliveries of this process' parent */
	bool sweep;        /* remove old files of ours from tmp/, of the first
			      thousand there, when the message is delivered */
	/* Optional: a step is done, or some of the content was written. An
	 * error ends the delivery, while the file has no name in new/ yet. */
	int (*progress)(void *arg);
	void *arg;
	const char *step; /* out: what was being done when it failed */
};

/* Makes the maildir (0700) when its parent exists. -errno, with ->step. */
int maildir_deliver(struct maildir *md, struct message *m);

#endif
