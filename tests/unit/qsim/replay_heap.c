/* Deliveries end by time, and of one instant in the order of their beginning.
 */
#include <criterion/criterion.h>

#include "qsim/simulate_parts.h"

Test(replay, heap_order)
{
	struct random random = { 1 };
	struct heap heap = { 0 };
	struct delivery last = { .ends = -1 };
	const struct delivery *d;
	uint64_t i, removed = 0;

	for (i = 0; i < 5000; i++) {
		const struct delivery new = {
			.ends = (usec_t)(random_next(&random) % 50),
			.number = i,
		};

		cr_assert_eq(heap_add(&heap, &new), 0);
		if (i % 3 == 0) {
			heap_remove_first(&heap);
			removed++;
		}
	}
	for (; (d = heap_first(&heap)) != NULL; removed++) {
		cr_assert(d->ends > last.ends ||
			(d->ends == last.ends && d->number > last.number),
		    "%ld/%lu behind %ld/%lu", (long)d->ends,
		    (unsigned long)d->number, (long)last.ends,
		    (unsigned long)last.number);
		last = *d;
		heap_remove_first(&heap);
	}
	cr_expect_eq(removed, 5000);
	heap_done(&heap);
}
