/* queue-send/reports/reports.h - what senders are told (docs/REPORTS.md).
 *
 *	reports.c      which messages are reported on, and threads that do it
 *	report_task.h  the reports of one message
 *	made.c         the task of a report, and the reports that it has made
 *	corrupt.c      messages in corrupt/
 *	success.c      deliveries whose sender asked to be told
 *
 * The failures of an attempt are reported to the sender of the message, or, of
 * one without a sender, to double_bounce_recipient, before the message leaves:
 * exactly once; and the sender is warned once of a delay. Threads do it, as
 * they sync. A report that cannot be written now defers the message.
 */
#ifndef QUEUE_SEND_REPORTS_REPORTS_H
#define QUEUE_SEND_REPORTS_REPORTS_H

#include "queue-send/road/road.h"

/* ---- reports.c ---- */

void reports_init(struct send *s);
/* Has the message failures that may not have been reported, or is its sender to
 * be warned? */
bool reports_is_wanting(const struct send *s, const struct message *m);
usec_t reports_work(struct send *s);

/* ---- corrupt.c: docs/REPORTS.md, "Damaged mail" ---- */

struct walk_item;
/* A file of corrupt/ was found by the walk: with delay_warning_time its sender
 * is warned, once. The walk waits while s->reports.warns is set. Without
 * memory, or above report_rate_limit, the next walk does that. */
void reports_found_corrupt(struct send *s, const struct walk_item *item);

/* The line of a report that waits for its turn. */
void
reports_say_waits(const struct queue_id *message, const struct told_to *to);

/* ---- success.c: docs/REPORTS.md, "What the sender asks for" ---- */

/* Is a report to tell of this recipient, who has the message? */
bool success_is_wanted(bool has_sender, const struct queue_rcpt *rcpt);

#endif
