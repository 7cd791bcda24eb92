/* A whole lookup of a next hop, against a resolver that answers anything, in
 * any order: the lookup ends exactly once, with hosts and addresses within
 * bounds or with a reason, asks for no more names than it may, and leaves no
 * question behind, also where it is given up. The best hosts come at most once
 * before the end, and what follows does not change their order. */
#include "tests/fuzz/fuzz.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "deliver-smtp/reach/lookup.h"

/* ---- the resolver: in place of resolve.c (rules.mk) ---- */

struct resolve_request {
	enum resolve_by by;
	bool mx;
	resolve_fn *done;
	void *arg;
	struct resolve_request **owner;
};

#define OPEN_MAX (MX_HOSTS_MAX + 1)

static struct resolve_request *open_requests[OPEN_MAX];
static size_t nopen, nasked;
static struct fuzz_in *input;

int
resolver_new(struct event_base *base UNUSED, struct resolver **ret UNUSED)
{
	return -EIO;
}

int
resolver_reload(struct resolver *resolver UNUSED)
{
	return 0;
}

void
resolver_free(struct resolver **resolver UNUSED)
{
}

static int
ask(const struct resolve_request *wanted)
{
	struct resolve_request *made;

	if (fuzz_number(input, 1) == 0xff)
		return -ENOMEM;
	MUST(nopen < OPEN_MAX);
	made = malloc(sizeof(*made));
	MUST(made != NULL);
	*made = *wanted;
	*made->owner = made;
	open_requests[nopen++] = made;
	nasked++;
	return 0;
}

static void
check_name(const char *name)
{
	MUST(name[0] != '\0' && strlen(name) < NEXTHOP_HOST_MAX);
}

int
resolve_start(struct resolver *resolver UNUSED, enum resolve_by by,
    const char *name, resolve_fn *done, void *arg,
    struct resolve_request **ret_request)
{
	check_name(name);
	return ask(&(struct resolve_request){
	    by, by == RESOLVE_MX, done, arg, ret_request });
}

static void
close_request(struct resolve_request *r)
{
	size_t i;

	for (i = 0; open_requests[i] != r; i++)
		MUST(i + 1 < nopen);
	open_requests[i] = open_requests[--nopen];
	free(r);
}

void
resolve_cancel(struct resolve_request **request)
{
	if (*request != NULL)
		close_request(*request);
	*request = NULL;
}

/* ---- answers ---- */

static void
take_address(union mx_address *to)
{
	union mx_address a = { 0 };
	size_t i, n = 4;

	a.any.sa_family = AF_INET;
	if (fuzz_number(input, 1) & 1) {
		a.any.sa_family = AF_INET6;
		n = 16;
	}
	for (i = 0; i < n; i++) {
		unsigned char c = (unsigned char)fuzz_number(input, 1);

		if (n == 16)
			a.in6.sin6_addr.s6_addr[i] = c;
		else
			((unsigned char *)&a.in.sin_addr)[i] = c;
	}
	*to = a;
}

static void
answer_one(void)
{
	static const int errors[] = { -ENOENT, -ENODATA, -EAGAIN, -ENOMEM };
	struct resolve_request *r =
	    open_requests[fuzz_number(input, 1) % nopen];
	const struct resolve_request copy = *r;
	uint8_t how = (uint8_t)fuzz_number(input, 1);
	struct resolve_result result = { .text = "what it says",
		.ttl = (int)(int32_t)fuzz_number(input, 4) };
	unsigned char *message = NULL;
	size_t i;

	if (how < 64) {
		result.error = errors[how % ARRAY_LEN(errors)];
	} else if (copy.mx) {
		result.answer_len = fuzz_number(input, 2);
		if (result.answer_len > input->left)
			result.answer_len = input->left;
		message = malloc(result.answer_len + 1);
		MUST(message != NULL);
		memcpy(message, input->next, result.answer_len);
		input->next += result.answer_len;
		input->left -= result.answer_len;
		result.answer = message;
	} else {
		result.count = 1 + how % RESOLVE_MAX;
		for (i = 0; i < result.count; i++)
			take_address(&result.addresses[i]);
	}
	/* Gone when done() has returned: its owner forgets it first. */
	for (i = 0; open_requests[i] != r; i++)
		;
	open_requests[i] = open_requests[--nopen];
	copy.done(copy.arg, &result);
	free(r);
	free(message);
}

/* ---- what comes of it ---- */

struct seen {
	unsigned times, early;
	struct mx_set best; /* of early */
	int error;
	struct mx_set set;
};

static bool
is_ours(const struct sockaddr *address)
{
	return address->sa_family == AF_INET &&
	    ((const struct sockaddr_in *)(const void *)address)
		->sin_addr.s_addr == htonl(0x01020304);
}

static void
check_set(const struct mx_set *set)
{
	size_t i, j, addresses = 0;

	MUST(set->verdict < MX_NVERDICTS && set->ttl <= MX_TTL_MAX);
	MUST(set->nhosts <= MX_HOSTS_MAX);
	for (i = 0; i < set->nhosts; i++) {
		const struct mx_host *h = &set->hosts[i];

		MUST(h->naddresses <= MX_ADDRESSES_MAX);
		addresses += h->naddresses;
		for (j = 0; j < h->naddresses; j++)
			MUST(nexthop_is_server(&h->addresses[j].any));
	}
	MUST(set->verdict != MX_FOUND || addresses > 0);
	MUST(set->verdict != MX_NO_ADDRESS || !set->cut);
}

static void
check_targets(const struct mx_set *set, uint64_t seed)
{
	const bool loops = seed & 1;
	const struct mx_plan plan = {
		.port = 25,
		.loops = loops,
		.randomize = (seed & 2) != 0,
		.balance = (seed & 4) != 0,
		.limit = (uint32_t)(seed >> 3 & 7),
		.seed = seed,
	};
	struct mx_targets targets;

	mx_order(set, &plan, &targets);
	MUST(targets.count <= MX_TARGETS_MAX);
	MUST((mx_judge(set, loops) == MX_FOUND) == (targets.count > 0));
}

static void
on_done(void *arg, const struct lookup_answer *answer)
{
	struct seen *seen = arg;

	if (!answer->complete) {
		MUST(seen->times == 0 && seen->early++ == 0);
		MUST(answer->error == 0);
		check_set(answer->set);
		seen->best = *answer->set;
		return;
	}
	seen->times++;
	seen->error = answer->error;
	MUST(seen->error == 0 || seen->early == 0);
	MUST(answer->error == 0 || answer->text != NULL);
	MUST(answer->error == 0 || answer->error == -EAGAIN ||
	    answer->error == -ENOMEM);
	seen->set = *answer->set;
	if (answer->error == 0)
		check_set(&seen->set);
}

/* The best hosts are in front, as they were when the others were not known. */
static void
check_best(const struct seen *seen, uint64_t seed)
{
	const struct mx_plan plan = {
		.port = 25,
		.loops = seed & 1,
		.randomize = true,
		.balance = (seed & 4) != 0,
		.seed = seed,
	};
	struct mx_targets best, all;
	size_t i;

	mx_order(&seen->best, &plan, &best);
	mx_order(&seen->set, &plan, &all);
	MUST(mx_judge(&seen->best, true) == MX_FOUND);
	MUST(best.count <= all.count);
	for (i = 0; i < best.count && all.count < MX_TARGETS_MAX; i++)
		MUST(memcmp(&best.list[i].address, &all.list[i].address,
			 best.list[i].address_len) == 0);
}

static void
check_memory(struct lookups *l, const struct lookup_wanted *wanted,
    const struct seen *seen)
{
	struct mx_set known;

	MUST(seen->times == 1 && nopen == 0 && LIST_EMPTY(&l->left));
	MUST(nasked <= 1 + MX_HOSTS_MAX * wanted->ways.count);
	if (lookup_known(l, wanted, &known)) {
		MUST(seen->error == 0 && known.ttl <= seen->set.ttl);
		MUST(known.nhosts == seen->set.nhosts);
	}
	lookup_forget(l, wanted);
	MUST(!lookup_known(l, wanted, &known));
	MUST(mx_memory_count(l->memory) == 0);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct lookups l = { .own = { "me.test", NULL },
		.is_ours = is_ours };
	struct fuzz_in in = { data, size };
	uint8_t how = (uint8_t)fuzz_number(&in, 1);
	unsigned turns = how >> 4;
	const struct lookup_wanted wanted = {
		.name = how & 2 ? "Mx.Test" : "mx",
		.mx = how & 1,
		.ways = { how & 8 ? 2 : 1, { RESOLVE_DNS, RESOLVE_NATIVE } },
	};
	struct seen seen = { 0 };
	struct lookup *lookup = NULL;

	input = &in;
	nopen = nasked = 0;
	if (l.memory == NULL)
		l.memory = mx_memory_new();
	l.seed = how;
	if (lookup_start(&l, &wanted, on_done, &seen, &lookup) < 0) {
		MUST(seen.times == 0 && nopen == 0);
		return 0;
	}
	while (nopen > 0 && ((how & 4) == 0 || turns-- > 0))
		answer_one();
	if (nopen > 0) {
		MUST(seen.times == 0);
		lookup_cancel(&lookup);
		MUST((nopen == 0) == (seen.early == 0));
		while (nopen > 0)
			answer_one();
		MUST(seen.times == 0 && LIST_EMPTY(&l.left));
		lookup_forget(&l, &wanted);
		return 0;
	}
	if (seen.error == 0)
		check_targets(&seen.set, how);
	if (seen.early > 0)
		check_best(&seen, how);
	check_memory(&l, &wanted, &seen);
	return 0;
}
