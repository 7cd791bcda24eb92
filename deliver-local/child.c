#include "deliver-local/child.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/address.h"
#include "base/clock.h"
#include "base/io.h"
#include "config/conf.h"
#include "deliver-local/expand.h"

#define SWEEP_ONE_IN 16 /* deliveries look for old files in tmp */
#define MESSAGE_FD   3

/* ---- privileges ---- */

bool
child_is_system(const struct child_plan *plan, uid_t uid)
{
	size_t i;

	for (i = 0; i < ARRAY_LEN(plan->system_uids); i++)
		if (uid == plan->system_uids[i])
			return true;
	return uid == 0;
}

/* A child ends with its parent, since the next agent does again what the child
 * would still do. A child that runs a program gets SIGTERM, to end the program
 * first. The kernel forgets both settings when ids change, so this comes after.
 */
static void
bind_to_parent(const struct child_plan *plan)
{
	if (plan->parent == 0)
		return;
	/* The memory that was copied holds mail of others. */
	(void)prctl(PR_SET_DUMPABLE, 0);
	(void)prctl(PR_SET_PDEATHSIG,
	    child_runs_program(plan->delivery, plan->recipient) ? SIGTERM
								: SIGKILL);
	if (getppid() != plan->parent)
		_exit(EXIT_TEMPORARY);
}

/* From here on the kernel says what may be done; in a private instance it did
 * so from the start. */
bool
child_become(const struct child_plan *plan, const struct account *account,
    struct verdict *v)
{
	int r = plan->private ? 0 : account_become(account);

	if (r < 0) {
		verdict_error(v, r, "become the recipient");
		return false;
	}
	bind_to_parent(plan);
	return true;
}

bool
child_become_owner(const struct child_plan *plan, struct verdict *v)
{
	int r =
	    plan->private ? 0 : account_become_ids(plan->qmails, plan->qmail);

	if (r < 0) {
		verdict_error(v, r, "become the owner of the queue");
		return false;
	}
	bind_to_parent(plan);
	return true;
}

/* The user that the configuration names for this transport. */
bool
child_service_user(const struct child_plan *plan, const char *name,
    struct account *ret_account, struct verdict *v)
{
	int r;

	if (plan->private) {
		account_own(ret_account);
		return true;
	}
	r = known_account(plan, name, ret_account);
	if (r < 0) {
		verdict_error(v, r, "look up the user of the transport");
		return false;
	}
	if (r == 0 || child_is_system(plan, ret_account->uid)) {
		verdict_set(v, AGENT_DEFERRED, "4.3.5",
		    r == 0 ? "user %s of this transport does not exist"
			   : "user %s of this transport must not get mail",
		    name);
		return false;
	}
	return true;
}

/* ---- maildir ---- */

/* The whole local part first, then without its extension; *ret_user is the
 * name that was found. */
static bool
find_recipient(const struct child_plan *plan, const struct mailbox *m,
    struct account *ret_account, const char **ret_user, struct verdict *v)
{
	int r = known_account(plan, m->user, ret_account);

	*ret_user = m->user;
	if (r == 0 && strcmp(m->user, m->base) != 0) {
		r = known_account(plan, m->base, ret_account);
		*ret_user = m->base;
	}
	if (r < 0)
		verdict_error(v, r, "look up the recipient");
	else if (r == 0)
		verdict_set(
		    v, AGENT_FAILED, "5.1.1", "unknown user: \"%s\"", m->user);
	return r == 1;
}

bool
child_no_loop(const struct message *m, uint32_t limit, struct verdict *v)
{
	int r = message_find_loop(m, limit);

	if (r < 0)
		verdict_error(v, r, "read the message");
	else if (r != MESSAGE_NO_LOOP)
		verdict_set(v, AGENT_FAILED, "5.4.6",
		    r == MESSAGE_WAS_HERE ? "mail forwarding loop for %s"
					  : "too many hops on the way to %s",
		    m->recipient);
	return r == MESSAGE_NO_LOOP;
}

int
child_beat(void *arg)
{
	static const unsigned char octet = VERDICT_PROGRESS;
	struct pulse *p = arg;
	usec_t now = clock_mono();

	if (now - p->last > p->limit)
		return -ETIMEDOUT;
	p->last = now;
	if (now - p->told > p->limit / PULSE_PARTS &&
	    write(CHILD_RESULT_FD, &octet, 1) == 1)
		p->told = now;
	return 0;
}

void
child_put_maildir(const struct child_plan *plan, const char *path,
    struct message *m, struct verdict *v)
{
	struct pulse pulse = { .limit = plan->maildir_time_limit,
		.last = plan->started_at,
		.told = plan->started_at };
	struct maildir md = { .sys = &spool_sys_real,
		.progress = plan->maildir_time_limit > 0 ? child_beat : NULL,
		.arg = &pulse,
		.path = path,
		.host = plan->host,
		.delivery = plan->number,
		.sweep = plan->number % SWEEP_ONE_IN == 0 };
	struct buf what = { 0 };
	int r = maildir_deliver(&md, m);

	if (r == 0) {
		verdict_set(v, AGENT_SENT, "2.0.0", "delivered to maildir");
	} else {
		(void)buf_printf(&what, "maildir %s: %s", path, md.step);
		verdict_error(v, r, buf_str(&what));
	}
	buf_done(&what);
}

/* A maildir: the name in its path, the account that it is for, its owner. */
struct target {
	const char *user;
	struct account recipient; /* home: "" when it was not needed */
	struct account owner;
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

static void
deliver_account(const struct child_plan *plan, const struct mailbox *mailbox,
    struct message *m, struct verdict *v)
{
	struct target target;
	struct buf path = { 0 };

	if (find_target(plan, mailbox, &target, v) &&
	    target_path(plan, mailbox, &target, &path, v) == 0 &&
	    child_become(plan, &target.owner, v) &&
	    child_no_loop(m, plan->hopcount_limit, v))
		child_put_maildir(plan, buf_str(&path), m, v);
	buf_done(&path);
}

static void
deliver_maildir(
    const struct child_plan *plan, struct message *m, struct verdict *v)
{
	struct mailbox mailbox;
	const char *why = "", *key = NULL;

	if (mailbox_parse(plan->recipient, &mailbox, &why) < 0) {
		verdict_set(v, AGENT_FAILED, "5.1.3",
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

/* ---- program ---- */

#define PROGRAM_PATH "PATH=/usr/local/bin:/usr/bin:/bin"

/* A small, fixed set; addresses hold no control characters, so no value can
 * hold a line end. */
static int
make_environment(const struct child_plan *plan, const char *local,
    const struct account *account, struct buf env[], size_t max)
{
	const struct {
		const char *name, *value;
	} rows[] = {
		{ "HOME", account->home },
		{ "USER", account->name },
		{ "LOGNAME", account->name },
		{ "SHELL", account->shell },
		{ "SENDER", plan->delivery->sender },
		{ "RECIPIENT", plan->recipient },
		{ "LOCAL", local },
		{ "DOMAIN", address_domain(plan->recipient) },
		{ "QUEUE_ID", plan->delivery->id },
	};
	size_t i;
	int r = buf_add_str(&env[0], PROGRAM_PATH);

	ASSERT(ARRAY_LEN(rows) + 1 <= max);
	for (i = 0; i < ARRAY_LEN(rows) && r == 0; i++)
		r = buf_printf(
		    &env[i + 1], "%s=%s", rows[i].name, rows[i].value);
	return r;
}

#define ENV_MAX 16

void
child_run(const struct child_plan *plan, const char *name, char *const *argv,
    const struct account *account, struct message *m, struct verdict *v)
{
	struct buf env[ENV_MAX] = { 0 }, local = { 0 };
	char *envp[ENV_MAX + 1] = { NULL };
	size_t i;
	int r = buf_add(
	    &local, plan->recipient, address_local_len(plan->recipient));

	if (r == 0)
		r = make_environment(
		    plan, buf_str(&local), account, env, ENV_MAX);
	for (i = 0; i < ENV_MAX && env[i].len > 0; i++)
		envp[i] = env[i].data;
	if (r < 0)
		verdict_error(v, r, "make the environment");
	else
		command_run(&(struct command){ .name = name,
				.argv = argv,
				.envp = envp,
				.home = account->home,
				.limit = plan->command_time_limit },
		    m, v);
	for (i = 0; i < ENV_MAX; i++)
		buf_done(&env[i]);
	buf_done(&local);
}

static int
make_arguments(const struct child_plan *plan, const struct program *program,
    char ***ret_argv)
{
	const char *values[PROGRAM_NVALUES];
	struct buf local = { 0 };
	int r = buf_add(
	    &local, plan->recipient, address_local_len(plan->recipient));

	values[PROGRAM_SENDER] = plan->delivery->sender;
	values[PROGRAM_RECIPIENT] = plan->recipient;
	values[PROGRAM_USER] = buf_str(&local);
	values[PROGRAM_DOMAIN] = address_domain(plan->recipient);
	values[PROGRAM_NEXTHOP] = plan->delivery->nexthop;
	if (r == 0)
		r = program_argv(program, values, ret_argv);
	buf_done(&local);
	return r;
}

static void
run_program(const struct child_plan *plan, const struct program *program,
    const struct account *account, struct message *m, struct verdict *v)
{
	char **argv = NULL;
	int r = make_arguments(plan, program, &argv);

	if (r == -EPERM)
		verdict_set(v, AGENT_FAILED, "5.1.3",
		    "an address that begins with - is not passed on");
	else if (r < 0)
		verdict_error(v, r, "make the arguments");
	else
		child_run(plan, program->name, argv, account, m, v);
	program_argv_free(&argv);
}

static void
deliver_program(
    const struct child_plan *plan, struct message *m, struct verdict *v)
{
	const struct program *program =
	    programs_find(plan->programs, plan->delivery->nexthop);
	struct account account;

	if (program == NULL) {
		verdict_set(v, AGENT_DEFERRED, "4.3.5",
		    "there is no program \"%s\"", plan->delivery->nexthop);
		return;
	}
	if (child_service_user(plan, program->user, &account, v) &&
	    child_become(plan, &account, v) &&
	    child_no_loop(m, plan->hopcount_limit, v))
		run_program(plan, program, &account, m, v);
}

static void (*const deliver[AGENT_NKINDS])(const struct child_plan *plan,
    struct message *m, struct verdict *ret_verdict) = {
	[AGENT_LOCAL] = deliver_maildir,
	[AGENT_PIPE] = deliver_program,
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

	io_default_set_signals();
	io_ignore_write_signals();
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
	int r = fcntl(result, F_DUPFD_CLOEXEC, 10);

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
	struct known_news news;
	struct verdict v;

	reset_signals(child_runs_program(&delivery, plan->recipient));
	(void)setsid();
	(void)setrlimit(RLIMIT_CORE, &no_core);
	umask(077);
	if (keep_descriptors(delivery.fd, result_fd) < 0 || chdir("/") < 0)
		_exit(EXIT_TEMPORARY);
	delivery.fd = delivery.content != NULL ? -1 : MESSAGE_FD;
	mine.delivery = &delivery;
	bind_to_parent(&mine);
	if (known_ask(&mine, &news, CHILD_RESULT_FD) < 0)
		_exit(EXIT_TEMPORARY);
	child_deliver(&mine, &v);
	_exit(verdict_write(&v, CHILD_RESULT_FD) < 0 ? EXIT_TEMPORARY : 0);
}
