/* The reader of alias files, and lookups in the table. */
#include "alias_scratch.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/address.h"
#include "route/alias.h"

TestSuite(
    route_alias, .init = alias_scratch_enter, .fini = alias_scratch_leave);

static int
try(const void *text, size_t len, struct alias_table **ret, struct buf *error)
{
	alias_scratch_write(text, len);
	return alias_load("a", ret, error);
}

static struct alias_table *
load(const char *text)
{
	struct alias_table *table = NULL;
	struct buf error = { 0 };

	cr_assert_eq(try(text, strlen(text), &table, &error), 0, "\"%s\": %s",
	    text, buf_str(&error));
	buf_done(&error);
	return table;
}

static void
add_member(struct buf *out, const struct alias_member *member)
{
	static const char *const prefix[] = {
		[ALIAS_ADDRESS] = "<",
		[ALIAS_PROGRAM] = "<|",
		[ALIAS_INCLUDE] = "<:include:",
		[ALIAS_NOTHING] = "<nothing ",
		[ALIAS_FILE] = "<file ",
		[ALIAS_REFUSAL] = "<refusal ",
	};

	buf_add_str(out, prefix[member->kind]);
	buf_add_str(out, member->text);
	buf_add_str(out, ">");
}

/* Each alias as `key=<member><member>;`. */
static void
show(const struct alias_table *table, struct buf *out)
{
	const struct alias *alias;
	size_t i, k;

	for (i = 0; (alias = alias_at(table, i)) != NULL; i++) {
		buf_printf(out, "%s=", alias->key);
		for (k = 0; k < alias->nmembers; k++)
			add_member(out, &alias->members[k]);
		buf_add_str(out, ";");
	}
}

Test(route_alias, files_that_are_right)
{
	static const struct {
		const char *text, *want;
	} cases[] = {
		{ "", "" },
		{ "# nothing\n\n \t\n  # nothing\n", "" },
		{ "root: alice", "root=<alice>;" },
		{ "root:alice\r\nbob : carol\r\n",
		    "root=<alice>;bob=<carol>;" },
		{ "Root: Alice@Example.ORG\n", "root=<Alice@Example.ORG>;" },
		{ "a: b, c,d ,\n", "a=<b><c><d>;" },
		{ "a:\n b\n\tc,\n# between\n\n d\ne: f\n",
		    "a=<b><c><d>;e=<f>;" },
		{ "a: |/bin/true\n", "a=<|/bin/true>;" },
		{ "a: \"|/bin/sh -c 'x, \\\"y\\\" \\\\z'\", b\n",
		    "a=<|/bin/sh -c 'x, \"y\" \\z'><b>;" },
		{ "a: |\"/bin/echo a, b\"\n", "a=<|/bin/echo a, b>;" },
		{ "a: \"| /bin/true\"\n", "a=<|/bin/true>;" },
		{ "a: |\" /bin/true\"\n", "a=<|/bin/true>;" },
		{ "a: :include:/l/i-s.t, :INCLUDE: /m\n",
		    "a=<:include:/l/i-s.t><:include:/m>;" },
		{ "a: \":include:/a b,c\"\n", "a=<:include:/a b,c>;" },
		{ "a: /dev/null\n", "a=<nothing /dev/null>;" },
		{ "a: \"/dev/null\"\n", "a=<nothing /dev/null>;" },
		{ "\"a b\": \"c d\"\n", "a b=<\"c d\">;" },
		{ "\"a:b\"@X.org: c\n", "a:b@x.org=<c>;" },
		{ "\"Q\\\"u\\\\\": \"c \\\"d\\\\\"@e\n",
		    "q\"u\\=<\"c \\\"d\\\\\"@e>;" },
		{ "a: \"b\", \"c@d\", \"c d@e\"\n", "a=<b><c@d><\"c d\"@e>;" },
		{ "eric: \\eric, x\n", "eric=<eric><x>;" },
		{ "a@Example.org: b\n@EXAMPLE.com: c\n",
		    "a@example.org=<b>;@example.com=<c>;" },
		{ "a@[IPv6:2001:db8::1]: b@[192.0.2.1]\n",
		    "a@[ipv6:2001:db8::1]=<b@[192.0.2.1]>;" },
		{ "\"a@[IPv6:::1]\": b\n", "a@[ipv6:::1]=<b>;" },
		{ "a: b@[IPv6:::1]\n", "a=<b@[IPv6:::1]>;" },
		{ "a+b: c+d@e\n", "a+b=<c+d@e>;" },
		{ "j\xc3\xbcrg: j\xfcrg@\xc3\xbc.de\n",
		    "j\xc3\xbcrg=<j\xfcrg@\xc3\xbc.de>;" },
		{ "owner-l: a!b%c/d=e\n", "owner-l=<a!b%c/d=e>;" },
		/* As the MTAs that people come from read them. */
		{ "list: |/usr/bin/prog arg1 arg2\n",
		    "list=<|/usr/bin/prog arg1 arg2>;" },
		{ "l: |/bin/sh -c 'a b' \"c, d\", e\n",
		    "l=<|/bin/sh -c 'a b' \"c, d\"><e>;" },
		{ "root: admin # the boss, and \"more\n", "root=<admin>;" },
		{ "a: b, # c\n d#e, \"f #g\"\n", "a=<b><d#e><\"f #g\">;" },
		{ "team: a@x.example,\nb@x.example\nz: y,\n",
		    "team=<a@x.example><b@x.example>;z=<y>;" },
		{ "nobody: /dev/null\nlog: /var/log/mail.txt\n",
		    "nobody=<nothing /dev/null>;"
		    "log=<file /var/log/mail.txt>;" },
		{ "dir: /var/mail/dir/, \"/tmp/a b\"\n",
		    "dir=<file /var/mail/dir/><file /tmp/a b>;" },
		{ "old: :error: 5.1.1 gone\n", "old=<refusal 5.1.1 gone>;" },
		{ "old: :fail: gone, far away\nx: :FAIL:\n",
		    "old=<refusal gone, far away>;"
		    "x=<refusal mail for this address is refused>;" },
		{ "old: :blackhole:\n", "old=<nothing /dev/null>;" },
		{ "x: John Doe <john@x.example>, \"Q, R\" <q@x.example>\n",
		    "x=<john@x.example><q@x.example>;" },
		{ "x: < a@b >, c@d (the boss), \"e f\"@g (h)\n",
		    "x=<a@b><c@d><\"e f\"@g>;" },
		{ "\xef\xbb\xbf"
		  "a: b\n",
		    "a=<b>;" },
	};
	size_t i;

	for (i = 0; i < ARRAY_LEN(cases); i++) {
		struct alias_table *table = load(cases[i].text);
		struct buf out = { 0 };

		show(table, &out);
		cr_expect_str_eq(buf_str(&out), cases[i].want, "\"%s\": %s",
		    cases[i].text, buf_str(&out));
		buf_done(&out);
		alias_free(&table);
		cr_expect_null(table);
	}
}

Test(route_alias, F10_files_that_are_wrong)
{
#define BLANK                                                             \
	"a blank within an address: members stand between commas, names " \
	"with blanks in quotes"
#define PATH_BLANK                                           \
	"a path with blanks stands in quotes: \"/a path\", " \
	"\":include:/a path\""
	static const struct {
		const char *text, *error;
	} cases[] = {
		{ "root\n", "a:1: no colon behind the name" },
		{ "\nroot:\n", "a:2: no recipient (/dev/null drops mail)" },
		{ "a: ,\n# x\nb: c\n",
		    "a:1: no recipient (/dev/null drops mail)" },
		{ " a: b\n",
		    "a:1: a line that begins with a blank continues an alias, "
		    "and there is none" },
		{ ": b\n", "a:1: an empty name" },
		{ "\"\": b\n", "a:1: an empty name" },
		{ "a b: c\n", "a:1: a blank within a name that is not quoted" },
		{ "\"a\"b: c\n", "a:1: this is no name" },
		{ "a,b: c\n", "a:1: this is no name" },
		{ "\"a@b\"@c: d\n", "a:1: more than one @" },
		{ "a@: d\n", "a:1: not a domain" },
		{ "@: d\n", "a:1: not a domain" },
		{ "a@.b: d\n", "a:1: not a domain" },
		{ "\"a: b\n", "a:1: a quote is not closed" },
		{ "a: \"b, c\n", "a:1: a quote is not closed" },
		{ "a: b\nc: d\nA: e\n",
		    "a:3: alias `a' is in line 1; this second line is "
		    "ignored" },
		{ "a: b c\n", "a:1: " BLANK },
		{ "a: b\n c d\n", "a:2: " BLANK },
		{ "a: b\"c\"@d\n", "a:1: this is no plain address" },
		{ "a: \"b\"c@d\n", "a:1: a quote within an address" },
		{ "a: \\|b\n", "a:1: this is no plain address" },
		{ "a: \\/b\n", "a:1: this is no plain address" },
		{ "a: \\\"b\"\n", "a:1: this is no plain address" },
		{ "a: \\\n", "a:1: this is no plain address" },
		{ "a: b@c@d\n", "a:1: this is no plain address" },
		{ "a: @d\n", "a:1: no user in front of the @" },
		{ "a: b@\n", "a:1: not a domain" },
		{ "a: b@c..d\n", "a:1: not a domain" },
		{ "a: \"\"\n", "a:1: an empty name" },
		{ "a: |\n", "a:1: no command behind the |" },
		{ "a: \"| \"\n", "a:1: no command behind the |" },
		{ "a: :include:list\n",
		    "a:1: the path of an include file is not absolute" },
		{ "a: :include:\n",
		    "a:1: the path of an include file is not absolute" },
		{ "a: :include:/a b\n", "a:1: " PATH_BLANK },
		{ "a: /a b\n", "a:1: " PATH_BLANK },
		{ "a: :defer: later\n",
		    "a:1: a member that begins with a colon is "
		    ":include:/path, :fail: text, :error: text or "
		    ":blackhole:" },
		{ "a: <|b>\n", "a:1: this is no plain address" },
		{ "a: X <b\n", "a:1: " BLANK },
		{ "a: <>\n", "a:1: an empty name" },
		{ "a: \":include:/a:/b\"\n",
		    "a:1: the path of an include file has :| or :/ in it" },
		{ "a: \":include:/a:|b\"\n",
		    "a:1: the path of an include file has :| or :/ in it" },
		{ "\"a\tb\": c\n",
		    "a:1: a tab within quotes: no address has one" },
		{ "a: \"|b\tc\"\n",
		    "a:1: a tab within quotes: no address has one" },
		{ "a: \"b\tc\"@d\n",
		    "a:1: a tab within quotes: no address has one" },
		{ "a: b\001\n", "a:1: control character" },
	};
	struct alias_table *table;
	size_t i;

	for (i = 0; i < ARRAY_LEN(cases); i++) {
		table = load(cases[i].text);
		cr_expect_str_eq(alias_complaints(table), cases[i].error,
		    "\"%s\": %s", cases[i].text, alias_complaints(table));
		alias_free(&table);
	}
}

Test(route_alias, lengths_and_bytes)
{
	struct alias_table *table = NULL;
	struct buf text = { 0 }, error = { 0 };

	cr_expect_eq(try("a: b\0c\n", 7, &table, &error), 0);
	cr_expect_str_eq(alias_complaints(table), "a:1: NUL");
	cr_expect_str_eq(alias_at(table, 0)->wrong, "NUL");
	alias_free(&table);
	buf_printf(&text, "%0*d: a\n", ALIAS_KEY_MAX, 7);
	table = load(buf_str(&text));
	alias_free(&table);
	buf_reset(&text);
	buf_printf(&text, "%0*d: a\n", ALIAS_KEY_MAX + 1, 7);
	table = load(buf_str(&text));
	cr_expect_str_eq(alias_complaints(table), "a:1: the name is too long");
	alias_free(&table);
	buf_done(&text);
	buf_done(&error);
}

/* Each kind of member fits in an address to the last byte. */
Test(route_alias, the_longest_member)
{
	static const struct {
		const char *before, *why;
		size_t counted;
	} kinds[] = {
		{ "a: ", "a:1: the address is too long", 0 },
		{ "a: \"x ", "a:1: the address is too long", 4 },
		{ "a: |", "a:1: the command is too long", 1 },
		{ "a: :include:/", "a:1: the path is too long", 10 },
		{ "a: /", "a:1: the path is too long", 1 },
	};
	struct alias_table *table = NULL;
	size_t i;

	for (i = 0; i < ARRAY_LEN(kinds); i++) {
		struct buf text = { 0 };
		const char *end =
		    strchr(kinds[i].before, '"') == NULL ? "" : "\"";
		int fill = (int)(ADDRESS_MAX - kinds[i].counted);

		buf_printf(&text, "%s%0*d%s", kinds[i].before, fill, 7, end);
		table = load(buf_str(&text));
		cr_expect_str_eq(alias_complaints(table), "");
		alias_free(&table);
		buf_reset(&text);
		buf_printf(
		    &text, "%s%0*d%s", kinds[i].before, fill + 1, 7, end);
		table = load(buf_str(&text));
		cr_expect_str_eq(alias_complaints(table), kinds[i].why);
		alias_free(&table);
		buf_done(&text);
	}
}

Test(route_alias, no_file)
{
	struct alias_table *table = NULL;
	struct buf error = { 0 };

	cr_expect_eq(alias_load("a", &table, &error), -ENOENT);
	cr_expect_str_eq(buf_str(&error), "a: No such file or directory");
	cr_expect_null(table);
	buf_done(&error);
}

Test(route_alias, the_owner_of_the_file)
{
	struct alias_table *table = load("a: b\n");

	cr_expect_eq(alias_owner(table), geteuid());
	alias_free(&table);
}

#define SMALL                                                               \
	"a: 1\na@d: 2\na+x: 3\na+x@d: 4\n@d: 5\n\"q r\": 6\n\"q r\"@e: 7\n" \
	"+x: 8\n"

typedef const struct alias *
find_fn(const struct alias_table *table, const char *key);

Test(route_alias, lookups)
{
	static const struct {
		find_fn *find;
		const char *address;
		uint32_t line; /* 0: none */
	} cases[] = {
		{ scratch_find_address, "a@d", 2 },
		{ scratch_find_address, "A@D", 2 },
		{ scratch_find_address, "\"a\"@d", 2 },
		{ scratch_find_address, "a+x@d", 4 },
		{ scratch_find_address, "a+y@d", 2 },
		{ scratch_find_address, "a+x+y@d", 2 },
		{ scratch_find_address, "b@d", 0 },
		{ scratch_find_address, "a@e", 0 },
		{ scratch_find_address, "a", 0 },
		{ scratch_find_address, "@d", 0 },
		{ scratch_find_address, "\"q r\"@E", 7 },
		{ scratch_find_address, "\"a@d\"@", 0 },
		{ alias_find_account, "a", 1 },
		{ alias_find_account, "A@anything", 1 },
		{ alias_find_account, "a+x@e", 3 },
		{ alias_find_account, "a+y@e", 1 },
		{ alias_find_account, "b", 0 },
		{ alias_find_account, "", 0 },
		{ alias_find_account, "@d", 0 },
		{ alias_find_account, "\"q R\"@e", 6 },
		{ alias_find_account, "\"a@d\"@e", 0 },
		{ alias_find_account, "\"@d\"@e", 0 },
		{ alias_find_account, "+x@e", 8 },
		{ scratch_find_domain, "x@d", 5 },
		{ scratch_find_domain, "x@D", 5 },
		{ scratch_find_domain, "x@e", 0 },
		{ scratch_find_domain, "x", 0 },
		{ alias_find_key, "a+x@d", 4 },
		{ alias_find_key, "Q R", 6 },
		{ alias_find_key, "@d", 5 },
		{ alias_find_key, "b", 0 },
	};
	struct alias_table *table = load(SMALL);
	const struct alias *alias;
	size_t i;

	for (i = 0; i < ARRAY_LEN(cases); i++) {
		alias = cases[i].find(table, cases[i].address);
		cr_expect_eq(alias == NULL ? 0 : alias->line, cases[i].line,
		    "case %zu, %s", i, cases[i].address);
		cr_expect_null(cases[i].find(NULL, cases[i].address));
	}
	alias_free(&table);
}

/* The longest addresses meet the longest keys. */
Test(route_alias, lookups_of_long_addresses)
{
	char address[2 * ADDRESS_MAX + 8], text[ALIAS_KEY_MAX + 16];
	struct alias_table *table;
	int i;

	snprintf(text, sizeof(text), "%0*d: a\n@%0*d: b\n", 99, 7, 100, 7);
	table = load(text);
	for (i = 1; i < 2 * ADDRESS_MAX; i++) {
		snprintf(address, sizeof(address), "%0*d+x@d", i, 7);
		cr_expect_eq(
		    alias_find_account(table, address) != NULL, i == 99);
		cr_expect_null(scratch_find_address(table, address));
		snprintf(address, sizeof(address), "x+y@%0*d", i, 7);
		cr_expect_eq(
		    scratch_find_domain(table, address) != NULL, i == 100);
		cr_expect_null(scratch_find_address(table, address));
		cr_expect_null(alias_find_key(table, address));
	}
	alias_free(&table);
}

static int
collect(void *arg, const struct alias_member *member)
{
	if (strcmp(member->text, "stop") == 0)
		return -ECANCELED;
	add_member(arg, member);
	return 7;
}

Test(route_alias, lines_of_include_files)
{
	static const struct {
		const char *line, *want, *why;
		int r;
	} cases[] = {
		{ "", "", "", 0 },
		{ " \t", "", "", 0 },
		{ "# x", "", "", 0 },
		{ "  # x", "", "", 0 },
		{ "a", "<a>", "", 0 },
		{ " a@b , \"c d\"\r", "<a@b><\"c d\">", "", 0 },
		{ "\"|/bin/x y\", :include:/z, /dev/null",
		    "<|/bin/x y><:include:/z><nothing /dev/null>", "", 0 },
		{ "a, stop, b", "<a>", "", -ECANCELED },
		{ "a, /b, c d", "<a><file /b>",
		    "a blank within an address: members stand between commas, "
		    "names with blanks in quotes",
		    -EINVAL },
		{ "a # b", "<a>", "", 0 },
		{ "Bob <b@c>, |x y, /d/", "<b@c><|x y><file /d/>", "", 0 },
		{ "a\001", "", "control character", -EINVAL },
	};
	size_t i;

	for (i = 0; i < ARRAY_LEN(cases); i++) {
		struct buf out = { 0 };
		const char *why = "";

		cr_expect_eq(alias_parse_members(cases[i].line,
				 strlen(cases[i].line), collect, &out, &why),
		    cases[i].r, "\"%s\"", cases[i].line);
		cr_expect_str_eq(buf_str(&out), cases[i].want);
		cr_expect_str_eq(why, cases[i].why);
		buf_done(&out);
	}
}

#define MANY 100000

Test(route_alias, as_many_as_a_large_site_has)
{
	struct buf text = { 0 };
	struct alias_table *table;
	const struct alias *list;
	char address[64];
	uint32_t i;

	cr_assert_eq(buf_add_str(&text, "list:"), 0);
	for (i = 0; i < MANY; i++)
		buf_printf(
		    &text, "%s m%u@elsewhere.example", i == 0 ? "" : ",", i);
	for (i = 0; i < MANY; i++)
		buf_printf(&text, "\nu%u: m%u", (i * 7919) % MANY, i);
	table = load(buf_str(&text));
	buf_done(&text);
	list = alias_find_key(table, "list");
	cr_assert_eq(list->nmembers, MANY);
	cr_expect_str_eq(
	    list->members[MANY - 1].text, "m99999@elsewhere.example");
	for (i = 0; i < MANY; i++) {
		snprintf(address, sizeof(address), "u%u+x@host", i);
		cr_assert_not_null(alias_find_account(table, address));
		cr_assert_null(scratch_find_address(table, address));
	}
	cr_expect_eq(alias_at(table, 1)->line, 2);
	cr_expect_str_eq(alias_at(table, 2)->members[0].text, "m1");
	cr_expect_null(alias_at(table, MANY + 1));
	alias_free(&table);
}

/* The last line may end with the memory that it lies in; sanitized builds see
 * a reader that goes on. */
Test(route_alias, X8_nothing_is_read_behind_a_line)
{
	static const char *const lines[] = { "", "x", "x@", "x@[", "\"", "\"\\",
		"x@d" };
	const char *key, *why;
	char *line, *at;
	size_t i;

	for (i = 0; i < ARRAY_LEN(lines); i++) {
		at = line = strdup(lines[i]);
		cr_assert_not_null(line);
		why = alias_line_key(&at, &key);
		cr_expect_not_null(why, "%s", lines[i]);
		free(line);
	}
}
