/* The server's side of TLS for the servers of a bench, with certificates that
 * are made for the test. */
#ifndef TEST_TLS_PEER_H
#define TEST_TLS_PEER_H

#include "base/buf.h"

#include <openssl/ssl.h>

/* Each good one is for mx.example and 127.0.0.1. */
enum peer_certificate {
	PEER_GOOD,
	PEER_EXPIRED,
	PEER_NOT_YET,
	PEER_OTHER_NAME,   /* other.example */
	PEER_WILD_NAME,    /* *.wild.example */
	PEER_SUBJECT_NAME, /* mx.example as the subject, and no other name */
	PEER_UNKNOWN_CA,
	PEER_SELF_SIGNED,
	PEER_NCERTIFICATES,
};

/* A context of a server, and the file of the authority that a client is to
 * trust, at path (a template of mkstemp()). */
SSL_CTX *peer_context(enum peer_certificate which, char *path);

/* One connection: octets in, octets out. */
struct peer_tls {
	SSL *ssl;
	bool done, failed;
	char host[256]; /* that the client asked for */
};
void peer_begin(struct peer_tls *p, SSL_CTX *context);
void peer_end(struct peer_tls *p);
/* Octets of the client; those in the clear are appended to ret_clear. */
void peer_feed(
    struct peer_tls *p, const char *data, size_t len, struct buf *ret_clear);
void peer_say(struct peer_tls *p, const char *data, size_t len);
/* Octets for the client; they are taken away. */
void peer_take(struct peer_tls *p, struct buf *ret_out);

#endif
