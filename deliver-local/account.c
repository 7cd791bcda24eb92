#include "deliver-local/child.h"

#include <dlfcn.h>
#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static int
copy_entry(const struct passwd *pw, struct account *ret)
{
	struct account a = { .uid = pw->pw_uid, .gid = pw->pw_gid };

	if (strlen(pw->pw_name) >= sizeof(a.name) ||
	    strlen(pw->pw_dir) >= sizeof(a.home) ||
	    strlen(pw->pw_shell) >= sizeof(a.shell))
		return -ENAMETOOLONG;
	snprintf(a.name, sizeof(a.name), "%s", pw->pw_name);
	snprintf(a.home, sizeof(a.home), "%s", pw->pw_dir);
	snprintf(a.shell, sizeof(a.shell), "%s", pw->pw_shell);
	*ret = a;
	return 1;
}

/* By name, or by number when name is NULL. Some sources answer "none" with one
 * of the errors. */
static int
look_up(const char *name, uid_t uid, struct account *ret)
{
	const struct passwd *pw;

	errno = 0;
	pw = name != NULL ? getpwnam(name) : getpwuid(uid);
	if (pw != NULL)
		return copy_entry(pw, ret);
	return errno == ENOENT || errno == ESRCH ? 0 : -errno;
}

/* ---- sources of accounts ---- */

static bool
is_of_accounts(const char *line)
{
	static const char *const names[] = {
		"passwd:", "group:", "initgroups:"
	};
	size_t i;

	line += strspn(line, " \t");
	for (i = 0; i < ARRAY_LEN(names); i++)
		if (strncmp(line, names[i], strlen(names[i])) == 0)
			return true;
	return false;
}

static void
load_source(const char *name)
{
	char library[64];

	if (strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_") !=
		strlen(name) ||
	    snprintf(library, sizeof(library), "libnss_%s.so.2", name) >=
		(int)sizeof(library))
		return;
	(void)dlopen(library, RTLD_LAZY);
}

void
account_load_sources(void)
{
	FILE *f = fopen("/etc/nsswitch.conf", "re");
	char line[512], *word, *rest;

	while (f != NULL && fgets(line, sizeof(line), f) != NULL) {
		line[strcspn(line, "#\n")] = '\0';
		if (!is_of_accounts(line))
			continue;
		rest = strchr(line, ':') + 1;
		while ((word = strsep(&rest, " \t")) != NULL)
			if (*word != '\0' && *word != '[')
				load_source(word);
	}
	if (f != NULL)
		fclose(f);
}

int
account_find(const char *name, struct account *ret_account)
{
	return look_up(name, 0, ret_account);
}

int
account_of(uid_t uid, struct account *ret_account)
{
	return look_up(NULL, uid, ret_account);
}

void
account_own(struct account *ret_account)
{
	struct account a = { .uid = geteuid(), .gid = getegid() };

	if (look_up(NULL, a.uid, ret_account) == 1)
		return;
	snprintf(a.name, sizeof(a.name), "%lu", (unsigned long)a.uid);
	snprintf(a.home, sizeof(a.home), "/");
	snprintf(a.shell, sizeof(a.shell), "/bin/sh");
	*ret_account = a;
}

static int
verify(uid_t uid, gid_t gid)
{
	uid_t ru, eu, su;
	gid_t rg, eg, sg;

	if (getresuid(&ru, &eu, &su) < 0 || getresgid(&rg, &eg, &sg) < 0)
		return -errno;
	if (ru != uid || eu != uid || su != uid || rg != gid || eg != gid ||
	    sg != gid)
		return -EPERM;
	return setresuid((uid_t)-1, 0, (uid_t)-1) == 0 ? -EPERM : 0;
}

static int
become(uid_t uid, gid_t gid)
{
	if (setresgid(gid, gid, gid) < 0 || setresuid(uid, uid, uid) < 0)
		return -errno;
	return verify(uid, gid);
}

void
account_join(struct account *account, gid_t group)
{
	int n = ACCOUNT_GROUPS_MAX - 1;

	/* Of more groups the first ones are there. */
	if (getgrouplist(account->name, account->gid, account->groups, &n) < 0)
		n = ACCOUNT_GROUPS_MAX - 1;
	account->groups[n] = group;
	account->ngroups = (uint32_t)n + 1;
}

int
account_become(const struct account *account)
{
	int r;

	if (account->uid == 0)
		return -EPERM;
	r = account->ngroups > 0 ? setgroups(account->ngroups, account->groups)
				 : initgroups(account->name, account->gid);
	if (r < 0)
		return -errno;
	return become(account->uid, account->gid);
}

int
account_become_ids(uid_t uid, gid_t gid)
{
	if (uid == 0)
		return -EPERM;
	if (setgroups(0, NULL) < 0)
		return -errno;
	return become(uid, gid);
}
