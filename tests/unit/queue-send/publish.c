/* When the page of the queue is written. */
#include "queue-send/agents/agents.h"
#include "tests/unit/queue-send/world.h"

#include <criterion/criterion.h>
#include <unistd.h>

static struct world w;
static struct queue_page page;

static void
start(void)
{
	world_start(&w, "");
	page_mend(&page.head, sizeof(page), QUEUE_PAGE_MAGIC);
	w.s.pub.self = getpid();
}

static void
end(void)
{
	w.s.pub.page = NULL;
	world_end(&w);
}

TestSuite(publish, .init = start, .fini = end, .timeout = 60);

/* The last time was a second ago. */
static uint64_t
begin_with_a_message(void)
{
	const uint64_t inode = world_message(&w, "d", 1);

	w.s.pub.page = &page;
	w.s.pub.published_at = w.s.now - USEC_PER_SEC;
	w.s.pub.changed_at = 0;
	w.s.pub.changed = true;
	cr_assert_eq(w.s.active, 1);
	return inode;
}

/* mutation: queue-send/publish.c: nothing is ever busy. */
Test(publish, a_message_that_goes_at_once_is_published_once)
{
	const uint64_t inode = begin_with_a_message();
	const uint32_t before = page.head.seq;

	cr_expect_eq(publish_work(&w.s), w.s.now + USEC_PER_SEC / 10);
	cr_expect_eq(page.head.seq, before);
	cr_assert_eq(world_deliver(&w, AGENT_SENT), 1);
	cr_assert_eq(world_where(&w, inode), SPOOL_NDIRS);
	cr_expect_eq(page.head.seq, before + 2);
	cr_expect_eq(page.delivered, 1);
	cr_expect_eq(page.active, 0);
}

/* mutation: queue-send/publish.c: changed_at is set by each turn. */
Test(publish, one_that_takes_longer_is_seen_a_tenth_of_a_second_later)
{
	uint32_t before;

	begin_with_a_message();
	before = page.head.seq;
	(void)publish_work(&w.s);
	w.s.now += USEC_PER_SEC / 20;
	(void)publish_work(&w.s);
	cr_expect_eq(page.head.seq, before);
	w.s.now += USEC_PER_SEC / 20;
	(void)publish_work(&w.s);
	cr_expect_eq(page.head.seq, before + 2);
	cr_expect_eq(page.active, 1);
}

Test(publish, a_new_page_is_written_at_once)
{
	uint32_t before;

	begin_with_a_message();
	before = page.head.seq;
	w.s.pub.published_at = 0;
	(void)publish_work(&w.s);
	cr_expect_eq(page.head.seq, before + 2);
}
