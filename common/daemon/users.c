#include "daemon/daemon.h"

#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#if defined(__SANITIZE_ADDRESS__)
#define TRACED_BY_ITSELF 1 /* the leak checker attaches to the process */
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define TRACED_BY_ITSELF 1
#endif
#endif
#ifndef TRACED_BY_ITSELF
#define TRACED_BY_ITSELF 0
#endif

#define HOW_TO_MAKE                                                      \
	": `make install-users', or share/qscheduler/make-users of the " \
	"installation, makes the users and groups"

static int
find_user(const char *param, const char *name, uid_t *ret_uid, gid_t *ret_gid,
    struct buf *ret_error)
{
	const struct passwd *pw;

	errno = 0;
	pw = getpwnam(name);
	if (pw == NULL) {
		(void)buf_printf(ret_error, "%s: there is no user %s%s%s",
		    param, name, errno != 0 ? ": " : "",
		    errno != 0 ? strerror(errno) : HOW_TO_MAKE);
		return -ENOENT;
	}
	if (pw->pw_uid == 0 || pw->pw_gid == 0) {
		(void)buf_printf(ret_error,
		    "%s: user %s has uid %lu, gid %lu: neither may be 0", param,
		    name, (unsigned long)pw->pw_uid, (unsigned long)pw->pw_gid);
		return -EINVAL;
	}
	*ret_uid = pw->pw_uid;
	*ret_gid = pw->pw_gid;
	return 0;
}

static int
find_group(
    const char *param, const char *name, gid_t *ret_gid, struct buf *ret_error)
{
	const struct group *gr = getgrnam(name);

	if (gr == NULL) {
		(void)buf_printf(ret_error,
		    "%s: there is no group %s" HOW_TO_MAKE, param, name);
		return -ENOENT;
	}
	if (gr->gr_gid == 0) {
		(void)buf_printf(ret_error,
		    "%s: group %s has gid 0, which is not allowed", param,
		    name);
		return -EINVAL;
	}
	*ret_gid = gr->gr_gid;
	return 0;
}

gid_t
daemon_group(const char *name)
{
	const struct group *gr = *name == '\0' ? NULL : getgrnam(name);

	return gr == NULL ? (gid_t)-1 : gr->gr_gid;
}

/* An agent that a peer has taken over must have no right to read mail. */
static int
check_agents(const struct conf *conf, const struct daemon_users *users,
    struct buf *ret_error)
{
	if (users->qmailr == users->qmailq || users->qmailr == users->qmails) {
		(void)buf_printf(ret_error,
		    "qmailr_user: %s owns the spool too; agents need a user of "
		    "their own",
		    conf->qmailr_user);
		return -EINVAL;
	}
	if (users->qmailr_group == users->qmail) {
		(void)buf_printf(ret_error,
		    "qmailr_user: the group of %s is %s, which may read mail; "
		    "agents need a group of their own",
		    conf->qmailr_user, conf->qmail_group);
		return -EINVAL;
	}
	return 0;
}

/* Every user runs queue-drop with this group: it must give no other right. */
static int
check_door(const struct conf *conf, const struct daemon_users *users,
    struct buf *ret_error)
{
	if (users->qdrop != users->qmail && users->qdrop != users->qmailr_group)
		return 0;
	(void)buf_printf(ret_error,
	    "qdrop_group: %s is a group of the spool or of the agents; the "
	    "door for local mail needs a group of its own",
	    conf->qdrop_group);
	return -EINVAL;
}

int
daemon_users(const struct conf *conf, struct daemon_users *ret_users,
    struct buf *ret_error)
{
	struct daemon_users u = { .private = geteuid() != 0 };
	gid_t unused;
	int r;

	if (u.private) {
		u.qmailq = u.qmails = u.qmailr = geteuid();
		u.qmail = u.qmailr_group = u.qdrop = getegid();
		*ret_users = u;
		return 0;
	}
	if ((r = find_user("qmailq_user", conf->qmailq_user, &u.qmailq, &unused,
		 ret_error)) < 0 ||
	    (r = find_user("qmails_user", conf->qmails_user, &u.qmails, &unused,
		 ret_error)) < 0 ||
	    (r = find_user("qmailr_user", conf->qmailr_user, &u.qmailr,
		 &u.qmailr_group, ret_error)) < 0 ||
	    (r = find_group(
		 "qmail_group", conf->qmail_group, &u.qmail, ret_error)) < 0 ||
	    (r = find_group(
		 "qdrop_group", conf->qdrop_group, &u.qdrop, ret_error)) < 0)
		return r;
	r = check_agents(conf, &u, ret_error);
	if (r == 0)
		r = check_door(conf, &u, ret_error);
	if (r == 0)
		*ret_users = u;
	return r;
}

/* Sets all three ids, and checks that there is no way back. */
static int
switch_ids(uid_t uid, gid_t gid)
{
	uid_t ru, eu, su;
	gid_t rg, eg, sg;

	if (setgroups(0, NULL) < 0 || setresgid(gid, gid, gid) < 0 ||
	    setresuid(uid, uid, uid) < 0)
		return -errno;
	if (getresuid(&ru, &eu, &su) < 0 || getresgid(&rg, &eg, &sg) < 0)
		return -errno;
	if (ru != uid || eu != uid || su != uid || rg != gid || eg != gid ||
	    sg != gid || setresuid(0, 0, 0) == 0)
		return -EPERM;
	return 0;
}

int
daemon_become(const struct daemon_users *users, enum daemon_user user)
{
	const struct {
		uid_t uid;
		gid_t gid;
	} rows[] = {
		[DAEMON_AS_QMAILQ] = { users->qmailq, users->qmail },
		[DAEMON_AS_QMAILS] = { users->qmails, users->qmail },
		[DAEMON_AS_QMAILR] = { users->qmailr, users->qmailr_group },
	};
	const struct rlimit no_core = { 0, 0 };
	int r = 0;

	if (setrlimit(RLIMIT_CORE, &no_core) < 0)
		return -errno;
	/* deliver-local runs programs of users, which may be set-uid. */
	if (user != DAEMON_AS_ROOT) {
		if (!users->private)
			r = switch_ids(rows[user].uid, rows[user].gid);
		if (r == 0 && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
			r = -errno;
	}
	if (r == 0 && prctl(PR_SET_DUMPABLE, TRACED_BY_ITSELF, 0, 0, 0) < 0)
		r = -errno;
	return r;
}
