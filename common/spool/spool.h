/* spool/spool.h - the directories of one queue, and the moves between them.
 *
 * A queue file is in exactly one state directory, named by its inode number,
 * in a subdirectory by inode modulo the split where the directory is split.
 * Each change of state is one renameat(). docs/SPOOL.md has the table of
 * states, transitions, and what a crash leaves at each point.
 *
 * Soft: -errno; D19: -ENOENT when the queue's directory is not there, which
 * is never created again behind the operator's back (the marker file `queue`
 * is what spool_create() leaves). Never logs.
 */
#ifndef SPOOL_SPOOL_H
#define SPOOL_SPOOL_H

#include "base/buf.h"
#include "spool/id.h"
#include "spool/queue_file.h"
#include "spool/sys.h"

#define SPOOL_SPLIT_DEFAULT 23 /* subdirectories, as conf-split elsewhere */
#define SPOOL_SPLIT_MAX     1024

/* Above maildrop/: only queue-drop, set-group-id, passes. So nobody else can
 * make, take or even ask for a name there. */
#define SPOOL_GATE          "gate"
/* In QUEUE_BASE: a file for each user who came through. */
#define SPOOL_USERS         "users"

enum spool_dir {
	SPOOL_MAILDROP,
	SPOOL_INCOMING,
	SPOOL_ACTIVE,
	SPOOL_DEFERRED,
	SPOOL_HOLD,
	SPOOL_CORRUPT,
	SPOOL_DEFER,  /* reasons */
	SPOOL_BOUNCE, /* reasons */
	SPOOL_LOCK,
	SPOOL_NDIRS,
};

/* One row a directory: name, split or not, who owns it, its mode with users
 * of its own and in a private instance. */
struct spool_dir_info {
	const char *name;
	bool split;
	bool owner_qmailq; /* else qmails */
	unsigned mode_shared, mode_private;
};
extern const struct spool_dir_info spool_dirs[SPOOL_NDIRS];

struct spool {
	const struct spool_sys *sys;
	uint32_t queue; /* its number */
	uint32_t split; /* read from the marker file */
	int fd;         /* QUEUE_BASE/queueN */
	int dir[SPOOL_NDIRS];
	uid_t owner[SPOOL_NDIRS];
	gid_t group;  /* of the queue: who may write its directories */
	char *path;   /* for messages */
	bool private; /* one user owns all of it */
};

/* Who owns what, when it is made. A private instance has its own uid in each.
 */
struct spool_owner {
	uid_t qmailq, qmails;
	gid_t qmail;
	gid_t qdrop; /* of queue-drop: who may pass the gate */
	bool private;
};

/* Make what is missing of QUEUE_BASE/queueN, owners and modes by descriptor.
 * Called by the supervisor only, for a queue that is to exist. Whatever fails
 * has its reason in queue_file_reason():
 * -EINVAL base is not absolute, split is not 1..SPOOL_SPLIT_MAX; -ELOOP base
 * or a directory is a link; -ENOTDIR; -EPERM another's directory, or base in
 * a directory where everybody may rename it (F5, X1); -ENOENT a directory
 * queueN without marker that no file system is mounted on (D19). */
int spool_create(const char *base, uint32_t queue, uint32_t split,
    const struct spool_owner *owner);
/* In QUEUE_BASE: only the door makes files there, each owned by its user. */
int spool_make_users(int base, const struct spool_owner *owner);
/* The gate and maildrop/ alone, of a queue that is open as a descriptor. */
int spool_make_maildrop(int queue, const struct spool_owner *owner);
/* Open the directories; those that this process may not enter stay -1. */
int spool_open(struct spool *sp, const struct spool_sys *sys, const char *base,
    uint32_t queue);
/* After a spool_open() that failed, too. */
void spool_close(struct spool *sp);

/* A queue that is to take nothing any more carries a mark on disk: the file
 * `closed`. accept_commit() looks for it after the file has its name, and the
 * supervisor looks at the directories after it has set the mark: one of the
 * two sees the other, so that nothing is left in a queue that nobody runs. */
#define SPOOL_CLOSED "closed"
/* Durable. -ENOENT: no such queue. */
int spool_set_closed(const char *base, uint32_t queue, bool closed);
bool spool_is_closed(const struct spool *sp);
/* The same of a queue that is not open; false also when it is not there. */
bool spool_is_closed_at(const char *base, uint32_t queue);

/* Numbers of the queue directories below base, ascending; -errno or count.
 * More than max are not counted. */
int spool_list(const char *base, uint32_t *ret_queues, size_t max);

/* Bring a queue of an earlier version to this one: gate/ is made, drops in the
 * old maildrop/, which anybody could write to, are copied behind it, and the old
 * directory goes. The supervisor calls this before spool_open(); on a queue of
 * this version nothing is done. A drop above `largest` bytes (0: none), or one
 * that is mostly a hole, goes to corrupt/ uncopied. -errno: what could not be
 * moved stays where no user can add to it. */
int spool_upgrade(const char *base, uint32_t queue,
    const struct spool_owner *owner, uint64_t largest);
/* The size of the largest queue file under these limits of a submission; 0: no
 * limit of content. */
uint64_t spool_largest(uint64_t max_content, uint32_t max_rcpts);

#define SPOOL_PATH_MAX 48
/* "incoming/7/4711" relative to the queue's directory. */
void spool_path(const struct spool *sp, enum spool_dir dir, uint64_t inode,
    char *out, size_t size);
/* The same relative to sp->dir[dir]: "7/4711". */
void spool_leaf(const struct spool *sp, enum spool_dir dir, uint64_t inode,
    char *out, size_t size);
/* Open a queue file: O_NOFOLLOW | O_NONBLOCK, then fstat: a regular file of
 * ours (group or owner, mode, one link, the inode that it is named by), else
 * -EPERM with queue_file_reason(), and the caller moves it to corrupt/. The
 * owner is who submitted; only the group can make names in the directories. In
 * a private instance the owner counts.
 * flags: O_RDONLY or O_RDWR. */
int spool_open_file(
    const struct spool *sp, enum spool_dir dir, uint64_t inode, int flags);
/* -EAGAIN while its writer has neither committed nor died: look later. -ENOENT
 * when its writer refused it after it was opened. */
int spool_file_settled(int fd);

/* ---- drops: files in maildrop/, named UID.RANDOM by queue-drop ---- */

#define SPOOL_DROP_MAX 32
void spool_drop_name(uid_t uid, uint64_t random, char out[SPOOL_DROP_MAX]);
/* Whose it is; false: not such a name. */
bool spool_drop_parse(const char *name, uid_t *ret_uid);
/* As spool_open_file(): a regular file with one link and the mode of a queue
 * file, owned by the user in its name. */
int spool_drop_open(const struct spool *sp, const char *name);
/* -EPERM with what queue_file_reason() then answers: for what only the caller
 * can judge. */
int spool_refuse(const char *reason);
/* One rename into incoming/, by the inode that *ret_inode tells. -EEXIST:
 * another file has that name there. */
int spool_drop_move(const struct spool *sp, const char *name, uint64_t inode);

/* One rename. -ENOENT: it is not there (any more); -EEXIST: another file has
 * the name there, nothing was moved. */
int spool_move(const struct spool *sp, enum spool_dir from, enum spool_dir to,
    uint64_t inode);
/* By name, for what is not named by an inode (D16, D17). The new name is the
 * old one, cleaned, with a number where it is taken. */
int spool_move_corrupt(const struct spool *sp, enum spool_dir from,
    uint32_t split, const char *name);
/* After a power cut a file may have the old name of a rename beside the new one
 * (btrfs). When all its names are found, in this queue and the others, one
 * stays: docs/SPOOL.md says which. -EPERM: it has one name, or one of them is
 * nowhere, or two are in one directory. leaf is below dir. */
int spool_keep_one_name(
    const struct spool *sp, enum spool_dir dir, const char *leaf);
int spool_remove(const struct spool *sp, enum spool_dir dir, uint64_t inode);
/* Is a message of that name in any directory of states, or in corrupt/? */
bool spool_has(const struct spool *sp, uint64_t inode);

/* Move a message with its reasons to another queue: incoming and active to
 * incoming, deferred with its due time to deferred, hold to hold. Cut anywhere
 * it is in one of the two queues, with all its reasons; the other may keep
 * names of reasons, which the next message of that inode clears. The caller
 * knows that nobody works on it here, and that it is settled.
 *
 * Nothing has moved with: -ENOENT, it is not here (any more); -EEXIST, a file
 * of that name is there; and of the other queue -ESHUTDOWN, it is closed,
 * -ESTALE, its directory is gone, -EXDEV, it is on another file system. */
int spool_hand_over(const struct spool *from, const struct spool *to,
    enum spool_dir dir, uint64_t inode);

/* The due time of a deferred message: the mtime of its file in defer/ (made
 * if there is none), so that a scan needs no open. Not of the message itself:
 * that may be root's or qmailq's, and only an owner may set times. Written
 * after the last reason_add() of the attempt and before the move; what is
 * further away than any back-off reaches (the clock was stepped back, T2) the
 * reader takes as due now. */
int spool_set_due(const struct spool *sp, uint64_t inode, usec_t due_wall);

/* Walk a directory a bounded number of steps at a time. What a writer that
 * died left under a temporary name is removed on the way when it is older than
 * SPOOL_TEMP_AGE, and never shown. */
#define SPOOL_TEMP_PREFIX "tmp."
#define SPOOL_TEMP_AGE    (24 * 3600 * USEC_PER_SEC)

struct spool_scan {
	const struct spool *sp;
	enum spool_dir dir;
	uint32_t split; /* the subdirectory that is being read */
	void *stream;   /* DIR */
	bool end;
};
struct spool_item {
	char name[256];
	uint32_t split;
	uint64_t inode; /* 0: a foreign name, or not where it belongs (D17) */
	/* 0 unless asked for: */
	usec_t mtime_wall; /* in deferred/ the due time, if it has one */
	uint64_t size;
};
void spool_scan_begin(
    struct spool_scan *s, const struct spool *sp, enum spool_dir dir);
/* 1: an item; 0: the end. -errno: this subdirectory was given up, go on. */
int spool_scan_next(
    struct spool_scan *s, bool with_stat, struct spool_item *ret_item);
void spool_scan_done(struct spool_scan *s);

/* The one-owner lock: flock(2) of lock/NAME, on a descriptor that does not
 * write, so that the file system can be remounted read-only (D9). The
 * descriptor, kept open as long as the lock is; -EAGAIN when another process
 * has it and !wait. */
int spool_lock(const struct spool *sp, const char *name, bool wait);

#endif
