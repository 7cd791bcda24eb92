/* The characters of a value. */
#include "config/param.h"

#include <errno.h>
#include <string.h>

#include "base/domain.h"
#include "base/text.h"

static int
wrong_char(const char *value, size_t at, const char *others, struct buf *why)
{
	size_t len = 1;
	int r;

	/* All bytes of a character, not the first alone. */
	while (((unsigned char)value[at + len] & 0xc0) == 0x80)
		len++;
	r = buf_add_str(why, "has `");
	if (r == 0)
		r = text_clean(why, value + at, len, len);
	if (r == 0)
		r = buf_printf(why,
		    "' as character %zu: only letters, digits and `%s' are "
		    "allowed",
		    at + 1, others);
	return r < 0 ? r : -EINVAL;
}

int
param_host_to_ascii(
    const char **value, char ascii[CONF_HOST_SIZE], struct buf *why)
{
	const char *reason = NULL;
	int r;

	if (!domain_is_utf8(*value))
		return 0;
	r = domain_normalize(*value, ascii, &reason);
	if (r == -EINVAL &&
	    (text_complain(why, *value, "is no name of a host: ") < 0 ||
		buf_add_str(why, reason) < 0))
		r = -ENOMEM;
	if (r == 0)
		*value = ascii;
	return r;
}

int
param_check_chars(const char *value, const char *others, struct buf *why)
{
	size_t at = 0;

	if (*value == '-' || *value == '.') {
		const int r =
		    buf_printf(why, "must not begin with `%c'", *value);

		return r < 0 ? r : -EINVAL;
	}
	while (value[at] != '\0' &&
	    (((value[at] | 0x20) >= 'a' && (value[at] | 0x20) <= 'z') ||
		(value[at] >= '0' && value[at] <= '9') ||
		strchr(others, value[at]) != NULL))
		at++;
	return value[at] == '\0' ? 0 : wrong_char(value, at, others, why);
}
