/* A queue is closed while many processes put mail into it, and what is in it
 * is handed over: nothing ends in the closed one, nothing is lost. */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "spool_scratch.h"

#define INJECTORS 4
#define ROUNDS    12
#define AFTER     20 /* messages that are accepted after each closing */

static int
no_fsync(int fd UNUSED)
{
	return 0;
}

static bool
try(const struct spool *sp)
{
	struct accept_options opt = scratch_options;
	struct accept a;
	struct queue_id id;
	int r;

	/* With and without a look before the message is written. */
	opt.looked = arc4random_uniform(2) == 0;
	r = accept_begin(&a, sp, &opt, clock_wall(), 0);

	if (r == 0)
		r = queue_file_add_content(&a.writer, "x\n", 2);
	if (r == 0)
		r = queue_file_add_sender(&a.writer, "", 0);
	if (r == 0)
		r = queue_file_add_rcpt(&a.writer, "a@b", 3);
	if (r == 0)
		r = accept_commit(&a, &id);
	accept_end(&a);
	if (r < 0 && r != -ESHUTDOWN)
		_exit(1);
	return r == 0;
}

struct shared {
	_Atomic uint64_t accepted;
	atomic_bool stop;
};

/* It likes the queue that is being closed. A byte for each message wakes who
 * waits for progress. */
static void
inject(const struct scratch *s, struct shared *shared, int out)
{
	struct spool_sys sys = spool_sys_real;
	struct spool sp[2];

	sys.fsync = no_fsync;
	signal(SIGPIPE, SIG_IGN);
	if (spool_open(&sp[0], &sys, s->base, 1) < 0 ||
	    spool_open(&sp[1], &sys, s->base, 2) < 0)
		_exit(1);
	while (!shared->stop) {
		if (arc4random_uniform(4) == 0 || !try(&sp[0]))
			while (!try(&sp[1]))
				;
		shared->accepted++;
		if (write(out, "", 1) != 1 && errno != EPIPE)
			_exit(1);
	}
	_exit(0);
}

/* So many more messages than there are now. */
static void
await(const struct shared *shared, int in, uint32_t messages)
{
	uint64_t goal = shared->accepted + messages;
	char bytes[64];

	while (shared->accepted < goal)
		cr_assert_gt(read(in, bytes, sizeof(bytes)), 0);
}

static uint32_t
count(const struct spool *sp)
{
	struct spool_scan scan;
	struct spool_item item;
	uint32_t n = 0;

	spool_scan_begin(&scan, sp, SPOOL_INCOMING);
	while (spool_scan_next(&scan, false, &item) > 0)
		n++;
	spool_scan_done(&scan);
	return n;
}

/* What queue-send does with the files that are committed; how many. */
static uint32_t
hand_over(const struct spool *from, const struct spool *to)
{
	struct spool_scan scan;
	struct spool_item item;
	uint32_t n = 0;
	int fd, r;

	spool_scan_begin(&scan, from, SPOOL_INCOMING);
	while (spool_scan_next(&scan, false, &item) > 0) {
		fd =
		    spool_open_file(from, SPOOL_INCOMING, item.inode, O_RDONLY);
		r = fd < 0 ? fd : spool_file_settled(fd);
		if (fd >= 0)
			close(fd);
		if (r == 0)
			r = spool_hand_over(
			    from, to, SPOOL_INCOMING, item.inode);
		n += r == 0;
		cr_assert(
		    r == 0 || r == -ENOENT || r == -EAGAIN, "%s", strerror(-r));
	}
	spool_scan_done(&scan);
	return n;
}

/* As the supervisor: the mark, then the look; again until nothing is there. */
static void
seal(const struct scratch *s, const struct spool *there)
{
	cr_assert_eq(spool_set_sealed(s->base, 1, true), 0);
	while (count(&s->sp) > 0) {
		cr_assert_eq(spool_set_sealed(s->base, 1, false), 0);
		(void)hand_over(&s->sp, there);
		cr_assert_eq(spool_set_sealed(s->base, 1, true), 0);
	}
}

static void
start_all(const struct scratch *s, struct shared *shared, const int ends[2],
    pid_t pids[INJECTORS])
{
	int i;

	for (i = 0; i < INJECTORS; i++) {
		pids[i] = fork();
		cr_assert_geq(pids[i], 0);
		if (pids[i] == 0) {
			close(ends[0]);
			inject(s, shared, ends[1]);
		}
	}
}

static void
end_all(struct shared *shared, const pid_t pids[INJECTORS])
{
	int status, i;

	shared->stop = true;
	for (i = 0; i < INJECTORS; i++) {
		cr_assert_eq(waitpid(pids[i], &status, 0), pids[i]);
		cr_expect(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	}
}

Test(closing, nothing_ends_in_a_closed_queue)
{
	struct shared *shared = mmap(NULL, sizeof(*shared),
	    PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct scratch s;
	struct spool there;
	pid_t pids[INJECTORS];
	uint32_t round;
	int pipes[2];

	cr_assert_neq(shared, MAP_FAILED);
	scratch_open(&s);
	cr_assert_eq(spool_create(s.base, 2, 5, &s.owner), 0);
	cr_assert_eq(spool_open(&there, &spool_sys_real, s.base, 2), 0);
	cr_assert_eq(pipe2(pipes, O_CLOEXEC), 0);
	/* What wakes nobody any more need not wait. */
	cr_assert_eq(fcntl(pipes[1], F_SETPIPE_SZ, 4096), 4096);
	start_all(&s, shared, pipes, pids);
	for (round = 0; round < ROUNDS; round++) {
		await(shared, pipes[0], arc4random_uniform(10));
		seal(&s, &there);
		await(shared, pipes[0], AFTER);
		cr_expect_eq(
		    hand_over(&s.sp, &there), 0u, "accepted after the closing");
		cr_assert_eq(spool_set_sealed(s.base, 1, false), 0);
	}
	await(shared, pipes[0], AFTER);
	seal(&s, &there);
	close(pipes[0]);
	end_all(shared, pids);
	close(pipes[1]);
	cr_expect_eq(count(&s.sp), 0u);
	cr_expect_eq(count(&there), shared->accepted, "each once");
	munmap(shared, sizeof(*shared));
	spool_close(&there);
	scratch_close(&s);
}
