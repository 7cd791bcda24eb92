/* One member beside the table of one process: the same random calls, the same
 * answers, to the last bit of a counter. */
#include <criterion/criterion.h>
#include <string.h>
#include <strings.h>

#include "site_shared_scratch.h"

#define SITES 12
#define STEPS 3000
#define WALKS 60

static const struct site_params walked[] = {
	{ 3, 10, { 0.25, WINDOW_FIXED }, { 1.0 / 3, WINDOW_FIXED }, 1.5 },
	{ 5, 20, { 1, WINDOW_FIXED }, { 1, WINDOW_PER_N }, 1 },
	{ 2, 0, { 1, WINDOW_PER_ROOT_N }, { 0.5, WINDOW_FIXED }, 0 },
	{ 1, 1, { 1, WINDOW_FIXED }, { 1, WINDOW_FIXED }, 2 },
};
static const struct site_backoff spread = { MIN, MAX, 20 };

struct both {
	struct site *ours, *theirs;
	uint32_t opens, busy;
};
struct walk {
	struct scratch t;
	struct end end;
	struct local *sites;
	const struct site_table *f;
	void *table;
	struct both all[SITES];
	uint64_t seed;
	usec_t now;
};

static uint32_t
dice(struct walk *w, uint32_t sides)
{
	w->seed = w->seed * UINT64_C(6364136223846793005) + 1442695040888963407;
	return (uint32_t)(w->seed >> 33) % sides;
}

static void
walk_begin(struct walk *w, const struct site_params *params, uint64_t seed)
{
	static const char *const names[] = { "smtp", "lmtp" };
	const struct site_params two[] = { *params, *params };
	const struct shared_params p = { two, names, 2, spread };

	*w = (struct walk){ .seed = seed };
	scratch_begin(&w->t, 64, 1);
	cr_assert_eq(shared_new(&p, seed, &w->end.shared), 0);
	w->end.f = shared_table(w->end.shared);
	w->end.table = w->end.f->table;
	end_attach(&w->end, &w->t, 1);
	cr_assert_eq(local_new(two, 2, &spread, 100, seed, &w->sites), 0);
	w->f = local_table(w->sites);
	w->table = w->f->table;
}

static void
expect_same_view(const struct site_view *a, const struct site_view *b)
{
	cr_assert_eq(a->state, b->state);
	cr_assert_eq(a->window, b->window);
	cr_assert_eq(a->busy, b->busy);
	cr_assert_eq(a->deaths, b->deaths);
	cr_assert_eq(a->dead_since, b->dead_since);
	cr_assert_eq(a->dead_until, b->dead_until);
	cr_assert(a->success == b->success && a->failure == b->failure &&
	    a->fail_cohorts == b->fail_cohorts);
	cr_assert_eq(a->why == NULL, b->why == NULL);
	if (a->why != NULL)
		cr_assert_str_eq(a->why, b->why);
}

static void
expect_same(struct walk *w, struct both *b)
{
	struct site_view ours, theirs;

	cr_assert_eq(w->end.f->state(w->end.table, b->ours, w->now),
	    w->f->state(w->table, b->theirs, w->now));
	w->end.f->view(b->ours, &ours);
	w->f->view(b->theirs, &theirs);
	expect_same_view(&ours, &theirs);
}

static void
step_open(struct walk *w, struct both *b)
{
	uint32_t i = (uint32_t)(b - w->all);
	char name[] = "mx-a.example";

	name[3] = (char)((dice(w, 2) == 0 ? 'a' : 'A') + i / 2);
	b->ours = w->end.f->open(w->end.table, i % 2, name, w->now);
	b->theirs = w->f->open(w->table, i % 2, name, w->now);
	cr_assert_eq(strcasecmp(w->end.f->name(b->ours), name), 0);
	if (b->opens++ == 0) {
		cr_assert_null(*w->end.f->user(b->ours));
		*w->end.f->user(b->ours) = b;
	}
	cr_assert_eq(*w->end.f->user(b->ours), b);
}

static void
step_close(struct walk *w, struct both *b)
{
	if (b->opens == 0)
		return;
	b->opens--;
	w->end.f->close(w->end.table, b->ours, w->now);
	w->f->close(w->table, b->theirs, w->now);
}

static void
step_take(struct walk *w, struct both *b)
{
	enum site_state got;

	if (b->opens == 0)
		return;
	got = w->f->take(w->table, b->theirs, w->now);
	cr_assert_eq(w->end.f->take(w->end.table, b->ours, w->now), got);
	b->busy += got == SITE_ROOM;
}

static void
step_done(struct walk *w, struct both *b)
{
	static const enum site_result results[] = { SITE_DELIVERED,
		SITE_DELIVERED, SITE_DELIVERED, SITE_FAILED, SITE_FAILED,
		SITE_DOUBTED, SITE_DOUBTED, SITE_AGENT_DIED };
	struct site_report report = {
		.result = results[dice(w, ARRAY_LEN(results))],
		.message = 1 + dice(w, 3),
		.why = "why",
	};
	struct site_step ours, theirs;

	if (b->busy == 0 && dice(w, 20) == 0 && b->opens > 0)
		report.result = SITE_UNTRIED;
	else if (b->busy == 0)
		return;
	else
		b->busy--;
	w->end.f->done(w->end.table, b->ours, &report, w->now, &ours);
	w->f->done(w->table, b->theirs, &report, w->now, &theirs);
	cr_assert_eq(ours.result, theirs.result);
	expect_same_view(&ours.before, &theirs.before);
	expect_same_view(&ours.after, &theirs.after);
}

static void
step_wait(struct walk *w, struct both *b)
{
	if (b->opens > 0)
		cr_assert_eq(w->end.f->wait(w->end.table, b->ours,
				 dice(w, 2) == 0, w->now),
		    w->f->state(w->table, b->theirs, w->now));
}

static void
step(struct walk *w)
{
	static void (*const steps[])(struct walk *,
	    struct both *) = { step_open, step_close, step_take, step_take,
		step_take, step_done, step_done, step_done, step_wait };
	struct both *b = &w->all[dice(w, SITES)];
	uint32_t n = dice(w, 500);

	if (n == 0) {
		w->end.f->flush(w->end.table, w->now);
		w->f->flush(w->table, w->now);
	} else if (n < 40) {
		/* Less in all than what is forgotten for its age. */
		w->now += dice(w, 40) * SEC;
	} else {
		steps[dice(w, ARRAY_LEN(steps))](w, b);
	}
	if (b->opens > 0)
		expect_same(w, b);
}

static void
walk_end(struct walk *w)
{
	struct both *b;

	for (b = w->all; b < w->all + SITES; b++) {
		while (b->busy > 0)
			step_done(w, b);
		while (b->opens > 0)
			step_close(w, b);
	}
	cr_expect(RB_EMPTY(&w->end.shared->handles));
	end_close(&w->end);
	local_free(&w->sites);
	scratch_end(&w->t);
}

Test(site_shared_walk, beside_the_table_of_one_process)
{
	size_t walk, n;

	for (walk = 0; walk < WALKS; walk++) {
		struct walk w;

		walk_begin(&w, &walked[walk % ARRAY_LEN(walked)],
		    (uint64_t)walk + (uint64_t)walk / 4);
		for (n = 0; n < STEPS; n++)
			step(&w);
		walk_end(&w);
	}
}
