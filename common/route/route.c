#include "route/route.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/address.h"
#include "base/array.h"
#include "base/domain.h"
#include "base/line.h"
#include "base/line_file.h"
#include "route/alias.h"
#include "route/nexthop.h"
#include "route/sender_map.h"
#include "route/table.h"

#define LINE_MAX_BYTES 2048
#define FILE_MAX_BYTES (64u << 20)

_Static_assert(NEXTHOP_HOST_MAX <= ROUTE_NEXTHOP_MAX + 1, "a name fits");

static const char no_memory[] = "out of memory";

/* The key whose domain begins at `domain` gets that domain folded. */
static const char *
fold_key(struct texts *texts, char *key, char *domain, const char **ret_key)
{
	char folded[ADDRESS_FOLDED_MAX + 1];
	const size_t at = (size_t)(domain - key);
	const char *why;

	nexthop_lower_case(domain);
	if (!nexthop_fits_domain(domain))
		return "not a domain";
	if (!domain_is_utf8(domain))
		return NULL;
	memcpy(folded, key, at);
	if (domain_normalize(domain, folded + at, &why) < 0)
		return why;
	*ret_key = texts_keep(texts, folded);
	return *ret_key == NULL ? no_memory : NULL;
}

/* Brings the key into the form of lookups; NULL, or the complaint. */
static const char *
check_key(struct texts *texts, char *key, const char **ret_key)
{
	char *at = strrchr(key, '@'), *domain = key;

	*ret_key = key;
	if (strcmp(key, "*") == 0)
		return NULL;
	if (at != NULL) {
		if (at == key)
			return "no user in front of the @";
		if (strlen(key) > ADDRESS_MAX)
			return "the address is too long";
		domain = at + 1;
	} else if (*key == '.') {
		domain = key + 1;
	}
	if (strncmp(key, "*.", 2) == 0)
		return "not a domain: for all subdomains, write .DOMAIN";
	if (*key != '\0' && key[strlen(key) - 1] == ':')
		return "not a domain: remove the colon at its end";
	return fold_key(texts, key, domain, ret_key);
}

static const char no_such_transport[] = "there is no such transport";

static const struct route_transport *
find_transport(const struct route_transport *known, const char *name)
{
	for (; known->name != NULL; known++)
		if (strcmp(known->name, name) == 0)
			return known;
	return NULL;
}

static const char *
check_nexthop(const struct route *to, bool sockets)
{
	struct nexthop hop;

	if (to->nexthop == NULL)
		return NULL;
	if (strlen(to->nexthop) > ROUTE_NEXTHOP_MAX)
		return "the next hop is too long";
	if (to->target != ROUTE_TO_HOST)
		return NULL;
	if (nexthop_parse(to->nexthop, 1, &hop) == 0 &&
	    (sockets || hop.kind != NEXTHOP_UNIX))
		return NULL;
	return sockets ? "not a next hop: it must be domain, domain:port, "
			 "[host]:port, [address]:port or unix:/path"
		       : "not a next hop: it must be domain, domain:port, "
			 "[host]:port or [address]:port";
}

/* A host in U-labels is the destination of that name in A-labels. */
static const char *
fold_nexthop(struct texts *texts, struct route *to)
{
	char text[ROUTE_NEXTHOP_MAX + 1];

	if (to->target != ROUTE_TO_HOST || to->nexthop == NULL ||
	    !domain_is_utf8(to->nexthop))
		return NULL;
	if (nexthop_to_ascii(to->nexthop, text) < 0)
		return "the next hop is too long";
	to->nexthop = texts_keep(texts, text);
	return to->nexthop == NULL ? no_memory : NULL;
}

const char *
route_check_transport(
    struct texts *texts, struct route *to, const struct route_transport *known)
{
	const char *why;

	if (*to->transport == '\0')
		return "no transport";
	known = find_transport(known, to->transport);
	if (known == NULL)
		return no_such_transport;
	if (known->target == ROUTE_TO_ALIAS)
		return "mail goes there by the alias file alone";
	to->target = known->target;
	to->literals = known->literals;
	why = check_nexthop(to, known->sockets);
	return why == NULL ? fold_nexthop(texts, to) : why;
}

/* One word, cut off in place: blanks within double quotes belong to it. NULL
 * at the end or a comment; *ret_why for a quote that is not closed. */
static char *
next_word(char **at, const char **ret_why)
{
	char *word = *at + strspn(*at, " \t"), *p;
	bool open;

	if (*word == '\0' || *word == '#')
		return NULL;
	p = line_word_end(word, &open);
	if (open)
		*ret_why = "a quote is not closed";
	*at = *p == '\0' ? p : p + 1;
	*p = '\0';
	return word;
}

/* "text" loses its quotes; the next hop of a refusal is a sentence. */
static char *
unquote(char *s)
{
	size_t len = strlen(s);

	if (len < 2 || s[0] != '"' || s[len - 1] != '"')
		return s;
	s[len - 1] = '\0';
	return s + 1;
}

/* 1: a rule; 0: none in this line; *ret_why for a wrong line. */
static int
parse_line(struct texts *texts, char *line, const struct route_transport *known,
    struct rule *ret_rule, const char **ret_why)
{
	char *key = next_word(&line, ret_why), *target, *colon;

	if (key == NULL || *ret_why != NULL)
		return 0;
	target = next_word(&line, ret_why);
	if (*ret_why != NULL)
		return 0;
	if (target == NULL || next_word(&line, ret_why) != NULL) {
		*ret_why = "not `key transport[:nexthop]`";
		return 0;
	}
	ret_rule->to.transport = target;
	colon = strchr(target, ':');
	if (colon != NULL) {
		*colon = '\0';
		if (colon[1] != '\0')
			ret_rule->to.nexthop = unquote(colon + 1);
	}
	*ret_why = check_key(texts, key, &ret_rule->at.key);
	if (*ret_why == NULL)
		*ret_why = route_check_transport(texts, &ret_rule->to, known);
	return *ret_why == NULL;
}

struct loading {
	struct route_table *table;
	const struct route_transport *known;
};

static int
take_line(void *arg, char *line, uint32_t number, const char **ret_word,
    const char **ret_why)
{
	struct loading *l = arg;
	struct route_table *t = l->table;
	struct rule rule = { .at.line = number };
	int r = parse_line(&t->texts, line, l->known, &rule, ret_why);

	if (*ret_why == no_such_transport)
		*ret_word = rule.to.transport;
	if (*ret_why != NULL)
		return -EINVAL;
	return r == 0
	    ? 0
	    : array_add(&t->rules, &t->n, &t->cap, &rule, sizeof(rule));
}

/* wrong, or NULL: the file is read on behind a wrong line. */
static int
load(const char *path, const struct route_transport *transports,
    struct wrong_lines *wrong, struct route_table **ret_table,
    struct buf *ret_error)
{
	static const struct line_file how = {
		.max_bytes = FILE_MAX_BYTES,
		.max_line = LINE_MAX_BYTES,
		.take = take_line,
	};
	struct route_table *table = calloc(1, sizeof(*table));
	struct loading l = { table, transports };
	int r;

	if (table == NULL)
		return -ENOMEM;
	r = line_file_read_on(path, &how, &l, &table->text, wrong, ret_error);
	if (r == 0)
		r = keyed_sort(table->rules, table->n, sizeof(*table->rules),
		    path, wrong, ret_error);
	if (r < 0)
		route_free(&table);
	else
		*ret_table = table;
	return r;
}

int
route_load(const char *path, const struct route_transport *transports,
    struct route_table **ret_table, struct buf *ret_error)
{
	return load(path, transports, NULL, ret_table, ret_error);
}

int
route_judge(const char *path, const struct route_transport *transports,
    struct buf *ret_errors)
{
	struct wrong_lines wrong = { 0 };
	struct route_table *table = NULL;
	int r = load(path, transports, &wrong, &table, ret_errors);

	route_free(&table);
	return wrong_lines_tell(&wrong, r, ret_errors);
}

struct route_table *
route_empty(void)
{
	return calloc(1, sizeof(struct route_table));
}

void
route_free(struct route_table **table)
{
	if (*table == NULL)
		return;
	buf_done(&(*table)->text);
	texts_done(&(*table)->texts);
	free((*table)->rules);
	free((*table)->own);
	free((*table)->relayhost);
	sender_map_free(&(*table)->senders);
	alias_free(&(*table)->aliases);
	free((*table)->alias_transport);
	free(*table);
	*table = NULL;
}

static const struct rule *
find(const struct route_table *table, const char *key)
{
	return keyed_find(table->rules, table->n, sizeof(*table->rules), key);
}

/* The most exact rule; key is the folded recipient. */
static const struct rule *
find_best(const struct route_table *table, const char *key)
{
	const char *domain = address_domain(key);
	const struct rule *rule = *domain == '\0' ? NULL : find(table, key);

	if (rule == NULL && *domain != '\0')
		rule = find(table, domain);
	/* The domain itself does not match `.domain`. */
	while (rule == NULL && *domain != '\0') {
		domain = strchr(domain + 1, '.');
		if (domain == NULL)
			break;
		rule = find(table, domain);
	}
	return rule != NULL ? rule : find(table, "*");
}

int
route_by_rules(const struct route_table *table, const char *sender,
    const char *recipient, struct route *ret_route)
{
	char key[ADDRESS_FOLDED_MAX + 1];
	const char *domain = address_domain(recipient);
	const struct rule *rule;

	if (strlen(recipient) > ADDRESS_MAX) {
		rule = find(table, "*");
	} else {
		if (address_fold(recipient, key) < 0)
			return -ENOMEM;
		domain = key + (domain - recipient);
		rule = find_best(table, key);
	}
	if (rule == NULL)
		return route_by_default(table, sender, domain, ret_route);
	*ret_route = rule->to;
	ret_route->line = rule->at.line;
	return 0;
}

uint32_t
route_rule(const struct route_table *table, size_t i, struct route *ret_route,
    const char **ret_key)
{
	if (i >= table->n)
		return 0;
	*ret_route = table->rules[i].to;
	*ret_key = table->rules[i].at.key;
	return table->rules[i].at.line;
}
