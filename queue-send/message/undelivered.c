#include "queue-send/message/path.h"

#include <errno.h>

#include "queue-send/backlog/backlog.h"
#include "queue-send/schedule/schedule.h"

#define SHORTAGE_WAIT USEC_PER_SEC

void
entry_give_up(
    struct send *s, struct sched_entry *e, enum site_result result, int error)
{
	struct message *m = e->owner;

	if (disk_is_shortage(error))
		s->dispatch_at = s->now + SHORTAGE_WAIT;
	else if (error < 0 && error != -ENOENT && error != -EBADMSG &&
	    error != -EPERM)
		disk_mark_failed(s, m, "open for delivery", error);
	message_fail(m, error);
	claims_end(s, m, e);
	ungreeted_over(s, e);
	sched_done(s->sched, e, result, NULL, s->now);
	settle_message(s, m);
}

void
entry_move(struct send *s, struct sched_entry *e, const char *destination)
{
	struct message *m = e->owner;

	if (m->fate != FATE_OPEN) {
		entry_give_up(s, e, SITE_AGENT_DIED, m->error);
		return;
	}
	ungreeted_over(s, e);
	/* Short of memory for either the entry stays, and is selected again. */
	if (claims_move(s, m, e, destination) < 0) {
		sched_put_back(s->sched, e, s->now);
		s->dispatch_at = s->now + SHORTAGE_WAIT;
	} else if (sched_move(s->sched, e, destination, s->now) < 0) {
		entry_give_up(s, e, SITE_AGENT_DIED, -ENOMEM);
		return;
	}
	settle_message(s, m);
}
