/* queue-send/reports/report_text.h - the text of a report: which recipients it
 * tells of, and its parts, which go into the file as they are made.
 *
 * Soft: -errno. */
#ifndef QUEUE_SEND_REPORTS_REPORT_TEXT_H
#define QUEUE_SEND_REPORTS_REPORT_TEXT_H

#include "queue-send/reports/report_task.h"

/* The work on one message: its file is locked. */
struct report_work {
	struct report_task *t;
	int fd;
	struct queue_file file;
	struct dsn_mail dsn;
	struct report_rcpts rcpts;
	struct report_facts facts;
	struct buf content, out;
	struct accept accept;
	/* Of a report for one recipient: that one; NULL: for all. */
	const struct report_rcpt *only;
	/* The recipients that fit, those of them who have the message, the
	 * number of reasons up to the last of them, and what is said of all. */
	uint32_t fit, fit_done, fit_reasons;
	uint32_t failures_left; /* number of failures for further reports */
	uint64_t size;
	const char *to, *sender; /* of the report, of the message */
	int (*add)(struct report_facts *r, const struct report_rcpt *to,
	    struct buf *out);
};

/* The facts that are the same in each report of the message. */
void report_set_facts(struct report_work *w, enum report_kind kind);
/* The recipients that this report has room for: further reports tell of the
 * others, and a warning counts the others. */
int report_take_part(struct report_work *w, enum report_kind kind);
/* The content of the message, or its header, for the report. */
int report_read_content(struct report_work *w, enum report_kind kind);
/* The text goes into w->accept. */
int report_add_text(struct report_work *w);

#endif
