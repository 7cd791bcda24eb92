/* qctl/read/peer.h - a connection to the queue-send of a queue, for acts and
 * for questions. Soft: -errno. */
#ifndef QCTL_READ_PEER_H
#define QCTL_READ_PEER_H

#include "ipc/msg.h"
#include "spool/act.h"

struct peer {
	int fd;
	usec_t limit; /* of silence */
	/* Of acts: above 1 the message was refused with -EAGAIN, and is asked
	 * about again, so that queue-send counts it once. */
	uint64_t serial;
};

/* The fields of a frame that name a message. */
#define PEER_ID(id)                                               \
	.arrival_wall = (id)->arrival_wall, .nonce = (id)->nonce, \
	.queue = (id)->queue, .inode = (id)->inode

/* -ENOENT, -ECONNREFUSED: no queue-send has the queue. -EACCES: the directory
 * of its socket may not be entered. */
int peer_connect(struct peer *p, const struct spool *sp, usec_t limit);
void peer_close(struct peer *p);
/* Sends an act; the answers come in the same order. A connection that is
 * refused is closed behind the reason. -ETIMEDOUT, -EPIPE, or that reason. */
int peer_act(struct peer *p, const struct msg *msg);
/* The same, and takes the answer, which says nothing. */
int peer_ask(struct peer *p, const struct msg *msg);
/* 0: an answer. The connection is refused: -EPERM: this user may not act;
 * -EUSERS: no place; -ETIME: silent for too long. */
int peer_answer(struct peer *p, int *ret_error, uint32_t *ret_running);
/* Any frame out, any frame in; its descriptor is the caller's. */
int peer_put(struct peer *p, const struct msg *msg);
int peer_take(struct peer *p, struct chan_frame *frame);
/* For the log of queue-send. */
int peer_end(struct peer *p, enum spool_act act, const char *selection);

#endif
