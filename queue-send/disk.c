#include "queue-send/disk.h"

#include <string.h>

#include "log/log.h"
#include "spool/reason.h"

/* ---- errors ---- */

void
disk_count_error(struct send *s, enum health_write kind, int error)
{
	if (!health_failed(&s->health, kind, error, s->now))
		return;
	log_error("%s: %s: no delivery starts until marks can be written",
	    s->sp.path, strerror(-error));
	send_wake(s);
}

static void
failed(struct send *s, const struct message *m, const char *what,
    enum health_write kind, int error)
{
	char id[QUEUE_ID_SIZE];

	message_id(m, id);
	s->pub.changed = true;
	if (log_due(s->now, USEC_PER_SEC, &s->said_io))
		log_error("%s: cannot %s: %s", id, what, strerror(-error));
	disk_count_error(s, kind, error);
}

void
disk_mark_failed(
    struct send *s, const struct message *m, const char *what, int error)
{
	failed(s, m, what, HEALTH_MARK, error);
}

void
disk_write_failed(
    struct send *s, const struct message *m, const char *what, int error)
{
	failed(s, m, what, HEALTH_OTHER, error);
}

/* ---- reasons ---- */

int
reasons_add(struct send *s, struct message *m, enum spool_dir dir,
    const struct report *r)
{
	const struct reason reason = {
		.index = r->index,
		.when_wall = s->now_wall,
		.dsn = r->dsn,
		.relay = r->relay,
		.address = r->address,
		.text = r->text,
	};

	if (dir == SPOOL_DEFER && !m->reasons_begun) {
		reason_clear(&s->sp, SPOOL_DEFER, m->inode);
		m->reasons_begun = true;
	}
	return reason_add(&s->sp, dir, m->inode, &reason);
}

void
reasons_clear(struct send *s, uint64_t inode)
{
	if (spool_has(&s->sp, inode))
		return;
	reason_clear(&s->sp, SPOOL_DEFER, inode);
	reason_clear(&s->sp, SPOOL_BOUNCE, inode);
}
