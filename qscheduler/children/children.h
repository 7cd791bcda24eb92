/* qscheduler/children/children.h - child processes: what starts, watches and
 * ends them.
 *
 *	children 1──n group 1──n child
 *
 *	proc.c       the supervision table, pure
 *	roles.c      the programs that there are
 *	child.c      events of a child, and its end
 *	channel.c    frames of a child
 *	heartbeat.c  signs of life
 *	group.c      children that belong together
 *	launch.c     the process and the channel of a child
 *	spawn.c      one process
 *	locks.c      who is left of a supervisor that was killed
 *	orphan.c     processes of a supervisor that was killed
 *
 * A queue has a group: queue-send leads it, and its end takes the others along.
 * Programs of the instance have a group without a leader: each lives alone.
 * This floor knows no queue; its owner fills struct child_events. */
#ifndef QSCHEDULER_CHILDREN_CHILDREN_H
#define QSCHEDULER_CHILDREN_CHILDREN_H

#include "qscheduler/children/proc.h"
#include "qscheduler/ground/ground.h"

#include <event2/util.h>
#include <sys/types.h>

struct chan_frame;
struct child;
struct event;
struct group;
struct msg;
struct orphan;
struct wire;

/* ---- roles.c: a row for each program ---- */

enum role_scope {
	SCOPE_QUEUE,    /* one process for each queue */
	SCOPE_INSTANCE, /* one process for all of them */
};
/* Objects that a process is linked to, in this order, beside its peers. */
enum object {
	OBJECT_PAGE,    /* shared memory of its queue */
	OBJECT_REPORTS, /* message queue of the supervisor, to write */
	OBJECT_SITES,   /* table of destinations */
	OBJECT_BELL,    /* message queue of its queue */
	NOBJECTS,
};
#define OBJECT(name)  (1u << OBJECT_##name)
#define ROLE_ARGS_MAX 3

struct role {
	const char *name; /* of its program, and of its end of a link */
	enum role_scope scope;
	/* The user that it is started as. DAEMON_AS_ROOT: the program becomes
	 * its user itself (daemon_ops.user). */
	enum daemon_user user;
	unsigned objects; /* OBJECT(...) | ... */
	bool leads;       /* the end of this one ends its group; the others are
			   * linked to it alone */
	bool stops_last;  /* asked to end when its leader has ended, so that the
			   * leader hears of what it delivers */
	/* Many wake it with little each: one that does so is not put aside for
	 * it (SCHED_BATCH), and it does more with each wake-up. */
	bool batch;
	/* Arguments between -c FILE and the number of the queue. */
	const char *args[ROLE_ARGS_MAX + 1];
};
/* Places of the roles of a queue in its group; a unit test holds the table to
 * this order. */
enum {
	ROLE_QUEUE_SEND,
	ROLE_TODO_PROC,
	ROLE_DELIVER_LOCAL,
	ROLE_DELIVER_SMTP,
	NROLES,
};
#define GROUP_MAX 4 /* children of a group */
struct role_table {
	const struct role *rows;
	size_t n;
};
/* Tests put another table here before anything is started. */
extern struct role_table role_table;
/* Fill ret with the roles of a scope, in the order of the table: their number.
 */
unsigned roles_of(enum role_scope scope, const struct role *ret[GROUP_MAX]);
/* The name of a child, by the number of its queue (0: of the instance) and its
 * place in its group: "queue-send/3", "smtp-server". */
#define CHILD_NAME_SIZE 32
void role_describe(uint32_t queue, uint32_t place, char out[CHILD_NAME_SIZE]);

/* ---- spawn.c: one process, started and signalled ----
 * The process has /dev/null on 0, our 1 and 2, its channel on
 * DAEMON_CHANNEL_FD, nothing else; a process group of its own; default signals.
 * An exec that fails is known here, with its errno, by a pipe that exec closes.
 *
 * Soft: -errno. Never logs. Waiting for the process is the caller's. */

struct process {
	pid_t pid; /* 0: none */
	int pidfd; /* -1: none; signals go to the pid then */
};
#define PROCESS_NONE ((struct process){ 0, -1 })

struct spawn {
	const char *path;
	char *const *argv;
	char *const *envp;
	int channel;         /* the child's end; stays the caller's */
	int lock;            /* of child_locks_open(); -1: none */
	off_t lock_at;       /* of child_lock_at() */
	uint64_t memory;     /* bytes of address space, 0: no limit */
	pid_t (*fork)(void); /* the seam: fork() */
	const struct daemon_users *users; /* NULL: it keeps our user */
	enum daemon_user user;
	bool batch; /* role.batch */
};
/* *ret_step names the call that failed: "fork", "exec". */
int process_spawn(const struct spawn *how, struct process *ret_process,
    const char **ret_step);
/* By pidfd, so that a reused pid is never hit. -ESRCH: it has ended. */
int process_signal(const struct process *p, int sig);
/* The process has ended but was not waited for: end what is left in its process
 * group, take its status, forget it. */
int process_collect(struct process *p);

/* ---- launch.c ---- */
/* Start the process and open the channel, by the role. *ret_step as
 * process_spawn(), and "memory", "socket". */
int child_launch(struct child *c, const char **ret_step);

/* ---- events for the floor above ---- */

struct child_frame {
	uint32_t type; /* enum msg_type */
	void (*handle)(struct child *c, const struct msg *msg);
};
struct child_frames {
	const struct child_frame *rows;
	size_t n;
};
/* Filled by the owner of a group; NULL where it does not matter to it. */
struct child_events {
	/* The child was started: link_object() what it gets, before it is
	 * linked to its peers. */
	void (*started)(struct child *c);
	void (*ended)(struct child *c);
	/* The child hangs in the kernel though it was killed. */
	void (*stuck)(struct child *c);
	/* The child owes an answer, and may sleep in the kernel. */
	void (*slow)(struct child *c);
	void (*changed)(struct group *g);
	/* No process of g->generation is left; the next one begins. */
	void (*over)(struct group *g);
	/* Frames that the owner takes beside READY, STATUS and PONG. */
	struct child_frames frames;
};

/* ---- channel.c ----
 * What a child says is judged as a stranger's: a bad frame is dropped, and a
 * child that says too much in a tick is not read until the next. */
#define CHANNEL_FRAMES_MAX 64 /* taken in a tick */

struct channel {
	struct wire *wire; /* NULL: none, or closed by the child */
	unsigned frames;   /* taken in this tick */
	bool held;         /* not read until the next tick */
	usec_t flood_told_at, bad_told_at; /* log_due() */
};
/* -ENOMEM: sock is still the caller's. */
int channel_open(struct child *c, int sock);
/* Read nothing until the next tick: the child says too much, or its answer can
 * wait. */
void channel_hold(struct child *c);
/* The process is there, and not asked to end. */
bool child_is_joinable(const struct child *c);
int child_send(struct child *c, const struct msg *msg, int fd);
/* LINK, with the descriptor unless it is -1. */
int child_link(struct child *c, const char *name, int fd);
/* The same, if there is a descriptor and the child can take it. */
void child_give(struct child *c, const char *name, int fd);
void channel_tick(struct child *c);
/* The child has ended: hear what it still said. */
void channel_finish(struct child *c);

/* ---- heartbeat.c ----
 * Signs of life are answers to PING. They are counted in ticks of ours, so that
 * what stops all of us at once, or us alone, is not taken for a child that
 * hangs. */
struct heartbeat {
	uint32_t serial; /* of the last PING */
	unsigned quiet;  /* ticks since the last sign */
	unsigned asked;  /* ticks since the PING that has no answer, 0: none */
	bool roused;     /* the child was stopped, and was told to go on */
	bool told;       /* a sleep in the kernel was logged */
};
enum heartbeat_verdict {
	HEARTBEAT_FINE,
	HEARTBEAT_SLOW,   /* struct child_events */
	HEARTBEAT_SILENT, /* the child hangs; an alert was logged */
};
void heartbeat_init(struct child *c);
/* Every tick: ask, and judge a child that gives no sign. */
enum heartbeat_verdict heartbeat_tick(struct child *c);
void heartbeat_pong(struct child *c, uint32_t serial);
/* For how many ticks a child has given no sign that owes an answer; 0: all is
 * well, or it has not been waited for long. */
unsigned heartbeat_silence(const struct child *c);

/* ---- child.c ---- */
#define CHILD_TEXT_MAX 120
/* For a child whose leader is gone: it has nobody to report to, and more time
 * is of no use. */
#define FOLLOW_LIMIT   (2 * USEC_PER_SEC)

struct child {
	struct group *group;
	const struct role *role;
	char name[CHILD_NAME_SIZE];
	const struct child_frames *frames; /* of this floor */
	struct proc proc;
	struct process process;
	struct channel channel;
	struct heartbeat heartbeat;
	struct event *timer; /* of proc.deadline */
	struct event *judge; /* of `unjudged` */
	pid_t unjudged;      /* ended with 0, perhaps rightly; 0: none */
	unsigned mute;       /* ticks that it is there without a channel */
	int last_status;     /* wait status of its last end */
	bool not_started;    /* the last start failed */
	char text[CHILD_TEXT_MAX + 1];      /* of its last STATUS */
	char last_text[CHILD_TEXT_MAX + 1]; /* the same, of its last life */
};

int child_init(struct child *c, struct group *g, const struct role *role);
void child_done(struct child *c);
void child_event(struct child *c, enum proc_event event);
/* The process is not there, and waits until it is tried again. */
bool child_is_failing(const struct child *c);
void child_tick(struct child *c);
/* The process has ended and was not waited for. */
void child_ended(struct child *c);
/* The leader has ended: what ended before it has followed it. */
void child_judge(struct child *c);
/* How its last process ended, in words. */
#define CHILD_END_SIZE 80
void child_describe_end(const struct child *c, char out[CHILD_END_SIZE]);
/* Why it keeps failing: "deliver-smtp failed 5 times in a row, ...". */
void child_describe_failures(const struct child *c, char *out, size_t size);
/* A line of the log with all of it. */
void child_dump(const struct child *c);

/* ---- group.c ---- */
struct children;

/* Nothing of the next generation of a group is started before the last process
 * of this one is gone, orphans included. */
struct group {
	LIST_ENTRY(group) link;
	struct children *all;
	const struct child_events *events;
	void *owner;
	uint32_t number;     /* of its queue; 0: of the instance */
	uint32_t generation; /* of its processes, which they know */
	bool going;          /* the leader has ended, others are still there */
	bool leaving;        /* all of it is to end */
	unsigned n;
	struct child child[GROUP_MAX];
};
int group_init(struct group *g, struct children *all, uint32_t number,
    const struct child_events *events, void *owner);
/* Children that are still there see the end of their channel. */
void group_done(struct group *g);
void group_start(struct group *g);
void group_leave(struct group *g);
/* Nothing of the last generation is left: what waits may be started. */
bool group_is_clear(const struct group *g);
/* Orphans are gone: start what waits, if the group is clear. */
void group_clear(struct group *g);
bool group_is_down(const struct group *g);
bool group_has_processes(const struct group *g);
/* NULL: this group has none. */
struct child *group_leader(struct group *g);
/* The first child that keeps failing; NULL: none. */
const struct child *group_looping(const struct group *g, usec_t now);
/* An operator says that the cause is gone: everything that waits is tried at
 * once. False: nothing waited, and nothing kept failing. */
bool group_release(struct group *g);
void group_send_all(struct group *g, const struct msg *msg);
void group_tick(struct group *g);
void group_dump(const struct group *g);
/* The rules of the group, after an event of a child. */
void group_progress(struct group *g);
void group_child_ended(struct child *c);
/* The child was just started: its objects, and its links. */
void group_child_started(struct child *c);

/* ---- orphan.c: processes of a supervisor that was killed ----
 * An agent among them, stopped for example, may still have connections: what
 * its group holds in the table of destinations stays taken, and nothing of the
 * next group starts, until the last of it is gone.
 *
 * Nothing here fails: without locks no orphan is known, which is logged. */
struct orphans {
	int fd; /* of the locks, -1: none */
	LIST_HEAD(orphan_list, orphan) list;
};
/* When this is the only supervisor of the instance, before anything is started:
 * find them. They end by themselves, since their channel is closed; what is
 * stopped is told to go on, what does not end is killed. */
void orphans_open(struct children *all, int base);
void orphans_close(struct children *all);
/* Every tick. */
void orphans_tick(struct children *all, usec_t now);
bool orphans_any(const struct children *all);
/* An orphan that may still begin or end deliveries; not one that hangs in the
 * kernel though it was killed. */
bool orphans_any_to_count(const struct children *all);
bool orphans_of(const struct children *all, uint32_t queue);

/* ---- locks.c: QUEUE_BASE/children ----
 * The file is empty. Each place of each group, and of the programs of the
 * instance (queue 0), has a byte of it, which the process of that place has
 * locked (fcntl F_SETLK, shared) from before its exec until its end. So the
 * kernel knows the processes that a supervisor that was killed has left.
 *
 * A process loses its lock when it closes any descriptor of the file.
 *
 * Soft: -errno. Never logs. */
/* The file in the directory `base`, made if it is not there. */
int child_locks_open(int base, int *ret_fd);
/* The byte of a process. */
off_t child_lock_at(uint32_t queue, uint32_t place);
/* For the calling process, until its end; kept by exec, not by fork. */
int child_lock_take(int fd, off_t at);
/* 1: *ret_pid has the lock, 0 for a process of another PID namespace; 0: no
 * process has it. */
int child_lock_holder(int fd, off_t at, pid_t *ret_pid);
/* 1: a process has a lock of this queue; 0: none has. */
int child_locks_any(int fd, uint32_t queue);

/* ---- all of them ---- */
struct children {
	const struct instance *instance;
	char *program_dir; /* where their programs lie */
	char **env;
	/* No orphan of this queue (0: of the instance) is left. */
	void (*orphans_gone)(void *ctx, uint32_t queue);
	void *ctx;
	struct orphans orphans;
	LIST_HEAD(group_list, group) groups;
};
/* Take all that have ended; processes that are not ours are ignored. */
void children_reap(struct children *all);
/* NULL: there is none of this number. */
struct group *children_find(const struct children *all, uint32_t number);

#endif
