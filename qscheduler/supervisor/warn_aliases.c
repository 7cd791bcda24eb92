/* Aliases that are right and cannot do what was meant. */
#include "qscheduler/supervisor/supervisor.h"

#include <errno.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/address.h"
#include "base/domain.h"
#include "base/text.h"
#include "route/alias.h"
#include "route/route.h"

#define LINES_MAX 20 /* a list may have very many members that are wrong */

struct names {
	const struct conf *conf;
	struct alias_table *aliases;
	struct route_table *routes; /* without aliases */
	char domain[CONF_HOST_SIZE];
	struct buf *out;
	uint32_t lines;
	bool programs, absent;
	/* User of the mailboxes that the file names, where root owns the file
	 * and starts the instance. */
	bool has_writer;
	uid_t writer_uid;
	gid_t writer_gid;
};

/* ---- one line of the output ---- */

static int
say(struct names *n, const struct alias *alias, const char *member,
    const char *why)
{
	int r;

	if (++n->lines > LINES_MAX)
		return 0;
	r = buf_printf(n->out, "%s:%u: ", n->conf->alias_file, alias->line);
	if (r == 0)
		r = text_clean(n->out, alias->key, strlen(alias->key), 255);
	if (r == 0 && member != NULL)
		r = buf_add_str(n->out, ": ");
	if (r == 0 && member != NULL)
		r = text_clean(n->out, member, strlen(member), ADDRESS_MAX);
	return r < 0 ? r : buf_printf(n->out, ": %s\n", why);
}

/* ---- where an address leads ---- */

/* Names whose mail is kept for them, by deliver-local. */
static bool
is_administrator(const char *account)
{
	return strcmp(account, "root") == 0 ||
	    strcmp(account, "postmaster") == 0 ||
	    strcmp(account, "mailer-daemon") == 0;
}

/* NULL: an alias, in *ret_alias, or a place that can take mail; else why the
 * mail gets nowhere. */
static const char *
judge_address(
    struct names *n, const char *address, const struct alias **ret_alias)
{
	char full[ADDRESS_MAX + CONF_HOST_SIZE + 2];
	char domain[DOMAIN_FOLDED_MAX + 1];
	struct route to;
	int r;

	snprintf(full, sizeof(full), "%s%s%s", address,
	    *address_domain(address) == '\0' ? "@" : "",
	    *address_domain(address) == '\0' ? n->domain : "");
	*ret_alias = NULL;
	if (domain_fold(address_domain(full), domain) < 0)
		return NULL;
	*ret_alias = alias_find_address(n->aliases, full, domain);
	if (*ret_alias != NULL)
		return NULL;
	r = route_lookup(n->routes, full, false, &to);
	*ret_alias = r == 0 && route_is_mailbox(&to)
	    ? alias_find_account(n->aliases, full)
	    : alias_find_domain(n->aliases, domain);
	if (*ret_alias != NULL)
		return NULL;
	if (r < 0 && n->conf->sender_dependent_relayhost[0] != '\0')
		return "no route leads there but the relays of senders";
	if (r < 0)
		return "no route leads there: it will be deferred";
	return to.target != ROUTE_TO_ACCOUNT ||
		conf_has_account(n->conf, geteuid() != 0, full)
	    ? NULL
	    : "there is no such account, and no such alias";
}

/* ---- members ---- */

/* NULL: the agent will read it. */
static const char *
judge_include(const char *path)
{
	struct stat st;

	if (lstat(path, &st) < 0)
		return errno == ENOENT ? "is not there" : strerror(errno);
	if (S_ISLNK(st.st_mode))
		return "is a link: mail for it is deferred";
	if (!S_ISREG(st.st_mode))
		return "is not a regular file: mail for it is deferred";
	if ((st.st_mode & (S_IWGRP | S_IWOTH)) != 0)
		return "others than its owner may write it: mail for it is "
		       "deferred";
	return NULL;
}

static bool
may_write(const struct names *n, const struct stat *st)
{
	const mode_t write = st->st_uid == n->writer_uid ? S_IWUSR
	    : st->st_gid == n->writer_gid                ? S_IWGRP
							 : S_IWOTH;

	return (st->st_mode & write) != 0;
}

/* NULL: default_privs may write the mailbox, or make it. The directories above
 * are the agent's to judge. */
static const char *
judge_mailbox(const struct names *n, const char *path)
{
	char name[ADDRESS_MAX + 1];
	size_t len = strlen(path);
	struct stat st;
	char *slash;

	if (!n->has_writer)
		return NULL;
	while (len > 1 && path[len - 1] == '/')
		len--;
	snprintf(name, sizeof(name), "%.*s", (int)len, path);
	if (lstat(name, &st) == 0)
		return may_write(n, &st)
		    ? NULL
		    : "the user of default_privs may not write it: mail for "
		      "it is deferred";
	slash = strrchr(name, '/');
	if (errno != ENOENT || slash == NULL)
		return strerror(errno);
	slash[slash == name] = '\0';
	return stat(name, &st) == 0 && may_write(n, &st)
	    ? NULL
	    : "is not there, and the user of default_privs may not make it: "
	      "mail for it is deferred";
}

static int
check_member(struct names *n, const struct alias *alias,
    const struct alias_member *member)
{
	const struct alias *next;
	const char *why = NULL;

	if (member->kind == ALIAS_ADDRESS)
		why = judge_address(n, member->text, &next);
	else if (member->kind == ALIAS_INCLUDE)
		why = judge_include(member->text);
	else if (member->kind == ALIAS_FILE)
		why = judge_mailbox(n, member->text);
	n->programs |=
	    member->kind == ALIAS_PROGRAM || member->kind == ALIAS_FILE;
	return why == NULL ? 0 : say(n, alias, member->text, why);
}

static int
check_owner(struct names *n, const struct alias *alias)
{
	static const char prefix[] = "owner-";
	const size_t len = sizeof(prefix) - 1;

	if (strncmp(alias->key, prefix, len) != 0 ||
	    strchr(alias->key, '@') != NULL ||
	    alias_find_key(n->aliases, alias->key + len) != NULL)
		return 0;
	return say(n, alias, NULL,
	    "owns no list: there is no alias behind "
	    "owner-");
}

static int
check_alias(struct names *n, const struct alias *alias)
{
	size_t i;
	int r;

	if (alias->wrong != NULL) /* complained about already */
		return 0;
	r = check_owner(n, alias);
	for (i = 0; r == 0 && i < alias->nmembers; i++)
		r = check_member(n, alias, &alias->members[i]);
	return r;
}

/* ---- root and postmaster ---- */

/* Aliases that were met and are still to be followed; each is met once. */
struct walk {
	bool *met;
	const struct alias **list;
	size_t n;
};

static void
meet(struct names *n, struct walk *w, const struct alias *alias)
{
	size_t i = (size_t)(alias - alias_at(n->aliases, 0));

	if (!w->met[i])
		w->list[w->n++] = alias;
	w->met[i] = true;
}

static bool
member_leads(struct names *n, struct walk *w, const struct alias_member *member)
{
	const struct alias *next = NULL;

	if (member->kind != ALIAS_ADDRESS)
		return member->kind != ALIAS_NOTHING &&
		    member->kind != ALIAS_REFUSAL;
	if (judge_address(n, member->text, &next) != NULL)
		return false;
	if (next != NULL)
		meet(n, w, next);
	return next == NULL;
}

static bool
walk_leads(struct names *n, struct walk *w)
{
	size_t i, k;

	for (i = 0; i < w->n; i++)
		for (k = 0; k < w->list[i]->nmembers; k++)
			if (member_leads(n, w, &w->list[i]->members[k]))
				return true;
	return false;
}

static int
check_reach(struct names *n, const struct alias *alias)
{
	size_t count = 0;
	struct walk w = { 0 };
	int r = 0;

	while (alias_at(n->aliases, count) != NULL)
		count++;
	w.met = calloc(count, sizeof(*w.met));
	w.list = calloc(count, sizeof(*w.list));
	if (w.met == NULL || w.list == NULL) {
		r = -ENOMEM;
	} else {
		meet(n, &w, alias);
		if (!walk_leads(n, &w))
			r = say(n, alias, NULL,
			    "leads nowhere: no member of it can take mail");
	}
	free(w.met);
	free(w.list);
	return r;
}

/* Mail for this name is local and has no alias. */
static bool
is_left(struct names *n, const char *name)
{
	const struct passwd *account = getpwnam(name);
	const struct alias *alias;
	struct route to;

	if ((account != NULL && account->pw_uid != 0) ||
	    conf_has_mailbox_for_all(n->conf, geteuid() != 0) ||
	    judge_address(n, name, &alias) != NULL || alias != NULL)
		return false;
	return route_lookup(n->routes, name, false, &to) == 0 &&
	    to.target == ROUTE_TO_ACCOUNT;
}

/* Of the rule for everything; 0: there is none. */
static uint32_t
find_star(const struct names *n, struct route *ret_to)
{
	const char *key;
	uint32_t line;
	size_t i;

	for (i = 0; (line = route_rule(n->routes, i, ret_to, &key)) != 0; i++)
		if (strcmp(key, "*") == 0)
			return line;
	return 0;
}

/* The rule for everything, and none before it, sends mail for this name of this
 * host to another one, where no alias of this host is looked up. */
static bool
goes_away(const struct names *n, const char *name, const struct route *star)
{
	char full[CONF_HOST_SIZE + 16], domain[DOMAIN_FOLDED_MAX + 1];
	struct route to;

	snprintf(full, sizeof(full), "%s@%s", name, n->domain);
	return domain_fold(n->domain, domain) == 0 &&
	    alias_find_address(n->aliases, full, domain) == NULL &&
	    route_lookup(n->routes, full, false, &to) == 0 &&
	    to.target == ROUTE_TO_HOST && to.transport == star->transport &&
	    to.nexthop == star->nexthop;
}

/* A private instance has no mail of the host's administrators. */
static int
check_away(struct names *n)
{
	struct route star;
	const uint32_t line = geteuid() == 0 ? find_star(n, &star) : 0;

	if (line == 0 ||
	    !(goes_away(n, "root", &star) || goes_away(n, "postmaster", &star)))
		return 0;
	return buf_printf(n->out,
	    "%s:%u: * sends mail for root@%s and postmaster@%s to another "
	    "host, too: a rule for %s, or relayhost in place of this rule, "
	    "keeps it here\n",
	    n->conf->routing_file, line, n->domain, n->domain, n->domain);
}

static int
check_administrators(struct names *n)
{
	const bool root = is_left(n, "root"),
		   postmaster = is_left(n, "postmaster");
	const struct alias *alias;
	const char *why;
	int r;

	if (!root && !postmaster)
		return 0;
	if (n->conf->admin_recipient[0] == '\0')
		return buf_printf(n->out,
		    "mail for %s%s%s goes to the maildir %s/mailbox: there is "
		    "no alias, and admin_recipient is empty\n",
		    root ? "root" : "", root && postmaster ? " and " : "",
		    postmaster ? "postmaster" : "", n->conf->queue_base);
	why = judge_address(n, n->conf->admin_recipient, &alias);
	if (why == NULL)
		return 0;
	r = buf_printf(
	    n->out, "admin_recipient: %s: ", n->conf->admin_recipient);
	return r < 0 ? r : buf_printf(n->out, "%s\n", why);
}

/* ---- all of it ---- */

static int
check_file(struct names *n)
{
	const struct alias *alias;
	size_t i;
	int r = 0;

	for (i = 0; r == 0 && (alias = alias_at(n->aliases, i)) != NULL; i++) {
		r = check_alias(n, alias);
		if (r == 0 && alias->wrong == NULL &&
		    is_administrator(alias->key))
			r = check_reach(n, alias);
	}
	if (r == 0 && n->lines > LINES_MAX)
		r = buf_printf(n->out, "%s: %u more warnings\n",
		    n->conf->alias_file, n->lines - LINES_MAX);
	if (r == 0 && n->programs && geteuid() == 0 &&
	    getpwnam(n->conf->default_privs) == NULL)
		r = buf_printf(n->out,
		    "default_privs: there is no user %s: programs of %s are "
		    "not run, and its mailboxes get no mail\n",
		    n->conf->default_privs, n->conf->alias_file);
	if (r == 0)
		r = check_away(n);
	if (r == 0 && n->absent && conf_is_set(n->conf, "alias_file"))
		r = buf_printf(n->out, "%s: is not there: there is no alias\n",
		    n->conf->alias_file);
	return r;
}

/* Where recipients go that have no alias. */
static int
read_routes(const struct conf *conf, struct route_table **ret_routes)
{
	static char none[] = "";
	struct conf plain = *conf;

	plain.alias_file = none;
	plain.admin_recipient = none;
	return daemon_routes(&plain, ret_routes);
}

static void
close_names(struct names *n)
{
	alias_free(&n->aliases);
	route_free(&n->routes);
}

static void
find_writer(struct names *n)
{
	const struct passwd *user =
	    geteuid() == 0 && n->aliases != NULL && alias_owner(n->aliases) == 0
	    ? getpwnam(n->conf->default_privs)
	    : NULL;

	n->has_writer = user != NULL;
	if (user != NULL) {
		n->writer_uid = user->pw_uid;
		n->writer_gid = user->pw_gid;
	}
}

static int
open_names(const struct conf *conf, struct buf *out, struct names *ret,
    struct buf *ret_error)
{
	int r;

	*ret = (struct names){ .conf = conf, .out = out };
	conf_domain(conf, ret->domain);
	r = read_routes(conf, &ret->routes);
	if (r == 0 && files_have_aliases(conf, geteuid() != 0)) {
		r = daemon_aliases(conf, &ret->aliases, ret_error);
		ret->absent = ret->aliases == NULL;
		find_writer(ret);
	}
	if (r < 0)
		close_names(ret);
	return r;
}

int
files_warn_aliases(
    const struct conf *conf, struct buf *out, struct buf *ret_error)
{
	struct names n;
	int r = files_alias_complaints(conf, geteuid() != 0, out);

	if (r == 0)
		r = open_names(conf, out, &n, ret_error);
	if (r < 0)
		return r;
	r = check_file(&n);
	if (r == 0)
		r = check_administrators(&n);
	close_names(&n);
	return r;
}

int
files_warn_administrators(
    const struct conf *conf, struct buf *out, struct buf *ret_error)
{
	struct names n;
	int r = open_names(conf, out, &n, ret_error);

	if (r < 0)
		return r;
	r = check_administrators(&n);
	close_names(&n);
	return r;
}
