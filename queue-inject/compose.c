#include "queue-inject/message.h"

#include "base/date.h"

#include "base/text.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <time.h>

#define NAME_MAX_BYTES 200
#define WORD_MAX_BYTES 45 /* of text in an encoded word: at most 75 octets */

static bool
is_phrase(const char *s)
{
	for (; *s != '\0'; s++)
		if (!isalnum((unsigned char)*s) &&
		    strchr(" !#$%&'*+-/=?^_`{|}~", *s) == NULL)
			return false;
	return true;
}

static bool
is_ascii(const char *s)
{
	for (; *s != '\0'; s++)
		if ((unsigned char)*s >= 0x80)
			return false;
	return true;
}

static size_t
encoded_len(char c)
{
	return isalnum((unsigned char)c) || c == ' ' ? 1 : 3;
}

static int
add_encoded_char(struct buf *out, char c)
{
	if (c == ' ')
		return buf_add_char(out, '_');
	if (encoded_len(c) == 1)
		return buf_add_char(out, c);
	return buf_printf(out, "=%02X", (unsigned)(unsigned char)c);
}

/* How much of s, whole characters, an encoded word holds. */
static size_t
word_len(const char *s)
{
	size_t i = 0, used = 0, whole = 0;

	while (s[i] != '\0' && used + encoded_len(s[i]) <= WORD_MAX_BYTES) {
		used += encoded_len(s[i++]);
		if (((unsigned char)s[i] & 0xc0) != 0x80)
			whole = i;
	}
	return whole;
}

/* s is valid UTF-8. */
static int
add_encoded(struct buf *out, const char *s, const char *eol)
{
	int r = 0;

	while (*s != '\0' && r == 0) {
		size_t i, n = word_len(s);

		r = buf_add_str(out, "=?UTF-8?Q?");
		for (i = 0; i < n && r == 0; i++)
			r = add_encoded_char(out, s[i]);
		if (r == 0)
			r = buf_add_str(out, "?=");
		s += n;
		if (r == 0 && *s != '\0')
			r = buf_printf(out, "%s ", eol);
	}
	return r;
}

static int
add_name(const struct compose *c, const char *name)
{
	if (!is_ascii(name))
		return add_encoded(c->out, name, c->eol);
	if (!is_phrase(name))
		return buf_add_quoted(c->out, name, strlen(name));
	return buf_add_str(c->out, name);
}

int
compose_from(
    const struct compose *c, const char *full_name, const char *address)
{
	struct buf name = { 0 };
	int r =
	    text_to_utf8(&name, full_name, strlen(full_name), NAME_MAX_BYTES);

	if (r == 0)
		r = buf_printf(c->out, "%sFrom: ", c->prefix);
	if (r == 0 && name.len == 0)
		r = buf_printf(c->out, "%s%s", address, c->eol);
	else if (r == 0) {
		r = add_name(c, name.data);
		if (r == 0)
			r = buf_printf(c->out, " <%s>%s", address, c->eol);
	}
	buf_done(&name);
	return r;
}

int
compose_date(const struct compose *c, usec_t wall)
{
	char date[DATE_SIZE];

	date_format(wall, date);
	return buf_printf(c->out, "%sDate: %s%s", c->prefix, date, c->eol);
}

int
compose_message_id(
    const struct compose *c, usec_t wall, uint64_t random, const char *host)
{
	time_t t = (time_t)(wall / USEC_PER_SEC);
	struct tm tm = { .tm_mday = 1, .tm_year = 70 };

	(void)gmtime_r(&t, &tm);
	return buf_printf(c->out,
	    "%sMessage-ID: <%04d%02d%02d%02d%02d%02d.%016" PRIx64 "@%s>%s",
	    c->prefix, tm.tm_year + 1900, tm.tm_mon + 1, tm.tm_mday, tm.tm_hour,
	    tm.tm_min, tm.tm_sec, random, host, c->eol);
}
