#include "setqload/setqload.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "ipc/page_text.h"

/* ---- for people ---- */

/* Appends `before`, the text and a line end; nothing for an empty text. */
static int
add_line(const char *before, const struct buf *text, struct buf *out)
{
	return text->len == 0
	    ? 0
	    : buf_printf(out, "%s%s\n", before, buf_str(text));
}

static int
tell_state(const struct list_view *v, const struct sched_row *row,
    const char *before, struct buf *out)
{
	struct buf detail = { 0 };
	int r;

	if (row->state == QUEUE_STATE_OPEN &&
	    (row->flags &
		(SCHED_ROW_SILENT | SCHED_ROW_LATE | SCHED_ROW_NO_MAIL)) == 0)
		return 0;
	r = page_text_row(row, v->now_mono, &detail);
	if (r == 0)
		r = buf_printf(out, "%s%s%s%s%s\n", before,
		    page_state_text(row), detail.len > 0 ? ", " : "",
		    buf_str(&detail),
		    (row->flags & SCHED_ROW_OVERRIDE) != 0 &&
			    row->state != QUEUE_STATE_DISABLED
			? " (and disabled by hand)"
			: "");
	buf_done(&detail);
	return r;
}

static int
tell_queue(
    const struct list_view *v, const struct sched_row *row, struct buf *out)
{
	struct buf load = { 0 };
	char before[24];
	int r;

	if (row->state == QUEUE_STATE_NONE)
		return 0;
	snprintf(before, sizeof(before), "queue %" PRIu32 ": ", row->queue);
	r = tell_state(v, row, before, out);
	if (r == 0)
		r = page_text_load(row, v->now_mono, &load);
	if (r == 0)
		r = add_line(before, &load, out);
	buf_done(&load);
	return r;
}

static int
tell_count(const struct list_view *v, struct buf *out)
{
	struct buf text = { 0 };
	int r = page_text_count(v->page, v->now_mono, &text);

	if (r == 0)
		r = add_line("", &text, out);
	buf_done(&text);
	return r;
}

static int
tell_conf(const struct list_view *v, struct buf *out)
{
	struct buf text = { 0 };
	int r = page_text_conf(v->page, &text);

	if (r == 0)
		r = add_line("", &text, out);
	buf_done(&text);
	return r;
}

static int
tell_change(const struct list_view *v, struct buf *out)
{
	struct buf text = { 0 };
	int r = page_text_change(v->page, v->now_wall, &text);

	if (r == 0)
		r = add_line("", &text, out);
	buf_done(&text);
	return r;
}

static int
tell_summary(const struct sched_page *p, struct buf *out)
{
	return buf_printf(out,
	    "%" PRIu32 " open, %" PRIu32 " to %" PRIu32
	    " wanted, %s; mean load %" PRIu32 " %%, threshold %" PRIu32 " %%\n",
	    p->qcount, p->queue_count, p->queue_max,
	    p->dynamic != 0 ? "dynamic" : "fixed", p->mean_load_pct,
	    p->threshold_pct);
}

int
list_text(const struct list_view *v, struct buf *out)
{
	size_t start, i;
	int r = tell_summary(v->page, out);

	start = out->len;
	for (i = 0; r == 0 && i < PAGE_QUEUES_MAX; i++)
		r = tell_queue(v, &v->page->rows[i], out);
	if (r == 0)
		r = tell_count(v, out);
	if (r == 0 && out->len == start)
		r = buf_add_str(out, "nothing is set by hand\n");
	if (r == 0)
		r = tell_conf(v, out);
	return r < 0 ? r : tell_change(v, out);
}

/* ---- for programs ---- */

/* Cleaned text has no control characters: two are left to be escaped. */
static int
add_string(const char *name, const char *value, struct buf *out)
{
	struct buf clean = { 0 };
	int r = text_clean(&clean, value, strlen(value), SIZE_MAX);
	size_t i;

	if (r == 0)
		r = buf_printf(out, ",\"%s\":\"", name);
	for (i = 0; r == 0 && i < clean.len; i++) {
		if (clean.data[i] == '"' || clean.data[i] == '\\')
			r = buf_add_char(out, '\\');
		if (r == 0)
			r = buf_add_char(out, clean.data[i]);
	}
	buf_done(&clean);
	return r < 0 ? r : buf_add_char(out, '"');
}

static int
add_bool(const char *name, bool value, struct buf *out)
{
	return buf_printf(out, ",\"%s\":%s", name, value ? "true" : "false");
}

static int
add_number(const char *name, uint64_t value, struct buf *out)
{
	return buf_printf(out, ",\"%s\":%" PRIu64, name, value);
}

/* Seconds; null: none, or for ever. */
static int
add_left(const char *name, usec_t until, usec_t now, struct buf *out)
{
	if (until == 0)
		return buf_printf(out, ",\"%s\":null", name);
	return add_number(
	    name, (uint64_t)(page_time_left(until, now) / USEC_PER_SEC), out);
}

static int
print_instance(const struct list_view *v, struct buf *out)
{
	const struct sched_page *p = v->page;
	int r = buf_printf(out, "{\"open\":%" PRIu32, p->qcount);

	if (r == 0)
		r = add_number("count_min", p->queue_count, out);
	if (r == 0)
		r = add_number("count_max", p->queue_max, out);
	if (r == 0)
		r = add_bool("dynamic", p->dynamic != 0, out);
	if (r == 0)
		r = add_number("mean_load", p->mean_load_pct, out);
	if (r == 0)
		r = add_number("threshold", p->threshold_pct, out);
	if (r == 0)
		r = add_number("count_by_hand", p->held_count, out);
	if (r == 0)
		r = add_left(
		    "count_left", p->held_until_mono, v->now_mono, out);
	if (r == 0)
		r = add_number("changes", p->changes, out);
	if (r == 0)
		r = add_left("change_age",
		    p->change_wall == 0 ? 0 : v->now_wall, p->change_wall, out);
	if (r == 0)
		r = add_string("change", p->change, out);
	if (r == 0)
		r = add_string("conf_error", p->conf_error, out);
	return r < 0 ? r : buf_add_str(out, "}\n");
}

static int
print_queue(
    const struct list_view *v, const struct sched_row *row, struct buf *out)
{
	int r = buf_printf(out, "{\"queue\":%" PRIu32, row->queue);

	if (r == 0)
		r = add_string("state", queue_state_name(row->state), out);
	if (r == 0)
		r = add_bool("by_hand",
		    (row->flags & (SCHED_ROW_OVERRIDE | SCHED_ROW_ALSO_HAND)) !=
			0,
		    out);
	if (r == 0)
		r = add_bool(
		    "giving", (row->flags & SCHED_ROW_EVACUATING) != 0, out);
	if (r == 0)
		r = add_left("left", row->until_mono, v->now_mono, out);
	if (r == 0)
		r = add_string("reason", row->reason, out);
	if (r == 0)
		r = add_number("load", row->load_pct, out);
	if (r == 0)
		r = add_bool(
		    "load_by_hand", page_is_load_manual(row, v->now_mono), out);
	if (r == 0)
		r = add_left("load_left",
		    page_is_load_manual(row, v->now_mono)
			? row->manual_until_mono
			: 0,
		    v->now_mono, out);
	if (r == 0)
		r = add_number("restarts", row->restarts, out);
	if (r == 0)
		r = add_bool(
		    "silent", (row->flags & SCHED_ROW_SILENT) != 0, out);
	if (r == 0)
		r = add_bool("late", (row->flags & SCHED_ROW_LATE) != 0, out);
	if (r == 0)
		r = add_bool("full", (row->flags & SCHED_ROW_FULL) != 0, out);
	if (r == 0)
		r = add_bool(
		    "read_only", (row->flags & SCHED_ROW_READ_ONLY) != 0, out);
	if (r == 0)
		r = add_bool("fault",
		    row->state == QUEUE_STATE_DISABLED &&
			(row->flags & SCHED_ROW_OVERRIDE) == 0,
		    out);
	return r < 0 ? r : buf_add_str(out, "}\n");
}

int
list_json(const struct list_view *v, struct buf *out)
{
	size_t i;
	int r = print_instance(v, out);

	for (i = 0; r == 0 && i < PAGE_QUEUES_MAX; i++)
		if (v->page->rows[i].state != QUEUE_STATE_NONE)
			r = print_queue(v, &v->page->rows[i], out);
	return r;
}
