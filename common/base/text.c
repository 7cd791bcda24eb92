#include "base/text.h"

#include <string.h>
#include <unictype.h>
#include <unistr.h>

/* Characters that a reader does not see, or that move others: controls, format
 * characters (bidirectional, zero width, tags), separators of lines and
 * paragraphs, private use, surrogates, and code points without a character. */
#define HIDDEN (UC_CATEGORY_MASK_C | UC_CATEGORY_MASK_Zl | UC_CATEGORY_MASK_Zp)

/* The length of the character at s; 0: no valid UTF-8 (RFC 3629), or a control
 * character, C1 included, which moves terminals too. */
static size_t
utf8_len(const unsigned char *s, size_t left, ucs4_t *ret_code)
{
	const int n = u8_mbtoucr(ret_code, s, left);

	return n <= 0 ||
		uc_is_general_category_withtable(*ret_code, UC_CATEGORY_MASK_Cc)
	    ? 0
	    : (size_t)n;
}

static size_t
plain_len(const unsigned char *s, size_t left)
{
	ucs4_t code;

	return utf8_len(s, left, &code);
}

/* The length of the character at s, if a reader sees it; else 0. */
static size_t
shown_len(const unsigned char *s, size_t left)
{
	ucs4_t code;
	const size_t n = utf8_len(s, left, &code);

	return n > 1 &&
		(uc_is_general_category_withtable(code, HIDDEN) ||
		    uc_is_property_default_ignorable_code_point(code))
	    ? 0
	    : n;
}

bool
text_is_utf8(const char *s, size_t len)
{
	const unsigned char *p = (const unsigned char *)s;
	size_t i, n;

	for (i = 0; i < len; i += n) {
		n = plain_len(p + i, len - i);
		if (n == 0)
			return false;
	}
	return true;
}

/* How many bytes from s on are ASCII to be shown: nearly all that comes. */
static size_t
ascii_len(const unsigned char *s, size_t len)
{
	size_t n = 0;

	while (n < len && s[n] >= 0x20 && s[n] < 0x7f)
		n++;
	return n;
}

static int
clean(struct buf *out, const char *s, size_t len, size_t max,
    size_t (*len_of)(const unsigned char *s, size_t left))
{
	const unsigned char *p = (const unsigned char *)s;
	size_t i, step;
	int r;

	/* As many bytes are added as are taken. */
	for (i = 0; i < len; i += step) {
		const char *shown = s + i;

		step = ascii_len(p + i, (len < max ? len : max) - i);
		if (step == 0)
			step = len_of(p + i, len - i);
		if (step == 0) {
			shown = "?";
			step = 1;
		}
		if (i + step > max)
			break;
		r = buf_add(out, shown, step);
		if (r < 0)
			return r;
	}
	return 0;
}

int
text_clean(struct buf *out, const char *s, size_t len, size_t max)
{
	return clean(out, s, len, max, shown_len);
}

int
text_to_utf8(struct buf *out, const char *s, size_t len, size_t max)
{
	return clean(out, s, len, max, plain_len);
}

static int
quote(struct buf *out, char open, const char *s, char close)
{
	const size_t len = strnlen(s, TEXT_QUOTE_MAX + 1);
	int r = buf_add_char(out, open);

	if (r == 0)
		r = text_clean(out, s, len, TEXT_QUOTE_MAX);
	if (r == 0 && len > TEXT_QUOTE_MAX)
		r = buf_add_str(out, "...");
	return r < 0 ? r : buf_add_char(out, close);
}

int
text_quote(struct buf *out, const char *s)
{
	return quote(out, '`', s, '\'');
}

int
text_complain(struct buf *out, const char *s, const char *why)
{
	const bool verb = strncmp(why, "is ", 3) == 0;
	int r = quote(out, '"', s, '"');

	return r < 0 ? r : buf_printf(out, verb ? " %s" : ": %s", why);
}

const char *
text_next_word(const char **rest, size_t *ret_len)
{
	static const char between[] = " \t,";
	const char *word = *rest + strspn(*rest, between);

	*ret_len = strcspn(word, between);
	*rest = word + *ret_len;
	return *ret_len == 0 ? NULL : word;
}

static char
lower(char c)
{
	return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

/* The start of the character that the byte at s + at is part of. */
static size_t
char_start(const char *s, size_t at)
{
	while (at > 0 && ((unsigned char)s[at] & 0xc0) == 0x80)
		at--;
	return at;
}

int
text_shorten(struct buf *out, const char *s, size_t max)
{
	const size_t len = strlen(s);
	size_t head, tail;
	int r;

	ASSERT(max >= 8);
	if (len <= max)
		return buf_add(out, s, len);
	head = char_start(s, (max - 3) / 3);
	tail = len - (max - 3 - head);
	while (tail < len && ((unsigned char)s[tail] & 0xc0) == 0x80)
		tail++;
	r = buf_add(out, s, head);
	if (r == 0)
		r = buf_add_str(out, "...");
	return r < 0 ? r : buf_add_str(out, s + tail);
}

int
text_cut(struct buf *out, const char *s, size_t max)
{
	const size_t len = strlen(s);
	size_t end, word;
	int r;

	ASSERT(max >= 8);
	if (len <= max)
		return buf_add(out, s, len);
	end = word = char_start(s, max - 3);
	while (word > end / 2 && s[word] != ' ')
		word--;
	if (s[word] == ' ')
		end = word;
	r = buf_add(out, s, end);
	return r < 0 ? r : buf_add_str(out, "...");
}

/* Goes back to the last `*` alone, so time is the product of the lengths. */
bool
text_matches(const char *pattern, const char *text)
{
	const char *star = NULL, *resume = NULL;

	while (*text != '\0') {
		if (*pattern == '*') {
			star = ++pattern;
			resume = text;
		} else if (lower(*pattern) == lower(*text)) {
			pattern++;
			text++;
		} else if (star != NULL) {
			pattern = star;
			text = ++resume;
		} else
			return false;
	}
	while (*pattern == '*')
		pattern++;
	return *pattern == '\0';
}
