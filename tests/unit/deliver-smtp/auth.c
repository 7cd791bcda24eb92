/* The conversation before MAIL: STARTTLS and AUTH, pure. */
#include "deliver-smtp/protection/auth.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/deliver-smtp/play.h"

#define PLAIN_B64   "AHVzZXIAc2VjcmV0"
#define USER_B64    "dXNlcg=="
#define SECRET_B64  "c2VjcmV0"
#define XOAUTH2_B64 "dXNlcj11c2VyAWF1dGg9QmVhcmVyIHNlY3JldAEB"

static char user[] = "user", secret[] = "secret", key[] = "mx";
static const struct credential password = { key, user, secret, false, 1 };
static const struct credential token = { key, user, secret, true, 1 };
/* A word of each offer. */
static char weak_secret[] = "mx";
static const struct credential weak = { key, user, weak_secret, false, 1 };

#define HELLO     "EHLO me.example\r\n"
#define TLS       HELLO "STARTTLS\r\n{tls}" HELLO
#define OFFER     "220 mx\n|250-mx\n250 STARTTLS\n|220 go\n|"
#define MAIL_SAID "MAIL FROM:<s@y>\r\n"

/* ---- STARTTLS ---- */

static const struct {
	const char *name;
	enum tls_level level;
	bool implicit, fall_back, insecure, lmtp;
	const char *script, *said, *results, *end;
} rows[] = {
	{ "not asked for", TLS_LEVEL_NONE, false, false, false, false,
	    "220 mx\n|250-mx\n250 STARTTLS\n|", HELLO MAIL_SAID, "D4.4.2",
	    "site" },
	{ "asked for", TLS_LEVEL_MAY, false, true, false, false,
	    OFFER "250 mx\n|", TLS MAIL_SAID, "D4.4.2", "site" },
	{ "LMTP", TLS_LEVEL_MAY, false, true, false, true, OFFER "250 mx\n|",
	    "LHLO me.example\r\nSTARTTLS\r\n{tls}LHLO me.example\r\n" MAIL_SAID,
	    "D4.4.2", "site" },
	{ "first", TLS_LEVEL_ENCRYPT, true, false, false, false,
	    "220 mx\n|250 mx\n|", "{tls}" HELLO MAIL_SAID, "D4.4.2", "site" },
	{ "not offered, may", TLS_LEVEL_MAY, false, true, false, false,
	    "220 mx\n|250 mx\n|", HELLO MAIL_SAID, "D4.4.2", "site" },
	{ "not offered, encrypt", TLS_LEVEL_ENCRYPT, false, false, false, false,
	    "220 mx\n|250 mx\n|", HELLO "QUIT\r\n", "-", "site next" },
	{ "no EHLO, encrypt", TLS_LEVEL_ENCRYPT, false, false, false, false,
	    "220 mx\n|502 no\n|250 mx\n|", HELLO "HELO me.example\r\nQUIT\r\n",
	    "-", "site next" },
	{ "fails, may", TLS_LEVEL_MAY, false, true, true, false, OFFER,
	    HELLO "STARTTLS\r\n{tls}", "-", "clear" },
	{ "fails again, may", TLS_LEVEL_MAY, false, false, true, false, OFFER,
	    HELLO "STARTTLS\r\n{tls}", "-", "site next" },
	{ "fails, verify", TLS_LEVEL_VERIFY, false, false, true, false, OFFER,
	    HELLO "STARTTLS\r\n{tls}", "-", "site next" },
	{ "refused, may", TLS_LEVEL_MAY, false, true, false, false,
	    "220 mx\n|250-mx\n250 STARTTLS\n|454 no\n|",
	    HELLO "STARTTLS\r\nQUIT\r\n", "-", "clear" },
	{ "refused for good, may", TLS_LEVEL_MAY, false, true, false, false,
	    "220 mx\n|250-mx\n250 STARTTLS\n|554 no\n|",
	    HELLO "STARTTLS\r\nQUIT\r\n", "-", "clear" },
	{ "421, may", TLS_LEVEL_MAY, false, true, false, false,
	    "220 mx\n|250-mx\n250 STARTTLS\n|421 no\n|", HELLO "STARTTLS\r\n",
	    "-", "clear" },
	{ "refused, encrypt", TLS_LEVEL_ENCRYPT, false, false, false, false,
	    "220 mx\n|250-mx\n250 STARTTLS\n|554 no\n|",
	    HELLO "STARTTLS\r\nQUIT\r\n", "-", "site next" },
	{ "lost, may", TLS_LEVEL_MAY, false, true, false, false,
	    "220 mx\n|250-mx\n250 STARTTLS\n|", HELLO "STARTTLS\r\n", "-",
	    "clear" },
	{ "silent, may", TLS_LEVEL_MAY, false, true, false, false,
	    "220 mx\n|250-mx\n250 STARTTLS\n|!", HELLO "STARTTLS\r\n", "-",
	    "clear" },
	{ "injected, may", TLS_LEVEL_MAY, false, true, false, false,
	    "220 mx\n|250-mx\n250 STARTTLS\n|220 go\n250 x\n|",
	    HELLO "STARTTLS\r\n", "-", "site next" },
	{ "an octet, may", TLS_LEVEL_MAY, false, true, false, false,
	    "220 mx\n|250-mx\n250 STARTTLS\n|220 go\n2|", HELLO "STARTTLS\r\n",
	    "-", "site next" },
	{ "before, may", TLS_LEVEL_MAY, false, true, false, false,
	    "220 mx\n|250-mx\n250 STARTTLS\n220 go\n|", HELLO "STARTTLS\r\n",
	    "-", "site next" },
	/* Nothing that was offered in the clear counts. */
	{ "forgotten", TLS_LEVEL_MAY, false, true, false, false,
	    "220 mx\n|250-mx\n250-PIPELINING\n250-SIZE 1\n250 STARTTLS\n|"
	    "220 go\n|250 mx\n|",
	    TLS MAIL_SAID, "D4.4.2", "site" },
	/* TLS within TLS is none. */
	{ "offered again", TLS_LEVEL_MAY, false, true, false, false,
	    OFFER "250-mx\n250 STARTTLS\n|", TLS MAIL_SAID, "D4.4.2", "site" },
};

/* mutation: deliver-smtp/dialog/dialog.c, dialog_secured() that keeps d->ehlo.
 */
Test(auth, N8_N7_starttls)
{
	size_t i;

	for (i = 0; i < ARRAY_LEN(rows); i++) {
		struct play p;
		struct dialog_task task = play_task(&p, 1);

		task.tls = rows[i].level;
		task.implicit = rows[i].implicit;
		task.fall_back = rows[i].fall_back;
		task.lmtp = rows[i].lmtp;
		p.insecure = rows[i].insecure;
		play(&p, &task, rows[i].script);
		cr_expect_str_eq(buf_str(&p.said), rows[i].said, "%s: %s",
		    rows[i].name, buf_str(&p.said));
		cr_expect_str_eq(buf_str(&p.results), rows[i].results, "%s: %s",
		    rows[i].name, buf_str(&p.results));
		cr_expect_str_eq(
		    p.end, rows[i].end, "%s: %s", rows[i].name, p.end);
		play_done(&p);
	}
}

/* ---- AUTH ---- */

#define SECURE(offer) OFFER "250-mx\n250 " offer "\n|"
#define DONE          "250 a\n|250 b\n|354 c\n|250 2.0.0 d\n|221 e\n"
#define SENT          "S2.0.0", ""

static const struct {
	const char *name;
	const struct credential *credential;
	enum tls_level level;
	bool in_clear, soft;
	const char *script, *said, *results, *end;
} auths[] = {
	{ "PLAIN", &password, TLS_LEVEL_ENCRYPT, false, true,
	    SECURE("AUTH LOGIN PLAIN") "235 ok\n|" DONE,
	    TLS "AUTH PLAIN " PLAIN_B64 "\r\n" MAIL_SAID, SENT },
	{ "LOGIN", &password, TLS_LEVEL_ENCRYPT, false, true,
	    SECURE("AUTH GSSAPI LOGIN") "334 VXNlcm5hbWU6\n|334 x\n|235 "
					"ok\n|" DONE,
	    TLS "AUTH LOGIN\r\n" USER_B64 "\r\n" SECRET_B64 "\r\n" MAIL_SAID,
	    SENT },
	{ "of an old server", &password, TLS_LEVEL_ENCRYPT, false, true,
	    SECURE("AUTH=LOGIN") "334 a\n|334 b\n|235 ok\n|" DONE,
	    TLS "AUTH LOGIN\r\n" USER_B64 "\r\n" SECRET_B64 "\r\n" MAIL_SAID,
	    SENT },
	{ "a secret that the offer has", &weak, TLS_LEVEL_ENCRYPT, false, true,
	    SECURE("AUTH PLAIN") "235 ok\n|" DONE,
	    TLS "AUTH PLAIN AHVzZXIAbXg=\r\n" MAIL_SAID, SENT },
	{ "XOAUTH2", &token, TLS_LEVEL_ENCRYPT, false, true,
	    SECURE("AUTH PLAIN XOAUTH2") "235 ok\n|" DONE,
	    TLS "AUTH XOAUTH2 " XOAUTH2_B64 "\r\n" MAIL_SAID, SENT },
	{ "a token that is over", &token, TLS_LEVEL_ENCRYPT, false, true,
	    SECURE("AUTH XOAUTH2") "334 eyJzdGF0dXMiOiI0MDEi\n|535 5.7.8 no\n|",
	    TLS "AUTH XOAUTH2 " XOAUTH2_B64 "\r\n\r\nQUIT\r\n", "D4.7.8",
	    "site" },
	{ "a wrong password", &password, TLS_LEVEL_ENCRYPT, false, true,
	    SECURE("AUTH PLAIN") "535 5.7.8 no\n|",
	    TLS "AUTH PLAIN " PLAIN_B64 "\r\nQUIT\r\n", "D4.7.8", "site" },
	{ "a wrong password, hard", &password, TLS_LEVEL_ENCRYPT, false, false,
	    SECURE("AUTH PLAIN") "535 5.7.8 no\n|",
	    TLS "AUTH PLAIN " PLAIN_B64 "\r\nQUIT\r\n", "F5.7.8", "" },
	{ "not now", &password, TLS_LEVEL_ENCRYPT, false, false,
	    SECURE("AUTH PLAIN") "454 4.7.0 later\n|",
	    TLS "AUTH PLAIN " PLAIN_B64 "\r\nQUIT\r\n", "D4.7.0", "site" },
	{ "421", &password, TLS_LEVEL_ENCRYPT, false, true,
	    SECURE("AUTH PLAIN") "421 4.7.0 later\n|",
	    TLS "AUTH PLAIN " PLAIN_B64 "\r\n", "-", "site next" },
	{ "none is offered", &password, TLS_LEVEL_ENCRYPT, false, true,
	    SECURE("SIZE 99999"), TLS "QUIT\r\n", "-", "site next" },
	{ "no mechanism of ours", &password, TLS_LEVEL_ENCRYPT, false, true,
	    SECURE("AUTH XOAUTH2 CRAM-MD5"), TLS "QUIT\r\n", "-", "site next" },
	{ "a token for a password", &token, TLS_LEVEL_ENCRYPT, false, true,
	    SECURE("AUTH PLAIN LOGIN"), TLS "QUIT\r\n", "-", "site next" },
	{ "in the clear", &password, TLS_LEVEL_NONE, false, true,
	    "220 mx\n|250-mx\n250 AUTH PLAIN\n|", HELLO "QUIT\r\n", "-",
	    "site next" },
	{ "in the clear, may", &password, TLS_LEVEL_MAY, false, true,
	    "220 mx\n|250-mx\n250 AUTH PLAIN\n|", HELLO "QUIT\r\n", "-",
	    "site next" },
	{ "in the clear, allowed", &password, TLS_LEVEL_NONE, true, true,
	    "220 mx\n|250-mx\n250 AUTH PLAIN\n|235 ok\n|" DONE,
	    HELLO "AUTH PLAIN " PLAIN_B64 "\r\n" MAIL_SAID, SENT },
	/* An offer that was made in the clear does not count. */
	{ "forgotten", &password, TLS_LEVEL_ENCRYPT, false, true,
	    "220 mx\n|250-mx\n250-AUTH PLAIN\n250 STARTTLS\n|220 go\n|250 "
	    "mx\n|",
	    TLS "QUIT\r\n", "-", "site next" },
	{ "PLAIN asks", &password, TLS_LEVEL_ENCRYPT, false, true,
	    SECURE("AUTH PLAIN") "334 more\n|",
	    TLS "AUTH PLAIN " PLAIN_B64 "\r\n", "-", "site next" },
	{ "LOGIN asks again", &password, TLS_LEVEL_ENCRYPT, false, true,
	    SECURE("AUTH LOGIN") "334 a\n|334 b\n|334 c\n|",
	    TLS "AUTH LOGIN\r\n" USER_B64 "\r\n" SECRET_B64 "\r\n", "-",
	    "site next" },
	{ "XOAUTH2 asks again", &token, TLS_LEVEL_ENCRYPT, false, true,
	    SECURE("AUTH XOAUTH2") "334 a\n|334 b\n|",
	    TLS "AUTH XOAUTH2 " XOAUTH2_B64 "\r\n\r\n", "-", "site next" },
	{ "lost", &password, TLS_LEVEL_ENCRYPT, false, true,
	    SECURE("AUTH PLAIN"), TLS "AUTH PLAIN " PLAIN_B64 "\r\n", "-",
	    "site next" },
	{ "two challenges at once", &password, TLS_LEVEL_ENCRYPT, false, true,
	    SECURE("AUTH LOGIN") "334 a\n334 b\n|",
	    TLS "AUTH LOGIN\r\n" USER_B64 "\r\n", "-", "site next" },
};

static struct dialog_task
task_of(struct play *p, const struct credential *c, enum tls_level level)
{
	struct dialog_task task = play_task(p, 1);

	task.tls = level;
	task.credential = c;
	task.auth_soft = true;
	return task;
}

/* mutation: deliver-smtp/dialog/handshake.c, authenticate() that does not look
 * at d->secure. */
Test(auth, N23_conversations)
{
	size_t i;

	for (i = 0; i < ARRAY_LEN(auths); i++) {
		struct play p;
		struct dialog_task task =
		    task_of(&p, auths[i].credential, auths[i].level);

		task.auth_in_clear = auths[i].in_clear;
		task.auth_soft = auths[i].soft;
		play(&p, &task, auths[i].script);
		cr_expect_eq(strncmp(buf_str(&p.said), auths[i].said,
				 strlen(auths[i].said)),
		    0, "%s: %s", auths[i].name, buf_str(&p.said));
		cr_expect_str_eq(buf_str(&p.results), auths[i].results,
		    "%s: %s", auths[i].name, buf_str(&p.results));
		cr_expect_str_eq(
		    p.end, auths[i].end, "%s: %s", auths[i].name, p.end);
		play_done(&p);
	}
}

/* ---- the secret is shown to nobody ---- */

/* Whatever reply has it, in whatever form it was sent. */
Test(auth, N24_a_server_that_repeats_the_secret)
{
	static const char *const forms[] = { "secret", PLAIN_B64, SECRET_B64,
		XOAUTH2_B64 };
	static const char *const scripts[] = {
		SECURE("AUTH PLAIN") "535 5.7.8 bad %s\n|",
		SECURE("AUTH PLAIN") "535-5.7.8 bad\n535 5.7.8 %s x\n|",
		SECURE("AUTH PLAIN") "235 ok\n|550 5.1.0 %s\n|221 x\n|",
		SECURE(
		    "AUTH PLAIN") "235 ok\n|250 ok\n|550 5.1.1 %s\n|250 x\n|",
		SECURE("AUTH PLAIN") "235 ok\n|250 ok\n|250 ok\n|354 x\n|250 "
				     "2.0.0 %s\n|221 x\n",
	};
	size_t i, k;

	for (i = 0; i < ARRAY_LEN(forms); i++)
		for (k = 0; k < ARRAY_LEN(scripts); k++) {
			struct buf script = { 0 };
			struct play p;
			struct dialog_task task =
			    task_of(&p, &password, TLS_LEVEL_ENCRYPT);
			const char *at = strstr(scripts[k], "%s");

			buf_add(&script, scripts[k], (size_t)(at - scripts[k]));
			buf_add_str(&script, forms[i]);
			buf_add_str(&script, at + 2);
			play(&p, &task, buf_str(&script));
			cr_expect_gt(p.texts[0].len, 0);
			cr_expect_null(strstr(buf_str(&p.texts[0]), forms[i]),
			    "%s", buf_str(&p.texts[0]));
			cr_expect_null(
			    strstr(buf_str(&p.dialog.end.why.text), forms[i]));
			play_done(&p);
			buf_done(&script);
		}
}

Test(auth, a_long_token_has_a_line_of_its_own)
{
	static char long_secret[600];
	const struct credential c = { key, user, long_secret, true, 1 };
	struct buf out = { 0 };
	unsigned said = 9;

	memset(long_secret, 't', sizeof(long_secret) - 1);
	cr_assert_eq(auth_begin(&out, SMTP_AUTH_XOAUTH2, &c, &said), 0);
	cr_expect_str_eq(buf_str(&out), "AUTH XOAUTH2\r\n");
	cr_expect_eq(said, 0);
	buf_reset(&out);
	cr_assert_eq(auth_answer(&out, SMTP_AUTH_XOAUTH2, &c, 0), 0);
	cr_expect_gt(out.len, sizeof(long_secret));
	cr_expect_eq(strcspn(buf_str(&out), "\r"), out.len - 2);
	buf_reset(&out);
	cr_assert_eq(auth_answer(&out, SMTP_AUTH_XOAUTH2, &c, 1), 0);
	cr_expect_str_eq(buf_str(&out), "\r\n");
	cr_expect_eq(auth_answer(&out, SMTP_AUTH_XOAUTH2, &c, 2), -EPROTO);
	buf_done(&out);
}
