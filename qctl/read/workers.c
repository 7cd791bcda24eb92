/* The parent's side: starts workers, reads their frames, leaves behind those
 * that give no sign of life. */
#include "qctl/read/worker.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/io.h"
#include "base/text.h"

#define WORKERS_MAX 64 /* at a time */
#define NICE        10 /* of gentle ones */

struct place {
	int fd;
	pid_t pid;
	uint32_t queue;
	bool done; /* WORKER_DONE has come */
};

struct crowd {
	const struct worker_job *job;
	struct worker_totals *totals;
	struct place places[WORKERS_MAX];
	size_t count, next; /* workers; index of the next queue */
	bool wrote;         /* text, behind the head */
	char data[WORKER_FRAME_MAX];
};

/* ---- starting ---- */

/* A worker that is stopped sees no pipe close: the kernel ends it with its
 * parent, so that none is left that nobody reads. */
static void
bind_to_parent(pid_t parent)
{
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(1);
}

static _Noreturn void
be_worker(const struct worker_job *job, pid_t parent, int fd, uint32_t queue)
{
	int null;

	bind_to_parent(parent);
	null = open("/dev/null", O_RDWR);
	if (null < 0 || dup2(null, 0) < 0 || dup2(null, 1) < 0 ||
	    dup2(null, 2) < 0 || dup2(fd, 3) < 0)
		_exit(1);
	(void)close_range(4, ~0u, 0);
	if (job->gentle)
		(void)setpriority(
		    PRIO_PROCESS, 0, getpriority(PRIO_PROCESS, 0) + NICE);
	_exit(worker_main(job, 3, queue));
}

static int
start(struct crowd *c)
{
	const uint32_t queue = c->job->queues[c->next];
	const pid_t parent = getpid();
	int ends[2];
	pid_t pid;

	if (pipe2(ends, O_CLOEXEC) < 0)
		return -errno;
	pid = fork();
	if (pid == 0)
		be_worker(c->job, parent, ends[1], queue);
	close(ends[1]);
	if (pid < 0) {
		close(ends[0]);
		return -EAGAIN;
	}
	c->places[c->count++] =
	    (struct place){ .fd = ends[0], .pid = pid, .queue = queue };
	c->next++;
	return 0;
}

/* Without a process more it goes on with those that run. */
static int
start_more(struct crowd *c)
{
	int r = 0;

	while (r == 0 && c->count < WORKERS_MAX && c->next < c->job->nqueues)
		r = start(c);
	return c->count > 0 ? 0 : r;
}

/* ---- ends ---- */

static void
complain(const struct crowd *c, uint32_t queue, const char *what)
{
	struct buf clean = { 0 };

	(void)text_clean(&clean, what, strlen(what), 400);
	fflush(stdout);
	if (c->job->name != NULL)
		fprintf(stderr, "%s: %s: %s\n", c->job->program, c->job->name,
		    buf_str(&clean));
	else
		fprintf(stderr, "%s: queue %" PRIu32 ": %s\n", c->job->program,
		    queue, buf_str(&clean));
	buf_done(&clean);
}

static void
forget(struct crowd *c, size_t i)
{
	close(c->places[i].fd);
	c->places[i] = c->places[--c->count];
}

/* The pipe is closed, so the worker has ended or is about to. */
static void
end(struct crowd *c, size_t i)
{
	const struct place *p = &c->places[i];

	while (waitpid(p->pid, NULL, 0) < 0 && errno == EINTR)
		;
	if (!p->done) {
		complain(c, p->queue, "the process that read it has died");
		c->totals->troubled++;
	}
	forget(c, i);
}

/* A process that sleeps in the kernel dies when its disk answers. */
static void
leave_behind(struct crowd *c)
{
	while (c->count > 0) {
		const struct place *p = &c->places[c->count - 1];

		kill(p->pid, SIGKILL);
		complain(c, p->queue, c->job->silent);
		c->totals->silent++;
		forget(c, c->count - 1);
	}
}

/* ---- frames ---- */

static int
put(struct crowd *c, size_t len)
{
	if (len > 0 && !c->wrote && c->job->head != NULL)
		(void)fputs(c->job->head, stdout);
	c->wrote |= len > 0;
	if (fwrite(c->data, 1, len, stdout) != len || ferror(stdout) != 0)
		return -EIO;
	return 0;
}

static int
take(struct crowd *c, struct place *p, const struct frame_head *h)
{
	c->totals->messages += h->messages;
	c->totals->bytes += h->bytes;
	c->totals->denied += h->type == WORKER_DENIED;
	p->done |= h->type == WORKER_DONE;
	if (h->type == WORKER_TEXT || h->type == WORKER_PART)
		return put(c, h->len);
	if (h->type == WORKER_ROW)
		c->job->take_row(p->queue, c->data, h->len, c->job->arg);
	if (h->type == WORKER_NOTE) {
		c->data[h->len < sizeof(c->data) ? h->len : h->len - 1] = '\0';
		complain(c, p->queue, c->data);
		c->totals->troubled++;
	}
	return 0;
}

/* A worker writes a frame from its memory: once it has begun, all of it comes.
 * 1: there is more; 0: the end. */
static int
read_frame(struct crowd *c, struct place *p, struct frame_head *h)
{
	int64_t n = io_read_all(p->fd, h, sizeof(*h));

	if (n != sizeof(*h) || h->len > sizeof(c->data) ||
	    io_read_all(p->fd, c->data, h->len) != (int64_t)h->len)
		return 0;
	return 1;
}

/* 1: readable; 0: nothing within the limit. */
static int
wait_for(int fd, usec_t limit)
{
	struct pollfd pfd = { .fd = fd, .events = POLLIN };
	int n;

	do
		n = poll(&pfd, 1, (int)(limit / USEC_PER_MSEC));
	while (n < 0 && errno == EINTR);
	return n;
}

/* One frame, or a message in parts, whole. A worker that falls silent within a
 * message leaves it cut off. */
static int
take_from(struct crowd *c, size_t i)
{
	struct frame_head h;
	int r;

	do {
		if (read_frame(c, &c->places[i], &h) == 0) {
			end(c, i);
			return 0;
		}
		r = take(c, &c->places[i], &h);
	} while (r == 0 && h.type == WORKER_PART &&
	    wait_for(c->places[i].fd, c->job->silence_limit) > 0);
	return r;
}

/* From the last place to the first: end() fills a place that is free with the
 * last one. */
static int
take_ready(struct crowd *c, const struct pollfd *fds, size_t count)
{
	int r = 0;

	while (r == 0 && count-- > 0)
		if (fds[count].revents != 0)
			r = take_from(c, count);
	return r;
}

static int
turn(struct crowd *c)
{
	struct pollfd fds[WORKERS_MAX];
	const size_t count = c->count;
	size_t i;
	int n;

	for (i = 0; i < count; i++)
		fds[i] =
		    (struct pollfd){ .fd = c->places[i].fd, .events = POLLIN };
	n = poll(fds, count, 0);
	if (n == 0) {
		/* Output does not wait for the next frame. */
		if (fflush(stdout) != 0)
			return -EIO;
		n = poll(
		    fds, count, (int)(c->job->silence_limit / USEC_PER_MSEC));
	}
	if (n == 0)
		leave_behind(c);
	return n > 0 ? take_ready(c, fds, count) : 0;
}

static void
stop(struct crowd *c)
{
	while (c->count > 0) {
		kill(c->places[c->count - 1].pid, SIGKILL);
		forget(c, c->count - 1);
	}
}

int
worker_run_all(const struct worker_job *job, struct worker_totals *totals)
{
	static struct crowd crowd; /* too large for a stack */
	int r;

	crowd = (struct crowd){ .job = job, .totals = totals };
	*totals = (struct worker_totals){ 0 };
	fflush(stdout);
	while ((r = start_more(&crowd)) == 0 && crowd.count > 0 &&
	    (r = turn(&crowd)) == 0)
		;
	stop(&crowd);
	if (r == 0 && fflush(stdout) != 0)
		r = -EIO;
	return r;
}
