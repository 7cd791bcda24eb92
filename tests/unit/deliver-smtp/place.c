/* Domains whose MX hosts make them one destination (docs/SITES.md): the name
 * of a set, ELSEWHERE, and connections that they share. */
#include "tests/unit/deliver-smtp/bench.h"

#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "config/conf.h"

/* ---- names ---- */

/* "host:preference …" */
static struct mx_set
make_set(const char *hosts)
{
	struct mx_set set = {
		.listed = true, .ttl = 100, .ours_from = MX_NOT_OURS
	};
	struct sockaddr_in in = { .sin_family = AF_INET,
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	char name[NEXTHOP_HOST_MAX];
	unsigned preference;
	int used;

	for (; sscanf(hosts, " %255[^:]:%u%n", name, &preference, &used) == 2;
	     hosts += used) {
		struct mx_host *host = &set.hosts[set.nhosts++];

		snprintf(host->name, sizeof(host->name), "%s", name);
		host->preference = (uint16_t)preference;
		cr_assert(mx_add_address(host, (struct sockaddr *)&in));
	}
	return set;
}

#define L50 "l23456789012345678901234567890123456789012345678.x"
static const struct {
	const char *name, *hosts, *want;
} names[] = {
	{ "one", "a.test:10", "mx:a.test" },
	{ "sorted, whatever the preference", "b.test:10 a.test:20",
	    "mx:a.test+b.test" },
	{ "a host twice", "a.test:10 a.test:20", "mx:a.test" },
	{ "too long", "1" L50 ":1 2" L50 ":1 3" L50 ":1 4" L50 ":1",
	    "mx:1" L50 "+3:a3c840328f190b09d53a258a6b5fa0cf" },
};

/* mutation: deliver-smtp/reach/mx_name.c, gather() without qsort(). */
Test(place, N27_names_of_sets)
{
	char name[MX_SITE_MAX + 1], host[NEXTHOP_HOST_MAX];
	struct mx_set set;
	size_t i;

	for (i = 0; i < ARRAY_LEN(names); i++) {
		set = make_set(names[i].hosts);
		cr_expect_eq(mx_name(&set, true, name), 0);
		cr_expect_str_eq(name, names[i].want, "%s", names[i].name);
		cr_expect(mx_site_fits(name, strlen(name)));
	}
	/* Not even the first host has room. */
	memset(host, 'h', sizeof(host) - 1);
	host[sizeof(host) - 1] = '\0';
	set = make_set("a.test:10");
	memcpy(set.hosts[0].name, host, sizeof(host));
	cr_expect_eq(mx_name(&set, true, name), 0);
	cr_expect(strncmp(name, "mx:+1:", 6) == 0, "%s", name);
	cr_expect_eq(strlen(name), 6 + 32);
}

/* mutation: deliver-smtp/reach/mx_name.c, mx_name() that takes a cut set. */
Test(place, N27_sets_without_a_name)
{
	char name[MX_SITE_MAX + 1];
	struct mx_set set = make_set("a.test:10 b.test:20");

	set.cut = true;
	cr_expect_eq(mx_name(&set, true, name), -ENOENT);
	set.cut = false;
	set.listed = false;
	cr_expect_eq(mx_name(&set, true, name), -ENOENT);
	set.listed = true;
	/* Hosts that are not tried do not count. */
	set.ours_from = 20;
	cr_expect_eq(mx_name(&set, true, name), 0);
	cr_expect_str_eq(name, "mx:a.test");
	cr_expect(mx_has_host(&set, true, "a.test", 6));
	cr_expect_not(mx_has_host(&set, true, "b.test", 6));
	cr_expect_eq(mx_name(&set, false, name), 0);
	cr_expect_str_eq(name, "mx:a.test+b.test");
}

/* The addresses of a worse host may come with the second answer alone: the name
 * is that of the first answer, else the delivery would move for each.
 *
 * mutation: deliver-smtp/reach/mx_name.c, gather() by mx_limit(). */
Test(place, N27_addresses_do_not_change_the_name)
{
	char name[MX_SITE_MAX + 1];
	struct mx_set set = make_set("a.test:10 b.test:20 c.test:30");

	set.hosts[1].ours = true;
	cr_expect_eq(mx_name(&set, true, name), 0);
	cr_expect_str_eq(name, "mx:a.test+b.test+c.test");
	cr_expect_not(mx_has_host(&set, true, "b.test", 6));
	cr_expect_not(mx_has_host(&set, true, "c.test", 6));
}

Test(place, N27_no_next_hop_has_such_a_name)
{
	struct nexthop hop;
	size_t i;

	for (i = 0; i < ARRAY_LEN(names); i++)
		cr_expect_eq(nexthop_parse(names[i].want, 25, &hop), -EINVAL);
	cr_expect_eq(
	    nexthop_parse("mx:+1:00000000000000000000000000000000", 25, &hop),
	    -EINVAL);
}

/* ---- deliveries ---- */

#define HELLO                                       \
	{ "", "220 mx\r\n" },                       \
	{                                           \
		"EHLO me.example\r\n", "250 mx\r\n" \
	}
#define MESSAGE                                     \
	{ "MAIL FROM:<s@y>\r\n", "250 ok\r\n" },    \
	    { "RCPT TO:<r0@x>\r\n", "250 ok\r\n" }, \
	    { "DATA\r\n", "354 go\r\n" },           \
	{                                           \
		"\r\n.\r\n", "250 2.0.0 queued\r\n" \
	}
static const struct step two[] = { HELLO, MESSAGE, MESSAGE, { NULL, NULL } };

static struct bench b;

static void
start(void)
{
	bench_open(&b, BENCH_CONTENT, strlen(BENCH_CONTENT));
	b.reuse = true;
	bench_transport(&b, "smtp")->host_lookup = CONF_LOOKUP_DNS;
	bench_serve(&b, NULL, two);
}

static void
end(void)
{
	bench_close(&b);
}

static void
know(const char *domain, const char *hosts)
{
	const struct mx_set set = make_set(hosts);

	mx_memory_put(b.context.lookups.memory, domain, &set, clock_mono());
}

static void
deliver(const char *hop, const char *site)
{
	b.connection = b.kept ? b.number : 0;
	b.number++;
	b.place = site;
	bench_deliver(&b, AGENT_SMTP, hop, 1);
	bench_run(&b);
}

static void
expect_elsewhere(const char *site)
{
	char got[MX_SITE_MAX + 16];

	snprintf(got, sizeof(got), "%s", buf_str(&b.elsewhere));
	cr_assert_not_null(
	    strrchr(got, ' '), "no ELSEWHERE: %s", buf_str(&b.results));
	*strrchr(got, ' ') = '\0';
	cr_expect_str_eq(got, site);
	cr_expect_str_eq(buf_str(&b.results), "", "nothing is reported");
}

/* mutation: deliver-smtp/session/place.c, place_is_right() is always true. */
Test(place, N27_elsewhere_before_a_connection, .init = start, .fini = end,
    .timeout = 60)
{
	know("d.test", "b.test:10 a.test:20");
	deliver("d.test:%u", "d.test");
	expect_elsewhere("mx:a.test+b.test");
	deliver("d.test:%u", "mx:c.test");
	expect_elsewhere("mx:a.test+b.test");
	cr_expect_eq(b.server.connections, 0);
	deliver("d.test:%u", "mx:a.test+b.test");
	bench_expect(&b, "0S2.0.0:b.test[127.0.0.1]:", false);
	/* Without SITE nobody asks. */
	b.reuse = false;
	deliver("d.test:%u", NULL);
	bench_expect(&b, "0S2.0.0:", false);
}

/* The failure of one domain's DNS is none of the others'. */
Test(place, N27_a_look_up_that_fails_is_the_domains_own, .init = start,
    .fini = end, .timeout = 60)
{
	struct mx_set set = make_set("a.test:10");

	set.verdict = MX_NO_MAIL;
	mx_memory_put(b.context.lookups.memory, "d.test", &set, clock_mono());
	deliver("d.test:%u", "mx:a.test");
	expect_elsewhere("");
	deliver("d.test:%u", "d.test");
	bench_expect(&b, "0D4.4.4:none:", true);
}

/* mutation: deliver-smtp/protection/policy.c, apart is false. */
Test(place, N27_a_policy_of_its_own_keeps_it_apart, .init = start, .fini = end,
    .timeout = 60)
{
	static const struct conf_setting verify[] = {
		{ "default_tls_security_level", "verify", 1 },
	};

	bench_policies(&b, verify, 1);
	bench_transport(&b, "smtp")->host_lookup = CONF_LOOKUP_DNS;
	know("d.test", "a.test:10");
	deliver("d.test:%u", "mx:a.test");
	expect_elsewhere("");
	deliver("d.test:%u", "d.test");
	bench_expect(&b, "0D4.7.4:", true);
}

/* mutation: deliver-smtp/session/kept.c, kept_is_shared() is always false. */
Test(place, N27_domains_of_one_set_share_a_connection, .init = start,
    .fini = end, .timeout = 60)
{
	know("d.test", "a.test:10");
	know("e.test", "a.test:10");
	deliver("d.test:%u", "mx:a.test");
	cr_assert(b.kept);
	deliver("e.test:%u", "mx:a.test");
	bench_expect(&b, "0S2.0.0:a.test[127.0.0.1]:", false);
	cr_expect_eq(b.server.connections, 1);
	cr_expect_eq(b.closed, 0);
}

/* A connection that leads where the domain's mail does not go, or is of no
 * place. */
Test(place, N27_a_connection_to_another_host_is_not_used, .init = start,
    .fini = end, .timeout = 60)
{
	know("d.test", "a.test:10");
	know("e.test", "b.test:10");
	deliver("d.test:%u", "mx:a.test");
	cr_assert(b.kept);
	deliver("e.test:%u", "mx:a.test");
	expect_elsewhere("mx:b.test");
	cr_expect(TAILQ_EMPTY(&b.context.kept), "its place was given back");
	deliver("e.test:%u", "mx:b.test");
	bench_expect(&b, "0S2.0.0:b.test", false);
	cr_expect_eq(b.server.connections, 2);
}
