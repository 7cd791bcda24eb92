#include "queue-inject/message.h"

#include <errno.h>
#include <string.h>

/* The header ends before the line that is being read. */
static void
end_before_line(struct header *h)
{
	h->complete = true;
	h->end = h->body = h->line;
	/* No field came after the mailbox line: it was text. */
	if (h->end == h->begin)
		h->begin = h->end = h->body = 0;
}

/* The empty line was read: it is the last of data. */
static void
end_with_empty_line(struct header *h)
{
	h->end = h->line;
	if (h->end == h->begin && h->begin > 0) {
		end_before_line(h);
		return;
	}
	h->complete = true;
	h->separated = true;
	h->body = h->data.len;
}

/* The line that is being read, or what there is of it, belongs to the header.
 * What does not fit in a name is no field. */
static bool
is_header_line(const struct header *h)
{
	const size_t len = h->data.len - h->line;
	struct header_field field;
	const char *line;

	if (len == 0)
		return false;
	line = h->data.data + h->line;
	if (*line == ' ' || *line == '\t')
		return h->line > h->begin;
	return header_field_read(line, len, &field) &&
	    field.value - field.raw <= HEADER_NAME_MAX;
}

/* "From " or ">From " of a mailbox, at the begin of all. */
static bool
is_mailbox_line(const struct header *h)
{
	static const char mbox[] = ">From ";
	const char *line = h->data.data;
	const size_t quoted = *line == '>' ? 0 : 1;
	const size_t len = sizeof(mbox) - 1 - quoted;

	return h->line == 0 && h->data.len >= len &&
	    memcmp(line, mbox + quoted, len) == 0;
}

/* The line has its LF. */
static void
end_line(struct header *h)
{
	const char *line = h->data.data + h->line;
	const size_t len = h->data.len - h->line;

	if (len == 1 || (len == 2 && *line == '\r')) {
		end_with_empty_line(h);
	} else if (is_header_line(h)) {
		h->line = h->data.len;
	} else if (is_mailbox_line(h)) {
		h->begin = h->line = h->data.len;
	} else {
		end_before_line(h);
	}
}

/* Of a body that is one long line no more is held than a name may have. */
static bool
is_long_text(const struct header *h)
{
	return h->data.len - h->line > HEADER_NAME_MAX && !is_header_line(h) &&
	    !is_mailbox_line(h);
}

int
header_feed(struct header *h, const char *data, size_t len, size_t *ret_used)
{
	const char *lf;
	size_t n;
	int r = 0;

	for (*ret_used = 0; *ret_used < len && !h->complete; *ret_used += n) {
		lf = memchr(data + *ret_used, '\n', len - *ret_used);
		n = lf == NULL ? len - *ret_used
			       : (size_t)(lf - data) + 1 - *ret_used;
		if (lf == NULL && n > HEADER_NAME_MAX + 1)
			n = HEADER_NAME_MAX + 1;
		if (n > HEADER_MAX - h->data.len)
			return -EFBIG;
		r = buf_add(&h->data, data + *ret_used, n);
		if (r < 0)
			return r;
		if (h->data.data[h->data.len - 1] == '\n')
			end_line(h);
		else if (is_long_text(h))
			end_before_line(h);
	}
	return 0;
}

void
header_finish(struct header *h)
{
	if (h->complete)
		return;
	/* A value may end with the message; a name without a colon is text. */
	if (is_header_line(h))
		h->line = h->data.len;
	end_before_line(h);
}

void
header_done(struct header *h)
{
	buf_done(&h->data);
	*h = (struct header){ 0 };
}

bool
header_next(const struct header *h, size_t *pos, struct header_field *ret_field)
{
	const size_t at = *pos < h->begin ? h->begin : *pos;

	if (!h->complete || at >= h->end ||
	    !header_field_read(h->data.data + at, h->end - at, ret_field))
		return false;
	*pos = at + ret_field->raw_len;
	return true;
}
