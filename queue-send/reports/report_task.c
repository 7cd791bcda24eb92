#include "queue-send/reports/report_text.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/header.h"
#include "base/io.h"
#include "queue-send/state/pure.h"
#include "smtp/verp.h"
#include "spool/prepared.h"
#include "spool/reason.h"
#include "spool/waiting.h"
#include "submit/submit.h"

static int
add_received(struct report_work *w)
{
	char line[SUBMIT_RECEIVED_MAX];
	int n = submit_received(&w->accept, w->t->host, "\n", line);

	return n < 0 ? n : accept_content(&w->accept, line, (size_t)n);
}

/* ---- the file ---- */

/* An address without a domain has that of this system, in a header. */
static void
complete(
    const struct report_work *w, const char *address, char *out, size_t size)
{
	snprintf(out, size, "%s%s%s", address,
	    strchr(address, '@') == NULL ? "@" : "",
	    strchr(address, '@') == NULL ? w->t->domain : "");
}

static void
make_token(char out[33])
{
	unsigned char bytes[16];
	size_t i;

	arc4random_buf(bytes, sizeof(bytes));
	for (i = 0; i < sizeof(bytes); i++)
		snprintf(out + 2 * i, 3, "%02x", bytes[i]);
}

static int
write_report(
    struct report_work *w, enum report_kind kind, struct queue_id *ret_id)
{
	struct report_task *t = w->t;
	char to[ADDRESS_MAX + CONF_HOST_SIZE + 2];
	char from[CONF_HOST_SIZE + 16], id[QUEUE_ID_SIZE], token[33];
	int r;

	complete(w, w->to, to, sizeof(to));
	complete(w, "MAILER-DAEMON", from, sizeof(from));
	queue_id_format(&t->id, id);
	make_token(token);
	report_set_facts(w, kind);
	w->facts.from = from;
	w->facts.to = to;
	w->facts.id = id;
	w->facts.token = token;
	r = add_received(w);
	if (r == 0)
		r = report_add_text(w);
	if (r == 0)
		r = queue_file_add_sender(&w->accept.writer, "", 0);
	if (r == 0)
		r = queue_file_add_rcpt(
		    &w->accept.writer, w->to, strlen(w->to));
	return r < 0 ? r : accept_commit(&w->accept, ret_id);
}

/* A report of that name may have been removed. Where names keep no order
 * (btrfs), a power cut may bring it back when this one has left the name, and
 * the line of this one would send both. So the directory is synced there. */
static int
prepare_report(
    struct report_work *w, enum report_kind kind, struct queue_id *ret_id)
{
	const struct prepared name = { .parent = w->t->id,
		.index = PREPARED_REPORT,
		.number = w->rcpts.reports };
	char text[PREPARED_NAME_MAX];
	int r;

	prepared_name(&name, text);
	w->t->opt.dir = SPOOL_PREPARED;
	w->t->opt.name = text;
	w->t->opt.strict |= !w->t->sp->keeps_order;
	r = accept_begin(&w->accept, w->t->sp, &w->t->opt, w->t->now_wall,
	    waiting_submitter_of(w->t->sp, w->fd, w->file.uid));
	if (r == 0)
		r = write_report(w, kind, ret_id);
	accept_end(&w->accept);
	return r;
}

/* ---- all of it ---- */

static int
settle(struct report_work *w)
{
	return spool_settle_message(
	    w->t->sp, w->fd, &w->file, w->t->id.inode, NULL, NULL);
}

static int
add_commit(struct report_work *w, enum report_kind kind)
{
	const struct report_task *t = w->t;
	char made[QUEUE_ID_SIZE];

	queue_id_format(&t->made[kind].id, made);
	if (kind == REPORT_DELAY)
		return reason_add_warning(t->sp, &t->id, t->now_wall, made);
	return w->rcpts.most > 0
	    ? reason_add_part_report(
		  t->sp, t->id.inode, t->now_wall, made, w->fit_reasons)
	    : reason_add_report(t->sp, t->id.inode, t->now_wall, made);
}

/* The line in bounce/ is the commit. */
static int
make_report(struct report_work *w, enum report_kind kind)
{
	int r = prepare_report(w, kind, &w->t->made[kind].id);

	if (r == 0)
		r = add_commit(w, kind);
	if (r == 0)
		w->t->made[kind].count = w->rcpts.count;
	return r < 0 ? r : settle(w);
}

/* The message was read, or could not be; -EBADMSG and -EPERM are kept for what
 * is wrong with it, and -ENOENT says that it is gone. */
static int
of_message(struct report_work *w, int error)
{
	if (error == -EIO)
		w->t->trouble = REPORT_READING;
	return error;
}

/* The same of everything beside it: its reasons, other names in prepared/. */
static int
beside_message(struct report_work *w, int error, enum report_trouble trouble)
{
	if (error == -ENOENT || error == -EPERM || error == -EBADMSG)
		error = -EIO;
	if (error == -EIO)
		w->t->trouble = trouble;
	return error;
}

static int
open_message(struct report_work *w)
{
	const struct report_task *t = w->t;
	int r;

	w->fd = spool_open_file(t->sp,
	    t->corrupt ? SPOOL_CORRUPT : SPOOL_ACTIVE, t->id.inode, O_RDONLY);
	if (w->fd < 0)
		return w->fd;
	r = queue_file_read(w->fd, &w->file);
	if (r == 0 &&
	    (w->file.arrival_wall != t->id.arrival_wall ||
		w->file.nonce != t->id.nonce))
		r = -ENOENT;
	if (r == 0)
		r = queue_file_dsn(w->fd, &w->file, &w->dsn);
	return r < 0 ? r : prepared_lock(w->fd);
}

static int
find_recipients(struct report_work *w, enum report_kind kind)
{
	int r;

	w->rcpts.sp = w->t->sp;
	w->rcpts.fd = w->fd;
	w->rcpts.file = &w->file;
	w->rcpts.inode = w->t->id.inode;
	w->rcpts.damaged = w->t->corrupt;
	w->rcpts.alone = w->t->alone;
	r = report_rcpts_find(&w->rcpts, kind);
	return w->rcpts.beside ? beside_message(w, r, REPORT_READING)
			       : of_message(w, r);
}

static int
tell_recipients(struct report_work *w, enum report_kind kind)
{
	int r;

	if (w->t->look) {
		w->t->wanting = true;
		return 0;
	}
	r = report_take_part(w, kind);
	if (r < 0)
		return beside_message(w, r, REPORT_READING);
	w->t->left = w->rcpts.most > 0 && kind != REPORT_DELAY;
	if (kind == REPORT_FAILURE && w->rcpts.done == w->rcpts.count)
		kind = REPORT_SUCCESS; /* no failure is in this part */
	r = of_message(w, report_read_content(w, kind));
	return r < 0 ? r
		     : beside_message(w, make_report(w, kind), REPORT_WRITING);
}

/* ---- VERP: a report for each recipient ---- */

/* The line in bounce/ names the recipient: each report commits by itself. */
static int
commit_alone(
    struct report_work *w, enum report_kind kind, const struct queue_id *id)
{
	struct report_task *t = w->t;
	char made[QUEUE_ID_SIZE];
	int r;

	queue_id_format(id, made);
	r = reason_add_rcpt_report(
	    t->sp, t->id.inode, t->now_wall, made, w->rcpts.index);
	if (r < 0)
		return r;
	w->rcpts.reports++;
	t->made_alone[t->nalone].kind = kind;
	t->made_alone[t->nalone++].id = *id;
	return 0;
}

static int
make_alone(struct report_work *w, const struct report_rcpt *to)
{
	const enum report_kind kind =
	    to->action == REPORT_FAILED ? REPORT_FAILURE : REPORT_SUCCESS;
	struct queue_id id;
	int r = of_message(w, report_read_content(w, kind));

	if (r < 0)
		return r;
	w->only = to;
	r = prepare_report(w, kind, &id);
	w->only = NULL;
	if (r == 0)
		r = commit_alone(w, kind, &id);
	return beside_message(w, r, REPORT_WRITING);
}

static int
tell_alone(void *arg, const struct report_rcpt *to)
{
	struct report_work *w = arg;
	struct report_task *t = w->t;
	char sender[ADDRESS_MAX + 1];
	int r;

	if (t->nalone == REPORTS_ALONE_MAX) {
		t->left = true;
		return 1;
	}
	r = verp_report_to(t->sender, w->rcpts.address, t->domain, sender);
	if (r < 0)
		return r;
	w->to = w->sender = sender;
	r = make_alone(w, to);
	w->to = t->to;
	w->sender = t->sender;
	return r;
}

static int
tell_each_alone(struct report_work *w)
{
	int r;

	if (w->t->look) {
		w->t->wanting = true;
		return 0;
	}
	r = report_rcpts_tell(&w->rcpts, tell_alone, w);
	return r < 0 ? r : beside_message(w, settle(w), REPORT_WRITING);
}

/* Deliveries too, where the sender asked to be told of them. */
static int
tell_failures(struct report_work *w)
{
	int r = find_recipients(w, w->t->kind);

	if (r < 0)
		return r;
	w->t->unwanted = w->rcpts.unwanted;
	w->t->left = false;
	if (w->rcpts.count == 0)
		return 0;
	if (w->t->alone)
		return tell_each_alone(w);
	return tell_recipients(
	    w, w->rcpts.done == w->rcpts.count ? REPORT_SUCCESS : w->t->kind);
}

/* Behind the report of failures: no reason in front of the line of a warning is
 * untold. Nobody waits for bulk mail and for what programs send, unless a
 * warning was asked for. */
static int
warn(struct report_work *w)
{
	int r = of_message(w, report_read_content(w, REPORT_DELAY));

	if (r < 0)
		return r;
	w->rcpts.asked_only =
	    header_is_automatic(w->content.data, w->content.len);
	r = find_recipients(w, REPORT_DELAY);
	return r < 0 || w->rcpts.count == 0 ? r
					    : tell_recipients(w, REPORT_DELAY);
}

/* Only of a message that is ours and locked. */
static int
tell_all(struct report_work *w)
{
	int r = beside_message(w, settle(w), REPORT_WRITING);

	if (r == 0)
		r = tell_failures(w);
	/* The line of a warning tells of all reasons in front of it. */
	if (r == 0 && w->t->warn && !w->t->left)
		r = warn(w);
	if (r < 0)
		(void)settle(w);
	return r;
}

/* ---- a message in corrupt/ ---- */

#define NO_REPORT "none"

/* An act may have moved the message before the lock. */
static int
is_in_corrupt(const struct report_task *t)
{
	int fd = spool_open_file(t->sp, SPOOL_CORRUPT, t->id.inode, O_RDONLY);

	if (fd < 0)
		return fd;
	io_close(&fd);
	return 0;
}

/* Reports a message in corrupt/ to its sender. If no recipient wants a warning,
 * the message still gets the mark of a warning, so that the next walk of
 * corrupt/ does not read the message again. */
static int
tell_damage(struct report_work *w)
{
	const struct report_task *t = w->t;
	int r = of_message(w, is_in_corrupt(t)), marks;

	if (r < 0)
		return r;
	marks = reason_marks(t->sp, &t->id);
	if (marks < 0 && marks != -ENOENT)
		return beside_message(w, marks, REPORT_READING);
	if (marks > 0 && (marks & REASON_WARNED) != 0)
		return 0;
	r = tell_all(w);
	return r < 0 || t->left || t->made[REPORT_DELAY].count > 0
	    ? r
	    : reason_add_warning(t->sp, &t->id, t->now_wall, NO_REPORT);
}

int
report_task_work(struct sync_task *task)
{
	struct report_task *t = (struct report_task *)(void *)task;
	struct report_work w = {
		.t = t, .fd = -1, .to = t->to, .sender = t->sender
	};
	int r;

	if (t->begins)
		(void)reason_clear(t->sp, SPOOL_BOUNCE, t->id.inode);
	r = of_message(&w, open_message(&w));
	if (r == 0)
		r = t->corrupt ? tell_damage(&w) : tell_all(&w);
	io_close(&w.fd);
	report_rcpts_done(&w.rcpts);
	buf_done(&w.content);
	buf_done(&w.out);
	return r;
}
