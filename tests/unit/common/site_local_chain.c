/* The table grows and shrinks with its sites, a chain or two at a time. */
#include "site/local.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "site_local_scratch.h"

#define N 20000

static struct site *site[N];

static struct site *
open_nth(struct fixture *t, int i)
{
	char name[32];

	snprintf(name, sizeof(name), "mx%d.example", i);
	return open_at(t, name, 0);
}

static const struct local *
table_of(const struct fixture *t)
{
	return t->table;
}

static void
must_have_all(struct fixture *t, int from, int to)
{
	int i;

	for (i = from; i < to; i++) {
		cr_assert_eq(open_nth(t, i), site[i], "%d", i);
		t->f->close(t->table, site[i], 0);
	}
}

/* Without a long chain, without many chains that are empty, and without a step
 * that moves more than a few. */
Test(site_local_chain, the_table_keeps_up_with_its_sites)
{
	uint64_t before;
	struct fixture t;
	int i;

	begin(&t, &plain, &exact, 10, 1);
	for (i = 0; i < N; i++) {
		before = table_of(&t)->nchains;
		site[i] = open_nth(&t, i);
		cr_assert_leq(table_of(&t)->nchains, before + 1);
		cr_assert_geq(table_of(&t)->nchains, (uint64_t)i + 1);
		if (i % 997 == 0)
			must_have_all(&t, 0, i + 1);
	}
	for (i = 0; i < N; i++) {
		before = table_of(&t)->nchains;
		t.f->close(t.table, site[i], 0);
		cr_assert_geq(table_of(&t)->nchains + 2, before);
		cr_assert_leq(
		    table_of(&t)->nchains, 2 * (uint64_t)(N - i - 1) + 2);
		if (i % 997 == 0)
			must_have_all(&t, i + 1, N);
	}
	cr_expect_leq(table_of(&t)->npieces, 2);
	end(&t);
}

/* Names are hashed eight letters at a time. */
Test(site_local_chain, case_of_any_letter_at_any_place_is_ignored)
{
	char lower[] = "@@@@@@@@[[[[[[[[.example", upper[sizeof(lower)];
	struct site *one;
	struct fixture t;
	size_t at;
	char c;

	begin(&t, &plain, &exact, 10, 1);
	for (at = 0; at < 16; at++)
		for (c = 'a'; c <= 'z'; c++) {
			lower[at] = c;
			memcpy(upper, lower, sizeof(lower));
			upper[at] = (char)(c - 'a' + 'A');
			one = open_at(&t, lower, 0);
			cr_assert_eq(open_at(&t, upper, 0), one, "%s", upper);
			t.f->close(t.table, one, 0);
			t.f->close(t.table, one, 0);
		}
	end(&t);
}
