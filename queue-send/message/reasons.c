/* Reasons of deferrals (docs/QUEUE.md, "Moves"). */
#include "queue-send/message/path.h"

#include <errno.h>
#include <stdlib.h>

#include "spool/reason.h"

void
reasons_flush(struct send *s, struct message *m)
{
	struct buf *kept = messages_take_kept(&s->messages, m);
	const struct reason_attempt attempt = { kept, !m->reasons_begun,
		m->first };
	int r;

	if (kept == NULL)
		return;
	m->reasons_begun = true;
	r = reason_add_attempt(&s->sp, m->inode, &attempt);
	if (r < 0)
		disk_write_failed(s, m, "write a reason", r);
	messages_free_kept(&kept);
}

/* With what the message has kept until now. On failure that is kept as before.
 */
static int
give_to_thread(struct send *s, struct message *m, const struct reason *reason)
{
	struct buf *lines = messages_take_kept(&s->messages, m);
	size_t before;
	int r;

	if (lines == NULL)
		lines = calloc(1, sizeof(*lines));
	if (lines == NULL)
		return -ENOMEM;
	before = lines->len;
	r = reason_format(reason, lines);
	if (r == 0)
		r = results_add_reasons(s, m, lines);
	if (r < 0) {
		lines->len = before;
		messages_keep_again(&s->messages, m, lines);
	}
	return r;
}

static int
write_here(struct send *s, struct message *m, struct reason *reason)
{
	reasons_flush(s, m);
	if (!m->reasons_begun) {
		reason->attempt =
		    m->first ? 1 : 1 + reason_attempts(&s->sp, m->inode);
		reason_clear(&s->sp, SPOOL_DEFER, m->inode);
		m->reasons_begun = true;
	}
	return reason_add(&s->sp, SPOOL_DEFER, m->inode, reason);
}

/* With threads they wait for the move of the message; without memory for that
 * the loop writes. */
int
reasons_add(struct send *s, struct message *m, const struct report *r)
{
	struct reason reason = {
		.index = r->index,
		.when_wall = s->now_wall,
		.dsn = r->dsn,
		.relay = r->relay,
		.address = r->address,
		.text = r->text,
	};

	if (disk_has_threads(s, DISK_MOVE) &&
	    (messages_keep(&s->messages, m, &reason) == 0 ||
		give_to_thread(s, m, &reason) == 0))
		return 0;
	return write_here(s, m, &reason);
}
