/* ipc/outbox.h - datagrams that wait to be sent, in order; inside of the
 * module.
 *
 * A datagram is one frame, with the descriptor that goes along; or, in an
 * outbox that bundles, a frame and those behind it that have no descriptor, as
 * long as fewer than CHAN_BUNDLE bytes stand before. A system call and a buffer
 * of the kernel are then for many frames.
 *
 * The outbox owns its frames and descriptors. Soft: -ENOMEM; -ENOBUFS above
 * OUTBOX_MAX; what msg_encode() returns. Nothing has changed then.
 */
#ifndef IPC_OUTBOX_H
#define IPC_OUTBOX_H

#include "ipc/msg.h"

#include <sys/queue.h>

#define OUTBOX_MAX ((size_t)4 << 20) /* bytes that wait */

struct datagram;

struct outbox {
	TAILQ_HEAD(datagram_list, datagram) list;
	size_t bytes; /* of all frames */
	bool bundles;
};

void outbox_init(struct outbox *o, bool bundles);
/* Drop all, and close their descriptors. The outbox can be used again. */
void outbox_clear(struct outbox *o);
bool outbox_is_empty(const struct outbox *o);
/* *fd >= 0 goes along, and is the outbox's, and -1, after a success. */
int outbox_put(struct outbox *o, const struct msg *msg, int *fd);
/* Send at most `max` datagrams, in few calls. 0, or -errno of the first that
 * could not be sent, which waits. */
int outbox_send(struct outbox *o, int sock, unsigned max);

#endif
