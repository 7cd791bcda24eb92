#include "base/text.h"

#include <string.h>

/* The length of the valid UTF-8 sequence at s, 0 for none (RFC 3629). */
static size_t
utf8_len(const unsigned char *s, size_t left)
{
	size_t n = s[0] < 0x80 ? 1
	    : s[0] < 0xc2      ? 0
	    : s[0] < 0xe0      ? 2
	    : s[0] < 0xf0      ? 3
	    : s[0] < 0xf5      ? 4
			       : 0;
	size_t i;

	if (n == 0 || n > left)
		return 0;
	for (i = 1; i < n; i++)
		if ((s[i] & 0xc0) != 0x80)
			return 0;
	if ((s[0] == 0xe0 && s[1] < 0xa0) || (s[0] == 0xed && s[1] > 0x9f) ||
	    (s[0] == 0xf0 && s[1] < 0x90) || (s[0] == 0xf4 && s[1] > 0x8f))
		return 0;
	/* C1 controls, U+0080 to U+009F, move terminals too. */
	if (s[0] == 0xc2 && s[1] < 0xa0)
		return 0;
	return n;
}

int
text_clean(struct buf *out, const char *s, size_t len, size_t max)
{
	const unsigned char *p = (const unsigned char *)s;
	size_t i = 0, used = 0;

	while (i < len) {
		size_t n = utf8_len(p + i, len - i);
		bool bad = n == 0 || p[i] < 0x20 || p[i] == 0x7f;
		size_t step = n == 0 ? 1 : n;
		size_t add = bad ? 1 : n;
		int r;

		if (used + add > max)
			break;
		r = buf_add(out, bad ? "?" : s + i, add);
		if (r < 0)
			return r;
		used += add;
		i += step;
	}
	return 0;
}

int
text_quote(struct buf *out, const char *s)
{
	const size_t len = strnlen(s, TEXT_QUOTE_MAX + 1);
	int r = buf_add_char(out, '`');

	if (r == 0)
		r = text_clean(out, s, len, TEXT_QUOTE_MAX);
	if (r == 0)
		r = buf_add_str(out, len > TEXT_QUOTE_MAX ? "...'" : "'");
	return r;
}
