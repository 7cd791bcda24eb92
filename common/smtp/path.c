#include "smtp/smtp.h"

#include <errno.h>
#include <string.h>

#include "base/domain.h"

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
	size_t domain = strlen(address + local);
	int r;

	if (!smtp_path_is_fit(address))
		return -EINVAL;
	r = buf_add_char(out, '<');
	if (r == 0 && *address != '\0')
		r = add_local(out, address, local);
	if (domain > 2 && address[local + domain - 1] == '.' &&
	    address[local + domain - 2] != '.')
		domain--;
	if (r == 0)
		r = buf_add(out, address + local, domain);
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

/* ---- reading ---- */

/* An address that is being read, and where it goes. */
struct path_reader {
	const char *p;
	char *out;
	size_t len; /* of out, at most ADDRESS_MAX */
};

static int
put_octets(struct path_reader *rd, const char *s, size_t len)
{
	if (len > ADDRESS_MAX - rd->len)
		return -ENAMETOOLONG;
	memcpy(rd->out + rd->len, s, len);
	rd->len += len;
	return 0;
}

/* The length of the quoted string at s; 0: there is none. */
static size_t
quoted_len(const char *s)
{
	size_t i;

	for (i = 1; s[i] != '\0' && s[i] != '"'; i++)
		if (s[i] == '\\' && s[++i] == '\0')
			return 0;
	return s[i] == '"' && is_quoted_string(s, i + 1) ? i + 1 : 0;
}

/* Without quotes where these are not needed. */
static int
read_quoted(struct path_reader *rd)
{
	const size_t len = quoted_len(rd->p), begin = rd->len;
	size_t i;
	int r = len == 0 ? -EINVAL : 0;

	for (i = 1; r == 0 && i + 1 < len; i++) {
		i += rd->p[i] == '\\';
		r = put_octets(rd, rd->p + i, 1);
	}
	if (r == 0 && !is_dot_string(rd->out + begin, rd->len - begin)) {
		rd->len = begin;
		r = put_octets(rd, rd->p, len);
	}
	rd->p += len;
	return r;
}

static int
read_local(struct path_reader *rd)
{
	size_t len = 0;
	int r;

	if (*rd->p == '"')
		return read_quoted(rd);
	while (rd->p[len] == '.' || is_atext((unsigned char)rd->p[len]))
		len++;
	r = len == 0 ? -EINVAL : put_octets(rd, rd->p, len);
	rd->p += len;
	return r;
}

/* Labels with dots between, or a literal in brackets. */
static bool
is_named_domain(const char *s, size_t len)
{
	const bool literal = len > 2 && s[0] == '[' && s[len - 1] == ']';
	size_t i;

	if (literal)
		return memchr(s + 1, '[', len - 1) == NULL &&
		    memchr(s, ']', len - 1) == NULL;
	if (len == 0 || s[0] == '.' || s[len - 1] == '.')
		return false;
	for (i = 0; i < len; i++)
		if (strchr(":[]", s[i]) != NULL ||
		    (s[i] == '.' && s[i - 1] == '.'))
			return false;
	return true;
}

/* A dot of the root behind a domain is read and left out. */
static int
read_domain(struct path_reader *rd)
{
	const size_t end = strcspn(rd->p, "> "), begin = rd->len;
	const bool root =
	    end > 1 && rd->p[end - 1] == '.' && rd->p[end - 2] != ']';
	const size_t len = end - root;
	int r = put_octets(rd, rd->p, len);

	rd->p += end;
	if (r < 0)
		return r;
	rd->out[rd->len] = '\0';
	return is_domain(rd->out + begin) &&
		is_named_domain(rd->out + begin, len)
	    ? 0
	    : -EINVAL;
}

/* `@a,@b:`, which nobody follows any more (RFC 5321 section 4.1.1.3). */
static int
pass_route(struct path_reader *rd)
{
	size_t len;

	if (*rd->p != '@')
		return 0;
	len = strcspn(rd->p, ":<> \"");
	rd->p += len;
	if (*rd->p != ':')
		return -EINVAL;
	rd->p++;
	return 0;
}

ssize_t
smtp_path_parse(const char *s, bool bare, char ret_address[ADDRESS_MAX + 1],
    bool *ret_domain)
{
	const bool angle = *s == '<';
	struct path_reader rd = { s + angle, ret_address, 0 };
	bool domain = false;
	int r = angle || bare ? 0 : -EINVAL;

	if (angle && *rd.p != '>') {
		r = pass_route(&rd);
		if (r == 0)
			r = read_local(&rd);
	} else if (!angle && r == 0) {
		r = read_local(&rd);
	}
	if (r == 0 && *rd.p == '@' && rd.len > 0) {
		domain = true;
		rd.p++;
		r = put_octets(&rd, "@", 1);
		if (r == 0)
			r = read_domain(&rd);
	}
	if (r == 0 && angle && *rd.p++ != '>')
		r = -EINVAL;
	if (r < 0)
		return r;
	ret_address[rd.len] = '\0';
	*ret_domain = domain;
	return rd.p - s;
}

int
smtp_path_to_ascii(
    const char *address, char out[ADDRESS_FOLDED_MAX + 1], const char **ret_why)
{
	const size_t local = address_local_len(address);
	const char *domain = address_domain(address);
	const size_t at = (size_t)(domain - address);
	char ascii[DOMAIN_MAX + 1];
	size_t i;
	int r;

	*ret_why = NULL;
	for (i = 0; i < local; i++)
		if (is_utf8_octet((unsigned char)address[i]))
			return -EINVAL;
	r = domain_normalize(domain, ascii, ret_why);
	if (r < 0)
		return r;
	if (at > ADDRESS_MAX) {
		*ret_why = "the address is too long";
		return -EINVAL;
	}
	memcpy(out, address, at);
	memcpy(out + at, ascii, strlen(ascii) + 1);
	return 0;
}
