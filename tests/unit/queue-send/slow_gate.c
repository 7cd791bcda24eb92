/* The gate of the tests of a slow disk, and their start and end. */
#include "queue-send/rules/own.h"
#include "tests/unit/queue-send/slow.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"

struct world slow_w;

int slow_gate[2];
_Atomic bool slow_closed, slow_cold, slow_removes, slow_files;
static _Atomic unsigned slow_queue, slow_queues; /* the first, how many */
atomic_int slow_came;

static void
wait_there(void)
{
	char c;

	if (gettid() == getpid())
		return;
	atomic_fetch_add(&slow_came, 1);
	(void)!read(slow_gate[0], &c, 1);
}

static void
wait_at_gate(void)
{
	if (slow_closed)
		wait_there();
}

static ssize_t (*world_pwrite)(int fd, const void *data, size_t len, off_t off);
static ssize_t (*world_write)(int fd, const void *data, size_t len);
static int (*world_openat)(int dir, const char *name, int flags, mode_t mode);

static ssize_t
slow_pwrite(int fd, const void *data, size_t len, off_t off)
{
	wait_at_gate();
	return world_pwrite(fd, data, len, off);
}

static ssize_t
slow_write(int fd, const void *data, size_t len)
{
	wait_at_gate();
	return world_write(fd, data, len);
}

static bool
is_slow_queue(const char *path)
{
	char name[128];
	unsigned i;

	for (i = 0; i < slow_queues; i++) {
		snprintf(name, sizeof(name), "%s/queue%u", slow_w.dir,
		    slow_queue + i);
		if (strcmp(path, name) == 0)
			return true;
	}
	return false;
}

/* Of files of messages, and of another queue. */
static int
slow_openat(int dir, const char *name, int flags, mode_t mode)
{
	if (slow_cold && (flags & O_NOCTTY) != 0)
		wait_at_gate();
	if (dir == AT_FDCWD && is_slow_queue(name))
		wait_there();
	return world_openat(dir, name, flags, mode);
}

static int
cold_open(int dir, const char *name, int flags)
{
	if (!slow_cold)
		return spool_sys_real.open_cached(dir, name, flags);
	errno = EAGAIN;
	return -1;
}

static ssize_t
slow_pread(int fd, void *data, size_t len, off_t off)
{
	wait_at_gate();
	return pread(fd, data, len, off);
}

static ssize_t
cold_pread(int fd, void *data, size_t len, off_t off)
{
	if (!slow_cold)
		return pread(fd, data, len, off);
	errno = EAGAIN;
	return -1;
}

static int (*world_renameat)(
    int olddir, const char *old, int newdir, const char *name);

static int
slow_renameat(int olddir, const char *old, int newdir, const char *name)
{
	wait_at_gate();
	return world_renameat(olddir, old, newdir, name);
}

static int (*world_unlinkat)(int dir, const char *name, int flags);

static int
slow_unlinkat(int dir, const char *name, int flags)
{
	if (slow_removes)
		wait_at_gate();
	return world_unlinkat(dir, name, flags);
}

static int (*world_replaceat)(int dir, const char *old, const char *name);

static int
slow_replaceat(int dir, const char *old, const char *name)
{
	if (slow_removes)
		wait_at_gate();
	return world_replaceat(dir, old, name);
}

static int
slow_read(const struct conf *fresh, void **ret_made, struct buf *ret_error)
{
	if (slow_files)
		wait_there();
	return control_ops.read(fresh, ret_made, ret_error);
}

static void
be_slow(void)
{
	world_replaceat = world_sys.replaceat;
	world_sys.replaceat = slow_replaceat;
	world_unlinkat = world_sys.unlinkat;
	world_sys.unlinkat = slow_unlinkat;
	world_renameat = world_sys.renameat;
	world_sys.renameat = slow_renameat;
	world_pwrite = world_sys.pwrite;
	world_write = world_sys.write;
	world_openat = world_sys.openat;
	world_sys.pwrite = slow_pwrite;
	world_sys.write = slow_write;
	world_sys.openat = slow_openat;
	world_sys.open_cached = cold_open;
	world_sys.pread_cached = cold_pread;
	world_sys.pread = slow_pread;
}

void
slow_set_up(void)
{
	cr_assert_eq(pipe2(slow_gate, O_CLOEXEC), 0);
	slow_closed = slow_cold = slow_removes = slow_files = false;
	slow_came = 0;
	slow_queues = 0;
	slow_w.threads[DISK_RECORD] = slow_w.threads[DISK_READ] = 1;
	slow_w.slow = true;
	slow_w.gated = false;
	world_start(&slow_w, "error_interval = 1h\n");
	slow_w.ops.read = slow_read;
	be_slow();
}

void
slow_tear_down(void)
{
	slow_closed = false;
	slow_queues = 0;
	close(slow_gate[1]);
	world_end(&slow_w);
	close(slow_gate[0]);
}

TestSuite(slow, .init = slow_set_up, .fini = slow_tear_down, .timeout = 60);

/* A thread that came too late to wait left its byte. */
static void
empty_gate(void)
{
	struct pollfd p = { .fd = slow_gate[0], .events = POLLIN };
	char c;

	while (poll(&p, 1, 0) == 1)
		cr_assert_eq(read(slow_gate[0], &c, 1), 1);
}

void
slow_add_rule(const char *recipient)
{
	struct hold_rule *row = calloc(1, sizeof(*row));

	cr_assert_not_null(row);
	*row = (struct hold_rule){ .number = SLOW_RULE,
		.uid = 7,
		.pattern = { "", recipient, "", "" },
		.reason = "a test" };
	slow_w.s.rules->force.rows = row;
	slow_w.s.rules->force.count = 1;
}

void
slow_close(void)
{
	empty_gate();
	slow_closed = slow_w.gated = true;
}

void
slow_hang(unsigned queue, unsigned count)
{
	const struct spool_owner owner = { getuid(), getuid(), getgid(),
		getgid(), true };
	unsigned i;

	for (i = queue; i < queue + count; i++)
		if (i != 2)
			cr_assert_eq(spool_create(slow_w.dir, i, 5, &owner), 0);
	empty_gate();
	slow_queue = queue;
	slow_queues = count;
	slow_came = 0;
	slow_w.gated = true;
}

void
slow_open(int waiting)
{
	int i;

	slow_queues = 0;
	slow_closed = slow_files = slow_w.gated = false;
	for (i = 0; i < waiting; i++)
		cr_assert_eq(write(slow_gate[1], "", 1), 1);
	world_run(&slow_w);
}

void
slow_end(const struct world_delivery *delivery, enum agent_outcome outcome)
{
	world_result(&slow_w, delivery, 0, outcome);
	world_done(&slow_w, delivery);
	world_run(&slow_w);
}

/* ---- acts ---- */

void
slow_use_act_threads(unsigned threads)
{
	const struct spool_owner owner = { getuid(), getuid(), getgid(),
		getgid(), true };

	slow_w.threads[DISK_ACT] = threads;
	world_again(&slow_w);
	cr_assert_eq(spool_create(slow_w.dir, 2, 5, &owner), 0);
}

void
slow_await(int came)
{
	int i;

	for (i = 0; i < 6000 && atomic_load(&slow_came) < came; i++) {
		world_run(&slow_w);
		(void)usleep(10000);
	}
	cr_assert_geq(atomic_load(&slow_came), came, "no call at the gate");
}

bool
slow_pass_ends(void)
{
	const usec_t limit = clock_mono() + 20 * USEC_PER_SEC;

	while (slow_w.s.reader.part != NULL && clock_mono() < limit)
		event_base_loop(slow_w.s.base, EVLOOP_ONCE);
	world_run(&slow_w);
	return slow_w.s.reader.part == NULL;
}

uint64_t
slow_lay(enum spool_dir dir)
{
	const uint64_t inode = world_file(&slow_w, "x", 1, 0);

	if (dir != SPOOL_INCOMING)
		cr_assert_eq(
		    spool_move(&slow_w.s.sp, SPOOL_INCOMING, dir, inode), 0);
	return inode;
}

struct spread slow_spread;

int
slow_act(enum spool_act what, uint64_t inode)
{
	const struct queue_id id = world_id(&slow_w, inode);
	static const struct hold_note note = { .uid = 7, .reason = "why" };
	uint32_t running;

	send_read_clocks(&slow_w.s);
	if (what == ACT_SPREAD)
		return world_spread(&slow_w, &slow_spread, &id, 2);
	return what == ACT_HOLD ? world_hold(&slow_w, &id, &note, &running)
				: world_do(&slow_w, what, &id, 0, &running);
}

void
slow_act_waits(enum spool_act what, uint64_t inode)
{
	slow_close();
	slow_came = 0;
	cr_assert_eq(slow_act(what, inode), ACT_UNDER_WAY);
	slow_await(1);
}
