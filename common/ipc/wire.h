/* ipc/wire.h - a channel in the event loop: frames in by callback, frames out
 * through a queue that waits when the socket is full. Bounded work a turn.
 *
 * The owner frees it; it owns the socket, and closes it when it is freed.
 * Callbacks may free the wire they are called for. After `closed` (end of file,
 * error) no callback is called, and sends return -EPIPE.
 */
#ifndef IPC_WIRE_H
#define IPC_WIRE_H

#include "ipc/msg.h"

struct event_base;
struct wire;

/* How frames leave. A wire that gathers also receives many in one call, which
 * takes a megabyte; a peer that is gone is heard of by `closed`. */
enum wire_manner {
	WIRE_AT_ONCE,
	WIRE_GATHERED, /* together, behind the turn of the loop */
	WIRE_BUNDLED,  /* the same, many in one datagram: the peer gathers */
};

struct wire_ops {
	enum wire_manner manner;
	/* A frame; a callback that keeps the descriptor sets it to -1, else it
	 * is closed. */
	void (*frame)(void *arg, struct wire *w, struct chan_frame *frame);
	/* Optional: in place of reading, the wire is paused, and the owner
	 * takes the frames when it wants them (wire_take()). */
	void (*ready)(void *arg, struct wire *w);
	/* Optional: a bad frame was dropped. */
	void (*bad)(void *arg, struct wire *w);
	void (*closed)(void *arg, struct wire *w);
	/* Optional: all queued frames have been sent. */
	void (*drained)(void *arg, struct wire *w);
};

/* -ENOMEM: the socket is still the caller's. */
int wire_new(struct event_base *base, int sock, const struct wire_ops *ops,
    void *arg, struct wire **ret_wire);
void wire_free(struct wire **w);
/* Never blocks. fd >= 0 goes along; the wire keeps a duplicate if it must
 * wait, the caller keeps its own. -ENOBUFS above the limit of 4 MiB queued. */
int wire_send(struct wire *w, const struct msg *msg, int fd);
/* The same, but the descriptor becomes the wire's: *fd is -1 then. After a
 * failure it is the caller's still. */
int wire_give(struct wire *w, const struct msg *msg, int *fd);
size_t wire_queued(const struct wire *w); /* bytes in the queue */
/* The peer has ended: take the frames that it had sent, paused or not, at most
 * this many, by the callbacks; the wire may be closed or freed afterwards. Of
 * one that stays, frames that are left come when it is paused and goes on. */
void wire_take_rest(struct wire *w, unsigned max);
/* Of a wire that is ready: gives at most this many frames, fewer when a
 * callback pauses it. True: there may be more, and the wire stays paused.
 * False: none is left and `ready` will tell of the next, or the wire is closed
 * or freed. */
bool wire_take(struct wire *w, unsigned max);
/* Stop and start reading (back-pressure). */
void wire_pause(struct wire *w, bool paused);

#endif
