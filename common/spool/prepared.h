/* spool/prepared.h - messages that this system makes of another one, before
 * they count: by the expansion of an alias (docs/ALIASES.md, "Exactly once"),
 * and reports (docs/REPORTS.md, "Exactly once").
 *
 * Recipient number I of message ID is expanded into files ID.I.0, ID.I.1 … of
 * prepared/; report number K of its failures is ID.report.K. Nobody delivers
 * them there. The parent alone decides about them: by the mark of recipient I,
 * or by the reports that its reasons say were made, under the exclusive lock of
 * the parent's file.
 * Settling moves them to incoming/ or away, by the table of that page; whoever
 * does it, and how often, the result is the same.
 *
 * Soft: -errno. Never logs. Never waits for a lock.
 */
#ifndef SPOOL_PREPARED_H
#define SPOOL_PREPARED_H

#include "spool/spool.h"

struct prepared {
	struct queue_id parent;
	uint32_t index;  /* of the recipient in the parent; PREPARED_REPORT */
	uint32_t number; /* of the message among those of this recipient */
};
/* A message has fewer recipients. */
#define PREPARED_REPORT   UINT32_MAX

#define PREPARED_NAME_MAX (QUEUE_ID_SIZE + 22)
_Static_assert(PREPARED_NAME_MAX <= SPOOL_PATH_MAX, "a name in prepared/");

void prepared_name(const struct prepared *p, char out[PREPARED_NAME_MAX]);
/* -EINVAL for a foreign name. */
int prepared_parse(const char *name, struct prepared *ret);

/* The exclusive lock of a message that is open, without waiting: no other
 * process expands or settles it, or moves it to another queue. -EAGAIN: another
 * has it; -ENOENT: the message was removed. */
int prepared_lock(int fd);

/* The mark of recipient `index`, and its place for queue_file_mark(). -EBADMSG:
 * there is no such recipient. */
int prepared_find_rcpt(int fd, const struct queue_file *file, uint32_t index,
    struct queue_rcpt *ret_rcpt);

enum settled {
	SETTLED_AWAY,     /* removed: the expansion was not done, or failed */
	SETTLED_INCOMING, /* moved to incoming/ */
	SETTLED_CORRUPT,  /* moved to corrupt/, where its parent is */
};
/* One name in prepared/: enum settled; *ret_inode is set with
 * SETTLED_INCOMING. It stays where it is with
 * -EINVAL, a foreign name; -EAGAIN, an expansion is under way; another -errno,
 * which may pass. -ENOENT: it is gone. */
int spool_settle_prepared(
    const struct spool *sp, const char *name, uint64_t *ret_inode);
/* All names of a message whose file is locked by this caller. `each`, if any,
 * is told of those that went to incoming/. The first error; the others are
 * settled all the same. */
int spool_settle_message(const struct spool *sp, int fd,
    const struct queue_file *file, uint64_t inode,
    void (*each)(void *arg, uint64_t inode), void *arg);
/* Take away what is prepared for one recipient of it: its expansion begins
 * anew, or has failed. */
int spool_drop_prepared(
    const struct spool *sp, const struct queue_id *parent, uint32_t index);

#endif
