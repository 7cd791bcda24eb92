#include "deliver-smtp/reach/lookup.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/clock.h"

#define KEY_MAX (NEXTHOP_HOST_MAX + 2)

struct asked { /* one host */
	struct lookup *lookup;
	struct resolve_request *request;
};

struct lookup {
	struct lookups *shared;
	char name[NEXTHOP_HOST_MAX];
	bool mx;
	enum resolve_scope scope; /* of the addresses */
	/* /etc/hosts, or MX records. */
	struct resolve_request *request;
	struct asked hosts[MX_HOSTS_MAX];
	size_t pending;
	int error; /* of the hosts, the last one that is not a no */
	const char *text;
	struct mx_set set;
	lookup_fn *done;
	void *arg;
};

/* A domain and a host of one name are known apart. */
static void
make_key(const char *name, bool mx, char key[KEY_MAX])
{
	snprintf(key, KEY_MAX, mx ? "%s" : "[%s]", name);
}

static void
lookup_free(struct lookup *l)
{
	size_t i;

	resolve_cancel(&l->request);
	for (i = 0; i < MX_HOSTS_MAX; i++)
		resolve_cancel(&l->hosts[i].request);
	free(l);
}

static void
end(struct lookup *l, int error, const char *text)
{
	const struct lookup_answer answer = {
		.error = error,
		.text = text,
		.set = &l->set,
	};
	char key[KEY_MAX];

	if (error == 0) {
		make_key(l->name, l->mx, key);
		mx_memory_put(l->shared->memory, key, &l->set, clock_mono());
	}
	l->done(l->arg, &answer);
	lookup_free(l);
}

static void
end_with(struct lookup *l, enum mx_verdict verdict, const char *text)
{
	l->set.verdict = verdict;
	mx_set_ttl(&l->set, MX_TTL_NO);
	end(l, 0, text);
}

/* ---- addresses of the hosts ---- */

static void
take_addresses(
    struct lookup *l, struct mx_host *host, const struct resolve_result *result)
{
	const struct sockaddr *address;
	size_t i;

	mx_set_ttl(&l->set, result->ttl);
	for (i = 0; i < result->count; i++) {
		address = (const struct sockaddr *)&result->addresses[i];
		if (mx_add_address(host, address) && l->mx &&
		    l->shared->is_ours(address))
			host->ours = true;
	}
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
end_hosts(struct lookup *l)
{
	if (l->error != 0)
		mx_set_ttl(&l->set, MX_TTL_NO);
	if (has_addresses(&l->set))
		end(l, 0, NULL);
	else if (l->error == -ENOENT)
		end_with(l, MX_NO_NAME, l->text);
	else if (l->error != 0)
		end(l, l->error, l->text);
	else
		end_with(l, MX_NO_ADDRESS, NULL);
}

/* That a host does not exist says so of the next hop only where it is that
 * host. */
static void
note_error(struct lookup *l, const struct resolve_result *result)
{
	bool no = result->error == -ENODATA ||
	    (result->error == -ENOENT && l->set.listed);

	if (no)
		return;
	l->error = result->error;
	l->text = result->text;
}

static void
on_host(void *arg, const struct resolve_result *result)
{
	struct asked *asked = arg;
	struct lookup *l = asked->lookup;
	size_t at = (size_t)(asked - l->hosts);

	asked->request = NULL;
	if (result->error < 0)
		note_error(l, result);
	else
		take_addresses(l, &l->set.hosts[at], result);
	if (--l->pending == 0)
		end_hosts(l);
}

/* -ENOMEM: none was asked. */
static int
ask_hosts(struct lookup *l)
{
	size_t i;
	int r = 0;

	for (i = 0; i < l->set.nhosts; i++) {
		l->hosts[i].lookup = l;
		r = resolve_start(l->shared->resolver, l->scope,
		    l->set.hosts[i].name, on_host, &l->hosts[i],
		    &l->hosts[i].request);
		if (r == 0) {
			l->pending++;
		} else {
			l->error = r;
			l->text = strerror(-r);
		}
	}
	return l->pending > 0 ? 0 : r;
}

static void
go_on(struct lookup *l)
{
	int r = ask_hosts(l);

	if (r < 0)
		end(l, r, strerror(-r));
}

/* ---- MX records ---- */

static void
take_records(struct lookup *l, const struct resolve_result *result)
{
	int r = mx_read(result->answer, result->answer_len, l->shared->own,
	    mx_chance(&l->shared->seed), &l->set);

	if (r == -ENODATA)
		mx_set_alone(&l->set, l->name);
	if (r == -EBADMSG)
		end(l, -EAGAIN, "malformed answer");
	else if (r == 0 && l->set.verdict != MX_FOUND)
		end_with(l, l->set.verdict, NULL);
	else
		go_on(l);
}

static void
on_mx(void *arg, const struct resolve_result *result)
{
	struct lookup *l = arg;

	l->request = NULL;
	if (result->error == 0) {
		take_records(l, result);
	} else if (result->error == -ENOENT) {
		end_with(l, MX_NO_NAME, result->text);
	} else if (result->error == -ENODATA) {
		mx_set_alone(&l->set, l->name);
		go_on(l);
	} else {
		end(l, result->error, result->text);
	}
}

static void
on_hosts_file(void *arg, const struct resolve_result *result)
{
	struct lookup *l = arg;
	int r;

	l->request = NULL;
	if (result->error == 0) {
		/* The operator's file makes no loop. */
		take_addresses(l, &l->set.hosts[0], result);
		l->set.hosts[0].ours = false;
		end_hosts(l);
		return;
	}
	r = resolve_mx_start(
	    l->shared->resolver, l->name, on_mx, l, &l->request);
	if (r < 0)
		end(l, r, strerror(-r));
}

/* ---- the start ---- */

static int
begin(struct lookup *l)
{
	mx_set_alone(&l->set, l->name);
	if (l->mx)
		return resolve_start(l->shared->resolver, RESOLVE_HOSTS_FILE,
		    l->name, on_hosts_file, l, &l->request);
	return ask_hosts(l);
}

int
lookup_start(struct lookups *shared, const struct nexthop *hop, bool mx,
    lookup_fn *done, void *arg, struct lookup **ret_lookup)
{
	struct lookup *l = calloc(1, sizeof(*l));
	int r;

	if (l == NULL)
		return -ENOMEM;
	l->shared = shared;
	memcpy(l->name, hop->host, sizeof(l->name));
	nexthop_lower_case(l->name);
	l->mx = mx && strchr(l->name, '.') != NULL;
	l->scope = l->mx ? RESOLVE_EXACT : RESOLVE_SYSTEM;
	l->done = done;
	l->arg = arg;
	r = begin(l);
	if (r < 0)
		lookup_free(l);
	else
		*ret_lookup = l;
	return r;
}

void
lookup_cancel(struct lookup **lookup)
{
	struct lookup *l = *lookup;

	*lookup = NULL;
	if (l != NULL)
		lookup_free(l);
}

bool
lookup_known(struct lookups *l, const struct nexthop *hop, bool mx,
    struct mx_set *ret_set)
{
	char key[KEY_MAX];

	make_key(hop->host, mx && strchr(hop->host, '.') != NULL, key);
	nexthop_lower_case(key);
	return mx_memory_get(l->memory, key, clock_mono(), ret_set);
}

void
lookup_forget(struct lookups *l, const struct nexthop *hop, bool mx)
{
	char key[KEY_MAX];

	make_key(hop->host, mx && strchr(hop->host, '.') != NULL, key);
	nexthop_lower_case(key);
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
	resolver_free(&l->resolver);
	mx_memory_free(&l->memory);
}
