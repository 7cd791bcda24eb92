/* deliver-local/account.h - accounts of this system, and becoming one.
 *
 * Asked only in the child of a delivery: a directory server that does not
 * answer holds up one recipient, not the agent.
 */
#ifndef DELIVER_LOCAL_ACCOUNT_H
#define DELIVER_LOCAL_ACCOUNT_H

#include "base/base.h"

#include <sys/types.h>

struct account {
	uid_t uid;
	gid_t gid;
	char name[256];
	char home[1024];
	char shell[256];
};

/* 1 found, 0 there is none, -errno: the answer is not known. */
int account_find(const char *name, struct account *ret_account);
/* The account of this process, made up from its number if it has no entry. */
void account_own(struct account *ret_account);

/* Groups, group, user: real, effective, saved; verified, and proved to be
 * without a way back. -EPERM for uid 0, which nothing is delivered as. */
int account_become(const struct account *account);

#endif
