#include "deliver-smtp/reach/mx.h"

#include <arpa/nameser.h>
#include <errno.h>
#include <resolv.h>
#include <stdlib.h>
#include <string.h>

#define MX_FIXED 2 /* the preference, in front of the name */

/* ---- one answer ---- */

struct reader {
	struct mx_set *set;
	const char *const *own;
	uint64_t seed;
	uint64_t chance[MX_HOSTS_MAX]; /* of each host that is kept */
	size_t records;
	bool null;
};

/* splitmix64 */
uint64_t
mx_chance(uint64_t *seed)
{
	uint64_t z = *seed += 0x9e3779b97f4a7c15u;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
	return z ^ (z >> 31);
}

static bool
is_own(const char *const own[], const char *name)
{
	for (; *own != NULL; own++)
		if (strcasecmp(*own, name) == 0)
			return true;
	return false;
}

static bool
is_known(const struct mx_set *set, const char *name, uint16_t preference)
{
	size_t i;

	for (i = 0; i < set->nhosts; i++)
		if (set->hosts[i].preference <= preference &&
		    strcmp(set->hosts[i].name, name) == 0)
			return true;
	return false;
}

/* The hosts are in order of preference and chance; the last one makes room. */
static void
insert(struct reader *r, const char *name, uint16_t preference)
{
	struct mx_set *set = r->set;
	uint64_t chance = mx_chance(&r->seed);
	size_t at = set->nhosts;

	set->cut |= set->nhosts == MX_HOSTS_MAX;
	while (at > 0 &&
	    (set->hosts[at - 1].preference > preference ||
		(set->hosts[at - 1].preference == preference &&
		    r->chance[at - 1] > chance)))
		at--;
	if (at == MX_HOSTS_MAX)
		return;
	if (set->nhosts < MX_HOSTS_MAX)
		set->nhosts++;
	memmove(&set->hosts[at + 1], &set->hosts[at],
	    (set->nhosts - at - 1) * sizeof(set->hosts[0]));
	memmove(&r->chance[at + 1], &r->chance[at],
	    (set->nhosts - at - 1) * sizeof(r->chance[0]));
	set->hosts[at] = (struct mx_host){ .preference = preference };
	memcpy(set->hosts[at].name, name, strlen(name) + 1);
	r->chance[at] = chance;
}

static void
take_host(struct reader *r, const char *text, uint16_t preference)
{
	char name[NEXTHOP_HOST_MAX];
	const char *why;

	if (strcmp(text, ".") == 0) {
		r->null = true;
		return;
	}
	if (nexthop_of_domain(text, false, name, &why) < 0)
		return;
	if (is_own(r->own, name)) {
		if (preference < r->set->ours_from) {
			r->set->ours_from = preference;
			memcpy(r->set->own, name, sizeof(name));
		}
		return;
	}
	if (!is_known(r->set, name, preference))
		insert(r, name, preference);
}

static int
take_record(struct reader *r, const ns_msg *message, const ns_rr *rr)
{
	const unsigned char *data = ns_rr_rdata(*rr);
	/* Each octet may become four. */
	char text[NS_MAXDNAME];

	if (ns_rr_ttl(*rr) < r->set->ttl)
		r->set->ttl = ns_rr_ttl(*rr);
	if (ns_rr_type(*rr) != ns_t_mx || ns_rr_class(*rr) != ns_c_in)
		return 0;
	if (ns_rr_rdlen(*rr) <= MX_FIXED)
		return -EBADMSG;
	r->records++;
	if (ns_name_uncompress(ns_msg_base(*message), ns_msg_end(*message),
		data + MX_FIXED, text, sizeof(text)) < 0)
		return -EBADMSG;
	take_host(r, text, (uint16_t)ns_get16(data));
	return 0;
}

static enum mx_verdict
verdict_of(const struct reader *r)
{
	if (r->set->nhosts > 0)
		return MX_FOUND;
	if (r->set->ours_from != MX_NOT_OURS)
		return MX_LOOP;
	return r->null && r->records == 1 ? MX_NO_MAIL : MX_NO_HOST;
}

int
mx_read(const unsigned char *answer, size_t len, const char *const own[],
    uint64_t seed, struct mx_set *ret_set)
{
	struct mx_set set = {
		.listed = true, .ttl = MX_TTL_MAX, .ours_from = MX_NOT_OURS
	};
	struct reader r = { .set = &set, .own = own, .seed = seed };
	ns_msg message;
	ns_rr rr;
	int i, error = 0;

	if (len > UINT16_MAX || ns_initparse(answer, (int)len, &message) < 0)
		return -EBADMSG;
	for (i = 0; error == 0 && i < ns_msg_count(message, ns_s_an); i++)
		error = ns_parserr(&message, ns_s_an, i, &rr) < 0
		    ? -EBADMSG
		    : take_record(&r, &message, &rr);
	if (error < 0)
		return error;
	if (r.records == 0)
		return -ENODATA;
	set.verdict = verdict_of(&r);
	*ret_set = set;
	return 0;
}

/* ---- the hosts ---- */

void
mx_set_alone(struct mx_set *set, const char *domain)
{
	*set = (struct mx_set){
		.ttl = MX_TTL_MAX, .ours_from = MX_NOT_OURS, .nhosts = 1
	};
	memcpy(set->hosts[0].name, domain, strlen(domain) + 1);
}

void
mx_set_ttl(struct mx_set *set, int64_t ttl)
{
	if (ttl < set->ttl)
		set->ttl = ttl < 0 ? 0 : (uint32_t)ttl;
}

bool
mx_add_address(struct mx_host *host, const struct sockaddr *address)
{
	union mx_address *to;

	if (host->naddresses == MX_ADDRESSES_MAX || !nexthop_is_server(address))
		return false;
	to = &host->addresses[host->naddresses++];
	*to = (union mx_address){ 0 };
	memcpy(to, address,
	    address->sa_family == AF_INET ? sizeof(to->in) : sizeof(to->in6));
	return true;
}

bool
mx_address_equal(const union mx_address *a, const union mx_address *b)
{
	if (a->any.sa_family != b->any.sa_family)
		return false;
	return a->any.sa_family == AF_INET
	    ? a->in.sin_addr.s_addr == b->in.sin_addr.s_addr
	    : IN6_ARE_ADDR_EQUAL(&a->in6.sin6_addr, &b->in6.sin6_addr) != 0;
}

/* ---- the verdict ---- */

uint32_t
mx_limit(const struct mx_set *set, bool loops)
{
	uint32_t limit = set->ours_from;
	size_t i;

	if (!loops)
		return MX_NOT_OURS;
	for (i = 0; i < set->nhosts; i++)
		if (set->hosts[i].ours && set->hosts[i].preference < limit)
			limit = set->hosts[i].preference;
	return limit;
}

enum mx_verdict
mx_judge(const struct mx_set *set, bool loops)
{
	uint32_t limit = mx_limit(set, loops);
	/* Hosts beyond MX_HOSTS_MAX were not looked up. */
	bool unsure = set->cut;
	size_t i;

	if (set->verdict != MX_FOUND)
		return set->verdict;
	for (i = 0; i < set->nhosts; i++)
		if (set->hosts[i].preference < limit)
			break;
	if (i == set->nhosts)
		return MX_LOOP;
	for (i = 0; i < set->nhosts; i++) {
		if (set->hosts[i].preference >= limit)
			continue;
		if (set->hosts[i].naddresses > 0)
			return MX_FOUND;
		unsure |= set->hosts[i].unsure;
	}
	return unsure ? MX_UNSURE : MX_NO_ADDRESS;
}
