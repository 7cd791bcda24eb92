/* queue-send/reports/reports.h - what senders are told (docs/REPORTS.md).
 *
 *	reports.c      which messages are reported on, and threads that do it
 *	report_task.h  the reports of one message
 *	corrupt.c      senders of messages in corrupt/ are told
 *
 * The failures of an attempt are reported to the sender of the message, or, of
 * one without a sender, to double_bounce_recipient, before the message leaves:
 * exactly once; and the sender is warned once of a delay. Threads do it, as
 * they sync. A report that cannot be written now defers the message.
 */
#ifndef QUEUE_SEND_REPORTS_REPORTS_H
#define QUEUE_SEND_REPORTS_REPORTS_H

#include "queue-send/disk/files.h"
#include "queue-send/disk/walk.h"

/* ---- reports.c ---- */

/* 0 or -ENOMEM. */
int reports_init(struct send *s);
void reports_done(struct send *s);
/* Has the message failures that may not have been reported, or is its sender to
 * be warned? */
bool reports_is_wanting(const struct send *s, const struct message *m);
usec_t reports_work(struct send *s);

/* ---- corrupt.c: docs/REPORTS.md, "Damaged mail" ---- */

/* A file of corrupt/ was found by the walk: with delay_warning_time its sender
 * is warned, once. The walk waits while a warning is under way. Without memory,
 * or above report_rate_limit, the next walk does that. */
void reports_found_corrupt(struct send *s, const struct walk_item *item);
bool reports_are_warning(const struct send *s);

/* The line of a report that waits for its turn. */
void
reports_say_waits(const struct queue_id *message, const struct told_to *to);

#endif
