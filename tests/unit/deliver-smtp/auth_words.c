/* Texts of AUTH for people, and users that a mechanism has no form of. */
#include <criterion/criterion.h>
#include <string.h>

#include "tests/unit/deliver-smtp/play.h"

#define HELLO         "EHLO me.example\r\n"
#define TLS           HELLO "STARTTLS\r\n{tls}" HELLO
#define OFFER         "220 mx\n|250-mx\n250 STARTTLS\n|220 go\n|"
#define SECURE(offer) OFFER "250-mx\n250 " offer "\n|"
#define DONE          "250 a\n|250 b\n|354 c\n|250 2.0.0 d\n|221 e\n"

static char secret[] = "secret", key[] = "mx";

static struct dialog_task
task_of(struct play *p, const struct credential *c)
{
	struct dialog_task task = play_task(p, 1);

	task.tls = TLS_LEVEL_ENCRYPT;
	task.credential = c;
	task.auth_soft = true;
	return task;
}

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
		struct dialog_task task = task_of(&p, &c);

		play(&p, &task,
		    SECURE("AUTH PLAIN SCRAM-SHA-256") "235 ok\n|" DONE);
		cr_expect_not_null(strstr(buf_str(&p.said), TLS "AUTH PLAIN "),
		    "%zu: %s", i, buf_str(&p.said));
		cr_expect_str_eq(buf_str(&p.results), "S2.0.0", "%zu", i);
		play_done(&p);
		task = task_of(&p, &c);
		play(&p, &task, SECURE("AUTH SCRAM-SHA-256") "221 bye\n");
		cr_expect_str_eq(buf_str(&p.said), TLS "QUIT\r\n", "%zu", i);
		cr_expect_str_eq(p.end, "site next", "%zu", i);
		cr_expect_str_eq(p.dialog.end.why.dsn, "4.7.9", "%zu", i);
		play_done(&p);
	}
}
