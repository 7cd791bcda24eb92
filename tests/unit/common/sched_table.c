#include "sched_table.h"

static const char *const names[] = { "x", "y", "z" };

int
table_new(const struct site_params *params, uint32_t count,
    const struct site_backoff *backoff, struct shared **ret_sites)
{
	const struct shared_params p = { params, names, count, *backoff };

	return shared_new_alone(&p, 1024, 1, ret_sites);
}

int
table_configure(struct shared *sites, const struct site_params *params,
    uint32_t count, const struct site_backoff *backoff)
{
	const struct shared_params p = { params, names, count, *backoff };

	return shared_configure(sites, &p);
}
