/* Reasons about AUTH, what a trace shows of AUTH, and user names that SASLprep
 * refuses. */
#include <criterion/criterion.h>
#include <string.h>

#include "tests/unit/deliver-smtp/play.h"

#define HELLO         "EHLO me.example\r\n"
#define TLS           HELLO "STARTTLS\r\n{tls}" HELLO
#define OFFER         "220 mx\n|250-mx\n250 STARTTLS\n|220 go\n|"
#define SECURE(offer) OFFER "250-mx\n250 " offer "\n|"
#define DONE          "250 a\n|250 b\n|354 c\n|250 2.0.0 d\n|221 e\n"

static char user[] = "user", secret[] = "secret", key[] = "mx";
static const struct credential password = { key, user, secret, false, 1 };

/* SASLprep refuses them: no UTF-8, a control character, a mark of direction. */
Test(auth_words, N40_a_user_that_SCRAM_has_no_form_of)
{
	static char latin[] = "m\xfcller", tab[] = "a\tb",
		    mark[] = "a\xe2\x80\x8e"
			     "b";
	char *const users[] = { latin, tab, mark };
	size_t i;

	for (i = 0; i < ARRAY_LEN(users); i++) {
		struct play p;
		const struct credential c = { key, users[i], secret, false, 1 };
		struct dialog_task task =
		    play_auth_task(&p, &c, TLS_LEVEL_ENCRYPT);

		play(&p, &task,
		    SECURE("AUTH PLAIN SCRAM-SHA-256") "235 ok\n|" DONE);
		cr_expect_not_null(strstr(buf_str(&p.said), TLS "AUTH PLAIN "),
		    "%zu: %s", i, buf_str(&p.said));
		cr_expect_str_eq(buf_str(&p.results), "S2.0.0", "%zu", i);
		play_done(&p);
		task = play_auth_task(&p, &c, TLS_LEVEL_ENCRYPT);
		play(&p, &task, SECURE("AUTH SCRAM-SHA-256") "221 bye\n");
		cr_expect_str_eq(buf_str(&p.said), TLS "QUIT\r\n", "%zu", i);
		cr_expect_str_eq(p.end, "site next", "%zu", i);
		cr_expect_str_eq(p.dialog.end.why.dsn, "4.7.9", "%zu", i);
		play_done(&p);
	}
}

Test(auth_words, N23_reasons)
{
	static const struct {
		const char *script, *why;
	} rows[] = {
		{ SECURE("AUTH XOAUTH2"),
		    "host mx[1.2.3.4] offers no mechanism of AUTH for these "
		    "credentials" },
		{ SECURE("AUTH PLAIN") "334 more\n|",
		    "protocol error of mx[1.2.3.4] while performing AUTH: more "
		    "challenges than the mechanism has, or a malformed one" },
		{ "220 mx\n|250-mx\n250 AUTH PLAIN\n|",
		    "TLS is required, but was not offered by host "
		    "mx[1.2.3.4]" },
	};
	size_t i;

	for (i = 0; i < ARRAY_LEN(rows); i++) {
		struct play p;
		struct dialog_task task =
		    play_auth_task(&p, &password, TLS_LEVEL_ENCRYPT);

		play(&p, &task, rows[i].script);
		cr_expect_str_eq(buf_str(&p.dialog.end.why.text), rows[i].why);
		play_done(&p);
	}
}

static struct buf traced;

static void
on_said(void *arg UNUSED, unsigned code, const char *text, size_t len)
{
	if (code == 0) {
		buf_add(&traced, text, len);
		buf_add_char(&traced, '|');
	}
}

Test(auth_words, A11_words_that_a_trace_shows)
{
	static const struct {
		const char *script, *shown;
	} rows[] = {
		{ SECURE("AUTH PLAIN") "235 ok\n|",
		    "|AUTH PLAIN (hidden)|MAIL" },
		{ SECURE("AUTH LOGIN") "334 a\n|334 b\n|235 ok\n|",
		    "|AUTH LOGIN\r\n|(hidden)|(hidden)|MAIL" },
	};
	size_t i;

	for (i = 0; i < ARRAY_LEN(rows); i++) {
		struct play p;
		struct dialog_task task =
		    play_auth_task(&p, &password, TLS_LEVEL_ENCRYPT);

		task.said = on_said;
		buf_reset(&traced);
		play(&p, &task, rows[i].script);
		cr_expect_not_null(strstr(buf_str(&traced), rows[i].shown),
		    "%s", buf_str(&traced));
		play_done(&p);
	}
	buf_done(&traced);
}
