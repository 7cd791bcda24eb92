#include "base/line.h"

#include <errno.h>
#include <string.h>

#include "base/text.h"

void
line_begin(struct line_cursor *c, struct buf *text, size_t max)
{
	*c = (struct line_cursor){
		.next = text->data,
		.end = text->data == NULL ? NULL : text->data + text->len,
		.max = max,
	};
}

static const char *
line_fault(const char *line, size_t len, size_t max, bool first)
{
	size_t i;

	if (first && len >= 3 && memcmp(line, "\xef\xbb\xbf", 3) == 0)
		return "byte-order mark";
	if (len > max)
		return "line too long";
	for (i = 0; i < len; i++) {
		if (line[i] == '\0')
			return "NUL";
		if (((unsigned char)line[i] < 0x20 && line[i] != '\t') ||
		    line[i] == 0x7f)
			return "control character";
	}
	return NULL;
}

int
line_next(struct line_cursor *c, char **ret_line, const char **ret_why)
{
	char *line = c->next, *newline;
	size_t len;
	const char *why;

	if (line == c->end)
		return 0;
	newline = memchr(line, '\n', (size_t)(c->end - line));
	len = (size_t)((newline == NULL ? c->end : newline) - line);
	c->next = newline == NULL ? c->end : newline + 1;
	c->number++;
	if (len > 0 && line[len - 1] == '\r')
		len--;
	why = line_fault(line, len, c->max, c->number == 1);
	if (why != NULL) {
		*ret_why = why;
		return -EINVAL;
	}
	line[len] = '\0';
	*ret_line = line;
	return 1;
}

void
line_uncomment(char *line)
{
	char *p;

	for (p = line; *p != '\0'; p++)
		if (*p == '#' && (p == line || text_is_blank(p[-1]))) {
			*p = '\0';
			return;
		}
}

char *
line_trim(char *line)
{
	size_t len;

	while (text_is_blank(*line))
		line++;
	len = strlen(line);
	while (len > 0 && text_is_blank(line[len - 1]))
		len--;
	line[len] = '\0';
	return line;
}

const char *
line_word(const char **at, struct buf *out)
{
	const char *p = *at;
	bool quoted = false;
	int r = buf_reserve(out, 0);

	for (; *p != '\0' && (quoted || !text_is_blank(*p)) && r == 0; p++) {
		if (*p == '"') {
			quoted = !quoted;
			continue;
		}
		if (quoted && *p == '\\' && (p[1] == '"' || p[1] == '\\'))
			p++;
		r = buf_add_char(out, *p);
	}
	*at = p;
	return r < 0 ? "out of memory"
	    : quoted ? "a quote is not closed"
		     : NULL;
}

char *
line_word_end(char *p, bool *ret_open)
{
	bool quoted = false;

	for (; *p != '\0' && (quoted || !text_is_blank(*p)); p++) {
		if (*p == '"')
			quoted = !quoted;
		else if (quoted && *p == '\\' && p[1] != '\0')
			p++;
	}
	*ret_open = quoted;
	return p;
}

const char *
line_words(const char *line, char **words, size_t most, size_t *ret_count)
{
	const char *why = NULL;

	*ret_count = 0;
	while (why == NULL && *(line += strspn(line, " \t")) != '\0') {
		struct buf word = { 0 };

		if (*ret_count == most)
			return "too many words";
		why = line_word(&line, &word);
		words[(*ret_count)++] = word.data;
	}
	return why;
}
