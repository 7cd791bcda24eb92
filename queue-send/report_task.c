#include "queue-send/report_task.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/io.h"
#include "spool/prepared.h"
#include "spool/reason.h"
#include "submit/submit.h"

#define NOT_FAILED UINT32_MAX
#define LOST_TEXT  "the reason was lost with its file"

/* The work on one message: its file is locked. */
struct work {
	struct report_task *t;
	int fd;
	struct queue_file file;
	uint32_t reports; /* that were made before */
	/* Of each recipient: which line of the reasons is its last one, from 1;
	 * 0: none; NOT_FAILED. */
	uint32_t *last;
	uint32_t line;
	struct report_facts facts;
	struct buf content, out;
	struct accept accept;
	int (*add)(struct report_facts *r, const struct report_rcpt *to,
	    struct buf *out);
};

/* ---- the failures ---- */

static int
find_failed(struct work *w)
{
	struct queue_rcpt_cursor *cursor = malloc(sizeof(*cursor));
	struct queue_rcpt rcpt;
	int r = 0;

	w->last = malloc(w->file.rcpt_count * sizeof(*w->last));
	if (cursor == NULL || w->last == NULL)
		r = -ENOMEM;
	if (r == 0)
		queue_rcpt_begin(cursor, &w->file);
	while (r == 0 && (r = queue_rcpt_next(cursor, w->fd, &rcpt)) > 0) {
		w->last[rcpt.index] = rcpt.mark == RCPT_FAILED ? 0 : NOT_FAILED;
		r = 0;
	}
	free(cursor);
	return r;
}

static int
note_line(const struct reason *reason, void *arg)
{
	struct work *w = arg;

	w->line++;
	if (reason->index >= w->file.rcpt_count ||
	    w->last[reason->index] == NOT_FAILED)
		return 0;
	w->t->count += w->last[reason->index] == 0;
	w->last[reason->index] = w->line;
	return 0;
}

/* Recipients that failed without a reason are told of by the first report. */
static void
count_lost(struct work *w)
{
	uint32_t i;

	for (i = 0; w->reports == 0 && i < w->file.rcpt_count; i++)
		w->t->count += w->last[i] == 0;
}

static int
find_failures(struct work *w)
{
	int r = reason_count_reports(w->t->sp, w->t->id.inode, &w->reports);

	if (r == 0)
		r = find_failed(w);
	if (r == 0)
		r = reason_read_after(
		    w->t->sp, w->t->id.inode, w->reports, note_line, w);
	if (r == -ENOENT)
		r = 0;
	if (r == 0)
		count_lost(w);
	return r;
}

/* ---- the text ---- */

/* Text that is ready goes into the file. */
static int
flush(struct work *w)
{
	int r = accept_content(&w->accept, w->out.data, w->out.len);

	buf_reset(&w->out);
	return r;
}

static int
add_rcpt(struct work *w, const struct report_rcpt *to)
{
	int r = w->add(&w->facts, to, &w->out);

	return r < 0 ? r : flush(w);
}

static int
add_line(const struct reason *reason, void *arg)
{
	struct work *w = arg;
	const struct report_rcpt to = {
		.address = reason->address,
		.action = REPORT_FAILED,
		.dsn = reason->dsn,
		.relay = reason->relay,
		.text = reason->text,
		.when_wall = reason->when_wall,
	};

	w->line++;
	if (reason->index >= w->file.rcpt_count ||
	    w->last[reason->index] != w->line)
		return 0;
	return add_rcpt(w, &to);
}

static int
add_lost(struct work *w)
{
	struct queue_rcpt_cursor *cursor = malloc(sizeof(*cursor));
	struct queue_rcpt rcpt;
	const struct report_rcpt to = {
		.address = rcpt.address,
		.action = REPORT_FAILED,
		.dsn = "",
		.relay = "none",
		.text = LOST_TEXT,
	};
	int r = cursor == NULL ? -ENOMEM : 0;

	if (r == 0)
		queue_rcpt_begin(cursor, &w->file);
	while (r == 0 && (r = queue_rcpt_next(cursor, w->fd, &rcpt)) > 0)
		r = w->last[rcpt.index] == 0 ? add_rcpt(w, &to) : 0;
	free(cursor);
	return r;
}

/* Each recipient once, by `add`. */
static int
add_all(struct work *w,
    int (*add)(
	struct report_facts *r, const struct report_rcpt *to, struct buf *out))
{
	int r;

	w->add = add;
	w->line = 0;
	r = reason_read_after(
	    w->t->sp, w->t->id.inode, w->reports, add_line, w);
	if (r == -ENOENT)
		r = 0;
	return r < 0 || w->reports > 0 ? r : add_lost(w);
}

static int
read_content(struct work *w)
{
	const uint64_t len = w->file.content_len;
	const bool whole = len <= w->t->size_limit;
	const size_t want = (size_t)(whole ? len
		: len < REPORT_HEADER_MAX  ? len
					   : REPORT_HEADER_MAX);
	int64_t n;
	int r = buf_reserve(&w->content, want);

	if (r < 0)
		return r;
	n = io_pread_all(
	    w->fd, w->content.data, want, (int64_t)w->file.content_off);
	if (n < 0)
		return (int)n;
	w->content.len = (size_t)n;
	w->facts.whole = whole;
	w->facts.content = w->content.data;
	w->facts.content_len = w->content.len;
	return 0;
}

static int
add_received(struct work *w)
{
	char line[SUBMIT_RECEIVED_MAX];
	int n = submit_received(&w->accept, w->t->host, "\n", line);

	return n < 0 ? n : accept_content(&w->accept, line, (size_t)n);
}

static int
add_text(struct work *w)
{
	int r = report_begin(&w->facts, &w->out);

	if (r == 0)
		r = flush(w);
	if (r == 0)
		r = add_all(w, report_say);
	if (r == 0)
		r = report_middle(&w->facts, &w->out);
	if (r == 0)
		r = add_all(w, report_state);
	if (r == 0)
		r = report_end(&w->facts, &w->out);
	return r < 0 ? r : flush(w);
}

/* ---- the file ---- */

/* An address without a domain has that of this system, in a header. */
static void
complete(const struct work *w, const char *address, char *out, size_t size)
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
write_report(struct work *w)
{
	struct report_task *t = w->t;
	char to[ADDRESS_MAX + CONF_HOST_SIZE + 2];
	char from[CONF_HOST_SIZE + 16], id[QUEUE_ID_SIZE], token[33];
	int r = read_content(w);

	complete(w, t->to, to, sizeof(to));
	complete(w, "MAILER-DAEMON", from, sizeof(from));
	queue_id_format(&t->id, id);
	make_token(token);
	w->facts.kind = t->kind;
	w->facts.host = t->host;
	w->facts.from = from;
	w->facts.to = to;
	w->facts.sender = t->sender;
	w->facts.id = id;
	w->facts.token = token;
	w->facts.now_wall = t->now_wall;
	w->facts.arrival_wall = w->file.arrival_wall;
	if (r == 0)
		r = add_received(w);
	if (r == 0)
		r = add_text(w);
	if (r == 0)
		r = queue_file_add_sender(&w->accept.writer, "", 0);
	if (r == 0)
		r = queue_file_add_rcpt(
		    &w->accept.writer, t->to, strlen(t->to));
	return r < 0 ? r : accept_commit(&w->accept, &t->made);
}

static int
prepare_report(struct work *w)
{
	const struct prepared name = { .parent = w->t->id,
		.index = PREPARED_REPORT,
		.number = w->reports };
	char text[PREPARED_NAME_MAX];
	int r;

	prepared_name(&name, text);
	w->t->opt.dir = SPOOL_PREPARED;
	w->t->opt.name = text;
	r = accept_begin(&w->accept, w->t->sp, &w->t->opt, w->t->now_wall,
	    (uint32_t)getuid());
	if (r == 0)
		r = write_report(w);
	accept_end(&w->accept);
	return r;
}

/* ---- all of it ---- */

static int
settle(struct work *w)
{
	return spool_settle_message(
	    w->t->sp, w->fd, &w->file, w->t->id.inode, NULL, NULL);
}

/* The line in bounce/ is the commit. */
static int
make_report(struct work *w)
{
	char id[QUEUE_ID_SIZE];
	int r = prepare_report(w);

	if (r < 0)
		return r;
	queue_id_format(&w->t->made, id);
	r = reason_add_report(w->t->sp, w->t->id.inode, w->t->now_wall, id);
	return r < 0 ? r : settle(w);
}

static int
open_message(struct work *w)
{
	const struct report_task *t = w->t;
	int r;

	w->fd = spool_open_file(t->sp, SPOOL_ACTIVE, t->id.inode, O_RDONLY);
	if (w->fd < 0)
		return w->fd;
	r = queue_file_read(w->fd, &w->file);
	if (r == 0 &&
	    (w->file.arrival_wall != t->id.arrival_wall ||
		w->file.nonce != t->id.nonce))
		r = -ENOENT;
	return r < 0 ? r : prepared_lock(w->fd);
}

/* Only of a message that is ours and locked. -ENOENT says that the message is
 * gone, so that no other name that is missing may say it. */
static int
tell_failures(struct work *w)
{
	int r = settle(w);

	if (r == 0)
		r = find_failures(w);
	if (r == 0 && w->t->count > 0)
		r = make_report(w);
	if (r < 0)
		(void)settle(w);
	return r == -ENOENT ? -EIO : r;
}

int
report_task_work(struct sync_task *task)
{
	struct report_task *t = (struct report_task *)(void *)task;
	struct work w = { .t = t, .fd = -1 };
	int r = open_message(&w);

	t->count = 0;
	if (r == 0)
		r = tell_failures(&w);
	io_close(&w.fd);
	free(w.last);
	buf_done(&w.content);
	buf_done(&w.out);
	return r;
}
