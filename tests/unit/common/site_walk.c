/* Random walks of a table of sites beside its rules written down once more, the
 * simplest way: an array, looked through, with counters in whole numbers. */
#include <criterion/criterion.h>
#include <ctype.h>
#include <math.h>
#include <string.h>
#include <strings.h>

#include "site_scratch.h"

#define NAMES   4
#define SITES   (2 * NAMES) /* of two transports */
#define INITIAL 3
#define LIMIT   10
#define UNIT    (INT64_C(2520) * 12) /* of counters; 1/window is whole */
#define UP      (UNIT / 4)
#define DOWN    (UNIT / 3)
#define COHORTS (UNIT / 2 * 3)
#define JITTER  20

static const struct site_params walked = {
	.initial_destination_concurrency = INITIAL,
	.destination_concurrency_limit = LIMIT,
	.positive = { 1.0 / 4, WINDOW_FIXED },
	.negative = { 1.0 / 3, WINDOW_FIXED },
	.failed_cohort_limit = 1.5,
};
static const struct site_backoff spread = { MIN, MAX, JITTER };

struct model {
	struct site *site; /* while opens or busy */
	char name[8];      /* as it was given when the site was made */
	int64_t opens, busy, window, success, failure, cohorts, deaths, doubted;
	bool dead, waits;
	usec_t until;
	usec_t used; /* when it was last looked at */
};

struct walk {
	struct fixture t;
	struct model all[SITES];
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
model_fresh_window(struct model *m, int64_t window)
{
	m->window = window;
	m->success = m->failure = m->cohorts = m->doubted = 0;
	m->dead = false;
}

/* A site that is opened, and was not used for long. */
static void
model_age(struct walk *w, struct model *m)
{
	if (m->dead || w->now - m->used <= 2 * MAX)
		return;
	model_fresh_window(m, INITIAL);
	m->deaths = 0;
}

static void
model_success(struct model *m)
{
	m->deaths = 0;
	if (m->dead) {
		model_fresh_window(m, m->busy);
		return;
	}
	m->cohorts = m->doubted = 0;
	if (m->window >= LIMIT || m->window >= m->busy + INITIAL)
		return;
	m->success += UP;
	if (m->success >= UNIT) {
		m->window++;
		m->success -= UNIT;
		m->failure = 0;
	}
}

/* True: it died. */
static bool
model_failure(struct model *m)
{
	if (m->dead)
		return false;
	m->cohorts += UNIT / m->window;
	if (m->cohorts >= COHORTS) {
		m->dead = true;
		m->waits = false;
		m->deaths++;
		return true;
	}
	m->failure -= DOWN;
	if (m->failure < 0) {
		m->failure += UNIT;
		m->success = 0;
		m->window -= m->window > 1;
	}
	return false;
}

static void
model_reopen_due(struct walk *w, struct model *m)
{
	if (m->dead && m->until <= w->now)
		model_fresh_window(m, INITIAL);
}

static enum site_state
model_state(const struct model *m)
{
	if (m->dead)
		return SITE_DEAD;
	return m->busy < m->window ? SITE_ROOM : SITE_FULL;
}

static bool
near(double got, int64_t want)
{
	return fabs(got - (double)want / UNIT) < 1e-8;
}

static void
expect_same(struct walk *w, struct model *m)
{
	struct site_view v;

	model_reopen_due(w, m);
	cr_assert_eq(site_state(m->site, w->now), model_state(m));
	m->used = w->now;
	v = view(m->site);
	cr_assert_eq(v.state, model_state(m));
	cr_assert_eq(v.busy, m->busy);
	cr_assert_eq(v.window, m->window);
	cr_assert_eq(v.deaths, m->deaths);
	cr_assert(near(v.fail_cohorts, m->cohorts));
	cr_assert_eq(v.why != NULL, m->dead);
	if (m->dead) {
		cr_assert_eq(v.dead_until, m->until);
		return;
	}
	cr_assert(near(v.success, m->success));
	cr_assert(near(v.failure, m->failure));
}

static void
step_open(struct walk *w, struct model *m)
{
	size_t i = (size_t)(m - w->all);
	char name[8] = "mx-a.de";
	const size_t len = strlen(name);
	size_t c;

	name[3] = (char)('a' + i % NAMES);
	for (c = 0; c < len; c++)
		if (dice(w, 2) == 0)
			name[c] = (char)toupper((unsigned char)name[c]);
	if (m->site == NULL)
		memcpy(m->name, name, sizeof(name));
	if (m->window == 0)
		model_fresh_window(m, INITIAL);
	model_reopen_due(w, m);
	if (m->opens++ == 0 && m->busy == 0)
		model_age(w, m);
	m->site = site_open(w->t.shared, (uint32_t)(i / NAMES), name, w->now);
	cr_assert_not_null(m->site);
	cr_assert_str_eq(site_name(m->site), m->name);
	if (m->opens == 1) {
		cr_assert_null(*site_user(m->site));
		*site_user(m->site) = m;
	}
	cr_assert_eq(*site_user(m->site), m);
}

static void
step_close(struct walk *w, struct model *m)
{
	struct site *site = m->site;

	if (m->opens == 0)
		return;
	site_close(site, w->now);
	if (--m->opens > 0)
		return;
	if (m->waits)
		m->used = w->now;
	m->waits = false;
	if (m->busy == 0)
		m->site = NULL;
}

static void
step_take(struct walk *w, struct model *m)
{
	enum site_state want;

	if (m->opens == 0)
		return;
	model_reopen_due(w, m);
	want = model_state(m);
	cr_assert_eq(site_state(m->site, w->now), want);
	cr_assert_eq(site_take(m->site, w->now), want);
	m->busy += want == SITE_ROOM;
	m->waits &= want != SITE_ROOM;
}

/* MIN doubled for each death but the first, MAX at most, and the spread. */
static void
learn_until(struct walk *w, struct model *m, const struct site_view *after)
{
	usec_t time = MIN;
	int64_t n;

	for (n = 1; n < m->deaths; n++)
		time = 2 * time < MAX ? 2 * time : MAX;
	m->until = after->dead_until;
	cr_assert(m->until - w->now >= time - time / 100 * JITTER &&
		m->until - w->now <= time + time / 100 * JITTER,
	    "death %lld: %lld", (long long)m->deaths,
	    (long long)(m->until - w->now));
}

/* Is the end a failure of the site? */
static bool
model_counts(struct model *m, const struct site_report *report)
{
	if (report->result != SITE_DOUBTED)
		return report->result == SITE_FAILED;
	if (m->doubted == 0 && !m->dead)
		m->doubted = report->message;
	return m->doubted != report->message;
}

static void
step_done(struct walk *w, struct model *m)
{
	static const enum site_result results[] = { SITE_DELIVERED, SITE_FAILED,
		SITE_FAILED, SITE_FAILED, SITE_FAILED, SITE_FAILED,
		SITE_DOUBTED, SITE_AGENT_DIED };
	const struct site_report report = {
		.result = results[dice(w, ARRAY_LEN(results))],
		.message = 1 + dice(w, 3),
		.why = "why",
	};
	struct site_step step;
	int64_t deaths;

	if (m->busy == 0)
		return;
	model_reopen_due(w, m);
	deaths = m->deaths;
	site_done(m->site, &report, w->now, &step);
	cr_assert_eq(step.before.busy, m->busy);
	cr_assert_eq(step.before.deaths, deaths);
	if (report.result == SITE_DELIVERED)
		model_success(m);
	else if (model_counts(m, &report) && model_failure(m))
		learn_until(w, m, &step.after);
	m->busy--;
	cr_assert_eq(step.after.window, m->window);
	cr_assert_eq(step.after.busy, m->busy);
	cr_assert_eq(step.after.deaths, m->deaths);
	m->used = w->now;
	if (m->opens == 0 && m->busy == 0)
		m->site = NULL;
}

/* Nobody else waits: to wait, or not to, changes nothing. */
static void
step_wait(struct walk *w, struct model *m)
{
	const bool waits = dice(w, 2) == 0;

	if (m->opens == 0)
		return;
	model_reopen_due(w, m);
	cr_assert_eq(site_wait(m->site, waits, w->now), model_state(m));
	m->waits = waits && (m->waits || model_state(m) == SITE_FULL);
}

static void
step_untried(struct walk *w, struct model *m)
{
	if (m->opens == 0)
		return;
	model_reopen_due(w, m);
	site_done(m->site, &(struct site_report){ .result = SITE_UNTRIED },
	    w->now, NULL);
}

static void
step_flush(struct walk *w)
{
	struct model *m;

	site_flush(w->t.shared, w->now);
	for (m = w->all; m < w->all + SITES; m++)
		if (m->dead)
			model_fresh_window(m, INITIAL);
}

static void
step(struct walk *w)
{
	struct model *m = &w->all[dice(w, SITES)];
	uint32_t n = dice(w, 1000);

	if (n == 0)
		w->now += 2 * MAX + dice(w, MAX / SEC) * SEC;
	else if (n == 1)
		step_flush(w);
	else if (n < 100)
		w->now += dice(w, 60) * SEC;
	else if (n < 250)
		step_open(w, m);
	else if (n < 430)
		step_close(w, m);
	else if (n < 450)
		step_untried(w, m);
	else if (n < 500)
		step_wait(w, m);
	else if (n < 750)
		step_take(w, m);
	else
		step_done(w, m);
	if (m->site != NULL)
		expect_same(w, m);
}

static void
walk_end(struct walk *w)
{
	struct model *m;

	for (m = w->all; m < w->all + SITES; m++) {
		while (m->busy > 0)
			step_done(w, m);
		while (m->opens > 0)
			step_close(w, m);
	}
	end(&w->t);
}

Test(site_walk, beside_the_rules)
{
	int walk, n;

	for (walk = 0; walk < 200; walk++) {
		struct walk w = { .seed = (uint64_t)walk };

		begin(&w.t, &walked, &spread, (uint64_t)walk);
		for (n = 0; n < 5000; n++)
			step(&w);
		walk_end(&w);
	}
}
