/* Addresses in header fields and arguments: what is handed on may stand in an
 * envelope, and read as a list of its own it is that address again. */
#include "tests/fuzz/fuzz.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/address.h"
#include "queue-inject/message.h"

#define DOMAIN "default.example"

struct seen {
	uint32_t count, stop_at;
	struct buf first, all;
};

static int
keep(void *arg, const char *address, size_t len)
{
	struct seen *s = arg;

	MUST(strlen(address) == len);
	MUST(len == 0 || address_check(address, len) == 0);
	MUST(len == 0 || strchr(address, '@') != NULL);
	if (s->count++ == 0)
		MUST(buf_add(&s->first, address, len) == 0);
	MUST(buf_add(&s->all, address, len) == 0);
	MUST(buf_add_char(&s->all, '\n') == 0);
	return s->count == s->stop_at ? -ECANCELED : 0;
}

static void
seen_done(struct seen *s)
{
	buf_done(&s->first);
	buf_done(&s->all);
}

static int
parse(const char *list, size_t len, struct seen *s)
{
	int r = address_list_parse(list, len, DOMAIN, keep, s);

	MUST(r == 0 || r == -EINVAL || r == -EILSEQ || r == -ENAMETOOLONG ||
	    r == -ECANCELED);
	return r;
}

/* In front of it nothing changes, and behind it comes the same. */
static void
check_first_again(const struct seen *was)
{
	struct seen again = { 0 };
	const char *s = buf_str(&was->first);

	if (was->count == 0 || was->first.len == 0)
		return;
	MUST(parse(s, was->first.len, &again) == 0);
	MUST(again.count == 1 && again.first.len == was->first.len);
	MUST(memcmp(again.first.data, s, was->first.len) == 0);
	seen_done(&again);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_in in = { data, size };
	struct seen all = { 0 }, angle = { 0 }, some = { 0 };
	struct buf text = { 0 };
	size_t len;
	char *list;
	int r;

	some.stop_at = 1 + (uint32_t)fuzz_number(&in, 1) % 4;
	list = fuzz_rest(&in, &len);
	r = parse(list, len, &all);
	MUST(r != -ECANCELED);
	check_first_again(&all);
	/* Stopped by its caller it hands on no more. */
	r = parse(list, len, &some);
	MUST(r != -ECANCELED || some.count == some.stop_at);
	MUST(some.count <= all.count && some.all.len <= all.all.len);
	MUST(memcmp(buf_str(&some.all), buf_str(&all.all), some.all.len) == 0);
	/* A fold between two elements changes nothing. */
	MUST(buf_add_str(&text, "x@y,\r\n ") == 0);
	MUST(buf_add(&text, list, len) == 0);
	(void)parse(text.data, text.len, &angle);
	MUST(angle.count == all.count + 1);
	MUST(strcmp(buf_str(&angle.all) + 4, buf_str(&all.all)) == 0);
	seen_done(&all);
	seen_done(&some);
	seen_done(&angle);
	buf_done(&text);
	free(list);
	return 0;
}
