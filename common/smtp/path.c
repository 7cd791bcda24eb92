#include "smtp/smtp.h"

#include <errno.h>
#include <string.h>

#include "base/address.h"

static bool
is_alnum(unsigned char c)
{
	return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') ||
	    (c >= 'A' && c <= 'Z');
}

static bool
is_utf8_octet(unsigned char c)
{
	return c >= 0x80;
}

/* RFC 5322 atext, with the octets that RFC 6531 adds. */
static bool
is_atext(unsigned char c)
{
	return is_alnum(c) || is_utf8_octet(c) ||
	    (c != '\0' && strchr("!#$%&'*+-/=?^_`{|}~", c) != NULL);
}

static bool
is_dot_string(const char *s, size_t len)
{
	size_t i;

	if (len == 0 || s[0] == '.' || s[len - 1] == '.')
		return false;
	for (i = 0; i < len; i++)
		if (s[i] == '.' ? s[i - 1] == '.'
				: !is_atext((unsigned char)s[i]))
			return false;
	return true;
}

static bool
is_printable(unsigned char c)
{
	return c >= 0x20 && c != 0x7f;
}

/* `"…"` with every quote and backslash inside escaped. */
static bool
is_quoted_string(const char *s, size_t len)
{
	size_t i;

	if (len < 2 || s[0] != '"' || s[len - 1] != '"')
		return false;
	for (i = 1; i < len - 1; i++) {
		if (s[i] == '"' || !is_printable((unsigned char)s[i]))
			return false;
		if (s[i] == '\\' && ++i == len - 1)
			return false;
	}
	return true;
}

int
smtp_local_add(struct buf *out, const char *text, size_t len)
{
	return is_dot_string(text, len) ? buf_add(out, text, len)
					: buf_add_quoted(out, text, len);
}

static int
add_local(struct buf *out, const char *s, size_t len)
{
	return is_quoted_string(s, len) ? buf_add(out, s, len)
					: smtp_local_add(out, s, len);
}

/* Names, and literals in brackets. */
static bool
is_domain(const char *s)
{
	size_t i;

	if (*s == '\0')
		return false;
	for (i = 0; s[i] != '\0'; i++)
		if (!is_alnum((unsigned char)s[i]) &&
		    !is_utf8_octet((unsigned char)s[i]) &&
		    strchr("-._:[]", s[i]) == NULL)
			return false;
	return true;
}

bool
smtp_path_is_fit(const char *address)
{
	size_t len = strlen(address), local = address_local_len(address), i;

	for (i = 0; i < len; i++)
		if (!is_printable((unsigned char)address[i]))
			return false;
	return local == len || is_domain(address + local + 1);
}

int
smtp_path_add(struct buf *out, const char *address)
{
	size_t local = address_local_len(address), begin = out->len;
	int r;

	if (!smtp_path_is_fit(address))
		return -EINVAL;
	r = buf_add_char(out, '<');
	if (r == 0 && *address != '\0')
		r = add_local(out, address, local);
	if (r == 0)
		r = buf_add_str(out, address + local);
	if (r == 0)
		r = buf_add_char(out, '>');
	if (r < 0)
		out->len = begin;
	return r;
}

bool
smtp_path_is_utf8(const char *address)
{
	for (; *address != '\0'; address++)
		if (is_utf8_octet((unsigned char)*address))
			return true;
	return false;
}
