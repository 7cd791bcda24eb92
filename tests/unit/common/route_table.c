/* Routing rules: reading them and looking up. */
#include "route/route.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/address.h"
#include "base/io.h"

static char dir[] = "/tmp/route_table.XXXXXX";
static const struct route_transport known[] = {
	{ .name = "smtp", .target = ROUTE_TO_HOST },
	{ .name = "lmtp", .target = ROUTE_TO_HOST, .sockets = true },
	{ .name = "local", .target = ROUTE_TO_ACCOUNT },
	{ .name = "virtual", .target = ROUTE_TO_MAILBOX },
	{ .name = "pipe", .target = ROUTE_TO_PROGRAM },
	{ .name = "discard", .target = ROUTE_TO_NOTHING },
	{ .name = "error", .target = ROUTE_TO_REASON },
	{ .name = NULL },
};

static void
setup(void)
{
	cr_assert_not_null(mkdtemp(dir));
	cr_assert_eq(chdir(dir), 0);
}

static void
teardown(void)
{
	(void)unlink("r");
	cr_assert_eq(chdir("/"), 0);
	cr_assert_eq(rmdir(dir), 0, "%s is not empty", dir);
}

TestSuite(route_table, .init = setup, .fini = teardown);

static int
load_bytes(
    const char *text, size_t len, struct route_table **ret, struct buf *error)
{
	int fd = open("r", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

	cr_assert_geq(fd, 0);
	cr_assert_eq(io_write_all(fd, text, len), 0);
	io_close(&fd);
	return route_load("r", known, ret, error);
}

static struct route_table *
load(const char *text)
{
	struct route_table *table = NULL;
	struct buf error = { 0 };

	cr_assert_eq(load_bytes(text, strlen(text), &table, &error), 0, "%s",
	    buf_str(&error));
	buf_done(&error);
	return table;
}

/* "TRANSPORT:NEXTHOP" as an attempt would use it; "-" for no rule,
 * "TRANSPORT:!" for no next hop. */
static void
expect_route(
    const struct route_table *table, const char *recipient, const char *want)
{
	char nexthop[ROUTE_NEXTHOP_MAX + 1];
	struct route route = { 0 };
	struct buf got = { 0 };
	const char *why;
	int r = route_lookup(table, recipient, false, &route);

	if (r == -ENOENT) {
		buf_add_str(&got, "-");
	} else {
		cr_assert_eq(r, 0);
		r = route_nexthop(&route, recipient, nexthop, &why);
		buf_printf(
		    &got, "%s:%s", route.transport, r == 0 ? nexthop : "!");
	}
	cr_expect_str_eq(buf_str(&got), want, "%s: \"%s\", not \"%s\"",
	    recipient, buf_str(&got), want);
	buf_done(&got);
}

Test(route_table, the_most_exact_rule_wins)
{
	struct route_table *table =
	    load("# comment\n"
		 "\n"
		 "*\t\tsmtp:relay.example:25   # everything else\r\n"
		 "example.com\tlocal\n"
		 ".example.com\tsmtp:Sub.Example\n"
		 ".deep.example.com smtp:[::1]:2525\n"
		 "Bob@Example.COM\tpipe:list\n"
		 "\"a b\"@example.com error:\"5.1.1 Gone  since May\"\n"
		 "[192.0.2.1] local:\n"
		 "socket.example lmtp:unix:/run/Mail/LMTP\n"
		 "b\xc3\xbc"
		 "cher.example local\n"
		 ".\xc3\x9c.example smtp:[\xc3\xbc.example]:26\n"
		 "a@xn--tda.example pipe:a\n"
		 "empty.example smtp:");
	static const struct {
		const char *recipient, *want;
	} rows[] = {
		{ "x@example.com", "local:x" },
		{ "X+y@EXAMPLE.com", "local:x" },
		{ "Bob@example.com", "pipe:list" },
		{ "bob@example.com", "local:bob" },
		{ "x@a.example.com", "smtp:sub.example" },
		{ "x@a.b.example.com", "smtp:sub.example" },
		{ "x@deep.example.com", "smtp:sub.example" },
		{ "x@a.deep.example.com", "smtp:[::1]:2525" },
		{ "x@A.Deep.Example.Com", "smtp:[::1]:2525" },
		{ "x@notexample.com", "smtp:relay.example:25" },
		{ "x@com", "smtp:relay.example:25" },
		{ "\"a b\"@example.com", "error:5.1.1 Gone  since May" },
		{ "x@[192.0.2.1]", "local:x" },
		{ "x@empty.example", "smtp:empty.example" },
		{ "x@socket.example", "lmtp:unix:/run/Mail/LMTP" },
		{ "x@b\xc3\xbc"
		  "cher.example",
		    "local:x" },
		{ "x@B\xc3\x9c"
		  "CHER.example.",
		    "local:x" },
		{ "x@XN--bcher-kva.example", "local:x" },
		{ "x@a.xn--tda.example", "smtp:[xn--tda.example]:26" },
		{ "x@\xc3\xbc.\xc3\xbc.example", "smtp:[xn--tda.example]:26" },
		{ "a@\xc3\x9c.example", "pipe:a" },
		{ "x@b\xfc"
		  "cher.example",
		    "smtp:relay.example:25" },
		{ "x@example.com.", "local:x" },
		{ "x@example.com..", "smtp:relay.example:25" },
		{ "x@\xc3\xbc.empty.example", "smtp:relay.example:25" },
		{ "root", "smtp:relay.example:25" },
		{ "x@", "smtp:relay.example:25" },
		{ "*", "smtp:relay.example:25" },
		{ "", "smtp:relay.example:25" },
		{ "a@b@example.com", "local:a@b" },
		{ "x@..", "smtp:relay.example:25" },
	};
	size_t i;

	for (i = 0; i < ARRAY_LEN(rows); i++)
		expect_route(table, rows[i].recipient, rows[i].want);
	route_free(&table);
	cr_expect_null(table);
	route_free(&table);
}

Test(route_table, without_a_star_there_may_be_no_rule)
{
	struct route_table *table = load("example.com local");

	expect_route(table, "x@example.org", "-");
	expect_route(table, "root", "-");
	expect_route(table, "x@example.com", "local:x");
	route_free(&table);
	table = load("");
	expect_route(table, "x@example.org", "-");
	route_free(&table);
}

Test(route_table, S10_very_long_recipients)
{
	struct route_table *table =
	    load("* discard:here\nexample.com smtp\nexample.org local");
	struct route route = { .transport = "smtp", .target = ROUTE_TO_HOST };
	char address[2 * ADDRESS_MAX], nexthop[ROUTE_NEXTHOP_MAX + 1];
	const char *why = NULL;

	memset(address, 'x', sizeof(address));
	memcpy(address + sizeof(address) - 13, "@example.com", 13);
	expect_route(table, address, "discard:here");
	expect_route(table, address + sizeof(address) - ADDRESS_MAX - 1,
	    "smtp:example.com");
	address[1] = '@';
	cr_expect_eq(route_nexthop(&route, address, nexthop, &why), 0,
	    "the last @ counts");
	memset(address, '.', sizeof(address) - 1);
	address[1] = '@';
	address[sizeof(address) - 1] = '\0';
	expect_route(table, address, "discard:here");
	cr_expect_eq(
	    route_nexthop(&route, address, nexthop, &why), -EDESTADDRREQ);
	cr_expect_not_null(why);
	route_free(&table);
}

/* mutation: common/route/target.c, mailbox_of() takes the whole local part, or
 * leaves its case or quotes. */
Test(route_table, X12_all_extensions_of_an_account_are_one_destination)
{
	struct route_table *table =
	    load("* local:elsewhere\nhosted.example virtual");
	static const struct {
		const char *recipient, *want;
	} rows[] = {
		{ "user@a.example", "local:user" },
		{ "user+1@a.example", "local:user" },
		{ "user+2+3@b.example", "local:user" },
		{ "USER+x@c.example", "local:user" },
		{ "user+", "local:user" },
		{ "user", "local:user" },
		{ "\"user\"@a.example", "local:user" },
		{ "\"us\\er+x y\"@a.example", "local:user" },
		{ "+1@a.example", "local:+1" },
		{ "u-1@a.example", "local:u-1" },
		{ "info+1@hosted.example", "virtual:info@hosted.example" },
		{ "INFO@Hosted.Example", "virtual:info@hosted.example" },
	};
	char address[ADDRESS_MAX + 1], nexthop[ROUTE_NEXTHOP_MAX + 1];
	struct route route;
	const char *why;
	size_t i;

	for (i = 0; i < ARRAY_LEN(rows); i++)
		expect_route(table, rows[i].recipient, rows[i].want);
	memset(address, 'x', ADDRESS_MAX);
	address[ADDRESS_MAX] = '\0';
	cr_assert_eq(route_lookup(table, address, false, &route), 0);
	cr_expect_eq(route_nexthop(&route, address, nexthop, &why), 0);
	cr_expect_eq(strlen(nexthop), (size_t)ROUTE_NEXTHOP_MAX);
	route_free(&table);
}

/* mutation: common/route/target.c, nexthop_of_recipient() gives the domain for
 * ROUTE_TO_HOST or ROUTE_TO_PROGRAM. */
Test(route_table, N18_a_domain_is_no_socket_port_or_program)
{
	struct route_table *table = load("* smtp\nprogram.example pipe\n"
					 "archive pipe\nbad.example error\n"
					 "nowhere.example discard");
	static const struct {
		const char *recipient, *want;
	} rows[] = {
		{ "x@mx.example.com", "smtp:mx.example.com" },
		{ "x@MX.example.com", "smtp:mx.example.com" },
		{ "x@127.0.0.1:9999", "smtp:!" },
		{ "x@[127.0.0.1]:9999", "smtp:!" },
		{ "x@[::1]:9", "smtp:!" },
		{ "x@unix:/path", "smtp:!" },
		{ "x@unix:/run/docker.sock", "smtp:!" },
		{ "x@[127.0.0.1]", "smtp:!" },
		{ "x@127.0.0.1", "smtp:!" },
		{ "x@::1", "smtp:!" },
		{ "x@host:25", "smtp:!" },
		{ "root", "smtp:!" },
		{ "x@program.example", "pipe:!" },
		{ "x@archive", "pipe:!" },
		{ "4.1.1@bad.example", "error:" },
		{ "x@Nowhere.example", "discard:nowhere.example" },
	};
	size_t i;

	for (i = 0; i < ARRAY_LEN(rows); i++)
		expect_route(table, rows[i].recipient, rows[i].want);
	route_free(&table);
}

Test(route_table, F4_wrong_files_name_the_line)
{
	static const struct {
		const char *text, *want;
	} rows[] = {
		{ "example.com", "r:1: not `key transport[:nexthop]`" },
		{ "\n\nexample.com smtp:a b",
		    "r:3: not `key transport[:nexthop]`" },
		{ "example.com # smtp", "r:1: not `key transport[:nexthop]`" },
		{ "example.com uucp:a",
		    "r:1: \"uucp\": there is no such transport" },
		{ "example.com SMTP",
		    "r:1: \"SMTP\": there is no such transport" },
		{ "example.com :host", "r:1: no transport" },
		{ "example.com smtp:h:99999",
		    "r:1: not a next hop: it must be domain, domain:port, "
		    "[host]:port or [address]:port" },
		{ "example.com smtp:-oProxy",
		    "r:1: not a next hop: it must be domain, domain:port, "
		    "[host]:port or [address]:port" },
		{ "example.com smtp:unix:run/x",
		    "r:1: not a next hop: it must be domain, domain:port, "
		    "[host]:port or [address]:port" },
		{ "example.com smtp:unix:/run/x",
		    "r:1: not a next hop: it must be domain, domain:port, "
		    "[host]:port or [address]:port" },
		{ "example.com lmtp:unix:run/x",
		    "r:1: not a next hop: it must be domain, domain:port, "
		    "[host]:port, [address]:port or unix:/path" },
		{ "example.com error:\"not closed",
		    "r:1: a quote is not closed" },
		{ "\"a b@example.com smtp", "r:1: a quote is not closed" },
		{ "@example.com smtp", "r:1: no user in front of the @" },
		{ "a@ smtp", "r:1: not a domain" },
		{ "a@b..c smtp", "r:1: not a domain" },
		{ "b\xfc"
		  "cher.example smtp",
		    "r:1: the domain is not valid "
		    "UTF-8" },
		{ "a@-\xc3\xbc.b smtp",
		    "r:1: a label of the domain begins or "
		    "ends with a hyphen" },
		{ "b\xc3\xbc.a local\nxn--b-eha.a smtp",
		    "r:2: \"xn--b-eha.a\" is already in line 1" },
		{ "example.com. smtp", "r:1: not a domain" },
		{ ". smtp", "r:1: not a domain" },
		{ "..a smtp", "r:1: not a domain" },
		{ "*.example.com smtp",
		    "r:1: not a domain: for all subdomains, write .DOMAIN" },
		{ "example.org: smtp",
		    "r:1: not a domain: remove the colon at its end" },
		{ "a/b smtp", "r:1: not a domain" },
		{ "a.b smtp\na.c smtp\nA.B local",
		    "r:3: \"a.b\" is already in line 1" },
		{ "* smtp\n* local", "r:2: \"*\" is already in line 1" },
		{ "\xef\xbb\xbf* smtp", "r:1: byte-order mark" },
		{ "* smtp\x01", "r:1: control character" },
	};
	struct buf error = { 0 };
	size_t i;

	for (i = 0; i < ARRAY_LEN(rows); i++) {
		struct route_table *table = NULL;

		buf_reset(&error);
		cr_expect_eq(load_bytes(rows[i].text, strlen(rows[i].text),
				 &table, &error),
		    -EINVAL, "%s", rows[i].text);
		cr_expect_str_eq(buf_str(&error), rows[i].want,
		    "\"%s\": \"%s\"", rows[i].text, buf_str(&error));
		cr_expect_null(table);
	}
	buf_done(&error);
}

Test(route_table, F4_nul_and_long_things)
{
	static char line[1000001];
	struct route_table *table = NULL;
	struct buf error = { 0 };

	cr_expect_eq(load_bytes("* sm\0tp\n", 8, &table, &error), -EINVAL);
	cr_expect_str_eq(buf_str(&error), "r:1: NUL");
	buf_reset(&error);
	memset(line, 'x', sizeof(line) - 1);
	cr_expect_eq(
	    load_bytes(line, sizeof(line) - 1, &table, &error), -EINVAL);
	cr_expect_str_eq(buf_str(&error), "r:1: line too long");
	buf_reset(&error);
	snprintf(line, sizeof(line), "%0256d smtp", 1);
	cr_expect_eq(load_bytes(line, strlen(line), &table, &error), -EINVAL);
	cr_expect_str_eq(buf_str(&error), "r:1: not a domain");
	buf_reset(&error);
	snprintf(line, sizeof(line), "%0600d@a smtp", 1);
	cr_expect_eq(load_bytes(line, strlen(line), &table, &error), -EINVAL);
	cr_expect_str_eq(buf_str(&error), "r:1: the address is too long");
	buf_reset(&error);
	snprintf(line, sizeof(line), "a smtp:%0256d", 1);
	cr_expect_eq(load_bytes(line, strlen(line), &table, &error), -EINVAL);
	cr_expect_str_eq(buf_str(&error), "r:1: the next hop is too long");
	buf_done(&error);
}

/* mutation: common/route/route.c, load() gives parse_file() or sort_rules()
 * NULL for wrong. */
Test(route_table, each_wrong_line_is_judged)
{
	struct route_table *table = NULL;
	struct buf error = { 0 };
	const char *text = "a nosuch\n"
			   "b local\n"
			   "\001\n"
			   "c smtp:h:99999 x\n"
			   "b smtp\n"
			   "d \"smtp\n";

	cr_expect_eq(load_bytes(text, strlen(text), &table, &error), -EINVAL);
	cr_expect_str_eq(
	    buf_str(&error), "r:1: \"nosuch\": there is no such transport");
	buf_reset(&error);
	cr_expect_eq(route_judge("r", known, &error), -EINVAL);
	cr_expect_str_eq(buf_str(&error),
	    "r:1: \"nosuch\": there is no such transport\n"
	    "r:3: control character\n"
	    "r:4: not `key transport[:nexthop]`\n"
	    "r:5: \"b\" is already in line 2\n"
	    "r:6: a quote is not closed");
	buf_reset(&error);
	cr_expect_eq(load_bytes("b local\n", 8, &table, &error), 0);
	cr_expect_eq(route_judge("r", known, &error), 0);
	cr_expect_eq(route_judge("absent", known, &error), -ENOENT);
	cr_expect_str_eq(buf_str(&error), "absent: No such file or directory");
	route_free(&table);
	buf_done(&error);
}

Test(route_table, F1_what_is_no_routing_file)
{
	struct route_table *table = NULL;
	struct buf error = { 0 };

	cr_expect_eq(route_load("absent", known, &table, &error), -ENOENT);
	cr_expect_str_eq(buf_str(&error), "absent: No such file or directory");
	buf_reset(&error);
	cr_expect_eq(route_load(".", known, &table, &error), -EISDIR);
	cr_expect_str_eq(buf_str(&error), ".: is a directory");
	buf_reset(&error);
	cr_assert_eq(mkfifo("r", 0600), 0);
	cr_expect_eq(route_load("r", known, &table, &error), -EINVAL);
	cr_expect_str_eq(buf_str(&error), "r: is not a regular file");
	buf_done(&error);
	cr_expect_null(table);
}

Test(route_table, a_hundred_thousand_rules)
{
	const uint32_t n = 100000;
	struct route_table *table;
	struct buf text = { 0 };
	char address[64], want[64];
	uint32_t i;

	for (i = 0; i < n; i++)
		cr_assert_eq(buf_printf(&text, "%sd%u.example smtp:h%u\n",
				 i % 3 == 0 ? "." : "", i * 7919 % n, i),
		    0);
	table = load(buf_str(&text));
	for (i = 0; i < n; i++) {
		snprintf(address, sizeof(address), "u@%sd%u.example",
		    i % 3 == 0 ? "sub." : "", i * 7919 % n);
		snprintf(want, sizeof(want), "smtp:h%u", i);
		expect_route(table, address, want);
	}
	route_free(&table);
	buf_done(&text);
}
