#include "setqload/list.h"

#include <inttypes.h>
#include <string.h>

#include "base/num.h"
#include "base/text.h"

/* An end that is over is 0 left. */
static usec_t
left(usec_t until, usec_t now)
{
	usec_t d;

	if (__builtin_sub_overflow(until, now, &d))
		return until < 0 ? 0 : USEC_NEVER;
	return d < 0 ? 0 : d;
}

static bool
is_manual(const struct list_view *v, const struct sched_row *row)
{
	return (row->flags & SCHED_ROW_MANUAL) != 0 &&
	    row->manual_until_mono > v->now_mono;
}

/* ---- for people ---- */

static int
add_span(const char *before, usec_t until, usec_t now, struct buf *out)
{
	int r = buf_add_str(out, before);

	return r < 0 ? r : num_add_span(out, left(until, now));
}

/* " for 5m", or for ever. */
static int
add_until(usec_t until, usec_t now, struct buf *out)
{
	return until == 0 ? buf_add_str(out, ", for ever")
			  : add_span(" for ", until, now, out);
}

static int
add_reason(const char *reason, struct buf *out)
{
	int r = 0;

	if (reason[0] != '\0')
		r = buf_add_str(out, ": ");
	return r < 0 ? r : text_clean(out, reason, strlen(reason), SIZE_MAX);
}

static int
tell_closing(
    const struct list_view *v, const struct sched_row *row, struct buf *out)
{
	if ((row->flags & SCHED_ROW_GIVING) != 0)
		return buf_add_str(out, "closing, hands its mail over");
	if (row->until_mono == 0)
		return buf_add_str(out, "closing");
	return add_span("closing, hands its mail over in ", row->until_mono,
	    v->now_mono, out);
}

static int
tell_disabled(
    const struct list_view *v, const struct sched_row *row, struct buf *out)
{
	int r;

	if ((row->flags & SCHED_ROW_HAND) == 0)
		return buf_add_str(out, "disabled for a fault");
	r = buf_add_str(out, "disabled by hand");
	return r < 0 ? r : add_until(row->until_mono, v->now_mono, out);
}

static int
tell_quarantined(
    const struct list_view *v, const struct sched_row *row, struct buf *out)
{
	if (row->until_mono == 0)
		return buf_add_str(out, "quarantined");
	return add_span(
	    "quarantined, tried again in ", row->until_mono, v->now_mono, out);
}

/* States of which there is something to say. */
static int (*const tellers[])(
    const struct list_view *v, const struct sched_row *row, struct buf *out) = {
	[QUEUE_STATE_CLOSING] = tell_closing,
	[QUEUE_STATE_DISABLED] = tell_disabled,
	[QUEUE_STATE_QUARANTINED] = tell_quarantined,
};

static int
tell_state(
    const struct list_view *v, const struct sched_row *row, struct buf *out)
{
	int r;

	if (row->state >= ARRAY_LEN(tellers) || tellers[row->state] == NULL)
		return 0;
	r = buf_printf(out, "queue %" PRIu32 ": ", row->queue);
	if (r == 0)
		r = tellers[row->state](v, row, out);
	if (r == 0 && (row->flags & SCHED_ROW_HAND) != 0 &&
	    row->state != QUEUE_STATE_DISABLED)
		r = buf_add_str(out, " (and disabled by hand)");
	if (r == 0)
		r = add_reason(row->reason, out);
	return r < 0 ? r : buf_add_char(out, '\n');
}

static int
tell_load(
    const struct list_view *v, const struct sched_row *row, struct buf *out)
{
	int r;

	if (row->state == QUEUE_STATE_NONE || !is_manual(v, row))
		return 0;
	r = buf_printf(out, "queue %" PRIu32 ": load %" PRIu32 " %% by hand",
	    row->queue, row->load_pct);
	if (r == 0)
		r = add_until(row->manual_until_mono, v->now_mono, out);
	return r < 0 ? r : buf_add_char(out, '\n');
}

static int
tell_count(const struct list_view *v, struct buf *out)
{
	const struct sched_page *p = v->page;
	int r;

	if (p->held_count == 0 ||
	    (p->held_until_mono != 0 && p->held_until_mono <= v->now_mono))
		return 0;
	r = buf_printf(out, "count: %" PRIu32 " by hand", p->held_count);
	if (r == 0 && p->held_until_mono == 0)
		r = buf_add_str(out, ", until that is reached");
	else if (r == 0)
		r = add_span(" for ", p->held_until_mono, v->now_mono, out);
	return r < 0 ? r : buf_add_char(out, '\n');
}

static int
tell_change(const struct list_view *v, struct buf *out)
{
	int r;

	if (v->page->change_wall == 0)
		return 0;
	r = add_span("last change ", v->now_wall, v->page->change_wall, out);
	if (r == 0)
		r = buf_add_str(out, " ago");
	if (r == 0)
		r = add_reason(v->page->change, out);
	return r < 0 ? r : buf_add_char(out, '\n');
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
	for (i = 0; r == 0 && i < PAGE_QUEUES_MAX; i++) {
		r = tell_state(v, &v->page->rows[i], out);
		if (r == 0)
			r = tell_load(v, &v->page->rows[i], out);
	}
	if (r == 0)
		r = tell_count(v, out);
	if (r == 0 && out->len == start)
		r = buf_add_str(out, "nothing is set by hand\n");
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
	    name, (uint64_t)(left(until, now) / USEC_PER_SEC), out);
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
		r = add_number("held_count", p->held_count, out);
	if (r == 0)
		r = add_left("held_left", p->held_until_mono, v->now_mono, out);
	if (r == 0)
		r = add_number("changes", p->changes, out);
	if (r == 0)
		r = add_left("change_age",
		    p->change_wall == 0 ? 0 : v->now_wall, p->change_wall, out);
	if (r == 0)
		r = add_string("change", p->change, out);
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
		r = add_bool(
		    "by_hand", (row->flags & SCHED_ROW_HAND) != 0, out);
	if (r == 0)
		r = add_bool(
		    "giving", (row->flags & SCHED_ROW_GIVING) != 0, out);
	if (r == 0)
		r = add_left("left", row->until_mono, v->now_mono, out);
	if (r == 0)
		r = add_string("reason", row->reason, out);
	if (r == 0)
		r = add_number("load", row->load_pct, out);
	if (r == 0)
		r = add_bool("load_by_hand", is_manual(v, row), out);
	if (r == 0)
		r = add_left("load_left",
		    is_manual(v, row) ? row->manual_until_mono : 0, v->now_mono,
		    out);
	if (r == 0)
		r = add_number("restarts", row->restarts, out);
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
