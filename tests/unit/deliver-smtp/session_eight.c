/* Content of 8 bit over a connection. */
#include "tests/unit/deliver-smtp/bench.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/conf.h"
#include "deliver-smtp/connection/connection.h"
#include "spool/queue_file.h"

/* clang-format off */
static const struct step seven[] = {
	{ "", "220 mx\r\n" },
	{ "EHLO me.example\r\n", "250-mx\r\n250 PIPELINING\r\n" },
	{ "DATA\r\n", "250 ok\r\n250 ok\r\n354 go\r\n" },
	{ "\r\n.\r\n", "250 2.0.0 queued\r\n" },
	{ "DATA\r\n", "250 ok\r\n250 ok\r\n354 go\r\n" },
	{ "\r\n.\r\n", "250 2.0.0 queued\r\n" },
	{ "QUIT\r\n", "221 bye\r\n" },
	{ NULL, NULL },
};
/* clang-format on */

/* More than one slice, and the octet in the last. */
static void
make(struct buf *content)
{
	size_t i;

	buf_add_str(content, "Subject: x\nMIME-Version: 1.0\n\n");
	for (i = 0; i < 3000; i++)
		buf_printf(content, "%031zu\n", i);
	buf_add_str(content, "\xc3\xa9nd\n");
}

static size_t
count(const struct buf *in, const char *what)
{
	const char *p = buf_str(in);
	size_t n = 0;

	for (; (p = strstr(p, what)) != NULL; p++)
		n++;
	return n;
}

static void
expect_seven(const struct buf *got, size_t messages)
{
	size_t i;

	for (i = 0; i < got->len; i++)
		cr_assert_lt((unsigned char)got->data[i], 0x80);
	cr_expect_eq(count(got,
			 "Content-Transfer-Encoding: quoted-printable\r\n\r\n"
			 "0000000000000000000000000000000\r\n"),
	    messages);
	cr_expect_eq(count(got, "\r\n=C3=A9nd\r\n.\r\n"), messages);
	cr_expect_eq(count(got, "2999\r\n"), messages);
}

/* The second message of a connection as the first, from the file and from the
 * frame. */
Test(session_eight, N25_converted_in_slices)
{
	struct buf content = { 0 };
	struct bench b;
	int i;

	make(&content);
	bench_open(&b, buf_str(&content), content.len);
	bench_serve(&b, NULL, seven);
	b.flags = QUEUE_FILE_8BIT;
	b.reuse = true;
	for (i = 0; i < 2; i++) {
		bench_deliver(&b, AGENT_SMTP, "127.0.0.1:%u", 1);
		bench_run(&b);
		bench_expect(&b, "0S2.0.0:", false);
		cr_assert(b.kept);
		b.connection = b.number++;
	}
	cr_expect_eq(b.server.connections, 1);
	expect_seven(&b.server.got, 2);
	bench_close(&b);
	buf_done(&content);
}

/* Even where each octet becomes three. */
Test(session_eight, N25_a_converted_slice_is_no_longer)
{
	static char content[4 * CONTENT_SLICE];
	struct content c = { 0 };
	struct buf out = { 0 };

	memset(content, 0xe9, sizeof(content));
	content[0] = '\n';
	content_begin(
	    &c, &(struct content_source){ content, -1, 0, sizeof(content) });
	while (c.from.len > 0)
		cr_assert_geq(content_survey(&c, true), 0);
	cr_assert_eq(
	    content_convert(&c,
		&(struct content_source){ content, -1, 0, sizeof(content) }),
	    0);
	while (!c.ended) {
		buf_reset(&out);
		cr_assert_eq(content_add(&c, &out), 0);
		cr_expect_leq(out.len, CONTENT_SLICE);
	}
	content_done(&c);
	buf_done(&out);
}

Test(session_eight, N25_converted_from_the_frame)
{
	static const char content[] = "Subject: x\n\n\xe9\n";
	struct bench b;

	bench_open(&b, content, strlen(content));
	bench_serve(&b, NULL, seven);
	b.flags = QUEUE_FILE_8BIT;
	b.whole = true;
	bench_deliver(&b, AGENT_SMTP, "127.0.0.1:%u", 1);
	bench_run(&b);
	bench_expect(&b, "0S2.0.0:", false);
	cr_expect_not_null(strstr(buf_str(&b.server.got),
	    "unknown-8bit\r\nContent-Transfer-Encoding: quoted-printable"
	    "\r\n\r\n=E9\r\n.\r\n"));
	bench_close(&b);
}

/* By the configuration of its transport. */
Test(session_eight, N13_a_transport_may_refuse)
{
	static const char content[] = "Subject: x\n\n\xe9\n";
	struct bench b;

	bench_open(&b, content, strlen(content));
	bench_transport(&b, "smtp")->eight = CONF_EIGHT_REFUSE;
	bench_serve(&b, NULL, seven);
	b.flags = QUEUE_FILE_8BIT;
	bench_deliver(&b, AGENT_SMTP, "127.0.0.1:%u", 1);
	bench_run(&b);
	bench_expect(&b, "0F5.6.3:", false);
	bench_close(&b);
}
