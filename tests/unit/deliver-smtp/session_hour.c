/* The time limit of all commands over one connection, one hour. */
#include "tests/unit/deliver-smtp/bench.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"

/* clang-format off */
#define OK  { "\r\n", "250 ok\r\n" }
#define GO  { "DATA\r\n", "354 go\r\n" }
#define DOT { "\r\n.\r\n", "250 2.0.0 queued\r\n" }
/* clang-format on */

/* Replaces clock_gettime() of the library, so that the test can move the clock.
 * libevent reads CLOCK_MONOTONIC_COARSE. */
static time_t leap;

int
clock_gettime(clockid_t id, struct timespec *ret_ts)
{
	const int r = (int)syscall(SYS_clock_gettime, id, ret_ts);

	if (id == CLOCK_MONOTONIC)
		ret_ts->tv_sec += leap;
	return r;
}

/* All transactions of a connection share one deadline. mutation:
 * deliver-smtp/connection/talk.c, set_timer() without the deadline. */
Test(session_hour, N32_for_all_transactions, .timeout = 120)
{
	static const struct step each[] = { { "", "220 mx\r\n" },
		{ "\r\n", "250 mx\r\n" }, OK, OK, GO, DOT, OK, OK, GO, DOT,
		{ "QUIT\r\n", "221 bye\r\n" }, { NULL, NULL } };
	struct bench b;
	uint32_t sessions;
	char relay[NEXTHOP_PEER_MAX];

	for (sessions = 1; sessions <= 2; sessions++) {
		bench_open(&b, BENCH_CONTENT, strlen(BENCH_CONTENT));
		leap = 0;
		b.context.settings.session_limit = sessions;
		bench_serve(&b, NULL, each);
		snprintf(relay, sizeof(relay), "127.0.0.1[127.0.0.1]:%u",
		    b.server.port);
		peers_add(&b.context.batches, relay, 1, clock_mono());
		bench_deliver(&b, AGENT_SMTP, "127.0.0.1:%u", 2);
		while (strstr(buf_str(&b.server.got), "\r\n.\r\n") == NULL)
			bench_turn(&b);
		leap = 3600;
		bench_run(&b);
		bench_expect(&b, "0S2.0.0:", false);
		bench_expect(
		    &b, sessions == 1 ? "1D4.4.2:" : "1S2.0.0:", false);
		cr_expect_eq(b.server.connections, sessions);
		bench_close(&b);
	}
}
