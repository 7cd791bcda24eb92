#include "route/mx_site.h"

#include <string.h>

#define PREFIX_LEN (sizeof(MX_SITE_PREFIX) - 1)

bool
mx_site_is(const char *destination)
{
	if (strncmp(destination, MX_SITE_PREFIX, PREFIX_LEN) != 0)
		return false;
	destination += PREFIX_LEN;
	return destination[strspn(destination, "0123456789")] != '\0';
}

bool
mx_site_fits(const char *name, size_t len)
{
	static const char chars[] = "abcdefghijklmnopqrstuvwxyz0123456789-._:+";
	size_t i;

	if (len <= PREFIX_LEN || len > MX_SITE_MAX ||
	    memcmp(name, MX_SITE_PREFIX, PREFIX_LEN) != 0)
		return false;
	for (i = PREFIX_LEN; i < len; i++)
		if (name[i] == '\0' || strchr(chars, name[i]) == NULL)
			return false;
	return true;
}
