/* Warnings of --check: a configuration that is right may not do what was meant.
 */
#include "qscheduler/supervisor/supervisor.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "ipc/shm.h"
#include "route/nexthop.h"
#include "route/route.h"

struct routing {
	struct route_table *table;
	bool absent;
	size_t rules;
	uint32_t star; /* the line of the rule for everything; 0: none */
};

static void
count_rules(struct routing *routing)
{
	struct route to;
	const char *key;
	uint32_t line;

	while ((line = route_rule(routing->table, routing->rules, &to, &key)) !=
	    0) {
		routing->rules++;
		if (strcmp(key, "*") == 0)
			routing->star = line;
	}
}

static int
read_routing(
    const struct conf *conf, struct routing *ret_routing, struct buf *ret_error)
{
	struct route_transport known[CONF_TRANSPORTS_MAX + 1];
	struct routing routing = { 0 };
	int r;

	daemon_route_transports(conf, known);
	r = route_load(conf->routing_file, known, &routing.table, ret_error);
	if (r == -ENOENT) {
		buf_reset(ret_error);
		routing.absent = true;
		routing.table = route_empty();
		r = routing.table == NULL ? -ENOMEM : 0;
	}
	if (r < 0)
		return r;
	count_rules(&routing);
	*ret_routing = routing;
	return 0;
}

static bool
is_everything_own(const char *own)
{
	size_t n;

	for (; *own != '\0'; own += n + (own[n] != '\0')) {
		n = strcspn(own, " ");
		if (n == 1 && *own == '*')
			return true;
	}
	return false;
}

/* A file without rules is one that a full disk cut, or that is yet to come. */
static int
warn_no_rules(const struct conf *conf, const struct routing *routing,
    const char *own, struct buf *out)
{
	bool decided = conf->relayhost[0] != '\0' || is_everything_own(own);
	const bool senders = conf->sender_dependent_relayhost[0] != '\0';
	int r;

	if (routing->rules > 0 ||
	    (decided && routing->absent && !conf_is_set(conf, "routing_file")))
		return 0;
	r = buf_printf(out, "%s: %s: ", conf->routing_file,
	    routing->absent ? "is not there" : "has no rule");
	if (r < 0)
		return r;
	if (is_everything_own(own))
		return buf_add_str(
		    out, "all mail is local, by mydestination\n");
	if (conf->relayhost[0] != '\0')
		return buf_printf(out,
		    "mail for %s is local, all other mail goes to %srelayhost "
		    "%s\n",
		    own, senders ? "relays of senders and " : "",
		    conf->relayhost);
	return buf_printf(out,
	    "mail for %s is local, all other mail %sis deferred until there is "
	    "a rule or a relayhost\n",
	    own[0] == '\0' ? "no domain" : own,
	    senders ? "of senders without a relay " : "");
}

static int
warn_useless(const struct conf *conf, const struct routing *routing,
    const char *name, struct buf *out)
{
	if (routing->star == 0 || !conf_is_set(conf, name))
		return 0;
	return buf_printf(out, "%s: does nothing: %s:%u routes everything\n",
	    name, conf->routing_file, routing->star);
}

static int
warn_defaults(const struct conf *conf, const struct routing *routing,
    const char *own, struct buf *out)
{
	int r = warn_useless(conf, routing, "mydestination", out);

	if (r == 0)
		r = warn_useless(
		    conf, routing, "sender_dependent_relayhost", out);
	if (conf->relayhost[0] != '\0') {
		if (r == 0)
			r = warn_useless(conf, routing, "relayhost", out);
		if (r == 0 && is_everything_own(own))
			r = buf_add_str(out,
			    "relayhost: does nothing: mydestination has every "
			    "domain\n");
		if (r == 0 && conf_transport_find(conf, "smtp") < 0)
			r = buf_add_str(out,
			    "relayhost: cannot be reached: no transport is "
			    "named smtp\n");
	}
	if (r == 0 && routing->star == 0 && own[0] != '\0' &&
	    conf_transport_find(conf, "local") < 0)
		r = buf_add_str(out,
		    "mydestination: mail for it is deferred: no transport is "
		    "named local\n");
	return r;
}

/* NULL: the rule is as it should be. */
static const char *
judge_rule(const char *key, const struct route *to)
{
	char host[NEXTHOP_HOST_MAX];
	const char *at = strrchr(key, '@'), *why = NULL;

	if (to->nexthop != NULL)
		return route_is_mailbox(to) || to->target == ROUTE_TO_NOTHING
		    ? "the transport does nothing with a next hop"
		    : NULL;
	if (to->target == ROUTE_TO_HOST && *key != '*' && *key != '.')
		(void)nexthop_of_domain(
		    at == NULL ? key : at + 1, to->literals, host, &why);
	return why;
}

static int
warn_rules(
    const struct conf *conf, const struct routing *routing, struct buf *out)
{
	const char *key, *why;
	struct route to;
	uint32_t line;
	size_t i;
	int r = 0;

	for (i = 0; r == 0 && i < routing->rules; i++) {
		line = route_rule(routing->table, i, &to, &key);
		why = judge_rule(key, &to);
		if (why != NULL)
			r = buf_printf(out, "%s:%u: %s: %s\n",
			    conf->routing_file, line, key, why);
	}
	return r;
}

static int
warn_start(const struct conf *conf, struct buf *out, struct buf *ret_error)
{
	struct daemon_users users;
	int r = daemon_users(conf, &users, ret_error);

	if (r == 0)
		r = start_warn_programs(conf, &users, out);
	return r == 0 ? start_warn_queues(conf, &users, out) : r;
}

/* A path of the mail spool whose writer may have meant files. */
static int
warn_spool(const struct conf *conf, struct buf *out)
{
	static const char *const spools[] = { "/var/mail/",
		"/var/spool/mail/" };
	const char *path = conf->maildir_path;
	size_t i;

	for (i = 0; i < ARRAY_LEN(spools); i++)
		if (strncmp(path, spools[i], strlen(spools[i])) == 0 &&
		    path[strlen(path) - 1] != '/')
			return buf_printf(out,
			    "maildir_path: %s is a maildir for each user; for "
			    "mailboxes of one file write mbox:%s\n",
			    path, path);
	return 0;
}

/* Any user can fill it. */
static int
warn_shared_memory(struct buf *out)
{
	char text[SHM_TEXT_SIZE];

	if (shm_judge_room(text) == 0)
		return 0;
	return buf_printf(out,
	    "%s: mail is delivered, but qtop, \"setqload --list\" and \"qctl "
	    "sites\" show nothing and no queue is added, until files of other "
	    "users are removed there\n",
	    text);
}

int
files_warnings(const struct conf *conf, struct buf *out, struct buf *ret_error)
{
	struct routing routing = { 0 };
	struct buf own = { 0 };
	int r = read_routing(conf, &routing, ret_error);

	if (r == 0)
		r = conf_destinations(conf, &own);
	if (r == 0)
		r = warn_no_rules(conf, &routing, buf_str(&own), out);
	if (r == 0)
		r = warn_defaults(conf, &routing, buf_str(&own), out);
	if (r == 0)
		r = warn_rules(conf, &routing, out);
	if (r == 0)
		r = files_warn_aliases(conf, out, ret_error);
	if (r == 0)
		r = files_warn_tls(conf, out, ret_error);
	if (r == 0)
		r = warn_spool(conf, out);
	if (r == 0)
		r = files_warn_host(conf, out);
	if (r == 0)
		r = conf_idle(conf, out);
	if (r == 0)
		r = file_systems_warn(conf, out);
	if (r == 0)
		r = warn_shared_memory(out);
	if (r == 0)
		r = warn_start(conf, out, ret_error);
	route_free(&routing.table);
	buf_done(&own);
	return r;
}
