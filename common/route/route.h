/* route/route.h - the transport and nexthop of a recipient.
 *
 * A file, one rule a line, `#` comments:
 *
 *	user@domain	transport[:nexthop]
 *	domain		transport[:nexthop]
 *	.domain		transport[:nexthop]	any subdomain of it, not itself
 *	*		transport[:nexthop]	everything else
 *
 * The most exact rule wins: user@domain, domain, the longest .domain, `*`.
 * Domains compare in A-labels without case (base/domain.h), local parts with
 * case. A rule without a nexthop
 * makes one of the recipient, by the kind of the transport (enum route_target).
 * A nexthop may hold colons: only the first one separates (`smtp:[::1]:25`); a
 * nexthop that its transport could never use is an error. In double quotes it
 * may hold blanks (`error:"5.1.1 gone since May"`), as a quoted local part may.
 * The same key twice is an error, as is a transport that is not known.
 *
 * A recipient that no rule fits, with or without a file: mail of an own domain
 * (mydestination), and of an address without a domain, goes to `local`, all
 * other mail to `smtp:RELAYHOST`; without a relayhost it has no route. A row of
 * sender_dependent_relayhost (sender_relay.h) comes before RELAYHOST.
 * target.c makes the next hop.
 *
 * Aliases stand above all of it, by the order of docs/ALIASES.md.
 *
 * A table does not change once loaded, and refers to nothing else; a reload
 * loads another one and swaps.
 * Soft: -errno, -ENOENT for no file, -EINVAL for a wrong line, with the text
 * in *ret_error ("FILE:LINE: what was wrong"). Never logs. One owner; results
 * of a lookup point into the table.
 */
#ifndef ROUTE_ROUTE_H
#define ROUTE_ROUTE_H

#include "base/buf.h"

/* A domain name (RFC 1035), or a host and port. */
#define ROUTE_NEXTHOP_MAX 255

/* The meaning of a transport's next hop, and how a recipient makes one where a
 * rule names none. */
enum route_target {
	ROUTE_TO_HOST,    /* nexthop.h; of a domain: nexthop_of_domain() */
	ROUTE_TO_ACCOUNT, /* the account, whatever rule and domain */
	ROUTE_TO_MAILBOX, /* the account with its domain: account@domain */
	ROUTE_TO_PROGRAM, /* name of a program; of a domain: none */
	ROUTE_TO_NOTHING, /* without meaning; of a domain: the domain */
	ROUTE_TO_REASON,  /* a sentence; of a domain: "" */
	ROUTE_TO_ALIAS,   /* the key of the alias; no rule names this one */
};

struct route_transport {
	const char *name;
	enum route_target target;
	bool literals; /* ROUTE_TO_HOST: of a domain, addresses too */
	bool sockets;  /* ROUTE_TO_HOST: a rule may name a unix:/path */
};

struct route_table;

struct route {
	const char *transport; /* one of the known names */
	const char *nexthop;   /* NULL: the rule names none. Of an alias: its
				* key, or the recipient */
	enum route_target target;
	bool literals;
	uint32_t line; /* of a lookup: of the rule; 0: none of the file */
	/* Of a lookup: line of the row of the sender, whose relay this is; 0:
	 * another route. */
	uint32_t sender_line;
};

/* `transports` lists the known ones, ended by one without a name; a rule that
 * names another is an error. The whole file is read before it is parsed, so a
 * file that is replaced by rename is the old one or the new.
 */
int route_load(const char *path, const struct route_transport *transports,
    struct route_table **ret_table, struct buf *ret_error);
/* Each wrong line of the file, as base/wrong_lines.h tells them; *ret_errors is
 * empty before. 0: route_load() takes the file. */
int route_judge(const char *path, const struct route_transport *transports,
    struct buf *ret_errors);
/* The table of an absent file, without a rule. NULL: no memory. */
struct route_table *route_empty(void);
/* The routes of recipients that no rule fits. own lists domains with blanks
 * between, folded, `*` for every domain; relayhost is a next hop, "" for none.
 * Until this is called they have no route. -ENOMEM: the table is as it was. */
int route_set_defaults(struct route_table *table, const char *own,
    const char *relayhost, const struct route_transport *transports);
/* Aliases of recipients (docs/ALIASES.md): the table owns *aliases from now on,
 * which may be NULL and becomes it. administered: root, postmaster and
 * mailer-daemon have an alias in any case. Until this is called nothing has
 * one. -ENOMEM: both are as they were. */
struct alias_table;
int route_set_aliases(struct route_table *table, struct alias_table **aliases,
    bool administered, const struct route_transport *transports);
/* NULL: there are none, nor of a table that is NULL. They live as long as the
 * table. */
const struct alias_table *route_aliases(const struct route_table *table);
/* Relays of senders: the table owns *relays from now on, which may be NULL and
 * becomes it. Needs route_set_defaults(). */
struct sender_map;
void
route_set_sender_relays(struct route_table *table, struct sender_map **relays);
void route_free(struct route_table **table);

/* sender is that of the message, NULL when not known or of no matter. 0, or
 * -ENOENT when no rule fits and no default does; -ENOMEM. expanded: the
 * recipient is of a message that an expansion made, so that no alias is looked
 * up but one that refuses mail (alias_refuses()); what names a program or an
 * include file has the transport of aliases, with the recipient itself as next
 * hop. */
int route_lookup_from(const struct route_table *table, const char *sender,
    const char *recipient, bool expanded, struct route *ret_route);
/* Of mail whose sender does not matter. */
static inline int
route_lookup(const struct route_table *table, const char *recipient,
    bool expanded, struct route *ret_route)
{
	return route_lookup_from(table, NULL, recipient, expanded, ret_route);
}
/* The nexthop of a route for this recipient into out (room for
 * ROUTE_NEXTHOP_MAX + 1), in lower case and A-labels unless it has a slash or a
 * blank, as paths and sentences have. -EDESTADDRREQ with *ret_why: the
 * recipient makes none, now or ever. -ENOMEM, with *ret_why. */
int route_nexthop(const struct route *route, const char *recipient, char *out,
    const char **ret_why);

/* The nexthop stands for one mailbox or alias, and is a destination by itself.
 */
static inline bool
route_is_mailbox(const struct route *route)
{
	return route->target == ROUTE_TO_ACCOUNT ||
	    route->target == ROUTE_TO_MAILBOX ||
	    route->target == ROUTE_TO_ALIAS;
}

/* The rules one by one, for further checks: the line of rule number i; 0 behind
 * the last. The key has its domain in lower case. */
uint32_t route_rule(const struct route_table *table, size_t i,
    struct route *ret_route, const char **ret_key);

/* The name of a destination in lower case: the nexthop, or, with an address,
 * local@nexthop (the recipient is the destination). Its length; -ENAMETOOLONG
 * above ROUTE_DESTINATION_MAX. */
#define ROUTE_DESTINATION_MAX 600
int route_destination(const char *nexthop, const char *address,
    char out[ROUTE_DESTINATION_MAX + 1]);

#endif
