/* Which recipients have an alias, by the table of docs/ALIASES.md. */
#include "route/route.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/address.h"
#include "base/domain.h"
#include "base/io.h"
#include "idn_seam.h"
#include "route/alias.h"
#include "route/sender_relay.h"

static struct route_transport known[] = {
	{ .name = "smtp", .target = ROUTE_TO_HOST },
	{ .name = "local", .target = ROUTE_TO_ACCOUNT },
	{ .name = "pipe", .target = ROUTE_TO_PROGRAM },
	{ .name = "alias", .target = ROUTE_TO_ALIAS },
	{ .name = NULL },
};

/* The path of a file with this text. */
static char *
file_of(const char *text)
{
	char *path = strdup("/tmp/route_aliased.XXXXXX");
	int fd = mkstemp(path);

	cr_assert_geq(fd, 0);
	cr_assert_eq(io_write_all(fd, text, strlen(text)), 0);
	io_close(&fd);
	return path;
}

#define RULES                                                      \
	"far.example smtp:mx.far.example\nvirtual.example local\n" \
	"piped.example pipe:program\nbob@host.example smtp:mx.bob.example\n"

static struct route_table *
table_of(const char *aliases, bool administered)
{
	struct alias_table *names = NULL;
	struct route_table *table = NULL;
	struct buf error = { 0 };
	char *path = file_of(RULES);

	cr_assert_eq(
	    route_load(path, known, &table, &error), 0, "%s", buf_str(&error));
	(void)unlink(path);
	free(path);
	cr_assert_eq(route_set_defaults(table, "host.example", "", known), 0);
	path = file_of(aliases);
	cr_assert_eq(
	    alias_load(path, &names, &error), 0, "%s", buf_str(&error));
	(void)unlink(path);
	free(path);
	route_set_aliases(table, &names, administered, known);
	cr_expect_null(names);
	buf_done(&error);
	return table;
}

static void
expect_route(const struct route_table *table, const char *recipient,
    bool expanded, const char *want)
{
	char nexthop[ROUTE_NEXTHOP_MAX + 1] = "", got[600] = "-";
	struct route route;
	const char *why;

	if (route_lookup(table, recipient, expanded, &route) == 0) {
		cr_assert_eq(
		    route_nexthop(&route, recipient, nexthop, &why), 0);
		snprintf(got, sizeof(got), "%s:%s", route.transport, nexthop);
	}
	cr_expect_str_eq(
	    got, want, "%s: \"%s\", not \"%s\"", recipient, got, want);
}

#define ALIASES                                                            \
	"alice: x\nalice+l: x\nalice@far.example: x\nBob: x\n\"a b\": x\n" \
	"@far.example: x\n@host.example: x\n@unknown.example: x\n"         \
	"@piped.example: x\n@virtual.example: x\nroot@far.example: x\n"    \
	"@B\xc3\x9c.example: x\nbob@b\xc3\xbc.example: x\n"

/* mutation: common/route/route.c, key_of(): the domain before the account, or
 * also for accounts. */
Test(route_aliased, F10_the_first_that_is_there)
{
	static const struct {
		const char *recipient, *want, *expanded;
	} rows[] = {
		{ "alice", "alias:alice", "local:alice" },
		{ "Alice@HOST.example", "alias:alice", "local:alice" },
		{ "alice+l@host.example", "alias:alice+l", "local:alice" },
		{ "alice+m@host.example", "alias:alice", "local:alice" },
		{ "\"a b\"@host.example", "alias:a b", "local:a b" },
		{ "alice@virtual.example", "alias:alice", "local:alice" },
		{ "alice@far.example", "alias:alice@far.example",
		    "smtp:mx.far.example" },
		{ "alice+m@far.example", "alias:alice@far.example",
		    "smtp:mx.far.example" },
		{ "carol@Far.example", "alias:@far.example",
		    "smtp:mx.far.example" },
		{ "carol@unknown.example", "alias:@unknown.example", "-" },
		{ "carol@other.example", "-", "-" },
		{ "carol@b\xc3\xbc.example", "alias:@xn--b-eha.example", "-" },
		{ "bob@XN--B-eha.example.", "alias:bob@xn--b-eha.example",
		    "-" },
		{ "carol@far.example.", "alias:@far.example",
		    "smtp:mx.far.example" },
		{ "alice@piped.example", "alias:@piped.example",
		    "pipe:program" },
		{ "carol@host.example", "local:carol", "local:carol" },
		{ "bob@host.example", "alias:@host.example",
		    "smtp:mx.bob.example" },
		{ "root@host.example", "local:root", "local:root" },
		{ "root@far.example", "alias:root@far.example",
		    "smtp:mx.far.example" },
	};
	struct route_table *table = table_of(ALIASES, false);
	size_t i;

	for (i = 0; i < ARRAY_LEN(rows); i++) {
		expect_route(table, rows[i].recipient, false, rows[i].want);
		expect_route(table, rows[i].recipient, true, rows[i].expanded);
	}
	route_free(&table);
}

/* The mail waits until its alias can be found. Conversions are of the domains
 * of the recipient, of the sender, and of the recipient. */
Test(route_aliased, no_memory_is_no_other_route)
{
	struct route_table *table = table_of(ALIASES, false);
	char *path = file_of("@s\xc3\xbc.example [mx.relay.example]\n");
	struct sender_map *senders = NULL;
	struct buf error = { 0 };
	struct route route;
	unsigned n;

	cr_assert_eq(
	    sender_map_load(path, &sender_relay_kind, &senders, &error), 0);
	route_set_sender_relays(table, &senders);
	for (n = 1; n <= 4; n++) {
		(void)domain_is_same("\xc3\xa4", ""); /* the last one */
		idn_seam_conversions = 0;
		idn_seam_fail_at = n;
		cr_expect_eq(route_lookup_from(table, "u@s\xc3\xbc.example",
				 "bob@b\xc3\xbc.example", false, &route),
		    n < 4 ? -ENOMEM : 0, "%u", n);
		idn_seam_fail_at = 0;
	}
	cr_expect_eq(idn_seam_conversions, 3);
	cr_expect_str_eq(route.nexthop, "bob@xn--b-eha.example");
	route_free(&table);
	(void)unlink(path);
	free(path);
	buf_done(&error);
}

Test(route_aliased, the_administrator_has_one_in_any_case)
{
	static const struct {
		const char *recipient, *want;
	} rows[] = {
		{ "root", "alias:root" },
		{ "Root@host.example", "alias:root" },
		{ "root+cron@host.example", "alias:root" },
		{ "postmaster@host.example", "alias:postmaster" },
		{ "MAILER-DAEMON@host.example", "alias:mailer-daemon" },
		{ "postmaster@far.example", "smtp:mx.far.example" },
		{ "rooted@host.example", "local:rooted" },
		{ "roo@host.example", "local:roo" },
	};
	struct route_table *table = table_of("hostmaster: x\n", true);
	size_t i;

	for (i = 0; i < ARRAY_LEN(rows); i++)
		expect_route(table, rows[i].recipient, false, rows[i].want);
	expect_route(table, "root@host.example", true, "local:root");
	route_free(&table);
}

/* mutation: common/route/aliased.c, key_of_expanded() without
 * alias_refuses(). */
Test(route_aliased, F10_a_member_of_an_expansion_that_refuses_mail)
{
	struct route_table *table =
	    table_of("carol: :fail: left\ndave: x, :fail: 5.1.6 moved\nbob: x\n"
		     "eve: two words, :fail: x\n@far.example: :fail: closed\n",
		true);

	expect_route(table, "Carol@host.example", true, "alias:carol");
	expect_route(table, "carol+x@host.example", true, "alias:carol");
	expect_route(table, "dave@host.example", true, "alias:dave");
	expect_route(table, "any@far.example", true, "alias:@far.example");
	expect_route(table, "bob@host.example", true, "smtp:mx.bob.example");
	expect_route(table, "eve@host.example", true, "local:eve");
	expect_route(table, "root@host.example", true, "local:root");
	route_free(&table);
}

/* mutation: common/route/route.c, is_instruction() is always true or false. */
Test(route_aliased, instructions_of_an_expansion)
{
	static const char program[] = "|/bin/Program -x \"a b\"";
	static const char inside[] = ":include:/l/a:|/bin/p";
	struct route_table *table = table_of("a: x\n", false);
	char address[ADDRESS_MAX + 1], cut[ROUTE_NEXTHOP_MAX + 8] = "alias:";

	expect_route(table, program, true, "alias:|/bin/Program -x \"a b\"");
	expect_route(table, inside, true, "alias::include:/l/a:|/bin/p");
	expect_route(table, program, false, "local:|/bin/program -x \"a b\"");
	expect_route(table, inside, false, "local::include:/l/a:|/bin/p");
	memset(address, 'c', sizeof(address) - 1);
	address[0] = '|';
	address[ADDRESS_MAX] = '\0';
	memcpy(cut + strlen(cut), address, ROUTE_NEXTHOP_MAX);
	expect_route(table, address, true, cut);
	route_free(&table);
}

/* Mailboxes of domains of their own are no accounts of this host. */
Test(route_aliased, accounts_are_of_own_domains)
{
	struct route_table *table;

	known[1].target = ROUTE_TO_MAILBOX;
	table = table_of(ALIASES, true);
	expect_route(table, "alice@host.example", false, "alias:alice");
	expect_route(table, "alice@HOST.example", false, "alias:alice");
	expect_route(table, "alice@virtual.example", false,
	    "local:alice@virtual.example");
	expect_route(
	    table, "root@virtual.example", false, "local:root@virtual.example");
	expect_route(table, "root@host.example", false, "alias:root");
	route_free(&table);
}

Test(route_aliased, no_aliases_no_change)
{
	struct alias_table *none = NULL;
	struct route_table *table = route_empty();

	cr_assert_eq(route_set_defaults(table, "host.example", "", known), 0);
	expect_route(table, "alice", false, "local:alice");
	expect_route(table, "|x", true, "local:|x");
	route_set_aliases(table, &none, false, known);
	expect_route(table, "alice", false, "local:alice");
	expect_route(table, "|x", true, "alias:|x");
	route_set_aliases(table, &none, true, known);
	expect_route(table, "root", false, "alias:root");
	/* Without a transport of this kind there are none. */
	route_set_aliases(table, &none, true, known + 4);
	expect_route(table, "root", false, "local:root");
	expect_route(table, "|x", true, "local:|x");
	route_free(&table);
}

/* The configuration that named it is freed by a reload, which keeps the table
 * when the file of routing is wrong, and for the threads that use it.
 * mutation: common/route/aliased.c: the name is not copied. */
Test(route_aliased, D42_the_table_lives_longer_than_the_transports)
{
	char name[] = "alias";
	const struct route_transport own[] = {
		{ .name = name, .target = ROUTE_TO_ALIAS }, { .name = NULL }
	};
	struct route_table *table = route_empty();
	struct alias_table *none = NULL;

	cr_assert_eq(route_set_defaults(table, "host.example", "", known), 0);
	cr_assert_eq(route_set_aliases(table, &none, true, own), 0);
	memset(name, 'x', sizeof(name) - 1);
	expect_route(table, "root", false, "alias:root");
	route_free(&table);
}

/* A rule that names the transport of aliases is wrong. */
Test(route_aliased, no_rule_leads_there)
{
	struct route_table *table = NULL;
	struct buf error = { 0 };
	char *path = file_of("a.example alias:root\n");

	cr_expect_lt(route_load(path, known, &table, &error), 0);
	cr_expect_not_null(strstr(
	    buf_str(&error), ":1: mail goes there by the alias file alone"));
	(void)unlink(path);
	free(path);
	buf_done(&error);
}
