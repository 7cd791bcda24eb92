#include "site_scratch.h"

#include <criterion/criterion.h>

#include "site/shared_parts.h"

/* Sets are never full. */
#define SLOTS 2048

const struct site_params plain = {
	.initial_destination_concurrency = 2,
	.destination_concurrency_limit = 20,
	.failed_cohort_limit = 1,
};
const struct site_backoff exact = { MIN, MAX, 0 };

static const char *const names[] = { "smtp", "lmtp" };

void
begin(struct fixture *t, const struct site_params *params,
    const struct site_backoff *backoff, uint64_t seed)
{
	const struct site_params two[] = { *params, *params };
	const struct shared_params p = { two, names, 2, *backoff };

	cr_assert_eq(shared_new_alone(&p, SLOTS, seed, &t->shared), 0);
}

int
fixture_configure(struct fixture *t, const struct site_params *params,
    uint32_t count, const struct site_backoff *backoff)
{
	const struct shared_params p = { params, names, count, *backoff };

	return shared_configure(t->shared, &p);
}

void
end(struct fixture *t)
{
	cr_expect(RB_EMPTY(&t->shared->handles));
	shared_free(&t->shared);
	cr_assert_null(t->shared);
}

struct site *
open_at(struct fixture *t, const char *name, usec_t now)
{
	struct site *site = site_open(t->shared, 0, name, now);

	cr_assert_not_null(site);
	(void)site_state(site, now);
	return site;
}

struct site_view
view(struct site *site)
{
	struct site_view v;

	site_view(site, &v);
	return v;
}

void
take(struct site *site, usec_t now)
{
	cr_assert_eq(site_take(site, now), SITE_ROOM);
}

void
done(struct site *site, enum site_result result, usec_t now)
{
	const struct site_report report = { .result = result,
		.why = "refused" };

	site_done(site, &report, now, NULL);
}

void
doubt(struct site *site, uint32_t message, usec_t now)
{
	const struct site_report report = { SITE_DOUBTED, message, "lost" };

	take(site, now);
	site_done(site, &report, now, NULL);
}

void
deliver(struct site *site, enum site_result result, usec_t now)
{
	take(site, now);
	done(site, result, now);
}

usec_t
kill_at(struct site *site, usec_t now)
{
	while (site_state(site, now) != SITE_DEAD)
		deliver(site, SITE_FAILED, now);
	return view(site).dead_until;
}
