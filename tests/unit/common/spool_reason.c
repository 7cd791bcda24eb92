#include "spool/reason.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/io.h"
#include "spool_scratch.h"

#define INODE 4711

struct got {
	unsigned n;
	int stop_at;
	struct reason last;
	char text[4096], address[600], dsn[32];
};

static int
take(const struct reason *reason, void *arg)
{
	struct got *g = arg;

	g->n++;
	g->last = *reason;
	snprintf(g->text, sizeof(g->text), "%s", reason->text);
	snprintf(g->address, sizeof(g->address), "%s", reason->address);
	snprintf(g->dsn, sizeof(g->dsn), "%s", reason->dsn);
	return g->stop_at != 0 && (int)g->n == g->stop_at ? 99 : 0;
}

static const struct reason refused = {
	.index = 3,
	.when_wall = 1700000000 * USEC_PER_SEC,
	.dsn = "4.4.1",
	.relay = "mx.example.org[192.0.2.1]:25",
	.address = "b@example.org",
	.text = "Connection refused",
};

static int
read_back(struct scratch *s, struct got *g)
{
	g->n = 0;
	return reason_read(&s->sp, SPOOL_DEFER, INODE, take, g);
}

Test(reason, what_was_added_is_read)
{
	struct reason other = refused;
	struct got g = { 0 };
	struct scratch s;

	scratch_open(&s);
	cr_expect_eq(read_back(&s, &g), -ENOENT);
	cr_assert_eq(reason_add(&s.sp, SPOOL_DEFER, INODE, &refused), 0);
	cr_assert_eq(read_back(&s, &g), 0);
	cr_expect_eq(g.n, 1u);
	cr_expect_eq(g.last.index, 3u);
	cr_expect_eq(g.last.when_wall, refused.when_wall);
	cr_expect_str_eq(g.dsn, refused.dsn);
	cr_expect_str_eq(g.address, refused.address);
	cr_expect_str_eq(g.text, refused.text);
	other.index = UINT32_MAX;
	other.text = "";
	cr_assert_eq(reason_add(&s.sp, SPOOL_DEFER, INODE, &other), 0);
	cr_assert_eq(read_back(&s, &g), 0);
	cr_expect_eq(g.n, 2u);
	cr_expect_eq(g.last.index, UINT32_MAX);
	cr_expect_str_eq(g.text, "");
	g.stop_at = 1;
	cr_expect_eq(read_back(&s, &g), 99, "each() ends it");
	cr_expect_eq(reason_clear(&s.sp, SPOOL_DEFER, INODE), 0);
	cr_expect_eq(reason_clear(&s.sp, SPOOL_DEFER, INODE), 0);
	cr_expect_eq(read_back(&s, &g), -ENOENT);
	scratch_close(&s);
}

/* In the queue of an instance that several users share the file gets a mode
 * for its group, too. A line that names no other message, or names ours in
 * another field, is no mark.
 * mutation: common/spool/reason.c: append() shares a file that is marked. */
Test(reason, D37_a_warning_is_a_mark_of_one_message)
{
	const struct queue_id id = { 1700000000 * USEC_PER_SEC, 7, 1, INODE };
	const struct queue_id other = { 1700000000 * USEC_PER_SEC, 8, 1,
		INODE };
	char text[QUEUE_ID_SIZE];
	struct scratch s;
	uint32_t count;
	int shared;

	queue_id_format(&id, text);
	for (shared = 0; shared < 2; shared++) {
		scratch_open(&s);
		s.sp.private = shared == 0;
		cr_expect_eq(reason_marks(&s.sp, &id), -ENOENT);
		cr_assert_eq(
		    reason_add_report(&s.sp, INODE, id.arrival_wall, text), 0);
		cr_expect_eq(reason_marks(&s.sp, &id), 0);
		cr_assert_eq(reason_clear(&s.sp, SPOOL_BOUNCE, INODE), 0);
		cr_assert_eq(
		    reason_add_warning(&s.sp, &other, id.arrival_wall, text),
		    0);
		cr_expect_eq(reason_marks(&s.sp, &id), 0);
		cr_expect_eq(reason_marks(&s.sp, &other), REASON_WARNED);
		cr_assert_eq(
		    reason_add_warning(&s.sp, &id, id.arrival_wall, "A"), 0);
		cr_expect_eq(reason_marks(&s.sp, &id), REASON_WARNED);
		cr_assert_eq(reason_add_expiry(&s.sp, &id, id.arrival_wall), 0);
		cr_expect_eq(
		    reason_marks(&s.sp, &id), REASON_WARNED | REASON_GIVEN_UP);
		cr_assert_eq(reason_count_reports(&s.sp, INODE, &count), 0);
		cr_expect_eq(count, 2);
		cr_assert_eq(reason_clear(&s.sp, SPOOL_BOUNCE, INODE), 0);
		scratch_close(&s);
	}
}

/* Writes are short, so that a death cuts a line, too.
 * mutation: common/spool/reason.c: append_marked() sets the bit behind the
 * lines. */
Test(reason, D37_P23_a_mark_that_a_death_cut_off_never_counts)
{
	const struct queue_id id = { 1700000000 * USEC_PER_SEC, 7, 1, INODE };
	struct scratch s;
	bool cut, warns;
	unsigned kind, nth;
	int r, before;

	scratch_open(&s);
	for (kind = 0; kind < 2; kind++)
		for (nth = 1, cut = true; cut; nth++) {
			warns = kind == 0;
			fault_cut(nth);
			fault_short_writes(10);
			r = warns
			    ? reason_add_warning(
				  &s.sp, &id, id.arrival_wall, "A")
			    : reason_add_expiry(&s.sp, &id, id.arrival_wall);
			cut = fault_was_cut();
			fault_reset();
			cr_expect(cut || r == 0);
			before = reason_marks(&s.sp, &id);
			before = before < 0 ? 0 : before;
			cr_expect(cut ||
			    before ==
				(warns ? REASON_WARNED : REASON_GIVEN_UP));
			cr_assert_eq(
			    reason_add_release(&s.sp, &id, id.arrival_wall), 0);
			cr_expect_eq(reason_marks(&s.sp, &id),
			    before | REASON_RELEASED, "kind %u, call %u", kind,
			    nth);
			cr_assert_eq(
			    reason_clear(&s.sp, SPOOL_BOUNCE, INODE), 0);
		}
	scratch_close(&s);
}

Test(reason, C6_hostile_text_stays_on_its_line)
{
	struct reason hostile = refused;
	struct got g = { 0 };
	struct scratch s;

	scratch_open(&s);
	hostile.text = "550 no\r\n7\t1\t2.0.0\tx\ty\tforged\x1b[2J\xff%n";
	hostile.address = "a\tb\n@example.org";
	cr_assert_eq(reason_add(&s.sp, SPOOL_DEFER, INODE, &hostile), 0);
	cr_assert_eq(read_back(&s, &g), 0);
	cr_expect_eq(g.n, 1u);
	cr_expect_eq(g.last.index, 3u);
	cr_expect_str_eq(g.address, "a?b?@example.org");
	cr_expect_str_eq(g.text, "550 no??7?1?2.0.0?x?y?forged?[2J?%n");
	scratch_close(&s);
}

Test(reason, very_long_text_is_cut)
{
	static char text[100000];
	struct reason longest = refused;
	struct got g = { 0 };
	struct scratch s;

	scratch_open(&s);
	memset(text, 'x', sizeof(text) - 1);
	longest.text = longest.address = longest.relay = text;
	cr_assert_eq(reason_add(&s.sp, SPOOL_DEFER, INODE, &longest), 0);
	cr_assert_eq(reason_add(&s.sp, SPOOL_DEFER, INODE, &refused), 0);
	cr_assert_eq(read_back(&s, &g), 0);
	cr_expect_eq(g.n, 2u);
	cr_expect_str_eq(g.text, refused.text);
	scratch_close(&s);
}

/* What is not a line of ours is passed over; the lines around it count. */
Test(reason, torn_and_foreign_lines)
{
	static const char good[] = "1\t2\t4.0.0\tr\ta\tgood\n";
	static const struct {
		const char *name, *before;
		unsigned want; /* lines that count, with the good one behind */
	} rows[] = {
		{ "nothing", "", 1 },
		{ "torn, then ended", "1\t2\t4.0.0\n", 1 },
		{ "empty lines", "\n\n", 1 },
		{ "a field too many", "1\t2\t4.0.0\tr\ta\tt\tmore\n", 1 },
		{ "no number", "x\t2\t4.0.0\tr\ta\tt\n", 1 },
		{ "negative", "-1\t2\t4.0.0\tr\ta\tt\n", 1 },
		{ "index of 2^32", "4294967296\t2\t4.0.0\tr\ta\tt\n", 1 },
		{ "time that overflows",
		    "1\t9223372036854775807\t4.0.0\tr\ta\tt\n", 1 },
		{ "another good one", "1\t2\t4.0.0\tr\ta\tfirst\n", 2 },
	};
	struct got g = { 0 };
	struct scratch s;
	char text[512];
	size_t i;

	scratch_open(&s);
	for (i = 0; i < ARRAY_LEN(rows); i++) {
		snprintf(text, sizeof(text), "%s%s", rows[i].before, good);
		scratch_spill(scratch_path(&s, SPOOL_DEFER, INODE), text);
		cr_assert_eq(read_back(&s, &g), 0);
		cr_expect_eq(g.n, rows[i].want, "%s: %u", rows[i].name, g.n);
		cr_expect_str_eq(g.text, "good");
	}
	/* The end is missing: the line does not count. */
	snprintf(
	    text, sizeof(text), "%s%.*s", good, (int)sizeof(good) - 2, good);
	scratch_spill(scratch_path(&s, SPOOL_DEFER, INODE), text);
	cr_assert_eq(read_back(&s, &g), 0);
	cr_expect_eq(g.n, 1u);
	/* What comes next stands on a line of its own. */
	cr_assert_eq(reason_add(&s.sp, SPOOL_DEFER, INODE, &refused), 0);
	cr_assert_eq(read_back(&s, &g), 0);
	cr_expect_str_eq(g.text, refused.text);
	scratch_close(&s);
}

/* Every length of a file of two lines, as a crash may leave it. */
Test(reason, every_torn_end)
{
	static const char text[] = "1\t2\t4.0.0\tr\ta\tfirst\n"
				   "2\t2\t4.0.0\tr\ta\tsecond\n";
	const size_t first = (size_t)(strchr(text, '\n') - text) + 1;
	struct got g = { 0 };
	struct scratch s;
	size_t len;

	scratch_open(&s);
	for (len = 0; len < sizeof(text); len++) {
		char part[sizeof(text)] = "";

		memcpy(part, text, len);
		scratch_spill(scratch_path(&s, SPOOL_DEFER, INODE), part);
		cr_assert_eq(read_back(&s, &g), 0);
		cr_expect_eq(g.n,
		    len == sizeof(text) - 1 ? 2u
			: len >= first      ? 1u
					    : 0u);
	}
	scratch_close(&s);
}

/* Every length that a crash may leave of the line of a report: the failure in
 * front of it counts as told only when all of it is there.
 * mutation: common/spool/reason.c: end_half_line() adds a line end alone. */
Test(reason, D36_half_the_line_of_a_report_is_no_report)
{
	static const char text[] = "1\t2\t5.0.0\tr\ta\tfirst\n"
				   "report\t1700000000\tid\n";
	const size_t first = (size_t)(strchr(text, '\n') - text) + 1;
	uint32_t reports;
	struct got g;
	struct scratch s;
	size_t len;

	scratch_open(&s);
	for (len = first; len < sizeof(text); len++) {
		char part[sizeof(text)] = "";
		const bool whole = len == sizeof(text) - 1;

		memcpy(part, text, len);
		scratch_spill(scratch_path(&s, SPOOL_BOUNCE, INODE), part);
		cr_assert_eq(
		    reason_add(&s.sp, SPOOL_BOUNCE, INODE, &refused), 0);
		cr_assert_eq(reason_count_reports(&s.sp, INODE, &reports), 0);
		cr_expect_eq(reports, whole ? 1u : 0u, "%zu", len);
		g = (struct got){ 0 };
		cr_assert_eq(
		    reason_read_after(&s.sp, INODE, reports, take, &g), 0);
		cr_expect_eq(g.n, whole ? 1u : 2u, "%zu", len);
	}
	scratch_close(&s);
}

struct told_got {
	bool told[4];
};

static int
take_untold(const struct reason *reason, void *arg)
{
	((struct told_got *)arg)->told[reason->index] = false;
	return 0;
}

static void
take_told(uint32_t index, void *arg)
{
	struct told_got *g = arg;

	if (index == REASON_ALL)
		memset(g->told, true, sizeof(g->told));
	else
		g->told[index] = true;
}

/* And of no recipient without a reason. */
Test(reason, D36_a_part_of_a_report_tells_of_its_reasons_alone)
{
	static const struct {
		const char *text;
		bool told[4];
	} files[] = {
		{ "report\t9\tid\tlines\t2\n", { true, true, false, false } },
		{ "report\t9\tid\tlines\t1\nreport\t9\tid\tlines\t1\n",
		    { true, true, false, false } },
		{ "report\t9\tid\tlines\t2\n1\t2\t5\tr\ta\tagain\n",
		    { true, false, false, false } },
		{ "report\t9\tid\trcpt\t2\n", { false, false, true, false } },
		{ "report\t9\tid\n", { true, true, true, true } },
	};
	char text[256];
	struct told_got g;
	struct scratch s;
	size_t i;

	scratch_open(&s);
	for (i = 0; i < ARRAY_LEN(files); i++) {
		snprintf(text, sizeof(text), "%s%s",
		    "0\t2\t5\tr\ta\tx\n1\t2\t5\tr\ta\tx\n"
		    "2\t2\t5\tr\ta\tx\n",
		    files[i].text);
		scratch_spill(scratch_path(&s, SPOOL_BOUNCE, INODE), text);
		memset(&g, 0, sizeof(g));
		cr_assert_eq(
		    reason_read_told(&s.sp, INODE, take_untold, take_told, &g),
		    0);
		cr_expect_arr_eq(
		    g.told, files[i].told, sizeof(g.told), "%zu", i);
	}
	scratch_close(&s);
}

/* In bounded memory; and what stands at its end is not taken for a line, where
 * ever the reader's buffer happens to end. */
Test(reason, a_line_that_is_too_long_is_passed_over)
{
	static const char end[] = "9\t2\t4.0.0\tr\ta\tforged\n"
				  "1\t2\t4.0.0\tr\ta\tgood\n";
	static char text[100000];
	struct got g = { 0 };
	struct scratch s;
	size_t len;

	scratch_open(&s);
	for (len = 5000; len < sizeof(text) - sizeof(end); len += 8) {
		memset(text, '7', len);
		memcpy(text + len, end, sizeof(end));
		if (len % 4096 != 0 && len % 1000 != 0)
			continue;
		scratch_spill(scratch_path(&s, SPOOL_DEFER, INODE), text);
		cr_assert_eq(read_back(&s, &g), 0);
		cr_expect_eq(g.n, 1u, "%zu", len);
		cr_expect_str_eq(g.text, "good");
	}
	scratch_close(&s);
}

/* mutation: common/spool/reason.c: reason_add() ignores what close() says. */
Test(reason, D11_a_close_that_fails_is_a_write_that_failed)
{
	struct scratch s;
	uint64_t inode;

	scratch_open(&s);
	inode = scratch_put(&s).inode;
	fail_nth(FAULT_CLOSE, 1, EIO);
	cr_expect_eq(
	    reason_add(&s.sp, SPOOL_BOUNCE, inode,
		&(struct reason){ 0, 0, "5.1.1", "none", "a", "no", 0 }),
	    -EIO);
	scratch_close(&s);
}

Test(reason, D3_no_space_leaves_the_file_as_it_was)
{
	struct got g = { 0 };
	struct scratch s;
	struct stat before, after;
	char path[256];

	scratch_open(&s);
	snprintf(
	    path, sizeof(path), "%s", scratch_path(&s, SPOOL_DEFER, INODE));
	cr_assert_eq(reason_add(&s.sp, SPOOL_DEFER, INODE, &refused), 0);
	cr_assert_eq(stat(path, &before), 0);
	fault_short_writes(10);
	fail_nth(FAULT_WRITE, 3, ENOSPC);
	cr_expect_eq(reason_add(&s.sp, SPOOL_DEFER, INODE, &refused), -ENOSPC);
	fault_reset();
	cr_assert_eq(stat(path, &after), 0);
	cr_expect_eq(after.st_size, before.st_size);
	cr_assert_eq(read_back(&s, &g), 0);
	cr_expect_eq(g.n, 1u);
	fault_short_writes(10);
	cr_expect_eq(reason_add(&s.sp, SPOOL_DEFER, INODE, &refused), 0);
	cr_assert_eq(read_back(&s, &g), 0);
	cr_expect_eq(g.n, 2u, "D10");
	fault_reset();
	fail_nth(FAULT_CLOSE, 1, EIO);
	cr_expect_eq(
	    reason_add(&s.sp, SPOOL_DEFER, INODE, &refused), -EIO, "D11");
	scratch_close(&s);
}

Test(reason, X1_no_link_is_followed)
{
	struct got g = { 0 };
	struct scratch s;
	char victim[128], path[256];
	struct stat st;

	scratch_open(&s);
	snprintf(victim, sizeof(victim), "%s/victim", s.top);
	snprintf(
	    path, sizeof(path), "%s", scratch_path(&s, SPOOL_DEFER, INODE));
	scratch_spill(victim, "");
	cr_assert_eq(symlink(victim, path), 0);
	cr_expect_eq(reason_add(&s.sp, SPOOL_DEFER, INODE, &refused), -ELOOP);
	cr_expect_eq(read_back(&s, &g), -ELOOP);
	cr_expect_eq(spool_set_due(&s.sp, INODE, 5 * USEC_PER_SEC), 0,
	    "of the link itself");
	cr_expect_eq(stat(victim, &st), 0);
	cr_expect_eq(st.st_size, 0);
	cr_expect_gt(st.st_mtime, 5);
	cr_expect_eq(reason_clear(&s.sp, SPOOL_DEFER, INODE), 0);
	cr_assert_eq(mkfifo(path, 0600), 0);
	cr_expect_eq(reason_add(&s.sp, SPOOL_DEFER, INODE, &refused), -EPERM);
	cr_expect_eq(read_back(&s, &g), -EPERM);
	scratch_close(&s);
}

/* mutation: common/spool/reason.c: take_attempt() takes any line. */
Test(reason, attempts_are_counted_by_their_line)
{
	struct reason first = refused;
	struct got g = { 0 };
	struct scratch s;

	scratch_open(&s);
	cr_expect_eq(reason_attempts(&s.sp, INODE), 0, "no file");
	cr_assert_eq(reason_add(&s.sp, SPOOL_DEFER, INODE, &refused), 0);
	cr_expect_eq(reason_attempts(&s.sp, INODE), 0, "no line of it");
	cr_assert_eq(reason_clear(&s.sp, SPOOL_DEFER, INODE), 0);
	first.attempt = 7;
	cr_assert_eq(reason_add(&s.sp, SPOOL_DEFER, INODE, &first), 0);
	cr_assert_eq(reason_add(&s.sp, SPOOL_DEFER, INODE, &refused), 0);
	cr_expect_eq(reason_attempts(&s.sp, INODE), 7);
	cr_assert_eq(read_back(&s, &g), 0);
	cr_expect_eq(g.n, 2u, "the line is no reason");
	scratch_spill(scratch_path(&s, SPOOL_DEFER, INODE),
	    "attempt\t99999999999\n1\t2\t4.0.0\tr\ta\tt\n");
	cr_expect_eq(reason_attempts(&s.sp, INODE), 0, "no number");
	scratch_close(&s);
}

/* mutation: common/spool/reason_read.c: the error of read_file() counts as no
 * attempt. */
Test(reason, attempts_that_cannot_be_read_are_an_error)
{
	uint32_t count = 99;
	struct scratch s;

	scratch_open(&s);
	cr_expect_eq(reason_count_attempts(&s.sp, INODE, &count), 0);
	cr_expect_eq(count, 0, "no file");
	count = 99;
	cr_assert_eq(mkdir(scratch_path(&s, SPOOL_DEFER, INODE), 0700), 0);
	cr_expect_eq(reason_count_attempts(&s.sp, INODE, &count), -EPERM);
	cr_expect_eq(count, 99);
	cr_expect_eq(rmdir(scratch_path(&s, SPOOL_DEFER, INODE)), 0);
	scratch_close(&s);
}
