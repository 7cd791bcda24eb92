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
put_domain(void *arg, size_t place)
{
	struct qualified *q = arg;

	MUST(place > q->at);
	MUST(place <= q->len);
	MUST(buf_add(&q->out, q->list + q->at, place - q->at) == 0);
	MUST(buf_add_str(&q->out, "@" DOMAIN) == 0);
	q->at = place;
	q->count++;
	return 0;
}

static int
count_place(void *arg, UNUSED size_t place)
{
	++*(uint32_t *)arg;
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
	r = address_list_bare(list, q.len, DOMAIN, put_domain, &q);
	/* A local part in need of quotes is refused here alone. */
	MUST(r == parsed || (r == -EINVAL && parsed != -ENOMEM));
	if (r == 0) {
		MUST(buf_add(&q.out, list + q.at, q.len - q.at) == 0);
		MUST(address_list_parse(buf_str(&q.out), q.out.len, "wrong",
			 keep, &after) == 0);
		MUST(after.len == before.len);
		MUST(memcmp(buf_str(&after), buf_str(&before), after.len) == 0);
		MUST(address_list_bare(buf_str(&q.out), q.out.len, "wrong",
			 count_place, &bare) == 0);
		MUST(bare == 0);
	}
	buf_done(&q.out);
	buf_done(&before);
	buf_done(&after);
	free(list);
	return 0;
}
