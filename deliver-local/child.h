/* deliver-local/child.h - one delivery, in a process of its own: become the
 * recipient, and only then open anything.
 *
 *	child.c    the process, and the mailbox
 *	step.c     steps of a delivery: its user, loops, the maildir
 *	pipe.c     a program of the configuration as the delivery
 *	account.c  accounts of this system, and becoming one
 *	mailbox.c  from an address to a name and a path
 *	message.c  the two header lines of ours, the content, loops
 *	maildir.c  a message into a maildir; walk.c goes down to it
 *	mbox.c     a message at the end of an mbox
 *	room.c     room for a message in a mailbox (room.h)
 *	serve.c    more deliveries of the same process
 *	command.c  a program with a message on its standard input
 *	verdict.c  the result for the recipient
 *	alias.c    an alias, or a program of one (expand.h)
 *
 * Privileges are dropped before the mailbox or even the header is read;
 * after that the kernel refuses all that the user may not do.
 */
#ifndef DELIVER_LOCAL_CHILD_H
#define DELIVER_LOCAL_CHILD_H

#include "agent/agent.h"
#include "daemon/daemon.h"
#include "deliver-local/room.h"
#include "route/programs.h"
#include "spool/sys.h"

#include <limits.h>
#include <sys/types.h>

/* ---- verdict.c ----
 *
 * A verdict comes from an error of a system call, from the exit of a program,
 * or from a text that begins with an enhanced status code (RFC 3463). It
 * travels once, from the child that delivered to the process that forked it, in
 * one write of at most PIPE_BUF bytes. Both are the same image; the receiver
 * judges it all the same, for the child ran as somebody else. */

#define VERDICT_TEXT_MAX 4000

struct verdict {
	uint32_t outcome; /* enum agent_outcome */
	char dsn[AGENT_DSN_MAX];
	char text[VERDICT_TEXT_MAX];
};
/* The bytes up to the end of the text travel. */
_Static_assert(sizeof(struct verdict) <= 4096, "one write to a pipe is whole");

void verdict_set(struct verdict *v, enum agent_outcome outcome, const char *dsn,
    const char *fmt, ...) PRINTF(4, 5);
/* `what` failed with -errno: "what: No space left on device". Mailbox errors
 * are temporary; the table in verdict.c has the codes. */
void verdict_error(struct verdict *v, int error, const char *what);
/* A program ended with this wait status, having said `output` (not cleaned).
 * Exit codes: sysexits, and 99, 100, 111 of qmail. */
void verdict_status(struct verdict *v, int status, const char *program,
    const char *output, size_t len);
/* "4.2.1 text": the code into dsn, *ret_rest after it and its blanks. 0, or
 * -EINVAL when text does not begin with a code of class 2, 4 or 5. */
int
verdict_code(const char *text, char dsn[AGENT_DSN_MAX], const char **ret_rest);
/* Transport `error`: nexthop is the reason, permanent unless it begins with
 * a code of class 4. */
void verdict_refuse(struct verdict *v, const char *nexthop);

/* Before its verdict a child may say that it gets on: one octet, which no
 * verdict begins with. */
#define VERDICT_PROGRESS 0xff
/* How many of len bytes at data are such octets, at their start. */
size_t verdict_progress_len(const char *data, size_t len);

/* One octet, and the number of the delivery (u64), before a verdict: the
 * process stays for the next one. */
#define VERDICT_STAYS 0xfd
/* In place of one, from a process that stayed: the recipient needs a process
 * that begins anew; nothing was delivered. */
#define VERDICT_ANEW  0xfc

size_t verdict_size(const struct verdict *v);       /* the bytes that travel */
int verdict_write(const struct verdict *v, int fd); /* -errno */
/* Judge len bytes as verdict_write() made them. -EBADMSG. */
int verdict_read(const void *data, size_t len, struct verdict *ret_verdict);

/* ---- account.c ----
 *
 * Accounts are asked for only in the child of a delivery: a directory server
 * that does not answer holds up one recipient, not the agent. */

#define ACCOUNT_GROUPS_MAX 64

struct account {
	uid_t uid;
	gid_t gid;
	char name[256];
	char home[1024];
	char shell[256];
	uint32_t ngroups; /* 0: not looked up */
	gid_t groups[ACCOUNT_GROUPS_MAX];
};

/* Loads the libraries of the name service that nsswitch.conf names for
 * accounts, so that not each child has to; nothing is looked up. One that is
 * not there, or comes later, is the children's. */
void account_load_sources(void);
/* 1 found, 0 there is none, -errno: the answer is not known. */
int account_find(const char *name, struct account *ret_account);
int account_of(uid_t uid, struct account *ret_account);
/* The account of this process, made up from its number if it has no entry. */
void account_own(struct account *ret_account);

/* Give the account one more group, for account_become(). Of more groups than
 * there is room for one is left out. */
void account_join(struct account *account, gid_t group);

/* Groups, group, user: real, effective, saved; verified, and proved to be
 * without a way back. -EPERM for uid 0, which nothing is delivered as. */
int account_become(const struct account *account);
/* The same without other groups. */
int account_become_ids(uid_t uid, gid_t gid);

/* ---- mailbox.c ----
 *
 * A local part becomes part of a path, so an address that could lead out of its
 * place is refused here, once: an empty local part, one with `/`, with a
 * leading `.`, or with control characters; the same for a domain that is used.
 * Letters are folded to lower case, and domains to one spelling
 * (base/domain.h): A@x and a@x. are one mailbox. */

#define MAILBOX_PART_MAX 255 /* as a file name */

struct mailbox {
	char user[MAILBOX_PART_MAX + 1];   /* the whole local part, unquoted */
	char base[MAILBOX_PART_MAX + 1];   /* without `+extension` */
	char domain[MAILBOX_PART_MAX + 1]; /* "" without one */
};

/* -EINVAL with *ret_why for an address that can have no mailbox; -ENOMEM, with
 * *ret_why. */
int mailbox_parse(
    const char *recipient, struct mailbox *ret_mailbox, const char **ret_why);

/* The values of %u, %d, %h; NULL: there is none. */
struct mailbox_values {
	const char *user, *domain, *home;
};
/* Expand a path template, without slashes at its end. -EINVAL: unknown
 * escape, or not absolute; -EDESTADDRREQ: the address has no such part;
 * -ENOENT: no home; -ENAMETOOLONG; -ENOMEM. */
int mailbox_path(
    const char *template, const struct mailbox_values *values, struct buf *out);
/* Is the template that of a mailbox of one file? */
bool mailbox_is_mbox(const char *template);
/* Does the template hold this escape ('u', 'd', 'h')? */
bool mailbox_path_uses(const char *template, char escape);

/* ---- message.c ----
 *
 * A mailbox or a program gets two header lines of ours, then the content as it
 * was submitted, byte for byte:
 *
 *	Return-Path: <sender>
 *	Delivered-To: recipient
 *
 * Lines of ours end in LF, as mailboxes and programs of this kind of system
 * expect; line ends of the content are left as they are, CRLF too.
 * Soft: -errno; -EIO also when the file ends before the content does. */

#define MESSAGE_CHUNK      65536
/* So much of the header is searched for loops. */
#define MESSAGE_HEADER_MAX ((size_t)256 << 10)

struct message {
	const char *data; /* all of it, or NULL: it is in the file */
	int fd;           /* read with offsets only: its position is shared */
	uint64_t off, len;
	const char *sender, *recipient; /* without control characters */
	/* private: where reading is */
	struct buf prefix;
	uint64_t at; /* of prefix and content together */
};

/* Set the message to its beginning. -ENOMEM. */
int message_begin(struct message *m);
void message_done(struct message *m);
/* The next bytes, at most size; 0 at the end. */
int64_t message_read(struct message *m, char *out, size_t size);

enum message_loop {
	MESSAGE_NO_LOOP,
	MESSAGE_WAS_HERE, /* Delivered-To names this recipient */
};
/* Look for a loop: enum message_loop or -errno. A Delivered-To is this
 * recipient when local parts are equal and domains are but for case. */
int message_find_loop(const struct message *m);

/* ---- walk.c ----
 *
 * A path of a maildir leads through directories of the recipient, who can put a
 * link in place of any of them at any time. So each part is opened by itself,
 * from the descriptor of the one before it, and a link is an error (-ELOOP).
 * Only a link of root's in a directory of root's that nobody else can rename in
 * is followed, part by part as well: that is how an administrator moves /home.
 */

/* All of an absolute path but the last part: its directory (O_PATH, the
 * caller's), and the name of the last part in it, which need not exist, and was
 * no link when it was checked. walk_to() calls denied() for a directory that
 * this process may not enter. denied() may change the user of the process, and
 * returns true if the directory is to be tried again. NULL: no such call.
 * -errno. */
typedef bool walk_denied_fn(void *arg, int dir);
int walk_to(const char *path, walk_denied_fn *denied, void *arg, int *ret_dir,
    char ret_name[NAME_MAX + 1]);
/* The same for a path whose last part is no directory: its directory alone. */
int
walk_to_file(const char *path, walk_denied_fn *denied, void *arg, int *ret_dir);

/* A message on its way into a mailbox. */
struct put {
	const struct spool_sys *sys; /* the seam for tests */
	const char *path;
	/* The limit of a maildir counts the files of new/ and cur/. */
	struct mailbox_room room;
	/* Optional: a step is done, or some of the content was written. An
	 * error ends the delivery, while the message is not there yet. */
	int (*progress)(void *arg);
	void *arg;
	const char *step; /* out: the step that failed */
	/* of a maildir */
	const char *host;  /* of this machine, for unique names */
	uint64_t delivery; /* counts the deliveries of this process' parent */
	pid_t pid;         /* of this process; 0: ask the kernel */
	/* tmp, new and cur were there a short time ago: only new/ is opened,
	 * in one call, unless a link is on the way to it. */
	bool whole;
	bool sweep;   /* remove old files of ours from tmp/, of the first
			 thousand there, when the message is delivered */
	bool unnamed; /* out: the file system has unnamed files */
	/* of a mailbox of one file */
	bool own;          /* the file must belong to this user */
	gid_t spool_group; /* group of a file that is made; -1: this process' */
	usec_t lock_limit; /* time to wait for the locks of others */
};

/* ---- maildir.c ----
 *
 * A message survives power loss once maildir_deliver() has returned 0
 * (docs/DELIVERY.md):
 *
 *	write an unnamed file in new/, fsync it, link it to new/UNIQUE,
 *	fsync new/
 *
 * A reader sees a whole file or none. Where there are no unnamed files the
 * message is written as tmp/UNIQUE and renamed. A failure leaves nothing
 * behind; an fsync that failed is not tried again. All work runs as the user
 * that owns the maildir, through the descriptors of the directories; no link is
 * followed from the first directory on that is not root's. */

/* A file of ours in tmp/ this old was left by a process that died. */
#define MAILDIR_TMP_AGE (36 * 3600 * USEC_PER_SEC)

/* Makes the maildir (0700) when its parent exists. -errno, with ->step. */
int maildir_deliver(struct put *md, struct message *m);

/* ---- mbox.c ----
 *
 * A mailbox of one file. It is locked as Debian policy 11.6 wants: by fcntl(),
 * and by NAME.lock where this user may make that file; a lock file of 5 minutes
 * is taken for one that was left behind. A line of the content that begins with
 * "From " gets a ">". A failure leaves the file as it was, and an empty one
 * that it has made; success means that the message is synced. No link is
 * followed, as in a maildir. */

/* Makes the file when its directory exists. -errno, with ->step. */
int mbox_deliver(struct put *b, struct message *m);

/* ---- serve.c ----
 *
 * A process that has delivered to a maildir is the recipient, and can deliver
 * the next message to the same: it gets sender, recipient and content by the
 * socket that its verdicts go to. Content of others never comes, nor any
 * descriptor. It ends with the first delivery that does not go well, and when
 * its agent closes the socket. */

struct child_plan;

/* The agent's end: the delivery of the plan, whose content is in memory, to a
 * process that waits. Never waits itself. -errno. */
int serve_send(const struct child_plan *plan, int fd);
/* The end of child_main(): the verdict on the first delivery, then more of
 * them, each in *plan and *d. */
_Noreturn void serve_more(struct child_plan *plan, struct agent_delivery *d,
    const struct verdict *first);

/* ---- command.c ----
 *
 * The child of the delivery, which is already the user, waits here: it feeds
 * the program, keeps the first words that the program says, holds it to its
 * time, and ends all processes of the program with it, those of other sessions
 * too. A process of another user cannot be ended, and a program can end the
 * child, which is its user: processes that are left then stay. SIGTERM to the
 * calling process, also from the kernel when its parent dies, ends the program
 * early; so SIGTERM and SIGCHLD are to be blocked when this is called. */

#define COMMAND_OUTPUT_MAX 4096
/* From SIGTERM to SIGKILL. */
#define COMMAND_GRACE      (3 * USEC_PER_SEC)

struct command {
	const char *name; /* for the verdict */
	char *const *argv;
	char *const *envp;
	const char *home; /* working directory; `/` if it is not there */
	usec_t limit;
};

void command_run(
    const struct command *c, struct message *m, struct verdict *ret_verdict);

/* ---- child.c ---- */

/* Memory of a process that may stay, from one delivery to the next. */
struct stay {
	bool may; /* the delivery was to a maildir of its own, and went well */
	bool again;          /* the process is the recipient already */
	uid_t uid;           /* that it has become; not of a private instance */
	char path[PATH_MAX]; /* of that maildir, which had all directories */
};

/* A child that gets on tells so once in this part of maildir_time_limit. */
#define PULSE_PARTS 60

/* Everything that the child needs; it has a copy of the parent's memory. */
struct child_plan {
	const struct agent_delivery *delivery;
	const char *recipient;
	pid_t parent;              /* the child ends with it; 0: none */
	bool private;              /* not root: everything is this user */
	struct daemon_users users; /* never delivered as, unless private */
	const char *maildir_path, *maildir_user;
	const char *forward_path; /* NULL or "": no file of a user is read */
	const char *host;
	usec_t command_time_limit, maildir_time_limit;
	struct room_want reserve;
	uint64_t mailbox_size_limit;
	const struct programs *programs;
	usec_t started_at; /* monotonic; the limits count from it */
	uint64_t number;   /* of the delivery, counted by the parent */
	/* of aliases, and for mail of root without one */
	const struct conf *conf;
	const struct route_table *routes;
	uint32_t queue, rcpt_index;
	/* The account that a delivery to a mailbox needs: its name, "" where
	 * the delivery needs none; NULL until the process has found it. */
	char asks[MAILBOX_PART_MAX + 1];
	const struct account *account;
	int asked; /* of the look-up: 1, 0 or -errno */
	/* of serve.c */
	bool may_stay;     /* result_fd is a socket (resident.c) */
	struct stay *stay; /* NULL: it ends with its delivery */
	bool runs_program; /* SIGTERM of the parent's death ends it */
	pid_t self;        /* this process; 0: ask the kernel */
};

/* The verdict is written there, once the child has set itself up. A process
 * that the child starts, and may leave behind, has it too: the agent sees that
 * it is there. */
#define CHILD_RESULT_FD 4

/* The whole child: never returns. All signals are blocked on entry; the
 * verdict is written to result_fd. */
_Noreturn void child_main(const struct child_plan *plan, int result_fd);
typedef void child_fn(const struct child_plan *plan, int result_fd);
/* The delivery, after the child has set itself up; apart for tests. */
void child_deliver(const struct child_plan *plan, struct verdict *ret_verdict);
/* Is the delivery one into the maildir of the account alone, without an alias?
 * Nothing is looked up for it but the account of the plan, then. */
bool child_is_plain(const struct child_plan *plan);
/* Deliveries that a program has its own time for. */
bool child_runs_program(
    const struct agent_delivery *delivery, const char *recipient);

/* ---- step.c ----
 *
 * Steps of a delivery. False: *v has the reason. */

/* Not dumpable, and ends with its parent. */
void child_bind(const struct child_plan *plan);

/* Set plan->asks. A private instance asks for nothing. */
void child_name_account(struct child_plan *plan);
/* account_find(), or the answer for plan->asks that there is already. */
int child_find_account(const struct child_plan *plan, const char *name,
    struct account *ret_account);
/* From here on the kernel says what may be done. */
bool child_become(const struct child_plan *plan, const struct account *account,
    struct verdict *v);
bool child_become_owner(const struct child_plan *plan, struct verdict *v);
/* The user that the configuration names. */
bool child_service_user(const struct child_plan *plan, const char *name,
    struct account *ret_account, struct verdict *v);
/* Root, or a user of the mail system: nothing is delivered as one. */
bool child_is_system(const struct child_plan *plan, uid_t uid);
/* size_limit: octets of all mail in the maildir; 0: no limit. */
void child_put_maildir(const struct child_plan *plan, const char *path,
    uint64_t size_limit, struct message *m, struct verdict *v);
/* own: a mailbox that must belong to this user. */
void child_put_mbox(const struct child_plan *plan, const char *path, bool own,
    gid_t spool_group, struct message *m, struct verdict *v);
bool child_no_loop(const struct message *m, struct verdict *v);
/* A delivery to a program of programs_file. */
void
child_pipe(const struct child_plan *plan, struct message *m, struct verdict *v);
/* A program as this process, which is its user already. */
void
child_run(const struct child_plan *plan, const char *name, char *const *argv,
    const struct account *account, struct message *m, struct verdict *v);

/* The child tells its parent now and then that it gets on; the parent gives up
 * a delivery that does not. When too much time lies between two steps the
 * parent has given up already, another process may have delivered meanwhile,
 * and this one must do nothing more: -ETIMEDOUT. */
struct pulse {
	usec_t limit, last, told; /* monotonic */
};
int child_beat(void *pulse);
/* Since the delivery began. */
struct pulse child_pulse(const struct child_plan *plan);
/* Time to wait for a lock of another process. */
usec_t child_lock_limit(const struct child_plan *plan);

#endif
