#include "base/buf.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void
buf_note(struct buf *b, int r)
{
	if (r < 0 && b->error == 0)
		b->error = r;
}

static int
fail(struct buf *b, int error)
{
	buf_note(b, error);
	return error;
}

int
buf_reserve(struct buf *b, size_t more)
{
	size_t want, cap;
	char *data;

	if (__builtin_add_overflow(b->len, more, &want) ||
	    __builtin_add_overflow(want, 1, &want))
		return fail(b, -ENOMEM);
	if (want <= b->cap)
		return 0;
	cap = b->cap > SIZE_MAX / 2 ? want : b->cap * 2;
	if (cap < want)
		cap = want;
	if (cap < 64)
		cap = 64;
	data = realloc(b->data, cap);
	if (data == NULL)
		return fail(b, -ENOMEM);
	b->data = data;
	b->cap = cap;
	b->data[b->len] = '\0';
	return 0;
}

int
buf_add(struct buf *b, const void *data, size_t len)
{
	int r = buf_reserve(b, len);

	if (r < 0)
		return r;
	if (len > 0)
		memcpy(b->data + b->len, data, len);
	b->len += len;
	b->data[b->len] = '\0';
	return 0;
}

int
buf_add_str(struct buf *b, const char *s)
{
	return buf_add(b, s, strlen(s));
}

int
buf_add_char(struct buf *b, char c)
{
	return buf_add(b, &c, 1);
}

int
buf_vprintf(struct buf *b, const char *fmt, va_list ap)
{
	va_list again;
	int n, r;

	va_copy(again, ap);
	n = vsnprintf(NULL, 0, fmt, again);
	va_end(again);
	if (n < 0)
		return fail(b, -EINVAL);
	r = buf_reserve(b, (size_t)n);
	if (r < 0)
		return r;
	vsnprintf(b->data + b->len, (size_t)n + 1, fmt, ap);
	b->len += (size_t)n;
	return 0;
}

int
buf_printf(struct buf *b, const char *fmt, ...)
{
	va_list ap;
	int r;

	va_start(ap, fmt);
	r = buf_vprintf(b, fmt, ap);
	va_end(ap);
	return r;
}

const char *
buf_str(const struct buf *b)
{
	return b->data == NULL ? "" : b->data;
}

void
buf_reset(struct buf *b)
{
	b->len = 0;
	b->error = 0;
	if (b->data != NULL)
		b->data[0] = '\0';
}

void
buf_done(struct buf *b)
{
	free(b->data);
	*b = (struct buf){ 0 };
}

void
buf_wipe(struct buf *b)
{
	if (b->data != NULL)
		explicit_bzero(b->data, b->cap);
	buf_done(b);
}

int
buf_add_quoted(struct buf *b, const char *s, size_t len)
{
	int r = buf_add_char(b, '"');
	size_t i;

	for (i = 0; i < len && r == 0; i++) {
		if (s[i] == '"' || s[i] == '\\')
			r = buf_add_char(b, '\\');
		if (r == 0)
			r = buf_add_char(b, s[i]);
	}
	return r < 0 ? r : buf_add_char(b, '"');
}
