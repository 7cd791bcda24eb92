/* Backlog, ring, foreign names, census: without a disk. */
#include "todo-proc/pure.h"
#include "todo-proc/todo.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define S USEC_PER_SEC

/* ---- inbox ---- */

Test(inbox, the_oldest_first_and_each_once)
{
	struct inbox b;
	struct inbox_file c;

	inbox_init(&b);
	cr_assert_eq(inbox_add(&b, 7, 300), 1);
	cr_assert_eq(inbox_add(&b, 8, 100), 1);
	cr_assert_eq(inbox_add(&b, 9, 200), 1);
	cr_assert_eq(inbox_add(&b, 8, 100), 0, "a bell and the scan");
	cr_assert(inbox_take(&b, false, &c));
	cr_assert_eq(c.inode, 8);
	cr_assert(inbox_take(&b, false, &c));
	cr_assert_eq(c.inode, 9);
	cr_assert_eq(inbox_add(&b, 7, 400), 1, "another file (D22)");
	cr_assert(inbox_take(&b, false, &c));
	cr_assert_eq(c.at, 300);
	cr_assert(inbox_take(&b, false, &c));
	cr_assert_not(inbox_take(&b, false, &c));
	inbox_done(&b);
}

/* A million files: the oldest are kept, in order, and few of the newest. */
Test(inbox, D23_bounded_and_in_order)
{
	struct inbox b;
	struct inbox_file c;
	uint64_t i, n = INBOX_MAX * 4, newest = 0;
	usec_t last = -1;

	inbox_init(&b);
	for (i = 1; i <= n; i++) {
		inbox_add(&b, i, (usec_t)((i * 7919) % n));
		cr_assert_leq(b.nready, INBOX_MAX);
		cr_assert_leq(b.nnewest, INBOX_NEWEST);
	}
	cr_assert(b.more);
	cr_assert_eq(
	    inbox_add(&b, n + 1, (usec_t)(n / 2)), 0, "neither old nor new");
	for (i = 0; inbox_take(&b, false, &c); i++) {
		if (c.at >= (usec_t)(n - INBOX_NEWEST)) {
			newest++;
			continue;
		}
		/* The end of the oldest, when the newest have gone. */
		if (b.nnewest > 0)
			cr_assert_eq(c.at, last + 1);
		last = c.at;
		if (!inbox_is_low(&b))
			cr_assert_geq(b.nready, INBOX_LOW);
	}
	cr_assert_eq(newest, INBOX_NEWEST);
	cr_assert_eq(i, INBOX_MAX + INBOX_NEWEST);
	cr_assert(inbox_is_low(&b));
	inbox_scan_begins(&b);
	cr_assert_eq(inbox_add(&b, n + 1, (usec_t)(n / 2)), 1);
	inbox_done(&b);
}

static usec_t
taken_at(struct inbox *b)
{
	struct inbox_file c = { 0 };

	cr_assert(inbox_take(b, false, &c));
	return c.at;
}

/* mutation: take_ready() never takes the newest. */
Test(inbox, N50_of_many_the_newest_has_its_turn)
{
	struct inbox b;
	usec_t i, n = INBOX_MAX + 2 * INBOX_NEWEST;

	inbox_init(&b);
	for (i = 1; i <= n; i++)
		inbox_add(&b, (uint64_t)i, i);
	for (i = 1; i <= INBOX_NEWEST; i++) {
		cr_expect_eq(taken_at(&b), i, "the oldest");
		cr_expect_eq(taken_at(&b), n + 1 - i, "the newest");
	}
	inbox_done(&b);
	inbox_init(&b);
	for (i = 1; i <= INBOX_FEW; i++)
		inbox_add(&b, (uint64_t)i, i);
	for (i = 1; i <= INBOX_FEW; i++)
		cr_expect_eq(taken_at(&b), i, "few are in order");
	inbox_done(&b);
}

Test(inbox, what_was_too_early_comes_again)
{
	struct inbox b;
	struct inbox_file c = { .inode = 5, .at = 77 };
	usec_t now = 1000 * S;
	int i;

	inbox_init(&b);
	inbox_later(&b, &c, now, 0);
	inbox_later(&b, &c, now, 0);
	cr_assert_eq(b.nlater, 1);
	cr_assert_eq(inbox_wake(&b, now), now + INBOX_WAIT_MIN);
	cr_assert_not(inbox_take(&b, false, &c));
	now += INBOX_WAIT_MIN;
	cr_assert_eq(inbox_wake(&b, now), USEC_NEVER);
	cr_assert(inbox_take(&b, false, &c));
	for (i = 0; i < 300; i++) {
		usec_t at;

		inbox_later(&b, &c, now, 0);
		at = inbox_wake(&b, now);
		cr_assert_leq(at - now, INBOX_WAIT_MAX);
		now = at;
		inbox_wake(&b, now);
		cr_assert(inbox_take(&b, false, &c));
		cr_assert_eq(c.inode, 5);
	}
	inbox_later(&b, &c, now, 60 * S);
	cr_assert_eq(inbox_wake(&b, now), now + 60 * S);
	for (i = 0; i < 3000; i++)
		inbox_later(&b,
		    &(struct inbox_file){ .inode = 10u + (unsigned)i }, now, 0);
	cr_assert_eq(b.nlater, INBOX_LATER_MAX);
	inbox_done(&b);
}

/* mutation: inbox_take() takes from fresh only when nothing is ready. */
Test(inbox, N19_what_rang_and_what_was_found_take_turns)
{
	struct inbox b;
	struct inbox_file c;
	uint64_t i;

	inbox_init(&b);
	for (i = 1; i <= 100; i++)
		inbox_add(&b, i, (usec_t)i);
	for (i = 1001; i <= 1010; i++)
		cr_assert_eq(inbox_ring(&b, i, (usec_t)(9000 - i)), 1);
	cr_assert_eq(inbox_ring(&b, 1001, 9000 - 1001), 0, "known");
	cr_assert_eq(inbox_add(&b, 1001, 9000 - 1001), 0, "known");
	for (i = 0; i < 10; i++) {
		cr_assert(inbox_take(&b, false, &c));
		cr_assert_eq(c.inode, 1010 - i, "the oldest that rang");
		cr_assert(inbox_take(&b, false, &c));
		cr_assert_eq(c.inode, 1 + i, "the oldest that was found");
	}
	cr_assert(inbox_take(&b, false, &c));
	cr_assert_eq(c.inode, 11);
	inbox_done(&b);
}

Test(inbox, a_ring_makes_fresh_what_was_found)
{
	struct inbox b;
	struct inbox_file c;

	inbox_init(&b);
	cr_assert_not(inbox_has(&b, false));
	inbox_add(&b, 1, 100);
	inbox_add(&b, 2, 200);
	cr_assert(inbox_has(&b, false));
	cr_assert_not(inbox_has(&b, true), "a scan has just begun");
	cr_assert_not(inbox_take(&b, true, &c));
	cr_assert_eq(inbox_ring(&b, 2, 200), 0, "known");
	cr_assert_eq(b.nready + b.nfresh, 2);
	cr_assert(inbox_take(&b, true, &c));
	cr_assert_eq(c.inode, 2);
	cr_assert(inbox_take(&b, false, &c));
	cr_assert_eq(c.inode, 1);
	cr_assert_not(inbox_take(&b, false, &c));
	inbox_done(&b);
}

/* mutation: inbox_ring() leaves out what has no room in fresh. */
Test(inbox, D23_fresh_is_bounded_too)
{
	struct inbox b;
	uint64_t i, n = 0;
	struct inbox_file c;

	inbox_init(&b);
	for (i = 1; i <= INBOX_MAX * 3; i++)
		inbox_ring(&b, i, (usec_t)i);
	cr_assert_eq(b.nfresh, INBOX_MAX);
	cr_assert_eq(b.nready, INBOX_MAX);
	cr_assert_eq(b.nnewest, INBOX_NEWEST);
	cr_assert(b.more, "the scan finds the others");
	while (inbox_take(&b, false, &c))
		n++;
	cr_assert_eq(n, INBOX_MAX * 2 + INBOX_NEWEST);
	inbox_done(&b);
}

/* ---- offered ---- */

Test(offered, D22_inode_and_time_name_a_file)
{
	struct offered h = { 0 };
	uint64_t i;

	offered_add(&h, 7, 100, S);
	cr_assert(offered_has(&h, 7, 100, S));
	cr_assert_not(offered_has(&h, 7, 101, S), "a new file of that inode");
	cr_assert_not(offered_has(&h, 8, 100, S));
	cr_assert_not(offered_has(&h, 7, 100, S + OFFERED_TIME));
	for (i = 0; i < OFFERED_MAX - 1; i++)
		offered_add(&h, 100 + i, 1, S);
	cr_assert(offered_has(&h, 7, 100, S));
	offered_add(&h, 99, 1, S);
	cr_assert_not(offered_has(&h, 7, 100, S));
	offered_forget(&h);
	cr_assert_not(offered_has(&h, 99, 1, S));
}

/* ---- foreign ---- */

Test(foreign, D17_one_warning_each_and_not_too_many)
{
	struct foreign f = { 0 };
	char name[16];
	int i, said = 0;

	cr_assert(foreign_warn(&f, 1, "core", S));
	cr_assert_not(foreign_warn(&f, 1, "core", 2 * S));
	cr_assert(foreign_warn(&f, 2, "core", 2 * S));
	for (i = 0; i < 10000; i++) {
		snprintf(name, sizeof(name), "n%d", i);
		said += foreign_warn(&f, 1, name, 3 * S);
	}
	cr_assert_eq(said, FOREIGN_SAID - 2);
	cr_assert(foreign_warn(&f, 1, "later", 3600 * S));
}

/* ---- bells ---- */

Test(bells, I7_what_nobody_who_rings_sends)
{
	static const struct {
		const char *name;
		struct bell bell;
		bool want;
	} cases[] = {
		{ "right", { 1, 0, 1 }, true },
		{ "largest", { INT32_MAX, SPOOL_SPLIT_MAX - 1, INT64_MAX },
		    true },
		{ "no sender", { 0, 0, 1 }, false },
		{ "negative sender", { -1, 0, 1 }, false },
		{ "split out of range", { 1, SPOOL_SPLIT_MAX, 1 }, false },
		{ "negative split", { 1, UINT32_MAX, 1 }, false },
		{ "no inode", { 1, 0, 0 }, false },
		{ "negative inode", { 1, 0, UINT64_MAX }, false },
	};
	size_t i;

	for (i = 0; i < ARRAY_LEN(cases); i++)
		cr_assert_eq(bell_is_right(&cases[i].bell), cases[i].want, "%s",
		    cases[i].name);
}

/* ---- census ---- */

static const struct census_limits limits = {
	.limit = { 3, 1, 50 },
	.ntransports = 3,
};

static struct census_row
count(uint32_t transport, const char *const list[][2], size_t n)
{
	struct census c;
	size_t i;

	cr_assert_eq(census_begin(&c, &limits, (uint32_t)n), 0);
	do
		for (i = 0; i < n; i++)
			census_add(&c, transport, list[i][0], list[i][1]);
	while (census_pass_ends(&c));
	census_done(&c);
	return c.rows[transport];
}

Test(census, entries_are_the_sum_of_rounded_up_batches)
{
	static const char *const list[][2] = {
		{ "a", "1@a" },
		{ "a", "2@a" },
		{ "A", "3@A" },
		{ "a", "4@a" },
		{ "b", "1@b" },
		{ "ab", "1@ab" },
		{ "a", "1@A" },
	};
	struct census_row r = count(0, list, ARRAY_LEN(list));

	cr_assert_eq(r.recipients, 7);
	cr_assert_eq(r.destinations, 3);
	cr_assert_eq(r.entries, 4); /* a: 5 in threes, b, ab */
	/* The recipient is the destination. */
	r = count(1, list, ARRAY_LEN(list));
	cr_assert_eq(r.destinations, 6);
	cr_assert_eq(r.entries, 7);
}

/* The names of n recipients, each at a nexthop of its own but for case. */
static size_t
names_of(uint32_t transport, uint32_t n, char *out)
{
	struct buf names = { 0 };
	char nexthop[16], address[24];
	struct census c;
	uint32_t i;
	size_t len;

	cr_assert_eq(census_begin(&c, &limits, n), 0);
	for (i = 0; i < n; i++) {
		snprintf(
		    nexthop, sizeof(nexthop), "%c%u", i % 2 ? 'h' : 'H', i / 2);
		snprintf(address, sizeof(address), "U%u@x", i / 2);
		census_add(&c, transport, nexthop, address);
	}
	census_names(&c, &names);
	len = names.len;
	memcpy(out, buf_str(&names), len);
	buf_done(&names);
	census_done(&c);
	return len;
}

/* mutation: add_name() is called for each recipient. */
Test(census, names_of_all_destinations_while_they_are_few)
{
	char out[1024];

	cr_assert_eq(names_of(0, 0, out), 0);
	cr_assert_eq(names_of(0, 2, out), 10);
	cr_assert_arr_eq(out, "\0\0\0\0\2\0\0\0h0", 10);
	cr_assert_eq(names_of(1, 2, out), 13);
	cr_assert_arr_eq(out, "\1\0\0\0\5\0\0\0u0@h0", 13,
	    "the recipient is the destination");
	cr_assert_eq(names_of(0, 32, out), 10 * 10 + 6 * 11);
	cr_assert_eq(names_of(0, 33, out), 0, "too many: none at all");
}

/* mutation: todo-proc/census.c, hash_of() adds the address when it is NULL, or
 * examine.c passes the address of local mail. */
Test(census, X12_an_account_is_one_destination_with_an_entry_each)
{
	static const char *const list[][2] = {
		{ "alice", NULL },
		{ "ALICE", NULL },
		{ "alice", NULL },
		{ "bob", NULL },
	};
	struct census_row r = count(1, list, ARRAY_LEN(list));

	cr_assert_eq(r.recipients, 4);
	cr_assert_eq(r.destinations, 2);
	cr_assert_eq(r.entries, 4);
}

/* Any message, beside a plain count. */
Test(census, exact)
{
	enum {
		SITES = 37,
		N = 5000
	};
	uint32_t plain[SITES] = { 0 }, entries = 0, used = 0, i;
	static char names[N][2][16];
	const char *list[N][2];
	struct census_row r;

	srand(11);
	for (i = 0; i < N; i++) {
		uint32_t site = (uint32_t)(rand() % SITES * (rand() % 2));

		snprintf(names[i][0], 16, "%c%u", rand() % 2 ? 'H' : 'h', site);
		snprintf(names[i][1], 16, "u%u@x", i);
		list[i][0] = names[i][0];
		list[i][1] = names[i][1];
		plain[site]++;
	}
	for (i = 0; i < SITES; i++) {
		entries += (plain[i] + 2) / 3;
		used += plain[i] > 0;
	}
	r = count(0, (const char *const(*)[2])list, N);
	cr_assert_eq(r.recipients, N);
	cr_assert_eq(r.destinations, used);
	cr_assert_eq(r.entries, entries);
}

/* More destinations than the table holds: several passes, the same answer. */
Test(census, exact_for_a_message_of_any_size, .timeout = 60)
{
	const uint32_t n = 1300000;
	struct census c;
	char address[24];
	uint32_t i, passes = 0;

	cr_assert_eq(census_begin(&c, &limits, n), 0);
	cr_assert_eq(c.nplaces, CENSUS_PLACES);
	do {
		for (i = 0; i < n; i++) {
			snprintf(address, sizeof(address), "u%u@x",
			    i < 1200000 ? i : i - 1200000);
			census_add(&c, 1, "x", address);
		}
		passes++;
	} while (census_pass_ends(&c));
	census_done(&c);
	cr_assert_gt(passes, 1);
	cr_assert_eq(c.rows[1].recipients, n);
	cr_assert_eq(c.rows[1].destinations, 1200000);
	cr_assert_eq(c.rows[1].entries, n);
}

/* A table that chance fills before its share is over is counted again. */
Test(census, overflow_is_counted_again)
{
	struct census c;
	char address[24];
	uint32_t i, passes = 0;

	cr_assert_eq(census_begin(&c, &limits, 10), 0);
	do {
		for (i = 0; i < 1000; i++) {
			snprintf(address, sizeof(address), "u%u@x", i);
			census_add(&c, 1, "x", address);
		}
		passes++;
	} while (census_pass_ends(&c));
	census_done(&c);
	cr_assert_gt(passes, 2);
	cr_assert_eq(c.rows[1].recipients, 1000);
	cr_assert_eq(c.rows[1].destinations, 1000);
}
