#include "base/address.h"

#include <errno.h>
#include <string.h>

int
address_check(const char *address, size_t len)
{
	size_t i;

	if (len == 0)
		return -EINVAL;
	if (len > ADDRESS_MAX)
		return -ENAMETOOLONG;
	for (i = 0; i < len; i++)
		if ((unsigned char)address[i] < 0x20 || address[i] == 0x7f)
			return -EILSEQ;
	return 0;
}

const char *
address_domain(const char *address)
{
	const char *at = strrchr(address, '@');

	return at == NULL ? address + strlen(address) : at + 1;
}

size_t
address_local_len(const char *address)
{
	const char *at = strrchr(address, '@');

	return at == NULL ? strlen(address) : (size_t)(at - address);
}
