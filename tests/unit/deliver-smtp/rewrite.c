#include "deliver-smtp/mime/rewrite.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/io.h"
#include "deliver-smtp/connection/connection.h"

static const char rows[] = "ann@one.example shop@relay.example\n"
			   "bob@one.example @three.example\n"
			   "@two.example @relay.example\n"
			   "@b\xc3\xbc"
			   "cher.example x.y@relay.example\n";

static struct sender_map *
map_of(const char *text)
{
	char path[] = "/tmp/qsched-rewrite-XXXXXX";
	struct sender_map *map = NULL;
	struct buf why = { 0 };

	int fd = mkstemp(path);

	cr_assert_geq(fd, 0);
	cr_assert_eq(io_write_all(fd, text, strlen(text)), 0);
	io_close(&fd);
	cr_assert_eq(sender_map_load(path, &sender_rewrite_kind, &map, &why), 0,
	    "%s", buf_str(&why));
	unlink(path);
	buf_done(&why);
	return map;
}

/* With the rest of the content behind the header. */
static void
rewrite(
    const struct sender_map *map, const char *text, size_t len, struct buf *out)
{
	size_t used = 0;

	buf_reset(out);
	cr_assert_eq(rewrite_header(map, text, len, false, out, &used), 0);
	cr_assert_leq(used, len);
	cr_assert_eq(buf_add(out, text + used, len - used), 0);
}

static void
expect(const struct sender_map *map, const char *text, const char *want)
{
	struct buf out = { 0 };

	rewrite(map, text, strlen(text), &out);
	cr_assert_str_eq(buf_str(&out), want, "%s", text);
	buf_done(&out);
}

/* A field that reaches the end of what was read may go on behind it. */
Test(rewrite, C13_a_field_that_may_go_on_is_left)
{
	static const char text[] = "Sender: x@two.example\nFrom: ann@one.exa";
	struct sender_map *map = map_of(rows);
	struct buf out = { 0 };
	size_t used = 0;

	cr_assert_eq(
	    rewrite_header(map, text, strlen(text), true, &out, &used), 0);
	cr_expect_eq(used, 22);
	cr_expect_str_eq(buf_str(&out), "Sender: x@relay.example\n");
	buf_done(&out);
	sender_map_free(&map);
}

/* mutation: deliver-smtp/mime/rewrite.c, edit_address() replaces the whole of
 * an address. */
Test(rewrite, C13_addresses_of_authors_and_nothing_else)
{
	static const struct {
		const char *text, *want;
	} cases[] = {
		{ "From: ann@one.example\n\n", "From: shop@relay.example\n\n" },
		{ "From: ann@one.example", "From: shop@relay.example" },
		{ "From: ann@one.example\r\n\r\n",
		    "From: shop@relay.example\r\n\r\n" },
		{ "sender \t:<ann+x@One.Example.>\n",
		    "sender \t:<shop@relay.example>\n" },
		{ "REPLY-TO: Bob <bob@one.example>,\n\tann (ann@one.example)"
		  " @ (c)\n one.example (d)\n",
		    "REPLY-TO: Bob <bob@three.example>,\n\tshop "
		    "(ann@one.example)"
		    " @ (c)\n relay.example (d)\n" },
		{ "Resent-From: \"ann@one.example\" <ann@one.example>\n"
		  "Resent-Sender: \"x y\"@two.example\n"
		  "Resent-Reply-To: g: <@r.example:eve@two.example>, <>;\n",
		    "Resent-From: \"ann@one.example\" <shop@relay.example>\n"
		    "Resent-Sender: \"x y\"@relay.example\n"
		    "Resent-Reply-To: g: <@r.example:eve@relay.example>, "
		    "<>;\n" },
		{ "From: =?utf-8?q?J=C3=B6rg?= <j@B\xc3\x9c"
		  "CHER.example>, k@xn--bcher-kva.example\n",
		    "From: =?utf-8?q?J=C3=B6rg?= <x.y@relay.example>, "
		    "x.y@relay.example\n" },
		/* Other fields, other addresses, addresses without a domain. */
		{ "To: ann@one.example\nCc: ann@one.example\n"
		  "X-From: ann@one.example\nFrom-X: ann@one.example\n"
		  "Return-Path: <ann@one.example>\n",
		    NULL },
		{ "From: ann, eve@one.example, ann@[127.0.0.1]\n", NULL },
		{ "From:\nSender: <>\nReply-To: ;\n", NULL },
		/* Malformed. */
		{ "From: ann@one.example, <ann@one.example\n", NULL },
		{ "From: ann@one.example, (\nSender: a\001@two.example\n",
		    NULL },
		/* Behind the header. */
		{ "A: b\n\nFrom: ann@one.example\n", NULL },
		{ "A: b\r\n\r\nFrom: ann@one.example\r\n", NULL },
		{ "A: b\n\rFrom: ann@one.example\r\n", NULL },
		{ "A: b\nno field\nFrom: ann@one.example\n", NULL },
		{ "A: b\n: x\nFrom: ann@one.example\n", NULL },
		{ "From ann@one.example now\nFrom: ann@one.example\n", NULL },
		{ "From  : ann@one.example\nSender x:\nFrom: ann@one.example\n",
		    "From  : shop@relay.example\nSender x:\n"
		    "From: ann@one.example\n" },
		{ " From: ann@one.example\nFrom: ann@one.example\n", NULL },
		{ "\nFrom: ann@one.example\n", NULL },
		{ "From\nFrom: ann@one.example\n", NULL },
		{ "\xc3: x\nFrom: ann@one.example\n", NULL },
		{ "", NULL },
	};
	struct sender_map *map = map_of(rows);
	size_t i;

	for (i = 0; i < ARRAY_LEN(cases); i++)
		expect(map, cases[i].text,
		    cases[i].want == NULL ? cases[i].text : cases[i].want);
	sender_map_free(&map);
}

/* The field is one of so many octets, with an address at both ends. */
static void
long_field(struct buf *out, size_t len, const char *first, const char *last)
{
	buf_reset(out);
	cr_assert_eq(buf_printf(out, "From: %s,", first), 0);
	while (out->len + strlen(last) + 1 < len)
		cr_assert_eq(buf_add_char(out, ' '), 0);
	cr_assert_eq(buf_printf(out, "%s\nX: y\n\nz", last), 0);
}

Test(rewrite, C13_the_length_of_a_field)
{
	struct sender_map *map = map_of(rows);
	struct buf in = { 0 }, out = { 0 };
	size_t more;

	for (more = 0; more < 2; more++) {
		long_field(&in, REWRITE_FIELD_MAX + more, "ann@one.example",
		    "eve@two.example");
		rewrite(map, in.data, in.len, &out);
		if (more == 0) {
			cr_assert_eq(out.len, in.len + 3 + 2);
			cr_assert_eq(memcmp(out.data, "From: shop@r", 12), 0);
			cr_assert_not_null(strstr(
			    buf_str(&out), " eve@relay.example\nX: y\n\nz"));
		} else {
			cr_assert_str_eq(buf_str(&out), buf_str(&in));
		}
	}
	/* A name without end is no field of an author. */
	buf_reset(&in);
	while (in.len < 100000)
		cr_assert_eq(buf_add_str(&in, "From"), 0);
	cr_assert_eq(buf_add_str(&in, ": ann@one.example\n"), 0);
	rewrite(map, in.data, in.len, &out);
	cr_assert_str_eq(buf_str(&out), buf_str(&in));
	buf_done(&in);
	buf_done(&out);
	sender_map_free(&map);
}

static void
send_all(struct content *c, struct buf *out)
{
	buf_reset(out);
	while (!c->ended)
		cr_assert_eq(content_add(c, out), 0);
}

/* mutation: deliver-smtp/connection/content.c, left() without the header. */
/* A header of `size` octets at least, which ends with the sender, in a file
 * that has only `readable` octets of the content. */
static void
expect_rewritten(const struct sender_map *map, size_t size, size_t readable)
{
	static const char sender[] = "From: ann@one.example\n\nbody\n";
	char path[] = "/tmp/qsched-rewrite-XXXXXX";
	struct content c = { 0 };
	struct buf text = { 0 };
	int fd = mkstemp(path);

	cr_assert_geq(fd, 0);
	unlink(path);
	while (text.len < size)
		cr_assert_eq(buf_add_str(&text, "X-Field: a\n b\n"), 0);
	cr_assert_eq(buf_add_str(&text, sender), 0);
	cr_assert_eq(io_write_all(fd, text.data, text.len), 0);
	cr_assert_eq(ftruncate(fd, (off_t)readable), 0);
	content_begin(&c, &(struct content_source){ NULL, fd, 0, 1000000 });
	cr_assert_eq(content_rewrite(&c, map), 0, "%zu", size);
	cr_expect_not_null(
	    strstr(buf_str(&c.header), "\nFrom: shop@relay.example\n"));
	cr_expect_eq(c.from.len, 1000000 - (text.len - strlen("\nbody\n")));
	content_done(&c);
	buf_done(&text);
	io_close(&fd);
}

/* The sender lies in the first step, across the first two, and in the third.
 * mutation: deliver-smtp/connection/content.c, HEADER_STEP is 262144;
 * rewrite_header_is_over() is true behind a step. */
Test(rewrite, C13_no_more_is_read_than_the_header)
{
	struct sender_map *map = map_of(rows);

	expect_rewritten(map, 100, 16384);
	expect_rewritten(map, 16370, 32768);
	expect_rewritten(map, 40000, 49152);
	sender_map_free(&map);
}

Test(rewrite, C13_counted_and_converted_content)
{
	struct sender_map *map = map_of(rows);
	struct content c = { 0 };
	struct buf in = { 0 }, out = { 0 };
	uint64_t size = 0;
	int r;

	cr_assert_eq(
	    buf_add_str(&in, "From: ann@one.example\nMIME-Version: 1.0\n\n"),
	    0);
	while (in.len < 2 * CONTENT_SLICE)
		cr_assert_eq(
		    buf_add_str(&in, ".ann@one.example \xc3\xa4\n"), 0);
	content_begin(&c, &(struct content_source){ in.data, -1, 0, in.len });
	cr_assert_eq(content_rewrite(&c, map), 0);
	content_as_chunk(&c, CONTENT_UNKNOWN);
	while ((r = content_measure(&c, &size)) == 0)
		;
	cr_assert_eq(r, 1);
	content_begin(&c, &(struct content_source){ in.data, -1, 0, in.len });
	cr_assert_eq(content_rewrite(&c, map), 0);
	content_as_chunk(&c, size);
	send_all(&c, &out);
	cr_assert_eq(out.len, size);
	cr_assert_not_null(
	    strstr(buf_str(&out), "From: shop@relay.example\r\n"));
	content_begin(&c, &(struct content_source){ in.data, -1, 0, in.len });
	cr_assert_eq(content_rewrite(&c, map), 0);
	while ((r = content_survey(&c, true)) == 0)
		;
	cr_assert_eq(r, 1);
	cr_assert_eq(content_convert(&c,
			 &(struct content_source){ in.data, -1, 0, in.len }),
	    0);
	cr_assert_eq(content_rewrite(&c, map), 0);
	send_all(&c, &out);
	cr_assert_eq(memcmp(out.data, "From: shop@relay.example\r\n", 26), 0);
	cr_assert_not_null(strstr(buf_str(&out), "=C3=A4"));
	/* Without rows there is no stage. */
	content_begin(&c, &(struct content_source){ in.data, -1, 0, in.len });
	cr_assert_eq(content_rewrite(&c, NULL), 0);
	cr_assert_eq(c.header.len, 0);
	content_done(&c);
	buf_done(&in);
	buf_done(&out);
	sender_map_free(&map);
}
