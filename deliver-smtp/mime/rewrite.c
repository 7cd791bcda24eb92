#include "deliver-smtp/mime/rewrite.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/address_list.h"

/* The most octets of a field name with the blanks behind the name. A longer
 * name is not From, Sender or Reply-To. */
#define NAME_MAX_HELD 64

/* The part of the content that the next octet belongs to. */
enum state {
	AT_LINE, /* the first octet of a line of the header */
	IN_NAME,
	AFTER_NAME, /* blanks between the name and its colon */
	IN_VALUE,
	IN_BODY,
};

struct rewrite {
	const struct sender_map *map;
	enum state state;
	bool in_field; /* a line may go on with a field */
	bool holding;  /* the field is held, and may be an author's */
	struct buf held;
	size_t value; /* in held: behind the colon; 0: not there yet */
};

/* ---- one field ---- */

static bool
is_author(const char *name, size_t len)
{
	static const char *const names[] = { "From", "Sender", "Reply-To",
		"Resent-From", "Resent-Sender", "Resent-Reply-To" };
	size_t i;

	for (i = 0; i < ARRAY_LEN(names); i++)
		if (strlen(names[i]) == len &&
		    strncasecmp(name, names[i], len) == 0)
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

/* The held field, which is whole. */
static int
put_author(struct rewrite *w, struct buf *out)
{
	const size_t before = out->len, len = w->held.len - w->value;
	struct edit e = { w->map, out, w->held.data + w->value, 0 };
	int r = buf_add(out, w->held.data, w->value);

	if (r == 0)
		r = address_list_places(e.list, len, edit_address, &e);
	if (r == 0)
		return put_until(&e, len);
	if (r == -ENOMEM)
		return r;
	out->len = before;
	return buf_add(out, w->held.data, w->held.len);
}

/* The held octets are no author's field. */
static int
release(struct rewrite *w, struct buf *out)
{
	int r = 0;

	if (w->holding)
		r = buf_add(out, w->held.data, w->held.len);
	w->holding = false;
	buf_reset(&w->held);
	return r;
}

static int
end_field(struct rewrite *w, struct buf *out)
{
	int r;

	if (!w->holding || w->value == 0)
		return release(w, out);
	r = put_author(w, out);
	w->holding = false;
	buf_reset(&w->held);
	return r;
}

/* ---- octets ---- */

/* Octets of the field. */
static int
field_take(struct rewrite *w, const char *data, size_t len, struct buf *out)
{
	const size_t most = w->value == 0 ? NAME_MAX_HELD : REWRITE_FIELD_MAX;
	int r = 0;

	if (w->holding && len > most - w->held.len)
		r = release(w, out);
	return r < 0 ? r : buf_add(w->holding ? &w->held : out, data, len);
}

static size_t
name_len(const struct rewrite *w)
{
	size_t len = w->held.len - 1; /* without the colon */

	while (len > 0 &&
	    (w->held.data[len - 1] == ' ' || w->held.data[len - 1] == '\t'))
		len--;
	return len;
}

static int
take_colon(struct rewrite *w, struct buf *out)
{
	int r = field_take(w, ":", 1, out);

	w->state = IN_VALUE;
	if (r < 0 || !w->holding)
		return r;
	if (!is_author(w->held.data, name_len(w)))
		return release(w, out);
	w->value = w->held.len;
	return 0;
}

static bool
is_name_char(char c)
{
	return c > ' ' && c < 0x7f && c != ':';
}

static int
begin_field(struct rewrite *w, char c, struct buf *out)
{
	int r = end_field(w, out);

	w->in_field = w->holding = true;
	w->value = 0;
	w->state = IN_NAME;
	return r < 0 ? r : field_take(w, &c, 1, out);
}

/* The line is none of the header. */
static int
begin_body(struct rewrite *w, char c, struct buf *out)
{
	int r = end_field(w, out);

	w->state = IN_BODY;
	return r < 0 ? r : buf_add_char(out, c);
}

static int
take_one(struct rewrite *w, char c, struct buf *out)
{
	const bool blank = c == ' ' || c == '\t';

	if (w->state == AT_LINE) {
		if (is_name_char(c))
			return begin_field(w, c, out);
		if (!blank || !w->in_field)
			return begin_body(w, c, out);
		w->state = IN_VALUE;
	} else {
		if (c == ':')
			return take_colon(w, out);
		if (blank)
			w->state = AFTER_NAME;
		else if (w->state == AFTER_NAME || !is_name_char(c))
			return begin_body(w, c, out);
	}
	return field_take(w, &c, 1, out);
}

int
rewrite_feed(struct rewrite *w, const char *data, size_t len, struct buf *out)
{
	const char *const end = data + len, *lf;
	int r = 0;

	while (r == 0 && data < end && w->state != IN_BODY) {
		if (w->state != IN_VALUE) {
			r = take_one(w, *data++, out);
			continue;
		}
		lf = memchr(data, '\n', (size_t)(end - data));
		len =
		    lf == NULL ? (size_t)(end - data) : (size_t)(lf - data) + 1;
		r = field_take(w, data, len, out);
		data += len;
		if (lf != NULL)
			w->state = AT_LINE;
	}
	return r < 0 ? r : buf_add(out, data, (size_t)(end - data));
}

int
rewrite_end(struct rewrite *w, struct buf *out)
{
	int r = end_field(w, out);

	w->state = IN_BODY;
	return r;
}

int
rewrite_new(const struct sender_map *map, struct rewrite **ret_rewrite)
{
	struct rewrite *w = calloc(1, sizeof(*w));

	if (w == NULL)
		return -ENOMEM;
	w->map = map;
	*ret_rewrite = w;
	return 0;
}

void
rewrite_free(struct rewrite **rewrite)
{
	struct rewrite *w = *rewrite;

	*rewrite = NULL;
	if (w == NULL)
		return;
	buf_done(&w->held);
	free(w);
}
