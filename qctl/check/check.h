/* qctl/check/check.h - is the spool of a queue as docs/SPOOL.md says, and what
 * is done about what is not (docs/QCTL.md, "Check and repair").
 *
 *	checking   the command: queues, the sum, the exit code
 *	check      the process that looks at one queue; place: at one file
 *	flaw       what can be wrong: the table, and what mends each
 *	renumber   files whose names are not their inodes
 *	copies     two files of one message
 *
 * Without --repair nothing is locked and nothing changes; with it the queue is
 * locked as queue-send and todo-proc lock it. No message is ever removed.
 *
 * Soft: -errno.
 */
#ifndef QCTL_CHECK_CHECK_H
#define QCTL_CHECK_CHECK_H

#include "qctl/read/message.h"
#include "qctl/task/task.h"

enum flaw {
	FLAW_DIRECTORY,
	FLAW_KIND,
	FLAW_LINKS,
	FLAW_DAMAGE,
	FLAW_OWNER,
	FLAW_NAME,
	FLAW_MARK,
	FLAW_COPY,
	FLAW_FOREIGN,
	FLAW_DROP,
	FLAW_REASON_ORPHAN,
	FLAW_REASON_OWNER,
	FLAW_PREPARED,
	FLAW_PARENT,
	NFLAWS,
};

/* A message, for the search of copies. */
struct seen {
	usec_t arrival_wall;
	uint64_t inode;
	uint32_t queue, advanced; /* recipients that are not pending */
	uint8_t nonce, dir;
};

/* A message that gets the name of its inode. */
struct misnamed {
	enum spool_dir dir;
	uint64_t name; /* 0: no reasons follow from it */
	uint64_t inode;
	char *leaf;
};

struct check {
	struct worker *w;
	const struct task *t;
	struct spool sp;
	bool repair;
	struct tally tally; /* done: mended; refused: left */
	struct seen *seen;
	size_t nseen, seen_cap;
	struct misnamed *misnamed;
	size_t nmisnamed, misnamed_cap;
};

/* A name in a directory. */
struct place {
	enum spool_dir dir;
	struct spool_item item;
	char leaf[300]; /* relative to the directory */
	int fd;         /* of the file; -1 */
	struct stat st;
};

/* Tells of a flaw, mends it with --repair, and counts it. 0: the check goes on.
 */
int flaw_found(
    struct check *c, enum flaw flaw, const struct place *p, const char *why);
/* A message that has another name than its inode is noted. -ENOMEM. */
int renumber_note(struct check *c, const struct place *p);
/* All that were noted get the names of their inodes, with their reasons. The
 * last error; the others are renamed all the same. */
int renumber_all(struct check *c);
void renumber_done(struct check *c);
/* A prepared message gets the name that goes with the id that its parent has
 * now. */
int renumber_prepared(struct check *c, const struct place *p);
/* Is this a name that a repair gives for a while, to which inode? */
bool renumber_is(const char *name, uint64_t *ret_inode);
/* Has a repair that did not end left that name of this inode there? */
bool renumber_left(const struct check *c, enum spool_dir dir, uint64_t inode);

/* Opens what is a regular file; of others st tells the kind. -ENOENT: gone. */
int place_open(const struct check *c, struct place *p);

/* Messages are noted, then judged, then found. -ENOMEM. */
int copies_note(struct check *c, const struct place *p,
    const struct queue_file *file, uint32_t advanced);
void copies_judge(struct check *c);
/* Behind copies_judge(): the message that was accepted as this one, whatever
 * its inode is now, and that is kept; NULL: none. */
const struct seen *
copies_find(const struct check *c, const struct queue_id *id);

/* The worker_job.run. */
int task_check(struct worker *w, void *task);
/* All queues that are wanted; an exit code. */
int task_check_all(struct task *t);

#endif
