/* What recipients get that no rule fits. */
#include "route/route.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/address.h"
#include "base/io.h"

static const struct route_transport known[] = {
	{ .name = "smtp", .target = ROUTE_TO_HOST },
	{ .name = "local", .target = ROUTE_TO_ACCOUNT },
	{ .name = "error", .target = ROUTE_TO_REASON },
	{ .name = NULL },
};

static struct route_table *
table_of(const char *rules, const char *own, const char *relayhost)
{
	char path[] = "/tmp/route_defaults.XXXXXX";
	struct route_table *table = NULL;
	struct buf error = { 0 };
	int fd;

	if (rules == NULL) {
		table = route_empty();
	} else {
		fd = mkstemp(path);
		cr_assert_geq(fd, 0);
		cr_assert_eq(io_write_all(fd, rules, strlen(rules)), 0);
		io_close(&fd);
		cr_assert_eq(route_load(path, known, &table, &error), 0, "%s",
		    buf_str(&error));
		(void)unlink(path);
	}
	cr_assert_not_null(table);
	cr_assert_eq(route_set_defaults(table, own, relayhost, known), 0);
	buf_done(&error);
	return table;
}

static void
expect_route(
    const struct route_table *table, const char *recipient, const char *want)
{
	char nexthop[ROUTE_NEXTHOP_MAX + 1] = "", got[600] = "-";
	struct route route;
	const char *why;

	if (route_lookup(table, recipient, false, &route) == 0) {
		cr_assert_eq(
		    route_nexthop(&route, recipient, nexthop, &why), 0);
		snprintf(got, sizeof(got), "%s:%s", route.transport, nexthop);
	}
	cr_expect_str_eq(
	    got, want, "%s: \"%s\", not \"%s\"", recipient, got, want);
}

#define HOST  "host.example localhost"
#define RULES "far.example smtp:mx.far.example\n.host.example error:no\n"

/* mutation: common/route/route.c, find_default() gives the local route always,
 * or is_own() compares less than the whole domain. */
Test(route_defaults, own_domains_then_the_relayhost_then_nothing)
{
	static const struct {
		const char *rules, *own, *relayhost, *recipient, *want;
	} rows[] = {
		{ NULL, HOST, "", "x@host.example", "local:x" },
		{ NULL, HOST, "", "x@HOST.Example", "local:x" },
		{ NULL, "Host.EXAMPLE", "", "x@host.example", "local:x" },
		{ NULL, HOST, "", "x@localhost", "local:x" },
		{ NULL, HOST, "", "x", "local:x" },
		{ NULL, HOST, "", "x@", "local:x" },
		{ NULL, HOST, "", "x@gmail.com", "-" },
		{ NULL, HOST, "", "x@host.exampl", "-" },
		{ NULL, HOST, "", "x@ost.example", "-" },
		{ NULL, HOST, "", "x@host.example.", "local:x" },
		{ NULL, HOST, "", "x@host.example..", "-" },
		{ NULL, HOST, "", "x@a.host.example", "-" },
		{ NULL, HOST, "", "x@example", "-" },
		{ NULL, HOST, "", "x@host.example localhost", "-" },
		{ NULL, HOST, "", "*@gmail.com", "-" },
		{ NULL, HOST, "", "x@*", "-" },
		{ NULL, HOST, "Relay.Example:26", "x@gmail.com",
		    "smtp:relay.example:26" },
		{ NULL, HOST, "unix:/Run/x", "x@gmail.com",
		    "smtp:unix:/Run/x" },
		{ NULL, HOST, "r.example", "x@host.example", "local:x" },
		{ NULL, HOST, "r.example", "x", "local:x" },
		{ NULL, "*", "r.example", "x@gmail.com", "local:x" },
		{ NULL, "a.example *", "", "x@gmail.com", "local:x" },
		{ NULL, "", "", "x@host.example", "-" },
		{ NULL, "", "", "x", "local:x" },
		{ NULL, "[192.0.2.1] a", "", "x@[192.0.2.1]", "local:x" },
		/* A file that a full disk cut. */
		{ "", HOST, "", "x@gmail.com", "-" },
		{ "", HOST, "", "x@host.example", "local:x" },
		{ "# nothing\n", HOST, "r.example", "x@gmail.com",
		    "smtp:r.example" },
		/* Rules come first. */
		{ RULES, HOST, "", "x@far.example", "smtp:mx.far.example" },
		{ RULES, HOST, "", "x@a.host.example", "error:no" },
		{ RULES, "a.host.example", "", "x@a.host.example", "error:no" },
		{ RULES, HOST, "", "x@host.example", "local:x" },
		{ RULES, HOST, "", "x@gmail.com", "-" },
		{ RULES, HOST, "r.example", "x@gmail.com", "smtp:r.example" },
		{ "host.example error:no", HOST, "", "x@host.example",
		    "error:no" },
		{ "* smtp:all.example", HOST, "r.example", "x@host.example",
		    "smtp:all.example" },
		{ "* smtp:all.example", HOST, "r.example", "x",
		    "smtp:all.example" },
	};
	struct route_table *table;
	size_t i;

	for (i = 0; i < ARRAY_LEN(rows); i++) {
		table = table_of(rows[i].rules, rows[i].own, rows[i].relayhost);
		expect_route(table, rows[i].recipient, rows[i].want);
		route_free(&table);
	}
}

Test(route_defaults, S10_long_recipients)
{
	struct route_table *table = table_of(NULL, "b", "r.example");
	char address[2 * ADDRESS_MAX];
	struct route route;

	memset(address, 'a', sizeof(address));
	memcpy(address + sizeof(address) - 3, "@b", 3);
	cr_assert_eq(route_lookup(table, address, false, &route), 0);
	cr_expect_str_eq(route.transport, "local");
	address[sizeof(address) - 2] = 'c';
	cr_assert_eq(route_lookup(table, address, false, &route), 0);
	cr_expect_str_eq(route.transport, "smtp");
	route_free(&table);
}

Test(route_defaults, they_outlive_their_texts_and_can_change)
{
	struct route_table *table = route_empty();
	char own[] = "a.example", relayhost[] = "r.example";

	cr_assert_not_null(table);
	expect_route(table, "x@a.example", "-");
	expect_route(table, "x", "-");
	cr_assert_eq(route_set_defaults(table, own, relayhost, known), 0);
	memset(own, 'z', sizeof(own) - 1);
	memset(relayhost, 'z', sizeof(relayhost) - 1);
	expect_route(table, "x@a.example", "local:x");
	expect_route(table, "x@b.example", "smtp:r.example");
	cr_assert_eq(route_set_defaults(table, "b.example", "", known), 0);
	expect_route(table, "x@a.example", "-");
	expect_route(table, "x@b.example", "local:x");
	route_free(&table);
}

/* queue-send defers mail for a transport that is not there. */
Test(route_defaults, the_transports_may_be_absent)
{
	static const struct route_transport none[] = { { .name = NULL } };
	struct route_table *table = route_empty();
	struct route route;

	cr_assert_not_null(table);
	cr_assert_eq(route_set_defaults(table, "a", "r.example", none), 0);
	cr_assert_eq(route_lookup(table, "x@a", false, &route), 0);
	cr_expect_str_eq(route.transport, "local");
	cr_assert_eq(route_lookup(table, "x@b", false, &route), 0);
	cr_expect_str_eq(route.transport, "smtp");
	route_free(&table);
}
