/* Values that are one of a list of words: kept as the word, or as its place. */
#include "config/param.h"

#include <errno.h>
#include <string.h>

#include "base/text.h"

/* Write the value as the list would have it. A value of several words has
 * commas between them in the list, and commas or blanks where it is set. */
static int
join_words(const struct param *p, const char *value, struct buf *joined)
{
	const char *w;
	size_t n;
	int r = 0;

	if (strchr(p->min, ',') == NULL)
		return buf_add_str(joined, value);
	while (r == 0 && (w = text_next_word(&value, &n)) != NULL)
		r = buf_printf(
		    joined, "%s%.*s", joined->len > 0 ? "," : "", (int)n, w);
	return r;
}

/* The place of value in the list of words. */
static int
find_word(const struct param *p, const char *value, struct buf *why)
{
	struct buf joined = { 0 };
	const char *w;
	size_t n;
	int r = join_words(p, value, &joined), place = 0;

	for (w = p->min; r == 0 && *w != '\0'; w += n + (w[n] == ' ')) {
		n = strcspn(w, " ");
		if (n == joined.len && memcmp(w, buf_str(&joined), n) == 0)
			break;
		place++;
	}
	buf_done(&joined);
	if (r == 0 && *w == '\0')
		r = buf_printf(why, "must be one of: %s", p->min) < 0 ? -ENOMEM
								      : -EINVAL;
	return r < 0 ? r : place;
}

int
word_parse(
    const struct param *p, void *field, const char *value, struct buf *why)
{
	int r = find_word(p, value, why);

	return r < 0 ? r : param_store_text(field, value);
}

int
choice_parse(
    const struct param *p, void *field, const char *value, struct buf *why)
{
	int r = find_word(p, value, why);

	if (r < 0)
		return r;
	*(uint32_t *)field = (uint32_t)r;
	return 0;
}

int
choice_format(const struct param *p, const void *field, struct buf *out)
{
	uint32_t place = *(const uint32_t *)field;
	const char *w = p->min;

	while (place-- > 0)
		w += strcspn(w, " ") + 1;
	return buf_add(out, w, strcspn(w, " "));
}
