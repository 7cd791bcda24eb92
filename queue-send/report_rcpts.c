#include "queue-send/report_task.h"

#include <errno.h>
#include <stdlib.h>

#include "spool/reason.h"

#define NOT_MEANT UINT32_MAX

/* The recipients that a report of each kind names, and their reasons. */
static const struct notice {
	enum rcpt_mark mark;
	enum report_action action;
	enum dsn_notify wish; /* of the sender */
	enum spool_dir reasons;
	bool untold;            /* only reasons behind the last report */
	const char *dsn, *text; /* of a recipient without a reason */
} notices[REPORT_NKINDS] = {
	[REPORT_FAILURE] = { RCPT_FAILED, REPORT_FAILED, DSN_FAILURE,
	    SPOOL_BOUNCE, true, "", "the reason was lost with its file" },
	[REPORT_DOUBLE] = { RCPT_FAILED, REPORT_FAILED, DSN_FAILURE,
	    SPOOL_BOUNCE, true, "", "the reason was lost with its file" },
	[REPORT_DELAY] = { RCPT_PENDING, REPORT_DELAYED, DSN_DELAY, SPOOL_DEFER,
	    false, "4.0.0", "waits for its turn" },
};

/* ---- recipients ---- */

static bool
is_meant(const struct report_rcpts *w, const struct notice *n,
    const struct queue_rcpt *rcpt)
{
	if (rcpt->mark != n->mark)
		return false;
	return w->asked_only ? (rcpt->dsn.notify & n->wish) != 0
			     : dsn_wants(rcpt->dsn.notify, n->wish);
}

static int
find_marks(struct report_rcpts *w, const struct notice *n)
{
	struct queue_rcpt_cursor *cursor = malloc(sizeof(*cursor));
	struct queue_rcpt rcpt;
	int r = 0;

	free(w->last);
	w->last = malloc(w->file->rcpt_count * sizeof(*w->last));
	if (cursor == NULL || w->last == NULL)
		r = -ENOMEM;
	if (r == 0)
		queue_rcpt_begin(cursor, w->file);
	while (r == 0 && (r = queue_rcpt_next(cursor, w->fd, &rcpt)) > 0) {
		w->last[rcpt.index] = is_meant(w, n, &rcpt) ? 0 : NOT_MEANT;
		r = 0;
	}
	free(cursor);
	return r;
}

/* ---- reasons ---- */

static int
read_reasons(
    struct report_rcpts *w, int (*each)(const struct reason *reason, void *arg))
{
	const struct notice *n = &notices[w->kind];
	int r;

	w->line = 0;
	r = n->untold ? reason_read_after(w->sp, w->inode, w->reports, each, w)
		      : reason_read(w->sp, n->reasons, w->inode, each, w);
	return r == -ENOENT ? 0 : r;
}

static int
note_line(const struct reason *reason, void *arg)
{
	struct report_rcpts *w = arg;

	w->line++;
	if (reason->index >= w->file->rcpt_count ||
	    w->last[reason->index] == NOT_MEANT)
		return 0;
	w->count += w->last[reason->index] == 0;
	w->last[reason->index] = w->line;
	return 0;
}

/* Recipients that failed without a reason are told of by the first report. */
static bool
has_lost(const struct report_rcpts *w)
{
	return !notices[w->kind].untold || w->reports == 0;
}

int
report_rcpts_find(struct report_rcpts *w, enum report_kind kind)
{
	uint32_t i;
	int r;

	w->kind = kind;
	w->count = 0;
	w->beside = false;
	r = find_marks(w, &notices[kind]);
	if (r < 0)
		return r;
	w->beside = true;
	r = reason_count_reports(w->sp, w->inode, &w->reports);
	if (r == 0)
		r = read_reasons(w, note_line);
	for (i = 0; r == 0 && has_lost(w) && i < w->file->rcpt_count; i++)
		w->count += w->last[i] == 0;
	return r;
}

/* ---- each of them ---- */

static int
tell_line(const struct reason *reason, void *arg)
{
	struct report_rcpts *w = arg;
	const struct report_rcpt to = {
		.address = reason->address,
		.action = notices[w->kind].action,
		.dsn = reason->dsn,
		.relay = reason->relay,
		.text = reason->text,
		.when_wall = reason->when_wall,
	};

	w->line++;
	if (reason->index >= w->file->rcpt_count ||
	    w->last[reason->index] != w->line)
		return 0;
	return w->each(w->arg, &to);
}

static int
tell_lost(struct report_rcpts *w)
{
	const struct notice *n = &notices[w->kind];
	struct queue_rcpt_cursor *cursor = malloc(sizeof(*cursor));
	struct queue_rcpt rcpt;
	const struct report_rcpt to = {
		.address = rcpt.address,
		.action = n->action,
		.dsn = n->dsn,
		.relay = "none",
		.text = n->text,
	};
	int r = cursor == NULL ? -ENOMEM : 0;

	if (r == 0)
		queue_rcpt_begin(cursor, w->file);
	while (r == 0 && (r = queue_rcpt_next(cursor, w->fd, &rcpt)) > 0)
		r = w->last[rcpt.index] == 0 ? w->each(w->arg, &to) : 0;
	free(cursor);
	return r;
}

int
report_rcpts_tell(struct report_rcpts *w,
    int (*each)(void *arg, const struct report_rcpt *to), void *arg)
{
	int r;

	w->each = each;
	w->arg = arg;
	r = read_reasons(w, tell_line);
	return r < 0 || !has_lost(w) ? r : tell_lost(w);
}

void
report_rcpts_done(struct report_rcpts *w)
{
	free(w->last);
	w->last = NULL;
}
