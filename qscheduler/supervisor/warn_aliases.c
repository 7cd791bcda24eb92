/* Aliases that are right and cannot do what was meant. */
#include "qscheduler/supervisor/supervisor.h"

#include <pwd.h>
#include <stdio.h>
#include <string.h>
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
	if (r == 0)
		r = buf_add_str(n->out, ": ");
	if (r == 0)
		r = text_clean(n->out, member, strlen(member), ADDRESS_MAX);
	return r < 0 ? r : buf_printf(n->out, ": %s\n", why);
}

/* ---- where an address leads ---- */

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

/* Programs, mailboxes and include files are judged by the agent that uses them,
 * with the rights that it has then. */
static int
check_member(struct names *n, const struct alias *alias,
    const struct alias_member *member)
{
	const struct alias *next;
	const char *why;

	n->programs |=
	    member->kind == ALIAS_PROGRAM || member->kind == ALIAS_FILE;
	why = member->kind == ALIAS_ADDRESS
	    ? judge_address(n, member->text, &next)
	    : NULL;
	return why == NULL ? 0 : say(n, alias, member->text, why);
}

/* ---- root and postmaster ---- */

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
	size_t i, k;
	int r = 0;

	/* A wrong line is complained about already. */
	for (i = 0; r == 0 && (alias = alias_at(n->aliases, i)) != NULL; i++)
		for (k = 0;
		     r == 0 && alias->wrong == NULL && k < alias->nmembers; k++)
			r = check_member(n, alias, &alias->members[k]);
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
