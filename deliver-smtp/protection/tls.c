#include "deliver-smtp/protection/tls_inside.h"

#include <arpa/inet.h>
#include <errno.h>
#include <limits.h>
#include <openssl/err.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "route/nexthop.h"

/* Sessions of one connection that are looked at; a server may send any number.
 */
#define TICKETS_MAX 4

struct tls {
	struct tls_context *context;
	SSL *ssl;
	BIO *in, *out; /* octets in memory, of ssl: from the server, to it */
	size_t quiet;  /* octets that were fed since the last content */
	unsigned tickets;
	enum tls_level level;
	char *names[TLS_POLICY_NAMES_MAX];
	size_t nnames;
	struct buf key; /* of its session */
	bool done;      /* the handshake */
	char why[200];
};

/* ---- sessions ---- */

/* 1: the session is ours now. A session of a handshake that fails afterwards is
 * dropped in fail(). */
int
tls_on_session(SSL *ssl, SSL_SESSION *session)
{
	struct tls *t = SSL_get_app_data(ssl);

	if (t->tickets >= TICKETS_MAX)
		return 0;
	t->tickets++;
	tls_sessions_put(&t->context->sessions, buf_str(&t->key), session);
	return 1;
}

/* ---- failures ---- */

static int
fail(struct tls *t, const char *why)
{
	tls_sessions_drop(&t->context->sessions, buf_str(&t->key));
	t->tickets = TICKETS_MAX;
	snprintf(t->why, sizeof(t->why), "%s", why);
	return -EPROTO;
}

/* The last call of OpenSSL failed. */
static int
fail_ssl(struct tls *t)
{
	unsigned long e = ERR_peek_last_error();
	const char *reason = ERR_reason_error_string(e);
	long verify = SSL_get_verify_result(t->ssl);

	ERR_clear_error();
	if (t->level == TLS_LEVEL_VERIFY && !t->done && verify != X509_V_OK)
		reason = X509_verify_cert_error_string(verify);
	return fail(t, reason == NULL ? "the server ended it" : reason);
}

const char *
tls_why(const struct tls *t)
{
	return t->why;
}

/* ---- the name ---- */

static bool
is_address(const char *name)
{
	struct in6_addr a;

	return inet_pton(AF_INET, name, &a) == 1 ||
	    inet_pton(AF_INET6, name, &a) == 1;
}

/* By subjectAltName alone: a name in the subject counts no more (RFC 9525
 * section 2). */
static bool
certificate_has(X509 *x, const char *name)
{
	const unsigned flags = X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS |
	    X509_CHECK_FLAG_NEVER_CHECK_SUBJECT;

	if (is_address(name))
		return X509_check_ip_asc(x, name, 0) == 1;
	return X509_check_host(x, name, 0, flags, NULL) == 1;
}

/* Also of a session that is resumed, whose chain was verified when it was new:
 * its names and its last day are looked at each time. */
static int
verify_name(struct tls *t)
{
	X509 *x = SSL_get0_peer_certificate(t->ssl);
	long verify = SSL_get_verify_result(t->ssl);
	char why[160];
	size_t i;

	if (verify != X509_V_OK)
		return fail(t, X509_verify_cert_error_string(verify));
	if (x == NULL)
		return fail(t, "the server has no certificate");
	if (X509_cmp_current_time(X509_get0_notAfter(x)) <= 0)
		return fail(t, "certificate has expired");
	for (i = 0; i < t->nnames; i++)
		if (certificate_has(x, t->names[i]))
			return 1;
	if (t->nnames == 0)
		return fail(t, "the next hop has no name to verify");
	snprintf(why, sizeof(why), "the certificate is not for %s%s",
	    t->names[0], t->nnames > 1 ? " and the other names" : "");
	return fail(t, why);
}

/* ---- the handshake ---- */

int
tls_shake(struct tls *t)
{
	int r, error;

	ERR_clear_error();
	r = SSL_do_handshake(t->ssl);
	if (r == 1) {
		if (t->level == TLS_LEVEL_VERIFY && verify_name(t) < 0)
			return -EPROTO;
		t->done = true;
		t->quiet = 0;
		return 1;
	}
	error = SSL_get_error(t->ssl, r);
	return error == SSL_ERROR_WANT_READ ? 0 : fail_ssl(t);
}

int
tls_feed(struct tls *t, const char *data, size_t len)
{
	if (t->quiet > TLS_QUIET_MAX)
		return fail(t, "much is said, and none of it is content");
	/* Each request of a server to begin anew is answered, read or not. */
	if (BIO_ctrl_pending(t->out) > TLS_UNREAD_MAX)
		return fail(t, "much is asked, and no answer is read");
	t->quiet += len;
	return BIO_write(t->in, data, (int)len) == (int)len ? 0 : -ENOMEM;
}

/* ---- content ---- */

ssize_t
tls_read(struct tls *t, char *data, size_t size)
{
	int r;

	ERR_clear_error();
	r = SSL_read(t->ssl, data, size > INT_MAX ? INT_MAX : (int)size);
	if (r > 0) {
		t->quiet = 0;
		return r;
	}
	switch (SSL_get_error(t->ssl, r)) {
	case SSL_ERROR_WANT_READ:
		return 0;
	case SSL_ERROR_ZERO_RETURN:
		return -EPIPE;
	default:
		return fail_ssl(t);
	}
}

bool
tls_has_more(const struct tls *t)
{
	return BIO_ctrl_pending(t->in) > 0 || SSL_pending(t->ssl) > 0;
}

int
tls_write(struct tls *t, const char *data, size_t len)
{
	if (len == 0)
		return 0;
	ERR_clear_error();
	if (len > INT_MAX || SSL_write(t->ssl, data, (int)len) != (int)len)
		return fail_ssl(t);
	return 0;
}

void
tls_part(struct tls *t)
{
	ERR_clear_error();
	if (t->done)
		(void)SSL_shutdown(t->ssl);
	ERR_clear_error();
}

size_t
tls_waiting(const struct tls *t, const char **ret_data)
{
	char *data = NULL;
	const long len = BIO_get_mem_data(t->out, &data);

	*ret_data = data;
	return len > 0 ? (size_t)len : 0;
}

void
tls_sent(struct tls *t, size_t len)
{
	char sent[4096];

	for (; len > sizeof(sent); len -= sizeof(sent))
		(void)BIO_read(t->out, sent, sizeof(sent));
	(void)BIO_read(t->out, sent, (int)len);
}

void
tls_tell(const struct tls *t, struct tls_facts *ret_facts)
{
	*ret_facts = (struct tls_facts){
		.protocol = SSL_get_version(t->ssl),
		.cipher = SSL_get_cipher_name(t->ssl),
		.bits = SSL_get_cipher_bits(t->ssl, NULL),
		.verified = t->done && t->level == TLS_LEVEL_VERIFY,
		.resumed = SSL_session_reused(t->ssl) == 1,
	};
}

/* ---- begin and end ---- */

static int
copy_names(struct tls *t, const struct tls_want *want)
{
	size_t i;

	if (want->nnames > TLS_POLICY_NAMES_MAX)
		return -EINVAL;
	for (i = 0; i < want->nnames; i++) {
		t->names[i] = strdup(want->names[i]);
		if (t->names[i] == NULL)
			return -ENOMEM;
		t->nnames++;
	}
	return tls_session_key(want, &t->key);
}

static int
attach(struct tls *t)
{
	t->in = BIO_new(BIO_s_mem());
	t->out = BIO_new(BIO_s_mem());
	if (t->in == NULL || t->out == NULL) {
		BIO_free(t->in);
		BIO_free(t->out);
		return -ENOMEM;
	}
	SSL_set_bio(t->ssl, t->in, t->out);
	if (SSL_set_app_data(t->ssl, t) != 1)
		return -ENOMEM;
	SSL_set_connect_state(t->ssl);
	return 0;
}

static int
tell_host(struct tls *t, const char *host)
{
	char copy[NEXTHOP_HOST_MAX]; /* the macro wants no const */

	if (host == NULL || is_address(host))
		return 0;
	if (strlen(host) >= sizeof(copy))
		return -EINVAL;
	memcpy(copy, host, strlen(host) + 1);
	return SSL_set_tlsext_host_name(t->ssl, copy) == 1 ? 0 : -EINVAL;
}

static int
prepare(struct tls *t, const struct tls_want *want)
{
	SSL_SESSION *session =
	    tls_sessions_find(&t->context->sessions, buf_str(&t->key));

	if (want->level == TLS_LEVEL_VERIFY)
		SSL_set_verify(t->ssl, SSL_VERIFY_PEER, NULL);
	if (session != NULL && SSL_set_session(t->ssl, session) != 1)
		tls_sessions_drop(&t->context->sessions, buf_str(&t->key));
	return tell_host(t, want->host);
}

int
tls_new(struct tls_context *context, const struct tls_want *want,
    struct tls **ret_tls)
{
	struct tls *t = calloc(1, sizeof(*t));
	int r;

	if (t == NULL)
		return -ENOMEM;
	t->context = tls_context_ref(context);
	t->level = want->level;
	t->ssl = SSL_new(context->ssl);
	r = t->ssl == NULL ? -ENOMEM : attach(t);
	if (r == 0)
		r = copy_names(t, want);
	if (r == 0)
		r = prepare(t, want);
	ERR_clear_error();
	if (r < 0)
		tls_free(&t);
	else
		*ret_tls = t;
	return r;
}

void
tls_free(struct tls **tls)
{
	struct tls *t = *tls;

	*tls = NULL;
	if (t == NULL)
		return;
	/* A connection that was cut says nothing against its session. */
	if (t->ssl != NULL && t->done)
		SSL_set_shutdown(t->ssl, SSL_SENT_SHUTDOWN);
	SSL_free(t->ssl);
	while (t->nnames > 0)
		free(t->names[--t->nnames]);
	buf_done(&t->key);
	tls_context_unref(&t->context);
	free(t);
}
