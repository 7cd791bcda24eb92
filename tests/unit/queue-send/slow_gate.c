/* The gate of the tests of a slow disk, and their start and end. */
#include "tests/unit/queue-send/slow.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

struct world slow_w;

int slow_gate[2];
_Atomic bool slow_closed, slow_cold;
atomic_int slow_came;

static void
wait_at_gate(void)
{
	char c;

	if (!slow_closed || gettid() == getpid())
		return;
	atomic_fetch_add(&slow_came, 1);
	(void)!read(slow_gate[0], &c, 1);
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

/* Of files of messages. */
static int
slow_openat(int dir, const char *name, int flags, mode_t mode)
{
	if (slow_cold && (flags & O_NOCTTY) != 0)
		wait_at_gate();
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

static void
be_slow(void)
{
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

static void
start(void)
{
	cr_assert_eq(pipe2(slow_gate, O_CLOEXEC), 0);
	slow_closed = slow_cold = false;
	slow_came = 0;
	slow_w.record_threads = slow_w.fetch_threads = 1;
	slow_w.slow = true;
	slow_w.gated = false;
	world_start(&slow_w, "error_interval = 1h\n");
	be_slow();
}

static void
end(void)
{
	slow_closed = false;
	close(slow_gate[1]);
	world_end(&slow_w);
	close(slow_gate[0]);
}

TestSuite(slow, .init = start, .fini = end, .timeout = 60);

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
slow_close(void)
{
	empty_gate();
	slow_closed = slow_w.gated = true;
}

void
slow_open(int waiting)
{
	int i;

	slow_closed = slow_w.gated = false;
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

	slow_w.act_threads = threads;
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
