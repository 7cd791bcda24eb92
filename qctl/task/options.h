/* qctl/task/options.h - what the command line asks for; qctl/options.c reads
 * it.
 */
#ifndef QCTL_TASK_OPTIONS_H
#define QCTL_TASK_OPTIONS_H

#include "qctl/select/select.h"
#include "spool/act.h"

enum verb {
	VERB_NONE,
	VERB_LIST,
	VERB_SHOW,
	VERB_SHAPE,
	VERB_EXPLAIN,
	VERB_SITES,
	VERB_SHARES,
	VERB_ACT,  /* options.act says which */
	VERB_READ, /* of the face `qread` */
	VERB_CHECK,
	VERB_RULES,
	VERB_ROUTE,
	VERB_TRACE,
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

/* Bits of options.qread. */
enum qread_wish {
	QREAD_LOCAL = 1,
	QREAD_REMOTE = 2,
	QREAD_TODO = 4,
	QREAD_COUNTS = 8,
	QREAD_SILENT = 16, /* counts alone */
	QREAD_QUEUES = 32, /* the load of queues */
};
#define QREAD_MESSAGES (QREAD_LOCAL | QREAD_REMOTE | QREAD_TODO)

struct options {
	const char *program; /* the name it was called by */
	enum verb verb;
	enum spool_act act;
	bool json, content, dry_run, yes, failed, repair;
	enum shape_by by;     /* --by: what the rows of `shape` are */
	bool rule;            /* --rule: of mail to come, too */
	uint32_t rule_number; /* number of the rule; hold sets it when the rule
				 is written */
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

#endif
