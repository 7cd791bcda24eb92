/* queue-send/reports/report_task.h - the reports of one message, made in a
 * thread (docs/REPORTS.md, "Exactly once"): all that it needs is copied, but
 * for the queue.
 *
 *	report_task.c   the lock, the file, the commit
 *	report_text.c   the text (report_text.h)
 *	report_rcpts.c  the recipients that a report names, and their reasons
 *
 * Soft: -errno. Nothing is left of a report that failed but, after a crash, a
 * name in prepared/, which the message settles. */
#ifndef QUEUE_SEND_REPORTS_REPORT_TASK_H
#define QUEUE_SEND_REPORTS_REPORT_TASK_H

#include "base/address.h"
#include "config/conf.h"
#include "report/report.h"
#include "spool/accept.h"
#include "spool/sync_pool.h"

/* The part of a task that an error such as -EIO is of. */
enum report_trouble {
	REPORT_WRITING, /* of the report, or of the line in bounce/ */
	REPORT_READING, /* of the message or of its reasons */
};

/* Reports of one task of a VERP message, which has one for each recipient. */
#define REPORTS_ALONE_MAX 20

struct report_task {
	struct sync_task task; /* first: task.inode is the message's */

	/* To be done. */
	const struct spool *sp;
	struct queue_id id;        /* of the message */
	enum report_kind kind;     /* REPORT_FAILURE or REPORT_DOUBLE */
	bool warn;                 /* of a delay, too */
	bool begins;               /* bounce/ has reasons of another message */
	bool corrupt;              /* a message in corrupt/ */
	bool look;                 /* nothing is made: would there be any? */
	bool alone;                /* VERP: a report for each recipient */
	usec_t until_wall;         /* of a delay: the end of the attempts */
	struct accept_options opt; /* with the flags of the report */
	uint64_t size_limit;       /* of a content that is returned whole */
	uint64_t rcpts_limit;      /* of what a report says of recipients */
	usec_t now_wall;
	char sender[ADDRESS_MAX + 1];
	char to[ADDRESS_MAX + 1];
	uint32_t uid; /* account of the submitter, for the rate of reports */
	char host[CONF_HOST_SIZE], domain[CONF_HOST_SIZE];

	/* Done. */
	struct {
		uint32_t count; /* recipients in it; 0: none was needed */
		struct queue_id id;
	} made[REPORT_NKINDS];
	struct {
		enum report_kind kind;
		struct queue_id id;
	} made_alone[REPORTS_ALONE_MAX];
	uint32_t nalone;
	bool left;         /* recipients remain for another report */
	bool wanting;      /* with `look`: there would */
	uint32_t unwanted; /* recipients that failed, of whom the sender wants
			      no report */
	enum report_trouble trouble;
};

/* ---- reports.c: in the loop ---- */

struct send;

/* A task of the message, with all that is the same for each. NULL: no memory.
 */
struct report_task *report_task_new(struct send *s, const struct queue_id *id,
    void (*ended)(void *send, struct sync_task *task));
/* The task has ended: its reports count for report_rate_limit. */
void report_task_count(struct send *s, const struct report_task *t);
/* The lines of the reports that the task has made. */
void report_task_say_made(struct send *s, const struct report_task *t);

/* ---- report_task.c ---- */

/* Make the report of the failures that no report has told, then a warning that
 * was not made yet, and settle reports that were made before. -EAGAIN: the
 * message is locked by a process that settles it; -ENOENT: it is gone; -EBADMSG
 * and -EPERM: it is damaged, and nothing else is; -ESHUTDOWN: the queue is
 * sealed. */
int report_task_work(struct sync_task *task);

/* ---- report_rcpts.c ---- */

struct report_place {
	uint64_t offset; /* of its record */
	uint32_t line;   /* the last one in the reasons, from 1; 0: none; or the
			    recipient is not meant, or was told of */
	bool done;       /* the recipient has the message */
	bool known;      /* of those: a line tells how it was delivered */
};

struct report_rcpts {
	const struct spool *sp;
	int fd; /* of the message, which is locked */
	const struct queue_file *file;
	uint64_t inode;
	bool asked_only;  /* only recipients whose sender asked for it */
	bool damaged;     /* the message is: all that is pending waits */
	bool alone;       /* each report told of one recipient */
	uint32_t reports; /* that were made before */
	uint32_t count;
	uint32_t done;     /* of these: have the message */
	uint32_t unwanted; /* failed, and the sender asked for no report */
	bool beside; /* the error is not of the message, but of its reasons */
	/* The recipient that each() is told of, as the message names it. */
	uint32_t index;
	const char *address;

	/* Reasons that were read: when each() is called, with that of its
	 * recipient. */
	uint32_t line;
	uint32_t most; /* each() is called for so many at most; 0: for all */

	/* Private. */
	struct report_place *places; /* of each recipient */
	bool has_done;               /* some that have the message are meant */
	uint32_t told;
	enum report_kind kind;
	int (*each)(void *arg, const struct report_rcpt *to);
	void *arg;
};

/* Count the recipients that a report of this kind is to name. */
int report_rcpts_find(struct report_rcpts *w, enum report_kind kind);
/* Call each() once for each recipient. Stops when each() returns other than 0,
 * and returns that number. */
int report_rcpts_tell(struct report_rcpts *w,
    int (*each)(void *arg, const struct report_rcpt *to), void *arg);
void report_rcpts_done(struct report_rcpts *w);

#endif
