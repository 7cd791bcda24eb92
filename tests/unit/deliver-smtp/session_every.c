/* The end of a connection at every octet that either side sends, with a server
 * of its own for each: closed, reset, or silent; in the clear, by BDAT, and
 * with TLS from the handshake on. Each recipient has exactly one result, and it
 * is a yes only where the server has the whole message and said so. */
#include "tests/unit/deliver-smtp/bench.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "config/conf.h"

#define MILD (5 * USEC_PER_MSEC)

/* clang-format off */
#define MESSAGE \
	{ "MAIL FROM:<s@y>\r\n", "250 ok\r\n" }, \
	{ "RCPT TO:<r0@x>\r\n", "250 ok\r\n" }, \
	{ "DATA\r\n", "354 go\r\n" }, \
	{ "\r\n.\r\n", "250 2.0.0 queued\r\n" }, \
	{ "QUIT\r\n", "221 bye\r\n" }, { NULL, NULL }
static const struct step plain[] = {
	{ "", "220 mx\r\n" }, { "EHLO me.example\r\n", "250 mx\r\n" },
	MESSAGE };
static const struct step pipelined[] = {
	{ "", "220 mx\r\n" },
	{ "EHLO me.example\r\n", "250-mx\r\n250 PIPELINING\r\n" },
	{ "DATA\r\n", "250 ok\r\n250 ok\r\n354 go\r\n" },
	{ "\r\n.\r\n", "250 2.0.0 queued\r\n" },
	{ "QUIT\r\n", "221 bye\r\n" }, { NULL, NULL } };
static const struct step chunked[] = {
	{ "", "220 mx\r\n" },
	{ "EHLO me.example\r\n", "250-mx\r\n250 CHUNKING\r\n" },
	{ "MAIL FROM:<s@y>\r\n", "250 ok\r\n" },
	{ "RCPT TO:<r0@x>\r\n", "250 ok\r\n" },
	{ "end\r\n", "250 2.0.0 queued\r\n" },
	{ "QUIT\r\n", "221 bye\r\n" }, { NULL, NULL } };
static const struct step secure[] = {
	{ "", "220 mx\r\n" },
	{ "EHLO me.example\r\n", "250-mx\r\n250 STARTTLS\r\n" },
	{ "STARTTLS\r\n", "220 go\r\n" }, { "", BENCH_TLS },
	{ "EHLO me.example\r\n", "250 mx\r\n" }, MESSAGE };
/* clang-format on */

static const struct kind {
	const char *name;
	const struct step *steps;
	const char *whole; /* the server has heard the message */
	/* At least; and it does not matter more precisely. */
	size_t says, hears;
	size_t step; /* between two places that are tried */
	bool tls;
} kinds[] = {
	{ "plain", plain, "\r\n.\r\n", 75, 120, 1, false },
	{ "pipelined", pipelined, "\r\n.\r\n", 80, 120, 1, false },
	{ "chunked", chunked, "\r\nend\r\n", 80, 120, 1, false },
	{ "TLS", secure, "\r\n.\r\n", 2000, 1200, 23, true },
};

static void
set_up(struct bench *b, const struct kind *k, enum server_end end)
{
	static const struct conf_setting verify = {
		.name = "default_tls_security_level", .value = "encrypt"
	};
	char ca[BENCH_PATH];
	size_t i;

	bench_open(b, BENCH_CONTENT, strlen(BENCH_CONTENT));
	if (k->tls) {
		bench_policies(b, &verify, 1);
		bench_template(ca);
		b->server.tls = peer_context(PEER_GOOD, ca);
		unlink(ca);
	}
	bench_transport(b, "smtp")->chunking = true;
	b->server.end = end;
	for (i = 0; end == SERVER_IS_SILENT && i < DIALOG_NSTATES; i++)
		b->context.settings.limits[i] = MILD;
	bench_serve(b, NULL, k->steps);
}

static void
run(const struct kind *k, enum server_end end, size_t says, size_t hears)
{
	struct bench b;
	const char *results;
	bool over;

	set_up(&b, k, end);
	b.server.says = says;
	b.server.hears = hears;
	bench_deliver(&b, AGENT_SMTP, "127.0.0.1:%u", 1);
	bench_run(&b);
	results = buf_str(&b.results);
	over = strstr(buf_str(&b.server.got), k->whole) != NULL;
	cr_expect(strncmp(results, "0D", 2) == 0 ||
		(strncmp(results, "0S2.0.0", 7) == 0 && over),
	    "%s, %zu said, %zu heard: %s", k->name, says, hears, results);
	cr_expect_eq(strchr(results, '\n'), results + strlen(results) - 1,
	    "%s, %zu said, %zu heard: %s", k->name, says, hears, results);
	bench_close(&b);
}

static void
everywhere(enum server_end end, size_t stride)
{
	const struct kind *k;
	size_t n;

	for (k = kinds; k < kinds + ARRAY_LEN(kinds); k++) {
		for (n = 1; n <= k->says; n += k->step * stride)
			run(k, end, n, 0);
		for (n = 1; n <= k->hears; n += k->step * stride)
			run(k, end, 0, n);
	}
}

Test(session_every, N3_closed)
{
	everywhere(SERVER_CLOSES, 1);
}

Test(session_every, N3_reset)
{
	everywhere(SERVER_RESETS, 1);
}

Test(session_every, N4_silent)
{
	everywhere(SERVER_IS_SILENT, 2);
}
