#include "deliver-smtp/session/session.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void
load(char *helo_name, char *myhostname, char *mydomain, struct settings *ret)
{
	struct conf conf = {
		.smtp_helo_name = helo_name,
		.myhostname = myhostname,
		.mydomain = mydomain,
		.smtp_rcpt_timeout = 7,
		.smtp_data_done_timeout = 8,
	};

	settings_load(&conf, ret);
}

Test(settings, name_for_ehlo)
{
	char helo[] = "helo.example", mine[] = "mine.example";
	char domain[] = "example", none[] = "";
	char host[256] = "";
	struct settings s;

	load(helo, mine, domain, &s);
	cr_expect_str_eq(s.helo, "helo.example");
	load(none, mine, domain, &s);
	cr_expect_str_eq(s.helo, "mine.example");
	load(none, none, domain, &s);
	gethostname(host, sizeof(host) - 1);
	cr_expect_eq(strncmp(s.helo, host, strlen(host)), 0);
	cr_expect_not_null(strchr(s.helo, '.'));
	load(none, none, none, &s);
	cr_expect_not_null(strchr(s.helo, '.'));
}

/* mutation: deliver-smtp/session/settings.c, settings_apply() takes the first
 * row. */
Test(settings, a_transport_has_its_own)
{
	char plain[] = "smtp", slow[] = "slow", none[] = "", all[] = "all.test";
	struct conf conf = { .smtp_helo_name = all,
		.myhostname = none,
		.mydomain = none,
		.ntransports = 2,
		.transports = {
		    { .name = plain, .mx_lookup = true, .chunking = true },
		    { .name = slow,
			.bind_address = { "192.0.2.1" },
			.bind_address6 = { "2001:db8::1" },
			.host_lookup = CONF_LOOKUP_NATIVE_DNS,
			.fallback_relay = { "relay.test" },
			.helo = { "slow.test" } },
		} };
	struct settings s;

	settings_load(&conf, &s);
	settings_apply(&conf, "smtp", &s);
	cr_expect(s.mx);
	cr_expect(s.chunking);
	cr_expect_eq(s.ways.count, 1);
	cr_expect_eq(s.ways.by[0], RESOLVE_DNS);
	cr_expect_str_eq(s.fallback, "");
	cr_expect_str_eq(s.helo, "all.test");
	cr_expect_eq(s.source.in.sin_family, 0);
	cr_expect_eq(s.source.in6.sin6_family, 0);
	settings_apply(&conf, "nosuch", &s);
	cr_expect(s.mx);
	settings_apply(&conf, "slow", &s);
	cr_expect_not(s.mx);
	cr_expect_not(s.chunking);
	cr_expect_eq(s.ways.count, 2);
	cr_expect_eq(s.ways.by[0], RESOLVE_NATIVE);
	cr_expect_eq(s.ways.by[1], RESOLVE_DNS);
	cr_expect_str_eq(s.fallback, "relay.test");
	cr_expect_str_eq(s.helo, "slow.test");
	cr_expect_eq(s.source.in.sin_family, AF_INET);
	cr_expect_eq(ntohl(s.source.in.sin_addr.s_addr), 0xc0000201);
	cr_expect_eq(s.source.in6.sin6_family, AF_INET6);
	cr_expect_eq(s.source.in6.sin6_addr.s6_addr[0], 0x20);
}

Test(settings, every_state_has_its_limit)
{
	char none[] = "";
	struct settings s;

	load(none, none, none, &s);
	cr_expect_eq(s.limits[DIALOG_RCPT], 7);
	cr_expect_eq(s.limits[DIALOG_MEASURE], s.limits[DIALOG_CONTENT]);
	cr_expect_eq(s.limits[DIALOG_DOT], 8);
	cr_expect_eq(s.limits[DIALOG_ABORT], 8);
}

Test(peers, N9_are_remembered_for_an_hour)
{
	static struct peers p;
	char name[16];
	int i;

	cr_expect_not(peers_find(&p, "a[1.2.3.4]:25", 0));
	peers_add(&p, "a[1.2.3.4]:25", 7, 5);
	cr_expect(peers_find(&p, "a[1.2.3.4]:25", 5));
	cr_expect_not(peers_find(&p, "a[1.2.3.4]:26", 5));
	cr_expect(peers_find(&p, "a[1.2.3.4]:25", PEERS_KEEP));
	cr_expect_not(peers_find(&p, "a[1.2.3.4]:25", 5 + PEERS_KEEP));
	for (i = 0; i < PEERS_MAX; i++) {
		snprintf(name, sizeof(name), "%d", i);
		peers_add(&p, name, 1, 5);
	}
	cr_expect_not(peers_find(&p, "a[1.2.3.4]:25", 5));
	cr_expect(peers_find(&p, "0", 5));
}
