/* deliver-local/expand.h - an alias becomes its recipients (docs/ALIASES.md).
 *
 *	alias.c    a recipient of the transport of aliases: what is done with it
 *	expand.c   the messages of an expansion, each exactly once
 *	parent.c   the message that is expanded
 *	charge.c   what the expansion adds to the share of its user
 *	inherit.c  which wishes of the sender its messages have
 *	members.c  from an alias to recipients: nested aliases, owners, loops
 *	names.c    what a name means
 *	forward.c  the forward file of a user
 *	include.c  include files, opened as their reader; include_lines.c
 *	           reads them
 *
 * The child of a delivery becomes the owner of the queue before it reads an
 * include file or the message. A process of its own keeps the right to become
 * the reader of an include file, and gets nothing but paths.
 *
 * Soft: -errno, with the reason in a buffer where there is one.
 */
#ifndef DELIVER_LOCAL_EXPAND_H
#define DELIVER_LOCAL_EXPAND_H

#include "base/domain.h"
#include "config/conf.h"
#include "deliver-local/child.h"
#include "route/alias.h"
#include "route/route.h"
#include "spool/queue_file.h"
#include "spool/spool.h"
#include "submit/use.h"

/* ---- include.c ---- */

struct includes {
	int sock; /* to the process that opens; -1: this process does */
	pid_t pid;
};

/* Before the rights of root are given up. private: files are opened by this
 * process, as the user that it is. */
int includes_begin(struct includes *in, bool private);
void includes_done(struct includes *in);
/* A descriptor, open for reading, of a regular file that nobody but its owner
 * may write; *ret_owner owns it. -errno with the reason. */
int includes_open(const struct includes *in, const char *path, uid_t reader,
    uid_t *ret_owner, struct buf *ret_why);

/* The same for one file alone. */
int includes_open_one(bool private, const char *path, uid_t reader,
    uid_t *ret_owner, struct buf *ret_why);

/* ---- include_lines.c ---- */

/* The members of an include file, one after the other, as long as it was when
 * it was opened; at most a line of it is in memory. A file that was changed
 * until its end is reached is an error: half of it may be old. */
struct include_file {
	int fd;               /* owned */
	uint64_t left, bytes; /* to read; of the whole file */
	uint32_t line;        /* of the last member, counted from 1 */
	/* private */
	struct timespec changed; /* when it was opened */
	struct buf text, members;
	size_t text_at, member_at;
};

void include_begin(struct include_file *f, int fd);
/* Bytes of all include files of an expansion to so many recipients; and whether
 * this file fits, before any of it is read. */
uint64_t include_room(uint32_t nrcpts);
bool include_fits(const struct include_file *f, uint64_t *room);
void include_end(struct include_file *f);
/* 1: *ret, which lives until the next call; 0: there is none; -ENOMEM; other
 * -errno, with *ret_why. */
int include_next(
    struct include_file *f, struct alias_member *ret, const char **ret_why);

/* ---- names.c ---- */

/* The names that an expansion knows. */
struct members_names {
	const struct route_table *routes;
	const struct alias_table *aliases; /* NULL: there are none */
	const char *mydomain;
	const char *admin_recipient; /* of root and postmaster; "" */
	uint32_t limit;              /* of recipients */
};

/* The meaning of an address. */
struct meaning {
	bool is_alias;
	bool is_account; /* of this host, whatever its domain; an alias: as a
			    recipient of an expansion */
	const char *key;
	const struct alias *alias;
};
struct meaning
names_look_up(const struct members_names *names, const char *address);
/* root, postmaster and MAILER-DAEMON lead somewhere in any case: the name in
 * the form of keys, for good; NULL: another name. */
const char *names_admin(const char *key);
void names_lower(char *s);
/* A recipient of an expansion that is a program or a mailbox. */
bool names_is_instruction(const char *recipient);
/* The key by which a recipient is met: the same mailbox is the same recipient.
 * true: key is the name of an account; false: key is an address with its domain
 * folded, or an instruction with all its octets. */
bool names_rcpt_key(
    const char *address, bool is_account, char key[ADDRESS_FOLDED_MAX + 1]);
/* *ret_owner: the sender owner-NAME@domain of a list, where there is such an
 * alias, else NULL; the caller frees the string. The domain is the list's, if
 * its alias has one. A null sender stays. -ENOMEM. */
int names_owner(const struct members_names *names, const struct meaning *list,
    const char *address, const char *sender, char **ret_owner);

/* ---- members.c ---- */

/* Where recipients go: sender() begins a message for those that follow. */
struct members_sink {
	int (*sender)(void *arg, const char *sender);
	int (*rcpt)(void *arg, const char *address);
	int (*progress)(void *arg); /* or NULL */
	void *arg;
};

/* The forward file of an account (forward.c). */
struct forward {
	int fd;           /* open for reading; members_expand() takes it */
	uid_t uid;        /* of the account, which include files are read as */
	const char *name; /* of the account */
	const char *delivered_to; /* address of the field that is added */
	char path[PATH_MAX];
};

struct members_of {
	const char *key;       /* of the alias; the account of a forward file */
	const char *recipient; /* the address that has it */
	const char *sender;    /* of the message */
	struct forward *forward; /* NULL: an alias */
};

/* 0: all recipients were told; none at all: the alias leads to nowhere. With
 * the reason: -ENOENT no such alias; -E2BIG more than the limit; -ELOOP a loop
 * and no recipient; -EUCLEAN an alias or an include file is wrong, or the file
 * is missing; -ECONNREFUSED a member refuses the mail, for the reason. Others
 * are the sink's, and -ENOMEM. */
int members_expand(const struct members_names *names, const struct includes *in,
    const struct members_of *of, const struct members_sink *sink,
    struct buf *ret_why);

/* ---- expand.c ---- */

struct expansion {
	const struct spool *sp;
	const struct conf *conf;
	const char *host; /* of the Received field */
	const struct members_names *names;
	const struct includes *includes;
	const char *id; /* of the message */
	uint32_t index; /* of the recipient in it */
	struct members_of of;
	usec_t lock_limit; /* waits so long for another expansion of it */
	int (*progress)(void *arg);
	void *arg;
};

void expand_run(const struct expansion *x, struct verdict *ret_verdict);

/* ---- parent.c ---- */

/* The message that is expanded. */
struct parent {
	struct queue_id id;
	struct queue_file file;
	struct queue_rcpt rcpt; /* that is expanded */
	uid_t submitter;
	int fd; /* locked; -1 */
};
/* -EAGAIN: another process works on the message; -ENOENT: it is not there any
 * more. The caller closes the descriptor in any case. */
int parent_take(const struct expansion *x, struct parent *ret_parent);

/* ---- charge.c ----
 *
 * An expansion is charged to the submitter of its parent, and held back while
 * that user has more than a share (submit/use.h). Until todo-proc has counted
 * its messages, they stand in a slot of the file lock/expanding of the queue:
 * while the process runs, and for CHARGE_KEPT after it has ended. Each process
 * fills its slot before it counts, so of two that run at once one sees the
 * other.
 *
 * A user who is over a share may have one expansion at a time in the system:
 * when no message of an earlier expansion is left but the parent, the next one
 * goes on. Without that rule, messages that fill a share and have to be
 * expanded before they go would wait for each other. */

#define CHARGE_SLOTS 1024
#define CHARGE_KEPT  (2 * USEC_PER_SEC)
extern usec_t (*charge_clock)(void); /* clock_mono(); tests have their own */

struct charge {
	const struct conf *conf;
	const struct spool *sp;
	uid_t account;
	bool counted;         /* else no limit is on this user */
	uint64_t parent_made; /* 1: the parent is an expansion; 0 */
	int file;             /* descriptor of lock/expanding; -1: none */
	uint32_t slot;        /* CHARGE_SLOTS: none is free */
	struct use own;       /* of this expansion */
	char reason[USE_REASON_SIZE];
};

/* is_expansion: the parent is one, and among those that are counted. -errno of
 * lock/expanding. charge_end() always. */
int charge_begin(struct charge *c, const struct conf *conf,
    const struct spool *sp, uid_t submitter, bool is_expansion);
/* One more message of so many bytes is about to be written. -EUSERS with the
 * reason: a share does not allow it. */
int charge_more(struct charge *c, uint64_t bytes);
/* done: the messages are in incoming/; else there are none. */
void charge_end(struct charge *c, bool done);

/* ---- alias.c ---- */

/* A recipient of an expansion that is a program. */
bool alias_is_program(const char *recipient);
/* root and postmaster lead somewhere in any case: without an alias, and without
 * an account that may get mail, to the mailbox of the instance. */
bool
alias_needs_mailbox(const struct child_plan *plan, const struct mailbox *m);
void alias_deliver_mailbox(const struct child_plan *plan, struct message *m,
    struct verdict *ret_verdict);
void alias_deliver(const struct child_plan *plan, struct message *m,
    struct verdict *ret_verdict);
/* The key of an alias that catches mail of a domain, where there is no such
 * account; NULL: the account decides. */
const char *
alias_of_domain(const struct child_plan *plan, const struct mailbox *m);
void alias_expand(const struct child_plan *plan, const char *key,
    struct message *m, struct verdict *ret_verdict);
void alias_expand_forward(const struct child_plan *plan, struct forward *f,
    struct message *m, struct verdict *ret_verdict);

/* ---- forward.c ---- */

enum forward_use {
	FORWARD_NONE,     /* there is no file */
	FORWARD_USED,     /* *ret_verdict has the result */
	FORWARD_RETURNED, /* the file was used, and has sent the mail back */
};
/* Deliver by the forward file of the account, if there is one. */
enum forward_use forward_deliver(const struct child_plan *plan,
    const struct account *user, struct message *m, struct verdict *ret_verdict);
/* Opens the forward file of a user with the rights of this user. Returns 1 with
 * the descriptor and the path in *ret, 0 if the user has no such file, and -1
 * with the reason in *v if the mail has to wait. */
int forward_open(const struct child_plan *plan, const struct account *user,
    struct forward *ret, struct verdict *v);
#define FORWARD_PREFIX ":forward:" /* of a recipient, before NAME:MEMBER */

/* ---- inherit.c ----
 *
 * What the sender asked of reports, in the messages of an expansion
 * (docs/REPORTS.md, "What the sender asks for"): an alias of one recipient
 * passes all of it on, one of several all but the wish for success, a list
 * nothing. Each recipient has the address that was written, for reports. How
 * many there are is known at the end, so the wish of a recipient is written
 * when the next one comes, or when the message ends. */

struct inherit {
	struct dsn_mail mail; /* of the parent */
	struct dsn_rcpt rcpt; /* of the recipient that is expanded */
	const char *sender;   /* of the parent */
	uint32_t rcpts;       /* in messages of that sender */
	uint32_t lists;       /* messages of other senders: of owners */
	bool own;             /* the message that is written is of that sender
			       */
	bool due;             /* a recipient was added, its wish was not */
	const char *written;  /* the address that has the alias: ORCPT, where
			       * the sender gave none, but of members of a
			       * list. No report names the command of a
			       * program */
	bool program;         /* the recipient that was added last is a program
			       * or a mailbox of one file */
};

int inherit_begin(struct inherit *h, int fd, const struct queue_file *file,
    const struct queue_rcpt *rcpt, const struct members_of *of);
/* Right behind the sender; around each recipient; at the end of a message,
 * which may be the last one. */
int inherit_sender(
    struct inherit *h, struct queue_file_writer *w, const char *sender);
int inherit_before_rcpt(struct inherit *h, struct queue_file_writer *w);
void inherit_after_rcpt(struct inherit *h, bool program);
int inherit_end(struct inherit *h, struct queue_file_writer *w, bool last);
/* How the recipient of the parent was dealt with. */
enum rcpt_mark
inherit_mark(const struct inherit *h, const struct queue_file *file);

#endif
