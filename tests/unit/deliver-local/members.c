/* From an alias to its recipients. */
#include "expand.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "scratch.h"

/* "SENDER: RCPT RCPT; SENDER: …" */
static struct buf told, why;
static struct names_scratch names;
static uint32_t nrcpts;
static const char *written; /* a file that somebody writes meanwhile */

static int
on_sender(void *arg UNUSED, const char *sender)
{
	return buf_printf(&told, "%s%s:", told.len == 0 ? "" : "; ", sender);
}

static int
on_rcpt(void *arg UNUSED, const char *address)
{
	FILE *f = written == NULL ? NULL : fopen(written, "a");

	nrcpts++;
	if (f != NULL) {
		cr_assert_gt(fputs("more@far.test\n", f), 0);
		cr_assert_eq(fclose(f), 0);
	}
	return told.len > 4000 ? 0 : buf_printf(&told, " %s", address);
}

static int
expand(const char *key, const char *sender)
{
	const struct members_sink sink = { .sender = on_sender,
		.rcpt = on_rcpt };
	char recipient[128] = "";
	const struct members_of of = { key, recipient, sender, NULL };

	snprintf(recipient, sizeof(recipient), "%s%s",
	    key[0] == '@' ? "eve" : key,
	    key[0] == '@'                  ? key
		: strchr(key, '@') != NULL ? ""
					   : "@one.test");
	buf_reset(&told);
	buf_reset(&why);
	nrcpts = 0;
	return members_expand(&names.names, &names.includes, &of, &sink, &why);
}

static void
end(void)
{
	buf_done(&told);
	buf_done(&why);
	names_done(&names);
}

TestSuite(members, .fini = end, .timeout = 60);

#define TABLE                                                              \
	"root: ann\n"                                                      \
	"alice: alice, bob@far.test\n"                                     \
	"a: b\nb: a\n"                                                     \
	"x: y, z, carl\ny: z\nz: dora\n"                                   \
	"all: l1, l2, bob@far.test\nl1: l2\nl2: l1\n"                      \
	"pure: p1, p2\np1: p2\np2: p1\n"                                   \
	"nobody: /dev/null\n"                                              \
	"twice: ann, ANN, ann@ONE.test, Bob@Far.test, Bob@far.TEST, "      \
	"bob@far.test\n"                                                   \
	"prog: |cat, \"|cat -n\", ann\n"                                   \
	"list: m1, m2@far.test\nowner-list: boss\n"                        \
	"both: list, ann, list\nowner-both: chief@far.test\n"              \
	"ring: sub, ann\nowner-ring: r\nsub: ring, eve\nowner-sub: s\n"    \
	"owner-own: own\nown: ann, own\n"                                  \
	"admin: postmaster, ann\n"                                         \
	"far@far.test: ann\nowner-far@far.test: boss\n"                    \
	"@all.test: eve\nowner-eve: boss\n"                                \
	"bill@far.test: bill@far.test, bill\n"                             \
	"@one.far: fay@one.far, fay@two.far, fay\n@two.far: fay@two.far\n" \
	"tools: \"|put a@b/X\", \"|put a@b/x\"\n"

/* mutations: deliver-local/members.c: is_below() is always false; find_owner()
 * finds none; meet_rcpt() answers 1. */
Test(members, each_name_becomes_what_the_page_says)
{
	static const struct {
		const char *key, *sender, *want;
		int r;
	} rows[] = {
		{ "root", "s@far.test", "s@far.test: ann@one.test", 0 },
		{ "alice", "s@far.test",
		    "s@far.test: alice@one.test bob@far.test", 0 },
		{ "a", "s@far.test", "s@far.test: a@one.test", 0 },
		{ "b", "s@far.test", "s@far.test: b@one.test", 0 },
		{ "x", "s@far.test", "s@far.test: dora@one.test carl@one.test",
		    0 },
		{ "all", "s@far.test", "s@far.test: l1@one.test bob@far.test",
		    0 },
		{ "nobody", "s@far.test", "", 0 },
		{ "twice", "s@far.test",
		    "s@far.test: ann@one.test Bob@Far.test bob@far.test", 0 },
		{ "prog", "s@far.test", "s@far.test: |cat |cat -n ann@one.test",
		    0 },
		{ "list", "s@far.test",
		    "owner-list@one.test: m1@one.test m2@far.test", 0 },
		{ "list", "", ": m1@one.test m2@far.test", 0 },
		{ "both", "s@far.test",
		    "owner-both@one.test: ann@one.test; "
		    "owner-list@one.test: m1@one.test m2@far.test",
		    0 },
		{ "both", "", ": m1@one.test m2@far.test ann@one.test", 0 },
		{ "ring", "s@far.test",
		    "owner-ring@one.test: ann@one.test; "
		    "owner-sub@one.test: ring@one.test eve@one.test",
		    0 },
		{ "own", "s@far.test",
		    "owner-own@one.test: ann@one.test own@one.test", 0 },
		{ "far@far.test", "s@far.test",
		    "owner-far@far.test: ann@one.test", 0 },
		{ "@all.test", "s@far.test", "s@far.test: eve@one.test", 0 },
		{ "bill@far.test", "s@far.test",
		    "s@far.test: bill@far.test bill@one.test", 0 },
		{ "@one.far", "s@far.test",
		    "s@far.test: fay@one.far fay@two.far fay@one.test", 0 },
		{ "tools", "s@far.test", "s@far.test: |put a@b/X |put a@b/x",
		    0 },
		{ "none", "s@far.test", "", -ENOENT },
		{ "root+x", "s@far.test", "", -ENOENT },
		{ "admin", "s@far.test",
		    "s@far.test: postmaster@one.test ann@one.test", 0 },
	};
	size_t i;
	int r;

	names_begin(&names, TABLE, "");
	for (i = 0; i < ARRAY_LEN(rows); i++) {
		r = expand(rows[i].key, rows[i].sender);
		cr_expect_eq(
		    r, rows[i].r, "%s: %d %s", rows[i].key, r, buf_str(&why));
		cr_expect_str_eq(buf_str(&told), rows[i].want, "%s: %s",
		    rows[i].key, buf_str(&told));
	}
}

/* mutation: deliver-local/members.c, judge_alias() is always 0; take_address()
 * enters an alias that refuses. */
Test(members, F10_an_alias_with_a_wrong_line_waits_and_others_do_not)
{
	static const struct {
		const char *key, *told, *why;
		int r;
	} rows[] = {
		{ "good", "s@far.test: ann@one.test /var/log/x /d/", "", 0 },
		{ "bad", "", "bad: line 2 of the alias file: a blank within",
		    -EUCLEAN },
		{ "above", "s@far.test: ann@one.test",
		    "bad: line 2 of the alias file: a blank within", -EUCLEAN },
		{ "old", "", "5.1.6 gone, far away", -ECONNREFUSED },
		{ "older", "s@far.test: ann@one.test old@one.test bob@one.test",
		    "", 0 },
		{ "oldest", "owner-oldest@one.test: old@one.test", "", 0 },
	};
	size_t i;

	names_begin(&names,
	    "good: ann, /var/log/x, /d/\nbad: b c\nabove: ann, bad\n"
	    "old: :fail: 5.1.6 gone, far away\nolder: ann, old, Old, bob\n"
	    "oldest: old\nowner-oldest: ann\n",
	    "");
	for (i = 0; i < ARRAY_LEN(rows); i++) {
		cr_expect_eq(expand(rows[i].key, "s@far.test"), rows[i].r, "%s",
		    rows[i].key);
		cr_expect_str_eq(buf_str(&told), rows[i].told, "%s: %s",
		    rows[i].key, buf_str(&told));
		cr_expect_eq(
		    strncmp(buf_str(&why), rows[i].why, strlen(rows[i].why)), 0,
		    "%s: %s", rows[i].key, buf_str(&why));
	}
}

Test(members, names_that_lead_to_each_other_alone_are_an_error)
{
	names_begin(&names,
	    "p: q, r\nowner-p: x\nq: r\nowner-q: x\nr: q\nowner-r: x\n", "");
	cr_expect_eq(expand("p", "s@far.test"), -ELOOP);
	cr_expect_str_eq(
	    buf_str(&why), "names name each other, and nobody else");
}

/* mutation: deliver-local/names.c: names_look_up() knows no administrator. */
Test(members, root_and_postmaster_go_to_the_administrator)
{
	names_begin(&names, "admin: postmaster, ann\nadm: root\n", "adm");
	cr_expect_eq(expand("root", "s@far.test"), 0, "%s", buf_str(&why));
	cr_expect_str_eq(buf_str(&told), "s@far.test: root@one.test",
	    "%s: a loop ends in the mailbox", buf_str(&told));
	end();
	names_begin(&names, "admin: postmaster, ann\n", "boss@far.test");
	cr_expect_eq(expand("Postmaster", ""), 0);
	cr_expect_str_eq(buf_str(&told), ": boss@far.test");
	cr_expect_eq(expand("admin", ""), 0);
	cr_expect_str_eq(buf_str(&told), ": boss@far.test ann@one.test");
}

static void
put(const char *name, const char *text, mode_t mode)
{
	const char *path = scratch_file(name, text, strlen(text));

	cr_assert_eq(chmod(path, mode), 0);
}

static void
with_include(const char *name)
{
	static char aliases[512];

	snprintf(aliases, sizeof(aliases),
	    "list: :include:%s, ann\nowner-list: boss\n",
	    scratch_path("%s", name));
	names_begin(&names, aliases, "");
}

Test(members, include_files)
{
	char text[1024], want[512];

	put("inner", "eve, fay@far.test\n", 0644);
	snprintf(text, sizeof(text),
	    "\xef\xbb\xbf# a comment\n\n  bob@far.test, carl # both\n"
	    "Ann <ann>\n|run me\n/var/x\n:include:%s\n:include:%s\n"
	    "last@far.test",
	    scratch_path("inner"), scratch_path("outer"));
	put("outer", text, 0644);
	with_include("outer");
	cr_expect_eq(expand("list", "s@far.test"), 0, "%s", buf_str(&why));
	snprintf(want, sizeof(want),
	    "owner-list@one.test: bob@far.test carl@one.test ann@one.test "
	    ":include:%s:|run me :include:%s:/var/x eve@one.test fay@far.test "
	    "last@far.test",
	    scratch_path("outer"), scratch_path("outer"));
	cr_expect_str_eq(buf_str(&told), want, "%s", buf_str(&told));
}

/* mutation: deliver-local/include.c: judge() does not look at the mode. */
Test(members, include_files_that_are_wrong_wait)
{
	static const struct {
		const char *name, *text, *why;
		mode_t mode;
	} rows[] = {
		{ "gone", NULL, "No such file or directory", 0 },
		{ "open", "ann\n", "others than its owner may write it", 0666 },
		{ "group", "ann\n", "others than its owner may write it",
		    0664 },
		{ "bad", "ann\nbob@far.test, x y\n", "line 2: ", 0644 },
	};
	char link_path[256];
	size_t i;

	for (i = 0; i < ARRAY_LEN(rows); i++) {
		if (rows[i].text != NULL)
			put(rows[i].name, rows[i].text, rows[i].mode);
		with_include(rows[i].name);
		cr_expect_eq(
		    expand("list", "s@far.test"), -EUCLEAN, "%s", rows[i].name);
		cr_expect_not_null(strstr(buf_str(&why), rows[i].why), "%s: %s",
		    rows[i].name, buf_str(&why));
		cr_expect_not_null(strstr(buf_str(&why), rows[i].name));
		end();
	}
	put("real", "ann\n", 0644);
	snprintf(link_path, sizeof(link_path), "%s", scratch_path("link"));
	cr_assert_eq(symlink(scratch_path("real"), link_path), 0);
	with_include("link");
	cr_expect_eq(expand("list", "s@far.test"), -EUCLEAN);
	end();
	cr_assert_eq(mkfifo(scratch_path("fifo"), 0644), 0);
	with_include("fifo");
	cr_expect_eq(expand("list", "s@far.test"), -EUCLEAN);
	cr_expect_not_null(strstr(buf_str(&why), "not a regular file"));
}

/* mutation: deliver-local/include_lines.c: judge_end() is always 0. */
Test(members, F10_an_include_file_that_changes_meanwhile_waits)
{
	char path[256];

	put("list", "bob@far.test\ncarl@far.test\n", 0644);
	snprintf(path, sizeof(path), "%s", scratch_path("list"));
	with_include("list");
	written = path;
	cr_expect_eq(expand("list", "s@far.test"), -EUCLEAN);
	written = NULL;
	cr_expect_not_null(
	    strstr(buf_str(&why), "list: line 3: the file was changed while"),
	    "%s", buf_str(&why));
	cr_expect_eq(expand("list", "s@far.test"), 0, "%s", buf_str(&why));
	cr_expect_eq(nrcpts, 4u);
}

/* mutation: deliver-local/include_lines.c: include_fits() is always true. */
Test(members, F10_more_bytes_than_a_list_may_have_are_not_read)
{
	char text[512];

	put("huge", "# nothing\n", 0644);
	cr_assert_eq(truncate(scratch_path("huge"), (off_t)1 << 40), 0);
	with_include("huge");
	names.names.limit = 10;
	cr_expect_eq(expand("list", "s@far.test"), -E2BIG);
	cr_expect_not_null(
	    strstr(buf_str(&why), "huge: too large for "), "%s", buf_str(&why));
	end();
	put("half", "bob@far.test\n", 0644);
	cr_assert_eq(truncate(scratch_path("half"), (off_t)700 << 10), 0);
	snprintf(text, sizeof(text), ":include:%s\n", scratch_path("half"));
	put("both", text, 0644);
	cr_assert_eq(truncate(scratch_path("both"), (off_t)700 << 10), 0);
	with_include("both");
	names.names.limit = 10;
	cr_expect_eq(expand("list", "s@far.test"), -E2BIG);
	cr_expect_not_null(
	    strstr(buf_str(&why), "half: too large"), "%s", buf_str(&why));
}

/* mutation: members_expand() does not ask whether there is a /dev/null. */
Test(members, a_list_without_a_member_waits)
{
	char text[512];

	put("empty", "# none yet\n", 0644);
	snprintf(text, sizeof(text),
	    "bare: :include:%s\nnone: :include:%s, /dev/null\n",
	    scratch_path("empty"), scratch_path("empty"));
	names_begin(&names, text, "");
	cr_expect_eq(expand("bare", "s@far.test"), -EUCLEAN);
	cr_expect_str_eq(buf_str(&why), "no member, and no /dev/null");
	cr_expect_eq(expand("none", "s@far.test"), 0);
}

Test(members, a_program_in_a_file_that_no_alias_names_is_refused)
{
	char text[512];

	put("deep", "|run\n", 0644);
	snprintf(text, sizeof(text), ":include:%s\n", scratch_path("deep"));
	put("outer", text, 0644);
	with_include("outer");
	cr_expect_eq(expand("list", "s@far.test"), -EUCLEAN);
}

/* mutation: deliver-local/members.c: add_rcpt() knows no limit. */
Test(members, more_than_the_limit_is_refused)
{
	struct buf text = { 0 };
	int i;

	for (i = 0; i < 1001; i++)
		cr_assert_eq(buf_printf(&text, "u%d@far.test\n", i), 0);
	put("list", buf_str(&text), 0644);
	buf_done(&text);
	with_include("list");
	names.names.limit = 1002; /* and ann */
	cr_expect_eq(expand("list", "s@far.test"), 0);
	cr_expect_eq(nrcpts, 1002u);
	names.names.limit = 1001;
	cr_expect_eq(expand("list", "s@far.test"), -E2BIG);
	cr_expect_not_null(strstr(buf_str(&why), "alias_expansion_limit"));
}

Test(members, nesting_has_an_end)
{
	struct buf text = { 0 };
	int i;

	for (i = 0; i < 60; i++)
		cr_assert_eq(buf_printf(&text, "n%d: n%d\n", i, i + 1), 0);
	names_begin(&names, buf_str(&text), "");
	buf_done(&text);
	cr_expect_eq(expand("n0", ""), -ELOOP);
	cr_expect_eq(expand("n20", ""), 0, "%s", buf_str(&why));
	cr_expect_str_eq(buf_str(&told), ": n60@one.test");
}

/* 100 000 members, each twice: the set of addresses is what grows. */
Test(members, memory_is_bounded)
{
	const int members = 100000;
	struct rusage before, after;
	struct buf text = { 0 };
	int i;

	for (i = 0; i < 2 * members; i++)
		cr_assert_eq(buf_printf(&text, "member%06d@domain%d.test\n",
				 i % members, i % members % 1000),
		    0);
	put("list", buf_str(&text), 0644);
	buf_done(&text);
	with_include("list");
	names.names.limit = 250000;
	cr_assert_eq(getrusage(RUSAGE_SELF, &before), 0);
	cr_expect_eq(expand("list", "s@far.test"), 0, "%s", buf_str(&why));
	cr_assert_eq(getrusage(RUSAGE_SELF, &after), 0);
	cr_expect_eq(nrcpts, (uint32_t)members + 1);
	cr_expect_lt(after.ru_maxrss - before.ru_maxrss, 64 * 1024,
	    "%ld KiB more", after.ru_maxrss - before.ru_maxrss);
}
