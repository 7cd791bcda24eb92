#include "site_shared_scratch.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

static const char *const names[] = { "smtp", "lmtp" };

void
scratch_begin(struct scratch *t, uint32_t slots, uint32_t members)
{
	const struct shared_shape shape = { .slots = slots,
		.members = members };
	const struct shared_owner owner = { (uid_t)-1, (gid_t)-1 };
	char instance[32];

	snprintf(instance, sizeof(instance), "u%ld", (long)getpid());
	ipc_name_sites(instance, t->name);
	cr_assert_eq(shared_create(t->name, &shape, &owner, &t->fd), 0);
	cr_assert_eq(shared_open_up(t->fd), 0);
}

void
scratch_end(struct scratch *t)
{
	close(t->fd);
	cr_expect_eq(shm_unlink(t->name), 0);
}

void
end_open(struct end *e, const struct site_params *params)
{
	const struct site_params two[] = { *params, *params };
	const struct shared_params p = {
		.sites = two,
		.names = names,
		.count = 2,
		.backoff = exact,
	};

	cr_assert_eq(shared_new(&p, 1, &e->shared), 0);
}

void
end_attach(struct end *e, const struct scratch *t, uint32_t queue)
{
	cr_assert_eq(shared_attach(e->shared, t->fd, queue, 1, 0), 0);
	cr_assert(shared_is_attached(e->shared));
}

void
end_begin(struct end *e, const struct scratch *t, uint32_t queue,
    const struct site_params *params)
{
	end_open(e, params);
	end_attach(e, t, queue);
}

void
end_close(struct end *e)
{
	shared_free(&e->shared);
	cr_assert_null(e->shared);
}

struct site *
end_site(struct end *e, const char *name, usec_t now)
{
	struct site *site = site_open(e->shared, 0, name, now);

	cr_assert_not_null(site);
	return site;
}

struct site_view
end_view(struct site *site)
{
	struct site_view v;

	site_view(site, &v);
	return v;
}

void
end_take(struct site *site, usec_t now)
{
	cr_assert_eq(site_take(site, now), SITE_ROOM);
}

void
end_full(struct site *site, usec_t now)
{
	cr_assert_eq(site_take(site, now), SITE_FULL);
}

void
end_wait(struct site *site, usec_t now)
{
	cr_assert_eq(site_wait(site, true, now), SITE_FULL);
}

void
end_done(struct site *site, enum site_result result, usec_t now)
{
	const struct site_report report = { .result = result,
		.why = "refused" };

	site_done(site, &report, now, NULL);
}

void
end_doubt(struct site *site, uint32_t message, usec_t now)
{
	const struct site_report report = { SITE_DOUBTED, message, "lost" };

	site_done(site, &report, now, NULL);
}

static void
count(void *ctx, void *user)
{
	(void)ctx;
	++*(uint32_t *)user;
}

usec_t
end_work(struct end *e, usec_t now)
{
	return shared_work(e->shared, now, count, NULL);
}

void
end_die(struct end *e)
{
	e->shared->owner = 0; /* so that the member is not given up */
	end_close(e);
}
