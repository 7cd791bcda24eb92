/* qscheduler/supervisor/inforce.h - the configuration in force, as children
 * read it: QUEUE_BASE/conf, what --dump prints, but that it names copies of the
 * routing and programs files, QUEUE_BASE/routing and QUEUE_BASE/programs.
 *
 * So a child that is started again is configured as its brothers are, whatever
 * has become of the operator's files meanwhile: changed and not yet reloaded,
 * wrong, or gone. Written at start and at each reload. It stays when the
 * supervisor ends: submitters, and the next supervisor, use it while the
 * operator's file is wrong (conf_load_in_force()).
 *
 * Soft: -errno with the words in *ret_error, nothing changed. */
#ifndef QSCHEDULER_SUPERVISOR_INFORCE_H
#define QSCHEDULER_SUPERVISOR_INFORCE_H

#include "config/conf.h"
#include "qscheduler/queues/base.h"

int inforce_write(
    const struct base *b, const struct conf *conf, struct buf *ret_error);
/* Keep them in memory, names and content: a child that is started while the
 * disk of QUEUE_BASE does not answer reads them nevertheless. What was kept
 * before is let go; what cannot be kept is read from the disk. */
#define INFORCE_NFILES 3
struct inforce_file {
	bool open;
	int fd;
	void *text;
	size_t len;
};
struct inforce_kept {
	struct inforce_file file[INFORCE_NFILES];
};
void inforce_keep(const struct base *b, struct inforce_kept *kept);
void inforce_let_go(struct inforce_kept *kept);
/* "QSCHED_CONF_IN_FORCE=QUEUE_BASE/conf", for the environment of children;
 * NULL: no memory. */
char *inforce_variable(const struct base *b);

#endif
