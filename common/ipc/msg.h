/* ipc/msg.h - structs and codec of msg.def, and the channel they travel on.
 *
 * struct msg_NAME for each row; strings are (pointer, length) pairs that on
 * decoding point into the frame. enum msg_type has MSG_NAME = number.
 *
 * Soft: -EBADMSG for a record that is short, long, of an unknown number, or
 * has a NUL in a string; -EMSGSIZE for one that is too large to send. No byte
 * from a peer ends a process.
 */
#ifndef IPC_MSG_H
#define IPC_MSG_H

#include "base/buf.h"

#include <string.h>

#define MSG_FRAME_MAX        65536
/* Link PREP (docs/QUEUE.md): the most messages of incoming/ that queue-send has
 * given credit for and not moved, and the most PREPAREs without an answer. */
#define MSG_PREP_WINDOW      64
/* One transport in the census of MESSAGE: four u32. */
#define MSG_CENSUS_ROW       16
/* Destinations that MESSAGE names at most, and the head of each name: two u32.
 */
#define MSG_DESTINATIONS_MAX 16
#define MSG_DESTINATION_HEAD 8
/* Recipients that MESSAGE brings along: so many at most, of so many bytes. */
#define MSG_FEW_RCPTS        20
#define MSG_FEW_BYTES        1024

struct msg_str {
	const char *data; /* not ended by NUL */
	size_t len;
};
typedef uint8_t msg_u8; /* names for the list only */
typedef uint32_t msg_u32;
typedef uint64_t msg_u64;
typedef int32_t msg_i32;
typedef int64_t msg_i64;
typedef struct msg_str msg_str;
typedef struct msg_str msg_blob;

enum msg_type {
#define MSG(name, number, link, fields) MSG_##name = number,
#include "ipc/msg.def"
#undef MSG
};

#define F(type, name) msg_##type name;
#define MSG(name, number, link, fields) \
	struct msg_##name {             \
		fields                  \
	};
#include "ipc/msg.def"
#undef MSG
#undef F

/* Any message. */
struct msg {
	enum msg_type type;
	union {
#define MSG(name, number, link, fields) struct msg_##name name;
#include "ipc/msg.def"
#undef MSG
	} u;
};

/* The channel of a message (msg.def). */
enum msg_link {
	MSG_LINK_SUP,
	MSG_LINK_PREP,
	MSG_LINK_WORK,
	MSG_LINK_ASK,
	MSG_LINK_ACT,
};

#define MSG_S(s) ((struct msg_str){ (s), strlen(s) })

/* Append the frame of msg to out, which is left as it was on failure. */
int msg_encode(const struct msg *msg, struct buf *out);
/* One frame of exactly len bytes. */
int msg_decode(const void *frame, size_t len, struct msg *ret_msg);
/* "LINK", for logs; "?" for a number that is not in the list. */
const char *msg_name(enum msg_type type);
/* The channel that a message of the list travels on. */
enum msg_link msg_link(enum msg_type type);

/* ---- channel: a SOCK_SEQPACKET pair, one frame or several a datagram ---- */

/* Both ends non-blocking and close-on-exec. */
int chan_pair(int ret_fds[2]);
/* Send, with a descriptor when fd >= 0 (the caller keeps its own). -EAGAIN:
 * full, try again when writable; -EPIPE: the peer is gone; -ETOOMANYREFS,
 * -ENOBUFS, -ENOMEM: try again after a while. */
int chan_send(int sock, const struct msg *msg, int fd);
/* Send frames that msg_encode() made, one behind the other. */
int chan_send_frames(int sock, const void *frames, size_t len, int fd);
#define CHAN_MANY 16 /* datagrams that one call sends or receives at most */
/* Frames that msg_encode() made; fd as in chan_send(). */
struct chan_out {
	const struct buf *frames;
	int fd;
};
/* Several datagrams: how many were sent, from the first on, or -errno of the
 * first. */
int chan_send_many(int sock, const struct chan_out out[], unsigned count);
/* A sender puts a frame behind others while these are fewer bytes. */
#define CHAN_BUNDLE       16384
#define CHAN_DATAGRAM_MAX (MSG_FRAME_MAX + CHAN_BUNDLE)
/* A frame, and those that came behind it in one datagram. Large: few for all
 * channels of a process; zero before it is used for a channel. */
struct chan_frame {
	struct msg msg;  /* points into data */
	int fd;          /* -1, or a descriptor that is now the caller's */
	size_t at, left; /* of data: what comes behind this frame */
	char data[CHAN_DATAGRAM_MAX];
};
/* 1: a frame, the next of the datagram that *frame has, or else the first of
 * the next one; 0: end of file, after all frames of the peer; -EAGAIN;
 * -EBADMSG: a bad frame with all behind it in its datagram (or a datagram with
 * more than one descriptor) was taken and dropped, descriptors in it closed. fd
 * is -1 for all but the first frame of a datagram, and for one whose descriptor
 * could not be received because this process has no free number. */
int chan_recv(int sock, struct chan_frame *frame);
/* The first frames of as many datagrams as there are, at most CHAN_MANY: their
 * number, and of each 1, 0 or -EBADMSG, which is what chan_recv() would have
 * returned. 0: end of file; -errno. With fewer than `max` there are no more. */
int chan_recv_many(
    int sock, struct chan_frame frames[], int ret_results[], unsigned max);
/* The next frame of its datagram: 1, -EBADMSG, or 0: there is none. */
int chan_next(struct chan_frame *frame);

#endif
