#include "deliver-smtp/reach/mx.h"

#include <stdlib.h>
#include <string.h>

struct place {
	const struct mx_host *host;
	uint64_t chance;
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

static socklen_t
set_port(union mx_address *address, uint16_t port)
{
	if (address->any.sa_family == AF_INET) {
		address->in.sin_port = htons(port);
		return sizeof(address->in);
	}
	address->in6.sin6_port = htons(port);
	address->in6.sin6_scope_id = 0;
	return sizeof(address->in6);
}

static bool
is_there(const struct mx_targets *targets, const union mx_address *address,
    socklen_t len)
{
	size_t i;

	for (i = 0; i < targets->count; i++)
		if (targets->list[i].address_len == len &&
		    memcmp(&targets->list[i].address, address, len) == 0)
			return true;
	return false;
}

static void
append(struct mx_targets *targets, const struct mx_host *host,
    union mx_address address, uint16_t port)
{
	socklen_t len = set_port(&address, port);
	struct mx_target *t;

	if (targets->count == MX_TARGETS_MAX ||
	    is_there(targets, &address, len))
		return;
	t = &targets->list[targets->count++];
	memset(t, 0, sizeof(*t));
	memcpy(&t->address, &address, len);
	t->address_len = len;
	t->rank = host->preference;
	memcpy(t->host, host->name, sizeof(t->host));
}

/* The next address from *at on whose family is this one, or is not. */
static const union mx_address *
next_of(const struct mx_host *host, uint8_t *at, sa_family_t family, bool same)
{
	while (*at < host->naddresses) {
		const union mx_address *a = &host->addresses[(*at)++];

		if ((a->any.sa_family == family) == same)
			return a;
	}
	return NULL;
}

static void
append_host(
    struct mx_targets *targets, const struct mx_host *host, uint16_t port)
{
	const sa_family_t first = host->addresses[0].any.sa_family;
	uint8_t at[2] = { 0, 0 };
	const union mx_address *a;
	int i;

	for (i = 0; i < 2 * host->naddresses; i++) {
		a = next_of(host, &at[i % 2], first, i % 2 == 0);
		if (a != NULL)
			append(targets, host, *a, port);
	}
}

void
mx_order(const struct mx_set *set, bool loops, uint16_t port, uint64_t seed,
    struct mx_targets *ret_targets)
{
	struct place places[MX_HOSTS_MAX] = { { 0 } };
	uint32_t limit = mx_limit(set, loops);
	size_t n = 0, i;

	for (i = 0; i < set->nhosts; i++)
		if (set->hosts[i].preference < limit)
			places[n++] =
			    (struct place){ &set->hosts[i], mx_chance(&seed) };
	qsort(places, n, sizeof(places[0]), compare);
	ret_targets->count = 0;
	for (i = 0; i < n; i++)
		append_host(ret_targets, places[i].host, port);
}
