#include "deliver-smtp/session.h"

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

Test(settings, every_state_has_its_limit)
{
	char none[] = "";
	struct settings s;

	load(none, none, none, &s);
	cr_expect_eq(s.limits[DIALOG_RCPT], 7);
	cr_expect_eq(s.limits[DIALOG_DOT], 8);
	cr_expect_eq(s.limits[DIALOG_ABORT], 8);
}

Test(peers, N9_are_remembered_for_an_hour)
{
	static struct peers p;
	char name[16];
	int i;

	cr_expect_not(peers_has(&p, "a[1.2.3.4]:25", 0));
	peers_add(&p, "a[1.2.3.4]:25", 5);
	cr_expect(peers_has(&p, "a[1.2.3.4]:25", 5));
	cr_expect_not(peers_has(&p, "a[1.2.3.4]:26", 5));
	cr_expect(peers_has(&p, "a[1.2.3.4]:25", PEERS_KEEP));
	cr_expect_not(peers_has(&p, "a[1.2.3.4]:25", 5 + PEERS_KEEP));
	for (i = 0; i < PEERS_MAX; i++) {
		snprintf(name, sizeof(name), "%d", i);
		peers_add(&p, name, 5);
	}
	cr_expect_not(peers_has(&p, "a[1.2.3.4]:25", 5));
	cr_expect(peers_has(&p, "0", 5));
}
