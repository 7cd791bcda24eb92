/* What DNS says of a domain: any message as the answer to a query for MX
 * records, any addresses of its hosts. Bounds hold, names are host names, no
 * host of ours or worse than ours is tried, and no address that is no server's.
 */
#include "tests/fuzz/fuzz.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "deliver-smtp/reach/mx.h"

static void
check_set(const struct mx_set *set)
{
	char name[NEXTHOP_HOST_MAX];
	const char *why;
	size_t i, j;

	MUST(set->verdict == MX_FOUND || set->verdict == MX_NO_MAIL ||
	    set->verdict == MX_NO_HOST || set->verdict == MX_LOOP);
	MUST(set->ttl <= MX_TTL_MAX && set->listed);
	MUST(set->nhosts <= MX_HOSTS_MAX);
	MUST((set->nhosts > 0) == (set->verdict == MX_FOUND));
	for (i = 0; i < set->nhosts; i++) {
		const struct mx_host *h = &set->hosts[i];

		MUST(memchr(h->name, '\0', sizeof(h->name)) != NULL);
		MUST(nexthop_of_domain(h->name, false, name, &why) == 0);
		MUST(strcmp(name, h->name) == 0);
		MUST(strcmp(name, "me.test") != 0);
		MUST(i == 0 || set->hosts[i - 1].preference <= h->preference);
		for (j = 0; j < i; j++)
			MUST(strcmp(set->hosts[j].name, h->name) != 0 ||
			    set->hosts[j].preference != h->preference);
	}
}

static void
add_addresses(struct fuzz_in *in, struct mx_set *set)
{
	union mx_address a = { 0 };
	size_t i;

	while (in->left > 0 && set->nhosts > 0) {
		unsigned char c = (unsigned char)fuzz_number(in, 1);
		struct mx_host *h = &set->hosts[c % set->nhosts];

		a = (union mx_address){ 0 };
		a.any.sa_family = c & 0x80 ? AF_INET6 : AF_INET;
		h->ours = h->ours || c == 0x7f;
		for (i = 0; i < 16; i++)
			a.in6.sin6_addr.s6_addr[i] =
			    (unsigned char)fuzz_number(in, 1);
		if (c & 0x80)
			MUST(!mx_add_address(h, &a.any) ||
			    nexthop_is_server(&a.any));
		else
			(void)mx_add_address(h, &a.any);
		MUST(h->naddresses <= MX_ADDRESSES_MAX);
	}
}

static void
check_targets(const struct mx_set *set, uint64_t seed)
{
	enum mx_verdict verdict = mx_judge(set, true);
	uint32_t limit = mx_limit(set, true);
	const struct mx_plan plan = {
		.port = 25,
		.loops = true,
		.randomize = (seed & 1) != 0,
		.balance = (seed & 2) != 0,
		.limit = (uint32_t)(seed >> 2 & 7),
		.seed = seed,
	};
	struct mx_targets targets;
	size_t i, j;

	mx_order(set, &plan, &targets);
	MUST(targets.count <= MX_TARGETS_MAX);
	MUST(plan.limit == 0 || targets.count <= plan.limit);
	MUST((verdict == MX_FOUND) == (targets.count > 0));
	for (i = 0; i < targets.count; i++) {
		const struct mx_target *t = &targets.list[i];

		MUST(nexthop_is_server((const void *)&t->address));
		MUST(t->rank < limit);
		MUST(i == 0 || targets.list[i - 1].rank <= t->rank);
		for (j = 0; j < i; j++)
			MUST(memcmp(&targets.list[j].address, &t->address,
				 t->address_len) != 0);
	}
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const own[] = { "me.test", NULL };
	struct fuzz_in in = { data, size };
	uint64_t seed = fuzz_number(&in, 1);
	size_t len = fuzz_number(&in, 2);
	struct mx_set set;
	unsigned char *answer;
	int r;

	if (len > in.left)
		len = in.left;
	answer = malloc(len + 1);
	MUST(answer != NULL);
	memcpy(answer, in.next, len);
	in.next += len;
	in.left -= len;
	FUZZ_FILL(set);
	r = mx_read(answer, len, own, seed, &set);
	free(answer);
	if (r < 0) {
		MUST(r == -EBADMSG || r == -ENODATA);
		MUST(FUZZ_UNTOUCHED(set));
		return 0;
	}
	check_set(&set);
	add_addresses(&in, &set);
	check_targets(&set, seed);
	return 0;
}
