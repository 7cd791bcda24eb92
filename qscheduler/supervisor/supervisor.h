/* qscheduler/supervisor/supervisor.h - the supervisor: one process, its queues,
 * the programs of the instance, and requests to it.
 *
 * start.c     start, loop, end            super.c      each tick, the stop
 * services.c  programs of the instance    signals.c    TERM, HUP, ALRM, USR1
 * grow.c      how many queues             scale.c      by load, pure (scale.h)
 * publish.c   the page of /qscheduler     requests.c   what setqload asks
 * inbox.c     requests and load reports   reload.c     HUP
 * store.c     QUEUE_BASE/by-hand
 * inforce.c   the configuration in force  files.c      routing and programs
 * notify.c    systemd and s6              status.c     the status that it shows
 * env.c       environment of children
 * options.c   the command line            command.c    --dump, --check, ...
 */
#ifndef QSCHEDULER_SUPERVISOR_SUPERVISOR_H
#define QSCHEDULER_SUPERVISOR_SUPERVISOR_H

#include "ipc/ask.h"
#include "qscheduler/queues/queues.h"
#include "qscheduler/supervisor/options.h"
#include "qscheduler/supervisor/scale.h"

#include <sys/socket.h>
#include <sys/un.h>

struct super;

/* ---- services.c: programs of the instance ----
 * A service is a row of the role table with SCOPE_INSTANCE: one process beside
 * those of the queues. It lives alone: its end ends no other. */
struct services {
	struct group group;
	uint32_t told[GROUP_MAX]; /* failures that were logged, 0: none */
};
int services_open(struct super *s);
void services_tick(struct super *s, usec_t now);
/* All are up, or not to be waited for. */
bool services_are_ready(const struct super *s);
/* Add those that are not up to the status: ", smtp-server backoff". */
void services_describe(const struct super *s, char *out, size_t size);
/* The message queue of reports is another one. */
void services_link_reports(struct super *s);

/* ---- grow.c: the number of queues ---- */
struct grow {
	struct scale scale;
	struct scale_figures figures; /* of the last decision */
	uint32_t held;                /* so many, by setqload; 0: by the load */
	usec_t held_until;            /* 0: when it is reached */
	uint32_t reached;             /* a count by hand that no load changes */
	struct scale_decision why;    /* queues.coming is made for it */
	usec_t decided_at, failed_at;
	usec_t avoid[QUEUE_NUM_MAX + 1]; /* numbers not to be tried until */
	uint64_t changes;
	usec_t change_wall;
	char change[SCHED_CHANGE_SIZE];
};
/* Every tick, when ready: read the pages, add or retire a queue if the load
 * says so. */
void grow_tick(struct super *s, usec_t now);
/* The mean load of this moment, with loads that were set since the last tick.
 */
uint32_t grow_mean_pct(struct super *s, usec_t now);
/* A load report came: do not wait for the next tick. */
void grow_soon(struct super *s, usec_t now);
/* Give up the queue that is being made. */
void grow_stop(struct super *s);
/* So many open queues now, and no change by load until then; 0: not longer than
 * it takes. It goes on by itself, a queue after the other; what fails is logged
 * and tried again. -ERANGE, -EBUSY while all stops; with words for the operator
 * in any case: what is done about it, or why not. */
int grow_set_count(
    struct super *s, uint32_t count, usec_t until, char *out, size_t size);
/* Why grow_set_count() would refuse; 0: it would not. */
int
grow_judge_count(const struct super *s, uint32_t count, char *out, size_t size);
/* The end of the count by hand; USEC_NEVER: when it is reached, 0: there is
 * none. Also of one that was reached and stays since no load changes the number
 * of queues: it is sought again after a restart. */
usec_t grow_count_by_hand(const struct super *s, uint32_t *ret_count);
/* At the start, the count by hand of before. False: it cannot be any more. */
bool grow_restore_count(struct super *s, uint32_t count, usec_t until);

/* ---- publish.c ---- */
struct publisher {
	struct sched_page *page; /* the segment, or memory of our own */
	int fd;                  /* -1: memory of our own */
	usec_t complained;       /* log_due() */
};
/* -EBUSY: another supervisor of this instance lives, *ret_pid says which. */
int publish_open(struct super *s, uint32_t *ret_pid);
void publish_close(struct super *s);
void publish(struct super *s, usec_t now);
/* The command that an answer goes to. */
struct asker {
	uint32_t pid, nonce; /* of the request */
	int socket; /* own descriptor of the socket that the request came by;
		     * -1: none was free */
	struct ask_address to;
};
/* Answers, and closes asker->socket. */
void publish_answer(
    struct super *s, struct asker *asker, int code, const char *text);
/* Logs each line as a warning; lines is empty then. */
void publish_warnings(struct buf *lines);
/* Make our segment again if it is not there: when it was taken away, cut off or
 * written over, every tick; when its name leads elsewhere, or there was none,
 * every EVERY_HEALTH. */
void publish_tick(struct super *s);
void publish_health(struct super *s);

/* ---- inbox.c: what comes ----
 * The socket of requests, which says by the word of the kernel who asks, and
 * the message queue of load reports. */
#define REQUEST_USER_SIZE 64
struct request_user {
	uid_t uid;
	char name[REQUEST_USER_SIZE]; /* "": none */
};
struct requests {
	mqd_t mq; /* /qscheduler, -1: none */
	struct event *event;
	struct ask_socket socket;
	struct event *socket_event;
	struct request_user users[2]; /* root, and this one */
	gid_t operators;              /* may ask, too; (gid_t)-1: none */
	uint64_t bad;
};
void requests_open(struct super *s);
void requests_close(struct super *s);
void requests_health(struct super *s);
/* Every tick: was one unlinked? */
void requests_tick(struct super *s);

/* ---- requests.c ---- */
/* One request; returned is what was answered, or -EBADMSG. */
int request_handle(struct super *s, const struct msg *msg,
    const struct ask_source *from, usec_t now);
/* Whether the ratios of a SET_LOAD_FOR can be; the load in percent. -EINVAL,
 * -ERANGE with words. Pure. */
struct msg_SET_LOAD_FOR;
int request_load(const struct msg_SET_LOAD_FOR *r, uint32_t *ret_load_pct,
    const char **ret_why);

/* ---- store.c: our own file in QUEUE_BASE, whose disk may not answer ----
 * QUEUE_BASE/by-hand is written by a worker, one at a time, as it should be
 * when that begins. A request that changes it is answered when that is on disk,
 * or soon with words. */
struct store_answer {
	struct asker asker;
	uint64_t change; /* that is to be on disk */
	usec_t until;
	char text[SCHED_ANSWER_SIZE];
};
struct store {
	uint64_t change; /* the last one */
	uint64_t saved;  /* the last that is on disk */
	uint64_t saving; /* the last that is being written, 0: none is */
	usec_t save_at;  /* not before, unless asked: it has failed */
	usec_t told;     /* log_due() */
	struct override_moment as_of;    /* the file is written as of then */
	struct store_answer waiting[16]; /* the oldest first */
	size_t nwaiting;
};
/* Behind an answer that QUEUE_BASE keeps waiting. */
#define STORE_LATER "; not yet on disk"
/* The content of QUEUE_BASE/by-hand has changed. */
void store_changed(struct super *s);
/* Write it, unless it is being written: then again after that. */
void store_save(struct super *s, usec_t now);
/* Answer a request when all changes are on disk, or soon with words. */
void store_answer(
    struct super *s, const struct asker *asker, const char *text, usec_t now);
void store_tick(struct super *s, usec_t now);
/* At the start, when the queues are there. */
void store_restore(struct super *s, usec_t now);
/* At the start, while TERM still ends this process: wait until the disk of
 * QUEUE_BASE answers, and say so if that takes long. */
void store_await(const char *path, usec_t limit);

/* ---- files.c: files that children read, judged before they do ----
 * A wrong file stops the start, and not each child in turn; on a reload the old
 * ones stay in force everywhere.
 *
 * Soft: -errno with "FILE:LINE: what is wrong". Never logs. */
#define FILES_N 7
struct files_row {
	size_t path;      /* offset of its path in struct conf */
	const char *copy; /* name of the copy in QUEUE_BASE */
	mode_t mode;      /* of the copy, beside that of the file for others */
	int (*check)(const struct conf *conf, struct buf *ret_error);
	bool may_be_absent;
	bool of_queue; /* todo-proc and queue-send read it */
	bool secret;   /* for agents alone */
};
extern const struct files_row files_rows[FILES_N];
char **files_path(const struct conf *conf, const struct files_row *row);
/* The file is named, and to be read. private: of the user's own instance, which
 * is not to follow aliases of the host unless its configuration names them. */
bool files_are_read(
    const struct conf *conf, const struct files_row *row, bool private);
bool files_have_aliases(const struct conf *conf, bool private);
/* The content of all; with users also whether its readers may read it. */
int files_judge(const struct conf *conf, bool private,
    const struct daemon_users *users, struct buf *ret_error);
/* The same; an error about a file names its parameter. */
int files_check(const struct conf *conf, const struct daemon_users *users,
    struct buf *ret_error);

/* ---- inforce.c: the configuration in force, as children read it ----
 * QUEUE_BASE/conf is what --dump prints, but that it names copies of the
 * routing, programs and alias files in QUEUE_BASE: routing, programs, aliases.
 *
 * So a child that is started again is configured as its brothers are, whatever
 * has become of the operator's files meanwhile: changed and not yet reloaded,
 * wrong, or gone. Written at start and at each reload. It stays when the
 * supervisor ends: submitters, and the next supervisor, use it while the
 * operator's file is wrong (conf_load_in_force()).
 *
 * Soft: -errno with the words in *ret_error, nothing changed. */
int inforce_write(
    const struct base *b, const struct conf *conf, struct buf *ret_error);
/* Read it, as a child does. */
int inforce_load(
    const struct base *b, struct conf *ret_conf, struct buf *ret_error);
/* Keep them in memory, names and content: a child that is started while the
 * disk of QUEUE_BASE does not answer reads them nevertheless. What was kept
 * before is let go; what cannot be kept is read from the disk. */
#define INFORCE_NFILES (FILES_N + 1)
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

/* ---- file_systems.c ---- */

/* A line for each trouble with a file system of queues, which names the first
 * of them: of those that are there, else of QUEUE_COUNT. */
int file_systems_warn(const struct conf *conf, struct buf *out);

struct file_systems_of {
	const char *base, *real; /* as it is named, and without links */
	const uint32_t *queues;
	size_t count;
	const char *sysfs; /* "/sys", where ext4 tells of its journal */
};
/* The lines, by a table of mounts as /proc/self/mounts is. Sysfs is read, and
 * mount points are looked at: no disk. */
int file_systems_judge(
    FILE *mounts, const struct file_systems_of *of, struct buf *out);

/* ---- warn_start.c ---- */

/* Adds a line for each program that should be set-group-id and is not: the line
 * has owner, group, mode, the effect and the command that mends it. -ENOMEM. */
int start_warn_programs(
    const struct conf *conf, const struct daemon_users *users, struct buf *out);
/* For --check, since a disk may hang: adds a line for each file system without
 * room for mail, each queue that was restored (base_judge_names()), and each
 * gate that is closed. -ENOMEM. */
int start_warn_queues(
    const struct conf *conf, const struct daemon_users *users, struct buf *out);

/* ---- unit.c ---- */

/* For --check: -EROFS with words when the unit of systemd, which is enabled or
 * runs with this configuration, may not write to queue_base. */
int unit_check(const struct conf *conf, struct buf *ret_error);
/* The same, by the text of `systemctl show`; pure. */
int unit_judge(const char *shown, const char *conf_path, const char *base,
    struct buf *ret_error);

/* ---- files.c ---- */

/* For --check: that each rule for a pipe names a program that there is. Such a
 * rule stops no start, since the program may come later. */
int files_check_pipes(const struct conf *conf, struct buf *ret_error);
/* For --check: each wrong line of the routing file is a line of *ret_errors,
 * which is empty before. */
int files_check_lines(const struct conf *conf, struct buf *ret_errors);
/* Adds a line "FILE:LINE: reason" for each wrong line of the alias file (up to
 * 20), whose names have their mail deferred. -ENOMEM. */
int
files_alias_complaints(const struct conf *conf, bool private, struct buf *out);
/* warnings.c, for --check: adds a line to out for each thing that is right and
 * may not be meant: a routing file that is not there or empty, rules with a
 * next hop that their transport cannot use, parameters that are set and do
 * nothing. */
int
files_warnings(const struct conf *conf, struct buf *out, struct buf *ret_error);
/* warn_aliases.c: the same of aliases: members that no account has, root and
 * postmaster without anybody. files_warn_administrators(): the latter alone. */
int files_warn_aliases(
    const struct conf *conf, struct buf *out, struct buf *ret_error);
int files_warn_administrators(
    const struct conf *conf, struct buf *out, struct buf *ret_error);
/* warn_host.c: adds a line for queued mail of another MTA, and for files in
 * home directories that direct mail and are not read; takes seconds at most.
 * Nothing in a private instance. files_warn_queued(): the queues alone, below
 * root; own: the queue_base of this instance. */
int files_warn_host(const struct conf *conf, struct buf *out);
int files_warn_queued(const char *root, const char *own, struct buf *out);
/* warn_tls.c: the same of passwords for servers that are not verified, and of
 * fallbacks of a low level of TLS. */
int
files_warn_tls(const struct conf *conf, struct buf *out, struct buf *ret_error);

/* ---- env.c: the environment and limits that children get ----
 * Started as root, only what is known to be needed is passed on, so that
 * nothing that the supervisor was started with reaches the programs. A private
 * instance passes on its user's, but for what belongs to the service manager: a
 * child must not speak to that in our name. */
/* NULL: no memory. pins: "NAME=value" that replace what is there, ended by
 * NULL: what the supervisor was started with and a changed file must not change
 * for one child alone. */
char **env_make(char *const *from, bool private, char *const *pins);
void env_free(char ***env);
/* As many descriptors and message queues as we may have. */
void env_raise_limits(void);

/* ---- notify.c: what the service manager is told ----
 * systemd: datagrams to NOTIFY_SOCKET (sd_notify(3)), READY=1, STATUS=…,
 * RELOADING=1, STOPPING=1, EXTEND_TIMEOUT_USEC=…, WATCHDOG=1. s6: a newline on
 * the descriptor of --ready-fd, which is closed after it. With neither,
 * nothing.
 *
 * Never fails and never blocks: a service manager that does not listen is no
 * reason not to move mail. */
struct notify {
	int sock;                     /* -1: no systemd */
	int ready_fd;                 /* -1: no s6 */
	usec_t alive_every, alive_at; /* USEC_NEVER: nobody watches */
	struct sockaddr_un to;
	socklen_t to_len;
};
/* Reads NOTIFY_SOCKET, WATCHDOG_USEC and WATCHDOG_PID. */
void notify_init(struct notify *n, int ready_fd);
void notify_done(struct notify *n);
/* Lines "NAME=value". */
void notify_tell(const struct notify *n, const char *format, ...) PRINTF(2, 3);
void notify_ready(struct notify *n, const char *status);
/* Once in EVERY_TICK: says so at least four times in the time of the watchdog,
 * also where calls come a little early. */
void notify_alive(struct notify *n, usec_t now);

/* ---- signals.c ---- */
/* Until they are open: a HUP must not end what is about to start. */
void super_signals_hold(void);
int super_signals_open(struct super *s);
void super_signals_close(struct super *s);

/* ---- reload.c ---- */
#define RELOAD_ASKERS 16
/* Commands that wait for the result of a reload. */
struct reload {
	struct {
		struct asker asker;
		bool begun; /* the running reload is its reload */
	} waiting[RELOAD_ASKERS];
	size_t nwaiting;
	char restart[64]; /* parameters that wait for a restart, cut */
	char error[SCHED_CONF_ERROR_SIZE]; /* "": what was read is in force */
};
/* At most once in a tick, and one at a time. */
void super_reload_if_wanted(struct super *s, usec_t now);
/* Reload, and answer with the result. -EBUSY: RELOAD_ASKERS
 * commands wait already. */
int reload_ask(struct super *s, const struct asker *asker);
/* The files of the operator are not in force for this reason; shown by the
 * page and the status until a reload succeeds. NULL: they are in force. */
void reload_note(struct super *s, const char *error);

/* ---- status.c ---- */
/* Writes the status text for systemd: the number of queues in each state, the
 * children that do not run, and, after a refused reload, its error. */
void status_make(const struct super *s, usec_t now, char *out, size_t size);

/* ---- super.c, start.c ---- */
#define SUPER_NSIGNALS 6
struct super {
	struct options options;
	struct instance instance;
	struct base base;
	struct workers workers;
	struct children children;
	struct queues queues;
	struct services services;
	struct event *signals[SUPER_NSIGNALS];
	struct event *tick;
	struct grow grow;
	struct publisher publisher;
	struct requests requests;
	struct store store;
	struct inforce_kept in_force;
	struct notify notify;
	struct reload reload;
	char status[640]; /* as it was told last */
	usec_t started_at, next_health, last_reload;
	usec_t stop_deadline;
	usec_t stop_queues_at; /* at the latest; 0: they are asked to end */
	uint32_t reloads;
	bool file_seen; /* the operator's file was there, and was read */
	bool reload_wanted, reload_told, ready, stopping, done;
	int exit_status;
};

/* ---- start.c ---- */
/* Run until the end: an exit code. */
int super_run(const struct options *options);

/* ---- super.c ---- */
/* Empty, with its floors joined; nothing is opened or started. */
void super_init(struct super *s, const struct options *options);
void super_start(struct super *s);
void super_stop(struct super *s);
void super_tick(struct super *s);

#endif
