/* deliver-smtp/net.h - from the name of a host to a dialogue on a socket, in
 * the event loop.
 *
 *	resolve.c  addresses of host names
 *	connect.c  one connection attempt
 *	stream.c   octets of a connection: nothing else reads or writes them
 *	talk.c     one dialogue over one stream
 *	content.c  the content of the message, encoded, in slices
 *
 * Soft: -errno. Callbacks come from the loop, never from inside the call that
 * begins the work, and not after the work was cancelled.
 */
#ifndef DELIVER_SMTP_NET_H
#define DELIVER_SMTP_NET_H

#include "deliver-smtp/dialog.h"

#include <sys/socket.h>

struct event_base;

/* ---- resolve.c: c-ares ----
 *
 * /etc/hosts (or the file that CARES_HOSTS in the environment names) and DNS as
 * the system is configured, IPv6 and IPv4 in the order of RFC 6724. The
 * resolver outlives its requests. */

/* More of a host are not tried. */
#define RESOLVE_MAX 8

struct resolver;
struct resolve_request;

struct resolve_result {
	/* 0; -ENOENT: no such name, or no address; -EAGAIN: the servers did
	 * not say; -ENOMEM. */
	int error;
	const char *text; /* the error, for people */
	size_t count;
	struct sockaddr_storage addresses[RESOLVE_MAX]; /* with the port */
};
typedef void resolve_fn(void *arg, const struct resolve_result *result);

/* -ENOMEM, -EIO: the system's configuration cannot be read. */
int resolver_new(struct event_base *base, struct resolver **ret_resolver);
/* Every request was answered or cancelled. */
void resolver_free(struct resolver **resolver);
/* Read the system's configuration again, for requests from now on. On failure
 * the old one stays. */
int resolver_reload(struct resolver *resolver);

/* -ENOMEM. The request is gone when done() has returned. */
int resolve_start(struct resolver *resolver, const char *name, uint16_t port,
    resolve_fn *done, void *arg, struct resolve_request **ret_request);
void resolve_cancel(struct resolve_request **request);

/* ---- connect.c ---- */

struct connect_attempt;

/* A connected non-blocking socket, which is then the caller's, or -errno
 * (-ETIMEDOUT: the time limit). The attempt is gone when it is called. */
typedef void connect_fn(void *arg, int result);

/* -errno: nothing was begun, or it failed at once. */
int connect_start(struct event_base *base, const struct sockaddr *address,
    socklen_t address_len, usec_t limit, connect_fn *done, void *arg,
    struct connect_attempt **ret_attempt);
void connect_cancel(struct connect_attempt **attempt);

/* Is the error of our own making (no descriptors, no memory), and says
 * nothing about the site? */
bool connect_error_is_local(int error);

/* ---- content.c: memory does not grow with the message ---- */

/* Octets read from the file for one slice. */
#define CONTENT_SLICE 32768

struct content {
	const char *data; /* all of it, or NULL: read it from fd */
	int fd;           /* both the caller's */
	uint64_t off, left;
	bool ended; /* the dot was put */
	struct smtp_encode encode;
};

/* From data, or if that is NULL from off in the file. */
void content_begin(
    struct content *c, const char *data, int fd, uint64_t off, uint64_t len);
/* Append the next slice to out, after the last one the dot. -errno: the file
 * cannot be read (-ENODATA: it is shorter than it was), -ENOMEM; the message
 * must not be ended then. */
int content_add(struct content *c, struct buf *out);

/* ---- stream.c ----
 *
 * Everything that goes over a connection passes through here: a layer between,
 * as TLS is one, lies below these functions. Octets are sent at once as far as
 * the socket takes them. Callbacks may close the stream. */

struct stream;

struct stream_ops {
	/* Octets, the end or an error can be read. */
	void (*readable)(void *arg);
	/* 0: all that waited has gone, or stream_ask() is answered; -errno:
	 * nothing can be sent any more. */
	void (*written)(void *arg, int error);
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

/* ---- talk.c: octets in and out, the time limit of each state ----
 *
 * Reports go to report() as they become known. When the dialogue is over
 * ended() is called, as the talk's last act; the owner frees the talk there, or
 * before it, at any time. `end` lives until then. With end->open the connection
 * is open, and the owner may keep it: talk_rest(), then talk_again(). */

struct talk;

struct talk_task {
	struct dialog_task dialog;
	const usec_t *limits; /* of each state; copied */
	const char *content;  /* all of it, or NULL: in the queue file */
	int fd;               /* the queue file; both are the owner's */
	uint64_t content_off; /* and dialog.size octets from there */
};

struct talk_ops {
	dialog_report_fn *report;
	void (*ended)(void *arg, struct dialog_end *end);
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
/* When the server had taken EHLO or HELO; 0: not yet. */
usec_t talk_handshaken_at(const struct talk *t);

#endif
