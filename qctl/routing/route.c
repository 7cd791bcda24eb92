/* Where mail for an address goes, by the configuration, the routing and the
 * aliases as they are in their files: no queue is read, and nothing is sent. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

#include "base/address.h"
#include "base/domain.h"
#include "base/text.h"
#include "config/conf.h"
#include "daemon/daemon.h"
#include "qctl/routing/rules.h"
#include "route/alias.h"
#include "route/route.h"
#include "route/sender_map.h"

#define DEPTH_MAX 50    /* of aliases in each other, as in an expansion */
#define STEPS_MAX 10000 /* of an address */
#define OWNER     "owner-"

/* One line of the answer. */
struct step {
	const char *address;
	const char *what; /* "alias", "program" …; of a route: NULL */
	const char *name; /* of the alias */
	const char *transport, *nexthop;
	const char *file;    /* that says so: a path, or a parameter */
	uint32_t line;       /* of it; 0: none */
	const char *forward; /* the file of the user that may redirect */
	const char *why;     /* not deliverable; NULL: it is */
	bool waits;          /* until the line is mended */
};

struct frame {
	const struct alias *alias;
	size_t next; /* member */
};

struct search {
	const struct conf *conf;
	const struct route_table *routes;
	const char *sender;          /* of the mail; NULL: not given */
	char domain[CONF_HOST_SIZE]; /* of addresses without one */
	bool private, json;
	struct buf *out;
	struct frame frames[DEPTH_MAX];
	uint32_t depth, steps;
	const struct alias **seen; /* aliases that were shown */
	size_t nseen;
	bool undeliverable;
	bool over_smtp; /* mail of a recipient goes over SMTP */
	struct alias administrator;
	struct alias_member reader;
};

/* ---- lines ---- */

static void
add_text(struct search *x, const struct step *s)
{
	const char *detail = s->what != NULL ? s->name : s->nexthop;
	struct buf *out = x->out;

	buf_printf(out, "%*s", (int)(2 * x->depth), "");
	out_clean(out, s->address, ADDRESS_MAX);
	buf_add_str(out, s->why != NULL ? ": NOT DELIVERABLE: " : ": ");
	buf_add_str(out, s->what != NULL ? s->what : s->transport);
	if (detail != NULL && detail[0] != '\0') {
		buf_add_str(out, s->what != NULL ? " " : ":");
		out_clean(out, detail, ADDRESS_MAX);
	}
	if (s->file != NULL) {
		buf_add_str(out, " (");
		out_clean(out, s->file, ADDRESS_MAX);
		if (s->line > 0)
			buf_printf(out, ":%u", (unsigned)s->line);
		buf_add_str(out, ")");
	}
	if (s->forward != NULL)
		buf_printf(
		    out, ", or as %s says where it is a file", s->forward);
	if (s->why != NULL)
		buf_printf(out, ": %s%s", s->why,
		    s->waits ? "; mail waits until the line is mended" : "");
	buf_add_str(out, "\n");
}

static void
add_json(struct search *x, const struct step *s)
{
	struct buf *out = x->out;

	buf_printf(out, "{\"depth\": %u", (unsigned)x->depth);
	out_member(out, "address", s->address);
	out_member(out, "is", s->what);
	out_member(out, "name", s->name);
	out_member(out, "transport", s->transport);
	out_member(out, "nexthop", s->nexthop);
	out_member(out, "file", s->file);
	if (s->line > 0)
		buf_printf(out, ", \"line\": %u", (unsigned)s->line);
	out_member(out, "forward", s->forward);
	out_member(out, "reason", s->why);
	buf_printf(
	    out, ", \"deliverable\": %s}\n", s->why == NULL ? "true" : "false");
}

static int
add(struct search *x, const struct step *s)
{
	x->undeliverable |= s->why != NULL;
	(x->json ? add_json : add_text)(x, s);
	return x->out->error;
}

/* ---- the end of the way ---- */

static enum agent_kind
kind_of(const struct conf *conf, const char *transport)
{
	uint32_t i;

	for (i = 0; i < conf->ntransports; i++)
		if (strcmp(conf->transports[i].name, transport) == 0)
			return conf->transports[i].kind;
	return AGENT_NKINDS;
}

static const char *
place_of(const struct search *x, const struct route *route)
{
	if (route->line > 0)
		return x->conf->routing_file;
	if (route->sender_line > 0)
		return x->conf->sender_dependent_relayhost;
	return kind_of(x->conf, route->transport) == AGENT_LOCAL
	    ? "mydestination"
	    : "relayhost";
}

static int
add_route(struct search *x, const char *written, const char *address,
    const struct route *route)
{
	char nexthop[ROUTE_NEXTHOP_MAX + 1] = "";
	const enum agent_kind kind = kind_of(x->conf, route->transport);
	struct step s = {
		.address = written,
		.transport = route->transport,
		.nexthop = nexthop,
		.file = place_of(x, route),
		.line = route->line > 0 ? route->line : route->sender_line,
	};

	if (route_nexthop(route, address, nexthop, &s.why) < 0)
		return add(x, &s);
	s.why = NULL;
	if (kind == AGENT_NKINDS)
		s.why = "there is no such transport";
	else if (kind == AGENT_ERROR)
		s.why = "the routing refuses it";
	else if (kind == AGENT_SMTP)
		x->over_smtp = true;
	else if (kind == AGENT_LOCAL && route->target == ROUTE_TO_ACCOUNT &&
	    !conf_has_account(x->conf, x->private, address))
		s.why = "there is no such account";
	else if (kind == AGENT_LOCAL && route->target == ROUTE_TO_ACCOUNT &&
	    x->conf->forward_path[0] != '\0')
		s.forward = x->conf->forward_path;
	return add(x, &s);
}

/* ---- aliases ---- */

static bool
was_seen(const struct search *x, const struct alias *alias)
{
	size_t i;

	for (i = 0; i < x->nseen; i++)
		if (x->seen[i] == alias)
			return true;
	return false;
}

static bool
is_open(const struct search *x, const struct alias *alias)
{
	uint32_t i;

	for (i = 0; i < x->depth; i++)
		if (x->frames[i].alias == alias)
			return true;
	return false;
}

static bool
has_owner(const struct search *x, const struct alias *alias)
{
	char key[sizeof(OWNER) + ALIAS_KEY_MAX];

	snprintf(key, sizeof(key), OWNER "%s", alias->key);
	return alias_find_key(route_aliases(x->routes), key) != NULL;
}

/* Each alias is expanded once: its members add nothing a second time. */
static int
add_alias(struct search *x, const char *address, const struct alias *alias)
{
	struct step s = {
		.address = address,
		.what = has_owner(x, alias) ? "list" : "alias",
		.name = alias->key,
		.file = alias == &x->administrator ? "admin_recipient"
						   : x->conf->alias_file,
		.line = alias->line,
	};
	const struct alias **more;
	int r;

	if (was_seen(x, alias))
		s.what = "shown above: alias";
	else if (alias->wrong != NULL) {
		s.line = alias->wrong_line;
		s.why = alias->wrong;
		s.waits = true;
	} else if (x->depth == DEPTH_MAX)
		s.why = "too many aliases in each other";
	r = add(x, &s);
	if (r < 0 || was_seen(x, alias) || s.why != NULL)
		return r;
	more = reallocarray(x->seen, x->nseen + 1, sizeof(const void *));
	if (more == NULL)
		return -ENOMEM;
	x->seen = more;
	x->seen[x->nseen++] = alias;
	x->frames[x->depth++] = (struct frame){ alias, 0 };
	return 0;
}

/* root, postmaster and MAILER-DAEMON without an alias have admin_recipient. */
static const struct alias *
find_alias(struct search *x, const char *key)
{
	const struct alias *alias =
	    alias_find_key(route_aliases(x->routes), key);

	if (alias != NULL)
		return alias;
	x->reader = (struct alias_member){ .kind = ALIAS_ADDRESS,
		.text = x->conf->admin_recipient };
	x->administrator =
	    (struct alias){ .key = key, .nmembers = 1, .members = &x->reader };
	return &x->administrator;
}

static int
look_up(struct search *x, const char *written, const char *address)
{
	const struct step none = {
		.address = written,
		.what = "no route",
		.why = "no rule of the routing fits, the domain is not in "
		       "mydestination, and relayhost is empty",
	};
	char domain[DOMAIN_FOLDED_MAX + 1];
	const struct alias *alias;
	struct route route;
	int r = route_lookup_from(x->routes, x->sender, address, false, &route);

	if (r == 0 && route.target == ROUTE_TO_ALIAS) {
		alias = find_alias(x, route.nexthop);
		if (!is_open(x, alias))
			return add_alias(x, written, alias);
		/* A name below itself is a recipient. */
		r = route_lookup_from(
		    x->routes, x->sender, address, true, &route);
	}
	if (r == 0 && domain_fold(address_domain(address), domain) < 0)
		r = -ENOMEM;
	if (r == 0 && kind_of(x->conf, route.transport) == AGENT_LOCAL &&
	    !conf_has_account(x->conf, x->private, address) &&
	    (alias = alias_find_domain(route_aliases(x->routes), domain)) !=
		NULL &&
	    !is_open(x, alias))
		return add_alias(x, written, alias);
	if (r == -ENOMEM)
		return r;
	return r < 0 ? add(x, &none) : add_route(x, written, address, &route);
}

static int
add_address(struct search *x, const char *written)
{
	struct step wrong = { .address = written, .what = "no address" };
	struct buf address = { 0 };
	int r = address_complete(x->domain, written, &address, &wrong.why);

	if (r == 0)
		r = look_up(x, written, buf_str(&address));
	else if (r != -ENOMEM)
		r = add(x, &wrong);
	buf_done(&address);
	return r;
}

static int
add_alias_member(struct search *x, const struct alias_member *member)
{
	static const struct {
		const char *before, *what;
	} kinds[] = {
		[ALIAS_PROGRAM] = { "|", "program" },
		[ALIAS_INCLUDE] = { ALIAS_INCLUDE_PREFIX,
		    "file of members, which is not read here" },
		[ALIAS_NOTHING] = { "/dev/null", "nothing" },
		[ALIAS_FILE] = { "", "mailbox" },
		[ALIAS_REFUSAL] = { ":fail: ", "the mail is refused" },
	};
	struct buf text = { 0 };
	struct step s = { .what = kinds[member->kind].what };
	int r;

	if (member->kind == ALIAS_ADDRESS)
		return add_address(x, member->text);
	r = buf_printf(&text, "%s%s", kinds[member->kind].before,
	    member->kind == ALIAS_NOTHING ? "" : member->text);
	s.address = buf_str(&text);
	if (r == 0)
		r = add(x, &s);
	buf_done(&text);
	return r;
}

static int
resolve(struct search *x, const char *address)
{
	int r = add_address(x, address);

	while (r == 0 && x->depth > 0) {
		struct frame *f = &x->frames[x->depth - 1];

		if (f->next == f->alias->nmembers)
			x->depth--;
		else if (++x->steps > STEPS_MAX)
			return add(x,
			    &(struct step){ .address = address,
				.what = "more members, which are not shown" });
		else
			r = add_alias_member(x, &f->alias->members[f->next++]);
	}
	return r;
}

/* ---- the command ---- */

static int
resolve_all(const struct options *o, struct search *x)
{
	size_t i;
	int r = 0;

	for (i = 0; r == 0 && i < o->sites.npatterns; i++) {
		x->depth = x->steps = 0;
		x->nseen = 0;
		r = resolve(x, o->sites.patterns[i]);
	}
	return r;
}

/* Resolve the addresses and print the answer. An exit code. */
static int
answer(const struct options *o, struct search *x)
{
	struct buf sender = { 0 };
	struct sender_map *map = NULL;
	int r, code = address_take_sender(o, x->domain, &sender);

	x->sender = o->sender == NULL ? NULL : buf_str(&sender);
	if (code == EX_OK && sender.len > 0)
		code = address_load_rewrites(o, x->conf, &map);
	if (code == EX_OK) {
		r = resolve_all(o, x);
		if (r == 0 && x->over_smtp && sender.len > 0)
			r = address_add_rewrite(
			    x->conf, map, x->sender, x->json, x->out);
		code = task_put(o, r, x->out);
	}
	sender_map_free(&map);
	buf_done(&sender);
	return code == EX_OK && x->undeliverable ? EX_NOUSER : code;
}

int
route_show(struct task *t)
{
	const struct options *o = &t->options;
	static struct search x;
	struct route_table *routes = NULL;
	struct buf error = { 0 };
	struct buf out = { 0 };
	struct conf conf;
	int code = EX_CONFIG;

	if (conf_load_in_force(o->conf_path, &conf, &error) < 0) {
		task_complain(o, EX_CONFIG, buf_str(&error));
		buf_done(&error);
		return EX_CONFIG;
	}
	/* A wrong file was complained about. */
	if (daemon_routes(&conf, &routes) == 0) {
		x = (struct search){ .conf = &conf,
			.routes = routes,
			.private = conf_is_private(&conf),
			.json = o->json,
			.out = &out };
		conf_domain(&conf, x.domain);
		code = answer(o, &x);
		free(x.seen);
	}
	route_free(&routes);
	conf_done(&conf);
	buf_done(&out);
	buf_done(&error);
	return code;
}
