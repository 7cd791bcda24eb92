#include "todo-proc/pure.h"

#include <bsd/stdlib.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/address.h"
#include "base/bytes.h"
#include "ipc/msg.h"
#include "route/route.h"
#include "sched/sched.h"

#define PLACES_MIN 64

static uint64_t secret;

static void
make_secret(void)
{
	arc4random_buf(&secret, sizeof(secret));
}

static uint32_t
places_for(uint32_t recipients)
{
	uint32_t n = PLACES_MIN;

	while (n < CENSUS_PLACES && n / 2 < recipients)
		n *= 2;
	return n;
}

size_t
census_size(uint32_t recipients)
{
	return places_for(recipients) * sizeof(struct census_place);
}

void
census_limits(const struct conf *conf, struct census_limits *ret_limits)
{
	uint32_t i;

	ret_limits->ntransports = conf->ntransports;
	for (i = 0; i < conf->ntransports; i++)
		ret_limits->limit[i] = sched_recipient_limit(
		    conf->transports[i].sched.destination_recipient_limit);
}

int
census_begin(
    struct census *c, const struct census_limits *limits, uint32_t recipients)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	(void)pthread_once(&once, make_secret);
	memset(c, 0, sizeof(*c));
	c->nplaces = places_for(recipients);
	c->places = calloc(c->nplaces, sizeof(*c->places));
	if (c->places == NULL)
		return -ENOMEM;
	c->passes = 1 + recipients / (c->nplaces / 2 + 1);
	c->limits = *limits;
	return 0;
}

void
census_done(struct census *c)
{
	free(c->places);
	c->places = NULL;
	buf_done(&c->names);
}

static uint64_t
add_byte(uint64_t hash, unsigned char byte)
{
	return (hash ^ byte) * 0x100000001b3u;
}

static uint64_t
add_folded(uint64_t hash, const char *s, size_t len)
{
	size_t i;

	for (i = 0; i < len; i++) {
		unsigned char byte = (unsigned char)s[i];

		if (byte >= 'A' && byte <= 'Z')
			byte = (unsigned char)(byte - 'A' + 'a');
		hash = add_byte(hash, byte);
	}
	return add_byte(hash, 0);
}

/* FNV-1a does not mix its high bits into the low ones; this does. */
static uint64_t
mix(uint64_t hash)
{
	hash ^= hash >> 33;
	hash *= 0xff51afd7ed558ccdu;
	hash ^= hash >> 33;
	hash *= 0xc4ceb9fe1a85ec53u;
	hash ^= hash >> 33;
	return hash == 0 ? 1 : hash;
}

static uint64_t
hash_of(const struct census *c, uint32_t transport, const char *nexthop,
    const char *address)
{
	uint64_t hash = add_byte(secret, (unsigned char)transport);

	hash = add_folded(hash, nexthop, strlen(nexthop));
	if (c->limits.limit[transport] == 1 && address != NULL)
		hash = add_folded(hash, address, address_local_len(address));
	return mix(hash);
}

/* The place of this destination, or a free one. */
static struct census_place *
find(struct census *c, uint64_t hash)
{
	uint32_t at = (uint32_t)hash & (c->nplaces - 1);

	while (c->places[at].hash != 0 && c->places[at].hash != hash)
		at = (at + 1) & (c->nplaces - 1);
	return &c->places[at];
}

static int
add_u32(struct buf *out, uint32_t v)
{
	unsigned char bytes[sizeof(v)];

	bytes_put_u32(bytes, v);
	return buf_add(out, bytes, sizeof(bytes));
}

/* Without names the message counts as one for many destinations. */
static void
add_name(struct census *c, uint32_t transport, const char *nexthop,
    const char *address)
{
	char name[ROUTE_DESTINATION_MAX + 1];
	int len;

	if (c->unnamed || c->nnames++ == MSG_DESTINATIONS_MAX) {
		c->unnamed = true;
		return;
	}
	len = route_destination(
	    nexthop, c->limits.limit[transport] == 1 ? address : NULL, name);
	if (len < 0 || add_u32(&c->names, transport) < 0 ||
	    add_u32(&c->names, (uint32_t)len) < 0 ||
	    buf_add(&c->names, name, (size_t)len) < 0)
		c->unnamed = true;
}

void
census_add(struct census *c, uint32_t transport, const char *nexthop,
    const char *address)
{
	uint64_t hash = hash_of(c, transport, nexthop, address);
	struct census_row *row = &c->rows[transport];
	struct census_place *p;

	/* The low bits find the place, the high ones the pass. */
	if (c->overflow || (hash >> 32) % c->passes != c->pass)
		return;
	p = find(c, hash);
	if (p->hash == 0) {
		if (c->used >= c->nplaces / 8 * 7) {
			c->overflow = true;
			return;
		}
		c->used++;
		p->hash = hash;
		row->destinations++;
		add_name(c, transport, nexthop, address);
	}
	if (p->count++ % c->limits.limit[transport] == 0 || c->single)
		row->entries++;
	row->recipients++;
}

bool
census_pass_ends(struct census *c)
{
	memset(c->places, 0, c->nplaces * sizeof(*c->places));
	c->used = 0;
	if (c->overflow) { /* too uneven a split: all passes again, twice as
			      many */
		memset(c->rows, 0, sizeof(c->rows));
		c->overflow = false;
		c->pass = 0;
		c->passes *= 2;
		return true;
	}
	return ++c->pass < c->passes;
}

int
census_rows(const struct census *c, struct buf *out)
{
	uint32_t i;
	int r = 0;

	for (i = 0; r == 0 && i < c->limits.ntransports; i++) {
		if (c->rows[i].recipients == 0)
			continue;
		r = add_u32(out, i);
		if (r == 0)
			r = add_u32(out, c->rows[i].recipients);
		if (r == 0)
			r = add_u32(out, c->rows[i].destinations);
		if (r == 0)
			r = add_u32(out, c->rows[i].entries);
	}
	return r;
}

void
census_names(struct census *c, struct buf *out)
{
	if (c->unnamed)
		buf_reset(&c->names);
	*out = c->names;
	c->names = (struct buf){ 0 };
}
