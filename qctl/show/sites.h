/* qctl/show/sites.h - the destinations of all queues, as the table that they
 * share has them (docs/SITES.md): read beside the system, without a lock. */
#ifndef QCTL_SHOW_SITES_H
#define QCTL_SHOW_SITES_H

#include "qctl/task/task.h"
#include "site/shared.h"

#define SITES_TOP_MAX 10000

/* Shows what options.sites asks for: an exit code. */
int sites_show(struct task *t);
/* Does the table of destinations have one that destination_matches()? True as
 * well if the table cannot be read. */
bool sites_have(const char *pattern, const char *instance);

/* One row, for people or for programs, with its end; text is cleaned. now: the
 * two clocks, since deaths are told in monotonic time. */
struct sites_now {
	usec_t mono, wall;
};
void sites_row(
    struct buf *out, const struct shared_seen *seen, struct sites_now now);
void sites_object(
    struct buf *out, const struct shared_seen *seen, struct sites_now now);
extern const char sites_head[];

/* The order of --top: the dead first, then those that more queues wait for,
 * then the busy ones. As strcmp(). */
int sites_compare(const struct shared_seen *a, const struct shared_seen *b);

#endif
