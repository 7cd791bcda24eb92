#include "queue-inject/message.h"

#include <ctype.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

void
identity_init(struct identity *id, const struct conf *conf)
{
	*id = (struct identity){ .uid = getuid() };
	conf_host(conf, id->host);
	conf_domain(conf, id->domain);
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
