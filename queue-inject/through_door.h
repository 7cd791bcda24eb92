/* queue-inject/through_door.h - a message through queue-drop, for a user who
 * may not write the queue (docs/DOOR.md). The door writes the Received field
 * and judges addresses, sizes and shares; its reason is passed on.
 *
 * Soft: -errno of the door's answer: -ENOSPC and -ESHUTDOWN of this queue,
 * -EUSERS a share of this user, -EFBIG, -E2BIG too many recipients, -EINVAL an
 * address, -EDESTADDRREQ, -ENOENT no door is to be found, -EIO whatever else,
 * the door's death too. The text is in `reason`. */
#ifndef QUEUE_INJECT_THROUGH_DOOR_H
#define QUEUE_INJECT_THROUGH_DOOR_H

#include "config/conf.h"
#include "spool/id.h"

#include <sys/types.h>

struct through_door {
	pid_t pid;        /* 0: there is none */
	int in, out, err; /* pipes to it; -1 */
	struct buf content;
	char reason[160];
};

/* The program lies in program_dir, beside this one, or in libexec. */
int through_door_begin(
    struct through_door *t, const struct conf *conf, uint32_t queue);
int through_door_content(struct through_door *t, const void *data, size_t len);
int
through_door_sender(struct through_door *t, const char *address, size_t len);
int through_door_rcpt(struct through_door *t, const char *address, size_t len);
int through_door_commit(struct through_door *t, struct queue_id *ret_id);
/* Always: a message that is not committed is not accepted. */
void through_door_end(struct through_door *t);

#endif
