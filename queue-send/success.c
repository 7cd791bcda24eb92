#include "queue-send/road.h"

bool
success_is_wanted(const struct message *m, const struct queue_rcpt *rcpt)
{
	return rcpt->mark == RCPT_DONE && rcpt->done != DONE_PASSED &&
	    m->sender[0] != '\0' && dsn_wants(rcpt->dsn.notify, DSN_SUCCESS);
}

/* A line that cannot be written leaves a report without the details: a delivery
 * is not done again for them. */
static void
note(struct send *s, struct message *m, const struct report *r)
{
	const int error = reasons_add(s, m, SPOOL_BOUNCE, r);

	m->succeeded = true;
	if (error < 0)
		disk_write_failed(s, m, "write down a delivery", error);
}

/* Another host may deliver much later, and tells nobody. */
static void
deliver(struct queue_rcpt *rcpt, uint8_t kind)
{
	rcpt->mark = RCPT_DONE;
	rcpt->done = kind == AGENT_SMTP ? DONE_RELAYED : DONE_DELIVERED;
}

static int
mark_with_wishes(struct send *s, struct message *m, const struct report *r)
{
	const struct queue_file file = message_queue_file(m);
	struct queue_rcpt rcpt;
	int error = queue_file_rcpt(m->fd, &file, r->offset, r->index, &rcpt);
	const bool is_marked = error == 0 && rcpt.mark == RCPT_DONE;

	if (error < 0)
		return error;
	if (!is_marked)
		deliver(&rcpt, r->kind);
	if (success_is_wanted(m, &rcpt))
		note(s, m, r);
	if (is_marked) /* by an expansion, which knows how many there are */
		return 0;
	return queue_file_mark(s->sp.sys, m->fd, r->offset,
	    rcpt.done == DONE_RELAYED ? RCPT_RELAYED : RCPT_DONE);
}

int
success_mark(struct send *s, struct message *m, const struct report *r)
{
	if (m->file.version > QUEUE_FILE_PLAIN)
		return mark_with_wishes(s, m, r);
	return queue_file_mark(s->sp.sys, m->fd, r->offset, RCPT_DONE);
}
