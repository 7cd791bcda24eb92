/* The walk of a command that acts, over a message that moves. */
#include "cut_queue.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "qctl/read/message.h"
#include "spool/accept.h"

static struct cut_queue q;
static struct spool_sys sys;
static struct queue_id id;
static enum spool_dir from, to; /* the first move; the second goes back */
static unsigned steps, moves[2], met;

static void
step(void *arg UNUSED)
{
	steps++;
	if (steps == moves[0])
		cr_assert_eq(spool_move(&q.sp, from, to, id.inode), 0);
	if (steps == moves[1])
		cr_assert_eq(spool_move(&q.sp, to, from, id.inode), 0);
}

/* Before each directory that is read, and before each file. */
static int
openat_behind(int dir, const char *name, int flags, mode_t mode)
{
	step(NULL);
	return spool_sys_real.openat(dir, name, flags, mode);
}

static int
meet(struct message *m, void *arg UNUSED)
{
	met += m->inode == id.inode;
	return 0;
}

static void
trouble(const char *what, int error, void *arg UNUSED)
{
	cr_expect(false, "%s: %d", what, error);
}

static int
walk(unsigned first, unsigned second)
{
	const struct message_walk w = {
		.states = 1u << SPOOL_INCOMING | 1u << SPOOL_ACTIVE |
		    1u << SPOOL_DEFERRED | 1u << SPOOL_HOLD,
		.complete = true,
		.each = meet,
		.trouble = trouble,
		.step = step,
	};

	moves[0] = first;
	moves[1] = second;
	steps = met = 0;
	return message_walk(&q.sp, &w);
}

static void
start(void)
{
	cut_queue_open(&q);
	id = cut_queue_put(&q, 1, 0);
	sys = spool_sys_real;
	sys.openat = openat_behind;
	q.sp.sys = &sys;
}

static void
end(void)
{
	cut_queue_close(&q);
}

TestSuite(walk, .init = start, .fini = end);

/* There is at step `first', and back at step `second', wherever the walk is
 * then. */
static void
expect_met_between(enum spool_dir a, enum spool_dir b)
{
	unsigned first, second, last = 40;

	moves[0] = moves[1] = 0;
	cr_assert_eq(spool_move(&q.sp, SPOOL_INCOMING, a, id.inode), 0);
	from = a;
	to = b;
	for (first = 1; first < last; first++)
		for (second = first; second < last; second++) {
			cr_expect_eq(walk(first, second), 0);
			cr_assert_gt(met, 0, "%s to %s at %u, back at %u",
			    spool_dirs[a].name, spool_dirs[b].name, first,
			    second);
			if (steps < first)
				continue;
			if (steps < second)
				cr_assert_eq(
				    spool_move(&q.sp, to, from, id.inode), 0);
		}
}

/* mutation: qctl/read/walk.c: message_walk() makes one pass. */
Test(walk, A13_a_message_that_moves_is_met_deferred_to_active)
{
	expect_met_between(SPOOL_DEFERRED, SPOOL_ACTIVE);
}

Test(walk, A13_a_message_that_moves_is_met_active_to_deferred)
{
	expect_met_between(SPOOL_ACTIVE, SPOOL_DEFERRED);
}

Test(walk, A13_a_message_that_moves_is_met_active_to_incoming)
{
	expect_met_between(SPOOL_ACTIVE, SPOOL_INCOMING);
}

Test(walk, A13_a_message_that_moves_is_met_hold_to_deferred)
{
	expect_met_between(SPOOL_HOLD, SPOOL_DEFERRED);
}

static unsigned passes;

/* At the begin of each pass comes a message that is older than the walk. */
static int
openat_and_put(int dir, const char *name, int flags, mode_t mode)
{
	const struct accept_options options = { .dir = SPOOL_INCOMING };
	struct queue_id other;
	struct accept a;

	if (dir == q.sp.dir[SPOOL_INCOMING] && strcmp(name, "0") == 0 &&
	    (flags & O_DIRECTORY) != 0) {
		passes++;
		q.sp.sys = &spool_sys_real;
		cr_assert_eq(accept_begin(&a, &q.sp, &options,
				 clock_wall() - USEC_PER_SEC, getuid()),
		    0);
		cr_assert_eq(queue_file_add_content(&a.writer, "a", 1), 0);
		cr_assert_eq(queue_file_add_sender(&a.writer, "s", 1), 0);
		cr_assert_eq(queue_file_add_rcpt(&a.writer, "r", 1), 0);
		cr_assert_eq(accept_commit(&a, &other), 0);
		accept_end(&a);
		q.sp.sys = &sys;
	}
	return spool_sys_real.openat(dir, name, flags, mode);
}

/* mutation: qctl/read/walk.c: pass_again() ends without a word. */
Test(walk, A13_a_walk_without_an_end_is_told)
{
	sys.openat = openat_and_put;
	cr_expect_eq(walk(0, 0), -EAGAIN);
	cr_expect_leq(passes, 10);
	cr_expect_gt(passes, 1);
}
