/* deliver-local/maildir.h - put a message into a maildir, so that it survives
 * power loss from the moment that this says 0 (docs/DELIVERY.md).
 *
 *	write an unnamed file in new/, fsync it, link it to new/UNIQUE,
 *	fsync new/
 *
 * A reader sees a whole file or none. Where there are no unnamed files it is
 * written as tmp/UNIQUE and renamed. Whatever fails leaves nothing behind; an
 * fsync that failed is not tried again (D7). Run as the user that owns it.
 */
#ifndef DELIVER_LOCAL_MAILDIR_H
#define DELIVER_LOCAL_MAILDIR_H

#include "deliver-local/message.h"
#include "spool/sys.h"

/* A file in tmp/ this old was left by somebody who died (maildir(5)). */
#define MAILDIR_TMP_AGE (36 * 3600 * USEC_PER_SEC)

struct maildir {
	const struct spool_sys *sys; /* the seam for tests */
	const char *path;
	const char *host;  /* of this machine, for unique names */
	uint64_t delivery; /* counts the deliveries of this process' parent */
	const char *step;  /* out: what was being done when it failed */
};

/* Makes the maildir (0700) when its parent exists. -errno, with ->step. */
int maildir_deliver(struct maildir *md, struct message *m);
/* Remove old regular files from tmp/, looking at a bounded number. */
void maildir_sweep(const char *path, usec_t now_wall);

#endif
