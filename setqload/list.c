#include "setqload/setqload.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "ipc/page_text.h"

/* ---- for people ---- */

/* Ends the line that a function of ipc/page_text.h has added behind `start`, if
 * any. */
static int
end_line(int r, size_t start, struct buf *out)
{
	return r < 0 || out->len == start ? r : buf_add_char(out, '\n');
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
	char before[24];
	int r;

	if (row->state == QUEUE_STATE_NONE)
		return 0;
	snprintf(before, sizeof(before), "queue %" PRIu32 ": ", row->queue);
	r = tell_state(v, row, before, out);
	if (r < 0 || !page_is_load_manual(row, v->now_mono))
		return r;
	r = buf_add_str(out, before);
	if (r == 0)
		r = page_text_load(row, v->now_mono, out);
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
	size_t start, queues, i;
	int r = tell_summary(v->page, out);

	queues = out->len;
	for (i = 0; r == 0 && i < PAGE_QUEUES_MAX; i++)
		r = tell_queue(v, &v->page->rows[i], out);
	start = out->len;
	if (r == 0)
		r = end_line(
		    page_text_count(v->page, v->now_mono, out), start, out);
	if (r == 0 && out->len == queues)
		r = buf_add_str(out, "nothing is set by hand\n");
	start = out->len;
	if (r == 0)
		r = end_line(page_text_conf(v->page, out), start, out);
	start = out->len;
	return r < 0
	    ? r
	    : end_line(page_text_change(v->page, v->now_wall, out), start, out);
}

/* ---- for programs ---- */

/* A member of an object. */
struct member {
	const char *name;
	enum {
		MEMBER_NUMBER,
		MEMBER_BOOL,
		MEMBER_LEFT, /* seconds left; 0 is printed as null */
	} kind;
	uint64_t value;
	const char *text; /* NULL: none */
};
#define NUMBER(name, value)                      \
	{                                        \
		name, MEMBER_NUMBER, value, NULL \
	}
#define BOOL(name, value)                      \
	{                                      \
		name, MEMBER_BOOL, value, NULL \
	}
#define TEXT(name, text)                     \
	{                                    \
		name, MEMBER_NUMBER, 0, text \
	}
#define LEFT(name, until, now)                            \
	{                                                 \
		name, MEMBER_LEFT, left(until, now), NULL \
	}

/* Seconds and one more; 0: there is no end. */
static uint64_t
left(usec_t until, usec_t now)
{
	return until == 0
	    ? 0
	    : (uint64_t)(page_time_left(until, now) / USEC_PER_SEC) + 1;
}

/* Cleaned text has no control characters: two are left to be escaped. */
static int
add_string(const char *value, struct buf *out)
{
	struct buf clean = { 0 };
	int r = text_clean(&clean, value, strlen(value), SIZE_MAX);

	if (r == 0)
		r = buf_add_quoted(out, buf_str(&clean), clean.len);
	buf_done(&clean);
	return r;
}

static int
add_value(const struct member *m, struct buf *out)
{
	if (m->text != NULL)
		return add_string(m->text, out);
	if (m->kind == MEMBER_BOOL)
		return buf_add_str(out, m->value != 0 ? "true" : "false");
	if (m->kind == MEMBER_LEFT && m->value == 0)
		return buf_add_str(out, "null");
	return buf_printf(out, "%" PRIu64, m->value - (m->kind == MEMBER_LEFT));
}

static int
add_object(const struct member *members, size_t n, struct buf *out)
{
	size_t i;
	int r = 0;

	for (i = 0; r == 0 && i < n; i++) {
		r = buf_printf(
		    out, "%s\"%s\":", i == 0 ? "{" : ",", members[i].name);
		if (r == 0)
			r = add_value(&members[i], out);
	}
	return r < 0 ? r : buf_add_str(out, "}\n");
}

static int
print_instance(const struct list_view *v, struct buf *out)
{
	const struct sched_page *p = v->page;
	const struct member members[] = {
		NUMBER("open", p->qcount),
		NUMBER("count_min", p->queue_count),
		NUMBER("count_max", p->queue_max),
		BOOL("dynamic", p->dynamic != 0),
		NUMBER("mean_load", p->mean_load_pct),
		NUMBER("threshold", p->threshold_pct),
		NUMBER("count_by_hand", p->held_count),
		LEFT("count_left", p->held_until_mono, v->now_mono),
		NUMBER("changes", p->changes),
		LEFT("change_age", p->change_wall == 0 ? 0 : v->now_wall,
		    p->change_wall),
		TEXT("change", p->change),
		TEXT("conf_error", p->conf_error),
	};

	return add_object(members, ARRAY_LEN(members), out);
}

static int
print_queue(
    const struct list_view *v, const struct sched_row *row, struct buf *out)
{
	const bool manual = page_is_load_manual(row, v->now_mono);
	const uint32_t by_hand = SCHED_ROW_OVERRIDE | SCHED_ROW_ALSO_HAND;
	const struct member members[] = {
		NUMBER("queue", row->queue),
		TEXT("state", queue_state_name(row->state)),
		BOOL("by_hand", (row->flags & by_hand) != 0),
		BOOL("giving", (row->flags & SCHED_ROW_EVACUATING) != 0),
		LEFT("left", row->until_mono, v->now_mono),
		TEXT("reason", row->reason),
		NUMBER("load", row->load_pct),
		BOOL("load_by_hand", manual),
		LEFT("load_left", manual ? row->manual_until_mono : 0,
		    v->now_mono),
		NUMBER("restarts", row->restarts),
		BOOL("silent", (row->flags & SCHED_ROW_SILENT) != 0),
		BOOL("late", (row->flags & SCHED_ROW_LATE) != 0),
		BOOL("full", (row->flags & SCHED_ROW_FULL) != 0),
		BOOL("read_only", (row->flags & SCHED_ROW_READ_ONLY) != 0),
		BOOL("fault",
		    row->state == QUEUE_STATE_DISABLED &&
			(row->flags & SCHED_ROW_OVERRIDE) == 0),
	};

	return add_object(members, ARRAY_LEN(members), out);
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
