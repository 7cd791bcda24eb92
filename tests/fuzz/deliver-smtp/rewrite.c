/* Other addresses of senders in a header: the output is the same when the
 * header is written in two parts; without the fields of authors both are equal,
 * and of an author's field the words between addresses stay. */
#include "tests/fuzz/fuzz.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/address_list.h"
#include "deliver-smtp/mime/rewrite.h"

static struct sender_map *
the_map(void)
{
	static const char rows[] = "a@b x@y.z\n@c @long.example\nq+r@b w@y.z\n"
				   "@\xc3\xbc u@v\n";
	static struct sender_map *map;
	struct buf error = { 0 };

	if (map == NULL) {
		fuzz_file("rewrites", rows, strlen(rows));
		MUST(sender_map_load(fuzz_path("rewrites"),
			 &sender_rewrite_kind, &map, &error) == 0);
	}
	return map;
}

static void
run(const char *data, size_t len, struct buf *out)
{
	char *copy = malloc(len + 1);
	size_t used = 0;

	MUST(copy != NULL);
	memcpy(copy, data, len);
	MUST(rewrite_header(the_map(), copy, len, false, out, &used) == 0);
	MUST(used <= len && buf_add(out, copy + used, len - used) == 0);
	free(copy);
}

/* What is left of a part of the content stays as it is. */
static void
run_part(const char *data, size_t len, size_t part, struct buf *out)
{
	size_t used = 0;

	part = part < len ? part : len;
	MUST(rewrite_header(the_map(), data, part, true, out, &used) == 0);
	MUST(used <= part);
	run(data + used, len - used, out);
}

struct read {
	struct buf between, addresses;
	const char *list;
	size_t at;
	bool other; /* put the other address */
};

static int
note(void *arg, const struct address_place *place)
{
	struct read *rd = arg;
	char other[ADDRESS_MAX + 1];

	if (place->address == NULL)
		return 0;
	MUST(place->local >= rd->at && place->local < place->local_end);
	MUST(place->local_end < place->domain);
	MUST(place->domain < place->domain_end);
	MUST(buf_add(&rd->between, rd->list + rd->at, place->local - rd->at) ==
	    0);
	MUST(buf_add(&rd->between, rd->list + place->local_end,
		 place->domain - place->local_end) == 0);
	rd->at = place->domain_end;
	MUST(buf_printf(&rd->addresses, "%s\n",
		 rd->other &&
			 sender_rewrite(the_map(), place->address, other) == 1
		     ? other
		     : place->address) == 0);
	return 0;
}

static int
read_list(const char *list, size_t len, bool other, struct read *rd)
{
	int r;

	*rd = (struct read){ .list = list, .other = other };
	r = address_list_places(list, len, note, rd);
	if (r == 0)
		MUST(buf_add(&rd->between, list + rd->at, len - rd->at) == 0);
	return r;
}

static void
read_done(struct read *rd)
{
	buf_done(&rd->between);
	buf_done(&rd->addresses);
}

static bool
is_same(const struct buf *a, const struct buf *b)
{
	return a->len == b->len && memcmp(buf_str(a), buf_str(b), a->len) == 0;
}

/* The text is the value of a field that is alone. */
static void
check_value(const char *text, size_t len)
{
	struct buf in = { 0 }, out = { 0 };
	struct read before, after;
	size_t i;

	for (i = 0; i + 1 < len; i++)
		if (text[i] == '\n' && text[i + 1] != ' ' &&
		    text[i + 1] != '\t')
			return;
	MUST(buf_add_str(&in, "From:") == 0 && buf_add(&in, text, len) == 0);
	run(in.data, in.len, &out);
	MUST(out.len >= 5 && memcmp(out.data, "From:", 5) == 0);
	if (read_list(in.data + 5, len, true, &before) == 0 &&
	    in.len <= REWRITE_FIELD_MAX) {
		MUST(read_list(out.data + 5, out.len - 5, false, &after) == 0);
		MUST(is_same(&before.between, &after.between));
		MUST(is_same(&before.addresses, &after.addresses));
		read_done(&after);
	} else {
		MUST(is_same(&in, &out));
	}
	read_done(&before);
	buf_done(&in);
	buf_done(&out);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_in in = { data, size };
	const size_t part = fuzz_number(&in, 1);
	struct buf whole = { 0 }, parts = { 0 };
	size_t len;
	char *text = fuzz_rest(&in, &len);

	run(text, len, &whole);
	run_part(text, len, part, &parts);
	MUST(is_same(&whole, &parts));
	check_value(text, len);
	free(text);
	buf_done(&whole);
	buf_done(&parts);
	return 0;
}
