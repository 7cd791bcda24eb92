/* How many recipients, destinations and entries a message has: against a count
 * of every pair, also when it takes several passes. */
#include "tests/fuzz/fuzz.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/address.h"
#include "sched/sched.h"
#include "todo-proc/pure.h"

#define RCPTS_MAX 300

struct rcpt {
	uint32_t transport;
	char nexthop[8], address[16];
};

static struct rcpt rcpts[RCPTS_MAX];
static struct conf conf;

static size_t
take_rcpts(struct fuzz_in *in)
{
	static const char letters[] = "aAbBcCdD@.";
	size_t n;

	for (n = 0; n < RCPTS_MAX && in->left > 0; n++) {
		uint64_t v = fuzz_number(in, 3);
		struct rcpt *r = &rcpts[n];

		r->transport = v % conf.ntransports;
		snprintf(r->nexthop, sizeof(r->nexthop), "%c%c",
		    letters[v >> 4 & 7], letters[v >> 7 & 7]);
		snprintf(r->address, sizeof(r->address), "%c%c@%c",
		    letters[v >> 10 & 7], letters[v >> 13 & 7],
		    letters[v >> 16 & 7]);
	}
	return n;
}

/* One destination: the next hop and, where each delivery has one recipient,
 * the local part; letters of any case are the same. */
static bool
is_same(const struct rcpt *a, const struct rcpt *b)
{
	size_t len = address_local_len(a->address);

	if (a->transport != b->transport ||
	    strcasecmp(a->nexthop, b->nexthop) != 0)
		return false;
	return sched_recipient_limit(conf.transports[a->transport]
					 .sched.destination_recipient_limit) !=
	    1 ||
	    (len == address_local_len(b->address) &&
		strncasecmp(a->address, b->address, len) == 0);
}

static void
model(size_t n, struct census_row *rows)
{
	size_t i, j;

	for (i = 0; i < n; i++) {
		uint32_t limit = sched_recipient_limit(
		    conf.transports[rcpts[i].transport]
			.sched.destination_recipient_limit);
		struct census_row *row = &rows[rcpts[i].transport];
		uint32_t before = 0;

		for (j = 0; j < i; j++)
			before += is_same(&rcpts[i], &rcpts[j]);
		row->recipients++;
		row->destinations += before == 0;
		row->entries += before % limit == 0;
	}
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const uint32_t limits[] = { 0, 1, 2, 3, 50 };
	struct fuzz_in in = { data, size };
	struct census_row want[CONF_TRANSPORTS_MAX] = { 0 };
	struct buf blob = { 0 };
	struct census_limits transports;
	struct census c;
	uint32_t told, used = 0;
	size_t n, i, rounds = 0;

	conf.ntransports = 1 + (uint32_t)fuzz_number(&in, 1) % 4;
	for (i = 0; i < conf.ntransports; i++)
		conf.transports[i].sched.destination_recipient_limit =
		    limits[fuzz_number(&in, 1) % ARRAY_LEN(limits)];
	/* What the file says and what it has may differ: then it is damaged,
	 * and the count has to end all the same. */
	told = (uint32_t)fuzz_number(&in, 1);
	n = take_rcpts(&in);
	model(n, want);
	census_limits(&conf, &transports);
	MUST(census_begin(&c, &transports, told) == 0);
	do {
		MUST(++rounds < 64);
		for (i = 0; i < n; i++)
			census_add(&c, rcpts[i].transport, rcpts[i].nexthop,
			    rcpts[i].address);
	} while (census_pass_ends(&c));
	MUST(memcmp(c.rows, want, sizeof(c.rows)) == 0);
	for (i = 0; i < conf.ntransports; i++)
		used += want[i].recipients > 0;
	MUST(census_rows(&c, &blob) == 0 && blob.len == 16 * used);
	census_done(&c);
	buf_done(&blob);
	return 0;
}
