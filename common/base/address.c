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

size_t
address_unquote(char *s, size_t len)
{
	size_t from, to = 0;

	if (len < 2 || s[0] != '"' || s[len - 1] != '"')
		return len;
	for (from = 1; from < len - 1; from++) {
		if (s[from] == '\\' && from + 1 < len - 1)
			from++;
		s[to++] = s[from];
	}
	s[to] = '\0';
	return to;
}

size_t
address_user(const char *address, char out[ADDRESS_MAX + 1])
{
	size_t len = address_local_len(address), i;

	if (len > ADDRESS_MAX)
		len = ADDRESS_MAX;
	for (i = 0; i < len; i++)
		out[i] = address[i] >= 'A' && address[i] <= 'Z'
		    ? (char)(address[i] - 'A' + 'a')
		    : address[i];
	out[len] = '\0';
	return address_unquote(out, len);
}

size_t
address_account_len(const char *user)
{
	const char *plus = user[0] == '\0' ? NULL : strchr(user + 1, '+');

	return plus == NULL ? strlen(user) : (size_t)(plus - user);
}
