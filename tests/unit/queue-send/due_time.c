/* The due time of a message that leaves the active queue. */
#include "tests/unit/queue-send/world.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

static struct world w;

static void
start(void)
{
	world_start(&w, "");
}

static void
end(void)
{
	world_end(&w);
}

TestSuite(due_time, .init = start, .fini = end, .timeout = 60);

static struct {
	uint64_t inode;
	enum spool_dir at; /* the place of the message at the last call */
	int error;
} due;

static int
utimensat_noted(
    int dir, const char *name, const struct timespec times[2], int flags)
{
	due.at = world_where(&w, due.inode);
	errno = due.error;
	return due.error != 0 ? -1 : utimensat(dir, name, times, flags);
}

/* A message, while the first of its deliveries is under way. */
static struct world_delivery
under_way(void)
{
	struct world_delivery delivery;

	world_sys.utimensat = utimensat_noted;
	due.inode = world_message(&w, "d", 1);
	due.at = SPOOL_NDIRS;
	cr_assert(world_take(&w, &delivery));
	close(delivery.fd);
	return delivery;
}

static void
defer(const struct world_delivery *delivery)
{
	world_result(&w, delivery, 0, AGENT_DEFERRED);
	world_done(&w, delivery);
	world_run(&w);
}

/* A message in deleted/ without the time goes at once, and nobody can take it
 * back; one in deferred/ is tried at once.
 * mutation: queue-send/message/move_task.c: move_task_work() moves first. */
Test(due_time, D41_the_due_time_is_set_before_the_move)
{
	struct world_delivery delivery = under_way();
	uint32_t running;

	defer(&delivery);
	cr_expect_eq(due.at, SPOOL_ACTIVE);
	cr_expect_eq(world_where(&w, due.inode), SPOOL_DEFERRED);
	delivery = under_way();
	cr_assert_eq(world_act(&w, ACT_DELETE, due.inode, &running), 0);
	defer(&delivery);
	cr_expect_eq(due.at, SPOOL_ACTIVE);
	cr_expect_eq(world_where(&w, due.inode), SPOOL_DELETED);
}

/* mutation: queue-send/message/leave.c: to_deleted() tries the due time. */
Test(due_time, D2_D41_nothing_is_deleted_without_the_end_of_its_day)
{
	struct world_delivery delivery = under_way();
	uint32_t running;

	cr_assert_eq(world_act(&w, ACT_DELETE, due.inode, &running), 0);
	due.error = ENOSPC;
	defer(&delivery);
	cr_expect_eq(due.at, SPOOL_ACTIVE);
	cr_expect_eq(world_where(&w, due.inode), SPOOL_ACTIVE);
	due.error = 0;
}
