#include "base/verp.h"

#include <string.h>

#include "base/domain.h"

static bool
has_suffix(const char *sender, size_t len)
{
	return len >= VERP_SUFFIX_LEN &&
	    memcmp(sender + len - VERP_SUFFIX_LEN, VERP_SUFFIX,
		VERP_SUFFIX_LEN) == 0;
}

enum verp_kind
verp_kind(const char *sender, size_t len)
{
	const char *at;

	if (!has_suffix(sender, len))
		return VERP_NONE;
	at = memrchr(sender, '@', len - VERP_SUFFIX_LEN);
	return at == NULL || at + 1 == sender + len - VERP_SUFFIX_LEN
	    ? VERP_MALFORMED
	    : VERP_WANTED;
}

size_t
verp_base_len(const char *sender, size_t len)
{
	return verp_kind(sender, len) == VERP_WANTED ? len - VERP_SUFFIX_LEN
						     : len;
}

static bool
fits(const char *pattern, const char *sender,
    bool (*match)(const char *pattern, const char *address))
{
	const size_t len = strlen(sender), base = verp_base_len(sender, len);
	char address[ADDRESS_MAX + 1];

	if (match(pattern, sender))
		return true;
	if (base == len || base > ADDRESS_MAX)
		return false;
	memcpy(address, sender, base);
	address[base] = '\0';
	return match(pattern, address);
}

bool
sender_matches(const char *pattern, const char *sender)
{
	return fits(pattern, sender, address_matches);
}

bool
sender_contains(const char *part, const char *sender)
{
	return fits(part, sender, address_contains);
}
