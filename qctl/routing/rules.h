/* qctl/routing/rules.h - rules that hold mail to come (docs/QCTL.md, "Rules"),
 * and the filter by destination, which needs the routing.
 */
#ifndef QCTL_ROUTING_RULES_H
#define QCTL_ROUTING_RULES_H

#include "qctl/act/task.h"

/* Are the words of `hold --rule' or `release --rule' such as a rule takes?
 * -EINVAL, with the complaint. */
int rules_judge(struct options *o, struct buf *error);
/* Writes the rule of `hold --rule', or removes that of `release --rule', and
 * has every queue read the rules: an exit code. A queue that does not answer is
 * told on standard error, and *ret_troubled. */
int rules_change(
    struct task *t, const uint32_t *queues, size_t count, bool *ret_troubled);
/* `qctl rules': an exit code. */
int rules_show(const struct task *t);

/* ---- destination.c ---- */

/* Reads the routing, in the command's process, if a word of the selection needs
 * it: an exit code. */
int destination_begin(const struct options *o);
void destination_end(void);

/* ---- address.c ---- */

/* Writes an address of the command line, or of a member, into out, where it has
 * no domain with this one, as queue-inject and an expansion do: the domain
 * decides about the route. -EINVAL, -ENAMETOOLONG with the reason; -ENOMEM. */
int address_complete(const char *domain, const char *written, struct buf *out,
    const char **ret_why);
/* The same of --sender; nothing where there is none: an exit code. */
int address_take_sender(
    const struct options *o, const char *domain, struct buf *out);
struct sender_map;
/* The file of sender_rewrite, NULL without one: an exit code. */
int address_load_rewrites(const struct options *o, const struct conf *conf,
    struct sender_map **ret_map);
/* A line, or an object, for a sender that has another address over SMTP. */
int address_add_rewrite(const struct conf *conf, const struct sender_map *map,
    const char *sender, bool json, struct buf *out);

/* ---- route.c ---- */

/* `qctl route': where mail for the addresses goes, an exit code. */
int route_show(const struct options *o);

#endif
