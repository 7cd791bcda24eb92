#include <criterion/criterion.h>

#include <errno.h>
#include <pwd.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "daemon/daemon.h"

/* Accounts of base-passwd; each has a group of its name but for these. */
static char none[] = "no-such-user-here", root[] = "root", uucp[] = "uucp",
	    news[] = "news", proxy[] = "proxy", mail[] = "mail", irc[] = "irc";

static void
fill(struct conf *conf, char *q, char *s, char *r, char *g, char *d)
{
	memset(conf, 0, sizeof(*conf));
	conf->qmailq_user = q;
	conf->qmails_user = s;
	conf->qmailr_user = r;
	conf->qmail_group = g;
	conf->qdrop_group = d;
}

Test(daemon_users, F6_unknown_or_mighty_users_are_refused)
{
	static const struct {
		char *q, *s, *r, *g, *d;
		int want;
		const char *says;
	} rows[] = {
		{ uucp, news, proxy, mail, irc, 0, "" },
		{ none, news, proxy, mail, irc, -ENOENT,
		    "qmailq_user: there is no" },
		{ uucp, none, proxy, mail, irc, -ENOENT,
		    "qmails_user: there is no" },
		{ uucp, news, none, mail, irc, -ENOENT,
		    "qmailr_user: there is no" },
		{ uucp, news, proxy, none, irc, -ENOENT,
		    "qmail_group: there is no" },
		{ root, news, proxy, mail, irc, -EINVAL,
		    "qmailq_user: user root" },
		{ uucp, root, proxy, mail, irc, -EINVAL,
		    "qmails_user: user root" },
		{ uucp, news, root, mail, irc, -EINVAL,
		    "qmailr_user: user root" },
		{ uucp, news, proxy, root, irc, -EINVAL,
		    "qmail_group: group root" },
		/* agents must find nothing that they may read */
		{ uucp, news, news, mail, irc, -EINVAL,
		    "qmailr_user: news owns" },
		{ uucp, news, uucp, mail, irc, -EINVAL,
		    "qmailr_user: uucp owns" },
		{ uucp, news, mail, mail, irc, -EINVAL, "which may read mail" },
		/* everybody runs the door */
		{ uucp, news, proxy, mail, none, -ENOENT,
		    "qdrop_group: there is no" },
		{ uucp, news, proxy, mail, root, -EINVAL,
		    "qdrop_group: group root" },
		{ uucp, news, proxy, mail, mail, -EINVAL,
		    "qdrop_group: mail is a group of the spool" },
		{ uucp, news, proxy, mail, proxy, -EINVAL,
		    "qdrop_group: proxy is a group" },
	};
	size_t i;

	if (geteuid() != 0)
		cr_skip("users are of use to root only");
	for (i = 0; i < ARRAY_LEN(rows); i++) {
		struct daemon_users users;
		struct buf error = { 0 };
		struct conf conf;

		fill(&conf, rows[i].q, rows[i].s, rows[i].r, rows[i].g,
		    rows[i].d);
		cr_expect_eq(daemon_users(&conf, &users, &error), rows[i].want,
		    "row %zu", i);
		cr_expect(strstr(buf_str(&error), rows[i].says) != NULL,
		    "row %zu: %s", i, buf_str(&error));
		buf_done(&error);
	}
}

static struct daemon_users
known_users(void)
{
	struct daemon_users users;
	struct buf error = { 0 };
	struct conf conf;

	fill(&conf, uucp, news, proxy, mail, irc);
	cr_assert_eq(daemon_users(&conf, &users, &error), 0);
	buf_done(&error);
	return users;
}

Test(daemon_users, a_private_instance_has_one_user)
{
	struct daemon_users users;
	struct buf error = { 0 };
	struct conf conf;

	if (geteuid() == 0) /* in a process of its own, by the framework */
		cr_assert_eq(setresuid(65534, 65534, 65534), 0);
	fill(&conf, none, none, none, none, none);
	cr_assert_eq(daemon_users(&conf, &users, &error), 0);
	cr_expect(users.private);
	cr_expect_eq(users.qmailq, geteuid());
	cr_expect_eq(users.qmails, geteuid());
	cr_expect_eq(users.qmailr, geteuid());
	cr_expect_eq(users.qmail, getegid());
	buf_done(&error);
}

static bool
has_become(uid_t uid, gid_t gid)
{
	struct rlimit core;
	uid_t ru, eu, su;
	gid_t rg, eg, sg;

	if (getresuid(&ru, &eu, &su) < 0 || getresgid(&rg, &eg, &sg) < 0 ||
	    getrlimit(RLIMIT_CORE, &core) < 0)
		return false;
	return ru == uid && eu == uid && su == uid && rg == gid && eg == gid &&
	    sg == gid && getgroups(0, NULL) == 0 && setuid(0) < 0 &&
	    setgid(0) < 0 && core.rlim_max == 0 &&
	    prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1;
}

Test(daemon_users, privileges_are_dropped_for_good)
{
	struct daemon_users users;
	int user;

	if (geteuid() != 0)
		cr_skip("nothing to drop");
	users = known_users();
	for (user = DAEMON_AS_QMAILQ; user <= DAEMON_AS_QMAILR; user++) {
		const uid_t uids[] = { users.qmailq, users.qmails,
			users.qmailr };
		const gid_t gids[] = { users.qmail, users.qmail,
			users.qmailr_group };
		int status;
		pid_t pid = fork();

		if (pid == 0)
			_exit(daemon_become(&users, (enum daemon_user)user) ==
					0 &&
				    has_become(uids[user], gids[user])
				? 0
				: 1);
		cr_assert_eq(waitpid(pid, &status, 0), pid);
		cr_expect_eq(status, 0, "user %d", user);
	}
}

Test(daemon_users, root_stays_root_without_a_core)
{
	struct daemon_users users = { .private = true };
	struct rlimit core;

	cr_assert_eq(daemon_become(&users, DAEMON_AS_ROOT), 0);
	cr_assert_eq(getrlimit(RLIMIT_CORE, &core), 0);
	cr_expect_eq(core.rlim_cur, 0);
	cr_expect_eq(prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0), 0);
}
