#include "deliver-smtp/connection/connection.h"

#include <errno.h>

#include "base/io.h"

/* One turn of the loop fills and empties it: sessions share it. */
static char slice[CONTENT_SLICE];

void
content_begin(struct content *c, const struct content_source *from)
{
	content_done(c);
	*c = (struct content){ .from = *from };
}

void
content_done(struct content *c)
{
	mime_free(&c->survey);
	mime_free(&c->conversion);
	rewrite_free(&c->rewrite);
	buf_done(&c->rewritten);
	buf_done(&c->plain);
	buf_done(&c->measured);
}

int
content_rewrite(struct content *c, const struct sender_map *map)
{
	return sender_map_is_empty(map) ? 0 : rewrite_new(map, &c->rewrite);
}

void
content_as_chunk(struct content *c, uint64_t announced)
{
	c->encode.chunk = true;
	c->announced = announced;
}

int
content_convert(struct content *c, const struct content_source *from)
{
	struct mime *survey = c->survey;

	c->survey = NULL;
	content_begin(c, from);
	c->survey = survey;
	ASSERT(survey != NULL);
	return mime_new(mime_plan(survey), &c->conversion);
}

/* The slice with the other addresses of senders. */
static int
rewrite(struct content *c, const char **data, size_t *len)
{
	int r;

	if (c->rewrite == NULL)
		return 0;
	buf_reset(&c->rewritten);
	r = rewrite_feed(c->rewrite, *data, *len, &c->rewritten);
	if (r == 0 && c->from.len == 0)
		r = rewrite_end(c->rewrite, &c->rewritten);
	*data = buf_str(&c->rewritten);
	*len = c->rewritten.len;
	return r;
}

static int
read_slice(struct content *c, const char **ret_data, size_t *ret_len)
{
	/* A slice that was converted takes no longer to be sent. */
	size_t most = sizeof(slice) / (c->conversion == NULL ? 1 : 4);
	struct content_source *from = &c->from;
	size_t want = from->len < most ? (size_t)from->len : most;
	int64_t got = (int64_t)want;

	if (from->data == NULL) {
		got = io_pread_all(from->fd, slice, want, (int64_t)from->off);
		*ret_data = slice;
		from->off += want;
	} else {
		*ret_data = from->data;
		from->data += want;
	}
	if (got < 0)
		return (int)got;
	if ((size_t)got < want)
		return -ENODATA;
	from->len -= want;
	*ret_len = want;
	return rewrite(c, ret_data, ret_len);
}

int
content_survey(struct content *c, bool whole)
{
	const char *data;
	size_t len = 0;
	int r = c->survey == NULL ? mime_new(NULL, &c->survey) : 0;

	if (r == 0)
		r = read_slice(c, &data, &len);
	if (r == 0)
		r = mime_feed(c->survey, data, len, NULL);
	if (r < 0)
		return r;
	if (c->from.len > 0)
		return !whole && mime_header_is_over(c->survey);
	r = mime_end(c->survey, NULL);
	return r < 0 ? r : 1;
}

struct dialog_survey
content_surveyed(const struct content *c)
{
	const struct mime_plan *plan = mime_plan(c->survey);

	return (struct dialog_survey){ .fault = plan->fault,
		.eight = plan->eight,
		.header = plan->header,
		.header_utf8 = plan->header_utf8 };
}

/* The slice as it is to be encoded. */
static int
convert(struct content *c, const char **data, size_t *len)
{
	int r;

	if (c->conversion == NULL)
		return 0;
	buf_reset(&c->plain);
	r = mime_feed(c->conversion, *data, *len, &c->plain);
	if (r == 0 && c->from.len == 0)
		r = mime_end(c->conversion, &c->plain);
	*data = buf_str(&c->plain);
	*len = c->plain.len;
	return r;
}

/* A length that is not the one announced would make commands of the content,
 * or content of commands. */
static int
check_length(struct content *c, size_t added)
{
	c->came += added;
	if (!c->encode.chunk || c->announced == CONTENT_UNKNOWN)
		return 0;
	return c->came > c->announced || (c->ended && c->came < c->announced)
	    ? -EBADMSG
	    : 0;
}

int
content_add(struct content *c, struct buf *out)
{
	const char *data;
	size_t len = 0, before = out->len;
	int r;

	ASSERT(!c->ended);
	r = read_slice(c, &data, &len);
	if (r == 0)
		r = convert(c, &data, &len);
	if (r == 0)
		r = buf_reserve(out, SMTP_ENCODE_MAX(len) + SMTP_ENCODE_MAX(0));
	if (r < 0)
		return r;
	out->len +=
	    smtp_encode_feed(&c->encode, data, len, out->data + out->len);
	if (c->from.len == 0) {
		out->len += smtp_encode_end(&c->encode, out->data + out->len);
		c->ended = true;
	}
	return check_length(c, out->len - before);
}

int
content_measure(struct content *c, uint64_t *ret_size)
{
	int r;

	buf_reset(&c->measured);
	r = content_add(c, &c->measured);
	if (r < 0)
		return r;
	*ret_size = c->came;
	return c->ended;
}
