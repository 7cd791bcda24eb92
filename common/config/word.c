/* Values that are one of a list of words: kept as the word, or as its place. */
#include "config/param.h"

#include <errno.h>
#include <string.h>

/* The place of value in the list of words. */
static int
find_word(const struct param *p, const char *value, struct buf *why)
{
	size_t len = strlen(value), n;
	const char *w;
	int r, place = 0;

	for (w = p->min; *w != '\0'; w += n + (w[n] == ' '), place++) {
		n = strcspn(w, " ");
		if (n == len && memcmp(w, value, n) == 0)
			return place;
	}
	r = buf_printf(why, "must be one of: %s", p->min);
	return r < 0 ? r : -EINVAL;
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
