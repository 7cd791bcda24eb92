/* The conversation up to TLS and behind it, pure. */
#include <criterion/criterion.h>

#include "tests/unit/deliver-smtp/play.h"

#define HELLO     "EHLO me.example\r\n"
#define TLS       HELLO "STARTTLS\r\n{tls}" HELLO
#define OFFER     "220 mx\n|250-mx\n250 STARTTLS\n|220 go\n|"
#define MAIL_SAID "MAIL FROM:<s@y>\r\n"

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
Test(starttls, N8_N7_conversations)
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
