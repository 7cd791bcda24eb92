#include "deliver-smtp/connection/connection.h"

#include <errno.h>
#include <stdlib.h>

#include "base/io.h"

#define HEADER_STEP 16384

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
	buf_done(&c->header);
	buf_done(&c->plain);
	buf_done(&c->measured);
}

/* The next octets, at most len, which the content has. They lie in memory, or
 * are read into room. */
static int
read_source(
    struct content_source *from, char *room, size_t len, const char **ret_data)
{
	int64_t got = (int64_t)len;

	*ret_data = from->data;
	if (from->data == NULL) {
		got = io_pread_all(from->fd, room, len, (int64_t)from->off);
		*ret_data = room;
	}
	return got < 0 ? (int)got : (size_t)got < len ? -ENODATA : 0;
}

static void
skip_source(struct content_source *from, size_t len)
{
	if (from->data != NULL)
		from->data += len;
	from->off += len;
	from->len -= len;
}

/* The content, with its header or as much of it as is rewritten. In steps: a
 * read may wait for the disk. */
static int
read_header(const struct content *c, char *room, size_t most,
    const char **ret_data, size_t *ret_len)
{
	struct content_source from = c->from;
	size_t step;
	int r = 0;

	*ret_data = from.data != NULL ? from.data : room;
	for (*ret_len = 0; r == 0 && *ret_len < most &&
	     !rewrite_header_is_over(*ret_data, *ret_len);
	     *ret_len += step) {
		const char *data;

		step = most - *ret_len < HEADER_STEP ? most - *ret_len
						     : HEADER_STEP;
		r = read_source(&from, room + *ret_len, step, &data);
		skip_source(&from, step);
	}
	return r;
}

int
content_rewrite(struct content *c, const struct sender_map *map)
{
	const size_t most = c->from.len < REWRITE_HEADER_MAX
	    ? (size_t)c->from.len
	    : REWRITE_HEADER_MAX;
	const char *data;
	size_t len, used = 0;
	char *room;
	int r;

	if (sender_map_is_empty(map))
		return 0;
	room = malloc(most + 1);
	r = room == NULL ? -ENOMEM : read_header(c, room, most, &data, &len);
	if (r == 0)
		r = rewrite_header(
		    map, data, len, len < c->from.len, &c->header, &used);
	skip_source(&c->from, used);
	free(room);
	return r;
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

/* Octets that are not read yet. */
static uint64_t
left(const struct content *c)
{
	return c->from.len + c->header.len - c->header_at;
}

static int
read_slice(struct content *c, const char **ret_data, size_t *ret_len)
{
	/* A slice that was converted takes no longer to be sent. */
	const size_t most = sizeof(slice) / (c->conversion == NULL ? 1 : 4);
	const uint64_t there = c->header_at < c->header.len
	    ? c->header.len - c->header_at
	    : c->from.len;
	const size_t want = there < most ? (size_t)there : most;
	int r;

	*ret_len = want;
	if (c->header_at < c->header.len) {
		*ret_data = c->header.data + c->header_at;
		c->header_at += want;
		return 0;
	}
	r = read_source(&c->from, slice, want, ret_data);
	skip_source(&c->from, want);
	return r;
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
	if (left(c) > 0)
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
	if (r == 0 && left(c) == 0)
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
	if (left(c) == 0) {
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
