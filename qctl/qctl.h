/* qctl/qctl.h - the command qctl(8), and the source of each part:
 *
 *	qctl       the command: configuration, rights, verb
 *	queues     the queues that there are; reading: they are read, exit code
 *	options    the command line of each of its names; faces, of two names
 *	select     words of a selection; match: does a message fit it
 *	message    one message; walk: over all of them; recipient: with reasons
 *	worker     a process for each queue; workers: their parent
 *	list, show, shape, qread   what is shown of a message, or of many
 *	explain, asker, sentence   why a message waits
 *	sites      the destinations of all queues; trace: dialogues with one
 *	shares     what each user has; share_row: one row of that
 *	rules      rules that hold mail to come; destination: the routing
 *	route      where mail for an address goes; address: its words
 *	read       the process that reads a queue
 *	act, peer  the process that acts on messages of a queue; targets: which
 *	spread     which messages go to which queue
 *	checking, check.h   is a queue as it should be
 *	look       who reads without being a member of qmail_group; look_only:
 *	           nothing can be written from there
 *
 * The spool is read as it is: no lock is taken, and no process is asked but by
 * `explain` and by acts, which work on the spool alone while there is none.
 */
#ifndef QCTL_QCTL_H
#define QCTL_QCTL_H

#include "qctl/read/message.h"
#include "qctl/select/select.h"
#include "qctl/read/worker.h"
#include "spool/act.h"

/* All but main(). Exit codes: 0; 64 usage; 65 a message that was named is not
 * there; 67 an address is not deliverable, or no such user; 69 this name cannot
 * do that; 74 output; 75 a queue did not answer, or could not be read; 77
 * permission; 78 configuration. */
int qctl_main(int argc, char **argv);

/* ---- options: -errno with the complaint in *ret_error ---- */

enum verb {
	VERB_NONE,
	VERB_LIST,
	VERB_SHOW,
	VERB_SHAPE,
	VERB_EXPLAIN,
	VERB_SITES,  /* sites.h */
	VERB_SHARES, /* shares.h */
	VERB_ACT,    /* options.act says which */
	VERB_READ,   /* qread.h */
	VERB_CHECK,
	VERB_RULES, /* rules.h */
	VERB_ROUTE, /* rules.h */
	VERB_TRACE, /* sites.h */
	VERB_HELP,
	VERB_VERSION,
	NVERBS,
};

#define OPTIONS_PATTERNS_MAX 64

enum shape_by {
	SHAPE_BY_DOMAIN, /* recipients, by their domain */
	SHAPE_BY_SENDER, /* messages, by the address of their sender, */
	SHAPE_BY_SENDER_DOMAIN,
	SHAPE_BY_UID, /* and by the user who submitted them */
};

struct options {
	const char *program; /* the name it was called by */
	enum verb verb;
	enum spool_act act;
	bool json, content, dry_run, yes, failed, repair;
	enum shape_by by;        /* --by: what the rows of `shape` are */
	bool rule;               /* --rule: of mail to come, too */
	uint32_t rule_number;    /* of it; of hold, when it is written */
	const char *hold_reason; /* --reason, NULL */
	const char *sender;      /* --sender; "": the null sender; NULL */
	usec_t hold_time;        /* --for, 0: until it is released */
	usec_t trace_time;       /* of VERB_TRACE: --for, or the default */
	uint32_t rate_count;     /* --rate: so many in rate_unit; 0: at once */
	usec_t rate_unit;
	bool quiet;            /* says nothing of what was done */
	unsigned qread;        /* of VERB_READ: bits of enum qread_wish */
	unsigned given, row;   /* private to options.c */
	const char *conf_path; /* -c, NULL */
	struct select select;
	struct {
		/* Of TRANSPORT/DESTINATION; none: all of them. Of VERB_ROUTE:
		 * addresses. Of VERB_TRACE: one. Of VERB_SHARES: one user, or
		 * none. */
		const char *patterns[OPTIONS_PATTERNS_MAX];
		size_t npatterns;
		uint32_t top; /* so many at most; 0: all, as they come */
	} sites;
};

/* -EINVAL: usage; -EOPNOTSUPP: the option is known, and not for this command.
 * The caller calls select_done() in either case. */
int options_parse(
    int argc, char **argv, struct options *ret_options, struct buf *ret_error);
/* The same for other names (faces.c): `mailq`, `sendmail -q` that sendmail
 * handed on, `qread`. */
int face_mailq(int argc, char **argv, struct options *o, struct buf *error);
int face_sendmail(int argc, char **argv, struct options *o, struct buf *error);
int face_postsuper(int argc, char **argv, struct options *o, struct buf *error);
/* One act for a command; -EINVAL: another was given. */
int options_set_act(struct options *o, enum spool_act act, struct buf *error);
int face_qread(int argc, char **argv, struct options *o, struct buf *error);
/* The help of qctl (help.c); a line for each of its options. -ENOMEM. */
int options_help(struct buf *out);
int options_help_rows(struct buf *out);
/* --help of another name; -ENOENT: it has none. */
int face_help(const char *name, struct buf *out);

/* ---- output ---- */

/* The time of all ages is one. */
struct view {
	const struct options *options;
	usec_t now_wall;
	bool clean;          /* content is for a terminal */
	struct shape *rows;  /* of VERB_SHAPE */
	struct asker *asker; /* of VERB_EXPLAIN */
};

/* Each shows one message; -errno: of this message, or -ENOMEM. */
int list_text(struct worker *w, const struct message *m, const struct view *v);
int list_json(struct worker *w, const struct message *m, const struct view *v);
int show_text(struct worker *w, const struct message *m, const struct view *v);
int
explain_text(struct worker *w, const struct message *m, const struct view *v);
int
shape_count(struct worker *w, const struct message *m, const struct view *v);
/* Tells the parent of a message to act on. */
int
act_collect(struct worker *w, const struct message *m, const struct view *v);

/* A string of JSON, its text cleaned. -ENOMEM. */
int json_add_string(struct buf *out, const char *s);
/* The line above the list. */
extern const char list_head[];
/* The line below it: the totals of all queues. */
int list_total(const struct worker_totals *t, struct buf *out);

/* -EINVAL: --by has no such key. */
int shape_find_key(const char *name, enum shape_by *ret_by);
/* Recipients or messages, by the key of --by and by age. -ENOMEM. */
struct shape *shape_new(void);
void shape_free(struct shape **s);
/* A row for each value of the key, for the parent's table. */
void shape_send(struct shape *s, struct worker *w);
/* -ENOMEM; what is no row of shape_send() is passed over. */
int shape_take(struct shape *s, const void *data, size_t len);
/* The table, or with --json an object for each row, the largest first. */
int shape_print(struct shape *s, const struct options *o, struct buf *out);

#endif
