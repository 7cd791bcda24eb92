/* Addresses without a domain: with the domain put at the places that are named
 * a list has the same addresses, and none without a domain. */
#include "tests/fuzz/fuzz.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "queue-inject/message.h"

#define DOMAIN "default.example"

struct qualified {
	const char *list;
	size_t len, at;
	struct buf out;
	uint32_t count;
};

static int
put_domain(void *arg, const struct address_place *where)
{
	struct qualified *q = arg;
	const size_t place = where->local_end;

	MUST(where->local < place && place <= q->len);
	if (where->address != NULL) {
		MUST(place < where->domain);
		MUST(where->domain < where->domain_end);
		MUST(where->domain_end <= q->len);
		return 0;
	}
	if (!where->plain)
		return -EINVAL;
	MUST(q->list[where->local] != '.' && q->list[place - 1] != '.');
	MUST(where->domain_end == 0);
	MUST(place > q->at);
	MUST(place <= q->len);
	MUST(buf_add(&q->out, q->list + q->at, place - q->at) == 0);
	MUST(buf_add_str(&q->out, "@" DOMAIN) == 0);
	q->at = place;
	q->count++;
	return 0;
}

static int
count_place(void *arg, const struct address_place *place)
{
	*(uint32_t *)arg += place->address == NULL;
	return 0;
}

static int
keep(void *arg, const char *address, size_t len)
{
	struct buf *all = arg;

	MUST(buf_add(all, address, len) == 0);
	MUST(buf_add_char(all, '\n') == 0);
	return 0;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_in in = { data, size };
	struct qualified q = { 0 };
	struct buf before = { 0 }, after = { 0 };
	uint32_t bare = 0;
	char *list = fuzz_rest(&in, &q.len);
	int r, parsed;

	q.list = list;
	parsed = address_list_parse(list, q.len, DOMAIN, keep, &before);
	r = address_list_places(list, q.len, put_domain, &q);
	/* A local part in need of quotes is refused here alone. */
	MUST(r == parsed || (r == -EINVAL && parsed != -ENOMEM));
	if (r == 0) {
		MUST(buf_add(&q.out, list + q.at, q.len - q.at) == 0);
		MUST(address_list_parse(buf_str(&q.out), q.out.len, "wrong",
			 keep, &after) == 0);
		MUST(after.len == before.len);
		MUST(memcmp(buf_str(&after), buf_str(&before), after.len) == 0);
		MUST(address_list_places(
			 buf_str(&q.out), q.out.len, count_place, &bare) == 0);
		MUST(bare == 0);
	}
	buf_done(&q.out);
	buf_done(&before);
	buf_done(&after);
	free(list);
	return 0;
}
