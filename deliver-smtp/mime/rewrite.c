#include "deliver-smtp/mime/rewrite.h"

#include <errno.h>
#include <string.h>

#include "base/address_list.h"
#include "base/header.h"

static bool
is_author(const struct header_field *field)
{
	static const char *const names[] = { "From", "Sender", "Reply-To",
		"Resent-From", "Resent-Sender", "Resent-Reply-To" };
	size_t i;

	for (i = 0; i < ARRAY_LEN(names); i++)
		if (header_field_is(field, names[i]))
			return true;
	return false;
}

struct edit {
	const struct sender_map *map;
	struct buf *out;
	const char *list;
	size_t at; /* in list: everything before is in out */
};

static int
put_until(struct edit *e, size_t place)
{
	int r = buf_add(e->out, e->list + e->at, place - e->at);

	e->at = place;
	return r;
}

static int
edit_address(void *arg, const struct address_place *place)
{
	struct edit *e = arg;
	struct sender_row row;
	size_t local;
	int r;

	r = place->address == NULL
	    ? 0
	    : sender_map_find(e->map, place->address, &row);
	if (r <= 0)
		return r;
	local = address_local_len(row.value);
	if (local > 0) {
		r = put_until(e, place->local);
		if (r == 0)
			r = buf_add(e->out, row.value, local);
		e->at = place->local_end;
	} else
		r = 0;
	if (r == 0)
		r = put_until(e, place->domain);
	e->at = place->domain_end;
	return r < 0 ? r : buf_add_str(e->out, row.value + local + 1);
}

/* A malformed field stays. */
static int
put_author(const struct sender_map *map, const struct header_field *field,
    struct buf *out)
{
	const size_t before = out->len;
	struct edit e = { map, out, field->value, 0 };
	int r = buf_add(out, field->raw, (size_t)(field->value - field->raw));

	if (r == 0)
		r = address_list_places(
		    field->value, field->value_len, edit_address, &e);
	if (r == 0)
		return put_until(&e, field->value_len);
	if (r == -ENOMEM)
		return r;
	out->len = before;
	return buf_add(out, field->raw, field->raw_len);
}

bool
rewrite_header_is_over(const char *data, size_t len)
{
	struct header_field field;
	size_t at = 0;

	while (header_field_read(data + at, len - at, &field))
		at += field.raw_len;
	/* A name that is cut may become one of a field. */
	return memchr(data + at, '\n', len - at) != NULL;
}

int
rewrite_header(const struct sender_map *map, const char *data, size_t len,
    bool more, struct buf *out, size_t *ret_used)
{
	struct header_field field;
	size_t at = 0;
	int r = 0;

	for (; r == 0 && header_field_read(data + at, len - at, &field);
	     at += field.raw_len) {
		if (more && at + field.raw_len == len)
			break;
		r = is_author(&field) && field.raw_len <= REWRITE_FIELD_MAX
		    ? put_author(map, &field, out)
		    : buf_add(out, field.raw, field.raw_len);
	}
	*ret_used = at;
	return r;
}
