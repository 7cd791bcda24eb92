/* ipc/page.h - the published pages in shared memory (docs/IPC.md).
 *
 * Leading bytes as existing readers of these objects know them, native byte
 * order; behind them a versioned page: magic, version, size, sequence.
 * A page has one writer, which maps it; readers read() it into a copy of
 * their own, so that a segment that shrinks under them ends nobody (I11).
 *
 * Sequence lock: odd while being written; a reader takes a copy whose two
 * readings of the number are the same even one.
 *
 * Everything read here is foreign: the reader clamps (I12), and judges
 * staleness by the heartbeat.
 */
#ifndef IPC_PAGE_H
#define IPC_PAGE_H

#include "base/base.h"
#include "ipc/names.h"

#include <sys/types.h>

#define PAGE_QUEUES_MAX 256
#define PAGE_ANSWERS    64 /* as many requests can wait (ipc/ask.h) */
#define PAGE_VERSION    2
#define PAGE_STALE      (10 * USEC_PER_SEC) /* heartbeat older: not chosen (I12) */
#define PAGE_AGES       10 /* age histogram, by doubling from 5 minutes (qshape) */

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

/* "open", "closing" …; "?" for what is none. */
const char *queue_state_name(uint32_t state);

#define SCHED_REASON_SIZE 96
#define SCHED_CHANGE_SIZE 160
#define SCHED_ANSWER_SIZE 116

/* Bits of sched_row.flags. */
#define SCHED_ROW_MANUAL  1u /* load_pct was given by hand (setqload) */
/* Disabled by hand; a DISABLED row without it is so for a fault. Beside
 * another state: it will be DISABLED when that is over. */
#define SCHED_ROW_HAND    2u
#define SCHED_ROW_GIVING  4u /* closing: its mail is handed to other queues */

struct sched_row {
	uint32_t queue; /* number */
	uint32_t state; /* enum queue_state */
	/* Goes up with every change of state and every new group of processes:
	 * who chose the queue under another one looks again. */
	uint32_t generation;
	uint32_t pid; /* of queue-send, 0 while it is down */
	uint32_t restarts;
	uint32_t flags;
	uint32_t load_pct;          /* what counts in the mean */
	uint32_t reported_load_pct; /* of the last load report */
	int64_t manual_until_mono;  /* of a load by hand; 0: none */
	/* DISABLED by hand: until then; CLOSING: its mail is handed over from
	 * then on; QUARANTINED: the next attempt. 0: not known, or for ever. */
	int64_t until_mono;
	int32_t last_status; /* wait status of the last child that ended */
	uint32_t spare;
	char reason[SCHED_REASON_SIZE]; /* why it is not open; "" */
};

struct sched_answer {
	uint32_t pid;   /* of who asked */
	uint32_t nonce; /* of the request */
	int32_t code;   /* 0 or -errno */
	char text[SCHED_ANSWER_SIZE];
};

/* shm /qscheduler */
struct sched_page {
	uint32_t qcount; /* queues in use */
	uint32_t qconf;  /* queues that exist on disk */
	struct page_head head;
	uint32_t threshold_pct; /* QUEUE_LOAD */
	uint32_t queue_start;
	uint32_t queue_max;
	uint32_t dynamic;       /* 1: -d */
	uint64_t bad_requests;  /* refused on the message queue */
	uint32_t answer_next;   /* rows of answers[] are used in turn */
	uint32_t qmails_uid;    /* whose /queueN are to be believed */
	uint32_t queue_count;   /* QUEUE_COUNT */
	uint32_t mean_load_pct; /* of the open queues, as growth sees it */
	uint32_t held_count;    /* setqload --count; 0: none */
	uint32_t spare;
	int64_t held_until_mono; /* of held_count; 0: for ever */
	uint64_t changes;        /* queues added or closed since the start */
	int64_t change_wall;     /* of the last one, 0: none */
	char change[SCHED_CHANGE_SIZE]; /* the last one, with its figures */
	struct sched_answer answers[PAGE_ANSWERS];
	struct sched_row rows[PAGE_QUEUES_MAX];
};

/* shm /queueN */
struct queue_page {
	int32_t local_used, remote_used;   /* deliveries running */
	int32_t local_limit, remote_limit; /* 0: none of this kind */
	int32_t disabled;
	/* Of the transport that has the least room: the sums above count the
	 * room of transports that nothing is for. */
	int32_t busiest_pct;
	struct page_head head;
	uint32_t queue;
	uint32_t generation;
	/* backlog: files */
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
	uint32_t read_only; /* marks cannot be written: no delivery starts */
	uint32_t scan_only; /* no message queue: the scan does all */
};

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
_Static_assert(sizeof(struct sched_row) == 152, "version 2");
_Static_assert(sizeof(struct sched_answer) == 128, "version 2");
_Static_assert(sizeof(struct sched_page) == 47392, "version 2");
_Static_assert(sizeof(struct queue_page) == 344, "version 2");

/* ---- the writer ---- */

struct page_owner {
	uid_t uid; /* (uid_t)-1: leave */
	gid_t gid;
	mode_t mode;
};

/* Create a segment: remove a stale one by the safe rule, O_EXCL, owner and
 * mode by descriptor, size, memory allocated (a full /dev/shm is an error here
 * and not a SIGBUS later); mapped, zeroed but for the head, which names this
 * process. The descriptor is open for writing. magic is one of ours.
 *
 * The safe rule: one that belongs to this user or to owner->uid is stale when
 * its writer, by pid and start time, is gone. One of somebody else is removed
 * by root whatever it says, and by nobody else (I14).
 * -EBUSY: its writer lives, *ret_pid says who; -EPERM: the name is somebody
 * else's; -EEXIST: it came back at every try. */
int page_create(const char *name, size_t size, uint64_t magic,
    const struct page_owner *owner, void **ret_page, int *ret_fd,
    uint32_t *ret_pid);
/* Map a segment that the supervisor made and passed as a descriptor, after
 * fstat: -EBADMSG when size, magic or version are not ours. */
int page_map(int fd, size_t size, uint64_t magic, void **ret_page);
void page_unmap(void **page, size_t size);
/* Is the segment of fd still what was made? One that was cut off under a
 * mapping ends nobody (ipc/mapping.h), but nobody sees it any more either.
 * -ENOENT: its name was taken away; -EBADMSG: another size, or another head;
 * then *ret_why says so: "was taken away", to follow the name. */
int page_check(int fd, size_t size, uint64_t magic, const char **ret_why);
/* Writer: the head of a page is as this process has made it; make it so. */
bool page_is_own(const struct page_head *head, size_t size, uint64_t magic);
void page_mend(struct page_head *head, size_t size, uint64_t magic);
/* Start time of a process, as it is in a head: 0 unknown, -1 dead but not yet
 * reaped. With the pid it tells a process from all others of this boot. */
int64_t page_start_ticks(pid_t pid);
/* Writer: between these two the page may change. end stamps the heartbeat. */
void page_write_begin(struct page_head *head);
void page_write_end(struct page_head *head, usec_t now_mono, usec_t now_wall);
/* Take over as the writer: pid and start time. A page that its last writer left
 * half written is readable again. */
void page_own(struct page_head *head);

/* ---- readers ---- */

/* A copy, clamped to what the types allow: counts to the size of the tables, an
 * unknown state to DISABLED, a text to its end, negative numbers to 0.
 *
 * Whom a reader believes: /qscheduler of root or of its own user; /queueN of
 * these two, or of the user that such a /qscheduler names in qmails_uid.
 *
 * -ENOENT, -EACCES; -EPERM: the owner is not to be believed; -EBADMSG: short,
 * wrong magic, version or size; -EAGAIN: torn at every try (about 10 ms). */
int sched_page_read(const char *instance, struct sched_page *ret_page);
/* The same, of root only. */
int sched_page_read_root(const char *instance, struct sched_page *ret_page);
int queue_page_read(
    const char *instance, uint32_t queue, struct queue_page *ret_page);
/* The same from the descriptor of who made the segment, without a pause
 * between the tries: for a loop. */
int queue_page_read_fd(int fd, struct queue_page *ret_page);
/* Load in percent: the largest of the two ratios and busiest_pct, clamped to
 * 0…1000 (I12). */
uint32_t queue_page_load(const struct queue_page *page);
/* No publication for PAGE_STALE, or one of the future. */
bool page_stale(const struct page_head *head, usec_t now_mono);

#define SCHED_PAGE_MAGIC 0x31444548435351ull /* "QSCHED1" */
#define QUEUE_PAGE_MAGIC 0x31455545555151ull /* "QQUEUE1" */

#endif
