/* daemon/daemon.h - the common part of every process of a queue: arguments,
 * a sane process (standard descriptors, signals, limits, umask), configuration,
 * log, privileges, the event loop, the channel to the supervisor, the stop.
 *
 * A program fills struct daemon_ops and calls daemon_main() from main().
 * qscheduler starts it as `PROGRAM [-c FILE] QUEUE`, with the channel on
 * DAEMON_CHANNEL_FD (link SUP of ipc/msg.def); started by a user it says so and
 * exits 100. Objects and links (shared page, bell, sockets to peers) come as
 * LINK frames. The end of the channel means that the supervisor is gone: stop.
 *
 * Start-up may exit: 100 when trying again cannot help, 111 otherwise. After
 * start() a process ends through daemon_exit() only.
 */
#ifndef DAEMON_DAEMON_H
#define DAEMON_DAEMON_H

#include "config/conf.h"
#include "ipc/msg.h"

#include <sys/types.h>

#define DAEMON_CHANNEL_FD    3
/* A file with a lock that the process has as long as it lives. A process that
 * closes a descriptor of that file loses the lock. */
#define DAEMON_LOCK_FD       4
#define DAEMON_NSIGNALS      4
/* The variable with the path of the configuration that the supervisor has in
 * force, which is read instead of FILE: a process that is started again must
 * not differ from the others because FILE has changed meanwhile. */
#define DAEMON_CONF_VARIABLE "QSCHED_CONF_IN_FORCE"

struct event_base;
struct executor;
struct daemon;

enum daemon_user {
	DAEMON_AS_QMAILQ,
	DAEMON_AS_QMAILS,
	DAEMON_AS_QMAILR,
	DAEMON_AS_ROOT, /* deliver-local: becomes the recipient per delivery */
};

struct daemon_ops {
	const char *name;
	enum daemon_user user;
	bool many; /* of daemon_loop_new() */
	/* Optional: give up rights that are no longer needed, after the user
	 * has changed and before any link is open. */
	void (*lockdown)(const struct daemon *d);
	/* Before the loop: make the state. -errno, after logging it. */
	int (*start)(struct daemon *d);
	/* A link with its descriptor, which the program now owns. The name is
	 * the object, or the process at the other end (docs/IPC.md). */
	void (*linked)(struct daemon *d, const char *name, int fd);
	/* Optional: other frames for this program (FORGET, HAND_OVER, RESCAN).
	 * -ENOENT for a frame that it does not know, which is dropped. */
	int (*told)(struct daemon *d, const struct msg *msg);
	/* Optional: a reload is read by a thread, while the loop goes on, and
	 * with the configuration what this function makes of it. It uses
	 * nothing else and logs nothing: -errno, and the words in *ret_error.
	 * drop() frees what nobody takes. Without it the loop reads. */
	int (*read)(
	    const struct conf *fresh, void **ret_made, struct buf *ret_error);
	void (*drop)(void *made);
	/* A checked new configuration; d->conf is the old one until this
	 * returns, and is freed then. fresh stays valid. d->made is the
	 * program's now: NULL: read() has failed, as the log says. */
	void (*reload)(struct daemon *d, const struct conf *fresh);
	void (*flush)(struct daemon *d);
	/* Begin to stop; call daemon_exit() within limit. Called once. A
	 * program that has not ended a little later is ended. */
	void (*stop)(struct daemon *d, usec_t limit);
	/* Optional: the queue stops and has this time; stop() comes when
	 * queue-send has ended. */
	void (*ending)(struct daemon *d, usec_t limit);
	/* Optional: start() had succeeded and the loop has ended; free the
	 * state. */
	void (*done)(struct daemon *d);
};

/* Private to common/daemon. */
struct daemon_reload {
	struct executor *executor; /* NULL before the first one */
	bool away;                 /* a thread reads */
	bool again, flush;         /* asked for meanwhile */
};

struct daemon {
	const struct daemon_ops *ops;
	struct event_base *base;
	struct conf *conf;
	const char *conf_path; /* NULL: the default */
	uint32_t queue;
	uint32_t generation; /* of its group, from LINK; 0 before the first */
	bool private;        /* not started as root: one user owns all files */
	void *state;         /* the program's */
	void *made;          /* in ops->reload: of ops->read */
	/* private to common/daemon below */
	struct wire *channel;
	struct event *signals[DAEMON_NSIGNALS];
	struct event *deadline; /* of the stop */
	struct daemon_reload reload;
	char log_name[64];
	bool stopping, exiting;
	int status;
};

/* A link that a program takes. linked(): 0, and the program owns the
 * descriptor, or -errno. */
struct daemon_link {
	const char *name;
	int (*linked)(void *state, int fd);
};
/* Give the descriptor to the row of that name; close and log it when there is
 * none, or the program refuses it. */
void daemon_take_link(const struct daemon_link *links, size_t count,
    void *state, const char *name, int fd);

int
daemon_main(int argc, char **argv, const struct daemon_ops *ops, void *state);
/* Tell the supervisor: ready to work; a text about the present work. */
void daemon_ready(struct daemon *d);
void daemon_status(struct daemon *d, const char *text);
/* Any other frame of link SUP. */
void daemon_tell(struct daemon *d, const struct msg *msg);
void daemon_exit(struct daemon *d, int status);

/* Users of the configuration, resolved. -ENOENT: one is unknown; -EINVAL: uid
 * or gid 0, or agents would run as an owner of the spool or in its group, which
 * may read mail; *ret_error names it. In a private instance all are this user.
 */
struct daemon_users {
	uid_t qmailq, qmails, qmailr;
	gid_t qmail, qmailr_group, qdrop;
	bool private;
};
int daemon_users(const struct conf *conf, struct daemon_users *ret_users,
    struct buf *ret_error);
/* May wait for a directory service; (gid_t)-1: "", or no such group. */
gid_t daemon_group(const char *name);

/* Become one of them for good, without other groups, without a core, and not
 * to be traced. DAEMON_AS_ROOT and private instances keep their user. */
int daemon_become(const struct daemon_users *users, enum daemon_user user);

/* For every program: closed 0-2 become /dev/null, ignored and
 * blocked signals are set back, SIGPIPE and SIGXFSZ ignored (both show as
 * errors of write), umask 077, no file size limit below the hard one. */
void daemon_sane_process(void);
/* The same for a command that is started for each message: of the signals that
 * are ignored only SIGCHLD is set back, without which no child can be waited
 * for. None of the others means anything to a command; asking for each of 64
 * costs more calls than the rest of its start. */
void daemon_sane_command(void);
/* Read the configuration again. Values that a reload cannot change stay the old
 * ones, and are named in the log. Where it is wrong the log has the reason, and
 * the old one stays in force. While a thread reads, more reloads make one more
 * behind it, and a flush waits for that. */
void daemon_reload(struct daemon *d);
void daemon_flush(struct daemon *d);
/* False: a thread is left behind, which uses d->conf. */
bool daemon_reload_done(struct daemon *d);
/* Open the log as the configuration says. */
void daemon_open_log(const struct conf *conf, const char *program);
/* The routing and aliases that the configuration names, with what mydestination
 * and relayhost say of recipients without a rule. -errno, after logging it. */
struct route_table;
int daemon_routes(const struct conf *conf, struct route_table **ret_table);
/* The same, with the words in *ret_error, nothing logged. */
int daemon_routes_read(const struct conf *conf, struct route_table **ret_table,
    struct buf *ret_error);
/* The aliases that it names: NULL where there is no file. -errno with the words
 * in *ret_error, nothing logged. */
struct alias_table;
int daemon_aliases(const struct conf *conf, struct alias_table **ret_aliases,
    struct buf *ret_error);
/* The routing of a new configuration instead of *table. False: the old one
 * stays in force, as the log says. */
bool daemon_reroute(const struct conf *fresh, struct route_table **table);
/* The transports for the reader of the routing file, with room for
 * CONF_TRANSPORTS_MAX + 1; names stay the configuration's. */
struct route_transport;
void daemon_route_transports(
    const struct conf *conf, struct route_transport *ret_transports);
/* Open the directory of the queue, and wait for its lock of this program's
 * name: one process of a kind works on a queue. The descriptor of the lock;
 * -errno, after logging it, with nothing left open. */
struct spool;
int daemon_take_queue(const struct daemon *d, struct spool *ret_sp);
/* Close both; a second call does nothing. */
void daemon_leave_queue(int *lock, struct spool *sp);
/* The event loop of all daemons; NULL: no memory, no descriptors. Events have
 * DAEMON_PRIORITY unless they are given another one; those of DAEMON_IDLE run
 * when the loop would sleep. many: it has hundreds of descriptors, most of them
 * silent. */
#define DAEMON_PRIORITY 1
#define DAEMON_IDLE     2
struct event_base *daemon_loop_new(bool many);
/* EXIT_TEMPORARY for an error that may go away by itself, else
 * EXIT_PERMANENT. */
int daemon_exit_code(int error);

/* ---- words: private to common/daemon, but words_forget() ----
 *
 * The last words of a child: a warning or error that it logs, a failed ASSERT
 * and the reason of a start that failed go to the supervisor as STATUS, which
 * keeps the last one to show it with the end of the process. At most one a
 * second, and always the last. One state for the process, as there is one log.
 * Never fails, blocks or logs. Nothing is sent before words_begin(). */

#define WORDS_MAX 200 /* the supervisor keeps less */

/* The channel is open: from now on the log is watched. */
void words_begin(int channel);
/* A timer of this loop sends words that have to wait for their second. */
void words_attach(struct event_base *base);
void words_say(const char *text);
/* The number of the channel is no channel any more: its end came, or this is a
 * forked process whose descriptors are other ones. Words from here on are for
 * the log alone. */
void words_forget(void);
/* Before the channel is closed and the loop freed: send words that wait, and
 * watch no more. */
void words_end(void);

#endif
