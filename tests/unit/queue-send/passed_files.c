/* Files that come open with their offers. While one is open no other file has
 * its inode, so the name that was moved is its, on a disk, too. */
#include "queue-send/agents/own.h"
#include "tests/unit/queue-send/world.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/io.h"
#include "queue-send/backlog/backlog.h"
#include "queue-send/operators/operators.h"
#include "tests/unit/descriptors.h"

static struct world w;
static unsigned before;

static void
start(void)
{
	w = (struct world){ .tells = true, .passes = true };
	world_start(&w,
	    "qmgr_message_active_limit = 20\n"
	    "initial_destination_concurrency = 1\n"
	    "minimal_backoff_time = 1h\nmaximal_backoff_time = 10h\n");
	before = unit_descriptors();
}

static void
end(void)
{
	world_end(&w);
}

TestSuite(passed_files, .init = start, .fini = end, .timeout = 60);

/* The opens of the test itself do not count. */
static uint64_t
offer(const char *format, uint32_t n)
{
	const uint64_t inode = world_file(&w, format, n, 0);

	world_offer(&w, SPOOL_INCOMING, inode);
	(void)world_opens();
	return inode;
}

static int
open_in(enum spool_dir dir, uint64_t inode, int flags)
{
	char leaf[SPOOL_PATH_MAX];
	int fd;

	spool_leaf(&w.s.sp, dir, inode, leaf, sizeof(leaf));
	fd = openat(w.s.sp.dir[dir], leaf, flags | O_CLOEXEC);
	cr_assert_geq(fd, 0);
	return fd;
}

/* mutation: queue-send/agents/offers.c: take_descriptor() takes none. */
Test(passed_files, are_opened_by_nobody_else)
{
	uint64_t inode;

	w.content = "Subject: x\n\nwhat it says\n";
	inode = offer("r@local.test", 1);
	world_run(&w);
	cr_expect_eq(world_where(&w, inode), SPOOL_ACTIVE);
	cr_expect_eq(world_deliver(&w, AGENT_SENT), 1);
	cr_expect_eq(world_opens(), 0);
	cr_expect_eq(world_where(&w, inode), SPOOL_NDIRS);
	cr_expect_eq(unit_descriptors(), before);
	world_is_empty(&w);
}

Test(passed_files, are_marked)
{
	const uint64_t inode = offer("d", 2);
	struct world_delivery delivery;

	world_run(&w);
	cr_assert(world_take(&w, &delivery));
	world_result(&w, &delivery, 0, AGENT_SENT);
	world_done(&w, &delivery);
	world_run(&w);
	cr_expect_str_eq(world_marks(&w, SPOOL_ACTIVE, inode), "D.");
	cr_expect_eq(world_deliver(&w, AGENT_SENT), 1);
	world_is_empty(&w);
}

/* The file may have gone meanwhile, and another one may have its inode.
 * mutation: queue-send/message/active.c: is_as_offered() knows no descriptor.
 */
Test(passed_files, D22_that_were_closed_before_they_moved_are_looked_at)
{
	const uint64_t offered = world_file(&w, "d", 1, 0);
	const uint64_t other = world_file(&w, "d", 1, 0);
	int fd = open_in(SPOOL_INCOMING, other, O_RDWR);

	w.s.admission_blocked_until = USEC_NEVER;
	world_offer_with(&w, offered, fd, other);
	close(fd);
	world_run(&w);
	cr_assert_eq(w.s.messages.count[STATE_OFFERED_INCOMING], 1);
	cr_expect_eq(unit_descriptors(), before + 1);
	messages_close_resting(&w.s.messages);
	cr_expect_eq(unit_descriptors(), before, "it rested");
	w.s.admission_blocked_until = 0;
	send_wake(&w.s);
	world_run(&w);
	cr_expect_eq(world_deliver(&w, AGENT_SENT), 0);
	cr_expect_eq(world_where(&w, other), SPOOL_INCOMING);
	cr_expect_eq(w.scans, 1);
}

/* mutation: queue-send/agents/offers.c: the inode is not looked at. */
Test(passed_files, D22_of_another_inode_break_the_link)
{
	const uint64_t inode = world_file(&w, "d", 1, 0);
	const uint64_t other = world_file(&w, "d", 1, 0);
	int fd = open_in(SPOOL_INCOMING, other, O_RDWR);

	world_offer_with(&w, inode, fd, 0);
	close(fd);
	world_run(&w);
	cr_expect_null(w.s.links->todo);
	cr_expect_eq(w.s.active, 0);
	cr_expect_eq(world_where(&w, inode), SPOOL_INCOMING);
}

/* mutation: queue-send/agents/offers.c: the version is not looked at. */
Test(passed_files, without_their_facts_break_the_link)
{
	const uint64_t inode = world_file(&w, "d", 1, 0);
	int fd = open_in(SPOOL_INCOMING, inode, O_RDWR);

	w.tells = false;
	world_offer_with(&w, inode, fd, 0);
	close(fd);
	world_run(&w);
	cr_expect_null(w.s.links->todo);
	cr_expect_eq(w.s.active, 0);
}

static void
widen(int fd)
{
	cr_assert_eq(fchmod(fd, 0666), 0);
}

static void
lengthen(int fd)
{
	cr_assert_eq(ftruncate(fd, 4711), 0);
}

/* mutation: queue-send/agents/offers.c: the file, the size is not looked at. */
Test(passed_files, that_are_no_queue_files_any_more_are_opened_by_their_names)
{
	static void (*const harms[])(int fd) = { widen, lengthen };
	uint64_t inode;
	size_t i;
	int fd;

	for (i = 0; i < ARRAY_LEN(harms); i++) {
		inode = offer("d", 1);
		fd = open_in(SPOOL_INCOMING, inode, O_RDWR);
		harms[i](fd);
		close(fd);
		world_run(&w);
		cr_assert_not_null(w.s.links->todo, "%zu", i);
		cr_expect_eq(world_opens(), 1, "%zu", i);
		cr_expect_eq(world_deliver(&w, AGENT_SENT), 0, "%zu", i);
		cr_expect_eq(world_count(&w, SPOOL_CORRUPT), i + 1);
		cr_expect_eq(unit_descriptors(), before);
	}
}

/* mutation: queue-send/message/active.c: parked() opens each file, and so does
 * is_as_offered() that knows the memory alone. */
Test(passed_files, that_are_parked_are_closed)
{
	uint32_t i;

	for (i = 0; i < 12; i++) {
		offer("a@hangs.test", 1);
		world_run(&w);
		cr_expect_eq(world_opens(), 0);
	}
	cr_expect_eq(w.s.active, 4);
	cr_expect_eq(w.s.due.parked, 8);
	cr_expect_eq(unit_descriptors(), before + 4);
}

Test(passed_files, that_are_offered_twice_are_closed)
{
	const uint64_t inode = offer("d", 1);

	world_offer(&w, SPOOL_INCOMING, inode);
	world_run(&w);
	cr_expect_eq(w.s.active, 1);
	cr_expect_eq(unit_descriptors(), before + 1);
}

/* By an operator, with the link, by the end of the queue. */
Test(passed_files, of_offers_that_are_forgotten_are_closed)
{
	uint64_t inode;
	uint32_t running;

	w.s.admission_blocked_until = USEC_NEVER;
	inode = offer("d", 1);
	world_run(&w);
	cr_expect_eq(world_act(&w, ACT_HOLD, inode, &running), 0);
	cr_expect_eq(world_where(&w, inode), SPOOL_HOLD);
	cr_expect_eq(unit_descriptors(), before);
	offer("d", 1);
	world_run(&w);
	cr_expect_eq(unit_descriptors(), before + 1);
	world_link_todo(&w);
	world_run(&w);
	cr_expect_eq(unit_descriptors(), before);
}

/* Recipients that were tried are read in the file. */
Test(passed_files, that_came_back_are_read)
{
	const uint64_t inode = offer("d", 2);
	struct world_delivery delivery;

	world_run(&w);
	cr_assert(world_take(&w, &delivery));
	world_result(&w, &delivery, 0, AGENT_SENT);
	world_run(&w);
	world_again(&w);
	cr_expect_str_eq(world_marks(&w, SPOOL_INCOMING, inode), "D.");
	world_offer(&w, SPOOL_INCOMING, inode);
	(void)world_opens();
	world_run(&w);
	cr_expect_eq(world_deliver(&w, AGENT_SENT), 1);
	cr_expect_eq(world_opens(), 0);
	world_is_empty(&w);
}

/* mutation: queue-send/message/dead.c: has_recipients() is false. */
Test(passed_files, whose_destination_is_dead_are_not_opened_again)
{
	struct world_delivery delivery;
	uint64_t waits;

	offer("a@one.test", 1);
	world_run(&w);
	cr_assert(world_take(&w, &delivery));
	waits = offer("b@one.test", 1);
	world_run(&w);
	cr_assert_eq(w.s.active, 2);
	messages_close_resting(&w.s.messages);
	(void)world_opens();
	world_site_failed(&w, &delivery);
	world_run(&w);
	cr_expect_eq(w.s.active, 0);
	cr_expect_eq(world_opens(), 0);
	cr_expect_eq(world_where(&w, waits), SPOOL_DEFERRED);
}

/* mutation: queue-send/agents/dispatch.c: needs_file() asks for the memory not.
 */
Test(passed_files, P12_that_have_rested_are_opened_for_the_delivery)
{
	struct world_delivery delivery;

	offer("a@one.test", 1);
	offer("b@one.test", 1);
	world_run(&w);
	cr_assert(world_take(&w, &delivery));
	messages_close_resting(&w.s.messages);
	world_fail(CALL_OPEN, EMFILE, 0);
	world_result(&w, &delivery, 0, AGENT_SENT);
	world_done(&w, &delivery);
	world_run(&w);
	cr_expect_not(world_take(&w, &delivery), "it could not be marked");
	world_fail(CALL_NONE, 0, 0);
	w.s.dispatch_at = 0;
	send_wake(&w.s);
	world_run(&w);
	cr_expect_eq(world_deliver(&w, AGENT_SENT), 1);
	world_is_empty(&w);
}
