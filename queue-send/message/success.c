#include "queue-send/message/path.h"

bool
success_is_wanted(bool has_sender, const struct queue_rcpt *rcpt)
{
	return rcpt->mark == RCPT_DONE && rcpt->done != DONE_PASSED &&
	    has_sender && dsn_wants(rcpt->dsn.notify, DSN_SUCCESS);
}

/* A line that cannot be written leaves a report without the details: a delivery
 * is not done again for them. */
static void
note(struct record *r)
{
	if (!r->has_reason)
		r->reason_error = record_add_reason(r);
	r->has_reason |= r->reason_error == 0;
	r->succeeded = true;
}

/* Another host may deliver much later, and tells nobody, unless it has the
 * wishes of the sender. */
static void
deliver(struct queue_rcpt *rcpt, const struct report *r)
{
	rcpt->mark = RCPT_DONE;
	rcpt->done = r->passed_on   ? DONE_PASSED
	    : r->kind == AGENT_SMTP ? DONE_RELAYED
				    : DONE_DELIVERED;
}

static const enum rcpt_mark mark_of[] = {
	[DONE_DELIVERED] = RCPT_DONE,
	[DONE_RELAYED] = RCPT_RELAYED,
	[DONE_PASSED] = RCPT_PASSED,
};

static int
mark_with_wishes(struct record *r)
{
	struct queue_rcpt rcpt;
	int error = queue_file_rcpt(
	    r->fd, &r->file, r->report.offset, r->report.index, &rcpt);
	const bool is_marked = error == 0 && rcpt.mark == RCPT_DONE;

	if (error < 0)
		return error;
	if (!is_marked)
		deliver(&rcpt, &r->report);
	if (success_is_wanted(r->has_sender, &rcpt))
		note(r);
	if (is_marked) /* by an expansion, which knows how many there are */
		return 0;
	return queue_file_mark(
	    r->sp->sys, r->fd, r->report.offset, mark_of[rcpt.done]);
}

int
success_mark(struct record *r)
{
	if (r->file.version > QUEUE_FILE_PLAIN)
		return mark_with_wishes(r);
	return queue_file_mark(r->sp->sys, r->fd, r->report.offset, RCPT_DONE);
}
