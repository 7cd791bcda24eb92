/* Each level of TLS with each server: N8. */
#include "tests/unit/deliver-smtp/bench.h"

#include <criterion/criterion.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/io.h"
#include "config/conf.h"

/* clang-format off */
#define EHLO_TLS \
	{ "", "220 mx\r\n" }, \
	{ "EHLO me.example\r\n", "250-mx\r\n250 STARTTLS\r\n" }
#define STARTTLS \
	EHLO_TLS, { "STARTTLS\r\n", "220 go\r\n" }
#define MESSAGE \
	{ "EHLO me.example\r\n", "250 mx\r\n" }, \
	{ "MAIL FROM:<s@y>\r\n", "250 ok\r\n" }, \
	{ "RCPT TO:<r0@x>\r\n", "250 ok\r\n" }, \
	{ "DATA\r\n", "354 go\r\n" }, \
	{ "\r\n.\r\n", "250 2.0.0 queued\r\n" }
#define QUIT { "QUIT\r\n", "221 bye\r\n" }
#define END { NULL, NULL }

static const struct step works[] = {
	STARTTLS, { "", BENCH_TLS }, MESSAGE, QUIT, END };
static const struct step implicit[] = {
	{ "", BENCH_TLS }, { "", "220 mx\r\n" }, MESSAGE, QUIT, END };
static const struct step not_offered[] = {
	{ "", "220 mx\r\n" }, MESSAGE, QUIT, END };
static const struct step refused[] = {
	EHLO_TLS, { "STARTTLS\r\n", "454 4.7.0 not now\r\n" },
	QUIT, { "", NULL }, END };
static const struct step reset[] = {
	STARTTLS, { "", NULL }, END };
static const struct step garbage[] = {
	STARTTLS, { "", "" }, { "\n", "rubbish that is no TLS, long enough\r\n" },
	END };
static const struct step injected[] = {
	EHLO_TLS, { "STARTTLS\r\n", "220 go\r\n250-mx\r\n250 SIZE 1\r\n" },
	{ "", "" }, END };
static const struct step injected_before[] = {
	{ "", "220 mx\r\n" },
	{ "EHLO me.example\r\n", "250-mx\r\n250 STARTTLS\r\n220 go\r\n" }, END };
static const struct step silent[] = { STARTTLS, END };
/* clang-format on */

static const struct settings_row {
	const char *level;
} levels[] = { { "none" }, { "may" }, { "encrypt" }, { "verify" } };
enum {
	NONE,
	MAY,
	ENCRYPT,
	VERIFY,
	NLEVELS
};

/* What becomes of the message: its result, whether the site has failed, how
 * many connections it took. */
struct want {
	const char *result;
	bool site_failed;
	unsigned connections;
};
#define SENT                         \
	{                            \
		"0S2.0.0:", false, 1 \
	}
#define FELL_BACK                    \
	{                            \
		"0S2.0.0:", false, 2 \
	}
#define FAILED(t)                                          \
	{                                                  \
		"0D4.7.5:127.0.0.1[127.0.0.1]:" t, true, 1 \
	}
#define WAITS(d)                    \
	{                           \
		"0D" d ":", true, 1 \
	}

/* clang-format off */
static const struct {
	const char *name;
	const struct step *steps;
	enum peer_certificate certificate;
	struct want want[NLEVELS];
} rows[] = {
	{ "good", works, PEER_GOOD, { SENT, SENT, SENT, SENT } },
	{ "expired", works, PEER_EXPIRED,
	    { SENT, SENT, SENT, FAILED("") } },
	{ "not yet", works, PEER_NOT_YET,
	    { SENT, SENT, SENT, FAILED("") } },
	{ "wrong name", works, PEER_OTHER_NAME,
	    { SENT, SENT, SENT, FAILED("") } },
	{ "unknown CA", works, PEER_UNKNOWN_CA,
	    { SENT, SENT, SENT, FAILED("") } },
	{ "self-signed", works, PEER_SELF_SIGNED,
	    { SENT, SENT, SENT, FAILED("") } },
	{ "not offered", not_offered, PEER_GOOD,
	    { SENT, SENT, WAITS("4.7.4"), WAITS("4.7.4") } },
	{ "refused", refused, PEER_GOOD,
	    { SENT, FELL_BACK, WAITS("4.7.0"), WAITS("4.7.0") } },
	{ "reset", reset, PEER_GOOD,
	    { SENT, FELL_BACK, FAILED(""), FAILED("") } },
	{ "garbage", garbage, PEER_GOOD,
	    { SENT, FELL_BACK, FAILED(""), FAILED("") } },
	{ "injected", injected, PEER_GOOD,
	    { SENT, WAITS("4.5.0"), WAITS("4.5.0"), WAITS("4.5.0") } },
	{ "injected before", injected_before, PEER_GOOD,
	    { SENT, WAITS("4.5.0"), WAITS("4.5.0"), WAITS("4.5.0") } },
	{ "silent", silent, PEER_GOOD,
	    { SENT, FELL_BACK, WAITS("4.4.2"), WAITS("4.4.2") } },
};
/* clang-format on */

struct place {
	struct bench b;
	char ca[BENCH_PATH], table[BENCH_PATH];
};

static void
set_up(struct place *p, enum peer_certificate certificate,
    const struct step *steps)
{
	struct bench *b = &p->b;

	memset(p, 0, sizeof(*p));
	bench_open(b, BENCH_CONTENT, strlen(BENCH_CONTENT));
	bench_template(p->ca);
	b->server.tls = peer_context(certificate, p->ca);
	bench_serve(b, NULL, steps);
	b->server.again = not_offered;
}

static void
tear_down(struct place *p)
{
	bench_close(&p->b);
	unlink(p->ca);
	if (p->table[0] != '\0')
		unlink(p->table);
}

/* The level of all, and rows of the table. */
static void
set_policies(struct place *p, const char *level, const char *table)
{
	const struct conf_setting settings[] = {
		{ "default_tls_security_level", level, 1 },
		{ "smtp_tls_CAfile", p->ca, 2 },
		{ "smtp_tls_policy_file", p->table, 3 },
	};
	int fd;

	if (table != NULL) {
		if (p->table[0] != '\0')
			unlink(p->table);
		bench_template(p->table);
		fd = mkstemp(p->table);
		cr_assert_eq(io_write_all(fd, table, strlen(table)), 0);
		close(fd);
	}
	bench_policies(&p->b, settings, ARRAY_LEN(settings));
}

static void
deliver(struct place *p)
{
	p->b.number++;
	bench_deliver(&p->b, AGENT_SMTP, "127.0.0.1:%u", 1);
	bench_run(&p->b);
}

/* Is any word of the message among what the server got? */
static bool
was_told(const struct place *p)
{
	const char *got = buf_str(&p->b.server.got);

	return strstr(got, "MAIL") != NULL;
}

static void
try(size_t row, int level)
{
	const struct want *want = &rows[row].want[level];
	struct place p;

	set_up(&p, rows[row].certificate,
	    level == NONE ? not_offered : rows[row].steps);
	set_policies(&p, levels[level].level, NULL);
	p.b.context.settings.limits[DIALOG_TLS] =
	    rows[row].steps == silent ? 50 * USEC_PER_MSEC : 60 * USEC_PER_SEC;
	deliver(&p);
	cr_expect_not_null(strstr(buf_str(&p.b.results), want->result),
	    "%s, %s: %s", rows[row].name, levels[level].level,
	    buf_str(&p.b.results));
	cr_expect_eq(p.b.site_failed, want->site_failed, "%s, %s",
	    rows[row].name, levels[level].level);
	cr_expect_eq(p.b.server.connections, want->connections, "%s, %s: %u",
	    rows[row].name, levels[level].level, p.b.server.connections);
	if (want->site_failed)
		cr_expect_not(was_told(&p), "%s, %s", rows[row].name,
		    levels[level].level);
	tear_down(&p);
}

/* mutation: deliver-smtp/dialog/handshake.c, a server without STARTTLS is
 * spoken to at every level. */
Test(tls_levels, N8_each_level_with_each_server)
{
	size_t row;
	int level;

	for (row = 0; row < ARRAY_LEN(rows); row++)
		for (level = 0; level < NLEVELS; level++)
			try(row, level);
}

/* The reason names the fault. */
Test(tls_levels, N8_the_reason_is_said)
{
	static const struct {
		enum peer_certificate certificate;
		const char *why;
	} whys[] = {
		{ PEER_EXPIRED, "certificate has expired" },
		{ PEER_NOT_YET, "certificate is not yet valid" },
		{ PEER_OTHER_NAME, "the certificate is not for 127.0.0.1" },
		{ PEER_UNKNOWN_CA, "unable to get local issuer certificate" },
		{ PEER_SELF_SIGNED, "self-signed certificate" },
	};
	struct place p;
	size_t i;

	for (i = 0; i < ARRAY_LEN(whys); i++) {
		set_up(&p, whys[i].certificate, works);
		set_policies(&p, "verify", NULL);
		deliver(&p);
		cr_expect_not_null(strstr(buf_str(&p.b.results), whys[i].why),
		    "%s", buf_str(&p.b.results));
		tear_down(&p);
	}
}

Test(tls_levels, N8_without_authorities_nobody_is_verified)
{
	struct place p;

	set_up(&p, PEER_GOOD, works);
	unlink(p.ca);
	p.ca[0] = '\0';
	set_policies(&p, "verify", NULL);
	deliver(&p);
	bench_expect(&p.b, "0D4.7.5:", true);
	tear_down(&p);
}

Test(tls_levels, TLS_from_the_first_octet)
{
	static const char *const tables[] = { "127.0.0.1 verify implicit\n",
		"127.0.0.1 encrypt implicit\n" };
	struct place p;
	size_t i;

	for (i = 0; i < ARRAY_LEN(tables); i++) {
		set_up(&p, PEER_GOOD, implicit);
		set_policies(&p, "may", tables[i]);
		deliver(&p);
		bench_expect(&p.b, "0S2.0.0:", false);
		tear_down(&p);
	}
}

/* The names of the table, and which of them a certificate proves. */
Test(tls_levels, N8_N42_names)
{
	static const struct {
		enum peer_certificate certificate;
		const char *table;
		bool good;
	} names[] = {
		{ PEER_GOOD, "127.0.0.1 verify match=mx.example", true },
		{ PEER_GOOD, "127.0.0.1 verify match=MX.Example", true },
		{ PEER_GOOD, "127.0.0.1 verify match=no match=mx.example",
		    true },
		{ PEER_GOOD, "127.0.0.1 verify match=.example", true },
		{ PEER_GOOD, "127.0.0.1 verify match=example", false },
		{ PEER_GOOD, "127.0.0.1 verify match=x.mx.example", false },
		{ PEER_GOOD, "127.0.0.1 verify match=.mx.example", false },
		{ PEER_GOOD, "127.0.0.1 verify match=127.0.0.2", false },
		{ PEER_GOOD, "127.0.0.1 verify match=mx", false },
		{ PEER_OTHER_NAME, "127.0.0.1 verify match=mx.example", false },
		{ PEER_SUBJECT_NAME, "127.0.0.1 verify match=mx.example",
		    false },
		{ PEER_WILD_NAME, "127.0.0.1 verify match=a.wild.example",
		    true },
		{ PEER_WILD_NAME, "127.0.0.1 verify match=wild.example",
		    false },
		{ PEER_WILD_NAME, "127.0.0.1 verify match=a.b.wild.example",
		    false },
	};
	struct place p;
	size_t i;

	for (i = 0; i < ARRAY_LEN(names); i++) {
		set_up(&p, names[i].certificate, works);
		set_policies(&p, "may", names[i].table);
		deliver(&p);
		cr_expect_eq(strstr(buf_str(&p.b.results), "0S2.0.0:") != NULL,
		    names[i].good, "%s: %s", names[i].table,
		    buf_str(&p.b.results));
		tear_down(&p);
	}
}

/* ---- sessions ---- */

/* Deliveries under these policies, one after the other, each over a connection
 * of its own; was the session of the first resumed? */
static unsigned
resumed(struct place *p, const char *first, const char *second)
{
	p->b.server.again = works;
	set_policies(p, "may", first);
	deliver(p);
	bench_expect(&p->b, "0S2.0.0:", false);
	if (second != NULL)
		set_policies(p, "may", second);
	deliver(p);
	return p->b.server.resumed;
}

Test(tls_levels, a_session_is_resumed)
{
	struct place p;

	set_up(&p, PEER_GOOD, works);
	cr_expect_eq(resumed(&p, "127.0.0.1 verify\n", NULL), 1);
	bench_expect(&p.b, "0S2.0.0:", false);
	cr_expect_eq(p.b.server.secured, 2);
	tear_down(&p);
}

/* A session that was made without a look at the certificate, or for another
 * name, proves nothing. The context is the same one: a table that names two
 * next hops, which lead to one server. */
Test(tls_levels, N21_a_session_proves_nothing_for_another_name)
{
	static const char *const tables[] = {
		"127.0.0.1 may\n[127.0.0.1] verify match=other.example\n",
		"127.0.0.1 encrypt\n[127.0.0.1] verify match=other.example\n",
		"127.0.0.1 verify\n[127.0.0.1] verify match=other.example\n",
	};
	struct place p;
	size_t i;

	for (i = 0; i < ARRAY_LEN(tables); i++) {
		set_up(&p, PEER_GOOD, works);
		p.b.server.again = works;
		set_policies(&p, "may", tables[i]);
		deliver(&p);
		bench_expect(&p.b, "0S2.0.0:", false);
		p.b.number++;
		bench_deliver(&p.b, AGENT_SMTP, "[127.0.0.1]:%u", 1);
		bench_run(&p.b);
		bench_expect(&p.b, "0D4.7.5:", true);
		cr_expect_eq(p.b.server.resumed, 0, "%s", tables[i]);
		tear_down(&p);
	}
}

/* ---- kept ---- */

#define RECORD 512 /* the smallest limit of a record */

static char two_records[RECORD + 64];

/* clang-format off */
static const struct step says_more[] = {
	STARTTLS, { "", BENCH_TLS },
	{ "EHLO me.example\r\n", "250 mx\r\n" },
	{ "MAIL FROM:<s@y>\r\n", "250 ok\r\n" },
	{ "RCPT TO:<r0@x>\r\n", "250 ok\r\n" },
	{ "DATA\r\n", "354 go\r\n" },
	{ "\r\n.\r\n", two_records }, END };
/* clang-format on */

/* What follows the last reply was not asked for, and is no reply to what comes
 * next. */
Test(tls_levels, N22_kept_without_a_word_left)
{
	struct place p;

	snprintf(two_records, sizeof(two_records),
	    "250 2.0.0 %0*d\r\n250 and more\r\n", RECORD - 12, 0);
	set_up(&p, PEER_GOOD, says_more);
	SSL_CTX_set_max_send_fragment(p.b.server.tls, RECORD);
	set_policies(&p, "encrypt", NULL);
	p.b.reuse = true;
	deliver(&p);
	bench_expect(&p.b, "0S2.0.0:", false);
	cr_expect_not(p.b.kept);
	tear_down(&p);
}

/* ---- two addresses ---- */

static void
name_two_addresses(char path[BENCH_PATH])
{
	static const char hosts[] = "127.0.0.2 two.test\n127.0.0.1 two.test\n";
	int fd;

	bench_template(path);
	fd = mkstemp(path);
	cr_assert_eq(io_write_all(fd, hosts, sizeof(hosts) - 1), 0);
	close(fd);
	cr_assert_eq(setenv("CARES_HOSTS", path, 1), 0);
}

/* A server at the first address that takes one connection. */
static int
take_one(struct place *p)
{
	struct sockaddr_in in = { .sin_family = AF_INET,
		.sin_port = htons(p->b.server.port) };
	int sock = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0), client;

	in.sin_addr.s_addr = htonl(INADDR_LOOPBACK + 1);
	cr_assert_eq(bind(sock, (struct sockaddr *)&in, sizeof(in)), 0);
	cr_assert_eq(listen(sock, 1), 0);
	p->b.number++;
	bench_deliver(&p->b, AGENT_SMTP, "[two.test]:%u", 1);
	while ((client = accept4(sock, NULL, NULL, SOCK_CLOEXEC)) < 0)
		bench_turn(&p->b);
	close(sock);
	return client;
}

/* TLS fails with the first address, which is gone then. The other one was not
 * asked yet. */
Test(tls_levels, N8_another_address_is_asked_for_TLS)
{
	static const char *const says[] = { "220 mx\r\n",
		"250-mx\r\n250 STARTTLS\r\n", "454 4.7.0 not now\r\n" };
	char path[BENCH_PATH], heard[256];
	struct place p;
	size_t i;
	int client;

	name_two_addresses(path);
	set_up(&p, PEER_GOOD, works);
	set_policies(&p, "may", NULL);
	client = take_one(&p);
	for (i = 0; i < ARRAY_LEN(says); i++) {
		cr_assert_eq(io_write_all(client, says[i], strlen(says[i])), 0);
		while (i + 1 < ARRAY_LEN(says) &&
		    recv(client, heard, sizeof(heard), MSG_DONTWAIT) <= 0)
			bench_turn(&p.b);
	}
	bench_run(&p.b);
	bench_expect(&p.b, "0S2.0.0:two.test[127.0.0.1]:", false);
	cr_expect_eq(p.b.server.secured, 1);
	close(client);
	tear_down(&p);
	unlink(path);
}
