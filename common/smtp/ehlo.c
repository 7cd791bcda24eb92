#include "smtp/smtp.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/num.h"

/* The places in the table are the bits of enum smtp_auth. */
static const char *const mechanisms[] = {
	"SCRAM-SHA-256",
	"OAUTHBEARER",
	"XOAUTH2",
	"PLAIN",
	"LOGIN",
};
_Static_assert(1u << ARRAY_LEN(mechanisms) == SMTP_AUTH_ALL + 1, "a bit each");

unsigned
smtp_auth_find(const char *name, size_t len)
{
	unsigned i;

	for (i = 0; i < ARRAY_LEN(mechanisms); i++)
		if (strlen(mechanisms[i]) == len &&
		    strncasecmp(name, mechanisms[i], len) == 0)
			return 1u << i;
	return 0;
}

const char *
smtp_auth_name(unsigned number)
{
	return number < ARRAY_LEN(mechanisms) ? mechanisms[number] : NULL;
}

/* Also of a second line, in the form of old servers: AUTH=LOGIN. */
static void
set_auth(struct smtp_ehlo *ehlo, const char *value)
{
	size_t n;

	for (; *value != '\0'; value += n + (value[n] == ' ')) {
		n = strcspn(value, " ");
		ehlo->auth |= smtp_auth_find(value, n);
	}
}

static void
set_size(struct smtp_ehlo *ehlo, const char *value)
{
	char number[32];
	size_t n = strcspn(value, " ");

	ehlo->size = true;
	n = n < sizeof(number) ? n : 0;
	memcpy(number, value, n);
	number[n] = '\0';
	value = number;
	if (num_u64(value, 0, UINT64_MAX, &ehlo->size_max) < 0)
		ehlo->size_max = 0;
}

/* The places in the table are the bits of a set of keywords. */
static const struct {
	const char *name;
	size_t flag; /* offset of a bool, without `set` */
	void (*set)(struct smtp_ehlo *ehlo, const char *value);
} keywords[] = {
	{ "pipelining", offsetof(struct smtp_ehlo, pipelining), NULL },
	{ "size", 0, set_size },
	{ "8bitmime", offsetof(struct smtp_ehlo, eight_bit), NULL },
	{ "smtputf8", offsetof(struct smtp_ehlo, utf8), NULL },
	{ "dsn", offsetof(struct smtp_ehlo, dsn), NULL },
	{ "starttls", offsetof(struct smtp_ehlo, starttls), NULL },
	{ "auth", 0, set_auth },
	{ "chunking", offsetof(struct smtp_ehlo, chunking), NULL },
};

int
smtp_keyword_find(const char *name, size_t len)
{
	size_t i;

	for (i = 0; i < ARRAY_LEN(keywords); i++)
		if (strlen(keywords[i].name) == len &&
		    strncasecmp(name, keywords[i].name, len) == 0)
			return (int)i;
	return -ENOENT;
}

const char *
smtp_keyword_name(unsigned keyword)
{
	return keyword < ARRAY_LEN(keywords) ? keywords[keyword].name : NULL;
}

static void
take_keyword(
    struct smtp_ehlo *ehlo, uint32_t ignored, const char *line, size_t len)
{
	char copy[512], *value;
	int k;

	if (len >= sizeof(copy) || memchr(line, '\0', len) != NULL)
		return;
	memcpy(copy, line, len);
	copy[len] = '\0';
	/* AUTH=LOGIN of old servers; no other keyword has such a form. */
	value = copy +
	    strcspn(copy, strncasecmp(copy, "AUTH=", 5) == 0 ? "=" : " ");
	if (*value != '\0')
		*value++ = '\0';
	k = smtp_keyword_find(copy, strlen(copy));
	if (k < 0 || (ignored & 1u << k) != 0)
		return;
	if (keywords[k].set != NULL)
		keywords[k].set(ehlo, value);
	else
		*(bool *)((char *)ehlo + keywords[k].flag) = true;
}

void
smtp_ehlo_parse(const struct smtp_reply *reply, uint32_t ignored,
    struct smtp_ehlo *ret_ehlo)
{
	const char *p = buf_str(&reply->text), *end = p + reply->text.len;
	bool first = true; /* the name of the server */

	memset(ret_ehlo, 0, sizeof(*ret_ehlo));
	while (p < end) {
		const char *eol = memchr(p, '\n', (size_t)(end - p));

		if (!first)
			take_keyword(ret_ehlo, ignored, p, (size_t)(eol - p));
		first = false;
		p = eol + 1;
	}
}
