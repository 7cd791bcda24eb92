/* Messages that an earlier queue-send left in active/: what its marks say is on
 * disk before they move. */
#include "tests/unit/queue-send/world.h"

#include <criterion/criterion.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "queue-send/message/path.h"
#include "spool/reason.h"

static struct world w;

static void
start(void)
{
	world_start(&w, "mark_sync_interval = 1h\n");
}

static void
end(void)
{
	world_end(&w);
}

TestSuite(at_start, .init = start, .fini = end, .timeout = 60);

static void
take(struct world_delivery *delivery)
{
	cr_assert(world_take(&w, delivery));
	close(delivery->fd);
}

/* Is the last of these letters before the first of those? */
static bool
before(const char *trace, char these, char those)
{
	const char *last = strrchr(trace, these);
	const char *first = strchr(trace, those);

	return last != NULL && first != NULL && last < first;
}

/* mutation: queue-send/message/recover.c: count_at_start() does not ask for one
 * name.
 */
Test(at_start, D12_an_active_message_with_a_second_name_has_one_after_the_start)
{
	uint64_t inode = world_message(&w, "d", 2);
	char leaf[SPOOL_PATH_MAX];

	spool_leaf(&w.s.sp, SPOOL_ACTIVE, inode, leaf, sizeof(leaf));
	cr_assert_eq(linkat(w.s.sp.dir[SPOOL_ACTIVE], leaf,
			 w.s.sp.dir[SPOOL_INCOMING], leaf, 0),
	    0);
	world_again(&w);
	cr_assert_eq(world_count(&w, SPOOL_ACTIVE), 0);
	cr_assert_str_eq(world_marks(&w, SPOOL_INCOMING, inode), "..");
}

/* mutation: queue-send/message/recover.c: recover_at_start() calls no
 * sync_marks(). */
Test(at_start, D32_marks_of_the_last_run_are_synced_once_before_they_move)
{
	struct world_delivery delivery;
	const char *trace;
	int i;

	for (i = 0; i < 3; i++)
		world_message(&w, "d", 2);
	for (i = 0; i < 6; i++) {
		take(&delivery);
		if (strncmp(delivery.first, "r0", 2) == 0)
			world_result(&w, &delivery, 0, AGENT_SENT);
	}
	world_run(&w);
	(void)world_trace();
	world_again(&w);
	trace = world_trace();
	cr_expect_not_null(strchr(trace, 's'), "%s", trace);
	cr_expect_eq(strchr(trace, 's'), strrchr(trace, 's'), "%s", trace);
	cr_expect_eq(world_count(&w, SPOOL_INCOMING), 3);
}

/* mutation: queue-send/message/recover.c: recover_at_start() counts deliveries
 * alone. */
Test(at_start, D32_a_failure_of_the_last_run_is_synced_before_the_move)
{
	struct world_delivery delivery;
	const char *trace;
	int i;

	world_message(&w, "d", 2);
	for (i = 0; i < 2; i++) {
		take(&delivery);
		if (i == 0)
			world_result(&w, &delivery, 0, AGENT_FAILED);
	}
	world_run(&w);
	(void)world_trace();
	world_again(&w);
	trace = world_trace();
	cr_expect(before(trace, 's', 'r'), "%s", trace);
}

/* The calls of the start but for those that this test does not mean. */
static const char *
calls_of_start(void)
{
	static char out[64];
	const char *in;
	size_t n = 0;

	(void)world_trace();
	world_again(&w);
	for (in = world_trace(); *in != '\0' && n + 1 < sizeof(out); in++)
		if (strchr("psr", *in) != NULL)
			out[n++] = *in;
	out[n] = '\0';
	return out;
}

/* A mark that is taken back is on disk before its message moves, whatever was
 * synced before: in incoming/ nobody compares it with its reason.
 * mutations: queue-send/message/recover.c: recover_at_start() syncs before it
 * compares; compare_reasons() wants no other sync. */
Test(at_start, D24_D32_a_mark_that_is_taken_back_is_synced_before_the_move)
{
	struct world_delivery delivery;
	const char *calls;
	uint64_t inode;
	int i;

	for (i = 0; i < 2; i++) {
		inode = world_message(&w, "d", 2);
		take(&delivery);
		world_result(&w, &delivery, 0, AGENT_FAILED);
		take(&delivery);
		world_run(&w);
		cr_assert_eq(reason_clear(&w.s.sp, SPOOL_BOUNCE, inode), 0);
	}
	calls = calls_of_start();
	/* The clock is saved; for each message a mark, a sync, a move. */
	cr_expect_str_eq(calls, "ppsrpsr", "%s", calls);
	cr_expect_str_eq(world_marks(&w, SPOOL_INCOMING, inode), "..");
}

/* mutation: queue-send/message/recover.c: recover_at_start() compares no
 * reasons.
 */
Test(at_start, D24_a_failure_that_lost_its_reason_is_pending_again)
{
	uint64_t inode = world_message(&w, "d", 3);
	struct world_delivery delivery;
	int i;

	for (i = 0; i < 3; i++) {
		take(&delivery);
		world_result(
		    &w, &delivery, 0, i < 2 ? AGENT_FAILED : AGENT_SENT);
		world_run(&w);
		if (i == 0)
			cr_assert_eq(
			    reason_clear(&w.s.sp, SPOOL_BOUNCE, inode), 0);
	}
	world_again(&w);
	cr_assert_eq(world_where(&w, inode), SPOOL_INCOMING);
	cr_assert_str_eq(world_marks(&w, SPOOL_INCOMING, inode), ".FD");
}

/* mutation: queue-send/message/recover.c: recover_at_start() syncs nothing
 * where it cannot compare. */
Test(at_start, D8_D32_marks_are_synced_where_the_reasons_cannot_be_read)
{
	const uint64_t inode = world_message(&w, "d", 2);
	struct world_delivery delivery;
	char leaf[SPOOL_PATH_MAX];
	const char *calls;

	take(&delivery);
	world_result(&w, &delivery, 0, AGENT_FAILED);
	take(&delivery);
	world_run(&w);
	cr_assert_eq(reason_clear(&w.s.sp, SPOOL_BOUNCE, inode), 0);
	spool_leaf(&w.s.sp, SPOOL_BOUNCE, inode, leaf, sizeof(leaf));
	cr_assert_eq(mkdirat(w.s.sp.dir[SPOOL_BOUNCE], leaf, 0700), 0);
	calls = calls_of_start();
	/* The clock is saved; a sync, a move. */
	cr_expect_str_eq(calls, "psr", "%s", calls);
}

/* A message of one recipient who has the mail, left in active/. */
static uint64_t
lay_done(void)
{
	const uint64_t inode = world_file(&w, "d", 1, 0);
	struct queue_rcpt_cursor cursor;
	struct queue_file file;
	struct queue_rcpt rcpt;
	int fd;

	cr_assert_eq(
	    spool_move(&w.s.sp, SPOOL_INCOMING, SPOOL_ACTIVE, inode), 0);
	fd = spool_open_file(&w.s.sp, SPOOL_ACTIVE, inode, O_RDWR);
	cr_assert_eq(queue_file_read(fd, &file), 0);
	queue_rcpt_begin(&cursor, &file);
	cr_assert_eq(queue_rcpt_next(&cursor, fd, &rcpt), 1);
	cr_assert_eq(
	    queue_file_mark(w.s.sp.sys, fd, rcpt.offset, RCPT_DONE), 0);
	close(fd);
	return inode;
}

/* No walk of active/ has to come for it.
 * mutation: queue-send/message/recover.c: remove_done() removes nothing behind.
 */
Test(at_start, D24_the_start_begins_the_removal_of_what_was_left)
{
	struct recovered done = { .accepted = &w.s.accepted, .behind = &w.s };
	const uint64_t inode = lay_done();

	recover_active(&w.s.sp, &done);
	cr_expect_eq(done.removed, 1);
	cr_expect_eq(w.s.removals.count, 1);
	send_wake(&w.s);
	world_run(&w);
	cr_expect_eq(world_where(&w, inode), SPOOL_NDIRS);
}
