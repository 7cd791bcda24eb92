#include "config/param.h"

#include <errno.h>
#include <string.h>

#include "smtp/smtp.h"

static const char *const eights[CONF_NEIGHTS] = {
	[CONF_EIGHT_CONVERT] = "quoted-printable",
	[CONF_EIGHT_REFUSE] = "refuse",
	[CONF_EIGHT_AS_IS] = "as-is",
};

int
eight_parse(const struct param *p UNUSED, void *field, const char *value,
    struct buf *why)
{
	size_t i;
	int r;

	for (i = 0; i < CONF_NEIGHTS; i++)
		if (strcmp(value, eights[i]) == 0) {
			*(enum conf_eight *)field = (enum conf_eight)i;
			return 0;
		}
	r = buf_add_str(why, "must be quoted-printable, refuse or as-is");
	return r < 0 ? r : -EINVAL;
}

int
eight_format(const struct param *p UNUSED, const void *field, struct buf *out)
{
	return buf_add_str(out, eights[*(const enum conf_eight *)field]);
}

static int
unknown(const char *word, size_t len, struct buf *why)
{
	unsigned i;
	int r = buf_printf(why, "\"%.*s\" is none of", (int)len, word);

	for (i = 0; r == 0 && smtp_keyword_name(i) != NULL; i++)
		r = buf_printf(
		    why, "%s %s", i == 0 ? "" : ",", smtp_keyword_name(i));
	return r < 0 ? r : -EINVAL;
}

int
keywords_parse(const struct param *p UNUSED, void *field, const char *value,
    struct buf *why)
{
	uint32_t all = 0;

	for (;;) {
		size_t len;
		int k;

		value += strspn(value, " \t,");
		len = strcspn(value, " \t,");
		if (len == 0)
			break;
		k = smtp_keyword_find(value, len);
		if (k < 0)
			return unknown(value, len, why);
		all |= 1u << k;
		value += len;
	}
	*(uint32_t *)field = all;
	return 0;
}

int
keywords_format(
    const struct param *p UNUSED, const void *field, struct buf *out)
{
	const uint32_t all = *(const uint32_t *)field;
	bool first = true;
	unsigned i;
	int r = 0;

	for (i = 0; r == 0 && smtp_keyword_name(i) != NULL; i++) {
		if ((all & 1u << i) == 0)
			continue;
		r = buf_printf(
		    out, "%s%s", first ? "" : " ", smtp_keyword_name(i));
		first = false;
	}
	return r;
}
