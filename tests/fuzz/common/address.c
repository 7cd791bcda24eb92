/* Addresses as envelopes carry them, against the definition. */
#include "tests/fuzz/fuzz.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/address.h"

static int
model_check(const char *s, size_t len)
{
	size_t i;

	if (len == 0)
		return -EINVAL;
	if (len > 512)
		return -ENAMETOOLONG;
	for (i = 0; i < len; i++)
		if ((s[i] >= 0 && s[i] < 32) || s[i] == 127)
			return -EILSEQ;
	return 0;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_in in = { data, size };
	size_t len, local, i, at = SIZE_MAX;
	char *bytes = fuzz_rest(&in, &len), *s;
	const char *domain;

	MUST(address_check(bytes, len) == model_check(bytes, len));
	free(bytes);
	in = (struct fuzz_in){ data, size };
	s = fuzz_string(&in);
	for (i = 0; s[i] != '\0'; i++)
		if (s[i] == '@')
			at = i;
	domain = address_domain(s);
	local = address_local_len(s);
	MUST(local == (at == SIZE_MAX ? strlen(s) : at));
	MUST(domain == (at == SIZE_MAX ? s + strlen(s) : s + at + 1));
	free(s);
	return 0;
}
