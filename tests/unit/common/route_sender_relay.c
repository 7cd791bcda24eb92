#include "route/sender_relay.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/address.h"
#include "base/io.h"

static char path[] = "/tmp/qsched-sender-relay-XXXXXX";

static void
put(const char *text)
{
	int fd;

	memcpy(path + sizeof(path) - 7, "XXXXXX", 7);
	fd = mkstemp(path);
	cr_assert_geq(fd, 0);
	cr_assert_eq(io_write_all(fd, text, strlen(text)), 0);
	io_close(&fd);
}

static int
load(const char *text, struct sender_map **ret, struct buf *error)
{
	int r;

	put(text);
	r = sender_map_load(path, &sender_relay_kind, ret, error);
	unlink(path);
	return r;
}

/* mutation: common/route/sender_relay.c, sender_map_find() without the
 * domain, or with the domain first. */
Test(sender_relay, F16_the_row_of_a_sender)
{
	static const char text[] =
	    "# relays\n"
	    "Ann@One.example   [relay.one]:587 # of Ann\n"
	    "@one.example\trelay.two\n"
	    "\"a b\"@one.example relay.three:26\n"
	    "\n"
	    "@b\xc3\xbc"
	    "cher.example [b\xc3\xbc.example]\n"
	    "bob+x@two.example relay.four\r\n"
	    "bob@two.example DUNNO\n"
	    "J\xc3\xbcrg@two.example relay.five";
	static const struct {
		const char *sender, *nexthop; /* NULL: none */
		uint32_t line;                /* 0: no row */
	} rows[] = {
		{ "ann@one.example", "[relay.one]:587", 2 },
		{ "ANN@ONE.example.", "[relay.one]:587", 2 },
		{ "ann+list@one.example", "[relay.one]:587", 2 },
		{ "eve@one.example", "relay.two", 3 },
		{ "\"a b\"@one.example", "relay.three:26", 4 },
		{ "x@B\xc3\x9c"
		  "CHER.example",
		    "[xn--b-eha.example]", 6 },
		{ "x@xn--bcher-kva.example", "[xn--b-eha.example]", 6 },
		{ "bob+x@two.example", "relay.four", 7 },
		{ "bob+y@two.example", NULL, 8 },
		{ "bob@two.example", NULL, 8 },
		{ "j\xc3\xbcrg@two.example", "relay.five", 9 },
		{ "list-@one.example-@[]", "relay.two", 3 }, /* VERP */
		{ "ann+@one.example-@[]", "[relay.one]:587", 2 },
		{ "x@one.example@[]", NULL, 0 },
		{ "eve@two.example", NULL, 0 },
		{ "ann@a.one.example", NULL, 0 },
		{ "ann", NULL, 0 },
		{ "one.example", NULL, 0 },
		{ "@", NULL, 0 },
		{ "", NULL, 0 },
	};
	struct sender_map *t = NULL;
	struct buf error = { 0 };
	size_t i;

	cr_assert_eq(load(text, &t, &error), 0, "%s", buf_str(&error));
	for (i = 0; i < ARRAY_LEN(rows); i++) {
		struct sender_row relay = { 0 };
		const char *want =
		    rows[i].nexthop == NULL ? "-" : rows[i].nexthop;

		cr_expect_eq(sender_map_find(t, rows[i].sender, &relay),
		    rows[i].line > 0, "%s", rows[i].sender);
		cr_expect_eq(relay.line, rows[i].line, "%s", rows[i].sender);
		cr_expect_str_eq(relay.value == NULL ? "-" : relay.value, want);
	}
	cr_expect_eq(sender_map_find(t, NULL, NULL), 0);
	cr_expect_eq(sender_map_find(NULL, "ann@one.example", NULL), 0);
	sender_map_free(&t);
	cr_expect_null(t);
	sender_map_free(&t);
	buf_done(&error);
}

Test(sender_relay, very_long_senders)
{
	struct sender_map *t = NULL;
	struct sender_row relay;
	struct buf error = { 0 };
	char sender[2 * ADDRESS_MAX];

	cr_assert_eq(load("@one.example relay", &t, &error), 0);
	memset(sender, 'x', sizeof(sender));
	memcpy(sender + sizeof(sender) - 13, "@one.example", 13);
	cr_expect_eq(sender_map_find(t, sender, &relay), 0);
	cr_expect_eq(sender_map_find(
			 t, sender + sizeof(sender) - ADDRESS_MAX - 1, &relay),
	    1);
	sender_map_free(&t);
}

Test(sender_relay, F17_wrong_lines_are_told)
{
	static const struct {
		const char *text, *why;
	} rows[] = {
		{ "root relay\n",
		    ":1: \"root\" is not user@domain or @domain; add the "
		    "domain" },
		{ "r\xff relay\n", ":1: \"r?\" is not user@domain or @" },
		{ "<a@b.c> relay\n",
		    ":1: \"<a@b.c>\": write the address without < and >" },
		{ "@ relay\n", ":1: \"@\": what stands behind the @ is not" },
		{ "a@b..c relay\n", ":1: \"a@b..c\": what stands behind" },
		{ "a@b. relay\n", ":1: \"a@b.\": what stands behind the" },
		{ "@b\xff.c relay\n",
		    ":1: \"@b?.c\": the domain is not valid UTF-8" },
		{ "@one.example\n", ":1: not `user@domain nexthop` or `@dom" },
		{ "@one.example a b\n", ":1: not `user@domain nexthop` or" },
		{ "\"a @one.example a\n", ":1: a quote is not closed" },
		{ "@one.example smtp:[a]:2\n",
		    ":1: \"smtp:[a]:2\" is not a next hop; leave out "
		    "\"smtp:\"" },
		{ "@one.example unix:/a\n",
		    ":1: \"unix:/a\" is not a next hop: it must be domain, "
		    "domain:port, [host]:port or [address]:port" },
		{ "@one.example a:0\n", ":1: \"a:0\" is not a next hop: it" },
		{ "@one.example -\xc3\xbc\n", "\" is not a next hop: it m" },
		{ "@a.b c\n\n@A.B d\n", ":3: \"@a.b\" is already in line 1" },
		{ "@b\xc3\xbc.x c\n@xn--b-eha.x d\n",
		    ":2: \"@xn--b-eha.x\" is already in line 1" },
		{ "\xff@b.x c\n\xff@b.x d\n",
		    ":2: \"?@b.x\" is already in line 1" },
	};
	struct sender_map *t = NULL;
	struct buf error = { 0 };
	size_t i;

	for (i = 0; i < ARRAY_LEN(rows); i++) {
		buf_reset(&error);
		cr_expect_eq(load(rows[i].text, &t, &error), -EINVAL, "%s",
		    rows[i].text);
		cr_expect_null(t);
		cr_expect_not_null(strstr(buf_str(&error), rows[i].why),
		    "%s: %s", rows[i].text, buf_str(&error));
	}
	buf_reset(&error);
	put("@a.b c\nx y\n@c.d\n@e.f g\n");
	cr_expect_eq(
	    sender_map_judge(path, &sender_relay_kind, &error), -EINVAL);
	cr_expect_not_null(strstr(buf_str(&error), ":2: \"x\" is"));
	cr_expect_not_null(strstr(buf_str(&error), ":3: not `user"));
	unlink(path);
	buf_reset(&error);
	cr_expect_eq(
	    sender_map_load(path, &sender_relay_kind, &t, &error), -ENOENT);
	cr_expect_not_null(strstr(buf_str(&error), path));
	buf_done(&error);
}
