#include "queue-send/message/record_task.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>

#include "spool/prepared.h"
#include "spool/reason.h"

int
record_add_reason(const struct record *r)
{
	const struct reason reason = {
		.index = r->report.index,
		.when_wall = r->when_wall,
		.dsn = r->report.dsn,
		.relay = r->report.relay,
		.address = r->report.address,
		.text = r->report.text,
		.attempt = r->attempt,
	};

	return reason_add(r->sp, r->dir, r->inode, &reason);
}

/* An expansion marks its recipient by itself, and may die before it says so:
 * its messages are on their way, whatever is reported. */
static bool
is_marked_done(const struct record *r)
{
	struct queue_rcpt rcpt;

	return r->fd >= 0 &&
	    queue_file_rcpt(r->fd, &r->file, r->report.offset, r->report.index,
		&rcpt) == 0 &&
	    rcpt.mark == RCPT_DONE;
}

static void
pass_as_sent(struct record *r)
{
	r->report.outcome = AGENT_SENT;
	r->report.dsn = "2.0.0";
	r->report.text = "expanded by an agent that died before it said so";
	r->report.expired = false;
}

/* No recipient fails without its reason on disk. True: the mark may follow. */
static bool
has_reason(struct record *r)
{
	if (r->report.outcome == AGENT_SENT || r->has_reason)
		return true;
	if (is_marked_done(r)) {
		pass_as_sent(r);
		return true;
	}
	r->reason_error = record_add_reason(r);
	r->has_reason = r->reason_error == 0;
	return r->has_reason;
}

static int
mark(struct record *r)
{
	if (r->fd < 0) /* removed by hand: there is nothing to mark */
		return r->fd == -ENOENT ? 0 : r->fd;
	return r->report.outcome == AGENT_SENT
	    ? success_mark(r)
	    : queue_file_mark(r->sp->sys, r->fd, r->report.offset, RCPT_FAILED);
}

static void
write_both(struct record *r)
{
	if (has_reason(r))
		r->error = mark(r);
}

/* The lock of the message: no expansion marks it meanwhile. A child that was
 * killed may live on for a while, in a call that nothing ends. */
static void
write_locked(struct record *r)
{
	r->is_locked =
	    r->locks && r->fd >= 0 && prepared_lock(r->fd) == -EAGAIN;
	if (r->is_locked)
		return;
	write_both(r);
	if (r->locks && r->fd >= 0)
		(void)r->sp->sys->flock(r->fd, LOCK_UN);
}

/* The file of an earlier attempt, or of another message, goes even if the write
 * of this record fails: no later record of the attempt begins the file. */
static void
begin_file(struct record *r)
{
	r->begins = false;
	if (r->dir == SPOOL_DEFER)
		r->attempt =
		    r->first ? 1 : 1 + reason_attempts(r->sp, r->inode);
	(void)reason_clear(r->sp, r->dir, r->inode);
}

void
record_work(struct record *r)
{
	const bool opens = r->fd < 0;

	r->error = r->reason_error = 0;
	if (r->begins)
		begin_file(r);
	if (r->unmarked) {
		r->reason_error = record_add_reason(r);
		return;
	}
	if (opens)
		r->fd = spool_open_file(r->sp, SPOOL_ACTIVE, r->inode, O_RDWR);
	write_locked(r);
	if (opens && r->fd >= 0)
		r->sp->sys->close(r->fd);
	if (opens)
		r->fd = -1;
}

static int
record_task_work(struct sync_task *task)
{
	record_work((struct record *)(void *)task);
	return 0;
}

/* ---- copies ---- */

static const char *
keep_string(char **at, const char *string)
{
	const size_t size = strlen(string) + 1;
	char *copy = *at;

	memcpy(copy, string, size);
	*at += size;
	return copy;
}

struct record *
record_copy(
    const struct record *r, void (*ended)(void *send, struct sync_task *task))
{
	const struct report *from = &r->report;
	const size_t strings = strlen(from->address) + strlen(from->dsn) +
	    strlen(from->relay) + strlen(from->text) + 4;
	struct record *copy = malloc(sizeof(*copy) + strings);
	char *at;

	if (copy == NULL)
		return NULL;
	*copy = *r;
	sync_task_init(&copy->task, record_task_work, NULL, ended);
	at = (char *)(copy + 1);
	copy->report.address = keep_string(&at, from->address);
	copy->report.dsn = keep_string(&at, from->dsn);
	copy->report.relay = keep_string(&at, from->relay);
	copy->report.text = keep_string(&at, from->text);
	return copy;
}
