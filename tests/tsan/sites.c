/* Several queues' ends of one table of destinations, in threads of one process
 * so that ThreadSanitizer sees what they do to it: places, lines, deaths,
 * flushes, members that are forgotten and taken again. A plain program
 * (make check-tsan). */
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/clock.h"
#include "ipc/names.h"
#include "site/shared_parts.h"

#define ENDS   4
#define SITES  6
#define STEPS  20000
#define LIVES  4 /* of each end */
#define WINDOW 2

struct end {
	pthread_t thread;
	uint32_t index, life;
	struct shared *shared;
	struct site *sites[SITES];
	uint32_t held[SITES];
	uint64_t seed, takes, over, steps;
	usec_t now;
};

static struct shared_segment segment;
static uint32_t counted[SITES]; /* atomic: places, beside the table */

static uint32_t
dice(struct end *e, uint32_t sides)
{
	e->seed = e->seed * UINT64_C(6364136223846793005) + 1442695040888963407;
	return (uint32_t)(e->seed >> 33) % sides;
}

static void
take(struct end *e, uint32_t i)
{
	if (site_take(e->sites[i], e->now) != SITE_ROOM) {
		(void)site_wait(e->sites[i], true, e->now);
		return;
	}
	e->held[i]++;
	e->takes++;
	if (__atomic_add_fetch(&counted[i], 1, __ATOMIC_SEQ_CST) > WINDOW)
		e->over++;
}

static void
done(struct end *e, uint32_t i)
{
	struct site_report report = { .why = "why" };
	struct site_step step;

	if (e->held[i] == 0)
		return;
	e->held[i]--;
	__atomic_sub_fetch(&counted[i], 1, __ATOMIC_SEQ_CST);
	if (i > 0 && dice(e, 8) == 0)
		report.result = dice(e, 2) == 0 ? SITE_FAILED : SITE_DOUBTED;
	report.message = 1 + dice(e, 3);
	site_done(e->sites[i], &report, e->now, &step);
}

static void
on_ready(void *ctx, void *user)
{
	struct end *e = ctx;

	take(e, (uint32_t)((struct site **)user - e->sites));
}

static void
step(struct end *e)
{
	struct pollfd p = { .fd = shared_wake_fd(e->shared), .events = POLLIN };
	uint32_t i = dice(e, SITES), n = dice(e, 1000);

	e->now = clock_mono();
	e->steps++;
	if (n < 400)
		take(e, i);
	else if (n < 850)
		done(e, i);
	else if (n < 880)
		(void)site_wait(e->sites[i], false, e->now);
	else if (n < 890)
		site_flush(e->shared, e->now);
	else if (n < 895) /* not of this life, and of nobody */
		shared_forget(e->shared, dice(e, ENDS), 0, e->now);
	else if (n < 990 || poll(&p, 1, 1) >= 0)
		(void)shared_work(e->shared, e->now, on_ready, e);
}

static void
begin(struct end *e)
{
	static const char *const names[] = { "smtp" };
	static const struct site_params site = {
		.initial_destination_concurrency = WINDOW,
		.destination_concurrency_limit = WINDOW,
		.failed_cohort_limit = 2,
	};
	const struct shared_params p = { &site, names, 1,
		{ USEC_PER_MSEC, 4 * USEC_PER_MSEC, 20 } };
	uint32_t i;

	if (shared_new(&p, e->index, &e->shared) < 0)
		abort();
	e->shared->borrowed = true;
	if (shared_attach_segment(e->shared, &segment,
		shared_member_owner(e->index, ++e->life), clock_mono()) < 0)
		abort();
	for (i = 0; i < SITES; i++) {
		const char name[] = { (char)('a' + i), '\0' };

		e->sites[i] = site_open(e->shared, 0, name, 0);
		if (e->sites[i] == NULL)
			abort();
		*site_user(e->sites[i]) = &e->sites[i];
	}
}

static void *
run(void *arg)
{
	struct end *e = arg;
	uint32_t i, n;

	while (e->life < LIVES) {
		begin(e);
		for (n = 0; n < STEPS; n++)
			step(e);
		for (i = 0; i < SITES; i++)
			while (e->held[i] > 0)
				done(e, i);
		shared_free(&e->shared);
	}
	return NULL;
}

static bool
torture(void)
{
	static struct end ends[ENDS];
	bool good = true;
	uint32_t i;

	for (i = 0; i < ENDS; i++) {
		ends[i].index = i;
		ends[i].seed = i;
		if (pthread_create(&ends[i].thread, NULL, run, &ends[i]) != 0)
			abort();
	}
	for (i = 0; i < ENDS; i++) {
		pthread_join(ends[i].thread, NULL);
		printf("sites: %lu places in %lu steps, %lu too many\n",
		    (unsigned long)ends[i].takes, (unsigned long)ends[i].steps,
		    (unsigned long)ends[i].over);
		good &= ends[i].over == 0 && ends[i].takes > 0;
	}
	return good;
}

int
main(void)
{
	const struct shared_shape shape = { .slots = SHARED_SET_SLOTS,
		.members = ENDS };
	const struct shared_owner owner = { (uid_t)-1, (gid_t)-1 };
	char instance[32], name[IPC_NAME_MAX];
	bool good;
	int fd, r;

	snprintf(instance, sizeof(instance), "t%ld", (long)getpid());
	ipc_name_sites(instance, name);
	r = shared_create(name, &shape, &owner, &fd);
	if (r == 0)
		r = shared_open_up(fd);
	if (r == 0)
		r = shared_segment_map(fd, &segment);
	if (r < 0) {
		fprintf(stderr, "sites: %s: error %d\n", name, -r);
		return 1;
	}
	good = torture();
	shm_unlink(name);
	printf("sites: %d passed, %d failed\n", good, !good);
	return good ? 0 : 1;
}
