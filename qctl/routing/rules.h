/* qctl/routing/rules.h - rules that hold mail to come (docs/QCTL.md, "Rules"),
 * and where mail for an address goes (route, address).
 */
#ifndef QCTL_ROUTING_RULES_H
#define QCTL_ROUTING_RULES_H

#include "qctl/task/task.h"

/* Are the words of `hold --rule' or `release --rule' such as a rule takes?
 * -EINVAL, with the complaint. */
int rules_judge(struct options *o, struct buf *error);
/* Writes the rule of `hold --rule', or removes that of `release --rule', and
 * has every queue read the rules: an exit code. A queue that does not answer is
 * told on standard error, and *ret_troubled. */
int rules_change(struct task *t, bool *ret_troubled);
/* `qctl rules': an exit code. */
int rules_show(struct task *t);

/* ---- address.c ---- */

/* Write an address into out. An address without a domain gets `domain`, as in
 * queue-inject and in the expansion of an alias. -EINVAL, -ENAMETOOLONG: the
 * address cannot be a recipient, with the reason in *ret_why; -ENOMEM. */
int address_complete(const char *domain, const char *written, struct buf *out,
    const char **ret_why);
/* address_complete() of --sender, with a complaint. out stays empty without
 * --sender, and for `<>`. An exit code. */
int address_take_sender(
    const struct options *o, const char *domain, struct buf *out);
struct sender_map;
/* Load the file of sender_rewrite; *ret_map stays NULL if the parameter is
 * empty. An exit code, with a complaint. */
int address_load_rewrites(const struct options *o, const struct conf *conf,
    struct sender_map **ret_map);
/* Append the other address that sender_rewrite gives the sender: a line, or
 * with json an object. Nothing is appended if no row fits. -errno. */
int address_add_rewrite(const struct conf *conf, const struct sender_map *map,
    const char *sender, bool json, struct buf *out);

/* ---- route.c ---- */

/* `qctl route': where mail for the addresses goes, an exit code. */
int route_show(struct task *t);

#endif
