/* qscheduler/queues/queues.h - queues: state, objects, faults, the end.
 *
 *	queues 1──n queue 1──1 group 1──n child
 *
 *	table.c          the queues, by number
 *	inventory.c      the queues that there are at the start
 *	state.c          what a queue is now
 *	queue.c          start, stop, fault
 *	health.c         each tick, and the disk
 *	late.c           a disk that lets calls wait
 *	room.c           file systems that take no new mail
 *	objects.c        IPC objects
 *	sites.c          the table of destinations
 *	override.c       settings of operators
 *	override_file.c  the same over a restart: QUEUE_BASE/by-hand
 *	quarantine.c     a queue whose child keeps failing
 *	retirement.c     the end of a queue
 *	disk.c           tasks of workers
 *	base.c           QUEUE_BASE (base.h)
 *	place.c          the directory QUEUE_BASE
 *	base_list.c      the queues that were ever made in it
 *	restored.c       a queue that was restored from a backup
 *	events.c         what children report
 *
 * This floor knows no supervisor; that one fills struct queue_events. */
#ifndef QSCHEDULER_QUEUES_QUEUES_H
#define QSCHEDULER_QUEUES_QUEUES_H

#include "ipc/page.h"
#include "qscheduler/children/children.h"
#include "qscheduler/queues/base.h"
#include "site/shared.h"

#include <mqueue.h>

struct queue;
struct queues;

/* Settings of operators, by the number of a queue, which need not run. The
 * count of queues is the setting of number 0. */
enum override_kind {
	OVERRIDE_DISABLED,
	OVERRIDE_LOAD,
	OVERRIDE_COUNT,
	NOVERRIDES,
};
struct override {
	/* End of each setting; USEC_NEVER: it has none, 0: it is not set. */
	usec_t until[NOVERRIDES];
	uint32_t value[NOVERRIDES];     /* percent, or queues */
	char reason[SCHED_REASON_SIZE]; /* for which it is disabled */
};

/* The page of a queue, as it was read last. */
struct queue_seen {
	bool fresh;
	uint32_t load_pct;
	uint64_t waiting; /* for a delivery */
	uint64_t rate;    /* deliveries in 100 s */
	uint64_t backlog; /* files that a queue must not go with */
};

/* The disk of a queue lets calls of queue-send wait. */
struct queue_late {
	usec_t time;       /* of the oldest call, by the page; 0: not late */
	uint32_t work;     /* enum disk_work of that call */
	bool told;         /* the log knows the beginning, and not the end */
	usec_t since;      /* of these: the beginning */
	usec_t well_since; /* the disk has answered since then; 0: it is late */
};

/* The end of a queue (docs/SUPERVISION.md). */
enum retirement_step {
	RETIRE_NO,
	RETIRE_DRAINING,
	RETIRE_EVACUATING,
	RETIRE_STOPPING,  /* the queue is empty: its processes are to end */
	RETIRE_SEALING,   /* all have ended: the mark, and the last scan */
	RETIRE_UNSEALING, /* mail was found by the last scan */
};
struct retirement {
	enum retirement_step step;
	usec_t since;
	usec_t scanned_at;
	usec_t unseal_at; /* not before */
	usec_t stop_at;   /* not before: it could not be sealed */
	usec_t said;      /* log_due() */
	bool told;        /* queue-send knows `targets` */
	uint32_t told_generation;
	uint32_t targets[PAGE_QUEUES_MAX]; /* the queues that get its mail */
	uint32_t ntargets;
	uint64_t moved, moved_before; /* by this queue-send, by those before */
	bool empty;                   /* queue-send says so */
	char why[SCHED_REASON_SIZE];
};

/* Questions to the disk that are open before the first run. */
enum first_check {
	FIRST_DONE,
	FIRST_FACTS,
	FIRST_MAKE,
};

#define QUEUE_REASON_SIZE 160

struct queue {
	struct queues *all;
	uint32_t number;
	enum queue_state want;  /* OPEN, or CLOSING: it drains, nothing new */
	enum queue_state shown; /* as it was published last */
	bool faulty;            /* not run; reason says why; tried again */
	bool stopping;          /* to end with its children */
	bool unchecked;  /* the directory is to be checked, and could not be */
	bool unanswered; /* the disk does not answer: no new mail, but the
			  * processes go on */
	enum first_check first_check;
	usec_t check_at;       /* check the disk, not before */
	struct base_room room; /* for new mail, by the last check of the disk */
	struct base_room room_logged; /* a check that the log knows */
	char reason[QUEUE_REASON_SIZE];
	bool uncounted;   /* places of it may be in no table but an older one */
	uint32_t changes; /* of the state that is shown */
	uint32_t quarantine_told; /* failures that reason speaks of, 0: none */
	int32_t last_status;
	struct group group;
	int page_fd;                /* shm /queueN, -1: it runs without */
	bool complained;            /* of the page or the bell, once */
	mqd_t bell;                 /* mq /queueN, -1: it runs by the scan */
	uint32_t reported_load_pct; /* of the last load report */
	struct queue_seen seen;
	struct queue_late late;
	struct retirement retirement;
};

/* shm /qscheduler.sites */
struct sites {
	int fd; /* -1: none, and no delivery starts */
	struct shared_shape shape;
	struct shared_id id;
	bool renewed;
	usec_t complained; /* log_due() */
};

/* Events for the floor above. */
struct queue_events {
	/* A queue came, went or changed: show it now. */
	void (*show)(void *ctx, usec_t now);
	/* A child has changed: is all ready, or down? */
	void (*progress)(void *ctx);
	/* Settings of operators are to be written to disk. */
	void (*overrides_changed)(void *ctx);
};

struct inventory;
struct queues {
	struct instance *instance;
	struct workers *workers;
	struct children *children;
	struct base *base;
	const struct child_events *child_events; /* queue_child_events */
	const struct queue_events *events;
	void *ctx;
	uint32_t start, count, max;            /* as they were at the start */
	bool dynamic;                          /* -d */
	bool keep;                             /* -n: those that are on disk */
	struct queue *queues[PAGE_QUEUES_MAX]; /* ascending numbers */
	uint32_t nqueues;
	bool on_disk[QUEUE_NUM_MAX + 1]; /* directories queueN */
	uint32_t nqueues_disk;           /* so many */
	struct queue *coming;            /* is being made; in no table yet */
	struct inventory *inventory;     /* while the table is made */
	bool any_there;                  /* at the start, not retired */
	bool started, stopping;
	/* By number. The count is as it was written last; grow.c has the one in
	 * force. */
	struct override overrides[QUEUE_NUM_MAX + 1];
	bool rescan; /* files went from queue to queue */
	usec_t rescan_at, sweep_at;
	usec_t days_at; /* when deleted mail of queues that do not run ends */
	uint32_t days_run; /* number of the run: each begins at another queue */
	mqd_t reports; /* mq /qscheduler, to write, for queue-send; -1: none */
	struct sites sites;
};

/* ---- table.c ---- */
/* Neither in the table nor started. NULL: no memory. */
struct queue *
queue_new(struct queues *all, uint32_t number, enum queue_state want);
/* Removes the IPC objects; children that are still there see the end of their
 * channel. */
void queue_free(struct queue **q);
/* NULL: there is none of this number. */
struct queue *queue_find(const struct queues *all, uint64_t number);
/* Into the table, by its number. -ENOSPC: there is no room. */
int queue_insert(struct queue *q);
/* Out of the table, and freed. Settings of operators stay. */
void queue_remove(struct queue *q);
/* There is a directory of this number. */
void queue_note_disk(struct queues *all, uint32_t number);
/* At the start: what a supervisor that was killed left of a queue that is not
 * run now. */
void queue_remove_stale(struct queues *all, uint32_t number);

/* ---- state.c: nothing here changes anything ---- */
enum queue_state queue_state(const struct queue *q, usec_t now);
/* New mail may come, and it is neither disabled nor quarantined. */
bool queue_is_usable(const struct queue *q, usec_t now);
/* A fault keeps it from running, or its disk does not answer. */
bool queue_is_faulty(const struct queue *q);
/* The queue is to end: of the supervisor's stop, or of a fault. */
bool queue_is_leaving(const struct queue *q);
/* The processes are up, or not to be waited for. */
bool queue_is_ready(const struct queue *q);
const char *queue_reason(const struct queue *q);
/* False of a number that no queue can have. */
bool override_holds(const struct queues *all, uint64_t number,
    enum override_kind kind, usec_t now);
/* The child that keeps failing; NULL: the queue is not in quarantine. */
const struct child *quarantine_of(const struct queue *q, usec_t now);
/* When it is tried again, 0: it is there, or not in quarantine. */
usec_t quarantine_until(const struct queue *q, usec_t now);
/* When its mail moves to others, USEC_NEVER if it does not drain. */
usec_t retirement_evacuates_at(const struct queue *q);
/* queue-send is up and can be told something. */
bool queue_hears(const struct queue *q);
bool queues_are_ready(const struct queues *all);
bool queues_are_down(const struct queues *all);

/* ---- queue.c ---- */
void queue_start(struct queue *q);
/* The queue is to end with its children. */
void queue_stop(struct queue *q);
/* The reason as the page has it. A longer text ends in "...". */
void queue_show_reason(const struct queue *q, char out[SCHED_REASON_SIZE]);
/* A fault ends its children until it is put right. The log has the reason. The
 * page has it without QUEUE_BASE in front, and without the remark behind ';'.
 */
void queue_fault(struct queue *q, const char *reason);
/* Make its directory, unless it is lost; then run it, if it is still to be. */
extern const struct worker_task queue_making, queue_making_again;
void queue_dump(const struct queue *q);

/* ---- health.c ---- */
void queue_tick(struct queue *q, usec_t now);
/* Every EVERY_HEALTH: what the disk says is heard of later. */
void queue_health(struct queue *q);
/* A process of it sleeps in the kernel: ask its disk soon. */
void queue_suspect(struct queue *q, usec_t now);

/* ---- room.c ---- */
/* The check of the disk has found this. The first queue of a file system that
 * takes no new mail logs an ALERT, the last one its end. The log tells the end
 * of a full file system when an eighth more than the reserve is free, so that
 * a file system at its reserve does not fill the log. */
/* The page of the queue was read; NULL: it cannot be read. */
void
queue_note_late(struct queue *q, const struct queue_page *page, usec_t now);
void queue_note_room(struct queue *q, const struct base_room *room);

/* ---- events.c ---- */
extern const struct child_events queue_child_events;
/* struct children: orphans_gone; ctx is struct queues. */
void queues_orphans_gone(void *all, uint32_t queue);

/* ---- objects.c ---- */
void objects_open(struct queue *q);
/* The flag `disabled` of its page, for readers of that alone: no new mail is to
 * choose it. Ours to write, all else there is queue-send's; not mapped, since
 * others can make the segment shrink. */
void objects_show_shut(struct queue *q, bool shut);
void objects_close(struct queue *q);
/* A page that was taken away, cut off or written over is made again. */
void objects_tick(struct queue *q);
/* An object that is missing or was unlinked is made again, and linked. */
void objects_health(struct queue *q);

/* ---- override.c ---- */
/* Every tick: take back settings whose time is over. */
void override_tick(struct queues *all, usec_t now);
void override_set_load(struct queue *q, uint32_t load_pct, usec_t until);
/* Injectors do not choose it, its children go on. A reason that
 * ask_judge_reason() has let pass; without one the reason stays of a queue that
 * is disabled already. */
void
override_disable(struct queue *q, usec_t until, const char *reason, size_t len);
/* Take back a setting of a queue; true: there was one. */
bool
override_clear(struct queues *all, uint32_t number, enum override_kind kind);
/* The queue has come into the table: tell what was set for it before. */
void override_came(const struct queue *q);
/* The queue has retired: its settings go. */
void override_gone(struct queue *q);
/* Fill the part of the override in a row whose state is there. */
void override_show(const struct queue *q, usec_t now, struct sched_row *row);

/* ---- override_file.c: QUEUE_BASE/by-hand ----
 * All that operators have set, so that a restart changes nothing of it.
 *
 *	by-hand 2
 *	# comment
 *	written WALL MONO BOOT
 *	disabled QUEUE LEFT REASON
 *	load QUEUE LEFT PERCENT
 *	count LEFT QUEUES
 *	end
 *
 * LEFT is the time that was left at the moment of writing, in seconds; 0: there
 * is no end, or of a count: when it is reached. REASON may be empty. WALL and
 * MONO are that moment on both clocks, in microseconds, BOOT is the boot that
 * MONO belongs to, `-` when it is not known.
 *
 * The file is written whole, and believed whole or not at all: only when it
 * belongs to us and no other may write it, each line is right, nothing is there
 * twice, and `end` is the last line.
 *
 * Soft: -errno with the words in *ret_error; dir is QUEUE_BASE, path its name
 * for words. Only override_restore() logs. */
#define OVERRIDE_NAME     "by-hand"
#define OVERRIDE_BOOT_MAX 36

struct override_moment {
	usec_t wall, mono;
	char boot[OVERRIDE_BOOT_MAX + 1]; /* "-": not known */
};
/* Now is mono. */
void override_moment_now(usec_t mono, struct override_moment *ret_now);
/* The end, by MONO of now, of a setting that ended at `until` by MONO of
 * `written`; 0: its time is over. What is left never grows. In one boot the
 * clock that nobody sets decides, else the wall clock. Pure. */
usec_t override_until(const struct override_moment *written, usec_t until,
    const struct override_moment *now);
/* Of a table [QUEUE_NUM_MAX + 1]: is anything set? */
bool override_is_any(const struct override *table, usec_t now);
/* The text of the file; nothing when nothing is set. */
int override_print(const struct override *table,
    const struct override_moment *now, struct buf *out);
/* Without a setting the file is removed. */
int override_write(int dir, const char *path, const struct override *table,
    const struct override_moment *now, struct buf *ret_error);
/* 1: the table is what was set at *ret_written, by MONO of then. 0: no file, or
 * -errno: the table is empty. */
int override_read(int dir, const char *path, struct override *table,
    struct override_moment *ret_written, struct buf *ret_error);
/* A file that is not believed gets a name that is free, by-hand.aside-1 …, in
 * *ret_name. -EEXIST: all 99 are there. */
#define OVERRIDE_ASIDE_MAX 99
int override_set_aside(int dir, char ret_name[32]);
/* At the start, when the queues are there: read all->overrides. True: the file
 * is to be written again. */
bool override_restore(struct queues *all, const struct override_moment *now);

/* ---- quarantine.c ---- */
/* Say in q->reason why, and tell of the beginning and the end of it. */
void quarantine_tick(struct queue *q, usec_t now);
/* An operator says that the cause is gone: everything of the queue that waits
 * is tried at once. False: nothing waited, and nothing was in quarantine. */
bool quarantine_release(struct queue *q);

/* ---- retirement.c ---- */
/* Nothing new comes from now on: the queue drains, its mail moves to others
 * after queue_drain_time, it is scanned again with its mark on disk, and goes.
 */
void retirement_begin(struct queue *q, const char *why, usec_t now);
/* The queue is wanted after all. False: too late. */
bool retirement_cancel(struct queue *q);
void retirement_tick(struct queue *q, usec_t now);
/* A child of it has changed. */
void retirement_progress(struct queue *q);
void retirement_on_handed(struct queue *q, uint64_t moved, uint64_t left);
/* After the ticks of all: queues that got mail scan again, and the directories
 * of queues that do not run are scanned. */
void retirement_tick_all(struct queues *all, usec_t now);

/* ---- inventory.c ---- */
/* Make the table of what is wanted, listed and on disk. A queue whose disk does
 * not answer for a while is in it, put aside. */
int inventory(struct queues *all);
/* The first check of a queue, which could not be begun before. */
void inventory_check(struct queue *q);

/* ---- disk.c: what workers run (struct worker_task) ----
 * The context is struct queues; struct base_facts is in `more`. */
int disk_facts(const struct worker_call *call);
/* Is its directory still what it was, and can it be written to? 1: yes, but for
 * a mark of a queue that is gone, which was taken away. */
int disk_check(const struct worker_call *call);
int disk_mail(const struct worker_call *call); /* facts.mail, or -errno */
/* base_make(), unless it was made once and is lost. */
int disk_make(const struct worker_call *call);
/* disk_make() of a queue that is disabled for a fault; -EAGAIN while another
 * process has the queue: a repair is not over before it has left the queue. */
int disk_make_again(const struct worker_call *call);
int disk_seal(const struct worker_call *call); /* base_seal() */
/* All that are not run: `more` has the numbers, uint32_t, of those with mail.
 */
int disk_sweep(const struct worker_call *call);
/* days.c, each second: deleted mail of queues that do not run is removed when
 * its day is over. */
void days_tick(struct queues *all, usec_t now);
/* Out of `more`; when that is not whole: an error, and mail may be there. */
struct base_facts disk_facts_of(const struct buf *more);

/* ---- sites.c: the table of destinations ---- */
/* After inventory(). Without a name where /dev/shm is full. Without a table no
 * delivery starts; the table is tried again every tick. */
void sites_open(struct queues *all);
/* Before the queues are freed: while processes of one are left behind the name
 * stays, for the next supervisor. */
void sites_close(struct queues *all);
/* Every tick: a table that was taken away, cut off or written over is replaced,
 * and open when all that is held is counted in it. */
void sites_tick(struct queues *all);
void sites_on_lost(struct queue *q, uint32_t table);
void sites_on_counted(struct queue *q, uint32_t table);
/* Every EVERY_HEALTH: members whose group is gone are free, and a table
 * without a name gets its name if there is room in /dev/shm. */
void sites_collect(struct queues *all);
/* Before the links with agents: queue-send begins with it, or without. */
void sites_link(struct child *c);
/* No process of this generation is there any more: what they held is free. */
void sites_group_gone(struct queue *q);
/* The same, of any queue. */
void sites_forget(struct queues *all, uint32_t queue, uint32_t generation);
/* A child hangs in the kernel though it was killed. */
void sites_child_stuck(struct child *c);

#endif
