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

	cr_assert_eq(shared_new_alone(&p, SLOTS, seed, &t->sites), 0);
	t->f = shared_table(t->sites);
	t->table = t->f->table;
}

int
fixture_configure(struct fixture *t, const struct site_params *params,
    uint32_t count, const struct site_backoff *backoff)
{
	const struct shared_params p = { params, names, count, *backoff };

	return shared_configure(t->sites, &p);
}

void
end(struct fixture *t)
{
	cr_expect(RB_EMPTY(&t->sites->handles));
	shared_free(&t->sites);
	cr_assert_null(t->sites);
}

struct site *
open_at(struct fixture *t, const char *name, usec_t now)
{
	struct site *site = t->f->open(t->table, 0, name, now);

	cr_assert_not_null(site);
	(void)t->f->state(t->table, site, now);
	return site;
}

struct site_view
view(struct fixture *t, struct site *site)
{
	struct site_view v;

	t->f->view(site, &v);
	return v;
}

void
take(struct fixture *t, struct site *site, usec_t now)
{
	cr_assert_eq(t->f->take(t->table, site, now), SITE_ROOM);
}

void
done(struct fixture *t, struct site *site, enum site_result result, usec_t now)
{
	const struct site_report report = { .result = result,
		.why = "refused" };

	t->f->done(t->table, site, &report, now, NULL);
}

void
doubt(struct fixture *t, struct site *site, uint32_t message, usec_t now)
{
	const struct site_report report = { SITE_DOUBTED, message, "lost" };

	take(t, site, now);
	t->f->done(t->table, site, &report, now, NULL);
}

void
deliver(
    struct fixture *t, struct site *site, enum site_result result, usec_t now)
{
	take(t, site, now);
	done(t, site, result, now);
}

usec_t
kill_at(struct fixture *t, struct site *site, usec_t now)
{
	while (t->f->state(t->table, site, now) != SITE_DEAD)
		deliver(t, site, SITE_FAILED, now);
	return view(t, site).dead_until;
}
