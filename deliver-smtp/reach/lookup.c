#include "deliver-smtp/reach/lookup.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/clock.h"

#define KEY_MAX (NEXTHOP_HOST_MAX + 8)

struct asked { /* one host */
	struct lookup *lookup;
	struct resolve_request *request;
	size_t way; /* of the lookup: the one that is asked */
	int error;  /* the servers did not say; 0 */
	const char *text;
};

struct lookup {
	LIST_ENTRY(lookup) entry; /* of those that are left */
	bool left;
	struct lookups *shared;
	char name[NEXTHOP_HOST_MAX];
	char key[KEY_MAX];
	bool mx;
	struct lookup_ways ways;         /* to the addresses of a host */
	struct resolve_request *request; /* MX records */
	struct asked hosts[MX_HOSTS_MAX];
	size_t pending;      /* hosts */
	const char *no_name; /* the only host does not exist */
	bool offered;        /* the first of two answers was given */
	struct mx_set set;
	lookup_fn *done; /* NULL: nobody waits for it */
	void *arg;
};

/* A domain and a host of one name are known apart, and a host by each way to
 * its addresses. */
static void
key_make(const struct lookup_wanted *wanted, char key[KEY_MAX])
{
	const struct lookup_ways *w = &wanted->ways;
	size_t len, i;

	snprintf(key, KEY_MAX, wanted->mx ? "%s" : "[%s]", wanted->name);
	nexthop_lower_case(key);
	for (i = 0; i < w->count && (w->count > 1 || w->by[0] != RESOLVE_DNS);
	     i++) {
		len = strlen(key);
		snprintf(key + len, KEY_MAX - len, " %d", (int)w->by[i]);
	}
}

static void
lookup_free(struct lookup *l)
{
	size_t i;

	if (l->left)
		LIST_REMOVE(l, entry);
	resolve_cancel(&l->request);
	for (i = 0; i < MX_HOSTS_MAX; i++)
		resolve_cancel(&l->hosts[i].request);
	free(l);
}

/* ---- the end ---- */

static void
lookup_end(struct lookup *l, int error, const char *text)
{
	const struct lookup_answer answer = {
		.error = error,
		.text = text,
		.set = &l->set,
		.complete = true,
	};

	if (error == 0)
		mx_memory_put(l->shared->memory, l->key, &l->set, clock_mono());
	if (l->done != NULL)
		l->done(l->arg, &answer);
	lookup_free(l);
}

static void
lookup_end_with(struct lookup *l, enum mx_verdict verdict, const char *text)
{
	l->set.verdict = verdict;
	mx_set_ttl(&l->set, MX_TTL_NO);
	lookup_end(l, 0, text);
}

static bool
has_addresses(const struct mx_set *set)
{
	size_t i;

	for (i = 0; i < set->nhosts; i++)
		if (set->hosts[i].naddresses > 0)
			return true;
	return false;
}

/* A host that did not answer is asked for again soon. */
static void
hosts_end(struct lookup *l)
{
	const struct asked *unsure = NULL;
	size_t i;

	for (i = l->set.nhosts; i > 0; i--)
		if (l->hosts[i - 1].error != 0)
			unsure = &l->hosts[i - 1];
	if (unsure != NULL)
		mx_set_ttl(&l->set, MX_TTL_NO);
	if (has_addresses(&l->set))
		lookup_end(l, 0, NULL);
	else if (unsure != NULL)
		lookup_end(l, unsure->error, unsure->text);
	else if (l->no_name != NULL)
		lookup_end_with(l, MX_NO_NAME, l->no_name);
	else
		lookup_end_with(
		    l, l->set.cut ? MX_UNSURE : MX_NO_ADDRESS, NULL);
}

/* ---- the best hosts first ---- */

/* How many of the hosts are known, of each preference all or none. */
static size_t
known_count(const struct lookup *l)
{
	const struct mx_host *hosts = l->set.hosts;
	size_t n = 0;

	while (n < l->set.nhosts && l->hosts[n].request == NULL)
		n++;
	while (n > 0 && n < l->set.nhosts &&
	    hosts[n].preference == hosts[n - 1].preference)
		n--;
	return n;
}

/* A worse host decides nothing about better ones, so that these can be used
 * while it is looked up. */
static void
best_offer(struct lookup *l)
{
	struct mx_set best = l->set;
	const struct lookup_answer answer = { .set = &best };
	size_t i;

	for (i = known_count(l); i < best.nhosts; i++) {
		best.hosts[i].naddresses = 0;
		best.hosts[i].ours = false;
		best.hosts[i].unsure = true;
	}
	if (l->offered || l->done == NULL || mx_judge(&best, true) != MX_FOUND)
		return;
	l->offered = true;
	l->done(l->arg, &answer);
}

/* ---- addresses of the hosts ---- */

struct family {
	size_t count;
	const union mx_address *of[RESOLVE_MAX];
};

static void
family_gather(struct lookup *l, struct mx_host *host,
    const struct resolve_result *result, struct family families[2])
{
	const sa_family_t first = result->addresses[0].any.sa_family;
	const struct sockaddr *address;
	struct family *f;
	size_t i;

	for (i = 0; i < result->count; i++) {
		address = &result->addresses[i].any;
		if (!nexthop_is_server(address))
			continue;
		f = &families[address->sa_family != first];
		f->of[f->count++] = &result->addresses[i];
		if (l->mx && !host->ours && l->shared->is_ours(address)) {
			host->ours = true;
			host->own = result->addresses[i];
		}
	}
}

/* Of more addresses than there is room for, those from a place of chance on. */
static void
family_take(
    struct lookup *l, struct mx_host *host, const struct family *f, size_t room)
{
	size_t at = 0, i;

	if (f->count > room)
		at = mx_chance(&l->shared->seed) % f->count;
	for (i = 0; i < f->count && i < room; i++)
		(void)mx_add_address(host, &f->of[(at + i) % f->count]->any);
}

static void
addresses_take(
    struct lookup *l, struct mx_host *host, const struct resolve_result *result)
{
	struct family families[2] = { { .count = 0 }, { .count = 0 } };
	size_t second;

	mx_set_ttl(&l->set, result->ttl);
	family_gather(l, host, result, families);
	second = families[1].count < MX_ADDRESSES_MAX / 2
	    ? families[1].count
	    : MX_ADDRESSES_MAX / 2;
	family_take(l, host, &families[0], MX_ADDRESSES_MAX - second);
	family_take(l, host, &families[1], MX_ADDRESSES_MAX - host->naddresses);
}

/* NXDOMAIN of a host of an MX record is not NXDOMAIN of the domain. */
static void
error_note(struct lookup *l, struct asked *asked, int error, const char *text)
{
	if (error != -ENOENT && error != -ENODATA) {
		asked->error = error;
		asked->text = text;
	} else if (error == -ENOENT && !l->set.listed) {
		l->no_name = text;
	}
}

static int host_ask(struct asked *asked);

/* The next way to the addresses of a host. False: there is none. */
static bool
host_ask_again(struct asked *asked)
{
	struct lookup *l = asked->lookup;
	int r;

	while (++asked->way < l->ways.count) {
		r = host_ask(asked);
		if (r == 0)
			return true;
		error_note(l, asked, r, strerror(-r));
	}
	return false;
}

static void
on_host(void *arg, const struct resolve_result *result)
{
	struct asked *asked = arg;
	struct lookup *l = asked->lookup;
	struct mx_host *host = &l->set.hosts[asked - l->hosts];

	asked->request = NULL;
	if (result->error < 0) {
		error_note(l, asked, result->error, result->text);
		if (host_ask_again(asked))
			return;
		host->unsure = asked->error != 0;
	} else {
		asked->error = 0;
		l->no_name = NULL;
		addresses_take(l, host, result);
	}
	if (--l->pending == 0)
		hosts_end(l);
	else
		best_offer(l);
}

static int
host_ask(struct asked *asked)
{
	struct lookup *l = asked->lookup;

	return resolve_start(l->shared->resolver, l->ways.by[asked->way],
	    l->set.hosts[asked - l->hosts].name, on_host, asked,
	    &asked->request);
}

/* -errno: none was asked. */
static int
hosts_ask(struct lookup *l)
{
	struct asked *asked;
	size_t i;
	int r = 0;

	for (i = 0; i < l->set.nhosts; i++) {
		asked = &l->hosts[i];
		asked->lookup = l;
		r = host_ask(asked);
		if (r == 0) {
			l->pending++;
			continue;
		}
		error_note(l, asked, r, strerror(-r));
		l->set.hosts[i].unsure = true;
	}
	return l->pending > 0 ? 0 : r;
}

static void
hosts_begin(struct lookup *l)
{
	int r = hosts_ask(l);

	if (r < 0)
		lookup_end(l, r, strerror(-r));
}

/* ---- MX records ---- */

/* The operator's word on how hosts are found is about hosts: the addresses of
 * a domain are those of DNS. */
static void
domain_alone(struct lookup *l)
{
	mx_set_alone(&l->set, l->name);
	l->ways = (struct lookup_ways){ 1, { RESOLVE_DNS } };
	hosts_begin(l);
}

static void
records_take(struct lookup *l, const struct resolve_result *result)
{
	int r = mx_read(result->answer, result->answer_len, l->shared->own,
	    mx_chance(&l->shared->seed), &l->set);

	if (r == -ENODATA)
		domain_alone(l);
	else if (r < 0)
		lookup_end(l, -EAGAIN, "malformed answer");
	else if (l->set.verdict != MX_FOUND)
		lookup_end_with(l, l->set.verdict, NULL);
	else
		hosts_begin(l);
}

static void
on_mx(void *arg, const struct resolve_result *result)
{
	struct lookup *l = arg;

	l->request = NULL;
	if (result->error == 0)
		records_take(l, result);
	else if (result->error == -ENOENT)
		lookup_end_with(l, MX_NO_NAME, result->text);
	else if (result->error == -ENODATA)
		domain_alone(l);
	else
		lookup_end(l, result->error, result->text);
}

/* ---- the start ---- */

static int
lookup_begin(struct lookup *l)
{
	size_t i;

	mx_set_alone(&l->set, l->name);
	if (!l->mx)
		return hosts_ask(l);
	/* The search list could lead a name that a stranger chose to another
	 * domain. */
	for (i = 0; i < l->ways.count; i++)
		if (l->ways.by[i] == RESOLVE_NATIVE)
			l->ways.by[i] = RESOLVE_NATIVE_EXACT;
	return resolve_start(
	    l->shared->resolver, RESOLVE_MX, l->name, on_mx, l, &l->request);
}

int
lookup_start(struct lookups *shared, const struct lookup_wanted *wanted,
    lookup_fn *done, void *arg, struct lookup **ret_lookup)
{
	struct lookup *l = calloc(1, sizeof(*l));
	int r;

	if (l == NULL)
		return -ENOMEM;
	l->shared = shared;
	memcpy(l->name, wanted->name, strlen(wanted->name) + 1);
	nexthop_lower_case(l->name);
	key_make(wanted, l->key);
	l->mx = wanted->mx;
	l->ways = wanted->ways;
	l->done = done;
	l->arg = arg;
	r = lookup_begin(l);
	if (r < 0)
		lookup_free(l);
	else
		*ret_lookup = l;
	return r;
}

/* Each has sockets of its own, for as long as name servers are silent. */
static bool
may_be_left(const struct lookup *l)
{
	const struct lookup *other;
	size_t left = 0;

	LIST_FOREACH (other, &l->shared->left, entry)
		if (++left == LOOKUPS_LEFT_MAX ||
		    strcmp(other->key, l->key) == 0)
			return false;
	return l->offered;
}

/* A lookup whose best hosts are known goes on: else the next delivery would ask
 * for the slow ones once more, and each one after that. */
void
lookup_cancel(struct lookup **lookup)
{
	struct lookup *l = *lookup;

	*lookup = NULL;
	if (l == NULL)
		return;
	if (!may_be_left(l)) {
		lookup_free(l);
		return;
	}
	l->done = NULL;
	l->left = true;
	LIST_INSERT_HEAD(&l->shared->left, l, entry);
}

bool
lookup_known(struct lookups *l, const struct lookup_wanted *wanted,
    struct mx_set *ret_set)
{
	char key[KEY_MAX];

	key_make(wanted, key);
	return mx_memory_get(l->memory, key, clock_mono(), ret_set);
}

void
lookup_forget(struct lookups *l, const struct lookup_wanted *wanted)
{
	char key[KEY_MAX];

	key_make(wanted, key);
	mx_memory_forget(l->memory, key);
}

/* ---- shared by sessions ---- */

int
lookups_open(struct lookups *l, struct event_base *base)
{
	int r;

	l->is_ours = address_is_ours;
	if (getrandom(&l->seed, sizeof(l->seed), GRND_NONBLOCK) < 0)
		l->seed = (uint64_t)clock_mono();
	l->memory = mx_memory_new();
	if (l->memory == NULL)
		return -ENOMEM;
	r = resolver_new(base, &l->resolver);
	if (r < 0)
		mx_memory_free(&l->memory);
	return r;
}

int
lookups_reload(struct lookups *l)
{
	mx_memory_clear(l->memory);
	return resolver_reload(l->resolver);
}

void
lookups_close(struct lookups *l)
{
	struct lookup *left;

	while ((left = LIST_FIRST(&l->left)) != NULL)
		lookup_free(left);
	resolver_free(&l->resolver);
	mx_memory_free(&l->memory);
}
