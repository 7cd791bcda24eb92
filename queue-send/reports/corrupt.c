/* Senders of messages in corrupt/ are warned of a delay that only an operator
 * ends. */
#include "queue-send/reports/reports.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>

#include "queue-send/operators/act_task.h"
#include "queue-send/reports/report_task.h"
#include "spool/corrupt.h"
#include "spool/reason.h"
#include "submit/submit.h"

struct report_task *
report_task_new(struct send *s, const struct queue_id *id)
{
	struct report_task *t = calloc(1, sizeof(*t));

	if (t == NULL)
		return NULL;
	sync_task_init(&t->task, report_task_work, NULL);
	t->task.inode = id->inode;
	t->sp = &s->sp;
	t->id = *id;
	t->opt = submit_accept_options(s->conf, SPOOL_PREPARED);
	t->opt.max_content = 0;
	t->opt.flags = QUEUE_FILE_REPORT;
	t->size_limit = s->conf->bounce_size_limit;
	t->now_wall = s->now_wall;
	conf_host(s->conf, t->host);
	conf_domain(s->conf, t->domain);
	return t;
}

static void
tell_corrupt(struct send *s, const struct queue_id *id)
{
	struct report_task *t = report_task_new(s, id);

	if (t == NULL)
		return;
	t->kind = REPORT_FAILURE;
	t->warn = t->corrupt = true;
	if (pool_put(&s->reports.pool, &t->task) < 0)
		free(t);
	else
		s->reports.tasks++;
}

/* Is the sender to be told that the message waits for an operator? Only where
 * the sender can be trusted, and once (REASON_WARNED). */
static int
ask_corrupt(struct act_task *t)
{
	struct buf sender = { 0 };
	struct queue_file file;
	int r, marks;

	t->fd = corrupt_open(t->sp, t->id.inode, O_RDONLY);
	r = t->fd < 0 ? t->fd : queue_file_read(t->fd, &file);
	if (r == 0)
		r = queue_file_verify_envelope(t->fd, &file);
	if (r == 0)
		r = queue_file_sender(t->fd, &file, &sender);
	if (r == 0) {
		t->id = (struct queue_id){ file.arrival_wall, file.nonce,
			file.queue, t->id.inode };
		marks = reason_marks(t->sp, &t->id);
		t->done = sender.len > 0 &&
		    (marks < 0 ? marks == -ENOENT
			       : (marks & REASON_WARNED) == 0);
	}
	buf_done(&sender);
	return r;
}

static int
corrupt_asked(struct send *s, struct act_task *t, uint32_t *ret_running UNUSED)
{
	if (t->done)
		tell_corrupt(s, &t->id);
	return 0;
}

void
reports_found_corrupt(struct send *s, const struct walk_item *item)
{
	struct act_task *t;

	if (act_is_under_way(s, item->file.inode))
		return;
	t = act_task_own(
	    s, SPOOL_CORRUPT, item->file.inode, ask_corrupt, corrupt_asked);
	if (t != NULL)
		(void)act_run(s, t);
}
