#include "spool/sync_pool.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "base/io.h"

#define THREADS_MAX 8
#define STACK       (UINT32_C(256) * 1024)

struct sync_pool {
	const struct spool_sys *sys;
	pthread_mutex_t lock;
	pthread_cond_t work;
	struct sync_tasks waiting, done;
	unsigned nwaiting, nrunning; /* tasks */
	unsigned nidle, nwoken;      /* threads; a woken one is not idle */
	unsigned share;
	bool stop;
	int fd;
	unsigned limit, nthreads;
	pthread_t threads[THREADS_MAX];
};

struct sync_task *
sync_task_new(void)
{
	struct sync_task *task = calloc(1, sizeof(*task));
	int i;

	for (i = 0; task != NULL && i < SYNC_JOB_FDS; i++)
		task->fds[i] = -1;
	return task;
}

void
sync_task_free(struct sync_task *task)
{
	int i;

	for (i = 0; task != NULL && i < SYNC_JOB_FDS; i++)
		io_close(&task->fds[i]);
	if (task != NULL && task->drop != NULL)
		task->drop(task);
	free(task);
}

static void
run_job(const struct spool_sys *sys, struct sync_task *task)
{
	int (*sync)(int fd) = task->whole ? sys->syncfs : sys->fsync;
	int i;

	if (task->work != NULL)
		task->error = task->work(task);
	for (i = 0; i < SYNC_JOB_FDS; i++) {
		if (task->fds[i] < 0)
			continue;
		if (task->work == NULL && task->error == 0 &&
		    sync(task->fds[i]) < 0)
			task->error = -errno;
		io_close(&task->fds[i]);
	}
}

/* The descriptor is readable as long as there is one: it is written to with
 * the first and read with the last. With the lock held. */
static void
finish_job(struct sync_pool *p, struct sync_task *task)
{
	const uint64_t one = 1;

	if (STAILQ_EMPTY(&p->done))
		(void)!write(p->fd, &one, sizeof(one));
	STAILQ_INSERT_TAIL(&p->done, task, link);
}

/* A thread is idle until another one has woken it. With the lock held. */
static void
be_idle(struct sync_pool *p)
{
	p->nidle++;
	while (p->nwoken == 0 && !p->stop)
		pthread_cond_wait(&p->work, &p->lock);
	p->nwoken -= p->nwoken > 0;
}

static void *
run_thread(void *arg)
{
	struct sync_pool *p = arg;
	struct sync_task *task;

	pthread_mutex_lock(&p->lock);
	while (!p->stop) {
		task = STAILQ_FIRST(&p->waiting);
		if (task == NULL) {
			be_idle(p);
			continue;
		}
		STAILQ_REMOVE_HEAD(&p->waiting, link);
		p->nwaiting--;
		p->nrunning++;
		pthread_mutex_unlock(&p->lock);
		run_job(p->sys, task);
		pthread_mutex_lock(&p->lock);
		p->nrunning--;
		finish_job(p, task);
	}
	pthread_mutex_unlock(&p->lock);
	return NULL;
}

/* The loop of the process takes the signals. With the lock held. */
static int
start_thread(struct sync_pool *p)
{
	sigset_t all, before;
	pthread_attr_t attr;
	int r = pthread_attr_init(&attr);

	if (r != 0)
		return -r;
	(void)pthread_attr_setstacksize(&attr, STACK);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	r = pthread_create(&p->threads[p->nthreads], &attr, run_thread, p);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_attr_destroy(&attr);
	if (r == 0)
		p->nthreads++;
	return -r;
}

struct sync_pool *
sync_pool_new(const struct spool_sys *sys, unsigned threads)
{
	struct sync_pool *p = calloc(1, sizeof(*p));

	if (p == NULL)
		return NULL;
	p->sys = sys;
	p->limit = threads < THREADS_MAX ? threads : THREADS_MAX;
	p->share = 1;
	STAILQ_INIT(&p->waiting);
	STAILQ_INIT(&p->done);
	pthread_mutex_init(&p->lock, NULL);
	pthread_cond_init(&p->work, NULL);
	p->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (p->fd < 0)
		sync_pool_free(&p);
	return p;
}

static bool
join_threads(struct sync_pool *p)
{
	struct timespec limit;
	unsigned i;

	clock_gettime(CLOCK_REALTIME, &limit);
	limit.tv_sec++;
	for (i = 0; i < p->nthreads; i++)
		if (pthread_timedjoin_np(p->threads[i], NULL, &limit) != 0)
			return false;
	return true;
}

static void
free_tasks(struct sync_tasks *tasks)
{
	struct sync_task *task;

	while ((task = STAILQ_FIRST(tasks)) != NULL) {
		STAILQ_REMOVE_HEAD(tasks, link);
		sync_task_free(task);
	}
}

void
sync_pool_free(struct sync_pool **pool)
{
	struct sync_pool *p = *pool;

	*pool = NULL;
	if (p == NULL)
		return;
	pthread_mutex_lock(&p->lock);
	p->stop = true;
	pthread_cond_broadcast(&p->work);
	pthread_mutex_unlock(&p->lock);
	if (!join_threads(
		p)) /* a thread that hangs in a disk still uses the pool */
		return;
	free_tasks(&p->waiting);
	free_tasks(&p->done);
	io_close(&p->fd);
	pthread_cond_destroy(&p->work);
	pthread_mutex_destroy(&p->lock);
	free(p);
}

int
sync_pool_fd(const struct sync_pool *p)
{
	return p->fd;
}

void
sync_pool_set_share(struct sync_pool *p, unsigned share)
{
	p->share = share;
}

/* Has each thread that is not idle its share? With the lock held. */
static bool
is_one_more_wanted(const struct sync_pool *p)
{
	const unsigned tasks = p->nwaiting + p->nrunning + 1;

	return (p->nthreads - p->nidle) * p->share < tasks;
}

/* Wake a thread, or start one. With the lock held. */
static int
add_thread(struct sync_pool *p)
{
	if (p->nidle == 0)
		return p->nthreads < p->limit ? start_thread(p) : 0;
	p->nidle--;
	p->nwoken++;
	pthread_cond_signal(&p->work);
	return 0;
}

int
sync_pool_put(struct sync_pool *p, struct sync_task *task)
{
	int r = 0;

	if (p->limit == 0) {
		run_job(p->sys, task);
		finish_job(p, task); /* and no other thread uses it */
		return 0;
	}
	pthread_mutex_lock(&p->lock);
	if (is_one_more_wanted(p))
		r = add_thread(p);
	if (p->nthreads > 0) { /* the other threads do it, later */
		STAILQ_INSERT_TAIL(&p->waiting, task, link);
		p->nwaiting++;
		r = 0;
	}
	pthread_mutex_unlock(&p->lock);
	return r;
}

struct sync_task *
sync_pool_take(struct sync_pool *p)
{
	struct sync_task *task;
	uint64_t count;

	pthread_mutex_lock(&p->lock);
	task = STAILQ_FIRST(&p->done);
	if (task != NULL) {
		STAILQ_REMOVE_HEAD(&p->done, link);
		if (STAILQ_EMPTY(&p->done))
			(void)!read(p->fd, &count, sizeof(count));
	}
	pthread_mutex_unlock(&p->lock);
	return task;
}
