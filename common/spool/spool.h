/* spool/spool.h - the directories of one queue, and the moves between them.
 *
 * A queue file is in exactly one state directory, named by its inode number,
 * in a subdirectory by inode modulo the split where the directory is split.
 * Each change of state is one renameat(). docs/SPOOL.md has the table of
 * states, transitions, and what a crash leaves at each point.
 *
 * Soft: -errno; -ENOENT when the queue's directory is absent (maybe not
 * mounted): a queue that existed is never created again by itself.
 * spool_create() leaves the marker file `queue`. Never logs.
 */
#ifndef SPOOL_SPOOL_H
#define SPOOL_SPOOL_H

#include "base/buf.h"
#include "spool/id.h"
#include "spool/queue_file.h"
#include "spool/sys.h"

#define SPOOL_SPLIT_DEFAULT 23 /* subdirectories, as conf-split of qmail */
#define SPOOL_SPLIT_MAX     1024

/* The directory above maildrop/: only queue-drop, set-group-id, passes. So no
 * other program of a user can make, remove or look up a name there. */
#define SPOOL_GATE          "gate"
#define SPOOL_GATE_MODE     0710
/* In QUEUE_BASE: a file for each user who has submitted through the door. */
#define SPOOL_USERS         "users"
/* In QUEUE_BASE: mail for root and postmaster that leads nowhere else. */
#define SPOOL_MAILBOX       "mailbox"
/* In QUEUE_BASE: rules that put mail on hold (hold_rule.h). */
#define SPOOL_RULES         "rules"

enum spool_dir {
	SPOOL_MAILDROP,
	SPOOL_PREPARED, /* messages of an expansion that is not done yet */
	SPOOL_INCOMING,
	SPOOL_ACTIVE,
	SPOOL_DEFERRED,
	SPOOL_HOLD,
	SPOOL_CORRUPT,
	SPOOL_DELETED, /* by an operator, for a day */
	SPOOL_DEFER,   /* reasons */
	SPOOL_BOUNCE,  /* reasons */
	SPOOL_LOCK,
	SPOOL_NDIRS,
};
#define SPOOL_DIR_BIT(dir) (1u << (dir))

/* One row a directory: name, split or not, owner, mode in a shared and in a
 * private instance. */
struct spool_dir_info {
	const char *name;
	bool split;
	bool owner_qmailq; /* else qmails */
	unsigned mode_shared, mode_private;
};
extern const struct spool_dir_info spool_dirs[SPOOL_NDIRS];

struct spool {
	const struct spool_sys *sys;
	uint32_t queue; /* number */
	uint32_t split; /* read from the marker file */
	int fd;         /* QUEUE_BASE/queueN */
	int dir[SPOOL_NDIRS];
	uid_t owner[SPOOL_NDIRS];
	gid_t group;  /* of the queue: may write its directories */
	char *path;   /* for messages */
	bool private; /* one user owns all of it */
	/* The sync of a directory takes all changes of names before it along:
	 * the file system has one journal of them (ext, xfs). */
	bool keeps_order;
};

/* The owners of new files and directories. A private instance has its own uid
 * in each.
 */
struct spool_owner {
	uid_t qmailq, qmails;
	gid_t qmail;
	gid_t qdrop; /* of queue-drop: may pass the gate */
	bool private;
};

/* Makes the missing parts of QUEUE_BASE/queueN, owners and modes by descriptor.
 * Called by the supervisor only, for a queue that is to exist. Failures have
 * their reason in queue_file_reason(): -EINVAL base is not absolute, split is
 * not 1..SPOOL_SPLIT_MAX; -ELOOP base or a directory is a link; -ENOTDIR;
 * -EPERM a directory of another user, or base in a directory where any user may
 * rename it; -ENOENT a directory queueN without marker that no file system is
 * mounted on; -EMEDIUMTYPE a queue of another layout, of which nothing is
 * changed. */
int spool_create(const char *base, uint32_t queue, uint32_t split,
    const struct spool_owner *owner);
/* In QUEUE_BASE: only the door makes files there, each owned by its user. */
int spool_make_users(int base, const struct spool_owner *owner);
/* In QUEUE_BASE: the maildir for root and postmaster without an alias. */
int spool_make_mailbox(int base, const struct spool_owner *owner);
/* In QUEUE_BASE: members of the group read rules, the queues write them. */
int spool_make_rules(int base, const struct spool_owner *owner);
/* Open the directories; those that this process may not enter stay -1.
 * -EMEDIUMTYPE: the marker names another version of the layout, a directory is
 * missing, or the maildrop/ of development versions is there. */
int spool_open(struct spool *sp, const struct spool_sys *sys, const char *base,
    uint32_t queue);
/* spool_open() of the directories of `dirs` alone, a sum of SPOOL_DIR_BIT(): no
 * other one is looked at, has an owner, or need exist. */
int spool_open_some(struct spool *sp, const struct spool_sys *sys,
    const char *base, uint32_t queue, unsigned dirs);
/* Called after a failed spool_open(), too. */
void spool_close(struct spool *sp);
#define SPOOL_ERROR_MAX 512
/* The words for an error of spool_open(): of -EMEDIUMTYPE the path of the
 * queue, what is wrong with its layout, and what to do. */
const char *spool_error(int error);
/* Is there no disk to wait for (tmpfs)? */
bool spool_is_in_memory(const struct spool *sp);

/* A sealed queue takes no new mail: it has a mark on disk, the file `closed`.
 * accept_commit() checks the mark after the message has its name, and the
 * supervisor scans the directories after it has set the mark: one of the two
 * sees the other, so no message stays in a queue that no process runs. */
#define SPOOL_SEALED "closed"
/* Durable. -ENOENT: no such queue. */
int spool_set_sealed(const char *base, uint32_t queue, bool sealed);
bool spool_is_sealed(const struct spool *sp);
/* The same of a queue that is not open; false also without such a queue. */
bool spool_is_sealed_at(const char *base, uint32_t queue);

/* Numbers of the queue directories below base, ascending; -errno or count.
 * Counts at most max. */
int spool_list(const char *base, uint32_t *ret_queues, size_t max);

#define SPOOL_PATH_MAX 64
/* "incoming/7/4711" relative to the queue's directory. */
void spool_path(const struct spool *sp, enum spool_dir dir, uint64_t inode,
    char *out, size_t size);
/* "7/4711", relative to sp->dir[dir]; size is SPOOL_PATH_MAX or more. */
void spool_leaf(const struct spool *sp, enum spool_dir dir, uint64_t inode,
    char *out, size_t size);
/* "7/NAME", or NAME where the directory is not split. False: it does not fit.
 */
bool spool_name_leaf(enum spool_dir dir, uint32_t split, const char *name,
    char *out, size_t size);
/* Of the name itself, also of a link. -errno. */
int spool_stat(const struct spool *sp, enum spool_dir dir, uint64_t inode,
    struct stat *ret_st);
/* Opens what lies under that name, whatever it is, but a link. -errno. */
int spool_open_name(
    const struct spool *sp, enum spool_dir dir, uint64_t inode, int flags);
/* Open a queue file: O_NOFOLLOW | O_NONBLOCK, then fstat: a regular file with
 * the right group or owner, mode, one link, and named by its inode, else -EPERM
 * with queue_file_reason(), and the caller moves it to corrupt/. The owner is
 * the submitter, so the group counts, which alone can make names in the
 * directories. In a private instance the owner counts. flags: O_RDONLY or
 * O_RDWR. */
int spool_open_file(
    const struct spool *sp, enum spool_dir dir, uint64_t inode, int flags);
/* The same without waiting for the disk; -EAGAIN: it would have to, or it
 * cannot be opened. */
int spool_open_cached(
    const struct spool *sp, enum spool_dir dir, uint64_t inode, int flags);
/* The same, and what fstat() says. */
int spool_open_stat(const struct spool *sp, enum spool_dir dir, uint64_t inode,
    int flags, struct stat *ret_st);
/* 0, -ENOENT, -EPERM: these checks of a file that another process opened, by
 * what fstat() says of it. */
int
spool_judge_file(const struct spool *sp, uint64_t inode, const struct stat *st);
/* -EAGAIN while its writer has neither committed nor died: try later. -ENOENT
 * when its writer refused it after it was opened. */
int spool_file_settled(int fd);
/* A file that is settled; the shared lock goes with the descriptor. */
int spool_open_settled(const struct spool *sp, enum spool_dir dir,
    uint64_t inode, int flags, struct stat *ret_st);

/* ---- drops: files in maildrop/, named UID.RANDOM by queue-drop ---- */

#define SPOOL_DROP_MAX 32
void spool_drop_name(uid_t uid, uint64_t random, char out[SPOOL_DROP_MAX]);
/* The user of a drop's name; false: not such a name. */
bool spool_drop_parse(const char *name, uid_t *ret_uid);
/* As spool_open_file(): a regular file with one link and the mode of a queue
 * file, owned by the user in its name. */
int spool_drop_open(const struct spool *sp, const char *name);
/* -EPERM; queue_file_reason() then returns this reason. For checks that only
 * the caller can make. */
int spool_refuse(const char *reason);
/* One rename into incoming/, to the name of this inode. -EEXIST: another file
 * has that name there. */
int spool_drop_move(const struct spool *sp, const char *name, uint64_t inode);

/* One rename. -ENOENT: the message is not there (any more); -EEXIST: another
 * file has the name there, nothing was moved. */
int spool_move(const struct spool *sp, enum spool_dir from, enum spool_dir to,
    uint64_t inode);
/* By name, for a file that is not named by its inode. The new name is the old
 * one, cleaned, with a number if that is taken. */
int spool_move_corrupt(const struct spool *sp, enum spool_dir from,
    uint32_t split, const char *name);
/* After a power cut a file may have the old name of a rename beside the new one
 * (btrfs). If all its names are found, in this queue and the others, one stays,
 * by the rule of docs/SPOOL.md. -EPERM: it has one name, or one of them is not
 * found, or two are in one directory. leaf is below dir. */
int spool_keep_one_name(
    const struct spool *sp, enum spool_dir dir, const char *leaf);
int spool_remove(const struct spool *sp, enum spool_dir dir, uint64_t inode);
/* That a file of this inode has come or gone there is on disk, and that it has
 * left where it was before: the file system is synced where the sync of a
 * directory is not enough for that (keeps_order). 0 or -errno. */
int
spool_sync_names(const struct spool *sp, enum spool_dir dir, uint64_t inode);
/* Is a message of that name in any directory of states, or in corrupt/? */
bool spool_has(const struct spool *sp, uint64_t inode);

/* Move a message with its reasons to another queue: incoming and active to
 * incoming, deferred with its due time to deferred, hold to hold. After a crash
 * at any point the message is in one of the two queues, with all its reasons;
 * the other may keep names of reasons, which the next message of that inode
 * clears. The caller knows that no process works on the message here, and that
 * it is settled.
 *
 * Nothing has moved with -ENOENT: the message is not here (any more); -EEXIST:
 * a file of that name is there; of the other queue, -ESHUTDOWN: it is sealed,
 * -ESTALE: its directory is gone, -EXDEV: it is on another file system. */
int spool_hand_over(const struct spool *from, const struct spool *to,
    enum spool_dir dir, uint64_t inode);

/* The due time of a deferred message is the mtime of its file in defer/ (made
 * if there is none), so that a scan needs no open. The mtime of the message
 * itself would not do: root or qmailq may own it, and only an owner may set
 * times. Written after the last reason_add() of the attempt and before the
 * move. A reader takes a time beyond any back-off (the clock was stepped back)
 * as due now. */
int spool_set_due(const struct spool *sp, uint64_t inode, usec_t due_wall);

/* Walk a directory a bounded number of steps at a time. Temporary names of dead
 * writers are never returned, and are removed on the way when older than
 * SPOOL_TEMP_AGE. */
#define SPOOL_TEMP_PREFIX "tmp."
/* A name that is looked at, and may be put back. */
#define SPOOL_TEMP_LOST   SPOOL_TEMP_PREFIX "lost."
#define SPOOL_TEMP_AGE    (24 * 3600 * USEC_PER_SEC)

struct spool_scan {
	const struct spool *sp;
	enum spool_dir dir;
	uint32_t split;          /* the subdirectory that is being read */
	struct dir_names *names; /* of that; allocated with the first */
	bool end;
};
/* The name SPOOL_MEND INODE is that of a file which "qctl check --repair" has
 * not renamed to the end. */
#define SPOOL_MEND "mend-"
struct spool_item {
	char name[256];
	uint32_t split;
	uint64_t inode; /* 0: a foreign name, or in a wrong subdirectory */
	/* 0 unless asked for: */
	/* In deferred/ the due time, in deleted/ the end, if it has one. */
	usec_t mtime_wall;
	uint64_t size;
	bool has_defer; /* of deferred/ and deleted/: a file in defer/ */
};
void spool_scan_begin(
    struct spool_scan *s, const struct spool *sp, enum spool_dir dir);
/* 1: an item; 0: the end. -errno: this subdirectory was given up, the walk goes
 * on. */
int spool_scan_next(
    struct spool_scan *s, bool with_stat, struct spool_item *ret_item);
void spool_scan_done(struct spool_scan *s);

/* The one-owner lock: flock(2) of lock/NAME, on a descriptor that does not
 * write, so that the file system can be remounted read-only. Returns the
 * descriptor, which keeps the lock while it is open; -EAGAIN when another
 * process has it and !wait. */
int spool_lock(const struct spool *sp, const char *name, bool wait);

#endif
