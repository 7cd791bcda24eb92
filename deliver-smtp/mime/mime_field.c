#include "deliver-smtp/mime/mime.h"

#include <string.h>
#include <strings.h>

/* A value from left to right. */
struct cursor {
	const char *at, *end;
};

static bool
is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

/* Past one comment, with those within it. */
static void
skip_comment(struct cursor *c)
{
	size_t depth = 0;

	while (c->at < c->end) {
		const char ch = *c->at++;

		if (ch == '\\' && c->at < c->end)
			c->at++;
		else if (ch == '(')
			depth++;
		else if (ch == ')' && --depth == 0)
			return;
	}
}

static void
skip_blank(struct cursor *c)
{
	while (c->at < c->end) {
		if (is_blank(*c->at))
			c->at++;
		else if (*c->at == '(')
			skip_comment(c);
		else
			return;
	}
}

/* Up to one of the characters, a blank or the end. */
static size_t
take_word(struct cursor *c, const char *ends, const char **ret_word)
{
	*ret_word = c->at;
	while (c->at < c->end && !is_blank(*c->at) && *c->at != '\0' &&
	    strchr(ends, *c->at) == NULL)
		c->at++;
	return (size_t)(c->at - *ret_word);
}

static bool
is_word(const char *word, size_t len, const char *name)
{
	return len == strlen(name) && strncasecmp(word, name, len) == 0;
}

/* The value of a parameter: its length, or more than size when it does not
 * fit. A NUL in it ends a word. */
static size_t
take_value(struct cursor *c, char *out, size_t size)
{
	size_t n = 0;
	const char *word;

	if (c->at == c->end || *c->at != '"') {
		n = take_word(c, ";", &word);
		memcpy(out, word, n < size ? n : size);
		return n;
	}
	for (c->at++; c->at < c->end && *c->at != '"'; c->at++) {
		if (*c->at == '\\' && c->at + 1 < c->end)
			c->at++;
		if (n < size)
			out[n] = *c->at;
		n++;
	}
	if (c->at < c->end)
		c->at++;
	return n;
}

static bool
boundary_is_right(const char *b, size_t len)
{
	size_t i;

	if (len == 0 || len > MIME_BOUNDARY_MAX || is_blank(b[len - 1]))
		return false;
	for (i = 0; i < len; i++)
		if (b[i] < ' ' || b[i] > '~')
			return false;
	return true;
}

/* The first one counts. */
static void
take_boundary(struct cursor *c, char boundary[MIME_BOUNDARY_MAX + 1])
{
	char value[MIME_BOUNDARY_MAX + 1];
	const char *name;
	size_t len;

	while (c->at < c->end) {
		while (c->at < c->end && *c->at != ';' && *c->at != '"')
			c->at++;
		if (c->at < c->end && *c->at == '"') {
			(void)take_value(c, value, sizeof(value));
			continue;
		}
		if (c->at == c->end)
			return;
		c->at++;
		skip_blank(c);
		len = take_word(c, "=;(\"", &name);
		skip_blank(c);
		if (!is_word(name, len, "boundary") || c->at == c->end ||
		    *c->at != '=')
			continue;
		c->at++;
		skip_blank(c);
		len = take_value(c, value, sizeof(value));
		if (boundary_is_right(value, len)) {
			memcpy(boundary, value, len);
			boundary[len] = '\0';
		}
		return;
	}
}

/* Types whose parts are looked for. RFC 2046 allows no encoding of any other
 * message type; that of message/global (RFC 6532, 6533) may be. */
static enum mime_kind
kind_of(const char *type, size_t len, const char *subtype, size_t sublen)
{
	if (is_word(type, len, "multipart"))
		return is_word(subtype, sublen, "signed") ? MIME_SIGNED
		    : is_word(subtype, sublen, "digest")  ? MIME_DIGEST
							  : MIME_MULTIPART;
	if (!is_word(type, len, "message"))
		return MIME_LEAF;
	if (is_word(subtype, sublen, "rfc822") ||
	    is_word(subtype, sublen, "news"))
		return MIME_MESSAGE;
	return sublen >= 6 && strncasecmp(subtype, "global", 6) == 0
	    ? MIME_LEAF
	    : MIME_OPAQUE;
}

void
mime_type_parse(const char *value, size_t len, struct mime_type *ret_type)
{
	struct cursor c = { value, value + len };
	const char *type, *subtype = "";
	size_t typelen, sublen = 0;

	ret_type->boundary[0] = '\0';
	skip_blank(&c);
	typelen = take_word(&c, "/;(", &type);
	skip_blank(&c);
	if (c.at < c.end && *c.at == '/') {
		c.at++;
		skip_blank(&c);
		sublen = take_word(&c, ";(", &subtype);
	}
	ret_type->kind = kind_of(type, typelen, subtype, sublen);
	take_boundary(&c, ret_type->boundary);
}

enum mime_coding
mime_coding_parse(const char *value, size_t len)
{
	static const struct {
		const char *name;
		enum mime_coding coding;
	} names[] = {
		{ "7bit", MIME_CODING_NONE },
		{ "8bit", MIME_CODING_8BIT },
		{ "binary", MIME_CODING_8BIT },
		{ "base64", MIME_CODING_DONE },
		{ "quoted-printable", MIME_CODING_DONE },
	};
	struct cursor c = { value, value + len };
	const char *word;
	size_t n, i;

	skip_blank(&c);
	n = take_word(&c, ";(", &word);
	for (i = 0; i < ARRAY_LEN(names); i++)
		if (is_word(word, n, names[i].name))
			return names[i].coding;
	return MIME_CODING_UNKNOWN;
}
