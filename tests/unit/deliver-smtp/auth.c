/* AUTH, pure. */
#include "deliver-smtp/protection/auth.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <gsasl.h>
#include <openssl/evp.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/deliver-smtp/play.h"

#define PLAIN_B64   "AHVzZXIAc2VjcmV0"
#define USER_B64    "dXNlcg=="
#define SECRET_B64  "c2VjcmV0"
#define XOAUTH2_B64 "dXNlcj11c2VyAWF1dGg9QmVhcmVyIHNlY3JldAEB"
#define BEARER_B64  "bixhPXVzZXIsAWF1dGg9QmVhcmVyIHNlY3JldAEB"
/* The example of RFC 7677 section 3. */
#define SCRAM_FIRST "biwsbj11c2VyLHI9ck9wck5HZndFYmVSV2diTkVrcU8="
#define SCRAM_CHALLENGE                                            \
	"cj1yT3ByTkdmd0ViZVJXZ2JORWtxTyVodllEcFdVYTJSYVRDQWZ1eEZJ" \
	"bGopaE5sRiRrMCxzPVcyMlphSjBTTlk3c29Fc1VFamI2Z1E9PSxpPTQw" \
	"OTY="
#define SCRAM_FINAL                                                \
	"Yz1iaXdzLHI9ck9wck5HZndFYmVSV2diTkVrcU8laHZZRHBXVWEyUmFU" \
	"Q0FmdXhGSWxqKWhObEYkazAscD1kSHpiWmFwV0lrNGpVaE4rVXRlOXl0" \
	"YWc5empmTUhnc3FtbWl6N0FuZFZRPQ=="
#define SCRAM_SIGNATURE                                            \
	"dj02cnJpVFJCaTIzV3BSUi93dHVwK21NaFVaVW4vZEI1bkxUSlJzamw5" \
	"NUc0PQ=="
#define SCRAM_WRONG                                                \
	"dj02cnJpVFJCaTIzV3BSUi93dHVwK21NaFVaVW4vZEI1bkxUSlJzamw5" \
	"NUc4PQ=="
#define SCRAM_PROOF "dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="

static char user[] = "user", secret[] = "secret", key[] = "mx";
static const struct credential password = { key, user, secret, false, 1 };
static const struct credential token = { key, user, secret, true, 1 };
/* A word of each offer. */
static char weak_secret[] = "mx";
static const struct credential weak = { key, user, weak_secret, false, 1 };
static char pencil_secret[] = "pencil";
static const struct credential pencil = { key, user, pencil_secret, false, 1 };

/* In the place of libgsasl's: the nonce of 18 octets becomes that of the
 * example. */
int
gsasl_base64_to(const char *in, size_t len, char **ret_out, size_t *ret_len)
{
	char *out = malloc(4 * ((len + 2) / 3) + 1);

	EVP_EncodeBlock(
	    (unsigned char *)out, (const unsigned char *)in, (int)len);
	if (len == 18)
		memcpy(out, "rOprNGfwEbeRWgbNEkqO", 21);
	*ret_out = out;
	if (ret_len != NULL)
		*ret_len = strlen(out);
	return 0;
}

#define HELLO         "EHLO me.example\r\n"
#define TLS           HELLO "STARTTLS\r\n{tls}" HELLO
#define OFFER         "220 mx\n|250-mx\n250 STARTTLS\n|220 go\n|"
#define MAIL_SAID     "MAIL FROM:<s@y>\r\n"

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
	{ "OAUTHBEARER", &token, TLS_LEVEL_ENCRYPT, false, true,
	    SECURE("AUTH PLAIN XOAUTH2 OAUTHBEARER") "235 ok\n|" DONE,
	    TLS "AUTH OAUTHBEARER " BEARER_B64 "\r\n" MAIL_SAID, SENT },
	{ "OAUTHBEARER, then XOAUTH2", &token, TLS_LEVEL_ENCRYPT, false, true,
	    SECURE("AUTH XOAUTH2 OAUTHBEARER") "334 e30=\n|535 no\n|235 "
					       "ok\n|" DONE,
	    TLS "AUTH OAUTHBEARER " BEARER_B64
		"\r\nAQ==\r\nAUTH XOAUTH2 " XOAUTH2_B64 "\r\n" MAIL_SAID,
	    SENT },
	{ "SCRAM", &pencil, TLS_LEVEL_ENCRYPT, false, true,
	    SECURE("AUTH PLAIN LOGIN SCRAM-SHA-256") "334 " SCRAM_CHALLENGE
						     "\n|334 " SCRAM_SIGNATURE
						     "\n|235 ok\n|" DONE,
	    TLS "AUTH SCRAM-SHA-256 " SCRAM_FIRST "\r\n" SCRAM_FINAL
		"\r\n\r\n" MAIL_SAID,
	    SENT },
	{ "SCRAM in the clear", &pencil, TLS_LEVEL_NONE, false, true,
	    "220 mx\n|250-mx\n250 AUTH SCRAM-SHA-256\n|", HELLO "QUIT\r\n", "-",
	    "site next" },
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

/* mutation: deliver-smtp/dialog/handshake.c, authenticate() that does not look
 * at d->secure. */
Test(auth, N23_conversations)
{
	size_t i;

	for (i = 0; i < ARRAY_LEN(auths); i++) {
		struct play p;
		struct dialog_task task =
		    play_auth_task(&p, auths[i].credential, auths[i].level);

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

/* ---- one mechanism after the other ---- */

#define LOGIN_SAID "AUTH LOGIN\r\n" USER_B64 "\r\n" SECRET_B64 "\r\n"
#define PLAIN_SAID "AUTH PLAIN " PLAIN_B64 "\r\n"
#define BOTH       SECURE("AUTH PLAIN LOGIN")
#define LOGGED_IN  "334 a\n|334 b\n|235 ok\n|" DONE

static const struct {
	const char *name;
	unsigned mechanisms;
	bool soft;
	const char *script, *said, *results, *end;
} fallbacks[] = {
	{ "501", SMTP_AUTH_ALL, true, BOTH "501 no\n|" LOGGED_IN,
	    TLS PLAIN_SAID LOGIN_SAID MAIL_SAID, SENT },
	{ "502", SMTP_AUTH_ALL, true, BOTH "502 no\n|" LOGGED_IN,
	    TLS PLAIN_SAID LOGIN_SAID MAIL_SAID, SENT },
	{ "504", SMTP_AUTH_ALL, true, BOTH "504 no\n|" LOGGED_IN,
	    TLS PLAIN_SAID LOGIN_SAID MAIL_SAID, SENT },
	{ "534", SMTP_AUTH_ALL, true, BOTH "534 no\n|" LOGGED_IN,
	    TLS PLAIN_SAID LOGIN_SAID MAIL_SAID, SENT },
	{ "535", SMTP_AUTH_ALL, true, BOTH "535 no\n|" LOGGED_IN,
	    TLS PLAIN_SAID LOGIN_SAID MAIL_SAID, SENT },
	{ "553", SMTP_AUTH_ALL, true, BOTH "553 no\n|" LOGGED_IN,
	    TLS PLAIN_SAID LOGIN_SAID MAIL_SAID, SENT },
	{ "each", SMTP_AUTH_ALL, false,
	    SECURE("AUTH LOGIN PLAIN SCRAM-SHA-256") "535 a\n|535 b\n|334 a\n|"
						     "334 b\n|535 5.7.8 c\n|",
	    TLS "AUTH SCRAM-SHA-256 " SCRAM_FIRST "\r\n" PLAIN_SAID LOGIN_SAID
		"QUIT\r\n",
	    "F5.7.8", "" },
	{ "not now", SMTP_AUTH_ALL, false, BOTH "454 4.7.0 later\n|",
	    TLS PLAIN_SAID "QUIT\r\n", "D4.7.0", "site" },
	{ "then not now", SMTP_AUTH_ALL, false,
	    BOTH "535 no\n|454 4.7.0 later\n|",
	    TLS PLAIN_SAID "AUTH LOGIN\r\nQUIT\r\n", "D4.7.0", "site" },
	/* No other address is tried: the user has had a failure. */
	{ "then 421", SMTP_AUTH_ALL, true, BOTH "535 5.7.8 no\n|421 bye\n|",
	    TLS PLAIN_SAID "AUTH LOGIN\r\n", "D4.7.8", "site" },
	{ "then 421, hard", SMTP_AUTH_ALL, false,
	    BOTH "535 5.7.8 no\n|421 bye\n|", TLS PLAIN_SAID "AUTH LOGIN\r\n",
	    "F5.7.8", "" },
	{ "then lost", SMTP_AUTH_ALL, true, BOTH "535 5.7.8 no\n|",
	    TLS PLAIN_SAID "AUTH LOGIN\r\n", "D4.7.8", "site" },
	{ "then lost, hard", SMTP_AUTH_ALL, false, BOTH "535 5.7.8 no\n|",
	    TLS PLAIN_SAID "AUTH LOGIN\r\n", "F5.7.8", "" },
	{ "then silent", SMTP_AUTH_ALL, true, BOTH "535 5.7.8 no\n|!",
	    TLS PLAIN_SAID "AUTH LOGIN\r\n", "D4.7.8", "site" },
	/* Neither of these refuses the next mechanism. */
	{ "then silent, hard", SMTP_AUTH_ALL, false, BOTH "535 5.7.8 no\n|!",
	    TLS PLAIN_SAID "AUTH LOGIN\r\n", "D4.7.8", "site" },
	{ "then asks again, hard", SMTP_AUTH_ALL, false,
	    BOTH "535 5.7.8 no\n|334 a\n|334 b\n|334 c\n|",
	    TLS PLAIN_SAID LOGIN_SAID, "D4.7.8", "site" },
	{ "then stopped, hard", SMTP_AUTH_ALL, false, BOTH "535 5.7.8 no\n|#",
	    TLS PLAIN_SAID "AUTH LOGIN\r\n", "D4.3.2", "" },
	{ "the filter", SMTP_AUTH_LOGIN, true, BOTH LOGGED_IN,
	    TLS LOGIN_SAID MAIL_SAID, SENT },
	{ "nothing left by the filter", SMTP_AUTH_XOAUTH2, true, BOTH,
	    TLS "QUIT\r\n", "-", "site next" },
	{ "no next one by the filter", SMTP_AUTH_PLAIN, true,
	    BOTH "535 5.7.8 no\n|", TLS PLAIN_SAID "QUIT\r\n", "D4.7.8",
	    "site" },
};

Test(auth, N40_the_next_mechanism)
{
	size_t i;

	for (i = 0; i < ARRAY_LEN(fallbacks); i++) {
		struct play p;
		struct dialog_task task =
		    play_auth_task(&p, &password, TLS_LEVEL_ENCRYPT);

		task.auth_soft = fallbacks[i].soft;
		task.mechanisms = fallbacks[i].mechanisms;
		play(&p, &task, fallbacks[i].script);
		cr_expect_eq(strncmp(buf_str(&p.said), fallbacks[i].said,
				 strlen(fallbacks[i].said)),
		    0, "%s: %s", fallbacks[i].name, buf_str(&p.said));
		cr_expect_str_eq(buf_str(&p.results), fallbacks[i].results,
		    "%s: %s", fallbacks[i].name, buf_str(&p.results));
		cr_expect_str_eq(p.end, fallbacks[i].end, "%s: %s",
		    fallbacks[i].name, p.end);
		play_done(&p);
	}
}

/* ---- a server that does not know the password ---- */

#define SCRAM(rest) SECURE("AUTH SCRAM-SHA-256 PLAIN") rest
#define FIRST_SAID  TLS "AUTH SCRAM-SHA-256 " SCRAM_FIRST "\r\n"
#define FINAL_SAID  FIRST_SAID SCRAM_FINAL "\r\n"
#define CHALLENGE   "334 " SCRAM_CHALLENGE "\n|"
/* The challenges are the base64 of the challenge of the example, changed as
 * the name says. */

static const struct {
	const char *name, *script, *said, *dsn;
} impostors[] = {
	{ "a wrong signature",
	    SCRAM(CHALLENGE "334 " SCRAM_WRONG "\n|235 ok\n|"), FINAL_SAID,
	    "4.7.5" },
	{ "no signature", SCRAM(CHALLENGE "235 ok\n|250 x\n|"), FINAL_SAID,
	    "4.7.5" },
	{ "yes at once", SCRAM("235 ok\n|250 x\n|"), FIRST_SAID, "4.7.5" },
	{ "an error in place of the signature",
	    SCRAM(CHALLENGE "334 ZT1pbnZhbGlkLXByb29m\n|"), FINAL_SAID,
	    "4.5.0" },
	{ "asks again", SCRAM(CHALLENGE "334 " SCRAM_SIGNATURE "\n|334 \n|"),
	    FINAL_SAID "\r\n", "4.5.0" },
	{ "no base64", SCRAM("334 ****\n|"), FIRST_SAID, "4.5.0" },
	{ "an empty challenge", SCRAM("334 \n|"), FIRST_SAID, "4.5.0" },
	{ "no text", SCRAM("334\n|"), FIRST_SAID, "4.5.0" },
	{ "two lines",
	    SCRAM("334-" SCRAM_CHALLENGE "\n334 " SCRAM_CHALLENGE "\n|"),
	    FIRST_SAID, "4.5.0" },
	{ "another nonce",
	    SCRAM("334 cj1hbm90aGVyLHM9VzIyWmFKMFNOWTdzb0VzVUVqYjZnUT09"
		  "LGk9NDA5Ng==\n|"),
	    FIRST_SAID, "4.7.5" },
	{ "no salt",
	    SCRAM("334 cj1yT3ByTkdmd0ViZVJXZ2JORWtxTyVodllEcFdVYTJSYVRD"
		  "QWZ1eEZJbGopaE5sRiRrMCxpPTQwOTY=\n|"),
	    FIRST_SAID, "4.5.0" },
	{ "no rounds",
	    SCRAM("334 cj1yT3ByTkdmd0ViZVJXZ2JORWtxTyVodllEcFdVYTJSYVRD"
		  "QWZ1eEZJbGopaE5sRiRrMCxzPVcyMlphSjBTTlk3c29Fc1VF"
		  "amI2Z1E9PQ==\n|"),
	    FIRST_SAID, "4.5.0" },
	{ "rounds: none",
	    SCRAM("334 cj1yT3ByTkdmd0ViZVJXZ2JORWtxTyVodllEcFdVYTJSYVRD"
		  "QWZ1eEZJbGopaE5sRiRrMCxzPVcyMlphSjBTTlk3c29Fc1VF"
		  "amI2Z1E9PSxpPTA=\n|"),
	    FIRST_SAID, "4.5.0" },
	{ "rounds: one too many",
	    SCRAM("334 cj1yT3ByTkdmd0ViZVJXZ2JORWtxTyVodllEcFdVYTJSYVRD"
		  "QWZ1eEZJbGopaE5sRiRrMCxzPVcyMlphSjBTTlk3c29Fc1VF"
		  "amI2Z1E9PSxpPTYwMDAwMQ==\n|"),
	    FIRST_SAID, "4.5.0" },
	{ "rounds: beyond all numbers",
	    SCRAM("334 cj1yT3ByTkdmd0ViZVJXZ2JORWtxTyVodllEcFdVYTJSYVRD"
		  "QWZ1eEZJbGopaE5sRiRrMCxzPVcyMlphSjBTTlk3c29Fc1VF"
		  "amI2Z1E9PSxpPTk5OTk5OTk5OTk5OTk5OTk5OTk5OTk5\n|"),
	    FIRST_SAID, "4.5.0" },
	{ "an extension that must be known",
	    SCRAM("334 bT14LHI9ck9wck5HZndFYmVSV2diTkVrcU8laHZZRHBXVWEy"
		  "UmFUQ0FmdXhGSWxqKWhObEYkazAscz1XMjJaYUowU05ZN3Nv"
		  "RXNVRWpiNmdRPT0saT00MDk2\n|"),
	    FIRST_SAID, "4.5.0" },
};

/* Nothing of the message is said, no password, and another address is tried. */
Test(auth, N41_a_server_without_the_password)
{
	size_t i;

	for (i = 0; i < ARRAY_LEN(impostors); i++) {
		struct play p;
		struct dialog_task task =
		    play_auth_task(&p, &pencil, TLS_LEVEL_ENCRYPT);

		play(&p, &task, impostors[i].script);
		cr_expect_str_eq(buf_str(&p.said), impostors[i].said, "%s: %s",
		    impostors[i].name, buf_str(&p.said));
		cr_expect_str_eq(buf_str(&p.results), "-");
		cr_expect_str_eq(
		    p.end, "site next", "%s: %s", impostors[i].name, p.end);
		cr_expect_str_eq(p.dialog.end.why.dsn, impostors[i].dsn,
		    "%s: %s %s", impostors[i].name, p.dialog.end.why.dsn,
		    buf_str(&p.dialog.end.why.text));
		play_done(&p);
	}
}

/* A proof and the challenge are enough to guess a password. */
Test(auth, N24_a_server_that_repeats_the_proof)
{
	static const char *const scripts[] = {
		SCRAM(CHALLENGE "535 5.7.8 no " SCRAM_PROOF "\n|"),
		SCRAM(CHALLENGE "535 5.7.8 no " SCRAM_FINAL "\n|"),
		SCRAM(CHALLENGE "334 " SCRAM_SIGNATURE
				"\n|235 ok\n|550 5.1.0 " SCRAM_FINAL
				"\n|221 x\n|"),
		SCRAM(CHALLENGE "454 4.7.0 " SCRAM_PROOF "\n|"),
	};
	size_t i;

	for (i = 0; i < ARRAY_LEN(scripts); i++) {
		struct play p;
		struct dialog_task task =
		    play_auth_task(&p, &pencil, TLS_LEVEL_ENCRYPT);

		task.mechanisms = SMTP_AUTH_SCRAM;
		play(&p, &task, scripts[i]);
		cr_expect_gt(p.texts[0].len, 0);
		cr_expect_null(strstr(buf_str(&p.texts[0]), SCRAM_PROOF));
		cr_expect_null(strstr(buf_str(&p.texts[0]), SCRAM_FINAL));
		play_done(&p);
	}
}

/* ---- the secret is shown to nobody ---- */

/* Whatever reply has it, in whatever form it was sent. */
Test(auth, N24_a_server_that_repeats_the_secret)
{
	static const char *const forms[] = { "secret", PLAIN_B64, SECRET_B64,
		XOAUTH2_B64, BEARER_B64 };
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
			    play_auth_task(&p, &password, TLS_LEVEL_ENCRYPT);
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
	const struct smtp_reply more = { .code = 334 };
	struct auth a = { 0 };
	struct buf out = { 0 };

	memset(long_secret, 't', sizeof(long_secret) - 1);
	cr_assert_eq(auth_begin(&a, &out, SMTP_AUTH_XOAUTH2, &c), 0);
	cr_expect_str_eq(buf_str(&out), "AUTH XOAUTH2\r\n");
	buf_reset(&out);
	cr_assert_eq(auth_answer(&a, &out, &more), 0);
	cr_expect_gt(out.len, sizeof(long_secret));
	cr_expect_eq(strcspn(buf_str(&out), "\r"), out.len - 2);
	buf_reset(&out);
	cr_assert_eq(auth_answer(&a, &out, &more), 0);
	cr_expect_str_eq(buf_str(&out), "\r\n");
	cr_expect_eq(auth_answer(&a, &out, &more), -EPROTO);
	auth_done(&a);
	buf_done(&out);
}
