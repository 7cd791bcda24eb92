#include "route/sender_rewrite.h"

#include <stdio.h>
#include <string.h>

#include "base/domain.h"
#include "route/nexthop.h"

/* Atoms of ASCII with single dots between them (RFC 5322 dot-atom). */
static bool
is_plain(const char *local, size_t len)
{
	bool dot = true;
	size_t i;

	for (i = 0; i < len; i++) {
		const unsigned char c = (unsigned char)local[i];

		if (c == '.' ? dot
			     : c <= ' ' || c >= 0x7f ||
			    strchr("()<>[]:;@\\,\"", c) != NULL)
			return false;
		dot = c == '.';
	}
	return !dot;
}

static const char *
judge_address(const char *text, char out[SENDER_VALUE_MAX + 1])
{
	const size_t local = address_local_len(text);
	char ascii[DOMAIN_MAX + 1];
	const char *domain = address_domain(text), *why;

	if (strchr(text, '@') == NULL)
		return "the other address is neither user@domain nor @domain";
	if (domain_normalize(domain, ascii, &why) < 0)
		return domain_is_utf8(domain) ? why : "not a domain";
	if (!nexthop_fits_domain(ascii) || domain[strlen(domain) - 1] == '.')
		return "the other address has no right domain";
	if (local > 0 && !is_plain(text, local))
		return "the local part of the other address must be of ASCII "
		       "and need no quotes";
	if (local + 1 + strlen(ascii) > SENDER_VALUE_MAX)
		return "the other address is too long";
	snprintf(out, SENDER_VALUE_MAX + 1, "%.*s@%s", (int)local, text, ascii);
	return NULL;
}

const struct sender_kind sender_rewrite_kind = {
	.form = "not `user@domain address`, with @domain in either place",
	.judge = judge_address,
};

int
sender_rewrite(
    const struct sender_map *map, const char *sender, char out[ADDRESS_MAX + 1])
{
	struct sender_row row;
	size_t local = 0;
	int r = sender_map_find(map, sender, &row);

	if (r <= 0)
		return r;
	if (row.value[0] == '@')
		local = address_local_len(sender);
	if (local + strlen(row.value) > ADDRESS_MAX)
		return 0;
	snprintf(out, ADDRESS_MAX + 1, "%.*s%s", (int)local, sender, row.value);
	return 1;
}
