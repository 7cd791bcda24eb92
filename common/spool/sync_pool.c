#include "spool/sync_pool.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/io.h"

#define STACK      (UINT32_C(256) * 1024)
#define LATE       (5 * USEC_PER_MSEC)
#define SHARE_TIME USEC_PER_MSEC
#define MEAN_OF    8 /* about so many tasks */

struct thread {
	pthread_t id;
	usec_t began; /* the task that it has; 0: none */
	bool late;    /* and what waits is not its share */
};

struct sync_pool {
	const struct spool_sys *sys;
	pthread_mutex_t lock;
	pthread_cond_t work;
	struct sync_tasks waiting, done;
	unsigned nwaiting, nrunning, ndone; /* tasks */
	bool told;                          /* the descriptor is readable */
	unsigned nidle, nwoken; /* threads; a woken one is not idle */
	unsigned least, most;   /* tasks for a thread */
	usec_t times;           /* the mean of the last tasks, MEAN_OF times */
	bool stop;
	int fd;
	unsigned nlate;
	unsigned nnumbered;
	usec_t slow_limit, slow_at; /* 0: none */
	unsigned limit, nthreads;
	struct thread threads[];
};

void
sync_task_init(struct sync_task *task, int (*work)(struct sync_task *task),
    void (*drop)(struct sync_task *task),
    void (*ended)(void *owner, struct sync_task *task))
{
	int i;

	*task =
	    (struct sync_task){ .work = work, .drop = drop, .ended = ended };
	for (i = 0; i < SYNC_JOB_FDS; i++)
		task->fds[i] = -1;
}

struct sync_task *
sync_task_new(void (*ended)(void *owner, struct sync_task *task))
{
	struct sync_task *task = malloc(sizeof(*task));

	if (task != NULL)
		sync_task_init(task, NULL, NULL, ended);
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

void
sync_task_run(const struct spool_sys *sys, struct sync_task *task)
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

/* With the lock held. */
static unsigned
share_of(const struct sync_pool *p)
{
	unsigned n = p->most;

	if (p->times * p->most > SHARE_TIME * MEAN_OF)
		n = (unsigned)(SHARE_TIME * MEAN_OF / p->times);
	return n > p->least ? n : p->least;
}

/* The descriptor is read with the last task that is taken. The owner is not
 * woken for each of many short tasks. With the lock held. */
static void
finish_job(struct sync_pool *p, struct sync_task *task)
{
	const uint64_t one = 1;

	STAILQ_INSERT_TAIL(&p->done, task, link);
	p->ndone++;
	if (p->told || (p->nwaiting > 0 && p->ndone < share_of(p)))
		return;
	p->told = true;
	(void)!write(p->fd, &one, sizeof(one));
}

/* A task that hangs counts no more than one that fills its thread's time. With
 * the lock held. */
static void
note_time(struct sync_pool *p, struct thread *t)
{
	const usec_t now = clock_mono(), took = now - t->began;

	if (p->slow_limit > 0 && took > p->slow_limit)
		p->slow_at = now;
	p->times -= p->times / MEAN_OF;
	p->times += took < SHARE_TIME ? took : SHARE_TIME;
	t->began = 0;
	p->nlate -= t->late;
	t->late = false;
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
	struct thread *self;

	pthread_mutex_lock(&p->lock);
	self = &p->threads[p->nnumbered++];
	while (!p->stop) {
		task = STAILQ_FIRST(&p->waiting);
		if (task == NULL) {
			be_idle(p);
			continue;
		}
		STAILQ_REMOVE_HEAD(&p->waiting, link);
		p->nwaiting--;
		p->nrunning++;
		self->began = clock_mono();
		pthread_mutex_unlock(&p->lock);
		sync_task_run(p->sys, task);
		pthread_mutex_lock(&p->lock);
		note_time(p, self);
		p->nrunning--;
		finish_job(p, task);
	}
	pthread_mutex_unlock(&p->lock);
	return NULL;
}

/* The loop of the process takes the signals. With the lock held, or before the
 * first task. */
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
	r = pthread_create(&p->threads[p->nthreads].id, &attr, run_thread, p);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_attr_destroy(&attr);
	if (r == 0)
		p->nthreads++;
	return -r;
}

int
sync_pool_new(
    const struct spool_sys *sys, unsigned threads, struct sync_pool **ret_pool)
{
	struct sync_pool *p =
	    calloc(1, sizeof(*p) + threads * sizeof(p->threads[0]));
	int r;

	if (p == NULL)
		return -ENOMEM;
	p->sys = sys;
	p->limit = threads;
	p->least = p->most = 1;
	STAILQ_INIT(&p->waiting);
	STAILQ_INIT(&p->done);
	pthread_mutex_init(&p->lock, NULL);
	pthread_cond_init(&p->work, NULL);
	p->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	r = p->fd < 0 ? -errno : start_thread(p);
	if (r < 0)
		(void)sync_pool_free(&p);
	*ret_pool = p;
	return r;
}

static bool
join_threads(struct sync_pool *p)
{
	struct timespec limit;
	unsigned i;

	clock_gettime(CLOCK_REALTIME, &limit);
	limit.tv_sec++;
	for (i = 0; i < p->nthreads; i++)
		if (pthread_timedjoin_np(p->threads[i].id, NULL, &limit) != 0)
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

bool
sync_pool_free(struct sync_pool **pool)
{
	struct sync_pool *p = *pool;

	*pool = NULL;
	if (p == NULL)
		return true;
	pthread_mutex_lock(&p->lock);
	p->stop = true;
	pthread_cond_broadcast(&p->work);
	pthread_mutex_unlock(&p->lock);
	if (!join_threads(p)) /* that thread still uses the pool */
		return false;
	free_tasks(&p->waiting);
	free_tasks(&p->done);
	io_close(&p->fd);
	pthread_cond_destroy(&p->work);
	pthread_mutex_destroy(&p->lock);
	free(p);
	return true;
}

int
sync_pool_fd(const struct sync_pool *p)
{
	return p->fd;
}

void
sync_pool_set_share(struct sync_pool *p, unsigned least, unsigned most)
{
	p->least = least;
	p->most = most;
}

void
sync_pool_set_slow(struct sync_pool *p, usec_t limit)
{
	p->slow_limit = limit;
}

usec_t
sync_pool_slow_at(struct sync_pool *p, usec_t now)
{
	usec_t at;
	unsigned i;

	pthread_mutex_lock(&p->lock);
	for (i = 0; i < p->nnumbered; i++)
		if (p->threads[i].began > 0 &&
		    now - p->threads[i].began > p->slow_limit)
			p->slow_at = now;
	at = p->slow_at;
	pthread_mutex_unlock(&p->lock);
	return at;
}

usec_t
sync_pool_oldest(struct sync_pool *p)
{
	usec_t oldest = 0;
	unsigned i;

	pthread_mutex_lock(&p->lock);
	for (i = 0; i < p->nnumbered; i++) {
		const usec_t began = p->threads[i].began;

		if (began > 0 && (oldest == 0 || began < oldest))
			oldest = began;
	}
	pthread_mutex_unlock(&p->lock);
	return oldest;
}

/* Has each thread that is not idle, nor late, its share with so many tasks that
 * wait? With the lock held. */
static bool
is_one_more_wanted(const struct sync_pool *p, unsigned waiting)
{
	const unsigned threads = p->nthreads - p->nidle - p->nlate;

	return threads * share_of(p) < waiting + p->nrunning - p->nlate;
}

/* Wake a thread, or start one. Where none can be started those that there are
 * do the work, later. With the lock held. */
static void
add_thread(struct sync_pool *p)
{
	if (p->nidle == 0) {
		if (p->nthreads < p->limit)
			(void)start_thread(p);
		return;
	}
	p->nidle--;
	p->nwoken++;
	pthread_cond_signal(&p->work);
}

void
sync_pool_put(struct sync_pool *p, struct sync_task *task)
{
	pthread_mutex_lock(&p->lock);
	if (is_one_more_wanted(p, p->nwaiting + 1))
		add_thread(p);
	STAILQ_INSERT_TAIL(&p->waiting, task, link);
	p->nwaiting++;
	pthread_mutex_unlock(&p->lock);
}

/* With the lock held. */
static void
find_late(struct sync_pool *p, usec_t now)
{
	struct thread *t;

	for (t = p->threads; t < p->threads + p->nnumbered; t++)
		if (!t->late && t->began > 0 && now - t->began > LATE) {
			t->late = true;
			p->nlate++;
		}
}

usec_t
sync_pool_press(struct sync_pool *p, usec_t now)
{
	bool busy;

	pthread_mutex_lock(&p->lock);
	find_late(p, now);
	if (p->nwaiting > 0 && is_one_more_wanted(p, p->nwaiting))
		add_thread(p);
	busy = p->most > 1 &&
	    (p->nwaiting + p->ndone > 0 || p->nrunning > p->nlate);
	pthread_mutex_unlock(&p->lock);
	return busy ? now + LATE : USEC_NEVER;
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
		p->ndone--;
		if (p->ndone == 0 && p->told)
			(void)!read(p->fd, &count, sizeof(count));
		p->told &= p->ndone > 0;
	}
	pthread_mutex_unlock(&p->lock);
	return task;
}
