#include "route/nexthop.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <netinet/in.h>
#include <string.h>

/* clang-format off */
static const struct {
	const char *in;
	int want;
	enum nexthop_kind kind;
	const char *host;
	unsigned port;
} rows[] = {
	{ "mx.example", 0, NEXTHOP_DOMAIN, "mx.example", 25 },
	{ "mx.example:2525", 0, NEXTHOP_DOMAIN, "mx.example", 2525 },
	{ "[mx.example]", 0, NEXTHOP_HOST, "mx.example", 25 },
	{ "[mx.example]:587", 0, NEXTHOP_HOST, "mx.example", 587 },
	{ "localhost", 0, NEXTHOP_DOMAIN, "localhost", 25 },
	{ "a_b-c.d", 0, NEXTHOP_DOMAIN, "a_b-c.d", 25 },
	{ "1.2.3.4", 0, NEXTHOP_ADDRESS, "1.2.3.4", 25 },
	{ "1.2.3.4:65535", 0, NEXTHOP_ADDRESS, "1.2.3.4", 65535 },
	{ "[1.2.3.4]", 0, NEXTHOP_ADDRESS, "1.2.3.4", 25 },
	{ "[1.2.3.4]:1", 0, NEXTHOP_ADDRESS, "1.2.3.4", 1 },
	{ "[::1]", 0, NEXTHOP_ADDRESS, "::1", 25 },
	{ "[::1]:26", 0, NEXTHOP_ADDRESS, "::1", 26 },
	{ "::1", 0, NEXTHOP_ADDRESS, "::1", 25 },
	{ "2001:db8::25", 0, NEXTHOP_ADDRESS, "2001:db8::25", 25 },
	{ "169.253.0.1", 0, NEXTHOP_ADDRESS, "169.253.0.1", 25 },
	{ "fec0::1", 0, NEXTHOP_ADDRESS, "fec0::1", 25 },
	{ "[::ffff:1.2.3.4]:26", -EINVAL, 0, NULL, 0 },
	{ "::ffff:127.0.0.1", -EINVAL, 0, NULL, 0 },
	{ "::127.0.0.1", -EINVAL, 0, NULL, 0 },
	{ "0.0.0.0", -EINVAL, 0, NULL, 0 },
	{ "[0.1.2.3]", -EINVAL, 0, NULL, 0 },
	{ "::", -EINVAL, 0, NULL, 0 },
	{ "169.254.0.1", -EINVAL, 0, NULL, 0 },
	{ "[fe80::1]", -EINVAL, 0, NULL, 0 },
	{ "[febf::1]:25", -EINVAL, 0, NULL, 0 },
	{ "224.0.0.1", -EINVAL, 0, NULL, 0 },
	{ "ff02::1", -EINVAL, 0, NULL, 0 },
	{ "unix:/run/lmtp", 0, NEXTHOP_UNIX, "/run/lmtp", 0 },
	{ "", -EINVAL, 0, NULL, 0 },
	{ ":25", -EINVAL, 0, NULL, 0 },
	{ "[]", -EINVAL, 0, NULL, 0 },
	{ "[]:25", -EINVAL, 0, NULL, 0 },
	{ "[1.2.3.4", -EINVAL, 0, NULL, 0 },
	{ "1.2.3.4]", -EINVAL, 0, NULL, 0 },
	{ "[1.2.3.4]25", -EINVAL, 0, NULL, 0 },
	{ "mx:", -EINVAL, 0, NULL, 0 },
	{ "mx:0", -EINVAL, 0, NULL, 0 },
	{ "mx:65536", -EINVAL, 0, NULL, 0 },
	{ "mx:-1", -EINVAL, 0, NULL, 0 },
	{ "mx:25x", -EINVAL, 0, NULL, 0 },
	{ "mx: 25", -EINVAL, 0, NULL, 0 },
	{ "mx:25:25", -EINVAL, 0, NULL, 0 },
	{ "fe80::1%eth0", -EINVAL, 0, NULL, 0 },
	{ "[fe80::1%eth0]:25", -EINVAL, 0, NULL, 0 },
	{ "mx example", -EINVAL, 0, NULL, 0 },
	{ "-oProxy", -EINVAL, 0, NULL, 0 },
	{ ".example", -EINVAL, 0, NULL, 0 },
	{ "m\xc3\xa4.example", 0, NEXTHOP_DOMAIN, "xn--m-0fa.example", 25 },
	{ "[M\xc3\x84.example]:587", 0, NEXTHOP_HOST, "xn--m-0fa.example",
	    587 },
	{ "m\xe4.example", -EINVAL, 0, NULL, 0 },
	{ "-m\xc3\xa4.example", -EINVAL, 0, NULL, 0 },
	{ "unix:", -EINVAL, 0, NULL, 0 },
	{ "unix:run/lmtp", -EINVAL, 0, NULL, 0 },
};
/* clang-format on */

Test(nexthop, N17_table)
{
	struct nexthop hop;
	size_t i;

	for (i = 0; i < ARRAY_LEN(rows); i++) {
		memset(&hop, 0xaa, sizeof(hop));
		cr_expect_eq(nexthop_parse(rows[i].in, 25, &hop), rows[i].want,
		    "%s", rows[i].in);
		if (rows[i].want < 0)
			continue;
		cr_expect_eq(hop.kind, rows[i].kind, "%s", rows[i].in);
		cr_expect_str_eq(hop.host, rows[i].host, "%s", rows[i].in);
		cr_expect_eq(hop.port, rows[i].port, "%s", rows[i].in);
	}
}

Test(nexthop, the_longest)
{
	struct nexthop hop;
	char name[400] = "unix:/";

	memset(name + 6, 'a', 102);
	name[5 + 107] = '\0';
	memset(name + 6, 'a', 106);
	cr_expect_eq(nexthop_parse(name, 24, &hop), 0);
	name[5 + 107] = 'a';
	cr_expect_eq(nexthop_parse(name, 24, &hop), -EINVAL);
	memset(name, 'a', sizeof(name));
	name[255] = '\0';
	cr_expect_eq(nexthop_parse(name, 24, &hop), 0);
	name[255] = 'a';
	name[256] = '\0';
	cr_expect_eq(nexthop_parse(name, 24, &hop), -EINVAL);
}

Test(nexthop, names_for_people)
{
	/* clang-format off */
	static const struct {
		const char *hop, *peer, *relay;
	} want[] = {
		{ "1.2.3.4:26", "1.2.3.4[1.2.3.4]", "1.2.3.4[1.2.3.4]:26" },
		{ "[::1]", "::1[::1]", "::1[::1]:25" },
		{ "unix:/run/x", "localhost[/run/x]", "localhost[/run/x]" },
	};
	/* clang-format on */
	char peer[NEXTHOP_PEER_MAX], relay[NEXTHOP_PEER_MAX];
	struct sockaddr_in in = { .sin_family = AF_INET };
	struct nexthop hop;
	size_t i;

	for (i = 0; i < ARRAY_LEN(want); i++) {
		cr_assert_eq(nexthop_parse(want[i].hop, 25, &hop), 0);
		nexthop_peer(&hop, hop.host, (struct sockaddr *)&hop.address,
		    peer, relay);
		cr_expect_str_eq(peer, want[i].peer);
		cr_expect_str_eq(relay, want[i].relay);
	}
	in.sin_addr.s_addr = htonl(0x0a000001);
	cr_assert_eq(nexthop_parse("mx.example:587", 25, &hop), 0);
	nexthop_peer(&hop, "a.mx", (struct sockaddr *)&in, peer, relay);
	cr_expect_str_eq(peer, "a.mx[10.0.0.1]");
	cr_expect_str_eq(relay, "a.mx[10.0.0.1]:587");
}

/* mutation: common/route/nexthop.c, nexthop_of_domain() without
 * ends_in_number(), without is_name(), or with literals always allowed. */
Test(nexthop, N18_what_a_domain_makes)
{
	static const struct {
		const char *domain, *name, *literal; /* NULL: refused */
	} of[] = {
		{ "mx.example.com", "mx.example.com", "mx.example.com" },
		{ "MX.Example.COM", "mx.example.com", "mx.example.com" },
		{ "localhost", "localhost", "localhost" },
		{ "a_b.example", "a_b.example", "a_b.example" },
		{ "1and1.example", "1and1.example", "1and1.example" },
		{ "3.example", "3.example", "3.example" },
		{ "", NULL, NULL },
		{ "127.0.0.1", NULL, NULL },
		{ "127.1", NULL, NULL },
		{ "2130706433", NULL, NULL },
		{ "0x7f.1", NULL, NULL },
		{ "0x7f000001", NULL, NULL },
		{ "127.0.0.0x1", NULL, NULL },
		{ "127.0.0.1.", NULL, NULL },
		{ "example.com.", "example.com", "example.com" },
		{ "example.com..", NULL, NULL },
		{ ".", NULL, NULL },
		{ "a..b", NULL, NULL },
		{ ".a", NULL, NULL },
		{ "-oProxy", NULL, NULL },
		{ "::1", NULL, NULL },
		{ "2001:db8::1", NULL, NULL },
		{ "host:25", NULL, NULL },
		{ "127.0.0.1:9999", NULL, NULL },
		{ "unix:/path", NULL, NULL },
		{ "/path", NULL, NULL },
		{ "a b", NULL, NULL },
		{ "gr\xc3\xbc.example", "xn--gr-yka.example",
		    "xn--gr-yka.example" },
		{ "GR\xc3\x9c.example.", "xn--gr-yka.example",
		    "xn--gr-yka.example" },
		{ "gr\xfc.example", NULL, NULL },
		{ "\xef\xbc\x91.0.0.1", NULL, NULL }, /* a wide 1 */
		{ "\xef\xbc\xbb::1\xef\xbc\xbd", NULL, NULL },
		{ "[192.0.2.1]", NULL, "[192.0.2.1]" },
		{ "[IPv6:2001:DB8::1]", NULL, "[2001:db8::1]" },
		{ "[ipv6:::1]", NULL, "[::1]" },
		{ "[0.0.0.0]", NULL, NULL },
		{ "[169.254.169.254]", NULL, NULL },
		{ "[IPv6:::ffff:127.0.0.1]", NULL, NULL },
		{ "[IPv6:fe80::1]", NULL, NULL },
		{ "[192.0.2.1]:25", NULL, NULL },
		{ "[::1]", NULL, NULL },
		{ "[::1]:9", NULL, NULL },
		{ "[IPv6:192.0.2.1]", NULL, NULL },
		{ "[IPv6:fe80::1%eth0]", NULL, NULL },
		{ "[192.0.2.1", NULL, NULL },
		{ "[127.1]", NULL, NULL },
		{ "[mx.example]", NULL, NULL },
		{ "[]", NULL, NULL },
		{ "[", NULL, NULL },
		{ "[unix:/path]", NULL, NULL },
	};
	char out[NEXTHOP_HOST_MAX];
	size_t i;
	int literals;

	for (i = 0; i < 2 * ARRAY_LEN(of); i++) {
		const char *domain = of[i / 2].domain, *want, *why = NULL;
		int r;

		literals = i % 2;
		want = literals ? of[i / 2].literal : of[i / 2].name;
		r = nexthop_of_domain(domain, literals, out, &why);
		cr_expect_eq(r, want == NULL ? -EDESTADDRREQ : 0, "%s", domain);
		if (want == NULL)
			cr_expect_not_null(why, "%s", domain);
		else if (r == 0)
			cr_expect_str_eq(out, want, "%s: %s", domain, out);
	}
}

/* Whatever a domain makes has the transport's port and is a name, or an address
 * that was allowed. */
Test(nexthop, N18_no_short_domain_has_a_port_or_a_path)
{
	static const char set[] = "a1.:[]/-x0";
	const size_t n = sizeof(set) - 1;
	char domain[7] = "", out[NEXTHOP_HOST_MAX];
	struct nexthop hop;
	const char *why;
	size_t i, rest, j;

	for (i = 0; i < n * n * n * n * n * n; i++) {
		for (rest = i, j = 0; j < 6; j++, rest /= n)
			domain[j] = set[rest % n];
		if (nexthop_of_domain(domain, false, out, &why) < 0)
			continue;
		cr_assert_eq(nexthop_parse(out, 25, &hop), 0, "%s", out);
		cr_assert_eq(hop.port, 25, "%s", out);
		cr_assert_eq(hop.kind, NEXTHOP_DOMAIN, "%s", out);
	}
}
