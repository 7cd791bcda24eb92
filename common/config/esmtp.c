#include "config/param.h"

#include <errno.h>
#include <string.h>
#include <strings.h>

#include "base/text.h"
#include "smtp/smtp.h"

/* The name of a bit of a set; NULL: the set has no such bit. */
typedef const char *bit_name_fn(unsigned number);

static int
unknown(const char *word, size_t len, bit_name_fn *name, struct buf *why)
{
	unsigned i;
	int r = buf_printf(why, "\"%.*s\" is none of", (int)len, word);

	for (i = 0; r == 0 && name(i) != NULL; i++)
		r = buf_printf(why, "%s %s", i == 0 ? "" : ",", name(i));
	return r < 0 ? r : -EINVAL;
}

static int
bits_format(uint32_t bits, bit_name_fn *name, struct buf *out)
{
	bool first = true;
	unsigned i;
	int r = 0;

	for (i = 0; r == 0 && name(i) != NULL; i++) {
		if ((bits & 1u << i) == 0)
			continue;
		r = buf_printf(out, "%s%s", first ? "" : " ", name(i));
		first = false;
	}
	return r;
}

int
keywords_parse(const struct param *p UNUSED, void *field, const char *value,
    struct buf *why)
{
	const char *word;
	uint32_t all = 0;
	size_t len;
	int k;

	while ((word = text_next_word(&value, &len)) != NULL) {
		k = smtp_keyword_find(word, len);
		if (k < 0)
			return unknown(word, len, smtp_keyword_name, why);
		all |= 1u << k;
	}
	*(uint32_t *)field = all;
	return 0;
}

int
keywords_format(
    const struct param *p UNUSED, const void *field, struct buf *out)
{
	return bits_format(*(const uint32_t *)field, smtp_keyword_name, out);
}

/* ---- smtp_sasl_mechanism_filter ---- */

/* The mechanisms of one word; 0: the word names none. */
static uint32_t
mechanisms_of_word(const char *word, size_t len)
{
	static const char all[] = "static:all";

	if (len == strlen(all) && strncasecmp(word, all, len) == 0)
		return SMTP_AUTH_ALL;
	return smtp_auth_find(word, len);
}

/* The first word that names a mechanism decides, as in Postfix. A mechanism
 * that no word names is allowed if no word allows another one. */
int
mechanisms_parse(const struct param *p UNUSED, void *field, const char *value,
    struct buf *why)
{
	const char *word;
	uint32_t allowed = 0, refused = 0, named;
	bool chosen = false;
	size_t len;
	int r;

	while ((word = text_next_word(&value, &len)) != NULL) {
		const bool no = *word == '!';

		word += no;
		len -= no;
		named = mechanisms_of_word(word, len);
		if (named == 0)
			return unknown(word, len, smtp_auth_name, why);
		if (no)
			refused |= named & ~allowed;
		else
			allowed |= named & ~refused;
		chosen = chosen || !no;
	}
	if (!chosen)
		allowed = SMTP_AUTH_ALL & ~refused;
	if (allowed == 0) {
		r = buf_add_str(why, "no mechanism is left; name one");
		return r < 0 ? r : -EINVAL;
	}
	*(uint32_t *)field = allowed;
	return 0;
}

int
mechanisms_format(
    const struct param *p UNUSED, const void *field, struct buf *out)
{
	const uint32_t allowed = *(const uint32_t *)field;

	return allowed == SMTP_AUTH_ALL
	    ? 0
	    : bits_format(allowed, smtp_auth_name, out);
}
