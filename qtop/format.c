#include "qtop/model.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "ipc/page_text.h"

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

	if (row_is_total(row))
		return LINE_PLAIN;
	if (row_is_faulty(row))
		return LINE_BAD;
	if (row->sched.state != QUEUE_STATE_OPEN)
		return LINE_CLOSED;
	if (row->load_pct >= model->sched.threshold_pct)
		return LINE_LOADED;
	if (page->local_used == 0 && page->remote_used == 0 && row->in == 0 &&
	    page->active == 0)
		return LINE_DIM;
	return LINE_PLAIN;
}

/* ---- messages by age ---- */

int
format_age_titles(struct buf *out)
{
	uint32_t minutes = 5;
	int i, r = buf_add_str(out, "QUEUE");
	char title[16];

	for (i = 0; i < PAGE_AGES && r == 0; i++, minutes *= 2) {
		if (i < PAGE_AGES - 1)
			snprintf(title, sizeof(title), "<%" PRIu32, minutes);
		else
			snprintf(
			    title, sizeof(title), "%" PRIu32 "+", minutes / 2);
		r = buf_printf(out, " %5s", title);
	}
	return r < 0 ? r : buf_add_str(out, " minutes old");
}

int
format_age_row(const struct model_row *row, struct buf *out)
{
	char cell[CELL_MAX];
	int i, r;

	columns[COL_QUEUE].fmt(row, cell);
	r = buf_printf(out, "%5.5s", cell);
	for (i = 0; i < PAGE_AGES && r == 0; i++) {
		count_format(row->page.age[i], cell);
		r = buf_printf(out, " %5.5s", row->error < 0 ? "?" : cell);
	}
	return r;
}

/* ---- lines of parts ---- */

void
part_set(struct line_part *part, int rank, const char *format, ...)
{
	va_list args;

	part->rank = rank;
	va_start(args, format);
	vsnprintf(part->text, sizeof(part->text), format, args);
	va_end(args);
}

/* The part of the lowest rank that is not taken and fits; nparts: none. */
static size_t
next_part(const struct line_part *parts, size_t nparts, const bool *taken,
    size_t between, size_t room)
{
	size_t i, best = nparts;

	for (i = 0; i < nparts; i++)
		if (!taken[i] && parts[i].text[0] != '\0' &&
		    strlen(parts[i].text) + between <= room &&
		    (best == nparts || parts[i].rank < parts[best].rank))
			best = i;
	return best;
}

int
format_parts(const struct line_part *parts, size_t nparts, const char *between,
    int width, struct buf *out)
{
	const size_t gap = strlen(between), start = out->len;
	size_t i, room = (size_t)(width > 0 ? width : 0) + gap;
	bool taken[PARTS_MAX] = { false };
	int r = 0;

	ASSERT(nparts <= PARTS_MAX);
	while ((i = next_part(parts, nparts, taken, gap, room)) < nparts) {
		taken[i] = true;
		room -= strlen(parts[i].text) + gap;
	}
	for (i = 0; i < nparts && r == 0; i++)
		if (taken[i])
			r = buf_printf(out, "%s%s",
			    out->len > start ? between : "", parts[i].text);
	return r;
}

/* ---- the whole ---- */

enum {
	PART_PID,
	PART_OPEN,
	PART_DISK,
	PART_LOAD,
	PART_MODE,
	PART_COUNT,
	NPARTS,
};

static int
make_parts(const struct model *model, struct line_part p[NPARTS])
{
	const struct sched_page *s = &model->sched;
	struct buf count = { 0 };
	int r = page_text_count(s, model->now_mono, &count);

	part_set(&p[PART_PID], 3, "pid %" PRIu32, s->head.pid);
	part_set(&p[PART_OPEN], 1,
	    "%" PRIu32 " open (%" PRIu32 " to %" PRIu32 ")", s->qcount,
	    s->queue_count, s->queue_max);
	part_set(&p[PART_DISK], 6, "%" PRIu32 " on disk", s->qconf);
	part_set(&p[PART_LOAD], 2, "load %" PRIu32 "%% of %" PRIu32 "%%",
	    model->total.load_pct, s->threshold_pct);
	part_set(&p[PART_MODE], 5, "%s", s->dynamic != 0 ? "dynamic" : "fixed");
	part_set(&p[PART_COUNT], 4, "%s", r < 0 ? "" : buf_str(&count));
	buf_done(&count);
	return r;
}

int
format_summary(
    const struct model *model, const char *instance, int width, struct buf *out)
{
	struct line_part parts[NPARTS];
	const size_t start = out->len;
	int r;

	r = buf_printf(
	    out, "qscheduler%s%s: ", *instance == '\0' ? "" : " ", instance);
	if (r == 0 && model->error < 0)
		return buf_add_str(out, "not running");
	if (r == 0)
		r = make_parts(model, parts);
	return r < 0 ? r
		     : format_parts(parts, NPARTS, ", ",
			   width - (int)(out->len - start), out);
}

int
format_change(const struct model *model, struct buf *out)
{
	if (model->error < 0)
		return 0;
	/* An operator has to mend this: it takes the place of the change. */
	return model->sched.conf_error[0] != '\0'
	    ? page_text_conf(&model->sched, out)
	    : page_text_change(&model->sched, model->now_wall, out);
}

int
format_threshold(const struct model *model, struct buf *out)
{
	const struct sched_page *s = &model->sched;

	return buf_printf(out,
	    "threshold = %" PRIu32 ".00 , qcount = %" PRIu32
	    ", qconf = %" PRIu32 ", qmin = %" PRIu32 ", qmax = %" PRIu32
	    ", mean = %" PRIu32 ".00, count_by_hand = %" PRIu32
	    ", changes = %" PRIu64,
	    s->threshold_pct, s->qcount, s->qconf, s->queue_count, s->queue_max,
	    model->total.load_pct, s->held_count, s->changes);
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
	{ -EPERM, "belongs to another user" },
	{ -EBADMSG, "damaged, or of another version" },
	{ -EAGAIN, "its supervisor died while it wrote" },
};

int
format_trouble(const struct model *model, const char *instance, struct buf *out)
{
	char name[IPC_NAME_MAX], time[CELL_MAX], absent[PAGE_ABSENT_SIZE];
	const char *why = model->error == -ENOENT ? page_absent_text(absent)
						  : strerror(-model->error);
	size_t i;

	ipc_name_scheduler(instance, name);
	if (model->error < 0) {
		for (i = 0; i < ARRAY_LEN(troubles); i++)
			if (troubles[i].error == model->error)
				why = troubles[i].why;
		return model->error == -ENOENT
		    ? buf_printf(out, "instance %s: %s", instance, why)
		    : buf_printf(out, "%s: %s", name, why);
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
	struct layout wide;
	const bool *shown = wide.shown;
	uint32_t i;
	int r;

	layout_choose(model, LAYOUT_WIDE, 0, &wide);
	r = end_line(format_summary(model, instance, LAYOUT_WIDE, out), out);
	if (r == 0 && model->stale)
		r = end_line(format_trouble(model, instance, out), out);
	if (r == 0 &&
	    (model->sched.change_wall != 0 ||
		model->sched.conf_error[0] != '\0'))
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
