/* deliver-smtp/protection/tls.h - TLS of one connection as a transformer of
 * octets: those of the server go in and come out in the clear, ours the other
 * way round. No sockets, no clock: stream.c sends and receives.
 *
 *	tls.c           one connection
 *	tls_context.c   authorities, the least that is accepted
 *	tls_sessions.c  sessions that are resumed
 *
 * A session is resumed for the same server, level and names alone; and the
 * names are compared with the certificate again, which the session has.
 *
 * Soft: -errno; -EPROTO, and tls_why() says it. Never logs.
 */
#ifndef DELIVER_SMTP_PROTECTION_TLS_H
#define DELIVER_SMTP_PROTECTION_TLS_H

#include "base/buf.h"
#include "route/tls_policy.h"

#include <sys/types.h>

/* ---- the context that connections share ---- */

struct tls_context;

/* ca_file: the authorities for TLS_LEVEL_VERIFY; NULL: none, and no certificate
 * proves anything. -ENOMEM, or an error of the file, with the reason in
 * *ret_why. The caller has one reference, each connection one more. */
int tls_context_new(
    const char *ca_file, struct tls_context **ret_context, struct buf *ret_why);
void tls_context_unref(struct tls_context **context);

/* ---- one connection ---- */

struct tls_want {
	enum tls_level level; /* above TLS_LEVEL_NONE */
	const char *host;     /* of the next hop, told to the server; NULL: no
			       * name */
	const char *relay;    /* "host[ip]:port", told apart from others */
	/* TLS_LEVEL_VERIFY: one of these has to be in the certificate; each is
	 * a name, `.domain` for each name below it, or an address. */
	const char *const *names;
	size_t nnames;
};

struct tls;

/* The strings of want are copied. -ENOMEM, -EINVAL for names that no
 * certificate can have. */
int tls_new(struct tls_context *context, const struct tls_want *want,
    struct tls **ret_tls);
void tls_free(struct tls **tls);

/* Octets of the server. -ENOMEM; -EPROTO: more than TLS_QUIET_MAX without an
 * octet of content, or more than TLS_UNREAD_MAX that it does not read. */
#define TLS_QUIET_MAX  (256 * 1024)
#define TLS_UNREAD_MAX (512 * 1024)
int tls_feed(struct tls *t, const char *data, size_t len);
/* 1: done, and the server is what want says; 0: more of the server is needed;
 * -EPROTO. There may be octets to send after each. */
int tls_shake(struct tls *t);
/* Of what was fed. 0: more is needed; -EPIPE: the server has ended it; -EPROTO.
 */
ssize_t tls_read(struct tls *t, char *data, size_t size);
/* Is something left of what was fed? */
bool tls_has_more(const struct tls *t);
int tls_write(struct tls *t, const char *data, size_t len);
/* The last octets of ours: an end that the server can tell from a cut. */
void tls_part(struct tls *t);
/* Octets for the server; tls_sent() takes them away. */
size_t tls_waiting(const struct tls *t, const char **ret_data);
void tls_sent(struct tls *t, size_t len);

/* The failure, for people. */
const char *tls_why(const struct tls *t);
struct tls_facts {
	const char *protocol, *cipher; /* "TLSv1.3", … */
	int bits;
	bool verified, resumed;
};
/* Behind the handshake; the strings live as long as t. */
void tls_tell(const struct tls *t, struct tls_facts *ret_facts);

#endif
