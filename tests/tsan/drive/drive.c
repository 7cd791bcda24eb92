#include "tests/tsan/drive/drive.h"

#include <ftw.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "spool/accept.h"

#define THREADS 4
#define TASKS   4000

static struct queue_id ids[DRIVE_FILES];

void
drive_must(int r, const char *what)
{
	if (r >= 0)
		return;
	fprintf(stderr, "%s: %s\n", what, strerror(-r));
	abort();
}

static void
make_file(const struct spool *sp, struct queue_id *ret_id)
{
	const struct accept_options options = { .dir = SPOOL_INCOMING };
	struct accept a;

	drive_must(
	    accept_begin(&a, sp, &options, clock_wall(), getuid()), "begin");
	drive_must(queue_file_add_content(&a.writer, "a\n", 2), "content");
	drive_must(queue_file_add_sender(&a.writer, "s@x", 3), "sender");
	drive_must(queue_file_add_rcpt(&a.writer, "r@x", 3), "recipient");
	drive_must(accept_commit(&a, ret_id), "commit");
	accept_end(&a);
}

static void
begin(const struct drive *d, struct sync_pool *p, uint32_t file,
    const struct sync_task *before)
{
	struct sync_task *task = d->next(&ids[file], before);

	task->serial = file;
	sync_pool_put(p, task);
}

static uint32_t
take_all(const struct drive *d, struct sync_pool *p, uint32_t left)
{
	struct sync_task *task;
	uint32_t n = 0;

	while ((task = sync_pool_take(p)) != NULL) {
		drive_must(task->error, d->name);
		d->ended(task);
		if (n++ < left)
			begin(d, p, task->serial, task);
		sync_task_free(task);
	}
	return n;
}

static uint32_t
work(const struct drive *d, struct sync_pool *p)
{
	struct pollfd ready = { .fd = sync_pool_fd(p), .events = POLLIN };
	uint32_t i, n, taken = 0;

	for (i = 0; i < DRIVE_FILES; i++)
		begin(d, p, i, NULL);
	while (taken < TASKS && poll(&ready, 1, 30000) == 1) {
		n = taken + DRIVE_FILES;
		taken += take_all(d, p, n < TASKS ? TASKS - n : 0);
	}
	return taken;
}

static int
remove_one(const char *path, const struct stat *st UNUSED, int type UNUSED,
    struct FTW *ftw UNUSED)
{
	return remove(path);
}

int
drive_run(const struct drive *d)
{
	const struct spool_owner owner = { getuid(), getuid(), getgid(),
		getgid(), true };
	struct sync_pool *p;
	char dir[] = "/tmp/tsan-drive.XXXXXX";
	uint32_t i, taken;

	if (sync_pool_new(&spool_sys_real, THREADS, &p) < 0 ||
	    mkdtemp(dir) == NULL)
		return 1;
	drive_must(spool_create(dir, 1, 3, &owner), "spool");
	drive_must(spool_open(d->sp, &spool_sys_real, dir, 1), "open");
	if (d->share > 0)
		sync_pool_set_share(p, d->share, d->share);
	for (i = 0; i < DRIVE_FILES; i++)
		make_file(d->sp, &ids[i]);
	taken = work(d, p);
	(void)sync_pool_free(&p);
	spool_close(d->sp);
	(void)nftw(dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
	printf("tsan: %s: %u by %d threads\n", d->name, taken, THREADS);
	printf("%s%s\n", taken == TASKS ? "1 passed, 0 failed" : "FAILED ",
	    taken == TASKS ? "" : d->name);
	return taken == TASKS ? 0 : 1;
}
