/* Local names that deliver-local has a mailbox for. */
#include "config/conf.h"

#include <pwd.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/address.h"

/* Names whose mail is kept for them, whether they are accounts or not. */
static bool
is_administrator(const char *account)
{
	return strcmp(account, "root") == 0 ||
	    strcmp(account, "postmaster") == 0 ||
	    strcmp(account, "mailer-daemon") == 0;
}

bool
conf_is_private(const struct conf *conf)
{
	struct stat st;

	return (stat(conf->queue_base, &st) == 0 ? st.st_uid : geteuid()) != 0;
}

bool
conf_has_mailbox_for_all(const struct conf *conf, bool private)
{
	return (conf->maildir_user[0] != '\0' || private) &&
	    strstr(conf->maildir_path, "%h") == NULL;
}

bool
conf_has_account(const struct conf *conf, bool private, const char *address)
{
	char user[ADDRESS_MAX + 1];

	if (conf_has_mailbox_for_all(conf, private))
		return true;
	(void)address_user(address, user);
	if (getpwnam(user) != NULL) /* NAME+EXTENSION may be an account */
		return true;
	user[address_account_len(user)] = '\0';
	return is_administrator(user) || getpwnam(user) != NULL;
}
