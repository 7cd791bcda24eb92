/* Many processes at a few sites, killed at random: never more places than the
 * window has, counted beside the table by the processes themselves, and nobody
 * is held up by the dead. */
#include <criterion/criterion.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "site_shared_scratch.h"

#define PROCS  8
#define SITES  4
#define WINDOW 3
#define LENGTH (USEC_PER_SEC)

struct board {
	/* A byte for each process, so that one look is of one moment: counted
	 * behind the take, and not any more before the place is given back. */
	uint64_t held[SITES];
	uint64_t takes[PROCS];
	uint64_t over; /* more than WINDOW were seen */
	uint64_t recovered, ready;
	uint32_t stop;
};

struct storm {
	struct scratch t;
	struct board *board;
	pid_t pids[PROCS];
	uint32_t generations[PROCS];
	struct end parent;
	uint64_t seed, kills;
};

struct worker {
	struct board *board;
	struct end e;
	uint32_t index;
	struct site *sites[SITES];
	uint32_t held[SITES];
	bool ready[SITES];
	uint64_t seed;
	usec_t now, next;
};

static const struct site_params fixed = {
	.initial_destination_concurrency = WINDOW,
	.destination_concurrency_limit = WINDOW,
	/* Windows stay, and nobody dies. */
};

static uint32_t
dice(uint64_t *seed, uint32_t sides)
{
	*seed = *seed * UINT64_C(6364136223846793005) + 1442695040888963407;
	return (uint32_t)(*seed >> 33) % sides;
}

_Static_assert(PROCS <= 8 && WINDOW < 256, "a byte for each process");

static uint64_t
one_of(uint32_t index)
{
	return UINT64_C(1) << (8 * index);
}

static void
note_take(struct worker *w, uint32_t site)
{
	struct board *b = w->board;
	uint64_t held;
	unsigned sum = 0;

	w->held[site]++;
	held = __atomic_add_fetch(
	    &b->held[site], one_of(w->index), __ATOMIC_SEQ_CST);
	__atomic_add_fetch(&b->takes[w->index], 1, __ATOMIC_RELAXED);
	for (; held != 0; held >>= 8)
		sum += held & 0xff;
	if (sum > WINDOW)
		__atomic_add_fetch(&b->over, 1, __ATOMIC_RELAXED);
}

static void
give_back(struct worker *w, uint32_t site)
{
	if (w->held[site] == 0)
		return;
	w->held[site]--;
	__atomic_sub_fetch(
	    &w->board->held[site], one_of(w->index), __ATOMIC_SEQ_CST);
	end_done(w->sites[site], SITE_DELIVERED, w->now);
}

static void
want(struct worker *w, uint32_t site)
{
	struct site *s = w->sites[site];

	if (site_take(s, w->now) == SITE_ROOM)
		note_take(w, site);
	else
		(void)site_wait(s, true, w->now);
}

static void
on_ready(void *ctx, void *user)
{
	struct worker *w = ctx;

	*(bool *)user = true;
	__atomic_add_fetch(&w->board->ready, 1, __ATOMIC_RELAXED);
}

static void
work(struct worker *w)
{
	uint32_t i;

	w->next = shared_work(w->e.shared, w->now, on_ready, w);
	for (i = 0; i < SITES; i++)
		if (w->ready[i]) {
			w->ready[i] = false;
			want(w, i);
		}
}

static void
step(struct worker *w)
{
	struct pollfd p = { .fd = shared_wake_fd(w->e.shared),
		.events = POLLIN };
	uint32_t site = dice(&w->seed, SITES), n = dice(&w->seed, 100);

	w->now = clock_mono();
	if (n < 40)
		want(w, site);
	else if (n < 80)
		give_back(w, site);
	else if (n < 83)
		(void)site_wait(w->sites[site], false, w->now);
	else if (n < 98 || poll(&p, 1, 1) >= 0)
		work(w);
}

static _Noreturn void
run(struct storm *s, uint32_t index)
{
	struct worker w = {
		.board = s->board, .index = index, .seed = s->seed + index
	};
	struct shared_figures f;
	uint32_t i;

	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	end_open(&w.e, &fixed);
	if (shared_attach(w.e.shared, s->t.fd, index, s->generations[index],
		clock_mono()) < 0)
		_exit(2);
	for (i = 0; i < SITES; i++) {
		const char name[] = { (char)('a' + i), '\0' };

		w.sites[i] = site_open(w.e.shared, 0, name, 0);
		*site_user(w.sites[i]) = &w.ready[i];
	}
	while (__atomic_load_n(&s->board->stop, __ATOMIC_RELAXED) == 0)
		step(&w);
	for (i = 0; i < SITES; i++)
		while (w.held[i] > 0)
			give_back(&w, i);
	shared_figures(w.e.shared, &f);
	__atomic_add_fetch(&s->board->recovered, f.recovered, __ATOMIC_RELAXED);
	shared_free(&w.e.shared);
	_exit(0);
}

static void
spawn(struct storm *s, uint32_t index)
{
	s->generations[index]++;
	s->seed += PROCS;
	s->pids[index] = fork();
	cr_assert_geq(s->pids[index], 0);
	if (s->pids[index] == 0)
		run(s, index);
}

static void
kill_one(struct storm *s)
{
	uint32_t index = dice(&s->seed, PROCS), i;

	cr_assert_eq(kill(s->pids[index], SIGKILL), 0);
	cr_assert_eq(waitpid(s->pids[index], NULL, 0), s->pids[index]);
	s->kills++;
	for (i = 0; i < SITES; i++)
		__atomic_and_fetch(&s->board->held[i], ~(one_of(index) * 0xff),
		    __ATOMIC_SEQ_CST);
	if (dice(&s->seed, 2) == 0)
		shared_forget(s->parent.shared, index, s->generations[index],
		    clock_mono());
	spawn(s, index);
}

static void
expect_all_free(struct storm *s)
{
	uint32_t i;

	for (i = 0; i < s->parent.shared->seg.sets; i++) {
		struct shared_set *set =
		    shared_segment_set(&s->parent.shared->seg, i);

		cr_assert(shared_set_lock(s->parent.shared, i, clock_mono()));
		shared_set_mend(&s->parent.shared->seg, set);
		cr_expect_eq(set->in_use, 0);
		shared_set_unlock(s->parent.shared, i);
	}
}

static uint64_t
takes_of(const struct board *b)
{
	uint64_t sum = 0;
	uint32_t i;

	for (i = 0; i < PROCS; i++)
		sum += __atomic_load_n(&b->takes[i], __ATOMIC_RELAXED);
	return sum;
}

static void
storm(struct storm *s)
{
	const usec_t end = clock_mono() + LENGTH;
	const struct timespec while_they_run = { .tv_nsec = 5000000 };
	uint32_t i;

	for (i = 0; i < PROCS; i++)
		spawn(s, i);
	while (clock_mono() < end) {
		(void)nanosleep(&while_they_run, NULL);
		kill_one(s);
		end_work(&s->parent, clock_mono());
	}
	__atomic_store_n(&s->board->stop, 1, __ATOMIC_RELAXED);
	for (i = 0; i < PROCS; i++) {
		int status;

		cr_assert_eq(waitpid(s->pids[i], &status, 0), s->pids[i]);
		cr_expect(WIFEXITED(status) && WEXITSTATUS(status) == 0,
		    "status %x", (unsigned)status);
		/* As the supervisor does: one that could not have a lock in its
		 * time has left its places to it. */
		shared_forget(
		    s->parent.shared, i, s->generations[i], clock_mono());
	}
}

Test(site_shared_storm, never_more_places_than_the_window)
{
	struct storm s = { .seed = (uint64_t)clock_mono() };

	s.board = mmap(NULL, sizeof(*s.board), PROT_READ | PROT_WRITE,
	    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	cr_assert_neq(s.board, MAP_FAILED);
	scratch_begin(&s.t, SHARED_SET_SLOTS, PROCS + 1);
	end_begin(&s.parent, &s.t, PROCS + 7, &fixed);
	storm(&s);
	cr_log_info("%lu kills, %lu takes, %lu ready, %lu locks of the dead",
	    (unsigned long)s.kills, (unsigned long)takes_of(s.board),
	    (unsigned long)s.board->ready, (unsigned long)s.board->recovered);
	cr_expect_eq(s.board->over, 0);
	cr_expect_gt(takes_of(s.board), 1000);
	expect_all_free(&s);
	end_close(&s.parent);
	scratch_end(&s.t);
	munmap(s.board, sizeof(*s.board));
}
