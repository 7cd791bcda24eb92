#include "queue-send/pure.h"

#include <string.h>
#include <strings.h>

#define NAME "message-id"

static bool
is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r';
}

/* The value of this line, if it is the field; else NULL. */
static const char *
value_of(const char *line, const char *end)
{
	const char *p = line + sizeof(NAME) - 1;

	if ((size_t)(end - line) < sizeof(NAME) ||
	    strncasecmp(line, NAME, sizeof(NAME) - 1) != 0)
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

static void
copy_id(const char *p, const char *end, char *out, size_t size)
{
	const char *first;
	size_t len;

	p = skip_folded(p, end);
	if (p < end && *p == '<')
		p++;
	for (first = p; p < end && *p != '>' && *p != '\n' && !is_blank(*p);)
		p++;
	/* A value that ends with the buffer may be cut. */
	len = p == end ? 0 : (size_t)(p - first);
	len = len < size ? len : size - 1;
	memcpy(out, first, len);
	out[len] = '\0';
}

void
header_message_id(const char *head, size_t len, char *out, size_t size)
{
	const char *line = head, *end = head + len, *next, *value;

	*out = '\0';
	while (line < end) {
		next = memchr(line, '\n', (size_t)(end - line));
		if (next == line || (*line == '\r' && next == line + 1))
			return; /* the end of the header */
		value = value_of(line, next == NULL ? end : next);
		if (value != NULL) {
			copy_id(value, end, out, size);
			return;
		}
		if (next == NULL)
			return;
		line = next + 1;
	}
}
