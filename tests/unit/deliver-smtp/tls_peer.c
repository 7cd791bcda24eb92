#include "tests/unit/deliver-smtp/tls_peer.h"

#include <criterion/criterion.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define DAY 86400L

/* ---- certificates ---- */

static EVP_PKEY *
new_key(void)
{
	EVP_PKEY *key = EVP_EC_gen("P-256");

	cr_assert_not_null(key);
	return key;
}

static void
set_name(X509 *x, const char *name, bool issuer)
{
	X509_NAME *n = X509_NAME_new();

	X509_NAME_add_entry_by_txt(
	    n, "CN", MBSTRING_ASC, (const unsigned char *)name, -1, -1, 0);
	if (issuer)
		X509_set_issuer_name(x, n);
	else
		X509_set_subject_name(x, n);
	X509_NAME_free(n);
}

static void
add_extension(X509 *x, int nid, const char *value)
{
	X509_EXTENSION *e = X509V3_EXT_conf_nid(NULL, NULL, nid, value);

	cr_assert_not_null(e);
	X509_add_ext(x, e, -1);
	X509_EXTENSION_free(e);
}

struct paper {
	/* names NULL: an authority; "": no subjectAltName */
	const char *subject, *issuer, *names;
	long from, until; /* days from now */
};

static X509 *
new_certificate(const struct paper *p, EVP_PKEY *key, EVP_PKEY *signer)
{
	static long serial = 1;
	X509 *x = X509_new();

	X509_set_version(x, 2);
	ASN1_INTEGER_set(X509_get_serialNumber(x), serial++);
	X509_gmtime_adj(X509_getm_notBefore(x), p->from * DAY);
	X509_gmtime_adj(X509_getm_notAfter(x), p->until * DAY);
	X509_set_pubkey(x, key);
	set_name(x, p->subject, false);
	set_name(x, p->issuer, true);
	if (p->names == NULL)
		add_extension(x, NID_basic_constraints, "critical,CA:TRUE");
	else if (*p->names != '\0')
		add_extension(x, NID_subject_alt_name, p->names);
	cr_assert_gt(X509_sign(x, signer, EVP_sha256()), 0);
	return x;
}

#define GOOD_NAMES "DNS:mx.example,IP:127.0.0.1"
#define AUTHORITY  "authority of the test"

static const struct paper papers[PEER_NCERTIFICATES] = {
	[PEER_GOOD] = { "mx", AUTHORITY, GOOD_NAMES, -2, 2 },
	[PEER_EXPIRED] = { "mx", AUTHORITY, GOOD_NAMES, -4, -2 },
	[PEER_NOT_YET] = { "mx", AUTHORITY, GOOD_NAMES, 2, 4 },
	[PEER_OTHER_NAME] = { "mx", AUTHORITY, "DNS:other.example", -2, 2 },
	[PEER_WILD_NAME] = { "mx", AUTHORITY, "DNS:*.wild.example", -2, 2 },
	[PEER_SUBJECT_NAME] = { "mx.example", AUTHORITY, "", -2, 2 },
	[PEER_UNKNOWN_CA] = { "mx", "somebody else", GOOD_NAMES, -2, 2 },
	[PEER_SELF_SIGNED] = { "mx", "mx", GOOD_NAMES, -2, 2 },
};

static void
write_authority(X509 *x, char *path)
{
	int fd = mkstemp(path);
	FILE *f = fdopen(fd, "w");

	cr_assert_not_null(f);
	cr_assert_eq(PEM_write_X509(f, x), 1);
	fclose(f);
}

static int
on_host(SSL *ssl, int *alert, void *arg)
{
	struct peer_tls *p = SSL_get_app_data(ssl);
	const char *host = SSL_get_servername(ssl, TLSEXT_NAMETYPE_host_name);

	(void)alert;
	(void)arg;
	snprintf(p->host, sizeof(p->host), "%s", host == NULL ? "" : host);
	return SSL_TLSEXT_ERR_OK;
}

SSL_CTX *
peer_context(enum peer_certificate which, char *path)
{
	static const struct paper root = { AUTHORITY, AUTHORITY, NULL, -9, 9 };
	SSL_CTX *context = SSL_CTX_new(TLS_server_method());
	EVP_PKEY *key = new_key(), *ca_key = new_key(), *other = new_key();
	EVP_PKEY *signer = which == PEER_SELF_SIGNED ? key
	    : which == PEER_UNKNOWN_CA               ? other
						     : ca_key;
	X509 *ca = new_certificate(&root, ca_key, ca_key);
	X509 *x = new_certificate(&papers[which], key, signer);

	write_authority(ca, path);
	cr_assert_eq(SSL_CTX_use_certificate(context, x), 1);
	cr_assert_eq(SSL_CTX_use_PrivateKey(context, key), 1);
	SSL_CTX_set_tlsext_servername_callback(context, on_host);
	SSL_CTX_set_session_id_context(
	    context, (const unsigned char *)"test", 4);
	X509_free(ca);
	X509_free(x);
	EVP_PKEY_free(key);
	EVP_PKEY_free(ca_key);
	EVP_PKEY_free(other);
	return context;
}

/* ---- a connection ---- */

void
peer_begin(struct peer_tls *p, SSL_CTX *context)
{
	memset(p, 0, sizeof(*p));
	p->ssl = SSL_new(context);
	SSL_set_bio(p->ssl, BIO_new(BIO_s_mem()), BIO_new(BIO_s_mem()));
	SSL_set_app_data(p->ssl, p);
	SSL_set_accept_state(p->ssl);
}

void
peer_end(struct peer_tls *p)
{
	SSL_free(p->ssl);
	p->ssl = NULL;
}

static void
shake(struct peer_tls *p)
{
	int r = SSL_do_handshake(p->ssl);

	p->done = r == 1;
	p->failed = r != 1 && SSL_get_error(p->ssl, r) != SSL_ERROR_WANT_READ;
}

void
peer_feed(
    struct peer_tls *p, const char *data, size_t len, struct buf *ret_clear)
{
	char clear[4096];
	int n;

	BIO_write(SSL_get_rbio(p->ssl), data, (int)len);
	if (!p->done)
		shake(p);
	while (p->done && (n = SSL_read(p->ssl, clear, sizeof(clear))) > 0)
		buf_add(ret_clear, clear, (size_t)n);
}

void
peer_say(struct peer_tls *p, const char *data, size_t len)
{
	cr_assert_eq(SSL_write(p->ssl, data, (int)len), (int)len);
}

void
peer_take(struct peer_tls *p, struct buf *ret_out)
{
	char *data;
	long n = BIO_get_mem_data(SSL_get_wbio(p->ssl), &data);

	buf_add(ret_out, data, (size_t)n);
	(void)BIO_reset(SSL_get_wbio(p->ssl));
}
