/* A loop that gives files to the pool of spool/sync_pool.h and takes them back,
 * while threads sync them: under ThreadSanitizer (make check-tsan). */
#include "spool/sync_pool.h"

#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"

#define THREADS 4
#define AT_ONCE 64
#define JOBS    20000

static int
no_sync(int fd UNUSED)
{
	return 0;
}

static const struct spool_sys sys = { .fsync = no_sync, .syncfs = no_sync };

static void
put_one(struct sync_pool *p, uint32_t serial)
{
	struct sync_task *job = sync_task_new(NULL);

	if (job == NULL)
		abort();
	job->serial = serial;
	job->inode = serial;
	job->fds[0] = open("/dev/null", O_RDONLY | O_CLOEXEC);
	sync_pool_put(p, job);
}

static uint32_t
take_all(struct sync_pool *p)
{
	struct sync_task *job;
	uint32_t n = 0;

	while ((job = sync_pool_take(p)) != NULL) {
		if (job->error != 0 || job->serial != job->inode)
			abort();
		sync_task_free(job);
		n++;
	}
	return n;
}

static int
run(unsigned least, unsigned most)
{
	struct sync_pool *p;
	struct pollfd ready = { .events = POLLIN };
	uint32_t put = 0, taken = 0;

	if (sync_pool_new(&sys, THREADS, &p) < 0)
		return 1;
	sync_pool_set_share(p, least, most);
	ready.fd = sync_pool_fd(p);
	while (taken < JOBS) {
		while (put < JOBS && put - taken < AT_ONCE)
			put_one(p, put++);
		if (poll(&ready, 1, 30000) != 1) {
			printf("FAILED sync_pool: %u of %u are back\n", taken,
			    put);
			return 1;
		}
		taken += take_all(p);
		(void)sync_pool_press(p, clock_mono());
	}
	put_one(p, 0); /* the end meets work */
	sync_pool_free(&p);
	return 0;
}

int
main(void)
{
	if (run(1, 1) != 0 || run(8, 8) != 0 || run(1, 8) != 0)
		return 1;
	printf("tsan: sync_pool: three times %d jobs by %d threads\n"
	       "1 passed, 0 failed\n",
	    JOBS, THREADS);
	return 0;
}
