#include "deliver-local/child.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/io.h"
#include "config/conf.h"
#include "deliver-local/expand.h"

#define MESSAGE_FD 3

/* ---- maildir ---- */

/* The whole local part first, then without its extension; *ret_user is the
 * name that was found. */
static bool
find_recipient(const struct child_plan *plan, const struct mailbox *m,
    struct account *ret_account, const char **ret_user, struct verdict *v)
{
	int r = child_find_account(plan, m->user, ret_account);

	*ret_user = m->user;
	if (r == 0 && strcmp(m->user, m->base) != 0) {
		r = child_find_account(plan, m->base, ret_account);
		*ret_user = m->base;
	}
	if (r < 0)
		verdict_error(v, r, "look up the recipient");
	else if (r == 0)
		verdict_set(
		    v, AGENT_FAILED, "5.1.1", "unknown user: \"%s\"", m->user);
	return r == 1;
}

/* A maildir: the name in its path, the account that it is for, its owner. */
struct target {
	const char *user;
	struct account recipient; /* home: "" when it was not needed */
	struct account owner;
	bool returned; /* by the forward file of the account */
};

static bool
is_own(const struct child_plan *plan)
{
	return !plan->private && plan->maildir_user[0] == '\0';
}

static bool
needs_account(const struct child_plan *plan)
{
	return is_own(plan) || mailbox_path_uses(plan->maildir_path, 'h');
}

static bool
find_target(const struct child_plan *plan, const struct mailbox *m,
    struct target *t, struct verdict *v)
{
	t->user = m->base;
	t->recipient.home[0] = '\0';
	if (needs_account(plan) &&
	    !find_recipient(plan, m, &t->recipient, &t->user, v))
		return false;
	if (!is_own(plan))
		return child_service_user(
		    plan, plan->maildir_user, &t->owner, v);
	t->owner = t->recipient;
	if (!child_is_system(plan, t->owner.uid))
		return true;
	verdict_set(v, AGENT_FAILED, "5.2.1",
	    "\"%s\" is an account of the system and has no mailbox", t->user);
	return false;
}

static int
target_path(const struct child_plan *plan, const struct mailbox *m,
    const struct target *t, struct buf *out, struct verdict *v)
{
	const struct mailbox_values values = {
		.user = t->user, .domain = m->domain, .home = t->recipient.home
	};
	int r = mailbox_path(plan->maildir_path, &values, out);

	if (r == -EINVAL)
		verdict_set(v, AGENT_DEFERRED, "4.3.5",
		    "maildir_path %s makes no absolute path",
		    plan->maildir_path);
	else if (r == -EDESTADDRREQ)
		verdict_set(v, AGENT_FAILED, "5.1.3",
		    "the address has not all that maildir_path needs");
	else if (r < 0)
		verdict_error(v, r, "path of the maildir");
	return r;
}

/* The group that may make files in the mail spool: that of a directory of
 * root's which the group may write. A directory that a user may have chosen
 * (%h) gives nobody a group. -1: none. */
static gid_t
spool_group(const struct child_plan *plan, const char *path)
{
	const char *slash = strrchr(path, '/');
	char dir[PATH_MAX];
	struct stat st;

	if (plan->private || slash == path ||
	    mailbox_path_uses(plan->maildir_path, 'h'))
		return (gid_t)-1;
	snprintf(dir, sizeof(dir), "%.*s", (int)(slash - path), path);
	return stat(dir, &st) == 0 && S_ISDIR(st.st_mode) && st.st_uid == 0 &&
		st.st_gid != 0 && st.st_gid != plan->users.qmail &&
		(st.st_mode & S_IWGRP) != 0
	    ? st.st_gid
	    : (gid_t)-1;
}

/* Mail that the account's own forward file sent here goes round no more. */
static bool
may_deliver(const struct target *t, const struct message *m, struct verdict *v)
{
	return t->returned || child_no_loop(m, v);
}

static void
put_mbox(const struct child_plan *plan, struct target *t, const char *path,
    struct message *m, struct verdict *v)
{
	const gid_t group = spool_group(plan, path);

	if (group != (gid_t)-1)
		account_join(&t->owner, group);
	if (child_become(plan, &t->owner, v) && may_deliver(t, m, v))
		child_put_mbox(plan, path, true, group, m, v);
}

static void
put_maildir(const struct child_plan *plan, struct target *t, const char *path,
    struct message *m, struct verdict *v)
{
	if (!child_become(plan, &t->owner, v) || !may_deliver(t, m, v))
		return;
	child_put_maildir(plan, path, 0, m, v);
	if (plan->stay != NULL)
		plan->stay->may = v->outcome == AGENT_SENT &&
		    (plan->private || plan->account != NULL);
}

/* true: *v has the result of the forward file of the account. */
static bool
forwards(const struct child_plan *plan, struct target *t, struct message *m,
    struct verdict *v)
{
	const enum forward_use use = forward_deliver(plan, &t->recipient, m, v);

	t->returned = use == FORWARD_RETURNED;
	return use == FORWARD_USED;
}

static void
deliver_account(const struct child_plan *plan, const struct mailbox *mailbox,
    struct message *m, struct verdict *v)
{
	struct target target = { 0 };
	struct buf path = { 0 };

	if (find_target(plan, mailbox, &target, v) &&
	    (!is_own(plan) || !forwards(plan, &target, m, v)) &&
	    target_path(plan, mailbox, &target, &path, v) == 0)
		(mailbox_is_mbox(plan->maildir_path) ? put_mbox : put_maildir)(
		    plan, &target, buf_str(&path), m, v);
	buf_done(&path);
}

bool
child_is_plain(const struct child_plan *plan)
{
	struct mailbox mailbox;
	const char *why;

	return mailbox_parse(plan->recipient, &mailbox, &why) == 0 &&
	    !alias_needs_mailbox(plan, &mailbox) &&
	    (!needs_account(plan) || alias_of_domain(plan, &mailbox) == NULL);
}

static void
deliver_maildir(
    const struct child_plan *plan, struct message *m, struct verdict *v)
{
	struct mailbox mailbox;
	const char *why = "", *key = NULL;

	int r = mailbox_parse(plan->recipient, &mailbox, &why);

	if (r < 0) {
		verdict_set(v, r == -ENOMEM ? AGENT_DEFERRED : AGENT_FAILED,
		    r == -ENOMEM ? "4.3.0" : "5.1.3",
		    "bad mailbox address: it %s", why);
		return;
	}
	if (alias_needs_mailbox(plan, &mailbox)) {
		alias_deliver_mailbox(plan, m, v);
		return;
	}
	if (needs_account(plan))
		key = alias_of_domain(plan, &mailbox);
	if (key != NULL)
		alias_expand(plan, key, m, v);
	else
		deliver_account(plan, &mailbox, m, v);
}

static void (*const deliver[AGENT_NKINDS])(const struct child_plan *plan,
    struct message *m, struct verdict *ret_verdict) = {
	[AGENT_LOCAL] = deliver_maildir,
	[AGENT_PIPE] = child_pipe,
	[AGENT_ALIAS] = alias_deliver,
};

bool
child_runs_program(const struct agent_delivery *d, const char *recipient)
{
	return d->kind == AGENT_PIPE ||
	    (d->kind == AGENT_ALIAS && (d->flags & QUEUE_FILE_EXPANDED) != 0 &&
		alias_is_program(recipient));
}

void
child_deliver(const struct child_plan *plan, struct verdict *ret_verdict)
{
	struct message m = { .data = plan->delivery->content,
		.fd = plan->delivery->fd,
		.off = plan->delivery->content_off,
		.len = plan->delivery->content_len,
		.sender = plan->delivery->sender,
		.recipient = plan->recipient };

	deliver[plan->delivery->kind](plan, &m, ret_verdict);
	message_done(&m);
}

/* ---- the process ---- */

/* The handlers of the loop write to descriptors that the parent shares, so they
 * go before any signal is let in. */
static void
reset_signals(bool runs_program)
{
	sigset_t blocked;

	io_default_but_write_signals();
	sigemptyset(&blocked);
	if (runs_program) { /* command_run() takes them */
		sigaddset(&blocked, SIGTERM);
		sigaddset(&blocked, SIGCHLD);
	}
	(void)sigprocmask(SIG_SETMASK, &blocked, NULL);
}

/* Descriptors that stay: 0 to 2, the message if it is not in memory, and that
 * of the result. */
static int
keep_descriptors(int message, int result)
{
	int m = message < 0 ? -1 : fcntl(message, F_DUPFD_CLOEXEC, 10);
	/* dup3() refuses a number that is right already. */
	int r = message < 0 && result != CHILD_RESULT_FD
	    ? result
	    : fcntl(result, F_DUPFD_CLOEXEC, 10);

	if ((message >= 0 && (m < 0 || dup3(m, MESSAGE_FD, O_CLOEXEC) < 0)) ||
	    r < 0 || dup3(r, CHILD_RESULT_FD, O_CLOEXEC) < 0 ||
	    close_range(CHILD_RESULT_FD + 1, ~0u, 0) < 0)
		return -errno;
	if (message < 0)
		close(MESSAGE_FD);
	return 0;
}

_Noreturn void
child_main(const struct child_plan *plan, int result_fd)
{
	const struct rlimit no_core = { 0, 0 };
	struct agent_delivery delivery = *plan->delivery;
	struct child_plan mine = *plan;
	struct account account;
	struct stay stay = { 0 };
	struct verdict v;

	mine.runs_program = child_runs_program(&delivery, plan->recipient);
	reset_signals(mine.runs_program);
	(void)setsid();
	(void)setrlimit(RLIMIT_CORE, &no_core);
	umask(077);
	if (keep_descriptors(delivery.fd, result_fd) < 0 || chdir("/") < 0)
		_exit(EXIT_TEMPORARY);
	delivery.fd = delivery.content != NULL ? -1 : MESSAGE_FD;
	mine.delivery = &delivery;
	mine.stay = mine.may_stay ? &stay : NULL;
	mine.self = getpid();
	child_bind(&mine);
	if (mine.asks[0] != '\0')
		mine.asked = account_find(mine.asks, &account);
	mine.account = mine.asked == 1 ? &account : NULL;
	child_deliver(&mine, &v);
	if (mine.stay != NULL)
		serve_more(&mine, &delivery, &v);
	_exit(verdict_write(&v, CHILD_RESULT_FD) < 0 ? EXIT_TEMPORARY : 0);
}
