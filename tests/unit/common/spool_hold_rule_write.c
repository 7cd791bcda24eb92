/* The file of rules that hold mail, while its disk fails, or its writer dies;
 * and files that nobody of ours has written. */
#include "spool/hold_rule.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/io.h"
#include "spool/format.h"
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

TestSuite(hold_rule_write, .init = start, .fini = end, .timeout = 60);

static const struct hold_rule one = { .uid = 7,
	.since_wall = NOW,
	.pattern = { "a@*", "", "", "" },
	.reason = "" };

static int
add(uint32_t *ret_number)
{
	struct hold_rules_change c = { .more = &one, .now_wall = NOW };
	int r = hold_rules_change(&fault_sys, base, &c);

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

static bool
is_there(const char *name)
{
	char path[128];

	path_of(name, path);
	return access(path, F_OK) == 0;
}

static void
put(const char *text, size_t len)
{
	char path[128];
	int fd;

	path_of("/hold", path);
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	cr_assert_geq(fd, 0);
	cr_assert_eq(io_write_all(fd, text, len), 0);
	close(fd);
}

/* How many rules are in the file, or -errno. */
static int
count(void)
{
	struct hold_rules rules = { 0 };
	int r = hold_rules_read(&spool_sys_real, base, &rules);

	r = r < 0 ? r : (int)rules.count;
	hold_rules_done(&rules);
	return r;
}

/* ---- what is changed ---- */

static int
add_one(void)
{
	uint32_t number;

	return add(&number);
}

static int
drop_first(void)
{
	return drop(1);
}

static void
begin_with_none(void)
{
}

static void
begin_with_two(void)
{
	uint32_t number;

	cr_assert_eq(add(&number), 0);
	cr_assert_eq(add(&number), 0);
}

static void
begin_damaged(void)
{
	begin_with_two();
	put("x\n", 2);
}

static const struct {
	const char *name;
	void (*begin)(void);
	int (*change)(void);
	int before, after; /* count() */
} changes[] = {
	{ "the first rule", begin_with_none, add_one, 0, 1 },
	{ "a third rule", begin_with_two, add_one, 2, 3 },
	{ "one less", begin_with_two, drop_first, 2, 1 },
	{ "over a damaged file", begin_damaged, add_one, -EBADMSG, 1 },
};

static void
begin_anew(size_t i)
{
	end();
	start();
	changes[i].begin();
}

/* Between the two: the damaged file is aside, and nothing in its place. */
static bool
is_right(size_t i, int n)
{
	return n == changes[i].before || n == changes[i].after ||
	    (changes[i].before < 0 && n == 0);
}

/* mutations: write_new() does not sync; change_at() calls begin_numbers() for
 * no file alone; replace() removes what was there first. */
Test(hold_rule_write, P1_D24_a_death_at_each_call)
{
	uint32_t number;
	unsigned nth;
	bool cut;
	size_t i;

	for (i = 0; i < ARRAY_LEN(changes); i++)
		for (nth = 1, cut = true; cut; nth++) {
			cr_assert_lt(nth, 40u);
			begin_anew(i);
			fault_cut(nth);
			(void)changes[i].change();
			cut = fault_was_cut();
			fault_reset();
			cr_expect(is_right(i, count()), "%s, call %u: %d",
			    changes[i].name, nth, count());
			cr_assert_eq(add(&number), 0, "%s, call %u",
			    changes[i].name, nth);
			cr_expect_gt(number,
			    changes[i].before < 0        ? 1000000u
				: changes[i].before == 2 ? 2u
							 : 0u,
			    "%s, call %u: %u", changes[i].name, nth, number);
			cr_expect(!is_there("/hold.new"));
		}
}

static char calls[64];
static size_t ncalls;

static void
note(enum fault_call call, void *arg UNUSED)
{
	static const char letters[FAULT_NCALLS] = {
		[FAULT_WRITE] = 'w',
		[FAULT_FSYNC] = 's',
		[FAULT_REPLACEAT] = 'r',
		[FAULT_CLOSE] = 'c',
	};

	if (letters[call] != 0 && ncalls + 1 < sizeof(calls))
		calls[ncalls++] = letters[call];
}

/* mutation: replace() does not sync the directory. */
Test(hold_rule_write, the_file_is_on_disk_before_its_name)
{
	uint32_t number;

	fault_watch(note, NULL);
	cr_assert_eq(add(&number), 0);
	cr_expect_str_eq(calls, "wscrs");
}

/* mutation: replace() leaves what it could not write. */
Test(hold_rule_write, D7_D9_what_cannot_be_written_leaves_the_rules)
{
	static const int errors[] = { EIO, ENOSPC, EROFS, EACCES, EDQUOT };
	static const enum fault_call made[] = { FAULT_OPENAT, FAULT_FLOCK,
		FAULT_WRITE, FAULT_FSYNC, FAULT_CLOSE, FAULT_REPLACEAT };
	size_t i, k, e;

	for (i = 0; i < ARRAY_LEN(changes) - 1; i++)
		for (k = 0; k < ARRAY_LEN(made); k++)
			for (e = 0; e < ARRAY_LEN(errors); e++) {
				begin_anew(i);
				fail_nth(made[k], 1, errors[e]);
				cr_expect_eq(changes[i].change(), -errors[e],
				    "%s: %s: %s", changes[i].name,
				    fault_names[made[k]], strerror(errors[e]));
				fault_reset();
				cr_expect_eq(count(), changes[i].before,
				    "%s: %s", changes[i].name,
				    fault_names[made[k]]);
				cr_expect(!is_there("/hold.new"));
			}
}

Test(hold_rule_write, D7_a_short_write_is_none)
{
	uint32_t number;

	fault_short_writes(3);
	cr_expect_eq(add(&number), 0);
	fault_reset();
	cr_expect_eq(count(), 1);
}

/* ---- two writers ---- */

#define EACH 40

static void
add_many(void)
{
	uint32_t number;
	int i, r;

	for (i = 0; i < EACH; i++) {
		while ((r = add(&number)) == -EAGAIN)
			usleep(100);
		if (r < 0)
			_exit(1);
	}
	_exit(0);
}

/* mutation: change_at() takes no lock. */
Test(hold_rule_write, A3_two_that_write_at_the_same_time)
{
	struct hold_rules rules = { 0 };
	int i, status;

	for (i = 0; i < 2; i++)
		if (fork() == 0)
			add_many();
	for (i = 0; i < 2; i++) {
		cr_assert_gt(wait(&status), 0);
		cr_expect_eq(status, 0);
	}
	cr_assert_eq(hold_rules_read(&spool_sys_real, base, &rules), 0);
	cr_expect_eq(rules.count, 2 * EACH);
	cr_expect_eq(rules.next, 2 * EACH + 1, "each has its number");
	hold_rules_done(&rules);
}

/* ---- files of others ---- */

/* With its sum. */
static void
put_rows(const char *head, const char *row, unsigned n)
{
	struct buf text = { 0 };
	unsigned i;

	cr_assert_eq(buf_add_str(&text, head), 0);
	for (i = 1; i <= n; i++)
		cr_assert_eq(buf_printf(&text, "%u%s", i, row), 0);
	cr_assert_eq(
	    buf_printf(&text, "%08x\n", format_crc(0, text.data, text.len)), 0);
	put(text.data, text.len);
	buf_done(&text);
}

#define HEAD HOLD_RULES_HEAD "200000\n"
#define ROW  "\t0\t1\t0\ta\t\t\t\t\n"

Test(hold_rule_write, F11_rows_that_no_writer_of_ours_makes)
{
	static const struct {
		const char *head, *row;
	} rows[] = {
		{ HEAD, "\t0\t1\t0\ta\t\t\t\n" },
		{ HEAD, "\t0\t1\t0\t\t\t\t\tno pattern\n" },
		{ HEAD, "\t-1\t1\t0\ta\t\t\t\t\n" },
		{ HEAD, "\t0\t99999999999999\t0\ta\t\t\t\t\n" },
		{ HEAD, "\t0\t1\t0\ta\033[2J\t\t\t\t\n" },
		{ HEAD, "\t0\t1\t0\ta\t\t\t\ttab\tin a reason\n" },
		{ HEAD, "\t0\t1\t0\ta\t\t\t\t" },
		{ HOLD_RULES_HEAD "1\n", ROW },
		{ HOLD_RULES_HEAD "0\n", ROW },
		{ HOLD_RULES_HEAD "4294967296\n", ROW },
		{ "hold-rules 2\n2\n", ROW },
	};
	size_t i;

	put_rows(HEAD, ROW, 1);
	cr_assert_eq(count(), 1);
	for (i = 0; i < ARRAY_LEN(rows); i++) {
		put_rows(rows[i].head, rows[i].row, 1);
		cr_expect_eq(count(), -EBADMSG, "%zu", i);
	}
}

/* mutation: parse_rows() knows no bound. */
Test(hold_rule_write, F11_100000_rules_and_lines_without_an_end)
{
	struct buf row = { 0 };
	size_t len;

	put_rows(HEAD, ROW, HOLD_RULES_MAX);
	cr_expect_eq(count(), HOLD_RULES_MAX);
	put_rows(HEAD, ROW, HOLD_RULES_MAX + 1);
	cr_expect_eq(count(), -EBADMSG);
	put_rows(HEAD, ROW, 100000);
	cr_expect_eq(count(), -EBADMSG);
	for (len = HOLD_RULE_TEXT_MAX; len < 5u << 20; len *= 40) {
		buf_reset(&row);
		cr_assert_eq(buf_add_str(&row, "\t0\t1\t0\t"), 0);
		cr_assert_eq(buf_reserve(&row, len + 16), 0);
		memset(row.data + row.len, 'a', len);
		memcpy(row.data + row.len + len, "\t\t\t\t\n", 6);
		put_rows(HEAD, row.data, 1);
		cr_expect_eq(count(), len > HOLD_RULE_TEXT_MAX ? -EBADMSG : 1,
		    "%zu", len);
	}
	buf_done(&row);
}

/* mutation: check() asks nobody. */
Test(hold_rule_write, X1_a_file_of_another_user)
{
	char path[128];

	put_rows(HEAD, ROW, 1);
	path_of("/hold", path);
	cr_assert_eq(chmod(path, 0602), 0);
	cr_expect_eq(count(), -EBADMSG);
	cr_assert_eq(chmod(path, 0600), 0);
	cr_expect_eq(count(), 1);
	if (getuid() != 0)
		return;
	cr_assert_eq(chown(path, 65534, 65534), 0);
	cr_expect_eq(count(), -EBADMSG);
	path_of("", path);
	cr_assert_eq(chown(path, 65534, 65534), 0);
	cr_expect_eq(count(), 1, "the owner of the directory");
}
