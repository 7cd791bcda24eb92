#include "deliver-smtp/reach/mx.h"

#include <errno.h>
#include <openssl/sha.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"

#define HASH_BYTES 16
#define TAIL_MAX   (sizeof("+10:") + 2 * HASH_BYTES)

struct names {
	const char *name[MX_HOSTS_MAX];
	size_t count;
};

static int
compare(const void *a, const void *b)
{
	const char *const *x = a, *const *y = b;

	return strcmp(*x, *y);
}

/* A host may have more than one record. */
static bool
has(const struct names *n, const char *name)
{
	size_t i;

	for (i = 0; i < n->count; i++)
		if (strcmp(n->name[i], name) == 0)
			return true;
	return false;
}

/* Gather the hosts of the MX records. Addresses do not count: the first answer
 * of a lookup may lack addresses that the second answer has. */
static void
gather(const struct mx_set *set, bool loops, struct names *n)
{
	const uint32_t limit = loops ? set->ours_from : MX_NOT_OURS;
	size_t i;

	n->count = 0;
	for (i = 0; i < set->nhosts; i++)
		if (set->hosts[i].preference < limit &&
		    !has(n, set->hosts[i].name))
			n->name[n->count++] = set->hosts[i].name;
	qsort(n->name, n->count, sizeof(n->name[0]), compare);
}

static void
add_hash(const char *text, size_t count, char *out, size_t size)
{
	unsigned char hash[SHA256_DIGEST_LENGTH];
	size_t at, i;

	SHA256((const unsigned char *)text, strlen(text), hash);
	at = strlen(out);
	snprintf(out + at, size - at, "+%zu:", count);
	for (i = 0; i < HASH_BYTES; i++) {
		at = strlen(out);
		snprintf(out + at, size - at, "%02x", hash[i]);
	}
}

int
mx_name(const struct mx_set *set, bool loops, char out[MX_SITE_MAX + 1])
{
	char text[MX_HOSTS_MAX * NEXTHOP_HOST_MAX] = "";
	struct names names;
	size_t i, at = 0;

	if (set->verdict != MX_FOUND || !set->listed || set->cut)
		return -ENOENT;
	gather(set, loops, &names);
	if (names.count == 0)
		return -ENOENT;
	for (i = 0; i < names.count; i++)
		at += (size_t)snprintf(text + at, sizeof(text) - at, "%s%s",
		    i == 0 ? "" : "+", names.name[i]);
	memcpy(out, MX_SITE_PREFIX, sizeof(MX_SITE_PREFIX));
	if (strlen(out) + at <= MX_SITE_MAX) {
		memcpy(out + strlen(out), text, at + 1);
		return 0;
	}
	/* Of more than fits the first host is shown, if there is room. */
	if (strlen(names.name[0]) + strlen(out) + TAIL_MAX <= MX_SITE_MAX) {
		at = strlen(out);
		snprintf(out + at, MX_SITE_MAX + 1 - at, "%s", names.name[0]);
		add_hash(text, names.count - 1, out, MX_SITE_MAX + 1);
	} else {
		add_hash(text, names.count, out, MX_SITE_MAX + 1);
	}
	return 0;
}

bool
mx_has_host(const struct mx_set *set, bool loops, const char *name, size_t len)
{
	const uint32_t limit = mx_limit(set, loops);
	size_t i;

	for (i = 0; i < set->nhosts; i++)
		if (set->hosts[i].preference < limit &&
		    strlen(set->hosts[i].name) == len &&
		    memcmp(set->hosts[i].name, name, len) == 0)
			return true;
	return false;
}
