/* deliver-smtp/protection/tls_inside.h - shared by the sources of TLS only. */
#ifndef DELIVER_SMTP_PROTECTION_TLS_INSIDE_H
#define DELIVER_SMTP_PROTECTION_TLS_INSIDE_H

#include "deliver-smtp/protection/tls.h"

#include <openssl/ssl.h>

/* ---- tls_sessions.c: a short list, the latest first ---- */

#define TLS_SESSIONS_MAX 256

struct tls_sessions {
	struct tls_session_row {
		char *key;
		SSL_SESSION *session;
		uint64_t used; /* larger is later; 0: the row is free */
	} row[TLS_SESSIONS_MAX];
	uint64_t uses;
};

/* The reference of the session is taken in any case. */
void
tls_sessions_put(struct tls_sessions *s, const char *key, SSL_SESSION *session);
/* The session stays the list's; NULL. */
SSL_SESSION *tls_sessions_find(struct tls_sessions *s, const char *key);
void tls_sessions_drop(struct tls_sessions *s, const char *key);
void tls_sessions_done(struct tls_sessions *s);
/* Level, names, host and server: all that a session proves. -ENOMEM. */
int tls_session_key(const struct tls_want *want, struct buf *out);

/* ---- tls_context.c ---- */

struct tls_context {
	SSL_CTX *ssl;
	struct tls_sessions sessions;
	/* OpenSSL's own, behind ours. */
	int (*judge)(const SSL *ssl, const SSL_CTX *ctx, int what, int bits,
	    int nid, void *other, void *arg);
	unsigned references;
};

struct tls_context *tls_context_ref(struct tls_context *context);

/* ---- tls.c, for the context ---- */

/* A new session of a connection, for SSL_CTX_sess_set_new_cb(). */
int tls_on_session(SSL *ssl, SSL_SESSION *session);

#endif
