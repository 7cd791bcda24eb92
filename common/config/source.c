/* The addresses that a transport connects from, and the name that it gives. */
#include "config/param.h"

#include <errno.h>
#include <string.h>

#include "route/nexthop.h"

static int
refuse(struct buf *why, const char *text)
{
	int r = buf_add_str(why, text);

	return r < 0 ? r : -EINVAL;
}

/* Brackets keep a next hop from being a name. */
static bool
is_address(const char *value, sa_family_t family)
{
	char text[sizeof(((struct conf_bind *)NULL)->text) + 2] = "[";
	struct nexthop hop;
	size_t len = strlen(value);

	if (len >= sizeof(((struct conf_bind *)NULL)->text))
		return false;
	memcpy(text + 1, value, len);
	memcpy(text + 1 + len, "]", 2);
	return nexthop_parse(text, 1, &hop) == 0 &&
	    hop.kind == NEXTHOP_ADDRESS && hop.address.ss_family == family;
}

static int
parse(void *field, const char *value, sa_family_t family, struct buf *why)
{
	struct conf_bind *source = field;

	if (*value != '\0' && !is_address(value, family))
		return refuse(why,
		    family == AF_INET
			? "must be an IPv4 address that a host can have"
			: "must be an IPv6 address that a host can have, "
			  "without brackets");
	memset(source, 0, sizeof(*source));
	memcpy(source->text, value, strlen(value) + 1);
	return 0;
}

int
source4_parse(const struct param *p UNUSED, void *field, const char *value,
    struct buf *why)
{
	return parse(field, value, AF_INET, why);
}

int
source6_parse(const struct param *p UNUSED, void *field, const char *value,
    struct buf *why)
{
	return parse(field, value, AF_INET6, why);
}

int
helo_parse(const struct param *p UNUSED, void *field, const char *value,
    struct buf *why)
{
	struct conf_helo *helo = field;
	char ascii[CONF_HOST_SIZE];
	int r = param_host_to_ascii(&value, ascii, why);

	if (r == 0 && strlen(value) >= sizeof(helo->name))
		return refuse(why, "is too long");
	if (r == 0)
		r = param_check_chars(value, ".-_:[]", why);
	if (r < 0)
		return r;
	memset(helo, 0, sizeof(*helo));
	memcpy(helo->name, value, strlen(value) + 1);
	return 0;
}
