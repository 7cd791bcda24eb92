/* deliver-smtp/connection/connection.h - a dialogue on a socket, in the event
 * loop.
 *
 *	stream.c   octets of a connection: nothing else reads or writes them
 *	talk.c     one dialogue over one stream
 *	content.c  the content of the message, encoded, in slices
 *
 * Soft: -errno. Callbacks come from the loop, never from inside the call that
 * begins the work, and not after the work was cancelled.
 */
#ifndef DELIVER_SMTP_CONNECTION_CONNECTION_H
#define DELIVER_SMTP_CONNECTION_CONNECTION_H

#include "deliver-smtp/dialog/dialog.h"
#include "deliver-smtp/mime/rewrite.h"
#include "deliver-smtp/protection/tls.h"

struct event_base;

/* ---- content.c: memory does not grow with the message ---- */

/* Octets read from the file for one slice; a quarter of them where they are
 * converted, which makes up to four octets of one, and more of tiny parts. */
#define CONTENT_SLICE 32768

/* Where the content is; data and fd are the caller's. */
struct content_source {
	const char *data; /* all of it, or NULL: in the file */
	int fd;
	uint64_t off, len; /* in the file; of both */
};

struct content {
	struct content_source from; /* the part that is left */
	bool ended;                 /* all was put, the dot too */
	/* Of a chunk: octets that may still come, and those that came. */
	uint64_t announced, came;
	/* The header with other addresses of senders, in front of `from`. */
	struct buf header;
	size_t header_at;
	struct smtp_encode encode;
	/* The survey, which has the plan; the conversion by it. NULL: none. */
	struct mime *survey, *conversion;
	struct buf plain; /* a slice that was converted, and not yet encoded */
	struct buf measured; /* a slice that is only counted */
};

void content_begin(struct content *c, const struct content_source *from);
void content_done(struct content *c);
/* Behind content_begin() or content_convert(): the senders of the header get
 * their other addresses, before the content is looked through, counted or sent.
 * Without rows nothing changes. -errno as of content_add(). */
int content_rewrite(struct content *c, const struct sender_map *map);
/* Look through the next slice. 1: it was the last one that matters; whole: not
 * only the header. 0: more is to come; -errno as below. */
int content_survey(struct content *c, bool whole);
/* The findings. */
struct dialog_survey content_surveyed(const struct content *c);
/* Behind a whole survey, from the beginning again: convert. -ENOMEM. */
int content_convert(struct content *c, const struct content_source *from);
/* Behind one of both: a chunk for BDAT, without dots. With `announced` octets:
 * content_add() fails with -EBADMSG before one more, or with one less. */
#define CONTENT_UNKNOWN UINT64_MAX
void content_as_chunk(struct content *c, uint64_t announced);
/* Of a chunk of unknown length: encode the next slice and count it. 1: that was
 * the last one, *ret_size in all; 0: more is to come; -errno as below. */
int content_measure(struct content *c, uint64_t *ret_size);
/* Append the next slice to out, after the last one the dot. -errno: the file
 * cannot be read (-ENODATA: it is shorter than it was), -ENOMEM; the message
 * must not be ended then. */
int content_add(struct content *c, struct buf *out);

/* ---- stream.c ----
 *
 * Everything that goes over a connection passes through here, and TLS lies
 * below these functions. Octets are sent at once as far as the socket takes
 * them: one write for what waits, with TLS too, and one read for each turn of
 * the loop. Callbacks may close the stream. */

struct stream;

struct stream_ops {
	/* Octets, the end or an error can be read. */
	void (*readable)(void *arg);
	/* 0: all that waited has gone, or stream_ask() is answered; -errno:
	 * nothing can be sent any more. */
	void (*written)(void *arg, int error);
	/* The end of a handshake: 0, or -errno, -EPROTO with tls_why(). */
	void (*secured)(void *arg, int error);
};

/* The socket is the stream's from here on; on failure (-ENOMEM) too. */
int stream_new(struct event_base *base, int sock, const struct stream_ops *ops,
    void *arg, struct stream **ret_stream);
/* The connection is gone when it returns. `last`, or NULL: octets that are sent
 * before if the socket takes them. */
void stream_close(struct stream **stream, const struct buf *last);
/* One read. 0: nothing is there now; -EPIPE: the end; -errno. */
ssize_t stream_read(struct stream *s, char *data, size_t size);
/* The octets that wait to be sent; more are appended here, then flushed. */
struct buf *stream_out(struct stream *s);
/* 1: all has gone; 0: written() comes when it has; -errno. */
int stream_flush(struct stream *s);
/* Have written() called in another turn of the loop. -ENOMEM. */
int stream_ask(struct stream *s);
bool stream_is_drained(const struct stream *s);
/* Octets that were received are still to be read. */
bool stream_has_more(const struct stream *s);
/* Begin TLS, with nothing left to send: secured() comes. Until then nothing is
 * read or sent by others. The tls is the stream's from here on. -errno:
 * secured() does not come. */
int stream_secure(struct stream *s, struct tls *tls);
/* NULL: in the clear. */
const struct tls *stream_tls(const struct stream *s);

/* ---- talk.c: octets in and out, the time limit of each state ----
 *
 * Reports go to report() as they become known. When the dialogue is over
 * ended() is called, as the talk's last act; the owner frees the talk there, or
 * before it, at any time. `end` lives until then. With end->open the connection
 * is open, and the owner may keep it: talk_rest(), then talk_again(). */

struct talk;

struct talk_task {
	struct dialog_task dialog;
	const usec_t *limits; /* of each state; as long as the dialogue */
	struct content_source content;
	/* Other addresses of senders in the header, or NULL; the owner's, as
	 * long as the dialogue. */
	const struct sender_map *rewrites;
	/* Where dialog.tls asks for it; the owner's until TLS has begun. */
	struct tls_context *tls;
	struct tls_want want;
};

struct talk_ops {
	dialog_report_fn *report;
	void (*ended)(void *arg, struct dialog_end *end);
	/* The server has taken all that comes before MAIL. */
	void (*greeted)(void *arg);
	/* The connection is secure. */
	void (*secured)(void *arg, const struct tls_facts *facts);
};

/* The socket is the talk's from here on; on failure (-ENOMEM) too. */
int talk_start(struct event_base *base, int sock, const struct talk_task *task,
    const struct talk_ops *ops, void *arg, struct talk **ret_talk);
/* The connection is closed when it returns. */
void talk_free(struct talk **talk);
/* The owner keeps a connection without a dialogue. gone(): the time is over,
 * the server closed it, or said something unasked; the owner frees the talk. */
void
talk_rest(struct talk *t, usec_t limit, void (*gone)(void *arg), void *arg);
/* One more dialogue over it. Calls may come before this returns. -ENOMEM: only
 * talk_free() is left. */
int talk_again(struct talk *t, const struct talk_task *task,
    const struct talk_ops *ops, void *arg);
/* Every recipient without a report is deferred, from here; ended() is not
 * called. */
void talk_abandon(struct talk *t, const char *dsn, const char *text);
/* The state of its dialogue. */
enum dialog_state talk_state(const struct talk *t);
/* When the server had taken EHLO or HELO; 0: not yet. */
usec_t talk_handshaken_at(const struct talk *t);

#endif
