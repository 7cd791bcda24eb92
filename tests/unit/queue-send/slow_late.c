/* The questions to the disk, and what the page says of a disk that is late. */
#include "tests/unit/queue-send/slow.h"

#include "queue-send/agents/agents.h"
#include "queue-send/message/path.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <unistd.h>

#include "base/clock.h"

static struct queue_page page;

/* A queue that asks its disk, with a page. */
static void
begin(void)
{
	slow_w.threads[DISK_ASK] = 1;
	world_again(&slow_w);
	page_mend(&page.head, sizeof(page), QUEUE_PAGE_MAGIC);
	slow_w.s.pub.self = getpid();
	slow_w.s.pub.page = &page;
	while (slow_w.s.late.away)
		event_base_loop(slow_w.s.base, EVLOOP_ONCE);
}

static void
done(void)
{
	slow_w.s.pub.page = NULL;
}

/* A turn of the loop at this time. */
static void
turn(usec_t now)
{
	slow_w.s.now = now;
	(void)late_work(&slow_w.s);
	(void)publish_work(&slow_w.s);
}

/* Waits at the gate. */
static usec_t
ask_at_gate(void)
{
	slow_close();
	slow_came = 0;
	slow_w.s.late.at = 0;
	send_read_clocks(&slow_w.s);
	turn(slow_w.s.now);
	cr_assert(slow_w.s.late.away);
	slow_await(1);
	return slow_w.s.late.began;
}

/* mutation: queue-send/message/late.c: late_work() never sets `told`. */
Test(slow, D51_a_question_that_waits_is_published_with_its_beginning)
{
	usec_t began;
	uint32_t seq;

	begin();
	began = ask_at_gate();
	turn(began + 99 * USEC_PER_MSEC);
	cr_expect_neq(page.disk_work, DISK_WORK_PROBE);
	turn(began + 300 * USEC_PER_MSEC);
	cr_expect_eq(page.disk_work, DISK_WORK_PROBE);
	cr_expect_leq(page.disk_since_mono - began, 50 * USEC_PER_MSEC);
	cr_expect_geq(page.disk_since_mono, began);
	cr_expect_geq(queue_page_disk_late(&page, began + USEC_PER_SEC),
	    950 * USEC_PER_MSEC);
	seq = page.head.seq;
	turn(began + 900 * USEC_PER_MSEC);
	cr_expect_eq(page.head.seq, seq, "readers know the rest");
	cr_expect_eq(slow_came, 1, "one question at a time");
	slow_open(1);
	while (slow_w.s.late.away)
		event_base_loop(slow_w.s.base, EVLOOP_ONCE);
	send_read_clocks(&slow_w.s);
	turn(slow_w.s.now + USEC_PER_SEC / 2);
	cr_expect_eq(page.disk_work, DISK_WORK_NONE);
	cr_expect_eq(queue_page_disk_late(&page, slow_w.s.late.at), 0);
	done();
}

/* The loop itself hangs, or is stopped: nothing is published any more.
 * mutation: queue-send/message/late.c: late_fill() leaves 0 while none waits.
 */
Test(slow, D51_a_question_that_is_not_asked_shows_by_itself)
{
	begin();
	turn(slow_w.s.now + USEC_PER_SEC / 2);
	cr_expect_eq(page.disk_work, DISK_WORK_NONE);
	cr_expect_eq(page.disk_since_mono, slow_w.s.late.at);
	cr_expect_eq(
	    queue_page_disk_late(&page, slow_w.s.late.at + USEC_PER_SEC),
	    USEC_PER_SEC);
	done();
}

/* mutation: queue-send/disk/work.c: disk_oldest() looks at the probe alone. */
Test(slow, D51_a_mark_that_waits_is_published_as_one)
{
	struct world_delivery delivery;
	usec_t before;

	begin();
	world_message(&slow_w, "d", 1);
	world_take_one(&slow_w, &delivery);
	slow_w.s.late.at = INT64_MAX / 2;
	slow_close();
	slow_came = 0;
	before = clock_mono();
	slow_end(&delivery, AGENT_SENT);
	slow_await(1);
	slow_w.s.pub.changed = true;
	turn(clock_mono() + 2 * USEC_PER_SEC);
	cr_expect_eq(page.disk_work, DISK_WORK_MARK);
	cr_expect_geq(page.disk_since_mono, before);
	slow_open(1);
	done();
}

/* An error is an answer. mutation: queue-send/message/late.c: answered() takes
 * tasks without an error alone. */
Test(slow, D51_a_disk_that_refuses_is_not_late)
{
	begin();
	(void)ask_at_gate();
	world_fail(CALL_PWRITE, EROFS, 0);
	slow_open(1);
	while (slow_w.s.late.away)
		event_base_loop(slow_w.s.base, EVLOOP_ONCE);
	send_read_clocks(&slow_w.s);
	turn(slow_w.s.now + USEC_PER_SEC / 2);
	cr_expect_eq(page.disk_work, DISK_WORK_NONE);
	cr_expect_eq(queue_page_disk_late(&page, slow_w.s.late.at), 0);
	world_fail(CALL_NONE, 0, 0);
	done();
}

/* ---- file systems that take O_DIRECT ---- */

static struct {
	int r;
	unsigned mask, align;
} said; /* by statx */
static atomic_int syncs;

static int
say(int dir UNUSED, const char *name UNUSED, int flags UNUSED,
    unsigned mask UNUSED, struct statx *out)
{
	out->stx_mask = said.mask;
	out->stx_dio_mem_align = said.align;
	errno = ENOSYS;
	return said.r;
}

/* It writes through memory, whatever file system the test runs on. */
static int
open_in_memory(int dir, const char *name, int flags, mode_t mode)
{
	return spool_sys_real.openat(dir, name, flags & ~O_DIRECT, mode);
}

static int
count_sync(int fd UNUSED)
{
	syncs++;
	return 0;
}

/* A queue with mail asks, with such an answer of statx(). */
static void
ask_busy(int r, unsigned mask, unsigned align)
{
	said.r = r;
	said.mask = mask;
	said.align = align;
	syncs = 0;
	slow_w.s.late.at = 0;
	send_read_clocks(&slow_w.s);
	rate_add(&slow_w.s.rate_in, slow_w.s.now);
	turn(slow_w.s.now);
	cr_assert(slow_w.s.late.away);
	while (slow_w.s.late.away)
		event_base_loop(slow_w.s.base, EVLOOP_ONCE);
}

static void
asks_directly(const char *why)
{
	cr_expect_leq(
	    slow_w.s.late.at, slow_w.s.now + 100 * USEC_PER_MSEC, "%s", why);
	cr_expect_eq(syncs, 0, "%s", why);
}

Test(slow, D51_a_file_system_without_direct_writes_is_asked_by_syncs)
{
	begin();
	world_sys.statx = say;
	world_sys.openat = open_in_memory;
	world_sys.fsync = count_sync;
	ask_busy(0, STATX_DIOALIGN, 0);
	cr_expect_geq(slow_w.s.late.at, slow_w.s.late.began + 2 * USEC_PER_SEC);
	cr_expect_eq(syncs, 1);
	ask_busy(0, STATX_DIOALIGN, 512);
	asks_directly("direct");
	ask_busy(0, 0, 0);
	asks_directly("the file system does not say");
	ask_busy(-1, 0, 0);
	asks_directly("the kernel does not say");
	done();
}
