#include "smtp/smtp.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/num.h"

static void
set_pipelining(struct smtp_ehlo *ehlo, const char *value UNUSED)
{
	ehlo->pipelining = true;
}

static void
set_eight_bit(struct smtp_ehlo *ehlo, const char *value UNUSED)
{
	ehlo->eight_bit = true;
}

static void
set_utf8(struct smtp_ehlo *ehlo, const char *value UNUSED)
{
	ehlo->utf8 = true;
}

static void
set_size(struct smtp_ehlo *ehlo, const char *value)
{
	ehlo->size = true;
	if (num_u64(value, 0, UINT64_MAX, &ehlo->size_max) < 0)
		ehlo->size_max = 0;
}

static const struct {
	const char *name;
	void (*set)(struct smtp_ehlo *ehlo, const char *value);
} keywords[] = {
	{ "PIPELINING", set_pipelining },
	{ "SIZE", set_size },
	{ "8BITMIME", set_eight_bit },
	{ "SMTPUTF8", set_utf8 },
};

static void
take_keyword(struct smtp_ehlo *ehlo, const char *line, size_t len)
{
	char copy[64], *value;
	size_t i;

	if (len >= sizeof(copy) || memchr(line, '\0', len) != NULL)
		return;
	memcpy(copy, line, len);
	copy[len] = '\0';
	value = copy + strcspn(copy, " ");
	if (*value != '\0')
		*value++ = '\0';
	value[strcspn(value, " ")] = '\0';
	for (i = 0; i < ARRAY_LEN(keywords); i++)
		if (strcasecmp(copy, keywords[i].name) == 0)
			keywords[i].set(ehlo, value);
}

void
smtp_ehlo_parse(const struct smtp_reply *reply, struct smtp_ehlo *ret_ehlo)
{
	const char *p = buf_str(&reply->text), *end = p + reply->text.len;
	bool first = true; /* the name of the server */

	memset(ret_ehlo, 0, sizeof(*ret_ehlo));
	while (p < end) {
		const char *eol = memchr(p, '\n', (size_t)(end - p));

		if (!first)
			take_keyword(ret_ehlo, p, (size_t)(eol - p));
		first = false;
		p = eol + 1;
	}
}
