/* make bench: what the shared table of destinations costs. Prints lines of
 * words between tabs, which bench.py makes tables of:
 *
 *	cost   processes  destinations  take and done/s in all  ns of processor
 *	       time for one  least/mean
 *	line   processes  window  part of the window that is used  least/mean
 *	       microseconds from a place given back to its next use
 */
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "ipc/names.h"
#include "site/shared.h"

#define PROCESSES_MAX 20
#define SITES_MAX     1000
#define LENGTH        USEC_PER_SEC
#define HOLD          (5 * USEC_PER_MSEC)

struct bench {
	uint32_t processes, sites, window;
	bool hold; /* places are held, and there are too few */
	int fd;
	char name[IPC_NAME_MAX];
	struct board {
		uint32_t ready, go, stop;
		uint64_t count[PROCESSES_MAX];
		uint64_t ns[PROCESSES_MAX]; /* of processor time */
	} * board;
};

struct worker {
	struct bench *b;
	struct shared *shared;
	struct site *sites[SITES_MAX];
	uint64_t count;
	usec_t until, next; /* of the place that is held; of shared_work() */
	bool held;
};

static void
must(bool good, const char *what)
{
	if (!good) {
		perror(what);
		exit(1);
	}
}

static bool
stopped(const struct worker *w)
{
	return __atomic_load_n(&w->b->board->stop, __ATOMIC_RELAXED) != 0;
}

/* ---- places taken and given back at once ---- */

static void
take_and_done(struct worker *w)
{
	uint32_t i = 0;
	usec_t now = clock_mono();

	while ((w->count & 63) != 0 || !stopped(w)) {
		struct site *site = w->sites[i++ % w->b->sites];

		if (site_take(site, now) == SITE_ROOM) {
			site_done(site, &(struct site_report){ 0 }, now, NULL);
			w->count++;
		} else if (stopped(w)) {
			return;
		}
	}
}

/* ---- fewer places than are wanted ---- */

static void
want(struct worker *w, usec_t now)
{
	if (w->held)
		return;
	if (site_take(w->sites[0], now) == SITE_ROOM) {
		w->held = true;
		w->until = now + HOLD;
	} else {
		(void)site_wait(w->sites[0], true, now);
	}
}

static void
on_ready(void *ctx, void *user UNUSED)
{
	want(ctx, clock_mono());
}

static void
hold_and_wait(struct worker *w)
{
	struct pollfd p = { .fd = shared_wake_fd(w->shared), .events = POLLIN };

	while (!stopped(w)) {
		usec_t now = clock_mono(), until = w->next;
		struct timespec t;

		if (w->held && now >= w->until) {
			site_done(
			    w->sites[0], &(struct site_report){ 0 }, now, NULL);
			w->held = false;
			w->count++;
		}
		want(w, now);
		w->next = shared_work(w->shared, now, on_ready, w);
		until = w->held && w->until < w->next ? w->until : w->next;
		until = until - now > LENGTH / 10 ? LENGTH / 10 : until - now;
		t = (struct timespec){ .tv_nsec =
					   until > 0 ? until * 1000 : 0 };
		(void)ppoll(&p, 1, &t, NULL);
	}
}

/* ---- processes ---- */

static const char *const names[] = { "smtp" };

static void
worker_begin(struct worker *w, struct bench *b, uint32_t index)
{
	struct site_params site = {
		.initial_destination_concurrency = b->window,
		.destination_concurrency_limit = b->window,
		.positive = { 1, WINDOW_FIXED },
		.negative = { 1, WINDOW_FIXED },
		.failed_cohort_limit = 1,
	};
	struct shared_params p = { &site, names, 1,
		{ 300 * USEC_PER_SEC, 4000 * USEC_PER_SEC, 20 } };
	uint32_t i;

	*w = (struct worker){ .b = b, .next = USEC_NEVER };
	must(shared_new(&p, index, &w->shared) == 0 &&
		shared_attach(w->shared, b->fd, index, 1, clock_mono()) == 0,
	    "attach");
	for (i = 0; i < b->sites; i++) {
		char name[32];

		/* Of one: the same for all; else each its own. */
		snprintf(name, sizeof(name), "h%u.example",
		    b->sites == 1 ? 0U : index * SITES_MAX + i);
		w->sites[i] = site_open(w->shared, 0, name, clock_mono());
		must(w->sites[i] != NULL, name);
		*site_user(w->sites[i]) = w;
	}
}

static uint64_t
processor_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static _Noreturn void
run(struct bench *b, uint32_t index)
{
	static struct worker w;
	uint64_t began;

	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	worker_begin(&w, b, index);
	__atomic_add_fetch(&b->board->ready, 1, __ATOMIC_RELAXED);
	while (__atomic_load_n(&b->board->go, __ATOMIC_ACQUIRE) == 0)
		(void)poll(NULL, 0, 1);
	began = processor_ns();
	if (b->hold)
		hold_and_wait(&w);
	else
		take_and_done(&w);
	b->board->count[index] = w.count;
	b->board->ns[index] = processor_ns() - began;
	_exit(0);
}

static void
bench_begin(struct bench *b)
{
	const struct shared_shape shape = { .slots = 65536,
		.members = PROCESSES_MAX };
	const struct shared_owner owner = { (uid_t)-1, (gid_t)-1 };
	char instance[32];

	snprintf(instance, sizeof(instance), "b%ld", (long)getpid());
	ipc_name_sites(instance, b->name);
	must(shared_create(b->name, &shape, &owner, &b->fd) == 0 &&
		shared_open_up(b->fd) == 0,
	    b->name);
	b->board = mmap(NULL, sizeof(*b->board), PROT_READ | PROT_WRITE,
	    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	must(b->board != MAP_FAILED, "mmap");
}

static void
bench_end(struct bench *b)
{
	shm_unlink(b->name);
	close(b->fd);
	munmap(b->board, sizeof(*b->board));
}

static usec_t
bench_run(struct bench *b)
{
	pid_t pids[PROCESSES_MAX];
	usec_t began;
	uint32_t i;

	for (i = 0; i < b->processes; i++) {
		pids[i] = fork();
		must(pids[i] >= 0, "fork");
		if (pids[i] == 0)
			run(b, i);
	}
	while (
	    __atomic_load_n(&b->board->ready, __ATOMIC_RELAXED) < b->processes)
		(void)poll(NULL, 0, 1);
	began = clock_mono();
	__atomic_store_n(&b->board->go, 1, __ATOMIC_RELEASE);
	(void)poll(NULL, 0, (int)(LENGTH / USEC_PER_MSEC));
	began = clock_mono() - began;
	__atomic_store_n(&b->board->stop, 1, __ATOMIC_RELAXED);
	for (i = 0; i < b->processes; i++)
		must(waitpid(pids[i], NULL, 0) == pids[i], "waitpid");
	return began;
}

static void
print(const struct bench *b, usec_t took)
{
	uint64_t sum = 0, ns = 0, least = UINT64_MAX;
	double each, share;
	uint32_t i;

	for (i = 0; i < b->processes; i++) {
		sum += b->board->count[i];
		ns += b->board->ns[i];
		if (b->board->count[i] < least)
			least = b->board->count[i];
	}
	each = (double)took / (double)(sum == 0 ? 1 : sum);
	share = (double)least * b->processes / (double)(sum == 0 ? 1 : sum);
	if (b->hold)
		printf("line\t%u\t%u\t%.3f\t%.2f\t%.0f\n", b->processes,
		    b->window, (double)HOLD / b->window / each, share,
		    each * b->window - (double)HOLD);
	else
		printf("cost\t%u\t%u\t%.0f\t%.0f\t%.2f\n", b->processes,
		    b->sites, 1e6 / each,
		    (double)ns / (double)(sum == 0 ? 1 : sum), share);
}

int
main(void)
{
	static const struct bench cases[] = {
		{ 1, 1, 20, false, -1, "", NULL },
		{ 2, 1, 20, false, -1, "", NULL },
		{ 8, 1, 20, false, -1, "", NULL },
		{ 20, 1, 20, false, -1, "", NULL },
		{ 1, 1000, 20, false, -1, "", NULL },
		{ 2, 1000, 20, false, -1, "", NULL },
		{ 8, 1000, 20, false, -1, "", NULL },
		{ 20, 1000, 20, false, -1, "", NULL },
		{ 2, 1, 1, true, -1, "", NULL },
		{ 8, 1, 4, true, -1, "", NULL },
		{ 20, 1, 10, true, -1, "", NULL },
	};
	size_t i;

	for (i = 0; i < ARRAY_LEN(cases); i++) {
		struct bench b = cases[i];

		bench_begin(&b);
		print(&b, bench_run(&b));
		bench_end(&b);
		fflush(stdout);
	}
	return 0;
}
