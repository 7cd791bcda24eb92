#include "ipc/page_text.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/num.h"
#include "base/text.h"
#include "ipc/shm.h"

usec_t
page_time_left(usec_t until, usec_t now)
{
	usec_t d;

	if (__builtin_sub_overflow(until, now, &d))
		return until < 0 ? 0 : USEC_NEVER;
	return d < 0 ? 0 : d;
}

bool
page_is_load_manual(const struct sched_row *row, usec_t now_mono)
{
	return (row->flags & SCHED_ROW_MANUAL) != 0 &&
	    row->manual_until_mono > now_mono;
}

static int
add_span(const char *before, usec_t until, usec_t now, struct buf *out)
{
	int r = buf_add_str(out, before);

	return r < 0 ? r : num_add_span(out, page_time_left(until, now));
}

/* Adds text, after ": " unless it is the first. */
static int
add_reason(const char *reason, size_t start, struct buf *out)
{
	int r = 0;

	if (reason[0] == '\0')
		return 0;
	if (out->len > start)
		r = buf_add_str(out, ": ");
	return r < 0 ? r : text_clean(out, reason, strlen(reason), SIZE_MAX);
}

const char *
page_absent_text(char text[PAGE_ABSENT_SIZE])
{
	char room[SHM_TEXT_SIZE];

	snprintf(text, PAGE_ABSENT_SIZE,
	    "no supervisor of this instance is running: start qscheduler");
	if (shm_judge_room(room) < 0)
		snprintf(text, PAGE_ABSENT_SIZE,
		    "no supervisor of this instance is running, or it cannot "
		    "publish: %s; a minute after files are removed there it "
		    "does",
		    room);
	return text;
}

const char *
page_state_text(const struct sched_row *row)
{
	if (row->state == QUEUE_STATE_OPEN &&
	    (row->flags & SCHED_ROW_FULL) != 0)
		return "full";
	if (row->state == QUEUE_STATE_OPEN &&
	    (row->flags & SCHED_ROW_READ_ONLY) != 0)
		return "read-only";
	return queue_state_name(row->state);
}

/* ---- a disk that is late ---- */

static const struct {
	const char *kind, *text;
} works[] = {
	[DISK_WORK_NONE] = { "queue-send does not ask the disk",
	    "queue-send has not asked the disk for" },
	[DISK_WORK_PROBE] = { "a probe waits",
	    "a probe has waited for the disk for" },
	[DISK_WORK_MOVE] = { "a move waits",
	    "a move has waited for the disk for" },
	[DISK_WORK_REMOVAL] = { "a removal waits",
	    "a removal has waited for the disk for" },
	[DISK_WORK_MARK] = { "a mark waits",
	    "a mark has waited for the disk for" },
	[DISK_WORK_READ] = { "a read waits",
	    "a read has waited for the disk for" },
	[DISK_WORK_ACT] = { "an act of an operator waits",
	    "an act of an operator has waited for the disk for" },
	[DISK_WORK_SYNC] = { "a sync waits",
	    "a sync has waited for the disk for" },
};

const char *
page_text_kind(uint32_t work)
{
	return works[work < ARRAY_LEN(works) ? work : DISK_WORK_PROBE].kind;
}

const char *
page_text_work(uint32_t work)
{
	return works[work < ARRAY_LEN(works) ? work : DISK_WORK_PROBE].text;
}

/* ---- a queue that is not open, or not well ---- */

static int
tell_open(const struct sched_row *row, usec_t now UNUSED, struct buf *out)
{
	if ((row->flags & SCHED_ROW_SILENT) != 0)
		return buf_add_str(out, "a process hangs");
	if ((row->flags & SCHED_ROW_NO_MAIL) != 0)
		return buf_add_str(out, "no new mail");
	return 0;
}

static int
tell_closing(const struct sched_row *row, usec_t now, struct buf *out)
{
	if ((row->flags & SCHED_ROW_EVACUATING) != 0)
		return buf_add_str(out, "hands its mail over");
	if (row->until_mono == 0)
		return 0;
	return add_span("hands its mail over in ", row->until_mono, now, out);
}

static int
tell_disabled(const struct sched_row *row, usec_t now, struct buf *out)
{
	if ((row->flags & SCHED_ROW_OVERRIDE) == 0)
		return buf_add_str(out,
		    (row->flags & SCHED_ROW_ALSO_HAND) != 0
			? "for a fault and by hand"
			: "for a fault");
	if (row->until_mono == 0)
		return buf_add_str(out, "by hand for ever");
	return add_span("by hand for ", row->until_mono, now, out);
}

static int
tell_quarantined(const struct sched_row *row, usec_t now, struct buf *out)
{
	if (row->until_mono == 0)
		return 0;
	return add_span("tried again in ", row->until_mono, now, out);
}

static int (*const tellers[])(
    const struct sched_row *row, usec_t now, struct buf *out) = {
	[QUEUE_STATE_OPEN] = tell_open,
	[QUEUE_STATE_CLOSING] = tell_closing,
	[QUEUE_STATE_DISABLED] = tell_disabled,
	[QUEUE_STATE_QUARANTINED] = tell_quarantined,
};

int
page_text_row(const struct sched_row *row, usec_t now_mono, struct buf *out)
{
	const size_t start = out->len;
	int r;

	if (row->state >= ARRAY_LEN(tellers) || tellers[row->state] == NULL)
		return 0;
	r = tellers[row->state](row, now_mono, out);
	if (r < 0 ||
	    (row->state == QUEUE_STATE_OPEN && out->len == start &&
		(row->flags & SCHED_ROW_LATE) == 0))
		return r;
	return add_reason(row->reason, start, out);
}

/* ---- the others ---- */

int
page_text_load(const struct sched_row *row, usec_t now_mono, struct buf *out)
{
	int r;

	if (!page_is_load_manual(row, now_mono))
		return 0;
	r = buf_printf(out, "load %" PRIu32 " %% by hand", row->load_pct);
	if (r < 0)
		return r;
	return add_span(" for ", row->manual_until_mono, now_mono, out);
}

int
page_text_count(const struct sched_page *p, usec_t now_mono, struct buf *out)
{
	const usec_t until = p->held_until_mono;
	int r;

	if (p->held_count == 0 || (until != 0 && until <= now_mono))
		return 0;
	r = buf_printf(out, "%" PRIu32 " queues wanted by hand", p->held_count);
	if (r < 0)
		return r;
	return until == 0 ? 0 : add_span(" for ", until, now_mono, out);
}

int
page_text_conf(const struct sched_page *p, struct buf *out)
{
	int r;

	if (p->conf_error[0] == '\0')
		return 0;
	r = buf_add_str(out, "old configuration in force: ");
	return r < 0 ? r
		     : text_clean(out, p->conf_error,
			   strnlen(p->conf_error, sizeof(p->conf_error)),
			   SCHED_CONF_ERROR_SIZE);
}

int
page_text_change(const struct sched_page *p, usec_t now_wall, struct buf *out)
{
	const size_t start = out->len;
	int r;

	if (p->change_wall == 0)
		return 0;
	r = add_span("last change ", now_wall, p->change_wall, out);
	if (r == 0)
		r = buf_add_str(out, " ago");
	return r < 0 ? r : add_reason(p->change, start, out);
}
