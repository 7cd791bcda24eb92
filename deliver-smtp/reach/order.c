#include "deliver-smtp/reach/mx.h"

#include <stdlib.h>
#include <string.h>

#define CANDIDATES_MAX (MX_HOSTS_MAX * MX_ADDRESSES_MAX)

struct place {
	const struct mx_host *host;
	uint64_t chance; /* place among hosts of one preference */
	uint64_t seed;   /* order of the addresses */
};

struct candidate {
	const struct mx_host *host;
	const union mx_address *address;
};

struct candidates {
	size_t count;
	struct candidate list[CANDIDATES_MAX];
};

static int
compare(const void *a, const void *b)
{
	const struct place *x = a, *y = b;

	if (x->host->preference != y->host->preference)
		return x->host->preference < y->host->preference ? -1 : 1;
	if (x->chance != y->chance)
		return x->chance < y->chance ? -1 : 1;
	return 0;
}

/* ---- the addresses of a host ---- */

static void
candidate_add(struct candidates *c, const struct mx_host *host,
    const union mx_address *address)
{
	size_t i;

	for (i = 0; i < c->count; i++)
		if (mx_address_equal(c->list[i].address, address))
			return;
	c->list[c->count++] = (struct candidate){ host, address };
}

static void
addresses_shuffle(const union mx_address *of[], size_t n, uint64_t seed)
{
	const union mx_address *taken;
	size_t j;

	for (; n > 1; n--) {
		j = mx_chance(&seed) % n;
		taken = of[j];
		of[j] = of[n - 1];
		of[n - 1] = taken;
	}
}

/* The next address from *at on whose family is this one, or is not. */
static const union mx_address *
address_next(const union mx_address *of[], size_t n, size_t *at,
    sa_family_t family, bool same)
{
	while (*at < n) {
		const union mx_address *a = of[(*at)++];

		if ((a->any.sa_family == family) == same)
			return a;
	}
	return NULL;
}

static void
host_add(
    struct candidates *c, const struct place *place, const struct mx_plan *plan)
{
	const struct mx_host *host = place->host;
	const sa_family_t first = host->addresses[0].any.sa_family;
	const union mx_address *of[MX_ADDRESSES_MAX], *a;
	const size_t n = host->naddresses;
	size_t at[2] = { 0, 0 }, i;

	for (i = 0; i < n; i++)
		of[i] = &host->addresses[i];
	if (plan->randomize)
		addresses_shuffle(of, n, place->seed);
	for (i = 0; i < n && !plan->balance; i++)
		candidate_add(c, host, of[i]);
	for (i = 0; i < 2 * n && plan->balance; i++) {
		a = address_next(of, n, &at[i % 2], first, i % 2 == 0);
		if (a != NULL)
			candidate_add(c, host, a);
	}
}

/* ---- the targets ---- */

static void
target_add(struct mx_targets *targets, const struct candidate *c, uint16_t port)
{
	struct mx_target *t = &targets->list[targets->count++];
	union mx_address address = *c->address;

	if (address.any.sa_family == AF_INET) {
		address.in.sin_port = htons(port);
		t->address_len = sizeof(address.in);
	} else {
		address.in6.sin6_port = htons(port);
		address.in6.sin6_scope_id = 0;
		t->address_len = sizeof(address.in6);
	}
	memset(&t->address, 0, sizeof(t->address));
	memcpy(&t->address, &address, t->address_len);
	t->rank = c->host->preference;
	memcpy(t->host, c->host->name, sizeof(t->host));
}

/* How many addresses of IPv4 ([0]) and of IPv6 ([1]) are tried. Where not all
 * can be, the family with fewer addresses gets up to half of the attempts. */
static void
quotas_set(const struct candidates *c, size_t limit, bool balance, size_t of[2])
{
	size_t count[2] = { 0, 0 }, i, fewer;

	of[0] = of[1] = limit;
	if (!balance || c->count <= limit)
		return;
	for (i = 0; i < c->count; i++)
		count[c->list[i].address->any.sa_family == AF_INET6]++;
	fewer = count[1] < count[0];
	of[fewer] = count[fewer] < limit / 2 ? count[fewer] : limit / 2;
	of[!fewer] = limit - of[fewer];
}

static void
candidates_choose(const struct candidates *c, const struct mx_plan *plan,
    struct mx_targets *targets)
{
	size_t limit = MX_TARGETS_MAX, quota[2], i;

	if (plan->limit != 0 && plan->limit < limit)
		limit = plan->limit;
	quotas_set(c, limit, plan->balance, quota);
	targets->count = 0;
	for (i = 0; i < c->count && targets->count < limit; i++) {
		size_t *left =
		    &quota[c->list[i].address->any.sa_family == AF_INET6];

		if (*left > 0) {
			(*left)--;
			target_add(targets, &c->list[i], plan->port);
		}
	}
}

void
mx_order(const struct mx_set *set, const struct mx_plan *plan,
    struct mx_targets *ret_targets)
{
	struct place places[MX_HOSTS_MAX] = { { 0 } };
	struct candidates candidates;
	uint32_t limit = mx_limit(set, plan->loops);
	uint64_t seed = plan->seed;
	size_t n = 0, i;

	for (i = 0; i < set->nhosts; i++) {
		/* Drawn for each host, so that what is not known yet of one
		 * changes nothing for the others. */
		const struct place place = {
			.host = &set->hosts[i],
			.chance = plan->randomize ? mx_chance(&seed) : i,
			.seed = mx_chance(&seed),
		};

		if (place.host->preference < limit)
			places[n++] = place;
	}
	qsort(places, n, sizeof(places[0]), compare);
	candidates.count = 0;
	for (i = 0; i < n; i++)
		host_add(&candidates, &places[i], plan);
	candidates_choose(&candidates, plan, ret_targets);
}
