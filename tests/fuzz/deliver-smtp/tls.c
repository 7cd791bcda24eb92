/* TLS as a transformer of octets, between us and a real server, by a wire that
 * cuts, drops, changes and adds octets: what either side reads is the beginning
 * of what the other wrote, whatever the wire did; after a failure nothing is
 * read any more, and what waits for the server is bounded. Half of the inputs
 * are a server that says anything at all. */
#include "tests/fuzz/fuzz.h"

#include <errno.h>
#include <openssl/ssl.h>
#include <string.h>

#include "deliver-smtp/protection/tls.h"

#define SAID_MAX 20000
#define WAIT_MAX (TLS_UNREAD_MAX + 65536)

static const struct tls_want want = { .level = TLS_LEVEL_ENCRYPT,
	.host = "mx.example",
	.relay = "mx[192.0.2.1]:25" };

struct wire {
	struct tls *tls; /* ours */
	SSL *peer;
	struct buf to_us;
	size_t taken;    /* of to_us */
	bool done, dead; /* our handshake; our connection */
	bool greeted;    /* the peer's handshake is done */
	size_t peer_said, we_read, we_said, peer_read;
};

/* Octets of a stream: no two places within a record look alike. */
static char
octet(size_t at, bool ours)
{
	return (char)(at * 7 + (at >> 8) + (ours ? 3 : 0));
}

/* ---- made once ---- */

static SSL_CTX *
server(void)
{
	SSL_CTX *context = SSL_CTX_new(TLS_server_method());
	EVP_PKEY *key = EVP_EC_gen("P-256");
	X509 *x = X509_new();

	MUST(context != NULL && key != NULL && x != NULL);
	X509_gmtime_adj(X509_getm_notBefore(x), 0);
	X509_gmtime_adj(X509_getm_notAfter(x), 86400);
	X509_set_pubkey(x, key);
	MUST(X509_sign(x, key, EVP_sha256()) > 0);
	MUST(SSL_CTX_use_certificate(context, x) == 1);
	MUST(SSL_CTX_use_PrivateKey(context, key) == 1);
	SSL_CTX_set_num_tickets(context, 1);
	X509_free(x);
	EVP_PKEY_free(key);
	return context;
}

static struct tls_context *
context(void)
{
	struct tls_context *made = NULL;
	struct buf why = { 0 };

	MUST(tls_context_new(NULL, &made, &why) == 0);
	buf_done(&why);
	return made;
}

/* ---- the two ends ---- */

static void
note_error(struct wire *w, ssize_t r)
{
	MUST(r == -EPROTO || r == -EPIPE);
	MUST(r == -EPIPE || tls_why(w->tls)[0] != '\0');
	w->dead = true;
}

static void
read_content(struct wire *w)
{
	char data[700];
	ssize_t n, i;

	while (!w->dead && (n = tls_read(w->tls, data, sizeof(data))) != 0) {
		if (n < 0) {
			note_error(w, n);
			return;
		}
		for (i = 0; i < n; i++)
			MUST(data[i] == octet(w->we_read++, false));
		MUST(w->we_read <= w->peer_said);
	}
}

static void
peer_turn(struct wire *w)
{
	char data[700], *out;
	int n, i;
	long len;

	if (!w->greeted && w->peer != NULL)
		w->greeted = SSL_do_handshake(w->peer) == 1;
	while (w->greeted && (n = SSL_read(w->peer, data, sizeof(data))) > 0)
		for (i = 0; i < n; i++)
			MUST(data[i] == octet(w->peer_read++, true));
	MUST(w->peer_read <= w->we_said);
	if (w->peer == NULL)
		return;
	len = BIO_get_mem_data(SSL_get_wbio(w->peer), &out);
	MUST(buf_add(&w->to_us, out, (size_t)len) == 0);
	(void)BIO_reset(SSL_get_wbio(w->peer));
}

/* What we have for the server goes there. */
static void
pass_ours(struct wire *w)
{
	const char *out;
	size_t len = tls_waiting(w->tls, &out);

	MUST(len <= WAIT_MAX);
	if (w->peer != NULL && len > 0)
		MUST(BIO_write(SSL_get_rbio(w->peer), out, (int)len) ==
		    (int)len);
	tls_sent(w->tls, len);
	peer_turn(w);
}

static void
our_turn(struct wire *w)
{
	int r;

	if (!w->dead && !w->done) {
		r = tls_shake(w->tls);
		if (r < 0)
			note_error(w, r);
		w->done = r == 1;
	}
	MUST(!w->done || w->peer != NULL);
	if (w->done)
		read_content(w);
	pass_ours(w);
}

static void
deliver(struct wire *w, const char *data, size_t len)
{
	int r = w->dead ? 0 : tls_feed(w->tls, data, len);

	if (r < 0)
		note_error(w, r);
	our_turn(w);
}

/* ---- the wire ---- */

static void
pass(struct wire *w, size_t most)
{
	size_t len = w->to_us.len - w->taken;

	len = len < most ? len : most;
	w->taken += len;
	if (len > 0)
		deliver(w, w->to_us.data + w->taken - len, len);
}

static void
change(struct wire *w, size_t far, uint8_t by)
{
	if (w->taken + far < w->to_us.len)
		w->to_us.data[w->taken + far] ^= (char)by;
}

static void
drop(struct wire *w, size_t len)
{
	const size_t left = w->to_us.len - w->taken;

	w->taken += len < left ? len : left;
}

static void
insert(struct wire *w, struct fuzz_in *in, size_t len)
{
	char data[64];
	size_t i;

	for (i = 0; i < len; i++)
		data[i] = (char)fuzz_number(in, 1);
	deliver(w, data, len);
}

static void
peer_says(struct wire *w, size_t len)
{
	char data[4096];
	size_t i;

	if (!w->greeted || w->peer_said + len > SAID_MAX)
		return;
	for (i = 0; i < len; i++)
		data[i] = octet(w->peer_said + i, false);
	if (SSL_write(w->peer, data, (int)len) == (int)len)
		w->peer_said += len;
	peer_turn(w);
}

static void
we_say(struct wire *w, size_t len)
{
	char data[4096];
	size_t i;

	if (!w->done || w->dead || w->we_said + len > SAID_MAX)
		return;
	for (i = 0; i < len; i++)
		data[i] = octet(w->we_said + i, true);
	w->we_said += len;
	if (tls_write(w->tls, data, len) < 0)
		w->dead = true;
	pass_ours(w);
}

static void
special(struct wire *w, size_t n)
{
	if (n == 0 && w->greeted)
		(void)SSL_key_update(w->peer, SSL_KEY_UPDATE_REQUESTED);
	else if (n == 1 && w->greeted)
		(void)SSL_shutdown(w->peer);
	else if (n == 2)
		tls_part(w->tls);
	else
		pass(w, SIZE_MAX);
	pass_ours(w);
}

static void
act(struct wire *w, struct fuzz_in *in)
{
	uint8_t op = (uint8_t)fuzz_number(in, 1);
	size_t n = op & 31;

	switch (op >> 5) {
	case 0:
	case 1:
		pass(w, op < 48 ? n + 1 : (n + 1) * 64);
		break;
	case 2:
		peer_says(w, 1 + n * n * 4);
		break;
	case 3:
		we_say(w, 1 + n * n * 4);
		break;
	case 4:
		change(w, n, (uint8_t)fuzz_number(in, 1));
		break;
	case 5:
		insert(w, in, n + 1);
		break;
	case 6:
		drop(w, n + 1);
		break;
	default:
		special(w, n);
		break;
	}
}

static void
converse(struct wire *w, struct fuzz_in *in)
{
	our_turn(w);
	if (w->peer == NULL) {
		while (in->left > 0)
			insert(w, in, in->left < 48 ? in->left : 48);
		return;
	}
	/* The octet says how much of the handshake is left alone. */
	pass(w, fuzz_number(in, 1) * 8);
	while (in->left > 0)
		act(w, in);
	special(w, 3);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static SSL_CTX *theirs;
	static struct tls_context *ours;
	struct fuzz_in in = { data, size };
	struct wire w = { 0 };

	if (theirs == NULL) {
		theirs = server();
		ours = context();
	}
	MUST(tls_new(ours, &want, &w.tls) == 0);
	if (fuzz_number(&in, 1) & 1) {
		w.peer = SSL_new(theirs);
		MUST(w.peer != NULL);
		SSL_set_bio(w.peer, BIO_new(BIO_s_mem()), BIO_new(BIO_s_mem()));
		SSL_set_accept_state(w.peer);
	}
	converse(&w, &in);
	tls_free(&w.tls);
	SSL_free(w.peer);
	buf_done(&w.to_us);
	return 0;
}
