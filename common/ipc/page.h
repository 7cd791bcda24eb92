/* ipc/page.h - the published pages in shared memory (docs/IPC.md).
 *
 * Leading bytes are those that existing readers know, in native byte order; a
 * versioned page follows: magic, version, size, sequence. A page has one
 * writer, which maps it; readers read() it into a copy of their own, so that a
 * segment that shrinks ends no reader.
 *
 * Sequence lock: the number is odd during a write; a reader keeps a copy if it
 * read the same even number before and after.
 *
 * Every value read here is foreign: the reader clamps it, and finds a stale
 * page by its heartbeat.
 */
#ifndef IPC_PAGE_H
#define IPC_PAGE_H

#include "base/base.h"
#include "ipc/names.h"

#include <sys/types.h>

#define PAGE_QUEUES_MAX    256
/* The version of a page: an older page of a queue is read, too. */
#define SCHED_PAGE_VERSION 3
#define QUEUE_PAGE_VERSION 4
#define PAGE_STALE         (10 * USEC_PER_SEC) /* older heartbeat: not chosen */
#define PAGE_AGES          10 /* age histogram, by doubling from 5 minutes (qshape) */

struct page_head {
	uint64_t magic;
	uint32_t version;
	uint32_t size;       /* of the whole segment */
	uint32_t seq;        /* sequence lock */
	uint32_t pid;        /* of the writer */
	int64_t start_ticks; /* of the writer, field 22 of /proc/PID/stat */
	int64_t beat_mono;   /* CLOCK_MONOTONIC of the last publication, usec */
	int64_t beat_wall;
};

enum queue_state {
	QUEUE_STATE_NONE, /* the row is free */
	QUEUE_STATE_OPEN,
	QUEUE_STATE_CLOSING,
	QUEUE_STATE_DISABLED,
	QUEUE_STATE_QUARANTINED,
};

/* "open", "closing" …; "?" for an unknown one. */
const char *queue_state_name(uint32_t state);

#define SCHED_REASON_SIZE     96
#define SCHED_CHANGE_SIZE     160
#define SCHED_ANSWER_SIZE     116
#define SCHED_CONF_ERROR_SIZE 256

/* Bits of sched_row.flags. */
#define SCHED_ROW_MANUAL      1u /* an operator set load_pct (setqload) */
/* An operator disabled the queue; a DISABLED row without this bit is faulty.
 * With another state: DISABLED follows when that state ends. */
#define SCHED_ROW_OVERRIDE    2u
/* CLOSING, and its mail moves to other queues. */
#define SCHED_ROW_EVACUATING  4u
/* A process of the queue hangs; with OPEN the reason names it. */
#define SCHED_ROW_SILENT      8u
/* New mail is refused: the file system is full. The reason has the figures. */
#define SCHED_ROW_FULL        16u
/* New mail is refused: the file system is read-only, or fails. */
#define SCHED_ROW_READ_ONLY   32u
/* The disk lets a call wait; the reason has the time. */
#define SCHED_ROW_LATE        64u
/* DISABLED for a fault, and by an operator, too; the reason is the fault's. */
#define SCHED_ROW_ALSO_HAND   128u
#define SCHED_ROW_NO_MAIL     (SCHED_ROW_FULL | SCHED_ROW_READ_ONLY)

struct sched_row {
	uint32_t queue; /* number */
	uint32_t state; /* enum queue_state */
	/* Raised with every change of state and every new group of processes: a
	 * program that chose the queue under another number chooses again. */
	uint32_t generation;
	uint32_t pid; /* of queue-send, 0 while it is down */
	uint32_t restarts;
	uint32_t flags;
	uint32_t load_pct;          /* the part in the mean */
	uint32_t reported_load_pct; /* of the last load report */
	int64_t manual_until_mono;  /* end of an operator's load; 0: none */
	/* DISABLED by an operator: the end; CLOSING: the time when its mail
	 * begins to move; QUARANTINED: the next attempt. 0: not known, or for
	 * ever. */
	int64_t until_mono;
	int32_t last_status; /* wait status of the last child that ended */
	uint32_t spare;
	char reason[SCHED_REASON_SIZE]; /* why it is not open, or silent; "" */
};

/* shm /qscheduler */
struct sched_page {
	uint32_t qcount; /* queues in use */
	uint32_t qconf;  /* queues that exist on disk */
	struct page_head head;
	uint32_t threshold_pct; /* QUEUE_LOAD */
	uint32_t queue_start;
	uint32_t queue_max;
	uint32_t dynamic;      /* 1: -d */
	uint64_t bad_requests; /* refused on the message queue */
	uint32_t spare_1;
	uint32_t qmails_uid;    /* owner of trusted /queueN */
	uint32_t queue_count;   /* QUEUE_COUNT */
	uint32_t mean_load_pct; /* mean of the open queues, for growth */
	uint32_t held_count;    /* setqload --count; 0: none */
	uint32_t spare;
	int64_t held_until_mono; /* of held_count; 0: for ever */
	uint64_t changes;        /* queues added or closed since the start */
	int64_t change_wall;     /* of the last one, 0: none */
	char change[SCHED_CHANGE_SIZE]; /* the last one, with its figures */
	uint8_t
	    unused[8192]; /* answers to requests, of supervisors of before */
	struct sched_row rows[PAGE_QUEUES_MAX];
	/* Why the files of the operator are not in force: "FILE:LINE: reason".
	 * Empty: the files that were read last are in force. */
	char conf_error[SCHED_CONF_ERROR_SIZE];
};

/* shm /queueN */
struct queue_page {
	int32_t local_used, remote_used;   /* deliveries running */
	int32_t local_limit, remote_limit; /* 0: none of this kind */
	int32_t disabled;
	/* Of the transport that has the least room: the sums above also count
	 * room of transports that no mail waits for. */
	int32_t busiest_pct;
	struct page_head head;
	uint32_t queue;
	uint32_t generation;
	/* backlog: files; deferred: those of deferred/ that were tried */
	uint64_t maildrop, incoming, active, deferred, hold, corrupt;
	uint64_t active_recipients; /* recipients in memory */
	/* counters since the start of queue-send */
	uint64_t accepted, delivered, deferred_total, failed, expired;
	uint64_t rings, rings_bad, rings_stale, found_by_scan, lost_rings;
	uint64_t io_errors;
	uint64_t bytes_delivered;
	/* of the last minute, in 1/100 per second */
	uint64_t rate_in, rate_out;
	int64_t oldest_wall; /* arrival of the oldest message in the queue, 0 */
	uint64_t age[PAGE_AGES]; /* messages by age: <5, <10, … minutes */
	uint32_t read_only; /* marks cannot be written, so no delivery starts */
	uint32_t scan_only; /* no message queue: mail is found by the scan */
	/* Files of deferred/ that were never tried, not counted in deferred. */
	uint64_t untried;
	/* The beginning of the oldest call of queue-send that waits for the
	 * disk. In the future, with DISK_WORK_NONE: the time of the next call.
	 * 0: not known (version 3; a spool in memory). */
	int64_t disk_since_mono;
	uint32_t disk_work; /* enum disk_work: the kind of that call */
	uint32_t spare;
};

/* A call that waits for a disk. */
enum disk_work {
	DISK_WORK_NONE,
	DISK_WORK_PROBE, /* one block, written to ask the disk */
	DISK_WORK_MOVE,
	DISK_WORK_REMOVAL,
	DISK_WORK_MARK,
	DISK_WORK_READ,
	DISK_WORK_ACT, /* of an operator */
	DISK_WORK_SYNC,
};

/* A disk that lets a call wait for so long gets new mail only if no other queue
 * takes the mail. Shorter than DISK_LATE: each submission that begins before
 * the wait is seen waits, too, and a wrong answer costs nothing. */
#define DISK_SLOW (150 * USEC_PER_MSEC)
/* From here on a disk is called late: in the log, and by the commands. */
#define DISK_LATE USEC_PER_SEC

_Static_assert(offsetof(struct sched_page, qcount) == 0, "qread reads it");
_Static_assert(offsetof(struct sched_page, qconf) == 4, "qread reads it");
_Static_assert(offsetof(struct queue_page, local_used) == 0, "five ints");
_Static_assert(offsetof(struct queue_page, remote_used) == 4, "five ints");
_Static_assert(offsetof(struct queue_page, local_limit) == 8, "five ints");
_Static_assert(offsetof(struct queue_page, remote_limit) == 12, "five ints");
_Static_assert(offsetof(struct queue_page, disabled) == 16, "five ints");
_Static_assert(offsetof(struct sched_page, head) == 8, "docs/IPC.md");
_Static_assert(offsetof(struct queue_page, head) == 24, "docs/IPC.md");
_Static_assert(sizeof(struct page_head) == 48, "docs/IPC.md");
_Static_assert(sizeof(struct sched_row) == 152, "version 3");
_Static_assert(sizeof(struct sched_page) == 47648, "version 3");
#define QUEUE_PAGE_SIZE_3 offsetof(struct queue_page, disk_since_mono)
_Static_assert(QUEUE_PAGE_SIZE_3 == 352, "version 3");
_Static_assert(sizeof(struct queue_page) == 368, "version 4");

/* ---- the writer ---- */

struct page_owner {
	uid_t uid; /* (uid_t)-1: leave */
	gid_t gid;
	mode_t mode;
};

/* Create a segment: remove a stale one by the safe rule, O_EXCL, owner and
 * mode by descriptor, size, memory allocated (a full /dev/shm is an error here
 * and not a SIGBUS later); mapped, zero except the head, which names this
 * process. The descriptor is open for writing. magic is one of ours.
 *
 * The safe rule: a segment that belongs to this user or to owner->uid is stale
 * when its writer, by pid and start time, has ended. A segment of another user
 * is removed by root whatever it contains, and by no other user. -EBUSY: its
 * writer, *ret_pid, lives; -EPERM: another user owns the name; -EEXIST: another
 * process made it again at every try. */
int page_create(const char *name, size_t size, uint64_t magic,
    const struct page_owner *owner, void **ret_page, int *ret_fd,
    uint32_t *ret_pid);
/* Map a segment that the supervisor made and passed as a descriptor, after
 * fstat: -EBADMSG for another size, magic or version. */
int page_map(int fd, size_t size, uint64_t magic, void **ret_page);
void page_unmap(void **page, size_t size);
/* Is the segment of fd still as it was made? A truncated segment ends no
 * process (ipc/mapping.h), but readers no longer see it. -ENOENT: its name was
 * removed; -EBADMSG: another size, or another head; *ret_why then has text to
 * follow the name: "was taken away". */
int page_check(int fd, size_t size, uint64_t magic, const char **ret_why);
/* Writer: restores the head of its page, which other processes could overwrite.
 * self: this process, for a writer that asks often keeps its number. */
bool page_is_own(
    const struct page_head *head, size_t size, uint64_t magic, pid_t self);
void page_mend(struct page_head *head, size_t size, uint64_t magic);
/* The start time of a process for a head: 0 unknown, -1 dead but not yet
 * reaped. Pid and start time identify a process within this boot. */
int64_t page_start_ticks(pid_t pid);
/* Whether the process that a head names as its writer runs. Where /proc does
 * not tell, a process of that pid counts as the writer. */
bool page_writer_lives(const struct page_head *head);
/* Writer: changes the page between these two. end sets the heartbeat. */
void page_write_begin(struct page_head *head);
void page_write_end(struct page_head *head, usec_t now_mono, usec_t now_wall);
/* Take over as the writer: pid and start time. A page that its last writer left
 * half written is readable again. */
void page_own(struct page_head *head);

/* ---- readers ---- */

/* A copy, clamped to the types: counts to the size of the tables, an
 * unknown state to DISABLED, a text to its end, negative numbers to 0.
 *
 * A reader trusts /qscheduler of root or of its own user; /queueN of these two,
 * or of the user that such a /qscheduler names in qmails_uid.
 *
 * -ENOENT, -EACCES; -EPERM: the owner is not trusted; -EBADMSG: short,
 * wrong magic, version or size; -EAGAIN: torn at every try (about 10 ms). */
int sched_page_read(const char *instance, struct sched_page *ret_page);
/* sched_page_read() of a page of root alone. */
int sched_page_read_root(const char *instance, struct sched_page *ret_page);
int queue_page_read(
    const char *instance, uint32_t queue, struct queue_page *ret_page);
/* queue_page_read() for a caller that has read qmails_uid in the page of the
 * supervisor: that page, which is large, is not read again. */
int queue_page_read_of(const char *instance, uint32_t queue, uid_t qmails_uid,
    struct queue_page *ret_page);
/* queue_page_read_of() of a page of root or of qmails_uid alone. */
int queue_page_read_owned(const char *instance, uint32_t queue,
    uid_t qmails_uid, struct queue_page *ret_page);
/* Reads through the descriptor of the segment's maker, without a pause between
 * the tries: for an event loop. */
int queue_page_read_fd(int fd, struct queue_page *ret_page);
/* Load in percent: the largest of the two ratios and busiest_pct, clamped to
 * 0…1000. */
uint32_t queue_page_load(const struct queue_page *page);
/* The time that the disk of the queue lets its oldest call wait, or that
 * queue-send has not asked the disk when it should have; 0: none. */
usec_t queue_page_disk_late(const struct queue_page *page, usec_t now_mono);
/* The last publication is older than PAGE_STALE, or in the future. */
bool page_stale(const struct page_head *head, usec_t now_mono);

#define SCHED_PAGE_MAGIC 0x31444548435351ull /* "QSCHED1" */
#define QUEUE_PAGE_MAGIC 0x31455545555151ull /* "QQUEUE1" */

#endif
