#include "deliver-smtp/protection/tls_inside.h"

#include <errno.h>
#include <openssl/err.h>
#include <stdlib.h>

#include "base/file.h"

#define CA_FILE_MAX       ((size_t)16 << 20)
#define CHAIN_MAX         10 /* certificates between the server's and the root */
#define SESSION_TIME_SECS 3600
/* OpenSSL takes 10000, which hold up the loop for most of a second. */
#define DH_BITS_MAX       4096

/* ---- authorities ---- */

/* 1: one more; 0: the end; -EINVAL: what stands there is no certificate. */
static int
next_certificate(BIO *in, X509_STORE *store)
{
	X509 *x = PEM_read_bio_X509(in, NULL, NULL, NULL);
	unsigned long e;
	int r;

	if (x == NULL) {
		e = ERR_peek_last_error();
		ERR_clear_error();
		return ERR_GET_LIB(e) == ERR_LIB_PEM &&
			ERR_GET_REASON(e) == PEM_R_NO_START_LINE
		    ? 0
		    : -EINVAL;
	}
	r = X509_STORE_add_cert(store, x) == 1 ? 1 : -ENOMEM;
	X509_free(x);
	return r;
}

static int
add_authorities(
    SSL_CTX *ssl, const struct buf *text, const char *path, struct buf *ret_why)
{
	BIO *in = BIO_new_mem_buf(text->data, (int)text->len);
	unsigned count = 0;
	int r = -ENOMEM;

	if (in == NULL)
		return r;
	while ((r = next_certificate(in, SSL_CTX_get_cert_store(ssl))) == 1)
		count++;
	BIO_free(in);
	if (r == 0 && count == 0)
		r = -EINVAL;
	if (r == -EINVAL)
		(void)buf_printf(ret_why,
		    "%s: certificate %u is none, or is damaged", path,
		    count + 1);
	return r;
}

static int
load_authorities(SSL_CTX *ssl, const char *path, struct buf *ret_why)
{
	struct buf text = { 0 }, why = { 0 };
	int r = file_read(path, CA_FILE_MAX, &text, &why);

	if (r < 0)
		(void)buf_printf(ret_why, "%s: %s", path, buf_str(&why));
	else if (text.len == 0)
		(void)buf_printf(ret_why, "%s: is empty", path);
	if (r == 0)
		r = text.len == 0 ? -EINVAL
				  : add_authorities(ssl, &text, path, ret_why);
	buf_done(&text);
	buf_done(&why);
	return r;
}

/* ---- the context ---- */

/* The system may ask for more than we do. */
static int
set_least(SSL_CTX *ssl)
{
	if (SSL_CTX_get_min_proto_version(ssl) >= TLS1_2_VERSION)
		return 0;
	return SSL_CTX_set_min_proto_version(ssl, TLS1_2_VERSION) == 1
	    ? 0
	    : -ENOMEM;
}

/* Groups of Diffie and Hellman that a server makes up cost as it likes. */
static int
judge_strength(const SSL *ssl, const SSL_CTX *ctx, int what, int bits, int nid,
    void *other, void *arg)
{
	const struct tls_context *c = arg;

	if (what == SSL_SECOP_TMP_DH && EVP_PKEY_get_bits(other) > DH_BITS_MAX)
		return 0;
	return c->judge(ssl, ctx, what, bits, nid, other, NULL);
}

static int
set_up(struct tls_context *c)
{
	SSL_CTX *ssl = c->ssl;

	if (set_least(ssl) < 0)
		return -ENOMEM;
	c->judge = SSL_CTX_get_security_callback(ssl);
	SSL_CTX_set0_security_ex_data(ssl, c);
	SSL_CTX_set_security_callback(ssl, judge_strength);
	(void)SSL_CTX_set_options(
	    ssl, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
	(void)SSL_CTX_set_mode(ssl, SSL_MODE_RELEASE_BUFFERS);
	SSL_CTX_set_verify_depth(ssl, CHAIN_MAX);
	(void)SSL_CTX_set_session_cache_mode(
	    ssl, SSL_SESS_CACHE_CLIENT | SSL_SESS_CACHE_NO_INTERNAL);
	SSL_CTX_sess_set_new_cb(ssl, tls_on_session);
	(void)SSL_CTX_set_timeout(ssl, SESSION_TIME_SECS);
	return 0;
}

int
tls_context_new(
    const char *ca_file, struct tls_context **ret_context, struct buf *ret_why)
{
	struct tls_context *c = calloc(1, sizeof(*c));
	int r = -ENOMEM;

	if (c == NULL)
		return r;
	c->references = 1;
	c->ssl = SSL_CTX_new(TLS_client_method());
	if (c->ssl != NULL)
		r = set_up(c);
	if (r == 0 && ca_file != NULL)
		r = load_authorities(c->ssl, ca_file, ret_why);
	if (r < 0) {
		ERR_clear_error();
		tls_context_unref(&c);
		return r;
	}
	*ret_context = c;
	return 0;
}

struct tls_context *
tls_context_ref(struct tls_context *context)
{
	context->references++;
	return context;
}

void
tls_context_unref(struct tls_context **context)
{
	struct tls_context *c = *context;

	*context = NULL;
	if (c == NULL || --c->references > 0)
		return;
	tls_sessions_done(&c->sessions);
	SSL_CTX_free(c->ssl);
	free(c);
}
