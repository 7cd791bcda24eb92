/* qscheduler/inforce.h - the configuration in force, as children read it:
 * QUEUE_BASE/conf, what --dump prints.
 *
 * So a child that is started again is configured as its brothers are, whatever
 * has become of the operator's file meanwhile: changed and not yet reloaded,
 * wrong, or gone. Written at start and at each reload. It stays when the
 * supervisor ends: submitters, and the next supervisor, use it while the
 * operator's file is wrong (conf_load_in_force()).
 *
 * Soft: -errno with the words in *ret_error, nothing changed. */
#ifndef QSCHEDULER_INFORCE_H
#define QSCHEDULER_INFORCE_H

#include "config/conf.h"
#include "qscheduler/base.h"

int inforce_write(
    const struct base *b, const struct conf *conf, struct buf *ret_error);
/* Keep it in memory, name and content: a child that is started while the disk
 * of QUEUE_BASE does not answer reads it nevertheless. What was kept before is
 * let go; what cannot be kept is read from the disk. */
struct inforce_kept {
	int fd; /* -1: nothing is kept */
	void *text;
	size_t len;
};
void inforce_keep(const struct base *b, struct inforce_kept *kept);
void inforce_let_go(struct inforce_kept *kept);
/* "QSCHED_CONF_IN_FORCE=QUEUE_BASE/conf", for the environment of children;
 * NULL: no memory. */
char *inforce_variable(const struct base *b);

#endif
