/* queue-inject/message.h - a message as it comes in: its bytes, its header, its
 * addresses, and the fields that the mail faces add.
 *
 *	source.c    the bytes of a descriptor, in pieces
 *	header.c    where the header ends, and its fields
 *	envelope.c  sender and recipients
 *	identity.c  the user that submits, and the host
 *	compose.c   fields that are added where they are missing
 *	message.c   all of it for the mail faces
 *
 * A function with a struct refusal fills it and returns -1; the others are
 * soft: -errno.
 */
#ifndef QUEUE_INJECT_MESSAGE_H
#define QUEUE_INJECT_MESSAGE_H

#include "base/address_list.h"
#include "base/buf.h"
#include "base/header.h"
#include "base/texts.h"
#include "config/conf.h"
#include "queue-inject/refusal.h"
#include "submit/submit.h"

#include <sys/types.h>

/* ---- source.c ----
 *
 * Reading waits at most until a deadline, and ends when a signal asked to stop.
 * A mark can be set at any place; going back to it works while all that came
 * after it still fits in the buffer, so that a small message can be written
 * again, to another queue.
 *
 * With `dot`, a line that is a dot alone ends the message, and the rest of the
 * input is not read as part of it. With `lf`, lines end in LF alone: CRs in
 * front of a LF are left out, at most half a buffer of them. With `read` the
 * bytes come from that function, and neither descriptor is looked at.
 *
 * Soft: -errno of read(), -ETIMEDOUT, -ECANCELED after a signal. */

#define SOURCE_BUFFER ((size_t)64 << 10)

struct source {
	int fd;
	bool dot;
	bool lf; /* set before the first byte is read */
	usec_t deadline_mono;
	int stop_fd; /* readable when a signal asks to stop, or -1 */
	/* As read(), but for the error: -errno. NULL: the descriptor. */
	ssize_t (*read)(void *arg, char *buf, size_t size);
	void *arg;
	/* private */
	size_t next, limit, len; /* of buf: handed out next, may be handed
				    out, holds */
	size_t known; /* without CRs at the end that may have to go */
	size_t mark;  /* in buf, unless lost */
	bool mark_lost;
	bool line_start; /* the byte at `limit` begins a line */
	bool eof;        /* nothing more comes, limit is the end */
	char *buf;
};

/* -ENOMEM. The descriptor stays the caller's. */
int source_init(
    struct source *s, int fd, bool dot, usec_t deadline_mono, int stop_fd);
void source_done(struct source *s);
/* 1: *ret_data is at least one byte, valid until the next call here; 0: the
 * end. Taken only by source_take(). */
int source_peek(struct source *s, const char **ret_data, size_t *ret_len);
void source_take(struct source *s, size_t len);

/* Wait until poll() reports one of the events on the descriptor. -ETIMEDOUT:
 * the deadline has passed. -ECANCELED: a signal asks for the end. -errno. */
int source_wait(const struct source *s, int fd, short events);

/* The next byte to be taken is where source_rewind() goes back to. */
void source_mark(struct source *s);
/* False: the bytes after the mark are gone. */
bool source_rewind(struct source *s);

/* ---- header.c ----
 *
 * The header is gathered in one buffer of at most HEADER_MAX bytes, fed in
 * pieces of any size; nothing else of a message is ever held as a whole. It
 * ends at the first empty line, or before the first line that is not a field
 * (RFC 5322 section 2.2, with the blanks before the colon of section 4.5); a
 * line that begins with a blank belongs to the field before it, and is body
 * where there is none. Lines end in LF or CRLF; every byte is kept as it came.
 *
 * A first line "From ..." or ">From ..." in front of a field is the separator
 * line of a mailbox file: it is passed over. In front of anything else it is
 * body.
 *
 * data:  [mailbox line] fields [empty line] [body that was already taken]
 *        0..begin       begin..end         body..data.len
 *
 * Soft: -EFBIG above HEADER_MAX, -ENOMEM. The owner calls header_done(). */

#define HEADER_MAX      ((size_t)1 << 20)
#define HEADER_NAME_MAX 998 /* a line without a colon until here is body */

struct header {
	struct buf data;
	size_t begin, end; /* of the fields, valid when `complete` */
	size_t body;       /* where the body begins in data */
	bool complete;     /* the end was found */
	bool separated;    /* by an empty line */
	size_t line;       /* private: the line that is read begins there */
};

/* Take from len bytes; *ret_used says how many, fewer than len only when the
 * header is complete. */
int
header_feed(struct header *h, const char *data, size_t len, size_t *ret_used);
/* The message ended. */
void header_finish(struct header *h);
void header_done(struct header *h);

/* The next field; *pos is 0 at first. False: there is none. */
bool header_next(
    const struct header *h, size_t *pos, struct header_field *ret_field);

/* ---- envelope.c ----
 *
 * Addresses are checked (base/address) as they are put in, and counted against
 * a limit, so memory is bounded by it. Recipients stay in the order they came
 * in, with doubles. With `once`, a recipient that equals an earlier one is left
 * out: the domains compare as in base/domain.h, the local parts without case.
 */

struct envelope {
	bool has_sender;
	struct buf sender; /* "" is the null sender */
	struct buf rcpts;  /* each ended by NUL */
	uint32_t rcpt_count;
	uint32_t rcpt_limit; /* 0: none */
	bool once;
	/* Wishes in MAIL and RCPT. Options hold where there is no wish. */
	struct dsn_mail dsn;
	struct buf wishes; /* of recipients: NOTIFY as a byte, ORCPT and NUL */
	struct texts_set known; /* private: recipients, folded */
};

void envelope_done(struct envelope *e);
/* Both refuse an address that may not stand in an envelope; a recipient may not
 * be "". */
int envelope_set_sender(
    struct envelope *e, const char *address, size_t len, struct refusal *why);
int envelope_add_rcpt(
    struct envelope *e, const char *address, size_t len, struct refusal *why);
/* The same with wishes of its own; a recipient that is known already keeps its
 * first ones. All recipients of an envelope have wishes, or none. */
int envelope_add_rcpt_dsn(struct envelope *e, const char *address, size_t len,
    const struct dsn_rcpt *dsn, struct refusal *why);
/* The wishes of the recipients in turn; *pos is 0 at first. False: there are
 * none. */
bool envelope_next_wish(
    const struct envelope *e, size_t *pos, struct dsn_rcpt *ret_dsn);
/* The recipient at *pos (0 at first) with its length; NULL at the end. */
const char *
envelope_next_rcpt(const struct envelope *e, size_t *pos, size_t *ret_len);

/* The envelope of qmail-queue, `F…\0T…\0T…\0\0`, in pieces of any size. */
struct envelope_reader {
	int state;
	struct buf address;
};

int envelope_feed(struct envelope_reader *rd, struct envelope *e,
    const char *data, size_t len, struct refusal *why);
/* The input ended: was the envelope whole, with a recipient? */
int envelope_finish(
    struct envelope_reader *rd, const struct envelope *e, struct refusal *why);

/* ---- identity.c ----
 *
 * The user is the real one of the process, never that of the environment.
 * Names that could not stand in a header field are replaced. The user is looked
 * up when the name is first needed: many submissions never need it. */

struct identity {
	uid_t uid;
	char host[CONF_HOST_SIZE];   /* myhostname, or the system's name */
	char domain[CONF_HOST_SIZE]; /* mydomain, or host */
	bool looked_up;
	char login[64];      /* "uid1000" where the user has no name */
	char full_name[256]; /* from the user database, "" if none */
};

void identity_init(struct identity *id, const struct conf *conf);
void identity_look_up(struct identity *id);

/* ---- compose.c ----
 *
 * RFC 5322 section 3.6, Resent- fields of 3.6.6. -ENOMEM. */

/* Each field gets `prefix` ("" or "Resent-") and ends in eol. */
struct compose {
	struct buf *out;
	const char *prefix, *eol;
};

/* full_name may be anything, "" for none: it is cleaned, and quoted or
 * encoded (RFC 2047) as it needs. */
int compose_from(
    const struct compose *c, const char *full_name, const char *address);
int compose_date(const struct compose *c, usec_t wall);
/* Unique: the time, and a random number. */
int compose_message_id(
    const struct compose *c, usec_t wall, uint64_t random, const char *host);

/* ---- message.c ----
 *
 * The message is passed on byte for byte, but for three things: a mailbox line
 * "From ..." in front of the fields is left out, fields that are not for
 * readers are left out (Bcc, Resent-Bcc, and Return-Path and Content-Length,
 * which others set), and where no empty line separates fields and body one is
 * put, so that the body stays body. Fields are added at the beginning. After
 * message_qualify() addresses of its fields have a domain. */

struct message {
	struct header header;
	struct buf added; /* fields that were missing */
	bool resent;      /* has Resent- fields: they are completed */
	bool
	    resent_rcpts; /* Resent-To, -Cc or -Bcc: the recipients are there */
	const char *eol;
	const char *domain; /* for addresses without one; NULL: no places */
	struct buf places;  /* size_t each: places in header.data, ascending,
			     * that "@domain" is put at */
};

/* Read all up to the body; the rest of src is body. */
int message_read(struct message *m, struct source *src, struct refusal *why);
/* Find the addresses without a domain in fields of authors and recipients
 * (RFC 5322 sections 3.6.2, 3.6.3, 3.6.6), which message_write() gives the
 * domain. It lives as long as m. A malformed field stays as it is. */
int message_qualify(struct message *m, const char *domain, struct refusal *why);
/* The recipients of Resent-To, -Cc and -Bcc; without these fields those of To,
 * Cc and Bcc. */
int message_recipients(const struct message *m, const char *domain,
    struct envelope *e, struct refusal *why);

struct message_author {
	const char *full_name, *address, *host;
	usec_t wall;
	uint64_t random;
};
/* Make the fields that are missing. */
int message_complete(struct message *m, const struct message_author *author,
    struct refusal *why);
/* Write all but the rest of the source: -errno of submission_content(). */
int message_write(const struct message *m, struct submission *s);
void message_done(struct message *m);

/* Refuse for a failure of the source. */
int message_refuse_source(struct refusal *why, int error);

#endif
