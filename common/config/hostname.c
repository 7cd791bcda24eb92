/* The name of this host in the mail that it handles. */
#include "config/conf.h"

#include <string.h>
#include <unistd.h>

/* The characters of a host name; any other would need quoting in a header. */
static bool
is_host_name(const char *s)
{
	static const char letters[] =
	    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
	    "0123456789.-_[]:";

	return s[0] != '\0' && strspn(s, letters) == strlen(s);
}

static bool
take(const char *name, char out[CONF_HOST_SIZE])
{
	if (!is_host_name(name) || strlen(name) >= CONF_HOST_SIZE)
		return false;
	memcpy(out, name, strlen(name) + 1);
	return true;
}

void
conf_host(const struct conf *conf, char out[CONF_HOST_SIZE])
{
	char system_name[CONF_HOST_SIZE] = "";

	if (take(conf->myhostname, out) ||
	    (gethostname(system_name, sizeof(system_name) - 1) == 0 &&
		take(system_name, out)))
		return;
	(void)take("localhost", out);
}

void
conf_domain(const struct conf *conf, char out[CONF_HOST_SIZE])
{
	if (!take(conf->mydomain, out))
		conf_host(conf, out);
}
