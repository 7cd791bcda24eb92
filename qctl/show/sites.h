/* qctl/show/sites.h - the destinations of all queues, as the table that they
 * share has them (docs/SITES.md): read beside the system, without a lock. */
#ifndef QCTL_SHOW_SITES_H
#define QCTL_SHOW_SITES_H

#include "qctl/qctl.h"
#include "site/shared.h"

#define SITES_TOP_MAX 10000

/* A word of the command line. -EINVAL with the complaint: too many. */
int sites_add_pattern(struct options *o, const char *word, struct buf *error);
/* Is the word an address? The domain may be missing. */
bool sites_is_address(const char *word);
/* sites_add_pattern() of an address, for VERB_ROUTE. */
int sites_add_address(struct options *o, const char *word, struct buf *error);
/* Shows what options.sites asks for: an exit code. */
int sites_show(const struct options *o, const char *instance);
/* Does the table of destinations have one that destination_matches()? True as
 * well if the table cannot be read. */
bool sites_have(const char *pattern, const char *instance);

/* One row, for people or for programs, with its end; text is cleaned. now: the
 * two clocks, since deaths are told in monotonic time. -ENOMEM. */
struct sites_now {
	usec_t mono, wall;
};
int sites_row(
    struct buf *out, const struct shared_seen *seen, struct sites_now now);
int sites_object(
    struct buf *out, const struct shared_seen *seen, struct sites_now now);
extern const char sites_head[];

/* The order of --top: the dead first, then those that more queues wait for,
 * then the busy ones. As strcmp(). */
int sites_compare(const struct shared_seen *a, const struct shared_seen *b);

/* Are the words of `qctl trace' such as it takes? -EINVAL, with the complaint.
 */
int trace_judge(struct options *o, struct buf *error);
/* ---- trace.c: `qctl trace', an exit code ---- */

struct task;
int trace_show(struct task *t);

#endif
