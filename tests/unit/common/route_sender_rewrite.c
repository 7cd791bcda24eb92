#include "route/sender_rewrite.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/io.h"

static int
load(const char *text, struct sender_map **ret, struct buf *error)
{
	char path[] = "/tmp/qsched-sender-rewrite-XXXXXX";
	int fd = mkstemp(path), r;

	cr_assert_geq(fd, 0);
	cr_assert_eq(io_write_all(fd, text, strlen(text)), 0);
	io_close(&fd);
	r = sender_map_load(path, &sender_rewrite_kind, ret, error);
	unlink(path);
	return r;
}

/* A sender with so many octets in front of the at sign. */
static void
fill(char out[ADDRESS_MAX + 1], size_t local)
{
	memset(out, 'a', local);
	snprintf(out + local, ADDRESS_MAX + 1 - local, "@one.example");
}

/* mutation: common/route/sender_rewrite.c, sender_rewrite() drops the local
 * part for a domain. */
Test(sender_rewrite, C13_the_other_address_of_a_sender)
{
	static const struct {
		const char *sender, *other; /* NULL: none */
	} rows[] = {
		{ "ann@one.example", "Shop@relay.example" },
		{ "ANN+x@One.Example.", "Shop@relay.example" },
		{ "eve@one.example", "eve@xn--bcher-kva.example" },
		{ "\"a b\"@one.example", "\"a b\"@xn--bcher-kva.example" },
		{ "x@B\xc3\x9c"
		  "CHER.example",
		    "y@relay.example" },
		{ "news@three.example", "news@relay.example" },
		{ "news+x@three.example", "news@relay.example" },
		/* VERP */
		{ "list-@three.example-@[]", "list-@relay.example-@[]" },
		{ "news+@three.example-@[]", "news+@relay.example-@[]" },
		{ "news-@three.example-@[]", NULL },
		{ "eve-@one.example-@[]", "eve-@xn--bcher-kva.example-@[]" },
		{ "eve-@xn--bcher-kva.example-@[]", "y+@relay.example-@[]" },
		{ "@one.example-@[]", "@xn--bcher-kva.example-@[]" },
		{ "x-@[]", NULL },
		{ "eve@two.example", NULL },
		{ "one.example", NULL },
		{ "", NULL },
	};
	struct sender_map *map = NULL, *again;
	struct buf error = { 0 };
	char out[ADDRESS_MAX + 1], sender[ADDRESS_MAX + 1];
	size_t i;

	cr_assert_eq(load("Ann@one.example Shop@RELAY.example # x\n"
			  "@one.example @B\xc3\xbc"
			  "cher.example\n"
			  "@xn--bcher-kva.example y@relay.example\n"
			  "list-@three.example list-@relay.example\n"
			  "news@three.example news@relay.example\n",
			 &map, &error),
	    0, "%s", buf_str(&error));
	for (i = 0; i < ARRAY_LEN(rows); i++) {
		out[0] = '\0';
		cr_expect_eq(sender_rewrite(map, rows[i].sender, out),
		    rows[i].other != NULL, "%s", rows[i].sender);
		cr_expect_str_eq(
		    out, rows[i].other == NULL ? "" : rows[i].other);
	}
	/* The longest that fits, and one that does not. */
	fill(sender, ADDRESS_MAX - strlen("@xn--bcher-kva.example"));
	cr_expect_eq(sender_rewrite(map, sender, out), 1);
	cr_expect_eq(strlen(out), ADDRESS_MAX);
	fill(sender, ADDRESS_MAX + 1 - strlen("@xn--bcher-kva.example"));
	cr_expect_eq(sender_rewrite(map, sender, out), 0);
	again = sender_map_ref(map);
	sender_map_free(&map);
	cr_expect_null(map);
	cr_expect_eq(sender_rewrite(again, "ann@one.example", out), 1);
	sender_map_free(&again);
	cr_expect_eq(sender_rewrite(NULL, "ann@one.example", out), 0);
	cr_expect_eq(sender_rewrite(NULL, NULL, out), 0);
	cr_expect(sender_map_is_empty(NULL));
	cr_assert_eq(load("# nothing\n", &map, &error), 0);
	cr_expect(sender_map_is_empty(map));
	sender_map_free(&map);
	buf_done(&error);
}

Test(sender_rewrite, C13_wrong_lines_are_told)
{
	static const struct {
		const char *text, *why;
	} rows[] = {
		{ "a@b.c\n", ":1: not `user@domain address`, with @domain" },
		{ "a@b.c d@e f@g\n", ":1: not `user@domain address`" },
		{ "a@b.c d\n", ":1: \"d\" is not user@domain or @domain; " },
		{ "a@b.c @\n", ":1: \"@\": what stands behind the @ is not" },
		{ "a@b.c x@d.\n", ":1: \"x@d.\": what stands behind the @" },
		{ "a@b.c x@-\xc3\xbc\n",
		    ":1: \"x@-\xc3\xbc\": a label of the domain begins" },
		{ "a@b.c \xc3\xbc@d\n", "\": the local part of the other" },
		{ "a@b.c \"x\"@d\n",
		    ":1: \"\"x\"@d\": the other address cannot be quoted" },
		{ "a@b.c \"x y\"@d # z\n",
		    ":1: \"\"x y\"@d\": the other address cannot be quoted" },
		{ "a@b.c \"x y@d\n", ":1: a quote is not closed" },
		{ "a@b.c x..y@d\n", ":1: \"x..y@d\": the local part of the" },
		{ "a@b.c <x@d>\n",
		    ":1: \"<x@d>\": write the address without < and >" },
		{ "b.c x@d\n", ":1: \"b.c\" is not user@domain or @domain" },
		{ "@a.b c@d\n@A.B e@f\n", ":2: \"@a.b\" is already in line 1" },
	};
	struct sender_map *map = NULL;
	struct buf error = { 0 };
	size_t i;

	for (i = 0; i < ARRAY_LEN(rows); i++) {
		buf_reset(&error);
		cr_expect_eq(load(rows[i].text, &map, &error), -EINVAL, "%s",
		    rows[i].text);
		cr_expect_null(map);
		cr_expect_not_null(strstr(buf_str(&error), rows[i].why),
		    "%s: %s", rows[i].text, buf_str(&error));
	}
	buf_done(&error);
}
