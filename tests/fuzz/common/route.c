/* The routing file: a table of simple rules routes as a model does that looks
 * at every rule; any other text is loaded or refused with its line. */
#include "tests/fuzz/fuzz.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/address.h"
#include "route/nexthop.h"
#include "route/route.h"

#define RULES_MAX 12

static const struct route_transport known[] = {
	{ "local", ROUTE_TO_ACCOUNT, false, false },
	{ "smtp", ROUTE_TO_HOST, false, false },
	{ "lmtp", ROUTE_TO_HOST, true, true },
	{ "a", ROUTE_TO_REASON, false, false },
	{ NULL, ROUTE_TO_NOTHING, false, false },
};

/* ---- rules of simple names, and what they mean ---- */

struct rule {
	char key[64];
	const char *transport;
};

static const char *
label(struct fuzz_in *in)
{
	static const char *const labels[] = { "a", "b", "A", "ab", "x-1" };

	return labels[fuzz_number(in, 1) % ARRAY_LEN(labels)];
}

static void
make_domain(struct fuzz_in *in, char out[32])
{
	unsigned n = 1 + (unsigned)fuzz_number(in, 1) % 4;
	int len = snprintf(out, 32, "%s", label(in));

	while (--n > 0)
		len += snprintf(out + len, 32 - (size_t)len, ".%s", label(in));
}

static void
make_key(struct fuzz_in *in, struct rule *r)
{
	unsigned kind = (unsigned)fuzz_number(in, 1) % 4;
	char domain[32];

	make_domain(in, domain);
	if (kind == 0)
		snprintf(r->key, sizeof(r->key), "*");
	else if (kind == 1)
		snprintf(r->key, sizeof(r->key), "%s@%s", label(in), domain);
	else
		snprintf(r->key, sizeof(r->key), "%s%s", kind == 2 ? "." : "",
		    domain);
	r->transport = known[fuzz_number(in, 1) % 4].name;
}

/* Domains without case, local parts with. */
static bool
is_same_key(const char *a, const char *b)
{
	size_t local = address_local_len(a);

	if (strchr(a, '@') == NULL)
		local = 0;
	return strlen(a) == strlen(b) && memcmp(a, b, local) == 0 &&
	    strcasecmp(a + local, b + local) == 0;
}

/* How exactly a rule speaks of the recipient; 0: not at all. */
static size_t
rank(const char *key, const char *recipient)
{
	const char *domain = address_domain(recipient);
	size_t len = strlen(key), dlen = strlen(domain);

	if (strcmp(key, "*") == 0)
		return 1;
	if (strchr(key, '@') != NULL)
		return is_same_key(key, recipient) ? 2000 : 0;
	if (key[0] != '.')
		return strcasecmp(key, domain) == 0 ? 1000 : 0;
	return dlen > len && strcasecmp(key, domain + dlen - len) == 0 ? 1 + len
								       : 0;
}

static const char *
model_lookup(const struct rule *rules, size_t n, const char *recipient)
{
	const char *found = NULL;
	size_t i, best = 0;

	for (i = 0; i < n; i++)
		if (rank(rules[i].key, recipient) > best) {
			best = rank(rules[i].key, recipient);
			found = rules[i].transport;
		}
	return found;
}

static void
check_model(struct fuzz_in *in)
{
	struct rule rules[RULES_MAX];
	size_t n = fuzz_number(in, 1) % RULES_MAX, i, j;
	struct buf text = { 0 }, error = { 0 };
	struct route_table *table = NULL;
	struct route route;
	const char *want;
	bool twice = false;
	int r;

	for (i = 0; i < n; i++) {
		make_key(in, &rules[i]);
		for (j = 0; j < i; j++)
			twice |= is_same_key(rules[i].key, rules[j].key);
		MUST(buf_printf(&text, "%s\t%s\n", rules[i].key,
			 rules[i].transport) == 0);
	}
	fuzz_file("routes", text.data, text.len);
	r = route_load(fuzz_path("routes"), known, &table, &error);
	MUST(r == (twice ? -EINVAL : 0));
	for (i = 0; r == 0 && i < 6; i++) {
		char domain[32], recipient[64];

		make_domain(in, domain);
		snprintf(
		    recipient, sizeof(recipient), "%s@%s", label(in), domain);
		want = model_lookup(rules, n, recipient);
		r = route_lookup(table, recipient, false, &route);
		MUST(r == (want == NULL ? -ENOENT : 0));
		MUST(want == NULL || strcmp(route.transport, want) == 0);
		r = 0;
	}
	route_free(&table);
	buf_done(&text);
	buf_done(&error);
}

/* ---- any text ---- */

static bool
is_known(const char *transport)
{
	for (size_t i = 0; known[i].name != NULL; i++)
		if (strcmp(known[i].name, transport) == 0)
			return true;
	return false;
}

/* A host that only the operator may name has come from a rule. */
static void
check_host(const struct route *route, const char *hop)
{
	struct nexthop parsed;

	MUST(nexthop_parse(hop, 25, &parsed) == 0);
	if (route->nexthop == NULL)
		MUST(parsed.port == 25 && parsed.kind != NEXTHOP_UNIX &&
		    (route->literals || parsed.kind == NEXTHOP_DOMAIN));
}

static void
check_lookup(const struct route_table *table, const char *recipient)
{
	char hop[ROUTE_NEXTHOP_MAX + 1];
	const char *why = NULL;
	struct route route;
	int r = route_lookup(table, recipient, false, &route);

	if (r < 0) {
		MUST(r == -ENOENT);
		return;
	}
	MUST(is_known(route.transport));
	memset(hop, 'x', sizeof(hop));
	r = route_nexthop(&route, recipient, hop, &why);
	if (r < 0) {
		MUST(r == -EDESTADDRREQ && why != NULL);
		MUST(route.nexthop == NULL);
		return;
	}
	MUST(memchr(hop, '\0', sizeof(hop)) != NULL);
	if (route.target == ROUTE_TO_HOST)
		check_host(&route, hop);
	else if (route.nexthop != NULL && !route_is_mailbox(&route))
		MUST(strcasecmp(hop, route.nexthop) == 0);
}

static void
check_text(struct fuzz_in *in)
{
	char *recipient = fuzz_string(in), *text;
	struct route_table *table = NULL;
	struct buf error = { 0 };
	size_t len;
	int r;

	text = fuzz_rest(in, &len);
	fuzz_file("routes", text, len);
	r = route_load(fuzz_path("routes"), known, &table, &error);
	if (r < 0) {
		MUST(r == -EINVAL && table == NULL);
		MUST(strncmp(buf_str(&error), fuzz_path("routes"),
			 strlen(fuzz_path("routes"))) == 0);
		MUST(error.len < 5000);
	} else {
		MUST(error.len == 0);
		check_lookup(table, recipient);
		check_lookup(table, "a@b.a");
		route_free(&table);
	}
	free(text);
	free(recipient);
	buf_done(&error);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_in in = { data, size };

	if (fuzz_number(&in, 1) & 1)
		check_model(&in);
	else
		check_text(&in);
	return 0;
}
