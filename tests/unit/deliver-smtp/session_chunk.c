/* Content by BDAT over a connection: the octets that were announced. */
#include "tests/unit/deliver-smtp/bench.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "config/conf.h"
#include "deliver-smtp/connection/connection.h"
#include "spool/queue_file.h"

#define WIRE "Subject: x\r\n\r\n.dot\r\nend\r\n"

/* clang-format off */
static const struct step chunking[] = {
	{ "", "220 mx\r\n" },
	{ "EHLO me.example\r\n",
	    "250-mx\r\n250-PIPELINING\r\n250 CHUNKING\r\n" },
	{ "MAIL FROM:<s@y>\r\n", "250 ok\r\n" },
	{ "RCPT TO:<r0@x>\r\n", "250 ok\r\n" },
	{ "end\r\n", "250 2.6.0 queued\r\n" },
	{ "MAIL FROM:<s@y>\r\n", "250 ok\r\n" },
	{ "RCPT TO:<r0@x>\r\n", "250 ok\r\n" },
	{ "end\r\n", "250 2.6.0 queued\r\n" },
	{ "QUIT\r\n", "221 bye\r\n" },
	{ NULL, NULL },
};
static const struct step refused[] = {
	{ "", "220 mx\r\n" },
	{ "EHLO me.example\r\n", "250-mx\r\n250 CHUNKING\r\n" },
	{ "MAIL FROM:<s@y>\r\n", "250 ok\r\n" },
	{ "RCPT TO:<r0@x>\r\n", "250 ok\r\n" },
	{ "end\r\n", "554 5.7.1 spam\r\n" },
	{ "QUIT\r\n", "221 bye\r\n" },
	{ NULL, NULL },
};
static const struct step lmtp[] = {
	{ "", "220 mx\r\n" },
	{ "LHLO me.example\r\n", "250-mx\r\n250 CHUNKING\r\n" },
	{ "MAIL FROM:<s@y>\r\n", "250 ok\r\n" },
	{ "RCPT TO:<r0@x>\r\n", "250 ok\r\n" },
	{ "RCPT TO:<r1@x>\r\n", "250 ok\r\n" },
	{ "end\r\n", "250 2.1.5 a\r\n452 4.2.2 full\r\n" },
	{ "QUIT\r\n", "221 bye\r\n" },
	{ NULL, NULL },
};
/* clang-format on */

static void
begin(
    struct bench *b, const char *content, size_t len, const struct step *steps)
{
	bench_open(b, content, len);
	bench_transport(b, "smtp")->chunking = true;
	bench_transport(b, "lmtp")->chunking = true;
	bench_serve(b, NULL, steps);
}

Test(session_chunk, N26_a_message)
{
	static const char said[] =
	    "RCPT TO:<r0@x>\r\nBDAT 25 LAST\r\n" WIRE "QUIT\r\n";
	struct bench b;

	begin(&b, BENCH_CONTENT, strlen(BENCH_CONTENT), refused);
	bench_deliver(&b, AGENT_SMTP, "127.0.0.1:%u", 1);
	bench_run(&b);
	bench_expect(&b, "0F5.7.1:", false);
	cr_expect_not_null(
	    strstr(buf_str(&b.server.got), said), "%s", buf_str(&b.server.got));
	bench_close(&b);
}

Test(session_chunk, N26_lmtp_answers_for_each)
{
	struct bench b;

	begin(&b, BENCH_CONTENT, strlen(BENCH_CONTENT), lmtp);
	bench_deliver(&b, AGENT_LMTP, "127.0.0.1:%u", 2);
	bench_run(&b);
	bench_expect(&b, "0S2.1.5:", false);
	bench_expect(&b, "1D4.2.2:", false);
	bench_close(&b);
}

/* ---- the size on the wire, with MAIL ---- */

/* clang-format off */
static const struct step sized[] = {
	{ "", "220 mx\r\n" },
	{ "EHLO me.example\r\n", "250-mx\r\n250 SIZE 25\r\n" },
	{ "MAIL FROM:<s@y> SIZE=25\r\n", "550 5.1.0 seen\r\n" },
	{ "QUIT\r\n", "221 bye\r\n" },
	{ NULL, NULL },
};
static const struct step small[] = {
	{ "", "220 mx\r\n" },
	{ "EHLO me.example\r\n", "250-mx\r\n250 SIZE 24\r\n" },
	{ "QUIT\r\n", "221 bye\r\n" },
	{ NULL, NULL },
};
/* clang-format on */

/* Whether the content comes along in memory or is read from the queue file. */
Test(session_chunk, N43_the_size_has_the_line_ends)
{
	const size_t len = strlen(BENCH_CONTENT);
	struct bench b;
	int whole;

	for (whole = 0; whole < 2; whole++) {
		bench_open(&b, BENCH_CONTENT, len);
		bench_serve(&b, NULL, sized);
		b.whole = whole == 1;
		bench_deliver(&b, AGENT_SMTP, "127.0.0.1:%u", 1);
		bench_run(&b);
		bench_expect(&b, "0F5.1.0:", false);
		bench_close(&b);

		bench_open(&b, BENCH_CONTENT, len);
		bench_serve(&b, NULL, small);
		b.whole = whole == 1;
		bench_deliver(&b, AGENT_SMTP, "127.0.0.1:%u", 1);
		bench_run(&b);
		bench_expect(&b, "0F5.3.4:", false);
		bench_close(&b);
	}
}

/* ---- large, converted, over a kept connection ---- */

/* More than one slice, which ends inside a line. */
static void
make(struct buf *content, const char *octet)
{
	size_t i;

	buf_add_str(content, "Subject: x\nMIME-Version: 1.0\n\n");
	for (i = 0; i < 5000; i++)
		buf_printf(content, ".%028zu\r\n%s", i, i % 7 ? "" : ".\r\n");
	buf_printf(content, "%send\n", octet);
}

/* The chunk behind `from`: its length is the one announced. */
static const char *
check_chunk(const char *from, const char **ret_chunk, unsigned long *ret_len)
{
	const char *bdat = strstr(from, "BDAT ");
	char *rest;

	cr_assert_not_null(bdat);
	*ret_len = strtoul(bdat + 5, &rest, 10);
	cr_assert_eq(strncmp(rest, " LAST\r\n", 7), 0);
	*ret_chunk = rest + 7;
	cr_assert_geq(strlen(*ret_chunk), *ret_len);
	cr_expect_eq(strncmp(*ret_chunk + *ret_len - 5, "end\r\n", 5), 0);
	return *ret_chunk + *ret_len;
}

static void
twice(const char *octet, uint32_t flags, const char *behind)
{
	struct buf content = { 0 };
	unsigned long len[2];
	const char *at, *chunk[2];
	struct bench b;
	int i;

	make(&content, octet);
	begin(&b, buf_str(&content), content.len, chunking);
	b.flags = flags;
	b.reuse = true;
	for (i = 0; i < 2; i++) {
		bench_deliver(&b, AGENT_SMTP, "127.0.0.1:%u", 1);
		bench_run(&b);
		bench_expect(&b, "0S2.6.0:", false);
		cr_assert(b.kept);
		b.connection = b.number++;
	}
	at = buf_str(&b.server.got);
	for (i = 0; i < 2; i++)
		at = check_chunk(at, &chunk[i], &len[i]);
	cr_expect_eq(strncmp(at, behind, strlen(behind)), 0);
	cr_expect_eq(len[0], len[1]);
	cr_expect_eq(memcmp(chunk[0], chunk[1], len[0]), 0);
	cr_expect_not_null(strstr(chunk[0], "\r\n.\r\n.000000000"));
	cr_expect_null(strstr(at, "\r\n..\r\n"));
	bench_close(&b);
	buf_done(&content);
}

Test(session_chunk, N26_several_slices_twice)
{
	twice("", 0, "");
}

Test(session_chunk, N26_converted_in_slices_twice)
{
	twice("\xc3\xa9", QUEUE_FILE_8BIT, "");
}

/* ---- what was measured is not there any more ---- */

Test(session_chunk, N26_neither_more_nor_less)
{
	static const char text[] = "a\n.b\nc";
	static const struct {
		uint64_t announced;
		int want;
	} rows[] = { { 10, 0 }, { 9, -EBADMSG }, { 11, -EBADMSG },
		{ CONTENT_UNKNOWN, 0 }, { 0, -EBADMSG } };
	struct content c = { 0 };
	struct buf out = { 0 };
	uint64_t size = 0;
	size_t i;

	for (i = 0; i < ARRAY_LEN(rows); i++) {
		content_begin(
		    &c, &(struct content_source){ text, -1, 0, strlen(text) });
		content_as_chunk(&c, rows[i].announced);
		buf_reset(&out);
		cr_expect_eq(content_add(&c, &out), rows[i].want, "row %zu", i);
	}
	content_begin(
	    &c, &(struct content_source){ text, -1, 0, strlen(text) });
	content_as_chunk(&c, CONTENT_UNKNOWN);
	cr_expect_eq(content_measure(&c, &size), 1);
	cr_expect_eq(size, 10);
	content_begin(&c, &(struct content_source){ text, -1, 0, 0 });
	content_as_chunk(&c, CONTENT_UNKNOWN);
	cr_expect_eq(content_measure(&c, &size), 1);
	cr_expect_eq(size, 0);
	content_done(&c);
	buf_done(&out);
}

static void
cut(const struct bench *b, off_t len)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", b->fd);
	cr_assert_eq(truncate(path, len), 0);
}

/* A file that cannot be read to its end is not announced; one that is cut
 * behind the measure does not fill its chunk. */
Test(session_chunk, N26_a_file_that_became_shorter)
{
	struct buf content = { 0 }, out = { 0 };
	struct content c = { 0 };
	uint64_t size = 0;
	struct bench b;
	int r;

	make(&content, "");
	begin(&b, buf_str(&content), content.len, chunking);
	bench_deliver(&b, AGENT_SMTP, "127.0.0.1:%u", 1);
	while (TAILQ_EMPTY(&b.context.running) && !b.done)
		bench_turn(&b);
	cut(&b, 100000);
	bench_run(&b);
	bench_expect(&b, "0D4.3.0:", false);
	cr_expect_null(strstr(buf_str(&b.server.got), "BDAT"));
	content_begin(&c, &(struct content_source){ NULL, b.fd, 0, 100000 });
	content_as_chunk(&c, CONTENT_UNKNOWN);
	while ((r = content_measure(&c, &size)) == 0)
		;
	cr_assert_eq(r, 1);
	content_begin(&c, &(struct content_source){ NULL, b.fd, 0, 100000 });
	content_as_chunk(&c, size);
	cr_expect_eq(content_add(&c, &out), 0);
	cut(&b, 50000);
	cr_expect_eq(content_add(&c, &out), -ENODATA);
	content_done(&c);
	buf_done(&out);
	bench_close(&b);
	buf_done(&content);
}
