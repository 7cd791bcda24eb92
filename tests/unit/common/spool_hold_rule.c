/* Rules that hold mail: their file, and what they fit. */
#include "spool/hold_rule.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/io.h"
#include "tests/unit/common/fault_sys.h"

#define NOW (1700000000 * USEC_PER_SEC)

static char base[64];

static void
path_of(const char *name, char out[128])
{
	snprintf(out, 128, "%s/" SPOOL_RULES "%s", base, name);
}

static void
start(void)
{
	char path[128];

	fault_reset();
	snprintf(base, sizeof(base), "/tmp/hold-rule.XXXXXX");
	cr_assert_not_null(mkdtemp(base));
	path_of("", path);
	cr_assert_eq(mkdir(path, 0700), 0);
}

static void
end(void)
{
	char command[128];

	snprintf(command, sizeof(command), "rm -rf %s", base);
	cr_expect_eq(system(command), 0);
}

TestSuite(hold_rule, .init = start, .fini = end, .timeout = 60);

static struct hold_rule
about(const char *sender, const char *recipient, const char *domain,
    const char *destination)
{
	return (struct hold_rule){ .uid = 7,
		.since_wall = NOW,
		.pattern = { sender, recipient, domain, destination },
		.reason = "" };
}

static int
add(const struct hold_rule *rule, usec_t now, uint32_t *ret_number)
{
	struct hold_rules_change c = { .more = rule, .now_wall = now };
	int r = hold_rules_change(&fault_sys, base, &c);

	cr_expect(!c.aside);
	if (r == 0)
		*ret_number = c.number;
	return r;
}

static int
drop(uint32_t number)
{
	struct hold_rules_change c = { .without = number, .now_wall = NOW };

	return hold_rules_change(&fault_sys, base, &c);
}

static int
read_rules(struct hold_rules *ret)
{
	return hold_rules_read(&fault_sys, base, ret);
}

static void
put(const char *data, size_t len)
{
	char path[128];
	int fd;

	path_of("/hold", path);
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	cr_assert_geq(fd, 0);
	cr_assert_eq(io_write_all(fd, data, len), 0);
	close(fd);
}

Test(hold_rule, what_was_added_is_read)
{
	struct hold_rule first = about("<>", "", "", ""),
			 second = about("", "a*", "b.example", "smtp/x");
	struct hold_rules rules = { 0 };
	uint32_t number = 0;

	cr_assert_eq(read_rules(&rules), 0);
	cr_expect_eq(rules.count, 0);
	cr_expect(!hold_rules_changed(base, &rules.seen));
	first.until_wall = NOW + USEC_PER_SEC;
	first.reason = "why not";
	cr_assert_eq(add(&first, NOW, &number), 0);
	cr_expect_eq(number, 1);
	cr_assert_eq(add(&second, NOW, &number), 0);
	cr_expect_eq(number, 2);
	cr_expect(hold_rules_changed(base, &rules.seen));
	cr_assert_eq(read_rules(&rules), 0);
	cr_expect(!hold_rules_changed(base, &rules.seen));
	cr_assert_eq(rules.count, 2);
	cr_expect_eq(rules.rows[0].number, 1);
	cr_expect_eq(rules.rows[0].uid, 7);
	cr_expect_eq(rules.rows[0].since_wall, NOW);
	cr_expect_eq(rules.rows[0].until_wall, NOW + USEC_PER_SEC);
	cr_expect_str_eq(rules.rows[0].pattern[RULE_SENDER], "<>");
	cr_expect_str_eq(rules.rows[0].reason, "why not");
	cr_expect_str_eq(rules.rows[1].pattern[RULE_DOMAIN], "b.example");
	cr_expect_str_eq(rules.rows[1].pattern[RULE_DESTINATION], "smtp/x");
	cr_expect_not_null(hold_rules_number(&rules, 1, NOW));
	cr_expect_null(hold_rules_number(&rules, 1, NOW + USEC_PER_SEC));
	cr_expect_null(hold_rules_number(&rules, 3, NOW));
	hold_rules_done(&rules);
}

/* mutation: write_changed() does not count up. */
Test(hold_rule, no_number_is_used_again)
{
	const struct hold_rule rule = about("a", "", "", "");
	struct hold_rules rules = { 0 };
	uint32_t number = 0;

	cr_assert_eq(add(&rule, NOW, &number), 0);
	cr_expect_eq(drop(1), 0);
	cr_expect_eq(drop(1), -ESRCH);
	cr_expect_eq(drop(0), -ESRCH);
	cr_assert_eq(add(&rule, NOW, &number), 0);
	cr_expect_eq(number, 2);
	cr_assert_eq(read_rules(&rules), 0);
	cr_expect_eq(rules.count, 1);
	hold_rules_done(&rules);
}

Test(hold_rule, rules_that_are_none)
{
	char large[HOLD_RULE_TEXT_MAX + 2];
	const struct hold_rule bad[] = { about("", "", "", ""),
		about("a\tb", "", "", ""), about("", "a\nb", "", ""),
		about(large, "", "", "") };
	struct hold_rule rule = about("a", "", "", "");
	uint32_t number = 4711;
	size_t i;

	memset(large, 'a', sizeof(large) - 1);
	large[sizeof(large) - 1] = '\0';
	for (i = 0; i < ARRAY_LEN(bad); i++)
		cr_expect_eq(add(&bad[i], NOW, &number), -EINVAL, "%zu", i);
	rule.reason = "\033";
	cr_expect_eq(add(&rule, NOW, &number), -EINVAL);
	rule.reason = "";
	rule.until_wall = -1;
	cr_expect_eq(add(&rule, NOW, &number), -EINVAL);
	rule.until_wall = 1; /* would be 0 seconds, no end */
	cr_expect_eq(add(&rule, NOW, &number), -EINVAL);
	cr_expect_eq(number, 4711);
}

/* mutation: judge() knows no bound; print() keeps rules that are over. */
Test(hold_rule, there_is_a_bound_and_what_is_over_makes_room)
{
	struct hold_rule rule = about("a", "", "", "");
	struct hold_rules rules = { 0 };
	uint32_t number = 0, i;

	rule.until_wall = NOW + 1000 * USEC_PER_SEC;
	for (i = 0; i < HOLD_RULES_MAX; i++)
		cr_assert_eq(add(&rule, NOW, &number), 0);
	cr_expect_eq(add(&rule, NOW, &number), -ENOSPC);
	cr_assert_eq(read_rules(&rules), 0);
	cr_expect_eq(rules.count, HOLD_RULES_MAX);
	rule.until_wall = 0;
	cr_expect_eq(add(&rule, NOW + 1000 * USEC_PER_SEC, &number), 0);
	hold_rules_done(&rules);
	cr_assert_eq(read_rules(&rules), 0);
	cr_expect_eq(rules.count, 1);
	cr_expect_eq(rules.rows[0].number, HOLD_RULES_MAX + 1);
	hold_rules_done(&rules);
}

/* mutation: cut_sum() does not compare. */
Test(hold_rule, F11_each_byte_of_the_file_counts)
{
	const struct hold_rule rule = about("a", "", "", "");
	struct hold_rules rules = { 0 };
	char path[128], text[512], broken[512];
	uint32_t number;
	int64_t len, i;
	int fd;

	cr_assert_eq(add(&rule, NOW, &number), 0);
	path_of("/hold", path);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	len = io_read_all(fd, text, sizeof(text));
	close(fd);
	cr_assert_gt(len, 0);
	for (i = 0; i < len; i++) {
		memcpy(broken, text, (size_t)len);
		broken[i] ^= 1;
		put(broken, (size_t)len);
		cr_expect_eq(read_rules(&rules), -EBADMSG, "%d", (int)i);
		cr_expect_neq(rules.seen.st_ino, 0);
		put(text, (size_t)i);
		cr_expect_eq(read_rules(&rules), -EBADMSG, "%d", (int)i);
	}
	cr_expect_eq(drop(1), -EBADMSG);
	put(text, (size_t)len);
	cr_expect_eq(read_rules(&rules), 0);
	cr_expect_eq(rules.count, 1);
	hold_rules_done(&rules);
}

/* mutation: set_aside() begins the numbers with 1. */
Test(hold_rule, F11_a_damaged_file_is_put_aside_by_the_next_rule)
{
	const struct hold_rule rule = about("a", "", "", "");
	uint32_t number = 0;
	struct hold_rules_change c = { .more = &rule, .now_wall = NOW };
	char path[128];
	int i;

	for (i = 1; i <= 2; i++) {
		put("x", 1);
		cr_assert_eq(hold_rules_change(&fault_sys, base, &c), 0);
		cr_expect(c.aside);
		cr_expect_eq(c.number, (uint32_t)i * 1000000 + 1);
	}
	path_of("/hold", path);
	cr_assert_eq(unlink(path), 0);
	cr_assert_eq(add(&rule, NOW, &number), 0);
	cr_expect_eq(number, 2000001, "without a file, too");
	path_of("/hold.aside-2", path);
	cr_expect_eq(access(path, R_OK), 0);
}

Test(hold_rule, X1_a_link_or_a_file_of_others_is_none_of_ours)
{
	const struct hold_rule rule = about("a", "", "", "");
	struct hold_rules rules = { 0 };
	char path[128], other[128];
	uint32_t number;

	cr_assert_eq(add(&rule, NOW, &number), 0);
	path_of("/hold", path);
	path_of("/other", other);
	cr_assert_eq(chmod(path, 0660), 0);
	cr_expect_eq(read_rules(&rules), -EBADMSG);
	cr_assert_eq(chmod(path, 0640), 0);
	cr_expect_eq(read_rules(&rules), 0);
	hold_rules_done(&rules);
	cr_assert_eq(rename(path, other), 0);
	cr_assert_eq(symlink("other", path), 0);
	cr_expect_eq(read_rules(&rules), -EBADMSG);
	cr_assert_eq(unlink(path), 0);
	cr_assert_eq(mkfifo(path, 0600), 0);
	cr_expect_eq(read_rules(&rules), -EBADMSG);
}

Test(hold_rule, A3_one_writer_at_a_time)
{
	const struct hold_rule rule = about("a", "", "", "");
	uint32_t number;
	char path[128];
	int dir;

	path_of("", path);
	dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	cr_assert_geq(dir, 0);
	cr_assert_eq(flock(dir, LOCK_EX), 0);
	cr_expect_eq(add(&rule, NOW, &number), -EAGAIN);
	close(dir);
	cr_expect_eq(add(&rule, NOW, &number), 0);
	cr_assert_eq(chdir("/"), 0);
	path_of("/hold", path);
	cr_assert_eq(unlink(path), 0);
	path_of("", path);
	cr_assert_eq(rmdir(path), 0);
	cr_expect_eq(add(&rule, NOW, &number), -ENOENT);
}

Test(hold_rule, what_fits)
{
	static const struct {
		const char *pattern[RULE_NKEYS];
		const char *sender, *recipient, *transport, *nexthop;
		bool fits;
	} rows[] = {
		{ { "a@*", "", "", "" }, "A@x", "r@y", NULL, NULL, true },
		{ { "a@*", "", "", "" }, "b@x", "r@y", NULL, NULL, false },
		{ { "*@x", "", "", "" }, "l-@x-@[]", "r@y", NULL, NULL, true },
		{ { "l-@x", "", "", "" }, "l-@X-@[]", "r@y", NULL, NULL, true },
		{ { "*-@[]", "", "", "" }, "l-@x-@[]", "r@y", NULL, NULL,
		    true },
		{ { "*@y", "", "", "" }, "l-@x-@[]", "r@y", NULL, NULL, false },
		{ { "l-@xn--tda", "", "", "" }, "l-@ü-@[]", "r@y", NULL, NULL,
		    true },
		{ { "<>", "", "", "" }, "", "r@y", NULL, NULL, true },
		{ { "<>", "", "", "" }, "a", "r@y", NULL, NULL, false },
		{ { "*", "", "", "" }, "", "r@y", NULL, NULL, true },
		{ { "", "r@y", "", "" }, "", "R@Y", NULL, NULL, true },
		{ { "", "", "y", "" }, "", "r@Y", NULL, NULL, true },
		{ { "", "", "y", "" }, "", "r@x.y", NULL, NULL, false },
		{ { "", "", "*.y", "" }, "", "r@x.y", NULL, NULL, true },
		{ { "", "", "", "mx" }, "", "r@y", "smtp", "mx", true },
		{ { "", "", "", "smtp/mx" }, "", "r@y", "smtp", "mx", true },
		{ { "", "", "", "*/mx" }, "", "r@y", "smtp", "mx", true },
		{ { "", "", "", "lmtp/mx" }, "", "r@y", "smtp", "mx", false },
		{ { "", "", "", "/run/*" }, "", "r@y", "lmtp", "/run/x", true },
		{ { "", "", "", "mx" }, "", "r@y", NULL, NULL, false },
		{ { "a", "", "y", "mx" }, "a", "r@y", "smtp", "mx", true },
		{ { "a", "", "y", "mx" }, "a", "r@z", "smtp", "mx", false },
		{ { "b", "", "y", "mx" }, "a", "r@y", "smtp", "mx", false },
	};
	size_t i;

	for (i = 0; i < ARRAY_LEN(rows); i++) {
		const char *const *p = rows[i].pattern;
		struct hold_rule rule = about(p[0], p[1], p[2], p[3]);
		const struct hold_mail mail = { rows[i].sender,
			rows[i].recipient, rows[i].transport, rows[i].nexthop,
			false };

		cr_expect_eq(
		    hold_rule_fits(&rule, &mail, NOW), rows[i].fits, "%zu", i);
		rule.until_wall = NOW;
		cr_expect(!hold_rule_fits(&rule, &mail, NOW), "%zu", i);
	}
}

/* mutation: hold_rule_fits() takes reports as any mail. */
Test(hold_rule, reports_are_held_by_rules_about_more_than_the_sender)
{
	static const struct {
		const char *pattern[RULE_NKEYS];
		bool fits;
	} rows[] = {
		{ { "<>", "", "", "" }, false },
		{ { "*", "", "", "" }, false },
		{ { "<>", "*", "", "" }, true },
		{ { "", "", "y", "" }, true },
		{ { "", "", "", "mx" }, true },
	};
	struct hold_mail mail = { "", "r@y", "smtp", "mx", true };
	size_t i;

	for (i = 0; i < ARRAY_LEN(rows); i++) {
		const char *const *p = rows[i].pattern;
		const struct hold_rule rule = about(p[0], p[1], p[2], p[3]);

		mail.report = true;
		cr_expect_eq(
		    hold_rule_fits(&rule, &mail, NOW), rows[i].fits, "%zu", i);
		mail.report = false;
		cr_expect(hold_rule_fits(&rule, &mail, NOW), "%zu", i);
	}
}
