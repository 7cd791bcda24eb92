#include "route/sender_rewrite.h"

#include <stdio.h>
#include <string.h>

#include "base/domain.h"
#include "base/verp.h"

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
	const char *why = sender_address_judge(text, ascii);

	if (why != NULL)
		return why;
	if (text[0] == '"')
		return "the other address cannot be quoted";
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

/* VERP puts the recipient behind the local part. The local part of a row that
 * ends with no delimiter gets one. */
static const char *
delimiter_behind(const char *local, size_t len)
{
	return len > 0 && strchr("-+=", local[len - 1]) == NULL ? "+" : "";
}

int
sender_rewrite(
    const struct sender_map *map, const char *sender, char out[ADDRESS_MAX + 1])
{
	const char *local = sender, *plus = "";
	char other[2 * ADDRESS_MAX + sizeof(VERP_SUFFIX)];
	struct sender_row row;
	size_t len, end;
	int n, r = sender_map_find(map, sender, &row);

	if (r <= 0)
		return r;
	end = verp_base_len(sender, strlen(sender));
	len = address_local_len(row.value);
	if (len == 0)
		len =
		    (size_t)((const char *)memrchr(sender, '@', end) - sender);
	else {
		local = row.value;
		plus = sender[end] == '\0' ? "" : delimiter_behind(local, len);
	}
	n = snprintf(other, sizeof(other), "%.*s%s%s%s", (int)len, local, plus,
	    strrchr(row.value, '@'), sender + end);
	if (n > ADDRESS_MAX)
		return 0;
	memcpy(out, other, (size_t)n + 1);
	return 1;
}
