#include "base/header.h"

#include <string.h>
#include <strings.h>

static bool
is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r';
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
header_field_read(const char *text, size_t len, struct header_field *ret_field)
{
	const char *end = text + len, *p = text, *colon;

	while (p<end && * p> ' ' && *p < 0x7f && *p != ':')
		p++;
	for (colon = p; colon < end && (*colon == ' ' || *colon == '\t');)
		colon++;
	if (p == text || colon == end || *colon != ':')
		return false;
	end = field_end(text, end);
	*ret_field = (struct header_field){
		.name = text,
		.name_len = (size_t)(p - text),
		.value = colon + 1,
		.value_len = (size_t)(end - colon - 1),
		.raw = text,
		.raw_len = (size_t)(end - text),
	};
	return true;
}

bool
header_field_is(const struct header_field *field, const char *name)
{
	return strlen(name) == field->name_len &&
	    strncasecmp(name, field->name, field->name_len) == 0;
}

/* The value of this line, if it is the field; else NULL. */
static const char *
value_of(const char *line, const char *end, const char *name)
{
	const size_t len = strlen(name);
	const char *p = line + len;

	if ((size_t)(end - line) <= len || strncasecmp(line, name, len) != 0)
		return NULL;
	while (p < end && is_blank(*p))
		p++;
	return p < end && *p == ':' ? p + 1 : NULL;
}

/* Blanks, and line ends that the field goes on behind. */
static const char *
skip_folded(const char *p, const char *end)
{
	while (p < end &&
	    (is_blank(*p) ||
		(*p == '\n' && p + 1 < end && is_blank(p[1]) && p[1] != '\r')))
		p++;
	return p;
}

/* Is there a fold between two places? */
static bool
has_fold(const char *p, const char *behind)
{
	return memchr(p, '\n', (size_t)(behind - p)) != NULL;
}

/* Folds within brackets are left out, with their blanks: an id has none. */
static void
copy_id(const char *p, const char *end, char *out, size_t size)
{
	size_t len = 0;
	bool bracket;

	bracket = p < end && *p == '<';
	if (bracket)
		p++;
	for (; p < end && *p != '>'; p++) {
		if (*p == '\n' || is_blank(*p)) {
			const char *behind = skip_folded(p, end);

			if (!bracket || !has_fold(p, behind))
				break;
			p = behind - 1;
		} else if (len < size - 1) {
			out[len++] = *p;
		}
	}
	/* A value that ends with the buffer may be cut. */
	out[p == end ? 0 : len] = '\0';
}

/* The line behind this one; NULL: the header ends. */
static const char *
next_line(const char *line, const char *end)
{
	const char *next = memchr(line, '\n', (size_t)(end - line));

	if (next == NULL || next + 1 == end || next[1] == '\n' ||
	    (next[1] == '\r' && next + 2 < end && next[2] == '\n'))
		return NULL;
	return next + 1;
}

/* The first line, unless it ends the header. */
static const char *
first_line(const char *head, size_t len)
{
	const bool ends = len == 0 || head[0] == '\n' ||
	    (len > 1 && head[0] == '\r' && head[1] == '\n');

	return ends ? NULL : head;
}

const char *
header_find(const char *head, size_t len, const char *name, const char *after)
{
	const char *end = head + len, *stop, *value;
	const char *line =
	    after == NULL ? first_line(head, len) : next_line(after, end);

	for (; line != NULL; line = next_line(line, end)) {
		stop = memchr(line, '\n', (size_t)(end - line));
		value = value_of(line, stop == NULL ? end : stop, name);
		if (value != NULL)
			return skip_folded(value, end);
	}
	return NULL;
}

void
header_message_id(const char *head, size_t len, char *out, size_t size)
{
	const char *value = header_find(head, len, "message-id", NULL);

	*out = '\0';
	if (value != NULL)
		copy_id(value, head + len, out, size);
}

/* Is the first word of the value one of these? */
static bool
begins_with(
    const char *value, const char *end, const char *const *words, size_t n)
{
	size_t i, len = 0;

	value = skip_folded(value, end);
	while (value + len < end && value[len] != ';' && value[len] != '(' &&
	    value[len] != '\n' && !is_blank(value[len]))
		len++;
	for (i = 0; i < n; i++)
		if (len == strlen(words[i]) &&
		    strncasecmp(value, words[i], len) == 0)
			return true;
	return false;
}

static bool
is_automatic_field(const char *line, const char *stop, const char *end)
{
	static const char *const by_people[] = { "no" };
	static const char *const bulk[] = { "bulk", "list", "junk" };
	const char *value;

	if (stop - line > 5 && strncasecmp(line, "list-", 5) == 0)
		return memchr(line, ':', (size_t)(stop - line)) != NULL;
	value = value_of(line, stop, "auto-submitted");
	if (value != NULL)
		return !begins_with(
		    value, end, by_people, ARRAY_LEN(by_people));
	value = value_of(line, stop, "precedence");
	return value != NULL && begins_with(value, end, bulk, ARRAY_LEN(bulk));
}

bool
header_is_automatic(const char *head, size_t len)
{
	const char *line = first_line(head, len), *end = head + len, *stop;

	for (; line != NULL; line = next_line(line, end)) {
		stop = memchr(line, '\n', (size_t)(end - line));
		if (is_automatic_field(line, stop == NULL ? end : stop, end))
			return true;
	}
	return false;
}

/* One octet of a line that is not skipped. */
static void
hops_step(struct header_hops *h, char c)
{
	static const char name[] = "received";
	const size_t len = sizeof(name) - 1;

	if (c == '\n') {
		h->ended = h->matched == 0;
		h->matched = 0;
		h->cr = false;
	} else if (h->matched < len && !h->cr &&
	    (c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c) == name[h->matched]) {
		h->matched++;
	} else if (h->matched == 0 && c == '\r' && !h->cr) {
		h->cr = true;
	} else if (h->matched < len || !is_blank(c)) {
		h->count += h->matched == len && c == ':';
		h->skips = true;
	}
}

void
header_hops_add(struct header_hops *h, const char *data, size_t len)
{
	const char *end = data + len;

	while (data < end && !h->ended) {
		if (!h->skips) {
			hops_step(h, *data++);
			continue;
		}
		data = memchr(data, '\n', (size_t)(end - data));
		if (data == NULL)
			return;
		data++;
		h->skips = h->cr = false;
		h->matched = 0;
	}
}

const char *
header_line_end(const char *data, size_t len)
{
	const char *lf = len == 0 ? NULL : memchr(data, '\n', len);

	return lf != NULL && lf > data && lf[-1] == '\r' ? "\r\n" : "\n";
}
