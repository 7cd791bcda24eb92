#include "base/domain.h"

#include <errno.h>
#include <idn2.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"

/* The most code points of a label as written. NFC composes at most four code
 * points into one, and an A-label has at most 63 octets. */
#define LABEL_MAX (4 * 63)

/* Reasons of libidn2 that a user can act on. */
static const struct {
	int error;
	const char *why;
} reasons[] = {
	{ IDN2_ENCODING_ERROR, "the domain is not valid UTF-8" },
	{ IDN2_TOO_BIG_DOMAIN, "the domain is too long" },
	{ IDN2_TOO_BIG_LABEL, "a label of the domain is too long" },
	{ IDN2_PUNYCODE_BIG_OUTPUT, "a label of the domain is too long" },
	{ IDN2_DISALLOWED,
	    "the domain has a character that IDNA 2008 does not allow" },
	{ IDN2_UNASSIGNED,
	    "the domain has a character that Unicode does not know" },
	{ IDN2_BIDI, "the domain mixes letters of both directions in a label" },
	{ IDN2_HYPHEN_STARTEND,
	    "a label of the domain begins or ends with a hyphen" },
};

static const char invalid[] =
    "the domain is not a valid internationalized domain name";

static const char *
reason_of(int error)
{
	size_t i;

	for (i = 0; i < ARRAY_LEN(reasons); i++)
		if (reasons[i].error == error)
			return reasons[i].why;
	return invalid;
}

bool
domain_is_utf8(const char *text)
{
	for (; *text != '\0'; text++)
		if ((unsigned char)*text >= 0x80)
			return true;
	return false;
}

static void
lower_case(char *s)
{
	for (; *s != '\0'; s++)
		if (*s >= 'A' && *s <= 'Z')
			*s = (char)(*s - 'A' + 'a');
}

/* The length of the domain without the dot of the root. */
static size_t
rootless_len(const char *domain)
{
	size_t len = strlen(domain);

	return len > 1 && domain[len - 1] == '.' && domain[len - 2] != '.'
	    ? len - 1
	    : len;
}

/* Some characters that UTS 46 maps become a slash, a bracket or nothing. */
static bool
is_name(const char *ace, size_t len)
{
	static const char fit[] = "abcdefghijklmnopqrstuvwxyz0123456789.-_";

	return len > 0 && ace[0] != '.' && ace[len - 1] != '.' &&
	    strspn(ace, fit) >= len && strstr(ace, "..") == NULL;
}

static int
convert(const char *domain, char out[DOMAIN_MAX + 1], const char **ret_why)
{
	const uint8_t *from = (const uint8_t *)domain;
	uint8_t *to = NULL;
	const char *ace;
	size_t len;
	int r =
	    idn2_lookup_u8(from, &to, IDN2_NFC_INPUT | IDN2_NONTRANSITIONAL);

	if (r != IDN2_OK) {
		*ret_why = reason_of(r);
		return r == IDN2_MALLOC ? -ENOMEM : -EINVAL;
	}
	ace = (const char *)to;
	len = rootless_len(ace);
	if (len > DOMAIN_MAX || !is_name(ace, len)) {
		*ret_why = invalid;
		r = -EINVAL;
	} else {
		memcpy(out, ace, len);
		out[len] = '\0';
		r = 0;
	}
	idn2_free(to);
	return r;
}

/* The number of octets of the dot (UTS 46 section 4) that the text begins with;
 * 0 if the text begins with no dot. */
static size_t
dot_len(const char *s)
{
	if (*s == '.')
		return 1;
	return strncmp(s, "\u3002", 3) == 0 || strncmp(s, "\uff0e", 3) == 0 ||
		strncmp(s, "\uff61", 3) == 0
	    ? 3
	    : 0;
}

/* NULL, or the complaint. libidn2 maps the whole domain before libidn2 looks at
 * any length, and the time of the mapping grows with the length. */
static const char *
why_too_long(const char *domain)
{
	size_t all = 0, label = 0, dot;

	for (; *domain != '\0'; domain += dot > 0 ? dot : 1) {
		dot = dot_len(domain);
		if (((unsigned char)*domain & 0xc0) == 0x80)
			continue;
		all++;
		label = dot > 0 ? 0 : label + 1;
		if (label > LABEL_MAX)
			return "a label of the domain is too long";
		if (all > DOMAIN_MAX)
			return "the domain is too long";
	}
	return NULL;
}

/* The last domain that was converted. A recipient is looked up in several
 * tables, and each look-up converts the domain of that recipient. */
static _Thread_local struct {
	char domain[ADDRESS_MAX + 1]; /* "": none */
	char ace[DOMAIN_MAX + 1];
	const char *why;
	int r; /* 0, -EINVAL */
} last;

static void
keep_last(const char *domain, int r, const char *ace, const char *why)
{
	const size_t len = strlen(domain);

	if (r == -ENOMEM || len > ADDRESS_MAX)
		return;
	memcpy(last.domain, domain, len + 1);
	if (r == 0)
		memcpy(last.ace, ace, strlen(ace) + 1);
	last.why = why;
	last.r = r;
}

static int
convert_once(const char *domain, char out[DOMAIN_MAX + 1], const char **ret_why)
{
	const char *why;
	int r = -EINVAL;

	if (strcmp(domain, last.domain) == 0) {
		r = last.r;
		why = last.why;
		if (r == 0)
			memcpy(out, last.ace, strlen(last.ace) + 1);
	} else {
		why = why_too_long(domain);
		if (why == NULL)
			r = convert(domain, out, &why);
		keep_last(domain, r, out, why);
	}
	if (r < 0)
		*ret_why = why;
	return r;
}

int
domain_normalize(
    const char *domain, char out[DOMAIN_MAX + 1], const char **ret_why)
{
	size_t len = rootless_len(domain);

	if (domain_is_utf8(domain))
		return convert_once(domain, out, ret_why);
	if (len > DOMAIN_MAX) {
		*ret_why = "the domain is too long";
		return -EINVAL;
	}
	memcpy(out, domain, len);
	out[len] = '\0';
	lower_case(out);
	return 0;
}

int
domain_fold(const char *domain, char out[DOMAIN_FOLDED_MAX + 1])
{
	const char *why;
	size_t len;
	int r = domain_normalize(domain, out, &why);

	if (r == 0)
		return 0;
	len = strnlen(domain, DOMAIN_FOLDED_MAX);
	memcpy(out, domain, len);
	out[len] = '\0';
	lower_case(out);
	return r == -ENOMEM ? r : 0;
}

/* Folds the domain that ends the address; room is that of out from there. */
static int
fold_rest(const char *domain, char *out, size_t room)
{
	char folded[DOMAIN_FOLDED_MAX + 1];
	const int r = domain_fold(domain, folded);
	const size_t len = strnlen(folded, room - 1);

	memcpy(out, folded, len);
	out[len] = '\0';
	return r;
}

int
address_fold(const char *address, char out[ADDRESS_FOLDED_MAX + 1])
{
	const char *domain = address_domain(address);
	size_t at = (size_t)(domain - address);

	if (at > ADDRESS_MAX) {
		at = ADDRESS_MAX;
		domain = "";
	}
	memcpy(out, address, at);
	return fold_rest(domain, out + at, ADDRESS_FOLDED_MAX + 1 - at);
}

bool
domain_is_same(const char *a, const char *b)
{
	char x[DOMAIN_FOLDED_MAX + 1], y[DOMAIN_FOLDED_MAX + 1];

	(void)domain_fold(a, x);
	(void)domain_fold(b, y);
	return strcmp(x, y) == 0;
}

/* ---- patterns ---- */

static bool
is_label(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
	    (c >= '0' && c <= '9') || c == '-' || c == '_' || c == '*' ||
	    (unsigned char)c >= 0x80;
}

/* Appends a label of a pattern, or the character that is none. */
static int
add_piece(const char *piece, size_t len, char *out, size_t room)
{
	char copy[DOMAIN_FOLDED_MAX + 1], folded[DOMAIN_FOLDED_MAX + 1];

	if (len > DOMAIN_FOLDED_MAX)
		return -ENAMETOOLONG;
	memcpy(copy, piece, len);
	copy[len] = '\0';
	if (domain_is_utf8(copy) && strchr(copy, '*') == NULL &&
	    domain_fold(copy, folded) == 0)
		memcpy(copy, folded, strlen(folded) + 1);
	len = strlen(copy);
	if (len >= room)
		return -ENAMETOOLONG;
	memcpy(out, copy, len + 1);
	return (int)len;
}

int
domain_pattern(const char *pattern, char out[ADDRESS_FOLDED_MAX + 1])
{
	const char *at = strrchr(pattern, '@');
	size_t used = at == NULL ? 0 : (size_t)(at - pattern) + 1, len;
	int r;

	if (used > ADDRESS_MAX)
		return -ENAMETOOLONG;
	memcpy(out, pattern, used);
	out[used] = '\0';
	for (pattern += used; *pattern != '\0'; pattern += len) {
		for (len = 0; is_label(pattern[len]); len++)
			continue;
		if (len == 0)
			len = 1;
		r = add_piece(
		    pattern, len, out + used, ADDRESS_FOLDED_MAX + 1 - used);
		if (r < 0)
			return r;
		used += (size_t)r;
	}
	out[rootless_len(out)] = '\0';
	return 0;
}

/* ASCII without a dot at its end is compared as it is. */
static bool
is_plain(const char *text)
{
	return !domain_is_utf8(text) && rootless_len(text) == strlen(text);
}

static bool
matches(const char *pattern, const char *text,
    int (*fold)(const char *text, char *out),
    bool (*match)(const char *pattern, const char *text))
{
	char wanted[ADDRESS_FOLDED_MAX + 1], folded[ADDRESS_FOLDED_MAX + 1];

	if (match(pattern, text))
		return true;
	if (is_plain(pattern) && is_plain(text))
		return false;
	return domain_pattern(pattern, wanted) == 0 &&
	    fold(text, folded) == 0 && match(wanted, folded);
}

bool
domain_matches(const char *pattern, const char *domain)
{
	return matches(pattern, domain, domain_fold, text_matches);
}

bool
address_matches(const char *pattern, const char *address)
{
	return matches(pattern, address, address_fold, text_matches);
}

bool
destination_matches(
    const char *pattern, const char *transport, const char *nexthop)
{
	const char *slash = strchr(pattern, '/');
	char name[64];
	int n;

	if (domain_matches(pattern, nexthop))
		return true;
	if (slash == NULL)
		return false;
	n = snprintf(
	    name, sizeof(name), "%.*s", (int)(slash - pattern), pattern);
	return n < (int)sizeof(name) && text_matches(name, transport) &&
	    domain_matches(slash + 1, nexthop);
}

static bool
contains(const char *part, const char *text)
{
	return strcasestr(text, part) != NULL;
}

bool
address_contains(const char *part, const char *address)
{
	return matches(part, address, address_fold, contains);
}
