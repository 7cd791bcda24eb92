/* Senders of messages in corrupt/ are warned of a delay that only an operator
 * ends. */
#include "queue-send/reports/own.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>

#include "queue-send/disk/act_task.h"
#include "queue-send/reports/own.h"
#include "queue-send/reports/report_task.h"
#include "queue-send/disk/work.h"
#include "smtp/verp.h"
#include "spool/reason.h"
#include "spool/waiting.h"

static bool tell_sender(
    struct send *s, const struct queue_id *id, const struct told_to *to);

static void
ended(void *send, struct sync_task *task)
{
	struct send *s = send;
	struct report_task *t = (struct report_task *)(void *)task;

	report_task_count(s, t);
	report_task_say_made(s, t);
	s->reports->warns = false;
	if (t->task.error == 0 && t->left)
		(void)tell_sender(
		    s, &t->id, &(struct told_to){ t->uid, t->to });
	send_wake(s);
	sync_task_free(task);
}

/* False: none is made now. */
static bool
tell_sender(struct send *s, const struct queue_id *id, const struct told_to *to)
{
	const uint32_t limit = s->conf->report_rate_limit;
	struct report_task *t;

	if (told_is_above(&s->reports->told, to, limit, s->now)) {
		reports_say_waits(id, to); /* the next walk asks again */
		return false;
	}
	t = report_task_new(s, id, ended);
	if (t == NULL)
		return false;
	t->kind = REPORT_FAILURE;
	t->warn = t->corrupt = true;
	snprintf(t->sender, sizeof(t->sender), "%s", to->address);
	snprintf(t->to, sizeof(t->to), "%s", to->address);
	t->uid = to->uid;
	s->reports->tasks++;
	s->reports->warns = true;
	told_count(&s->reports->told, to, limit, s->now);
	disk_do(s, DISK_REPORT, &t->task);
	return true;
}

/* The sender who is to be told that the message waits for an operator. Only a
 * sender that can be trusted is told, and once (REASON_WARNED). */
static int
ask_corrupt(struct act_task *t)
{
	struct queue_file file;
	int r, marks;

	t->fd = spool_open_file(t->sp, SPOOL_CORRUPT, t->id.inode, O_RDONLY);
	r = t->fd < 0 ? t->fd : queue_file_read(t->fd, &file);
	if (r < 0)
		return r;
	t->id = (struct queue_id){ file.arrival_wall, file.nonce, file.queue,
		t->id.inode };
	t->uid = file.uid;
	marks = reason_marks(t->sp, &t->id);
	if (marks < 0 ? marks != -ENOENT : (marks & REASON_WARNED) != 0)
		return 0;
	r = queue_file_verify_envelope(t->fd, &file);
	return r < 0 ? r : queue_file_sender(t->fd, &file, &t->sender);
}

static int
corrupt_asked(struct send *s, struct act_task *t, uint32_t *ret_running UNUSED)
{
	const struct told_to to = { waiting_account(t->uid),
		buf_str(&t->sender) };

	if (t->task.error < 0 || t->sender.len == 0 ||
	    verp_kind(t->sender.data, t->sender.len) == VERP_WANTED ||
	    !tell_sender(s, &t->id, &to))
		s->reports->warns = false;
	return 0;
}

void
reports_found_corrupt(struct send *s, const struct walk_item *item)
{
	struct act_task *t;

	if (s->conf->delay_warning_time == 0 ||
	    s->conf->delay_warning_time >= s->retry.lifetime ||
	    act_is_under_way(s, item->file.inode))
		return;
	t = act_task_own(
	    s, SPOOL_CORRUPT, item->file.inode, ask_corrupt, corrupt_asked);
	if (t == NULL)
		return;
	s->reports->warns = true;
	(void)act_run(s, t);
}

bool
reports_are_warning(const struct send *s)
{
	return s->reports->warns;
}
