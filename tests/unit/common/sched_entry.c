/* Entries that grow, each kind of a slab of its own. */
#include "sched/parts.h"

#include <criterion/criterion.h>

#define QUEUES 40
#define MOST   SCHED_ENTRY_RCPTS_MAX

static struct sched s;
static struct entry_queue queues[QUEUES];

static void
begin(void)
{
	pages_init(&s.slabs.pages);
	entry_slabs_init(s.slabs.entry, &s.slabs.pages);
}

/* A slab says when something is in use. */
static void
end(void)
{
	entry_slabs_done(s.slabs.entry);
	pages_done(&s.slabs.pages);
}

static void
append_new(struct entry_queue *q)
{
	struct entry *e = entry_new(&s);

	cr_assert_not_null(e);
	cr_assert_eq(e->nrcpts, 0);
	entries_append(q, e);
}

/* queue: its number, so that no two have the same recipients. */
static void
add(uint32_t queue)
{
	struct entry *e = entries_grow_last(&s, &queues[queue]);

	cr_assert_not_null(e);
	cr_assert_eq(e, entries_last(&queues[queue]));
	cr_assert_lt(e->nrcpts, entry_room(e));
	cr_assert_leq(entry_room(e), 2 * e->nrcpts + 1, "memory for nobody");
	e->rcpts[e->nrcpts] = (struct sched_rcpt){ queue, e->nrcpts };
	e->nrcpts++;
}

static void
must_have(const struct entry *e, uint32_t queue, uint32_t count)
{
	uint32_t i;

	cr_assert_eq(e->nrcpts, count);
	for (i = 0; i < count; i++) {
		cr_assert_eq(e->rcpts[i].offset, queue);
		cr_assert_eq(e->rcpts[i].index, i);
	}
}

static void
must_go(uint32_t queue, uint32_t count)
{
	struct entry *e = entries_take(&queues[queue]);

	cr_assert_not_null(e);
	must_have(e, queue, count);
	entry_free(&s, e);
}

/* An entry of one recipient, one that has grown by turns with those of the
 * other queues, and an empty one. */
static void
fill_all(uint32_t count)
{
	uint32_t q, n;

	for (q = 0; q < QUEUES; q++) {
		append_new(&queues[q]);
		add(q);
		append_new(&queues[q]);
	}
	for (n = 0; n < count; n++)
		for (q = 0; q < QUEUES; q++)
			add(q);
	for (q = 0; q < QUEUES; q++)
		append_new(&queues[q]);
}

static void
empty(uint32_t queue, uint32_t count)
{
	cr_assert_eq(entries_count(&queues[queue]), 3);
	must_go(queue, 1);
	must_go(queue, count);
	must_go(queue, 0);
}

/* What goes back with one number of recipients is had again with others. */
Test(sched_entry, each_room_is_had_grows_and_goes_back)
{
	uint32_t count, q;

	begin();
	for (count = 1; count <= MOST; count++) {
		fill_all(count);
		for (q = 0; q < QUEUES; q++)
			empty(q, count);
	}
	for (count = MOST; count > 0; count--) {
		fill_all(count);
		for (q = QUEUES; q > 0; q--)
			empty(q - 1, count);
	}
	end();
}

/* Entries of all sizes at the same time. */
Test(sched_entry, entries_of_all_rooms_are_apart)
{
	static struct entry *of[MOST + 1];
	uint32_t count, i;

	begin();
	for (count = 1; count <= MOST; count++) {
		append_new(&queues[0]);
		for (i = 0; i < count; i++)
			add(0);
	}
	for (count = 1; count <= MOST; count++)
		of[count] = entries_take(&queues[0]);
	cr_expect_null(entries_take(&queues[0]));
	for (count = 1; count <= MOST; count++)
		must_have(of[count], 0, count);
	for (count = 1; count <= MOST; count++)
		entry_free(&s, of[count * 7 % MOST + 1]);
	end();
}
