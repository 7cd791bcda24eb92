/* The table of queues, at its edges. */
#include <criterion/criterion.h>

#include <errno.h>
#include <event2/event.h>
#include <stdlib.h>
#include <string.h>

#include "qscheduler/supervisor/supervisor.h"

static struct super *super;
static struct queues *s;

static void
set_up(void)
{
	super = calloc(1, sizeof(*super));
	cr_assert_not_null(super);
	super_init(super, &(struct options){ 0 });
	s = &super->queues;
	super->instance.loop = event_base_new();
	cr_assert_not_null(super->instance.loop);
	super->instance.name = strdup("none");
}

static void
tear_down(void)
{
	while (s->nqueues > 0)
		queue_remove(s->queues[0]);
	event_base_free(super->instance.loop);
	free(super->instance.name);
	free(super);
}

TestSuite(table, .init = set_up, .fini = tear_down);

static int
insert(uint32_t number)
{
	struct queue *q = queue_new(s, number, QUEUE_STATE_OPEN);
	int r;

	cr_assert_not_null(q);
	r = queue_insert(q);
	if (r < 0)
		queue_free(&q);
	return r;
}

static void
expect_order(void)
{
	uint32_t i;

	for (i = 1; i < s->nqueues; i++)
		cr_assert_lt(s->queues[i - 1]->number, s->queues[i]->number);
}

Test(table, QUEUE_MAX_256_and_not_one_more)
{
	uint32_t i;

	for (i = 0; i < PAGE_QUEUES_MAX; i++) /* in no order */
		cr_assert_eq(insert(1 + i * 167 % 256 * 15), 0);
	cr_expect_eq(s->nqueues, 256);
	expect_order();
	cr_expect_eq(insert(4095), -ENOSPC);
	cr_expect_eq(s->nqueues, 256);
	queue_remove(s->queues[255]);
	queue_remove(s->queues[0]);
	queue_remove(s->queues[100]);
	cr_expect_eq(s->nqueues, 253);
	expect_order();
	cr_expect_eq(insert(4095), 0);
	cr_expect_eq(s->queues[253]->number, 4095);
	cr_expect_eq(queue_find(s, 4095), s->queues[253]);
}

Test(table, numbers_that_are_none)
{
	cr_assert_eq(insert(7), 0);
	cr_expect_null(queue_find(s, 0));
	cr_expect_null(queue_find(s, 6));
	cr_expect_null(queue_find(s, UINT64_MAX));
	cr_expect_null(queue_find(s, (1ull << 32) + 7));
	cr_expect_not_null(queue_find(s, 7));
}

Test(table, directories_are_counted_once)
{
	queue_note_disk(s, 4095);
	queue_note_disk(s, 1);
	queue_note_disk(s, 4095);
	cr_expect_eq(s->nqueues_disk, 2);
}

/* A number that is used again after a retirement begins anew. */
Test(table, a_queue_that_retires_takes_its_settings_along)
{
	uint64_t change;
	struct queue *q;

	cr_assert_eq(insert(7), 0);
	override_set_load(s->queues[0], 50, USEC_NEVER);
	override_disable(s->queues[0], USEC_NEVER, "new disk", 8);
	change = super->store.change;
	q = queue_new(s, 7, QUEUE_STATE_OPEN);
	cr_assert_not_null(q);
	queue_free(&q);
	cr_expect(override_holds(s, 7, OVERRIDE_LOAD, 0), "never in the table");
	override_gone(s->queues[0]);
	queue_remove(s->queues[0]);
	cr_expect_not(override_is_any(s->overrides, 0));
	cr_expect_gt(super->store.change, change);
}
