/* qscheduler/supervisor/super.h - the supervisor: one process, its queues,
 *their children.
 *
 *	super 1──n queue 1──4 child
 *
 * options.c   the command line            base.c     QUEUE_BASE, its lock, and
 *                                         base_list.c  the queues made in it
 * super.c     start, loop, stop           signal.c   TERM, HUP, ALRM, USR1
 * grow.c      how many queues: by load    retire.c   one closes and goes
 * inventory.c which queues there are      look.c     a process for a disk
 * disk.c      what is asked of a disk     store.c    our own files
 * queue.c     a queue: group, state       objects.c  its IPC objects
 * child.c     a child: events, its end    channel.c  what it says
 * heartbeat.c signs of life               quarantine.c  what keeps failing
 * spawn.c     a process                   link.c     who is joined to whom
 * sites.c     table of destinations       orphan.c   of a killed supervisor
 * publish.c   the page of /qscheduler     request.c  its message queue
 * roster.c    pids, for the next supervisor
 * hand.c      what operators have set     notify.c   systemd and s6
 * inforce.c   what children are to read   env.c      what they inherit
 * files.c     routing and programs, judged before children read them
 * reload.c    HUP
 *
 * After start-up nothing ends this process but TERM: what fails is logged and
 * tried again later. What children send is judged as a stranger's. */
#ifndef QSCHEDULER_SUPERVISOR_SUPER_H
#define QSCHEDULER_SUPERVISOR_SUPER_H

#include "config/conf.h"
#include "daemon/daemon.h"
#include "ipc/page.h"
#include "qscheduler/children/proc.h"
#include "qscheduler/supervisor/scale.h"
#include "qscheduler/queues/base.h"
#include "qscheduler/supervisor/inforce.h"
#include "qscheduler/supervisor/look.h"
#include "qscheduler/supervisor/notify.h"
#include "qscheduler/supervisor/options.h"
#include "qscheduler/children/orphan.h"
#include "qscheduler/children/spawn.h"
#include "qscheduler/supervisor/store.h"
#include "site/shared.h"

#include <mqueue.h>
#include <sys/queue.h>

#define SUPER_NSIGNALS 6
#define SUPER_TICK     (1 * USEC_PER_SEC)
#define SUPER_HEALTH   (60 * USEC_PER_SEC) /* IPC objects, disabled queues */
#define SUPER_READY    (10 * USEC_PER_SEC) /* ready at the latest, from start */
#define CHILD_FRAMES   64 /* taken from one child in a tick; it says little */
#define CHILD_TEXT_MAX 120

enum role {
	ROLE_QUEUE_SEND, /* its end takes the others along */
	ROLE_TODO_PROC,
	ROLE_DELIVER_LOCAL,
	ROLE_DELIVER_SMTP,
	NROLES,
};
/* The name of a role is the name of its program and of its end of a link. */
extern const char *const role_names[NROLES];

struct super;
struct queue;

/* Signs of life of a child: answers to PING; of queue-send its page, too.
 * Counted in ticks of ours, so that what stops all of us at once, or us alone,
 * is not taken for a child that hangs (T5). */
struct heartbeat {
	uint32_t serial; /* of the last PING */
	unsigned quiet;  /* ticks since the last sign */
	unsigned asked;  /* ticks since the PING that has no answer, 0: none */
	int64_t page_beat; /* as it was seen last */
	bool roused;       /* it was stopped, and was told to go on */
	bool told;         /* it is stuck in the kernel */
};

struct child {
	struct queue *queue;
	enum role role;
	struct proc proc;
	struct process process;
	struct wire *channel; /* NULL: none, or closed by the child */
	struct event *timer;  /* of proc.deadline */
	struct event *judge;  /* of `unjudged` */
	pid_t unjudged;       /* ended with 0, perhaps rightly; 0: none */
	unsigned frames;      /* taken in this tick */
	bool held;            /* its channel is not read until the next tick */
	unsigned mute;        /* ticks that it is there without a channel */
	struct heartbeat heartbeat;
	usec_t flood_told_at, bad_told_at;  /* complaints, not too often */
	int last_status;                    /* wait status of its last end */
	bool not_started;                   /* it could not be started again */
	char text[CHILD_TEXT_MAX + 1];      /* of its last STATUS */
	char last_text[CHILD_TEXT_MAX + 1]; /* the same, of its last life */
};

/* What an operator has set, until it is taken back or its time is over;
 * USEC_NEVER: for ever, 0: not set. */
struct hand {
	uint32_t load_pct;
	usec_t load_until;
	usec_t disabled_until;
	char reason[SCHED_REASON_SIZE];
};

/* What the page of a queue said last. */
struct queue_seen {
	bool fresh;
	uint32_t load_pct;
	uint64_t waiting; /* for a delivery */
	uint64_t rate;    /* deliveries in 100 s */
	uint64_t backlog; /* files that a queue must not go with */
};

/* The end of a queue (docs/SUPERVISION.md). */
enum retire_step {
	RETIRE_NO,
	RETIRE_CLOSING,
	RETIRE_GIVING,
	RETIRE_STOPPING,  /* it is empty: its processes are to end */
	RETIRE_SEALING,   /* they have: the mark, and the last look */
	RETIRE_UNSEALING, /* mail was found, or it was not yet run */
};
struct retire {
	enum retire_step step;
	usec_t since;
	usec_t looked_at; /* at its directories */
	usec_t unseal_at; /* not before */
	usec_t stop_at;   /* not before: it could not be sealed */
	usec_t said;
	bool told; /* queue-send knows the list below */
	uint32_t told_group;
	uint32_t given[PAGE_QUEUES_MAX]; /* whom it hands its mail to */
	uint32_t ngiven;
	uint64_t moved, moved_before; /* by this queue-send, by those before */
	bool empty;                   /* it says so */
	char why[SCHED_REASON_SIZE];
};

/* Questions to the disk that are open before the first run. */
enum first_look {
	FIRST_DONE,
	FIRST_FACTS,
	FIRST_MAKE,
};

struct queue {
	struct super *super;
	uint32_t number;
	enum queue_state want;  /* OPEN, or CLOSING: drained, nothing new */
	enum queue_state shown; /* as it was published last */
	bool disabled; /* reason says why; looked at again every SUPER_HEALTH */
	bool closing;  /* to be ended with its children */
	bool unchecked; /* its directory is to be looked at, and could not be */
	bool unanswered; /* its disk does not answer: nobody is to choose it,
			    but its processes go on */
	enum first_look first_look;
	usec_t check_at; /* its disk, not before */
	char reason[160];
	uint32_t generation;
	uint32_t group;   /* generation of its processes, which they know */
	bool group_going; /* queue-send has ended, others are still there */
	bool uncounted;   /* places of it may be in no table but an older one */
	uint32_t changes; /* of the state that is shown */
	uint32_t quarantine_told; /* failures that reason speaks of, 0: none */
	int32_t last_status;
	struct child children[NROLES];
	int page_fd;                /* shm /queueN, -1: runs without (I14) */
	bool complained;            /* of one of the two, which is said once */
	mqd_t bell;                 /* mq /queueN, -1: runs by the scan (I2) */
	uint32_t reported_load_pct; /* of the last load report */
	struct hand hand;
	struct queue_seen seen;
	struct retire retire;
};

/* The number of queues. */
struct grow {
	struct scale scale;
	struct scale_figures figures; /* of the last look */
	uint32_t held;                /* so many, by hand; 0: by the load */
	usec_t held_until;            /* 0: when it is reached */
	struct queue *coming;         /* is being made */
	struct scale_decision why;    /* it is */
	usec_t looked_at, failed_at;
	usec_t avoid[QUEUE_NUM_MAX + 1]; /* numbers not to be tried until */
	uint64_t changes;
	usec_t change_wall;
	char change[SCHED_CHANGE_SIZE];
};

/* shm /qscheduler.sites */
struct sites {
	int fd; /* -1: queues have windows each */
	struct shared_shape shape;
	struct shared_id id;
	bool renewed;
	usec_t complained; /* log_due() */
};

struct inventory;
struct super {
	struct options options;
	struct conf *conf;
	struct daemon_users users;
	struct base base;
	char *instance;    /* as it was at start, as all below */
	char *program_dir; /* where the children's programs lie */
	char **child_env;
	uint32_t queue_start, queue_count, queue_max;
	struct event_base *loop;
	struct event *signals[SUPER_NSIGNALS];
	struct event *tick;
	struct grow grow;
	struct look_list looks;
	struct inventory *inventory; /* while the table is made */
	bool any_there;              /* a directory, at the start */
	bool rescan;                 /* files went from queue to queue */
	usec_t rescan_at, sweep_at;
	struct queue *queues[PAGE_QUEUES_MAX]; /* ascending numbers */
	uint32_t nqueues;
	bool on_disk[QUEUE_NUM_MAX + 1]; /* directories queueN */
	uint32_t nqueues_disk;           /* so many */
	struct sched_page *page;         /* the segment, or memory of our own */
	int page_fd;                     /* -1: memory of our own */
	usec_t page_complained;          /* log_due() */
	mqd_t requests;                  /* mq /qscheduler, -1: none */
	mqd_t reports; /* the same, for children: to write only */
	struct event *requests_event;
	uint64_t bad_requests;
	struct store store;
	struct inforce_kept in_force;
	struct sites sites;
	struct orphans orphans;
	struct notify notify;
	char status[160]; /* as it was told last */
	usec_t started_at, next_health, last_reload;
	usec_t stop_deadline;
	uint32_t reloads;
	bool reload_wanted, reload_told, started, ready, stopping, done;
	int exit_status;
};

/* ---- super.c ---- */
/* Run until the end: an exit code. */
int super_run(const struct options *options);
void super_stop(struct super *s);
void super_limits(const struct super *s, bool orphan, struct proc_limits *ret);
/* A child has changed: is all there now? */
void super_progress(struct super *s);

/* ---- inventory.c ---- */
/* Make s->queues of what is wanted, listed and on disk. What does not answer
 * for a while is in it, put aside. */
int inventory(struct super *s);
/* The first look at a queue that could not be begun before. */
void inventory_look(struct queue *q);

/* ---- signal.c ---- */
/* Until they are open: a HUP must not end what is about to start. */
void super_signals_hold(void);
int super_signals_open(struct super *s);
void super_signals_close(struct super *s);

/* ---- queue.c ---- */
struct queue *
queue_new(struct super *s, uint32_t number, enum queue_state want);
/* NULL: there is none of this number. */
struct queue *queue_find(const struct super *s, uint64_t number);
/* Into the table, by its number. -ENOSPC: there is no room. */
int queue_insert(struct queue *q);
/* There is a directory of this number. */
void queue_note_disk(struct super *s, uint32_t number);
/* Out of the table, and freed. */
void queue_remove(struct queue *q);
/* New mail may come, and it is neither disabled nor quarantined. */
bool queue_is_usable(const struct queue *q, usec_t now);
/* Removes the IPC objects; children that are still there see the end of their
 * channel. */
void queue_free(struct queue **q);
void queue_disable(struct queue *q, const char *reason);
void queue_start(struct queue *q);
void queue_close(struct queue *q);
/* It is to end: of the supervisor's stop, or because it is disabled. */
bool queue_is_leaving(const struct queue *q);
bool queue_is_down(const struct queue *q);
bool queue_has_processes(const struct queue *q);
/* A child has changed: the rules of the group. */
void queue_progress(struct queue *q);
void queue_child_ended(struct queue *q, enum role role, int status);
/* May a process of the queue be started, or is something of its last group
 * there? It gets CLEAR when that has gone. */
bool queue_is_clear(const struct queue *q);
/* What an earlier supervisor had left of a queue, run or not, is gone. */
void queue_orphans_gone(struct super *s, uint32_t number);
/* Every SUPER_HEALTH: what the disk says is heard of later. */
void queue_health(struct queue *q);
/* A process of it sleeps in the kernel: ask its disk soon. */
void queue_suspect(struct queue *q, usec_t now);
/* A fault disables the queue, or its disk does not answer; why. */
bool queue_is_faulty(const struct queue *q);
const char *queue_reason(const struct queue *q);
/* Of LOOK_MAKE: it is run, if it is still to be. */
void queue_on_made(struct super *s, uint32_t number,
    const struct look_result *result, struct buf *more);
/* Every SUPER_TICK. */
void queue_tick(struct queue *q, usec_t now);
enum queue_state queue_state(const struct queue *q, usec_t now);
bool queue_is_ready(const struct queue *q);
void queue_send_all(struct queue *q, const struct msg *msg);
void queue_dump(const struct queue *q);

/* ---- objects.c ---- */
void objects_open(struct queue *q);
/* The flag `disabled` of its page, for those who look at nothing else: no new
 * mail is to choose it. Ours to write, all else there is queue-send's; not
 * mapped, since others can make the segment shrink. */
void objects_show_shut(struct queue *q, bool shut);
void objects_close(struct queue *q);
/* At the start: what a supervisor that was killed left of a queue that is not
 * run now (I15). */
void objects_remove_stale(struct super *s, uint32_t number);
/* A page that was taken away, cut off or written over is made again. */
void objects_tick(struct queue *q);
/* What is missing or was unlinked is made again (I2, I8), and linked. */
void objects_health(struct queue *q);

/* ---- child.c ---- */
int child_init(struct child *c, struct queue *q, enum role role);
void child_done(struct child *c);
/* How a process ended, in words, by its wait status. */
#define CHILD_END_SIZE 80
void child_describe_end(int status, char *out, size_t size);
void child_event(struct child *c, enum proc_event event);
/* Not there, and has to wait until it is tried again. */
bool child_is_failing(const struct child *c);
/* There, and not asked to end. */
bool child_is_joinable(const struct child *c);
int child_send(struct child *c, const struct msg *msg, int fd);
void child_tick(struct child *c);
/* queue-send has ended: what ended before it has followed it. */
void child_judge(struct child *c);
/* Take all that have ended; children that are not ours are ignored (P8, P9). */
void children_reap(struct super *s);

/* ---- channel.c ---- */
/* -ENOMEM: sock is still the caller's. */
int channel_open(struct child *c, int sock);
/* Not read until the next tick: it says too much, or what it says can wait. */
void channel_hold(struct child *c);
void channel_tick(struct child *c);
/* It has ended: hear what it still said. */
void channel_finish(struct child *c);

/* ---- heartbeat.c ---- */
void heartbeat_init(struct child *c);
/* Every SUPER_TICK: ask, and deal with a child that gives no sign (P3). */
void heartbeat_tick(struct child *c);
void heartbeat_pong(struct child *c, uint32_t serial);

/* ---- quarantine.c ---- */
/* The child that keeps failing; NULL: the queue is not in quarantine. */
const struct child *quarantine_of(const struct queue *q, usec_t now);
/* Say in q->reason why, and tell of the beginning and the end of it. */
void quarantine_tick(struct queue *q, usec_t now);
/* When it is tried again, 0: it is there, or not in quarantine. */
usec_t quarantine_until(const struct queue *q, usec_t now);
/* An operator says that the cause is gone: everything of the queue that waits
 * is tried at once. False: nothing waited, and nothing was in quarantine. */
bool quarantine_release(struct queue *q);

/* ---- link.c ---- */
/* The child was just started: its objects, and its links with those of its
 * queue that are there. */
void link_child(struct child *c);
void link_object(struct child *c, const char *name, int fd);

/* ---- publish.c ---- */
/* -EBUSY: another supervisor of this instance lives, *ret_pid says who. */
int publish_open(struct super *s, uint32_t *ret_pid);
void publish_close(struct super *s);
void publish(struct super *s, usec_t now);
void publish_answer(
    struct super *s, uint32_t pid, uint32_t nonce, int code, const char *text);
/* Is the segment of fd still there under its name? True also when that cannot
 * be known for want of memory or descriptors. */
bool publish_is_same(const char *name, int fd);
/* Make ours again if it is not: when it was taken away, cut off or written
 * over, every SUPER_TICK; when its name leads elsewhere, or there was none,
 * every SUPER_HEALTH. */
void publish_tick(struct super *s);
void publish_health(struct super *s);

/* ---- grow.c ---- */
/* Every SUPER_TICK, when ready: read the pages, add or close a queue if the
 * load says so. */
void grow_tick(struct super *s, usec_t now);
/* A load report: not only at the next tick. */
void grow_soon(struct super *s, usec_t now);
/* What is being made is given up. */
void grow_stop(struct super *s);
/* So many open queues now, and no change by load until then; 0: not longer
 * than it takes. It goes on by itself, a queue after the other; what fails is
 * logged and tried again. -ERANGE, -EBUSY while all stops; with words for the
 * operator in any case: what is done about it, or why not. */
int grow_set_count(
    struct super *s, uint32_t count, usec_t until, char *out, size_t size);

/* ---- retire.c ---- */
/* Nothing new comes from now on; it drains, hands over what is left after
 * queue_drain_time, is looked at again with its mark on disk, and goes. */
void retire_begin(struct queue *q, const char *why, usec_t now);
/* A queue that is not run, with mail in it (D20): closing from the first
 * moment, its mark taken away before it starts. */
void retire_adopt(struct queue *q, const char *why, usec_t now);
/* It is wanted after all. False: too late. */
bool retire_cancel(struct queue *q, usec_t now);
void retire_tick(struct queue *q, usec_t now);
/* A child of it has changed. */
void retire_progress(struct queue *q);
/* After the ticks of all: who is to look again, and the directories of those
 * that are not run. */
void retire_tick_all(struct super *s, usec_t now);
/* When its mail is handed over, USEC_NEVER if it is not closing. */
usec_t retire_gives_at(const struct queue *q);
struct msg_HANDED;
void retire_on_handed(struct queue *q, const struct msg_HANDED *frame);

/* ---- hand.c ---- */
/* Every SUPER_TICK: what is over. */
void hand_tick(struct queue *q, usec_t now);
bool hand_has_load(const struct queue *q, usec_t now);
bool hand_is_disabled(const struct queue *q, usec_t now);
void hand_set_load(struct queue *q, uint32_t load_pct, usec_t until);
void hand_clear_load(struct queue *q);
/* Injectors do not choose it, its children go on. A reason that
 * ask_judge_reason() has let pass. */
void
hand_disable(struct queue *q, usec_t until, const char *reason, size_t len);
void hand_enable(struct queue *q);
/* The queue is about to be freed. */
void hand_gone(struct queue *q);
/* Its part of the row, whose state is there. */
void hand_show(const struct queue *q, usec_t now, struct sched_row *row);
/* QUEUE_BASE/by-hand (byhand.h): written by the process of a look; read at the
 * start, when the queues are there. */
int hand_write(const struct super *s, struct buf *ret_error);
void hand_restore(struct super *s, usec_t now);

/* ---- reload.c ---- */
/* Not more than once in a tick, not two at a time (P11). */
void super_reload_if_wanted(struct super *s, usec_t now);
/* In the process of a look. */
int reload_judge(struct super *s, struct buf *error, struct buf *more);

/* ---- sites.c ---- */
/* After inventory(). What is not there now is done without until the next
 * start: queues that share and queues that do not would exceed a limit. */
void sites_open(struct super *s);
/* Before the queues are freed: while processes of one are left behind the name
 * stays, for the next supervisor. */
void sites_close(struct super *s);
/* Every SUPER_TICK: a table that was taken away, cut off or written over is
 * replaced, and open when all that is held is counted in it. */
void sites_tick(struct super *s);
struct msg_SITES_LOST;
struct msg_SITES_COUNTED;
void sites_on_lost(struct child *c, const struct msg_SITES_LOST *frame);
void sites_on_counted(struct child *c, const struct msg_SITES_COUNTED *frame);
/* Every SUPER_HEALTH: columns whose group is gone are free. */
void sites_collect(struct super *s);
/* Before the links with agents: queue-send begins with it, or without. */
void sites_link(struct child *c);
/* No process of q->group is there any more: what they held is free. */
void sites_group_gone(struct queue *q);
/* A child that hangs in the kernel though it was killed. */
void sites_child_stuck(struct child *c);
/* The same as sites_group_gone(), of any queue. */
void sites_forget(struct super *s, uint32_t queue, uint32_t generation);

/* ---- request.c ---- */
void requests_open(struct super *s);
void requests_close(struct super *s);
void requests_health(struct super *s);
/* Every SUPER_TICK: was it unlinked? */
void requests_tick(struct super *s);
/* One request, answered in the page; what is returned is what was answered, or
 * -EBADMSG. */
int request_handle(struct super *s, const struct msg *msg, usec_t now);
/* Whether the ratios of a SET_LOAD can be; the load in percent. -EINVAL,
 * -ERANGE with words. Pure. */
struct msg_SET_LOAD;
int request_load(
    const struct msg_SET_LOAD *r, uint32_t *ret_load_pct, const char **ret_why);

#endif
