/* Servers that lack the TLS that their next hop requires, and a fallback that
 * takes mail in the clear: the mail waits. */
#include "tests/unit/deliver-smtp/bench.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/io.h"
#include "config/conf.h"

#define SHORT (50 * USEC_PER_MSEC)

/* clang-format off */
#define EHLO_TLS \
	{ "", "220 mx\r\n" }, \
	{ "EHLO me.example\r\n", "250-mx\r\n250 STARTTLS\r\n" }
#define STARTTLS \
	EHLO_TLS, { "STARTTLS\r\n", "220 go\r\n" }
#define END { NULL, NULL }

static const struct step works[] = { STARTTLS, { "", BENCH_TLS }, END };
static const struct step refused[] = {
	EHLO_TLS, { "STARTTLS\r\n", "454 4.7.0 not now\r\n" }, END };
static const struct step reset[] = { STARTTLS, { "", NULL }, END };
static const struct step garbage[] = {
	STARTTLS, { "\n", "rubbish that is no TLS, long enough\r\n" }, END };
static const struct step injected[] = {
	EHLO_TLS, { "STARTTLS\r\n", "220 go\r\n250-mx\r\n250 SIZE 1\r\n" }, END };
static const struct step silent[] = { STARTTLS, END };
static const struct step closed[] = { { "", NULL }, END };
static const struct step busy[] = { { "", "421 busy\r\n" }, END };
/* clang-format on */

static struct bench b;
static char ca[BENCH_PATH], table[BENCH_PATH];

/* The first connection has the steps, all others have `again`. The row is that
 * of the destination. */
static void
set_up(const struct step *steps, const struct step *again, const char *row)
{
	const struct conf_setting settings[] = {
		{ "default_tls_security_level", "none", 1 },
		{ "smtp_tls_CAfile", ca, 2 },
		{ "smtp_tls_policy_file", table, 3 },
	};
	struct settings *s = &b.context.settings;
	struct conf_fallback *fallback;
	int fd;

	bench_open(&b, BENCH_CONTENT, strlen(BENCH_CONTENT));
	bench_template(ca);
	b.server.tls = peer_context(PEER_OTHER_NAME, ca);
	bench_template(table);
	fd = mkstemp(table);
	cr_assert_eq(io_write_all(fd, row, strlen(row)), 0);
	io_close(&fd);
	bench_policies(&b, settings, ARRAY_LEN(settings));
	bench_serve(&b, "*", steps);
	b.server.again = again;
	fallback = &bench_transport(&b, "smtp")->fallback_relay;
	snprintf(fallback->text, sizeof(fallback->text), "127.0.0.3:%u",
	    b.server.port);
	s->limits[DIALOG_TLS] = steps == silent ? SHORT : 60 * USEC_PER_SEC;
}

static void
tear_down(void)
{
	bench_close(&b);
	unlink(ca);
	unlink(table);
}

/* mutation: deliver-smtp/session/next.c, session_may_fall_back() without
 * insecure; deliver-smtp/dialog/handshake.c, want_tls() without it. */
Test(
    tls_fallback, N8_N39_what_waits_for_TLS_goes_to_no_fallback, .timeout = 120)
{
	static const struct {
		const char *level;
		const struct step *steps;
		bool waits;
	} rows[] = {
		{ "encrypt", bench_plain, true },
		{ "verify", bench_plain, true },
		{ "encrypt", refused, true },
		{ "encrypt", reset, true },
		{ "encrypt", garbage, true },
		{ "encrypt", injected, true },
		{ "verify", works, true }, /* for another name */
		{ "encrypt implicit", reset, true },
		/* No host of the destination can be reached. */
		{ "verify", silent, false },
		{ "verify", closed, false },
		{ "verify", busy, false },
	};
	char row[64];
	size_t i;

	for (i = 0; i < ARRAY_LEN(rows); i++) {
		snprintf(row, sizeof(row), "127.0.0.1 %s\n", rows[i].level);
		set_up(rows[i].steps, bench_plain, row);
		bench_deliver(&b, AGENT_SMTP, "127.0.0.1:%u", 1);
		bench_run(&b);
		bench_expect(&b, rows[i].waits ? "0D4." : "0S2.0.0:127.0.0.3[",
		    rows[i].waits);
		cr_expect_eq(
		    b.server.connections, rows[i].waits ? 1 : 2, "%zu", i);
		tear_down();
	}
}

/* The first host lacks TLS, the second one is busy.
 *
 * mutation: deliver-smtp/session/next.c, learn() that forgets insecure. */
Test(tls_fallback, N8_N39_no_fallback_where_any_host_lacks_TLS, .timeout = 120)
{
	char names[BENCH_PATH];

	bench_name_two(names);
	set_up(bench_plain, busy, "two.test verify\n");
	bench_deliver(&b, AGENT_SMTP, "[two.test]:%u", 1);
	bench_run(&b);
	bench_expect(&b, "0D4.3.2:two.test[127.0.0.1]:", true);
	cr_expect_eq(b.server.connections, 2);
	tear_down();
	unlink(names);
}
