#include "tests/unit/deliver-smtp/bench.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/io.h"
#include "config/conf.h"

#define CONTENT "Subject: x\n\n.dot\nend\n"
#define WIRE    "Subject: x\r\n\r\n..dot\r\nend\r\n.\r\n"

/* clang-format off */
static const struct step plain[] = {
	{ "", "220 mx\r\n" },
	{ "EHLO me.example\r\n", "250 mx\r\n" },
	{ "MAIL FROM:<s@y>\r\n", "250 ok\r\n" },
	{ "RCPT TO:<r0@x>\r\n", "250 ok\r\n" },
	{ "DATA\r\n", "354 go\r\n" },
	{ "\r\n.\r\n", "250 2.0.0 queued\r\n" },
	{ "QUIT\r\n", "221 bye\r\n" },
	{ NULL, NULL },
};
static const struct step pipelined[] = {
	{ "", "220 mx\r\n" },
	{ "EHLO me.example\r\n", "250-mx\r\n250 PIPELINING\r\n" },
	{ "DATA\r\n", "250 ok\r\n250 ok\r\n550 5.1.1 no\r\n354 go\r\n" },
	{ "\r\n.\r\n", "250 2.0.0 queued\r\n" },
	{ "QUIT\r\n", "221 bye\r\n" },
	{ NULL, NULL },
};
/* clang-format on */

Test(session, one_message)
{
	struct bench b;
	char relay[64];

	bench_open(&b, CONTENT, strlen(CONTENT));
	bench_serve(&b, NULL, plain);
	bench_deliver(&b, AGENT_SMTP, "127.0.0.1:%u", 1);
	bench_run(&b);
	snprintf(relay, sizeof(relay),
	    "0S2.0.0:127.0.0.1[127.0.0.1]:%u:250 2.0.0 queued\n",
	    b.server.port);
	cr_expect_str_eq(buf_str(&b.results), relay);
	cr_expect_not(b.site_failed);
	cr_expect_str_eq(buf_str(&b.server.got),
	    "EHLO me.example\r\nMAIL FROM:<s@y>\r\nRCPT TO:<r0@x>\r\n"
	    "DATA\r\n" WIRE "QUIT\r\n");
	bench_close(&b);
}

Test(session, pipelined)
{
	struct bench b;

	bench_open(&b, CONTENT, strlen(CONTENT));
	bench_serve(&b, NULL, pipelined);
	bench_deliver(&b, AGENT_SMTP, "127.0.0.1:%u", 2);
	bench_run(&b);
	cr_expect_not_null(strstr(buf_str(&b.results), "0S2.0.0:"));
	cr_expect_not_null(strstr(buf_str(&b.results), "1F5.1.1:"));
	bench_close(&b);
}
