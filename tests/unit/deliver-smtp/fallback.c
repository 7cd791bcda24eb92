/* What a delivery does where no host of its next hop can be reached: the
 * fallback, and the limit of all that comes before MAIL. */
#include "tests/unit/deliver-smtp/bench.h"

#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"

#define SHORT (50 * USEC_PER_MSEC)

/* clang-format off */
static const struct step busy[] = {
	{ "", "421 busy\r\n" }, { NULL, NULL } };
static const struct step silent[] = { { NULL, NULL } };
static const struct step silent_mail[] = {
	{ "", "220 mx\r\n" }, { "EHLO me.example\r\n", "250 mx\r\n" },
	{ "MAIL FROM:<s@y>\r\n", "" }, { NULL, NULL } };
/* clang-format on */

static struct bench b;

static void
start(const struct step *steps)
{
	bench_open(&b, BENCH_CONTENT, strlen(BENCH_CONTENT));
	bench_transport(&b, "smtp")->host_lookup = CONF_LOOKUP_DNS;
	bench_serve(&b, "*", steps);
	b.server.again = bench_plain;
	b.whole = true;
}

static void
deliver(const char *hop, const char *fallback)
{
	struct conf_fallback *s = &bench_transport(&b, "smtp")->fallback_relay;
	size_t len;

	snprintf(s->text, sizeof(s->text), "%.*s", (int)strcspn(fallback, "%"),
	    fallback);
	if (strchr(fallback, '%') != NULL) {
		len = strlen(s->text);
		snprintf(s->text + len, sizeof(s->text) - len, "%u%s",
		    b.server.port, strchr(fallback, '%') + 2);
	}
	bench_deliver(&b, AGENT_SMTP, hop, 1);
	bench_run(&b);
}

/* The domain of all recipients. */
static struct mx_set
one_host(void)
{
	struct mx_set set = {
		.listed = true,
		.ttl = 100,
		.ours_from = MX_NOT_OURS,
		.nhosts = 1,
		.hosts = { { .name = "a.test", .preference = 10 } },
	};

	return set;
}

static void
know(const struct mx_set *set)
{
	mx_memory_put(b.context.lookups.memory, "x", set, clock_mono());
}

/* mutation: deliver-smtp/session/session.c, on_failed() without
 * session_fall_back(). */
Test(fallback, N39_where_nothing_can_be_connected_to, .timeout = 60)
{
	static const char *const lists[] = { "127.0.0.2:%u",
		"[127.0.0.2]:%u, [127.0.0.3]:1", "127.0.0.1:1 127.0.0.2:%u" };
	size_t i;

	for (i = 0; i < ARRAY_LEN(lists); i++) {
		start(bench_plain);
		deliver("127.0.0.1:1", lists[i]);
		bench_expect(&b, "0S2.0.0:127.0.0.2[127.0.0.2]:", false);
		bench_close(&b);
	}
	start(bench_plain);
	deliver("127.0.0.1:1", "");
	bench_expect(&b, "0D4.4.1:none:connect to 127.0.0.1[", true);
	bench_close(&b);
	start(bench_plain);
	deliver("127.0.0.1:1", "127.0.0.2:1");
	bench_expect(&b, "0D4.4.1:none:connect to 127.0.0.2[", true);
	bench_close(&b);
}

/* mutation: deliver-smtp/session/session.c, go_on() without
 * reach_fall_back(). */
Test(fallback, N39_where_no_server_is_ready, .timeout = 60)
{
	start(busy);
	b.reuse = true;
	deliver("127.0.0.1:%u", "127.0.0.2:%u");
	bench_expect(&b, "0S2.0.0:127.0.0.2[127.0.0.2]:", false);
	cr_expect_not(b.kept, "the connection leads elsewhere");
	bench_close(&b);
}

/* Else destinations whose servers are dead would fill all slots.
 *
 * mutation: deliver-smtp/session/session.c, on_greeted() that tells of each
 * greeting. */
Test(fallback, N39_whose_greeting_is_not_that_of_the_destination, .timeout = 60)
{
	start(bench_plain);
	deliver("127.0.0.1:1", "127.0.0.2:%u");
	bench_expect(&b, "0S2.0.0:127.0.0.2[127.0.0.2]:", false);
	cr_expect_eq(b.greeted, 0);
	bench_close(&b);
	start(bench_plain);
	deliver("127.0.0.1:%u", "127.0.0.2:1");
	bench_expect(&b, "0S2.0.0:127.0.0.1[127.0.0.1]:", false);
	cr_expect_eq(b.greeted, 1);
	bench_close(&b);
}

Test(fallback, N39_what_dns_says_of_the_domain, .timeout = 60)
{
	struct mx_set set = one_host();

	/* Not known now. */
	start(bench_plain);
	set.hosts[0].unsure = true;
	know(&set);
	deliver("x", "127.0.0.2:%u");
	bench_expect(&b, "0S2.0.0:127.0.0.2[127.0.0.2]:", false);
	bench_close(&b);
	/* No, for good. */
	start(bench_plain);
	set.hosts[0].unsure = false;
	know(&set);
	deliver("x", "127.0.0.2:%u");
	bench_expect(&b, "0F5.4.4:none:", false);
	cr_expect_eq(b.server.connections, 0);
	bench_close(&b);
	/* The fallback itself does not exist: no fault of the recipient. */
	start(bench_plain);
	set.verdict = MX_NO_NAME;
	know(&set);
	deliver("127.0.0.1:1", "x");
	bench_expect(&b, "0D4.4.4:none:", true);
	bench_close(&b);
}

/* Else the delivery would go to the destination of its next hop, from there
 * back to the shared one, and so on, with no time between.
 *
 * mutation: deliver-smtp/session/session.c, on_failed() looks at the place
 * behind a fallback too. */
Test(fallback, N39_whose_name_is_not_known_moves_no_delivery, .timeout = 60)
{
	struct mx_set set = one_host();
	struct sockaddr_in in = { .sin_family = AF_INET };

	start(bench_plain);
	in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	cr_assert(mx_add_address(&set.hosts[0], (struct sockaddr *)&in));
	know(&set);
	set.verdict = MX_NO_NAME;
	mx_memory_put(
	    b.context.lookups.memory, "gone.test", &set, clock_mono());
	b.place = "mx:a.test";
	deliver("x:1", "gone.test");
	cr_expect_str_eq(buf_str(&b.elsewhere), "");
	bench_expect(&b, "0D4.4.4:none:name of host gone.test", true);
	bench_close(&b);
}

/* mutation: deliver-smtp/reach/reach.c, reach_fall_back() without mine. */
Test(fallback, N39_not_for_a_domain_of_which_this_host_is_one, .timeout = 60)
{
	struct mx_set set = one_host();
	struct sockaddr_in in = { .sin_family = AF_INET };

	start(busy);
	set.ours_from = 20;
	in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	cr_assert(mx_add_address(&set.hosts[0], (struct sockaddr *)&in));
	know(&set);
	deliver("x:%u", "127.0.0.2:%u");
	bench_expect(&b, "0D4.3.2:a.test[127.0.0.1]:", true);
	cr_expect_eq(b.server.connections, 1);
	bench_close(&b);
}

/* ---- before MAIL ---- */

/* mutation: deliver-smtp/session/session.c, on_late() does nothing. */
Test(fallback, N38_all_addresses_of_a_next_hop_have_a_limit, .timeout = 60)
{
	struct mx_set set = one_host();
	struct sockaddr_in in = { .sin_family = AF_INET };

	in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	cr_assert(mx_add_address(&set.hosts[0], (struct sockaddr *)&in));
	in.sin_addr.s_addr = htonl(INADDR_LOOPBACK + 1);
	cr_assert(mx_add_address(&set.hosts[0], (struct sockaddr *)&in));
	start(silent);
	b.server.again = silent;
	know(&set);
	b.context.settings.before_limit = 3 * SHORT;
	b.context.settings.limits[DIALOG_GREETING] = 2 * SHORT;
	deliver("x:%u", "");
	bench_expect(&b, "0D4.4.2:a.test[127.0.0.2]:", true);
	bench_expect(&b, "within smtp_before_mail_timeout", true);
	bench_close(&b);
}

/* mutation: deliver-smtp/session/session.c, on_late() without
 * session_fall_back(); deliver-smtp/reach/reach.c, reach_fall_back() without
 * evtimer_del(). */
Test(fallback, N38_N39_behind_the_limit, .timeout = 60)
{
	/* The servers of the destination never greet. */
	start(silent);
	b.context.settings.before_limit = SHORT;
	deliver("127.0.0.1:%u", "127.0.0.2:%u");
	bench_expect(&b, "0S2.0.0:127.0.0.2[127.0.0.2]:", false);
	cr_expect_eq(b.server.connections, 2);
	bench_close(&b);
	/* Nor does the fallback: the limit is that of each next hop. */
	start(silent);
	b.server.again = silent;
	b.context.settings.before_limit = SHORT;
	deliver("127.0.0.1:%u", "127.0.0.2:%u 127.0.0.1:1");
	bench_expect(&b, "0D4.4.1:none:connect to 127.0.0.1[", true);
	cr_expect_eq(b.server.connections, 2);
	bench_close(&b);
	start(silent);
	b.server.again = silent;
	b.context.settings.before_limit = 3 * SHORT;
	b.context.settings.limits[DIALOG_GREETING] = 2 * SHORT;
	deliver("127.0.0.1:%u", "127.0.0.2:%u");
	bench_expect(&b, "0D4.4.2:127.0.0.2[127.0.0.2]:", true);
	bench_expect(&b, "timed out while receiving the greeting", true);
	bench_close(&b);
}

/* mutation: deliver-smtp/session/session.c, on_late() without
 * talk_handshaken_at(). */
Test(fallback, N38_behind_MAIL_it_does_not_hold, .timeout = 60)
{
	start(silent_mail);
	b.context.settings.before_limit = USEC_PER_SEC;
	b.context.settings.limits[DIALOG_MAIL] = 3 * USEC_PER_SEC / 2;
	deliver("127.0.0.1:%u", "");
	bench_expect(&b, "timed out", true);
	cr_expect_null(
	    strstr(buf_str(&b.results), "before_mail"), "behind MAIL");
	bench_close(&b);
}
