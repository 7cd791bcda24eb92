/* TLS as a transformer of octets, against a server in memory. */
#include "deliver-smtp/protection/tls.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "deliver-smtp/smtp.h"
#include "deliver-smtp/protection/tls_inside.h"
#include "tests/unit/deliver-smtp/bench.h"

/* Two ends and the octets between them. */
struct ends {
	char ca[BENCH_PATH];
	SSL_CTX *server;
	struct tls_context *context;
	struct tls *tls;
	struct peer_tls peer;
	struct buf got; /* by the server, in the clear */
};

static const char *const names[] = { "mx.example" };
static const struct tls_want want = { TLS_LEVEL_VERIFY, "mx.example", "mx:25",
	names, 1 };

static void
open_ends(struct ends *e, enum peer_certificate certificate)
{
	struct buf why = { 0 };

	memset(e, 0, sizeof(*e));
	bench_template(e->ca);
	e->server = peer_context(certificate, e->ca);
	cr_assert_eq(
	    tls_context_new(e->ca, &e->context, &why), 0, "%s", buf_str(&why));
	unlink(e->ca);
	buf_done(&why);
}

static void
begin(struct ends *e)
{
	cr_assert_eq(tls_new(e->context, &want, &e->tls), 0);
	peer_begin(&e->peer, e->server);
}

static void
end(struct ends *e)
{
	tls_free(&e->tls);
	peer_end(&e->peer);
}

static void
close_ends(struct ends *e)
{
	end(e);
	tls_context_unref(&e->context);
	SSL_CTX_free(e->server);
	buf_done(&e->got);
}

/* Ours to the server. */
static void
carry_out(struct ends *e)
{
	const char *data;
	size_t len = tls_waiting(e->tls, &data);

	if (len == 0)
		return;
	peer_feed(&e->peer, data, len, &e->got);
	tls_sent(e->tls, len);
}

/* The server's to us; -EPROTO if it is too much. */
static int
carry_in(struct ends *e)
{
	struct buf data = { 0 };
	int r;

	peer_take(&e->peer, &data);
	r = data.len == 0 ? 0 : tls_feed(e->tls, data.data, data.len);
	buf_done(&data);
	return r;
}

static int
shake(struct ends *e)
{
	int r, turns = 0;

	while ((r = tls_shake(e->tls)) == 0) {
		carry_out(e);
		cr_assert_eq(carry_in(e), 0);
		cr_assert_lt(++turns, 10);
	}
	carry_out(e);
	return r;
}

Test(tls, both_ways)
{
	struct tls_facts facts;
	struct ends e;
	char clear[64];

	open_ends(&e, PEER_GOOD);
	begin(&e);
	cr_assert_eq(shake(&e), 1);
	tls_tell(e.tls, &facts);
	cr_expect(facts.verified);
	cr_expect_not(facts.resumed);
	cr_expect_str_eq(facts.protocol, "TLSv1.3");
	cr_expect_str_eq(e.peer.host, "mx.example");
	cr_assert_eq(tls_write(e.tls, "hello", 5), 0);
	carry_out(&e);
	cr_expect_str_eq(buf_str(&e.got), "hello");
	peer_say(&e.peer, "you", 3);
	cr_assert_eq(carry_in(&e), 0);
	cr_expect_eq(tls_read(e.tls, clear, 2), 2);
	cr_expect(tls_has_more(e.tls));
	cr_expect_eq(tls_read(e.tls, clear, sizeof(clear)), 1);
	cr_expect_not(tls_has_more(e.tls));
	cr_expect_eq(tls_read(e.tls, clear, sizeof(clear)), 0);
	SSL_shutdown(e.peer.ssl);
	cr_assert_eq(carry_in(&e), 0);
	cr_expect_eq(tls_read(e.tls, clear, sizeof(clear)), -EPIPE);
	close_ends(&e);
}

/* A slice of the message is one flight: all of it waits at once. */
Test(tls, a_slice_is_one_piece)
{
	static char slice[CONTENT_SLICE];
	const char *data;
	struct ends e;

	open_ends(&e, PEER_GOOD);
	begin(&e);
	cr_assert_eq(shake(&e), 1);
	cr_assert_eq(tls_write(e.tls, slice, sizeof(slice)), 0);
	cr_expect_gt(tls_waiting(e.tls, &data), sizeof(slice));
	close_ends(&e);
}

/* TLS 1.1 and older are not spoken. */
Test(tls, N8_old_protocols)
{
	struct ends e;

	open_ends(&e, PEER_GOOD);
	SSL_CTX_set_security_level(e.server, 0);
	SSL_CTX_set_max_proto_version(e.server, TLS1_1_VERSION);
	begin(&e);
	cr_expect_eq(shake(&e), -EPROTO);
	close_ends(&e);
}

/* What the system asks for in openssl.cnf beyond that is not taken back. */
Test(tls, N8_the_least_of_the_system)
{
	static const char text[] = "openssl_conf = a\n[a]\nssl_conf = b\n"
				   "[b]\nsystem_default = c\n"
				   "[c]\nMinProtocol = TLSv1.3\n";
	struct tls_context *context = NULL;
	char path[BENCH_PATH];
	int fd;

	bench_template(path);
	fd = mkstemp(path);
	cr_assert_eq(
	    write(fd, text, sizeof(text) - 1), (ssize_t)sizeof(text) - 1);
	close(fd);
	setenv("OPENSSL_CONF", path, 1);
	cr_assert_eq(tls_context_new(NULL, &context, NULL), 0);
	cr_expect_eq(
	    SSL_CTX_get_min_proto_version(context->ssl), TLS1_3_VERSION);
	tls_context_unref(&context);
	unlink(path);
}

/* A server that speaks Diffie-Hellman with this group alone. */
static void
use_group(SSL_CTX *server, const char *group)
{
	EVP_PKEY *key = EVP_RSA_gen(2048), *dh = NULL;
	OSSL_PARAM params[] = { OSSL_PARAM_construct_utf8_string(
				    "group", (char *)(uintptr_t)group, 0),
		OSSL_PARAM_construct_end() };
	EVP_PKEY_CTX *made = EVP_PKEY_CTX_new_from_name(NULL, "DH", NULL);
	X509 *x = X509_new();

	X509_set_version(x, 2);
	X509_gmtime_adj(X509_getm_notBefore(x), -3600);
	X509_gmtime_adj(X509_getm_notAfter(x), 3600);
	X509_set_pubkey(x, key);
	cr_assert_gt(X509_sign(x, key, EVP_sha256()), 0);
	cr_assert_eq(SSL_CTX_use_certificate(server, x), 1);
	cr_assert_eq(SSL_CTX_use_PrivateKey(server, key), 1);
	cr_assert_eq(EVP_PKEY_paramgen_init(made), 1);
	cr_assert_eq(EVP_PKEY_CTX_set_params(made, params), 1);
	cr_assert_eq(EVP_PKEY_generate(made, &dh), 1);
	cr_assert_eq(SSL_CTX_set0_tmp_dh_pkey(server, dh), 1);
	SSL_CTX_set_max_proto_version(server, TLS1_2_VERSION);
	cr_assert_eq(
	    SSL_CTX_set_cipher_list(server, "DHE-RSA-AES128-GCM-SHA256"), 1);
	EVP_PKEY_CTX_free(made);
	X509_free(x);
	EVP_PKEY_free(key);
}

Test(tls, N22_a_costly_group)
{
	static const struct {
		const char *group;
		int want;
	} groups[] = { { "ffdhe4096", 1 }, { "ffdhe6144", -EPROTO } };
	static const struct tls_want any = { .level = TLS_LEVEL_ENCRYPT,
		.relay = "mx:25" };
	struct ends e;
	size_t i;

	for (i = 0; i < ARRAY_LEN(groups); i++) {
		open_ends(&e, PEER_GOOD);
		use_group(e.server, groups[i].group);
		cr_assert_eq(tls_new(e.context, &any, &e.tls), 0);
		peer_begin(&e.peer, e.server);
		cr_expect_eq(shake(&e), groups[i].want, "%s: %s",
		    groups[i].group, tls_why(e.tls));
		close_ends(&e);
	}
}

/* Any octet of the server's may be another one. */
Test(tls, N8_every_octet_of_the_handshake_wrong)
{
	struct buf data = { 0 };
	struct ends e;
	size_t i, step;

	open_ends(&e, PEER_GOOD);
	for (i = 0; i == 0 || i < data.len; i += step) {
		begin(&e);
		cr_assert_eq(tls_shake(e.tls), 0);
		carry_out(&e);
		buf_reset(&data);
		peer_take(&e.peer, &data);
		cr_assert_lt(i, data.len);
		data.data[i] ^= 0x41;
		cr_assert_eq(tls_feed(e.tls, data.data, data.len), 0);
		cr_expect_leq(tls_shake(e.tls), 0, "octet %zu", i);
		end(&e);
		step = i < 200 ? 7 : 41;
	}
	buf_done(&data);
	close_ends(&e);
}

/* mutation: deliver-smtp/protection/tls.c, tls_feed() without its limit. */
Test(tls, N22_a_flood_of_tickets)
{
	struct buf data = { 0 };
	struct ends e;
	char clear[64];
	size_t i, n, rows = 0;
	int r = 0;

	open_ends(&e, PEER_GOOD);
	SSL_CTX_set_num_tickets(e.server, 4000);
	begin(&e);
	cr_assert_eq(shake(&e), 1);
	peer_take(&e.peer, &data);
	cr_assert_gt(data.len, 2 * TLS_QUIET_MAX);
	for (i = 0; r == 0 && i < data.len; i += n) {
		n = data.len - i < 4096 ? data.len - i : 4096;
		r = tls_feed(e.tls, data.data + i, n);
		if (r == 0)
			r = (int)tls_read(e.tls, clear, sizeof(clear));
	}
	cr_expect_eq(r, -EPROTO);
	cr_expect_leq(i, TLS_QUIET_MAX + 3 * 4096);
	for (i = 0; i < TLS_SESSIONS_MAX; i++)
		rows += e.context->sessions.row[i].used != 0;
	cr_expect_leq(rows, 1);
	buf_done(&data);
	close_ends(&e);
}

/* A server asks to begin anew, again and again, says a little between, and does
 * not read our answers. */
Test(tls, N22_answers_that_are_not_read)
{
	const char *data;
	struct ends e;
	char clear[8];
	size_t i;
	int r = 0;

	open_ends(&e, PEER_GOOD);
	SSL_CTX_set_max_proto_version(e.server, TLS1_2_VERSION);
	begin(&e);
	cr_assert_eq(shake(&e), 1);
	for (i = 0; r >= 0 && i < 2 * TLS_UNREAD_MAX / 16; i++) {
		SSL_renegotiate(e.peer.ssl);
		SSL_do_handshake(e.peer.ssl);
		if (i % 100 == 0)
			peer_say(&e.peer, "x", 1);
		r = carry_in(&e);
		while (r == 0 &&
		    (r = (int)tls_read(e.tls, clear, sizeof(clear))) > 0)
			r = 0;
	}
	cr_expect_eq(r, -EPROTO, "%zu wait", tls_waiting(e.tls, &data));
	cr_expect_lt(tls_waiting(e.tls, &data), 2 * TLS_UNREAD_MAX);
	close_ends(&e);
}

/* ---- sessions ---- */

Test(tls, N21_keys_of_sessions)
{
	static const char *const other[] = { "other.example" };
	static const char *const both[] = { "mx.example", "other.example" };
	static const struct tls_want wants[] = {
		{ TLS_LEVEL_VERIFY, "mx.example", "mx:25", names, 1 },
		{ TLS_LEVEL_VERIFY, "mx.example", "mx:25", other, 1 },
		{ TLS_LEVEL_VERIFY, "mx.example", "mx:25", both, 2 },
		{ TLS_LEVEL_VERIFY, "mx.example", "mx:26", names, 1 },
		{ TLS_LEVEL_VERIFY, "other.example", "mx:25", names, 1 },
		{ TLS_LEVEL_VERIFY, NULL, "mx:25", names, 1 },
		{ TLS_LEVEL_ENCRYPT, "mx.example", "mx:25", NULL, 0 },
		{ TLS_LEVEL_MAY, "mx.example", "mx:25", NULL, 0 },
	};
	struct buf a = { 0 }, b = { 0 };
	size_t i, k;

	for (i = 0; i < ARRAY_LEN(wants); i++)
		for (k = 0; k < ARRAY_LEN(wants); k++) {
			buf_reset(&a);
			buf_reset(&b);
			cr_assert_eq(tls_session_key(&wants[i], &a), 0);
			cr_assert_eq(tls_session_key(&wants[k], &b), 0);
			cr_expect_eq(strcmp(buf_str(&a), buf_str(&b)) == 0,
			    i == k, "%s", buf_str(&a));
		}
	buf_done(&a);
	buf_done(&b);
}

/* Even if a session came under the wrong key, its certificate is compared. */
Test(tls, N21_a_session_under_a_wrong_key)
{
	static const char *const other[] = { "other.example" };
	static const struct tls_want wrong = { TLS_LEVEL_VERIFY, "mx.example",
		"mx:25", other, 1 };
	struct buf key = { 0 }, wrong_key = { 0 };
	struct ends e;
	char clear[8];

	open_ends(&e, PEER_GOOD);
	begin(&e);
	cr_assert_eq(shake(&e), 1);
	cr_assert_eq(carry_in(&e), 0);
	cr_assert_eq(tls_read(e.tls, clear, sizeof(clear)), 0);
	end(&e);
	tls_session_key(&want, &key);
	tls_session_key(&wrong, &wrong_key);
	free(e.context->sessions.row[0].key);
	e.context->sessions.row[0].key = strdup(buf_str(&wrong_key));
	cr_assert_eq(tls_new(e.context, &wrong, &e.tls), 0);
	peer_begin(&e.peer, e.server);
	cr_expect_eq(shake(&e), -EPROTO);
	cr_expect_str_eq(
	    tls_why(e.tls), "the certificate is not for other.example");
	cr_expect_eq(SSL_session_reused(e.peer.ssl), 1, "it was offered");
	buf_done(&key);
	buf_done(&wrong_key);
	close_ends(&e);
}

Test(tls, the_oldest_session_makes_room)
{
	static struct tls_sessions s;
	char key[16];
	int i;

	for (i = 0; i < TLS_SESSIONS_MAX; i++) {
		snprintf(key, sizeof(key), "%d", i);
		tls_sessions_put(&s, key, SSL_SESSION_new());
	}
	cr_expect_not_null(tls_sessions_find(&s, "0"));
	tls_sessions_put(&s, "one more", SSL_SESSION_new());
	cr_expect_not_null(tls_sessions_find(&s, "0"));
	cr_expect_null(tls_sessions_find(&s, "1"));
	tls_sessions_drop(&s, "0");
	cr_expect_null(tls_sessions_find(&s, "0"));
	tls_sessions_done(&s);
	cr_expect_null(tls_sessions_find(&s, "one more"));
}

/* ---- the filter of system calls ---- */

/* mutation: deliver-smtp/lockdown.c, a call that TLS needs among the refused
 * ones: getrandom. */
Test(tls, X8_works_behind_the_filter)
{
	struct ends e;
	int status;
	pid_t pid = fork();

	cr_assert_geq(pid, 0);
	if (pid == 0) {
		if (lockdown_install() < 0)
			_exit(100);
		open_ends(&e, PEER_GOOD);
		begin(&e);
		_exit(shake(&e) == 1 ? 0 : 1);
	}
	cr_assert_eq(waitpid(pid, &status, 0), pid);
	cr_expect(WIFEXITED(status));
	cr_expect_eq(WEXITSTATUS(status), 0);
}

/* ---- authorities ---- */

Test(tls, files_of_authorities)
{
	static const struct {
		const char *text, *why;
	} files[] = {
		{ "", "is empty" },
		{ "no certificate\n", "certificate 1 is none" },
		{ "-----BEGIN CERTIFICATE-----\nAAAA\n"
		  "-----END CERTIFICATE-----\n",
		    "certificate 1 is none, or is damaged" },
	};
	struct tls_context *context = NULL;
	char path[BENCH_PATH];
	size_t i;
	int fd;

	for (i = 0; i < ARRAY_LEN(files); i++) {
		struct buf why = { 0 };

		bench_template(path);
		fd = mkstemp(path);
		cr_assert_eq(write(fd, files[i].text, strlen(files[i].text)),
		    (ssize_t)strlen(files[i].text));
		close(fd);
		cr_expect_lt(tls_context_new(path, &context, &why), 0);
		cr_expect_not_null(
		    strstr(buf_str(&why), files[i].why), "%s", buf_str(&why));
		cr_expect_null(context);
		unlink(path);
		buf_done(&why);
	}
}
