/* The pick-up, killed before and after each of its calls. */
#include "tests/unit/todo-proc/world.h"

#include "todo-proc/todo.h"

#include <criterion/criterion.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

static struct world w;
static struct spool_sys sys;

static void
link_up(void)
{
	world_link(&w);
	world_run(&w);
	world_credit(&w, 64);
}

static void
start(void)
{
	world_start(&w, "");
	link_up();
}

static void
end(void)
{
	world_end(&w);
}

TestSuite(pickup_kill, .init = start, .fini = end, .timeout = 120);

static uint64_t
drop(void)
{
	return world_file(&w, SPOOL_MAILDROP, "d", 1);
}

static void
name_of(uint64_t inode, char out[SPOOL_DROP_MAX])
{
	cr_assert(world_drop_name(&w, inode, out));
}

static struct {
	unsigned left; /* points until the end; each call has two */
} death;

static void
pass(void)
{
	if (--death.left == 0)
		(void)kill(getpid(), SIGKILL);
}

static int
dying_openat(int dir, const char *name, int flags, mode_t mode)
{
	int r;

	pass();
	r = spool_sys_real.openat(dir, name, flags, mode);
	pass();
	return r;
}

static int
dying_renameat(int from, const char *old, int to, const char *name)
{
	int r;

	pass();
	r = spool_sys_real.renameat(from, old, to, name);
	pass();
	return r;
}

static int
dying_unlinkat(int dir, const char *name, int flags)
{
	int r;

	pass();
	r = spool_sys_real.unlinkat(dir, name, flags);
	pass();
	return r;
}

static int
dying_close(int fd)
{
	int r;

	pass();
	r = spool_sys_real.close(fd);
	pass();
	return r;
}

/* A todo-proc that dies at the nth point; false: it came through. */
static bool
die_at(const char *name, unsigned nth)
{
	struct picked picked;
	pid_t pid = fork();
	int status;

	cr_assert_geq(pid, 0);
	if (pid == 0) {
		sys = spool_sys_real;
		sys.openat = dying_openat;
		sys.renameat = dying_renameat;
		sys.unlinkat = dying_unlinkat;
		sys.close = dying_close;
		w.t.sp.sys = &sys;
		death.left = nth;
		pickup_drop(&w.t.sp, name, &picked);
		_exit(0);
	}
	cr_assert_eq(waitpid(pid, &status, 0), pid);
	return WIFSIGNALED(status);
}

/* A new drop under the inode that is free now, where the file system gives
 * inodes again: what else is made is taken away. */
static uint64_t
drop_with(uint64_t inode)
{
	uint64_t made[64], got = 0;
	char name[SPOOL_DROP_MAX];
	unsigned n, i;

	for (n = 0; n < ARRAY_LEN(made) && got != inode; n++)
		got = made[n] = drop();
	for (i = 0; i + 1 < n; i++) {
		name_of(made[i], name);
		cr_assert_eq(unlinkat(w.t.sp.dir[SPOOL_MAILDROP], name, 0), 0);
	}
	return got;
}

static void
restart_and_scan(unsigned point)
{
	world_again(&w);
	link_up();
	world_scan(&w);
	cr_assert_eq(w.nmessages, 1, "point %u", point);
}

/* The message is delivered in between and its inode given to a new drop: each
 * of the two comes through once, the new one too. */
Test(pickup_kill, D30_P1_killed_at_each_call_and_the_inode_given_again)
{
	unsigned nth, again = 0;
	bool died = true, moved;

	for (nth = 1; died; nth++) {
		uint64_t first = drop(), second;
		char name[SPOOL_DROP_MAX];

		name_of(first, name);
		died = die_at(name, nth);
		moved = world_where(&w, first) == SPOOL_INCOMING;
		if (!moved) { /* the next process does it */
			restart_and_scan(nth);
			cr_assert_eq(w.messages[0].inode, first);
		}
		cr_assert_eq(world_where(&w, first), SPOOL_INCOMING);
		/* queue-send lives on, and delivers. */
		cr_assert_eq(spool_remove(&w.t.sp, SPOOL_INCOMING, first), 0);
		second = drop_with(first);
		again += second == first;
		restart_and_scan(nth);
		cr_assert_eq(w.messages[0].inode, second);
		cr_assert_eq(world_where(&w, second), SPOOL_INCOMING);
		cr_assert_eq(spool_remove(&w.t.sp, SPOOL_INCOMING, second), 0);
	}
	cr_assert_gt(nth, 5, "there are calls to die at");
	/* A warning would end the program with 1: chance is no failure. */
	if (again == 0)
		cr_skip_test("the file system gave no inode again");
}
