#include "base/option.h"

#include <errno.h>
#include <getopt.h>

#include "base/text.h"

int
option_wrong(
    struct buf *error, const char *what, const char *typed, const char *why)
{
	(void)buf_add_str(error, what);
	(void)text_quote(error, typed);
	(void)buf_add_str(error, why);
	return -EINVAL;
}

int
option_unknown(struct buf *error, int c, char *const *argv)
{
	const char letter[] = { '-', (char)optopt, '\0' };
	const char *name =
	    optopt > 0 && optopt < OPTION_LONG ? letter : argv[optind - 1];

	if (c == ':') {
		(void)buf_printf(error, "option %s needs a value", name);
		return -EINVAL;
	}
	return option_wrong(error, "unknown option ", name, "");
}
