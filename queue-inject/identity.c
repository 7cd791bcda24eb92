#include "queue-inject/identity.h"

#include <ctype.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Letters of a host name; anything else would need quoting somewhere. */
static bool
is_host_name(const char *s)
{
	static const char letters[] =
	    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
	    "0123456789.-_[]:";

	return s[0] != '\0' && strspn(s, letters) == strlen(s);
}

static void
set_name(char *out, size_t size, const char *wanted, const char *other)
{
	bool usable = is_host_name(wanted) && strlen(wanted) < size;

	snprintf(out, size, "%s", usable ? wanted : other);
}

void
identity_init(struct identity *id, const struct conf *conf)
{
	char system_name[256] = "";

	*id = (struct identity){ .uid = getuid() };
	if (gethostname(system_name, sizeof(system_name) - 1) < 0 ||
	    !is_host_name(system_name))
		snprintf(system_name, sizeof(system_name), "localhost");
	set_name(id->host, sizeof(id->host), conf->myhostname, system_name);
	set_name(id->domain, sizeof(id->domain), conf->mydomain, id->host);
}

/* The part of a gecos field before the first comma; `&` stands for the login
 * name with a capital. */
static void
set_full_name(struct identity *id, const char *gecos)
{
	size_t used = 0;

	for (; *gecos != '\0' && *gecos != ','; gecos++) {
		char *to = id->full_name + used;
		size_t room = sizeof(id->full_name) - used;
		int n = *gecos == '&' ? snprintf(to, room, "%s", id->login)
				      : snprintf(to, room, "%c", *gecos);

		if (n < 0 || (size_t)n >= room)
			break;
		if (*gecos == '&')
			*to = (char)toupper((unsigned char)*to);
		used += (size_t)n;
	}
	id->full_name[used] = '\0';
}

void
identity_look_up(struct identity *id)
{
	char store[4096];
	struct passwd pw, *found = NULL;

	if (id->looked_up)
		return;
	id->looked_up = true;
	snprintf(id->login, sizeof(id->login), "uid%u", (unsigned)id->uid);
	if (getpwuid_r(id->uid, &pw, store, sizeof(store), &found) != 0 ||
	    found == NULL || strlen(found->pw_name) >= sizeof(id->login))
		return;
	snprintf(id->login, sizeof(id->login), "%s", found->pw_name);
	set_full_name(id, found->pw_gecos == NULL ? "" : found->pw_gecos);
}
