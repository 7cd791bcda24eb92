/* Memory for many objects of one size. */
#include "base/slab.h"

#include <criterion/criterion.h>
#include <malloc.h>
#include <stdbool.h>
#include <string.h>

#define N    5000
#define SIZE 72

static unsigned char *object[N];

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

	slab_init(&s, SIZE);
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

	slab_init(&s, SIZE);
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

	slab_init(&s, SIZE);
	get_all(&s);
	cr_expect_leq(in_use(), before + N * SIZE * 21 / 20 + SLAB_PAGE);
	for (i = 0; i < N; i++)
		slab_put(&s, object[i]);
	cr_expect_leq(in_use(), before + SLAB_PAGE + 4096);
	slab_done(&s);
	cr_expect_leq(in_use(), before + 4096);
}
