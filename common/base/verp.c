#include "base/verp.h"

#include <string.h>

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
