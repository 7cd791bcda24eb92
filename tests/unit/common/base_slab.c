/* Memory for many objects of one size. */
#include "base/slab.h"

#include <criterion/criterion.h>
#include <malloc.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define N     5000
#define SIZE  72
/* With a source: more than pages of malloc() hold. */
#define MANY  200000
#define BLOCK ((size_t)2 << 20)

static unsigned char *object[N];
static uint64_t *numbered[MANY];

static size_t
in_use(void)
{
	struct mallinfo2 now = mallinfo2();

	return now.uordblks + now.hblkhd;
}

static void
get_all(struct slab *s)
{
	int i;

	for (i = 0; i < N; i++) {
		object[i] = slab_get(s);
		cr_assert_not_null(object[i]);
		cr_assert_eq((uintptr_t)object[i] % 8, 0);
		memset(object[i], i % 251, SIZE);
	}
}

static bool
is_whole(int i)
{
	int k;

	for (k = 0; k < SIZE; k++)
		if (object[i][k] != i % 251)
			return false;
	return true;
}

Test(base_slab, objects_are_apart)
{
	struct slab s;
	int i;

	slab_init(&s, SIZE, NULL);
	get_all(&s);
	for (i = 0; i < N; i++)
		cr_assert(is_whole(i), "%d", i);
	for (i = 0; i < N; i++)
		slab_put(&s, object[i]);
	slab_done(&s);
}

/* Every third one comes back and is taken again; the others keep their
 * content. */
Test(base_slab, what_came_back_is_taken_again)
{
	struct slab s;
	size_t before;
	int i, round;

	slab_init(&s, SIZE, NULL);
	get_all(&s);
	before = in_use();
	for (round = 0; round < 3; round++) {
		for (i = round; i < N; i += 3)
			slab_put(&s, object[i]);
		for (i = round; i < N; i += 3) {
			object[i] = slab_get_zeroed(&s);
			cr_assert_not_null(object[i]);
			cr_assert_eq(object[i][0] | object[i][SIZE - 1], 0);
			memset(object[i], i % 251, SIZE);
		}
	}
	cr_expect_leq(in_use(), before);
	for (i = 0; i < N; i++)
		cr_assert(is_whole(i), "%d", i);
	for (i = N; i > 0; i--)
		slab_put(&s, object[i - 1]);
	slab_done(&s);
}

/* A sanitizer says that nothing is in use. */
Test(base_slab, pages_go_back_but_for_one)
{
	struct slab s;
	size_t before = in_use();
	int i;

	slab_init(&s, SIZE, NULL);
	get_all(&s);
	cr_expect_leq(in_use(), before + N * SIZE * 21 / 20 + SLAB_PAGE);
	for (i = 0; i < N; i++)
		slab_put(&s, object[i]);
	cr_expect_leq(in_use(), before + SLAB_PAGE + 4096);
	slab_done(&s);
	cr_expect_leq(in_use(), before + 4096);
}

/* ---- pages of blocks ---- */

/* Bytes of addresses of this process. */
static size_t
mapped(void)
{
	FILE *f = fopen("/proc/self/statm", "r");
	unsigned long pages;

	cr_assert_not_null(f);
	cr_assert_eq(fscanf(f, "%lu", &pages), 1);
	fclose(f);
	return pages * 4096;
}

static void
number_all(struct slab *s, int from, int step)
{
	int i;

	for (i = from; i < MANY; i += step) {
		numbered[i] = slab_get(s);
		cr_assert_not_null(numbered[i]);
		numbered[i][0] = numbered[i][SIZE / 8 - 1] = (uint64_t)i;
	}
}

static void
put_all(struct slab *s, int from, int step)
{
	int i;

	for (i = from; i < MANY; i += step) {
		cr_assert_eq(numbered[i][0], (uint64_t)i);
		cr_assert_eq(numbered[i][SIZE / 8 - 1], (uint64_t)i);
		slab_put(s, numbered[i]);
	}
}

/* Two slabs, by turns of the objects, share the blocks. */
Test(base_slab, blocks_hold_all_and_go_back)
{
	struct page_source source;
	struct slab a, b;
	size_t before, most;
	bool plain; /* each object is of malloc(), for a sanitizer */

	pages_init(&source);
	slab_init(&a, SIZE, &source);
	slab_init(&b, SIZE, &source);
	before = mapped();
	number_all(&a, 0, 2);
	number_all(&b, 1, 2);
	plain = source.small == 0;
	most = mapped();
	cr_expect(plain ||
	    most <= before + (size_t)MANY * SIZE * 21 / 20 + 2 * BLOCK);
	put_all(&a, 0, 2);
	number_all(&a, 0, 2);
	cr_expect(plain || mapped() <= most + BLOCK, "room is used again");
	put_all(&b, 1, 2);
	put_all(&a, 0, 2);
	slab_done(&a);
	slab_done(&b);
	cr_expect(
	    plain || mapped() <= before + 2 * BLOCK + PAGES_SMALL * SLAB_PAGE);
	pages_done(&source);
	cr_expect(
	    plain || mapped() <= before + BLOCK + PAGES_SMALL * SLAB_PAGE);
}

/* A block begins at an address that is a multiple of its size. */
Test(base_slab, pages_of_blocks_are_apart_and_aligned)
{
	static void *page[PAGES_SMALL + 300];
	static uint16_t size[PAGES_SMALL + 300];
	const size_t n = sizeof(page) / sizeof(page[0]);
	struct page_source source;
	size_t i, k;

	pages_init(&source);
	for (i = 0; i < n; i++) {
		page[i] = pages_get(&source, &size[i]);
		cr_assert_not_null(page[i]);
		cr_assert_eq((uintptr_t)page[i] % SLAB_PAGE, 0);
		cr_assert_eq(size[i] == SLAB_PAGE, i >= PAGES_SMALL);
		for (k = 0; k < i; k++)
			cr_assert_neq(page[i], page[k]);
	}
	for (i = 0; i < n; i++)
		pages_put(&source, page[(i * 7) % n], size[(i * 7) % n]);
	cr_expect_eq(source.small, 0);
	pages_done(&source);
}
