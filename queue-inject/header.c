#include "queue-inject/message.h"

#include <errno.h>
#include <string.h>
#include <strings.h>

/* The part of the header that the next byte belongs to. */
enum state {
	AT_LINE,    /* the first byte of a line */
	IN_NAME,    /* of a field name */
	AFTER_NAME, /* blanks between the name and its colon */
	AT_CR,      /* a CR began the line: an empty line if LF follows */
	IN_VALUE,
	IN_MBOX, /* the first line, "From …" */
};

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

static bool
is_name_char(unsigned char c)
{
	return c > 0x20 && c < 0x7f && c != ':';
}

/* A line whose beginning is no field: "From " of a mailbox, or body. */
static void
not_a_field(struct header *h)
{
	static const char mbox[] = ">From ";
	size_t quoted = h->data.data[0] == '>' ? 0 : 1;

	if (h->line == 0 && h->data.len >= sizeof(mbox) - 1 - quoted &&
	    memcmp(h->data.data, mbox + quoted, sizeof(mbox) - 1 - quoted) == 0)
		h->state = IN_MBOX;
	else
		end_before_line(h);
}

static void
step_line(struct header *h, unsigned char c)
{
	bool blank = c == ' ' || c == '\t';

	h->line = h->data.len - 1;
	if (c == '\n')
		end_with_empty_line(h);
	else if (c == '\r')
		h->state = AT_CR;
	else if (blank && h->line > h->begin)
		h->state = IN_VALUE;
	else if (is_name_char(c))
		h->state = IN_NAME;
	else
		end_before_line(h);
}

static void
step_name(struct header *h, unsigned char c)
{
	if (c == ':')
		h->state = IN_VALUE;
	else if (c == ' ' || c == '\t')
		h->state = AFTER_NAME;
	else if (!is_name_char(c) || h->data.len - h->line > HEADER_NAME_MAX)
		end_before_line(h);
}

static void
step_after_name(struct header *h, unsigned char c)
{
	if (c == ':')
		h->state = IN_VALUE;
	else if ((c != ' ' && c != '\t') ||
	    h->data.len - h->line > HEADER_NAME_MAX)
		not_a_field(h);
	/* The byte that told may be the end of the line. */
	if (h->state == IN_MBOX && c == '\n') {
		h->begin = h->data.len;
		h->state = AT_LINE;
	}
}

static void
step_cr(struct header *h, unsigned char c)
{
	if (c == '\n')
		end_with_empty_line(h);
	else
		end_before_line(h);
}

/* By state; the two that are not here take whole lines. */
static void (*const steps[])(struct header *h, unsigned char c) = {
	[AT_LINE] = step_line,
	[IN_NAME] = step_name,
	[AFTER_NAME] = step_after_name,
	[AT_CR] = step_cr,
};

/* In a value or a mailbox line everything up to the LF goes by in one go. */
static int
take_rest_of_line(
    struct header *h, const char *data, size_t len, size_t *ret_used)
{
	const char *lf = memchr(data, '\n', len);
	size_t n = lf == NULL ? len : (size_t)(lf - data) + 1;
	int r;

	if (n > HEADER_MAX - h->data.len)
		return -EFBIG;
	r = buf_add(&h->data, data, n);
	if (r < 0)
		return r;
	if (lf != NULL && h->state == IN_MBOX)
		h->begin = h->data.len;
	if (lf != NULL) {
		h->line = h->data.len;
		h->state = AT_LINE;
	}
	*ret_used = n;
	return 0;
}

static int
take_one(struct header *h, const char *data, size_t *ret_used)
{
	int r;

	if (h->data.len >= HEADER_MAX)
		return -EFBIG;
	r = buf_add(&h->data, data, 1);
	if (r < 0)
		return r;
	steps[h->state](h, (unsigned char)*data);
	*ret_used = 1;
	return 0;
}

int
header_feed(struct header *h, const char *data, size_t len, size_t *ret_used)
{
	size_t used = 0, n = 0;
	int r = 0;

	while (used < len && !h->complete && r == 0) {
		if (h->state == IN_VALUE || h->state == IN_MBOX)
			r = take_rest_of_line(h, data + used, len - used, &n);
		else
			r = take_one(h, data + used, &n);
		if (r == 0)
			used += n;
	}
	*ret_used = used;
	return r;
}

void
header_finish(struct header *h)
{
	if (h->complete)
		return;
	/* A value may end with the message; a name without a colon is text. */
	if (h->state == IN_VALUE || h->state == AT_LINE)
		h->line = h->data.len;
	if (h->state == IN_MBOX)
		h->line = h->begin;
	end_before_line(h);
}

void
header_done(struct header *h)
{
	buf_done(&h->data);
	*h = (struct header){ 0 };
}

/* The end of the field that begins at p: a line end that no blank follows. */
static const char *
field_end(const char *p, const char *end)
{
	while (p < end) {
		const char *lf = memchr(p, '\n', (size_t)(end - p));

		if (lf == NULL || lf + 1 == end)
			return end;
		p = lf + 1;
		if (*p != ' ' && *p != '\t')
			return p;
	}
	return end;
}

bool
header_next(const struct header *h, size_t *pos, struct header_field *ret_field)
{
	size_t at = *pos < h->begin ? h->begin : *pos;
	const char *p, *end, *colon;

	if (!h->complete || at >= h->end)
		return false;
	p = h->data.data + at;
	end = field_end(p, h->data.data + h->end);
	colon = memchr(p, ':', (size_t)(end - p));
	ASSERT(colon != NULL);
	*ret_field = (struct header_field){
		.name = p,
		.name_len = (size_t)(colon - p),
		.value = colon + 1,
		.value_len = (size_t)(end - colon - 1),
		.raw = p,
		.raw_len = (size_t)(end - p),
	};
	while (ret_field->name_len > 0 &&
	    (p[ret_field->name_len - 1] == ' ' ||
		p[ret_field->name_len - 1] == '\t'))
		ret_field->name_len--;
	*pos = at + ret_field->raw_len;
	return true;
}

bool
header_field_is(const struct header_field *field, const char *name)
{
	return strlen(name) == field->name_len &&
	    strncasecmp(name, field->name, field->name_len) == 0;
}

const char *
header_eol(const struct header *h)
{
	const char *lf;

	if (h->data.len == 0)
		return "\n";
	lf = memchr(h->data.data, '\n', h->data.len);
	return lf != NULL && lf > h->data.data && lf[-1] == '\r' ? "\r\n"
								 : "\n";
}
