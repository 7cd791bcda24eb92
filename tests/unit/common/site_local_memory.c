/* What sites cost, and what they do when there is no memory. */
#include "base/slab.h"
#include "site/site.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>

#include "site_local_scratch.h"

#define N     20000
/* What malloc() holds back of what was freed. */
#define CACHE 4096
/* A page of each slab that is empty, that of the first piece of the chains, and
 * where the pieces are. */
#define KEPT  (3 * SLAB_PAGE + 4096 + CACHE)

static size_t
in_use(void)
{
	struct mallinfo2 now = mallinfo2();

	return now.uordblks + now.hblkhd;
}

/* 84 bytes and the name, which has 23 here, in lines of the cache; and the
 * chain. Each assertion, also one that holds, is a message to the process that
 * runs the tests, which waits in the memory of this one: so they come last. */
Test(site_local_memory, at_most_160_bytes_per_site)
{
	static struct site *all[N];
	size_t before, with, after;
	struct fixture t;
	char name[32];
	int i, opened = 0;

	begin(&t, &plain, &exact, N, 1);
	before = in_use();
	for (i = 0; i < N; i++) {
		snprintf(name, sizeof(name), "mx.site-%06d.example", i);
		all[i] = t.f->open(t.table, 0, name, 0);
		opened += all[i] != NULL;
	}
	with = in_use();
	for (i = 0; i < opened; i++)
		t.f->close(t.table, all[i], 0);
	after = in_use();
	cr_expect_eq(opened, N);
	cr_expect_leq(with - before, 160 * N, "%zu", (with - before) / N);
	cr_expect_leq(after, before + KEPT, "nothing learned, nothing kept");
	end(&t);
}

Test(site_local_memory, nothing_stays_of_a_death)
{
	struct fixture t;
	struct site *a;
	size_t before;
	int i;

	begin(&t, &plain, &exact, 10, 1);
	a = open_at(&t, "a", 0);
	before = in_use();
	for (i = 0; i < 1000; i++) {
		usec_t until = kill_at(&t, a, 0);

		if (i % 2 == 0)
			t.f->flush(t.table, 0);
		else
			(void)t.f->state(t.table, a, until);
	}
	cr_expect_leq(in_use(), before + CACHE);
	t.f->close(t.table, a, 0);
	end(&t);
}

/* The allocators of sanitizers end the program instead. */
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define NO_EXHAUSTION
#endif
#endif
#else
#define NO_EXHAUSTION
#endif

#ifndef NO_EXHAUSTION
static void *volatile eaten;
static struct site *opened[1000];
static int nopened;

/* Until not even the smallest piece is left. */
static void
exhaust(struct rlimit *ret_before)
{
	struct rlimit none = { 0, 0 };
	size_t size;

	cr_assert_eq(getrlimit(RLIMIT_AS, ret_before), 0);
	none.rlim_max = ret_before->rlim_max;
	cr_assert_eq(setrlimit(RLIMIT_AS, &none), 0);
	for (size = 1 << 20; size >= 8; size -= size > 1024 ? size / 2 : 8)
		while ((eaten = malloc(size)) != NULL)
			;
}

/* A slab may have room for some. NULL: as it should be. */
static struct site *
open_until_none_is_left(struct fixture *t)
{
	struct site *site;
	char name[3] = "b";
	int i;

	for (i = 0; i < 1000; i++) {
		name[0] = (char)('b' + i / 24);
		name[1] = (char)('b' + i % 24);
		site = t->f->open(t->table, 0, name, 0);
		if (site == NULL)
			return NULL;
		opened[nopened++] = site;
	}
	return site;
}

Test(site_local_memory, none_left)
{
	struct local *sites = NULL;
	struct site_view dead;
	struct rlimit before;
	struct fixture t;
	struct site *a, *b, *again;
	int r;

	begin(&t, &plain, &exact, 10, 1);
	a = open_at(&t, "a", 0);
	take(&t, a, 0);
	take(&t, a, 0);
	exhaust(&before);
	r = local_new(&plain, 1, &exact, 1, 1, &sites);
	b = open_until_none_is_left(&t);
	again = t.f->open(t.table, 0, "A", 0);
	done(&t, a, SITE_FAILED, 0);
	done(&t, a, SITE_FAILED, 0);
	dead = view(&t, a);
	setrlimit(RLIMIT_AS, &before);
	cr_expect_eq(r, -ENOMEM);
	cr_expect_null(b);
	cr_expect_eq(again, a, "it is there already");
	cr_expect_eq(dead.state, SITE_DEAD, "all the same");
	cr_expect_str_eq(dead.why, "unknown");
	t.f->flush(t.table, 0);
	cr_expect_eq(t.f->state(t.table, a, 0), SITE_ROOM);
	t.f->close(t.table, a, 0);
	t.f->close(t.table, a, 0);
	while (nopened > 0)
		t.f->close(t.table, opened[--nopened], 0);
	end(&t);
}
#endif
