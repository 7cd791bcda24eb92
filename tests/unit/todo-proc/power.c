/* What a power cut or a disk leaves in incoming/. */
#include "tests/unit/todo-proc/world.h"

#include "todo-proc/todo.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>

static struct world w;

static void
start(void)
{
	world_start(&w, "");
	world_link(&w);
	world_run(&w);
	world_credit(&w, 64);
}

static void
end(void)
{
	world_end(&w);
}

TestSuite(power, .init = start, .fini = end, .timeout = 60);

/* queue-send looks at its start alone, and the message has come back since.
 * mutation: todo-proc/examine_task.c: open_file() keeps no one name. */
Test(power, D12_a_message_with_the_name_of_an_earlier_move_is_offered)
{
	const uint64_t inode = world_file(&w, SPOOL_INCOMING, "d", 1);
	char leaf[SPOOL_PATH_MAX];

	spool_leaf(&w.t.sp, SPOOL_INCOMING, inode, leaf, sizeof(leaf));
	cr_assert_eq(linkat(w.t.sp.dir[SPOOL_INCOMING], leaf,
			 w.t.sp.dir[SPOOL_ACTIVE], leaf, 0),
	    0);
	world_scan(&w);
	cr_expect_eq(w.nmessages, 1);
	cr_expect_eq(world_count(&w, SPOOL_CORRUPT), 0);
	cr_expect_eq(world_count(&w, SPOOL_ACTIVE), 0);
	cr_expect_eq(world_where(&w, inode), SPOOL_INCOMING);
}

static char bad[SPOOL_PATH_MAX];

static int
open_fails(int dir, const char *name, int flags, mode_t mode)
{
	if (strcmp(name, bad) != 0)
		return spool_sys_real.openat(dir, name, flags, mode);
	errno = EIO;
	return -1;
}

/* mutation: todo-proc/examine_task.c: examine_task_work() takes EIO for
 * damage. */
Test(power, D8_a_message_that_cannot_be_read_stays)
{
	const uint64_t inode = world_file(&w, SPOOL_INCOMING, "d", 1);
	struct spool_sys sys = spool_sys_real;

	spool_leaf(&w.t.sp, SPOOL_INCOMING, inode, bad, sizeof(bad));
	sys.openat = open_fails;
	w.t.sp.sys = &sys;
	world_scan(&w);
	cr_expect_eq(w.nmessages, 0);
	cr_expect_eq(world_where(&w, inode), SPOOL_INCOMING);
	w.t.sp.sys = &spool_sys_real;
	world_scan(&w);
	cr_expect_eq(w.nmessages, 1);
}
