#include "qtop/model.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "ipc/page_text.h"

void
format_choose(int width, bool ret_shown[NCOLS])
{
	int sum = -1, last, i;

	for (i = 0; i < NCOLS; i++) {
		ret_shown[i] = true;
		sum += columns[i].width + 1;
	}
	while (sum > width) {
		last = -1;
		for (i = 0; i < NCOLS; i++)
			if (ret_shown[i] && columns[i].rank > 0 &&
			    (last < 0 || columns[i].rank > columns[last].rank))
				last = i;
		if (last < 0)
			return;
		ret_shown[last] = false;
		sum -= columns[last].width + 1;
	}
}

static int
add_cell(
    const struct column *column, bool first, const char *text, struct buf *out)
{
	const int width = column->left ? -column->width : column->width;

	if (column->rest)
		return buf_printf(out, "%s%s", first ? "" : " ", text);
	return buf_printf(
	    out, "%s%*.*s", first ? "" : " ", width, column->width, text);
}

static void
trim(struct buf *out, size_t from)
{
	while (out->len > from && out->data[out->len - 1] == ' ')
		out->data[--out->len] = '\0';
}

int
format_titles(const bool shown[NCOLS], struct buf *out)
{
	const size_t from = out->len;
	int i, r = 0;

	for (i = 0; i < NCOLS && r == 0; i++)
		if (shown[i])
			r = add_cell(
			    &columns[i], i == 0, columns[i].title, out);
	trim(out, from);
	return r;
}

int
format_row(
    const struct model_row *row, const bool shown[NCOLS], struct buf *out)
{
	const size_t from = out->len;
	char cell[CELL_MAX];
	int i, r = 0;

	for (i = 0; i < NCOLS && r == 0; i++) {
		if (!shown[i])
			continue;
		columns[i].fmt(row, cell);
		r = add_cell(&columns[i], i == 0, cell, out);
	}
	trim(out, from);
	return r;
}

enum line_kind
format_row_kind(const struct model *model, const struct model_row *row)
{
	const struct queue_page *page = &row->page;
	const bool by_hand = (row->sched.flags & SCHED_ROW_OVERRIDE) != 0;

	if (row_is_total(row))
		return LINE_PLAIN;
	if (row->error < 0 || row->stale || page->read_only != 0 ||
	    (row->sched.state == QUEUE_STATE_DISABLED && !by_hand) ||
	    row->sched.state == QUEUE_STATE_QUARANTINED)
		return LINE_BAD;
	if (row->load_pct >= model->sched.threshold_pct ||
	    row->sched.state != QUEUE_STATE_OPEN || page->scan_only != 0)
		return LINE_WARN;
	if (page->local_used == 0 && page->remote_used == 0 && row->in == 0 &&
	    page->active == 0)
		return LINE_DIM;
	return LINE_PLAIN;
}

/* ---- the whole ---- */

static int
add_count(const struct model *model, struct buf *out)
{
	struct buf text = { 0 };
	int r = page_text_count(&model->sched, model->now_mono, &text);

	if (r == 0 && text.len > 0)
		r = buf_printf(out, ", %s", buf_str(&text));
	buf_done(&text);
	return r;
}

int
format_summary(const struct model *model, const char *instance, struct buf *out)
{
	const struct sched_page *s = &model->sched;
	int r;

	r = buf_printf(
	    out, "qscheduler%s%s: ", *instance == '\0' ? "" : " ", instance);
	if (r == 0 && model->error < 0)
		return buf_add_str(out, "not running");
	if (r == 0)
		r = buf_printf(out,
		    "pid %" PRIu32 ", %" PRIu32 " open (%" PRIu32 " to %" PRIu32
		    "), %" PRIu32 " on disk, load %" PRIu32 "%% of %" PRIu32
		    "%%, %s",
		    s->head.pid, s->qcount, s->queue_count, s->queue_max,
		    s->qconf, s->mean_load_pct, s->threshold_pct,
		    s->dynamic != 0 ? "dynamic" : "fixed");
	return r < 0 ? r : add_count(model, out);
}

int
format_change(const struct model *model, struct buf *out)
{
	return model->error < 0
	    ? 0
	    : page_text_change(&model->sched, model->now_wall, out);
}

int
format_threshold(const struct model *model, struct buf *out)
{
	const struct sched_page *s = &model->sched;

	return buf_printf(out,
	    "threshold = %" PRIu32 ".00 , qcount = %" PRIu32
	    ", qconf = %" PRIu32 ", qmin = %" PRIu32 ", qmax = %" PRIu32
	    ", mean = %" PRIu32 ".00, held = %" PRIu32 ", changes = %" PRIu64,
	    s->threshold_pct, s->qcount, s->qconf, s->queue_count, s->queue_max,
	    s->mean_load_pct, s->held_count, s->changes);
}

int
format_note(const struct model_row *row, struct buf *out)
{
	struct buf note = { 0 };
	int r = note_add(row, &note);

	if (r == 0 && note.len > 0)
		r = buf_printf(
		    out, "%" PRIu32 ": %s", row->sched.queue, buf_str(&note));
	buf_done(&note);
	return r;
}

/* The trouble of a page that could not be read. */
static const struct {
	int error;
	const char *why;
} troubles[] = {
	{ -ENOENT, "no supervisor of this instance is running" },
	{ -EPERM, "belongs to another user" },
	{ -EBADMSG, "damaged, or of another version" },
	{ -EAGAIN, "its supervisor died while it wrote" },
};

int
format_trouble(const struct model *model, const char *instance, struct buf *out)
{
	char name[IPC_NAME_MAX], time[CELL_MAX];
	const char *why = strerror(-model->error);
	size_t i;

	ipc_name_scheduler(instance, name);
	if (model->error < 0) {
		for (i = 0; i < ARRAY_LEN(troubles); i++)
			if (troubles[i].error == model->error)
				why = troubles[i].why;
		return buf_printf(out, "%s: %s", name, why);
	}
	if (!model->stale)
		return 0;
	age_format(model->sched_age, time);
	return buf_printf(out,
	    "%s: STALE: no sign of life of the supervisor for %s", name, time);
}

static int
end_line(int r, struct buf *out)
{
	return r < 0 ? r : buf_add_char(out, '\n');
}

int
format_batch(const struct model *model, const char *instance, struct buf *out)
{
	bool shown[NCOLS];
	uint32_t i;
	int r;

	format_choose(FORMAT_WIDE, shown);
	r = end_line(format_summary(model, instance, out), out);
	if (r == 0 && model->stale)
		r = end_line(format_trouble(model, instance, out), out);
	if (r == 0 && model->sched.change_wall != 0)
		r = end_line(format_change(model, out), out);
	if (r == 0)
		r = end_line(format_titles(shown, out), out);
	if (r == 0)
		r = end_line(format_row(&model->total, shown, out), out);
	for (i = 0; i < model->nrows && r == 0; i++)
		r = end_line(format_row(&model->rows[i], shown, out), out);
	if (r == 0)
		r = end_line(format_threshold(model, out), out);
	return r;
}
