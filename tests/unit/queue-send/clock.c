/* Messages do not age by a clock that is wrong (T1). */
#include "tests/unit/queue-send/world.h"

#include "queue-send/backlog/backlog.h"

#include <criterion/criterion.h>
#include <event2/event.h>
#include <fcntl.h>
#include <sched.h>
#include <string.h>
#include <unistd.h>

#include "base/bytes.h"
#include "spool/format.h"

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

TestSuite(clock, .init = start, .fini = end, .timeout = 60);

/* Set forward by eight days between two looks at it. */
static void
set_forward(void)
{
	w.s.jumps.wall -= (usec_t)8 * 86400 * USEC_PER_SEC;
}

Test(clock, T1_a_clock_set_forward_expires_nothing)
{
	uint64_t old = world_file(&w, "d", 1, 8 * 86400 + 60), new;

	w.s.expire_after = 0;
	world_run(&w);
	set_forward();
	world_offer(&w, SPOOL_INCOMING, old);
	world_run(&w);
	cr_assert_eq(world_deliver(&w, AGENT_DEFERRED), 1);
	cr_expect_eq(world_where(&w, old), SPOOL_DEFERRED, "a minute old");
	/* What comes after it ages as ever. */
	new = world_file(&w, "e", 1, 6 * 86400);
	w.s.jumps.last[0].before_wall -= (usec_t)8 * 86400 * USEC_PER_SEC;
	world_offer(&w, SPOOL_INCOMING, new);
	world_run(&w);
	cr_assert_eq(world_deliver(&w, AGENT_DEFERRED), 1);
	cr_expect_eq(world_where(&w, new), SPOOL_NDIRS);
	cr_expect_eq(w.s.counters.expired, 1);
}

static void
damage_clock(void)
{
	int fd = openat(w.s.sp.dir[SPOOL_LOCK], "clock", O_WRONLY | O_CLOEXEC);

	cr_assert_geq(fd, 0);
	cr_assert_eq(pwrite(fd, "x", 1, 20), 1);
	close(fd);
}

/* mutation: queue-send/clock_file.c: load() answers false. */
Test(clock, T1_a_jump_is_known_to_the_next_process)
{
	uint64_t old = world_file(&w, "d", 1, 8 * 86400 + 60);

	world_run(&w);
	set_forward();
	world_offer(&w, SPOOL_INCOMING, old);
	world_run(&w);
	cr_assert_eq(world_deliver(&w, AGENT_DEFERRED), 1);
	world_again(&w);
	w.s.expire_after = 0;
	world_offer_again(&w, old);
	cr_assert_eq(world_deliver(&w, AGENT_DEFERRED), 1);
	cr_expect_eq(world_where(&w, old), SPOOL_DEFERRED, "a minute old");
	/* A file that is damaged says nothing. */
	damage_clock();
	world_again(&w);
	cr_expect_eq(w.s.jumps.next, 0);
	w.s.expire_after = 0;
	world_offer_again(&w, old);
	cr_assert_eq(world_deliver(&w, AGENT_DEFERRED), 1);
	cr_expect_eq(w.s.counters.expired, 1);
}

static void
as_of_another_boot(void)
{
	int fd = openat(w.s.sp.dir[SPOOL_LOCK], "clock", O_RDWR | O_CLOEXEC);
	char record[204];

	cr_assert_eq(pread(fd, record, sizeof(record), 0), sizeof(record));
	memset(record + 32, 'x', 36);
	bytes_put_u32(record + 200, format_crc(0, record, 200));
	cr_assert_eq(pwrite(fd, record, sizeof(record), 0), sizeof(record));
	close(fd);
}

/* The last run was eight days ago, by a clock that nobody set.
 * mutation: queue-send/state/jumps.c: jumps_resume() believes every gap. */
Test(clock, T1_a_clock_that_is_wrong_at_the_start_expires_nothing)
{
	uint64_t old = world_file(&w, "d", 1, 8 * 86400 + 60);

	w.s.jumps.wall -= (usec_t)8 * 86400 * USEC_PER_SEC;
	w.s.jumps.boot -= (usec_t)8 * 86400 * USEC_PER_SEC;
	w.s.clock_at = 0;
	(void)clock_file_work(&w.s);
	as_of_another_boot();
	world_again(&w);
	cr_expect_eq(w.s.jumps.next, 1);
	w.s.expire_after = 0;
	world_offer(&w, SPOOL_INCOMING, old);
	world_run(&w);
	cr_assert_eq(world_deliver(&w, AGENT_DEFERRED), 1);
	cr_expect_eq(world_where(&w, old), SPOOL_DEFERRED, "a minute old");
}

static int gate[2];
static _Atomic int saves;

/* The clock is saved when the gate is given a byte. */
static int
slow_openat(int dir, const char *name, int flags, mode_t mode)
{
	char c;

	if (strcmp(name, "clock") == 0 && (flags & O_CREAT) != 0) {
		saves++;
		(void)!read(gate[0], &c, 1);
	}
	return openat(dir, name, flags, mode);
}

static void
save_now(void)
{
	w.s.clock_at = 0;
	(void)clock_file_work(&w.s);
}

static void
open_gate(void)
{
	cr_assert_eq(write(gate[1], "g", 1), 1);
	while (w.s.clock_away)
		event_base_loop(w.s.base, EVLOOP_ONCE);
}

/* The loop goes on, and saves again as soon as the thread is back.
 * mutation: queue-send/clock_file.c: save() writes by itself;
 * clock_file_work() forgets what it could not save, or does not look whether
 * the thread is back. */
Test(clock, D43_a_disk_that_hangs_with_the_clock_holds_up_nothing)
{
	w.threads[DISK_CLOCK] = 1;
	world_again(&w);
	while (w.s.clock_away) /* the start has saved the clock, too */
		event_base_loop(w.s.base, EVLOOP_ONCE);
	cr_assert_eq(pipe2(gate, O_CLOEXEC), 0);
	world_sys.openat = slow_openat;
	save_now();
	while (saves == 0)
		sched_yield();
	save_now();
	world_message(&w, "u@one.test", 1);
	cr_expect_eq(world_deliver(&w, AGENT_SENT), 1);
	cr_expect_eq(saves, 1);
	cr_assert_eq(write(gate[1], "g", 1), 1);
	while (saves == 1)
		event_base_loop(w.s.base, EVLOOP_NONBLOCK);
	open_gate();
	cr_expect_eq(saves, 2);
	world_sys_init();
}

Test(clock, T1_after_a_start_nothing_expires_for_a_while)
{
	uint64_t inode = world_file(&w, "d", 1, 60 * 86400);

	cr_expect_gt(w.s.expire_after, w.s.now + RETRY_GRACE / 2);
	world_offer(&w, SPOOL_INCOMING, inode);
	world_run(&w);
	cr_assert_eq(world_deliver(&w, AGENT_DEFERRED), 1);
	cr_expect_eq(world_where(&w, inode), SPOOL_DEFERRED);
	cr_expect_eq(w.s.counters.expired, 0);
}
