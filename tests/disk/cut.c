/* Cut after cut, and what was left of what was told. */
#include "cut.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/num.h"
#include "base/io.h"

#define CUTS        5  /* CUTS in the environment outranks it */
#define CUTS_MAX    60 /* until a wrong order is caught */
#define PATIENCE_MS 20000

void
cut_note(struct notebook *book, const struct ack *ack)
{
	unsigned n;

	if (atomic_load(&book->power->is_cut) != 0) {
		atomic_fetch_add(&book->late, 1);
		return;
	}
	n = atomic_fetch_add(&book->nacks, 1);
	if (n < CUT_ACKS_MAX)
		book->acks[n] = *ack;
	if (n + 1 == book->target)
		(void)io_write_all(book->wake, "", 1);
}

static int
start_writers(struct trial *t, pid_t pids[CUT_WRITERS + 1])
{
	uint32_t i;

	for (i = 0; i <= CUT_WRITERS; i++) {
		pids[i] = fork();
		if (pids[i] < 0)
			return -errno;
		if (pids[i] == 0) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			t->test->script->write(t, i);
			_exit(0);
		}
	}
	return 0;
}

/* So many messages, and then any block write. */
static int
wait_and_cut(struct trial *t, int wake)
{
	struct pollfd p = { .fd = wake, .events = POLLIN };

	if (poll(&p, 1, PATIENCE_MS) <= 0)
		return -ETIMEDOUT;
	block_arm(
	    &t->image.block, (uint64_t)random() % 100, (uint64_t)random());
	return block_wait(&t->image.block);
}

static int
run_until_cut(struct trial *t)
{
	pid_t pids[CUT_WRITERS + 1] = { 0 };
	int wake[2], r, i;

	memset(t->book, 0, sizeof(*t->book));
	t->book->power = t->image.block.control;
	t->book->target = 20 + (unsigned)random() % 100;
	if (pipe2(wake, O_CLOEXEC) < 0)
		return -errno;
	t->book->wake = wake[1];
	r = start_writers(t, pids);
	if (r == 0)
		r = wait_and_cut(t, wake[0]);
	for (i = 0; i <= CUT_WRITERS; i++) {
		if (pids[i] <= 0)
			continue;
		if (r < 0)
			kill(pids[i], SIGKILL);
		waitpid(pids[i], NULL, 0);
	}
	close(wake[0]);
	close(wake[1]);
	return r;
}

static void
sync_all(const char *mount)
{
	int fd = open(mount, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd >= 0)
		syncfs(fd);
	io_close(&fd);
}

static enum disk_result
one_cut(struct trial *t)
{
	struct spool sp;
	unsigned wrong;
	int r = run_until_cut(t);

	if (r < 0)
		return disk_failed(
		    t->test, "cannot cut the power: %s", strerror(-r));
	r = image_revive(&t->image, t->mount);
	if (r < 0)
		return disk_failed(
		    t->test, "cannot mount again: %s", strerror(-r));
	r = spool_open(&sp, &spool_sys_real, t->base, 1);
	if (r < 0)
		return disk_failed(
		    t->test, "the queue did not survive: %s", strerror(-r));
	wrong = t->test->script->judge(t, &sp);
	/* A file removed now must not come back at the next cut. */
	sync_all(t->mount);
	spool_close(&sp);
	if (wrong > 0)
		return disk_failed(
		    t->test, "%u files are wrong and not told", wrong);
	return DISK_OK;
}

static uint32_t
cuts_wanted(void)
{
	const char *said = getenv("CUTS");
	uint64_t n;

	if (said == NULL || num_u64(said, 1, UINT32_MAX, &n) < 0)
		return CUTS;
	return (uint32_t)n;
}

/* A wrong order is caught once and for all. */
static bool
enough(const struct trial *t)
{
	if (t->test->must_lose)
		return t->tally.lost > 0 || t->cut >= CUTS_MAX;
	return t->cut >= cuts_wanted();
}

static enum disk_result
all_cuts(struct trial *t)
{
	const struct tally *y = &t->tally;
	enum disk_result result = DISK_OK;
	struct spool sp;

	if (queue_open(t->base, &sp) < 0)
		return disk_failed(t->test, "no queue");
	spool_close(&sp);
	for (; result == DISK_OK && !enough(t); t->cut++)
		result = one_cut(t);
	if (result != DISK_OK)
		return result;
	printf("disk: %s: %u cuts, %u messages accepted, %u lost at %u cuts; "
	       "%u names found, %u told as torn; %u told after a cut\n",
	    t->test->name, t->cut, y->accepted, y->lost, y->lossy_cuts,
	    y->named, y->torn, y->late);
	if (!t->test->must_lose && y->lost > 0)
		return disk_failed(t->test, "accepted mail was lost");
	if (t->test->must_lose && y->lost == 0)
		return disk_failed(t->test,
		    "the wrong order was not caught: this test proves nothing");
	return DISK_OK;
}

enum disk_result
cut_run(const struct disk_test *test)
{
	struct trial t = { .test = test };
	enum disk_result result;
	const char *why;

	srandom(12);
	place("cut", t.mount);
	snprintf(t.base, sizeof(t.base), "%s/base", t.mount);
	t.book = mmap(NULL, sizeof(*t.book), PROT_READ | PROT_WRITE,
	    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (t.book == MAP_FAILED)
		return disk_failed(test, "no memory");
	why = image_open(&t.image, test->fs, 0);
	if (why != NULL)
		result = disk_skip(test, "%s", why);
	else if (image_mount(&t.image, t.mount) < 0)
		result = disk_skip(test, "cannot mount %s", test->fs->name);
	else
		result = all_cuts(&t);
	unmount(t.mount);
	image_close(&t.image);
	munmap(t.book, sizeof(*t.book));
	return result;
}
