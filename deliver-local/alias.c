#include "deliver-local/expand.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/io.h"

/* Recipients of the forward file of a user. */
#define FORWARD_RCPTS 1000

static bool
is_include(const char *recipient)
{
	return strncmp(recipient, ALIAS_INCLUDE_PREFIX,
		   strlen(ALIAS_INCLUDE_PREFIX)) == 0;
}

static bool
is_forward(const char *recipient)
{
	return strncmp(recipient, FORWARD_PREFIX, strlen(FORWARD_PREFIX)) == 0;
}

/* ---- programs and mailboxes ---- */

/* A recipient that names a program or a mailbox, cut into its parts. */
struct instruction {
	char include[ADDRESS_MAX + 1]; /* "": the alias file names it */
	bool forward; /* `include` is the account whose forward file names it */
	enum alias_member_kind kind;
	const char *text; /* command or path */
};

/* The instruction of an include file stands behind the first colon that a bar
 * or a slash follows: no path of an include file has one (alias_line.c). */
static const char *
find_joint(const char *s)
{
	for (; (s = strchr(s, ':')) != NULL; s++)
		if (s[1] == '|' || s[1] == '/')
			return s;
	return NULL;
}

static bool
parse_instruction(const char *recipient, struct instruction *ret)
{
	const char *joint;

	ret->include[0] = '\0';
	ret->text = recipient;
	ret->forward = is_forward(recipient);
	if (ret->forward || is_include(recipient)) {
		recipient += strlen(
		    ret->forward ? FORWARD_PREFIX : ALIAS_INCLUDE_PREFIX);
		joint = find_joint(recipient);
		if (joint == NULL)
			return false;
		snprintf(ret->include, sizeof(ret->include), "%.*s",
		    (int)(joint - recipient), recipient);
		ret->text = joint + 1;
	}
	ret->kind = *ret->text == '|' ? ALIAS_PROGRAM : ALIAS_FILE;
	ret->text += ret->kind == ALIAS_PROGRAM;
	return true;
}

bool
alias_is_program(const char *recipient)
{
	struct instruction in;

	return names_is_instruction(recipient) &&
	    parse_instruction(recipient, &in) && in.kind == ALIAS_PROGRAM;
}

/* Does an alias have this member? */
static bool
is_member(const struct alias_table *table, enum alias_member_kind kind,
    const char *text)
{
	const struct alias *alias;
	size_t i, j;

	for (i = 0; (alias = alias_at(table, i)) != NULL; i++)
		for (j = 0; j < alias->nmembers; j++)
			if (alias->members[j].kind == kind &&
			    strcmp(alias->members[j].text, text) == 0)
				return true;
	return false;
}

/* Read as the user of the program, who is the owner of the file or nobody.
 * Takes the descriptor. */
static bool
file_names(int fd, const struct instruction *in)
{
	struct alias_member member;
	struct include_file file;
	const char *why = "";
	bool found = false;

	include_begin(&file, fd);
	while (!found && include_next(&file, &member, &why) > 0)
		found = member.kind == in->kind &&
		    strcmp(member.text, in->text) == 0;
	include_end(&file);
	return found;
}

static void
say_not_named(struct verdict *v, const struct instruction *in)
{
	verdict_set(v, AGENT_FAILED, "5.1.1", "%s %s%s any more",
	    in->forward                  ? "the forward file does not name"
		: in->include[0] == '\0' ? "no alias names"
					 : "the include file does not name",
	    in->kind == ALIAS_PROGRAM ? "the program |" : "the mailbox ",
	    in->text);
}

/* *ret_fd: the include file, -1 without one. */
static bool
find_owner(const struct child_plan *plan, const struct instruction *in,
    uid_t *ret_owner, int *ret_fd, struct verdict *v)
{
	const struct alias_table *table = route_aliases(plan->routes);
	const bool include = in->include[0] != '\0';
	struct buf why = { 0 };
	int r;

	if (table == NULL ||
	    !is_member(table, include ? ALIAS_INCLUDE : in->kind,
		include ? in->include : in->text)) {
		say_not_named(v, in);
		return false;
	}
	*ret_owner = alias_owner(table);
	if (!include)
		return true;
	r = *ret_fd = includes_open_one(
	    plan->private, in->include, *ret_owner, ret_owner, &why);
	if (r < 0)
		verdict_set(v, AGENT_DEFERRED, "4.2.4", "include file %s: %s",
		    in->include, why.len > 0 ? buf_str(&why) : strerror(-r));
	buf_done(&why);
	return r >= 0;
}

/* The owner of the file; for root there is default_privs. */
static bool
find_user(const struct child_plan *plan, uid_t owner, struct account *ret,
    struct verdict *v)
{
	int r;

	if (plan->private || owner == 0)
		return child_service_user(
		    plan, plan->conf->default_privs, ret, v);
	r = account_of(owner, ret);
	if (r < 0) {
		verdict_error(v, r, "look up the owner of the file");
		return false;
	}
	if (r == 1 && !child_is_system(plan, owner))
		return true;
	verdict_set(v, AGENT_DEFERRED, "4.3.5",
	    r == 0 ? "user %u, who names it, has no account"
		   : "user %u, who names it, must not get mail",
	    (unsigned)owner);
	return false;
}

static void
run(const struct child_plan *plan, const char *command,
    const struct account *account, struct message *m, struct verdict *v)
{
	static char shell[] = "/bin/sh", option[] = "-c";
	char copy[ADDRESS_MAX + 1];
	char *argv[] = { shell, option, copy, NULL };

	snprintf(copy, sizeof(copy), "%s", command);
	child_run(plan, "sh", argv, account, m, v);
}

/* The account whose forward file names the instruction, and that file. */
static bool
find_forward(const struct child_plan *plan, const struct instruction *in,
    struct account *ret_account, int *ret_fd, struct verdict *v)
{
	struct forward f = { .fd = -1 };
	int r = account_find(in->include, ret_account);

	if (r < 0) {
		verdict_error(v, r, "look up the user of the forward file");
		return false;
	}
	if (r == 0 || child_is_system(plan, ret_account->uid) ||
	    plan->forward_path == NULL || plan->forward_path[0] == '\0') {
		say_not_named(v, in);
		return false;
	}
	r = forward_open(plan, ret_account, &f, v);
	if (r == 0)
		say_not_named(v, in);
	*ret_fd = f.fd;
	return r > 0;
}

static bool
find_instruction(const struct child_plan *plan, const struct instruction *in,
    struct account *ret_account, int *ret_fd, struct verdict *v)
{
	uid_t owner = 0;

	if (in->forward)
		return find_forward(plan, in, ret_account, ret_fd, v);
	return find_owner(plan, in, &owner, ret_fd, v) &&
	    find_user(plan, owner, ret_account, v);
}

/* A path that ends in a slash is a maildir. The file belongs to whomever the
 * administrator gave it to: its mode says who may write. */
static void
put_mailbox(const struct child_plan *plan, const char *path, struct message *m,
    struct verdict *v)
{
	char maildir[ADDRESS_MAX + 1];
	size_t len = strlen(path);

	if (path[len - 1] != '/') {
		child_put_mbox(plan, path, false, (gid_t)-1, m, v);
		return;
	}
	while (len > 1 && path[len - 1] == '/')
		len--;
	snprintf(maildir, sizeof(maildir), "%.*s", (int)len, path);
	child_put_maildir(plan, maildir, 0, m, v);
}

static void
deliver_instruction(
    const struct child_plan *plan, struct message *m, struct verdict *v)
{
	struct account account;
	struct instruction in;
	int fd = -1;

	if (!parse_instruction(plan->recipient, &in)) {
		verdict_set(v, AGENT_FAILED, "5.1.3", "names no program");
		return;
	}
	if (!find_instruction(plan, &in, &account, &fd, v) ||
	    !child_become(plan, &account, v)) {
		io_close(&fd);
		return;
	}
	if (fd >= 0 && !file_names(fd, &in))
		say_not_named(v, &in);
	else if (!child_no_loop(m, v))
		return;
	else if (in.kind == ALIAS_PROGRAM)
		run(plan, in.text, &account, m, v);
	else
		put_mailbox(plan, in.text, m, v);
}

/* ---- the mailbox of root and postmaster ---- */

bool
alias_needs_mailbox(const struct child_plan *plan, const struct mailbox *m)
{
	const bool virtual = plan->maildir_user[0] != '\0' || plan->private;
	struct account account;
	int r;

	if (names_admin(m->base) == NULL ||
	    (virtual && !mailbox_path_uses(plan->maildir_path, 'h')))
		return false;
	r = child_find_account(plan, m->base, &account);
	if (plan->private)
		return r == 0 || (r == 1 && account.uid != geteuid());
	return r == 0 || (r == 1 && child_is_system(plan, account.uid));
}

/* No file system quota holds the mail system, which owns this mailbox, so the
 * mailbox has a limit. */
void
alias_deliver_mailbox(
    const struct child_plan *plan, struct message *m, struct verdict *v)
{
	struct buf path = { 0 };

	if (buf_printf(&path, "%s/" SPOOL_MAILBOX, plan->conf->queue_base) < 0)
		verdict_error(v, -ENOMEM, "path of the mailbox");
	else if (child_become_owner(plan, v) && child_no_loop(m, v))
		child_put_maildir(
		    plan, buf_str(&path), plan->mailbox_size_limit, m, v);
	buf_done(&path);
}

/* ---- the expansion ---- */

static void
expand(const struct child_plan *plan, const struct members_of *of,
    const struct includes *includes, struct pulse *pulse, struct verdict *v)
{
	const struct agent_delivery *d = plan->delivery;
	char mydomain[CONF_HOST_SIZE];
	const struct members_names names = {
		.routes = plan->routes,
		.aliases = route_aliases(plan->routes),
		.mydomain = mydomain,
		.admin_recipient = plan->conf->admin_recipient,
		.limit = of->forward != NULL &&
			plan->conf->alias_expansion_limit > FORWARD_RCPTS
		    ? FORWARD_RCPTS
		    : plan->conf->alias_expansion_limit,
	};
	struct expansion x = {
		.conf = plan->conf,
		.host = plan->host,
		.names = &names,
		.includes = includes,
		.id = d->id,
		.index = plan->rcpt_index,
		.of = *of,
		.lock_limit = child_lock_limit(plan),
		.progress = plan->maildir_time_limit > 0 ? child_beat : NULL,
		.arg = pulse,
	};
	struct spool sp;
	int r = spool_open(
	    &sp, &spool_sys_real, plan->conf->queue_base, plan->queue);

	conf_domain(plan->conf, mydomain);
	x.sp = &sp;
	if (r < 0)
		verdict_error(v, r, "open the queue");
	else
		expand_run(&x, v);
	spool_close(&sp);
}

static void
expand_as_owner(const struct child_plan *plan, const struct members_of *of,
    struct message *m, struct verdict *v)
{
	struct pulse pulse = child_pulse(plan);
	struct includes includes;
	int r = includes_begin(&includes, plan->private);

	if (r < 0)
		verdict_error(v, r, "start the process for include files");
	else if (child_become_owner(plan, v) && child_no_loop(m, v))
		expand(plan, of, &includes, &pulse, v);
	includes_done(&includes);
}

void
alias_expand(const struct child_plan *plan, const char *key, struct message *m,
    struct verdict *v)
{
	const struct members_of of = { key, plan->recipient,
		plan->delivery->sender, NULL };

	expand_as_owner(plan, &of, m, v);
}

void
alias_expand_forward(const struct child_plan *plan, struct forward *f,
    struct message *m, struct verdict *v)
{
	const struct members_of of = { f->name, plan->recipient,
		plan->delivery->sender, f };

	expand_as_owner(plan, &of, m, v);
	io_close(&f->fd);
}

void
alias_deliver(
    const struct child_plan *plan, struct message *m, struct verdict *v)
{
	if (names_is_instruction(plan->recipient) &&
	    (plan->delivery->flags & QUEUE_FILE_EXPANDED) != 0)
		deliver_instruction(plan, m, v);
	else
		alias_expand(plan, plan->delivery->nexthop, m, v);
}

const char *
alias_of_domain(const struct child_plan *plan, const struct mailbox *m)
{
	const struct alias *alias;
	struct account account;

	if ((plan->delivery->flags & QUEUE_FILE_EXPANDED) != 0)
		return NULL;
	alias = alias_find_domain(route_aliases(plan->routes), m->domain);
	if (alias == NULL || child_find_account(plan, m->user, &account) != 0 ||
	    child_find_account(plan, m->base, &account) != 0)
		return NULL;
	return alias->key;
}
