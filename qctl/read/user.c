#include "qctl/read/user.h"

#include <stdio.h>
#include <string.h>

#include "base/guard.h"

#define ACCOUNTS "/etc/passwd"

/* The account with this name, or where name is NULL, with this uid. */
static const struct passwd *
find_in_file(const char *name, uid_t uid)
{
	FILE *f = fopen(ACCOUNTS, "re");
	const struct passwd *pw;

	if (f == NULL)
		return NULL;
	while ((pw = fgetpwent(f)) != NULL)
		if (name == NULL ? pw->pw_uid == uid
				 : strcmp(pw->pw_name, name) == 0)
			break;
	(void)fclose(f);
	return pw;
}

const struct passwd *
user_by_uid(uid_t uid)
{
	return guard_is_secure() ? find_in_file(NULL, uid) : getpwuid(uid);
}

const struct passwd *
user_by_name(const char *name)
{
	return guard_is_secure() ? find_in_file(name, 0) : getpwnam(name);
}

const char *
user_name(uid_t uid)
{
	const struct passwd *pw = user_by_uid(uid);

	return pw == NULL ? "" : pw->pw_name;
}
