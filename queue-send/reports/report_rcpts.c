#include "queue-send/reports/report_task.h"

#include <errno.h>
#include <stdlib.h>

#include "spool/reason.h"

#define NOT_MEANT   UINT32_MAX
#define TOLD        (UINT32_MAX - 1)
#define LOST_DONE   "the answer was lost with its file"
#define DAMAGED_DSN "4.3.0"
#define DAMAGED_TEXT                                                       \
	"the message is damaged on the disk of the mail system: it waits " \
	"for the administrator"

/* The recipients that a report of each kind names, and their reasons. */
static const struct notice {
	enum rcpt_mark mark;
	enum report_action action;
	enum dsn_notify wish; /* of the sender */
	enum spool_dir reasons;
	bool untold;            /* only reasons behind the last report */
	bool successes;         /* deliveries too, where the sender asked */
	const char *dsn, *text; /* of a recipient without a reason */
} notices[REPORT_NKINDS] = {
	[REPORT_FAILURE] = { RCPT_FAILED, REPORT_FAILED, DSN_FAILURE,
	    SPOOL_BOUNCE, true, true, "", "the reason was lost with its file" },
	[REPORT_DOUBLE] = { RCPT_FAILED, REPORT_FAILED, DSN_FAILURE,
	    SPOOL_BOUNCE, true, false, "",
	    "the reason was lost with its file" },
	[REPORT_DELAY] = { RCPT_PENDING, REPORT_DELAYED, DSN_DELAY, SPOOL_DEFER,
	    false, false, "4.0.0", "waits for its turn" },
};

static const enum report_action actions[] = {
	[DONE_DELIVERED] = REPORT_DELIVERED,
	[DONE_RELAYED] = REPORT_RELAYED,
	[DONE_EXPANDED] = REPORT_EXPANDED,
};

/* ---- recipients ---- */

static bool
is_meant(const struct report_rcpts *w, const struct notice *n,
    const struct queue_rcpt *rcpt)
{
	if (n->successes && rcpt->mark == RCPT_DONE)
		return rcpt->done != DONE_PASSED &&
		    dsn_wants(rcpt->dsn.notify, DSN_SUCCESS);
	if (rcpt->mark != n->mark)
		return false;
	return w->asked_only ? (rcpt->dsn.notify & n->wish) != 0
			     : dsn_wants(rcpt->dsn.notify, n->wish);
}

static int
find_mark(struct report_rcpts *w, const struct queue_rcpt *rcpt)
{
	const struct notice *n = &notices[w->kind];
	struct report_place *place = &w->places[rcpt->index];

	*place = (struct report_place){
		.offset = rcpt->offset,
		.line = is_meant(w, n, rcpt) ? 0 : NOT_MEANT,
		.done = rcpt->mark == RCPT_DONE,
	};
	w->unwanted += rcpt->mark == RCPT_FAILED && place->line == NOT_MEANT;
	w->has_done |= place->done && place->line == 0;
	return 0;
}

/* Each recipient of the message, while visit() returns 0. */
static int
walk_rcpts(struct report_rcpts *w,
    int (*visit)(struct report_rcpts *w, const struct queue_rcpt *rcpt))
{
	struct queue_rcpt_cursor *cursor = malloc(sizeof(*cursor));
	struct queue_rcpt rcpt;
	int r = cursor == NULL ? -ENOMEM : 0;

	if (r == 0)
		queue_rcpt_begin(cursor, w->file);
	while (r == 0 && (r = queue_rcpt_next(cursor, w->fd, &rcpt)) > 0)
		r = visit(w, &rcpt);
	free(cursor);
	return r;
}

static int
find_marks(struct report_rcpts *w)
{
	free(w->places);
	w->places = calloc(w->file->rcpt_count, sizeof(*w->places));
	return w->places == NULL ? -ENOMEM : walk_rcpts(w, find_mark);
}

/* ---- reasons ---- */

static void
count(struct report_rcpts *w, const struct report_place *place)
{
	w->count++;
	w->done += place->done;
}

static int
note_line(const struct reason *reason, void *arg)
{
	struct report_rcpts *w = arg;
	struct report_place *place;

	w->line++;
	if (reason->index >= w->file->rcpt_count)
		return 0;
	place = &w->places[reason->index];
	if (place->line == NOT_MEANT)
		return 0;
	if (place->line == 0)
		count(w, place);
	place->line = w->line;
	return 0;
}

/* A report told of this recipient, or of all. A reason behind that line is
 * untold. Lines for all are those of `requeue --failed' and of a version
 * without VERP. */
static void
note_told(uint32_t index, void *arg)
{
	struct report_rcpts *w = arg;
	const uint32_t count = w->file->rcpt_count;
	uint32_t i = index == REASON_ALL ? 0 : index;

	for (; i < count && (i == index || index == REASON_ALL); i++)
		if (w->places[i].line != NOT_MEANT)
			w->places[i].line = TOLD;
}

/* Reasons of attempts say no more why a damaged message waits. */
static bool
is_of_damage(const struct report_rcpts *w)
{
	return w->damaged && w->kind == REPORT_DELAY;
}

static int
read_reasons(
    struct report_rcpts *w, int (*each)(const struct reason *reason, void *arg))
{
	const struct notice *n = &notices[w->kind];
	int r;

	w->line = 0;
	if (is_of_damage(w))
		return 0;
	if (w->alone)
		r = reason_read_told(w->sp, w->inode, each,
		    each == note_line ? note_told : NULL, w);
	else
		r = n->untold
		    ? reason_read_after(w->sp, w->inode, w->reports, each, w)
		    : reason_read(w->sp, n->reasons, w->inode, each, w);
	return r == -ENOENT ? 0 : r;
}

static int
note_known(const struct reason *reason, void *arg)
{
	struct report_rcpts *w = arg;

	if (reason->index < w->file->rcpt_count)
		w->places[reason->index].known = true;
	return 0;
}

static int
note_lost(const struct report_rcpts *w, uint32_t index, const char *text)
{
	struct reason reason = {
		.index = index, .dsn = "", .relay = "none", .text = text
	};
	struct queue_rcpt rcpt;
	int r = queue_file_rcpt(
	    w->fd, w->file, w->places[index].offset, index, &rcpt);

	reason.address = rcpt.address;
	return r < 0 ? r : reason_add(w->sp, SPOOL_BOUNCE, w->inode, &reason);
}

/* A recipient that has the message, and no line in all of the file, gets one:
 * an expansion marks its recipient before it says so. The line is told of once,
 * as any other, whatever was reported before. */
static int
note_all_lost(struct report_rcpts *w)
{
	const struct report_place *place;
	uint32_t i;
	int r;

	if (!w->has_done)
		return 0;
	r = reason_read(w->sp, SPOOL_BOUNCE, w->inode, note_known, w);
	if (r == -ENOENT)
		r = 0;
	for (i = 0; r == 0 && i < w->file->rcpt_count; i++) {
		place = &w->places[i];
		if (place->done && place->line == 0 && !place->known)
			r = note_lost(w, i, LOST_DONE);
	}
	return r;
}

/* A recipient that failed without a reason gets one, behind all others, before
 * the first report: so each part of the report is a number of reasons. */
static int
note_lost_failures(struct report_rcpts *w)
{
	const struct notice *n = &notices[w->kind];
	uint32_t i;
	int r = 0;

	if (!n->untold || w->reports > 0 || w->alone)
		return 0;
	for (i = 0; r == 0 && i < w->file->rcpt_count; i++) {
		if (w->places[i].line != 0)
			continue;
		r = note_lost(w, i, n->text);
		w->places[i].line = ++w->line;
		count(w, &w->places[i]);
	}
	return r;
}

/* Are recipients without a reason told of? */
static bool
has_lost(const struct report_rcpts *w)
{
	return !notices[w->kind].untold || w->alone;
}

/* Only behind the last line it is known who was told of. */
static void
recount(struct report_rcpts *w)
{
	uint32_t i;

	w->count = w->done = 0;
	for (i = 0; i < w->file->rcpt_count; i++)
		if (w->places[i].line != NOT_MEANT && w->places[i].line != TOLD)
			count(w, &w->places[i]);
}

int
report_rcpts_find(struct report_rcpts *w, enum report_kind kind)
{
	uint32_t i;
	int r;

	w->kind = kind;
	w->count = w->done = w->unwanted = 0;
	w->beside = w->has_done = false;
	w->most = 0;
	r = find_marks(w);
	if (r < 0)
		return r;
	w->beside = true;
	r = reason_count_reports(w->sp, w->inode, &w->reports);
	if (r == 0)
		r = note_all_lost(w);
	if (r == 0)
		r = read_reasons(w, note_line);
	if (r == 0)
		r = note_lost_failures(w);
	for (i = 0; r == 0 && has_lost(w) && i < w->file->rcpt_count; i++)
		if (w->places[i].line == 0)
			count(w, &w->places[i]);
	if (r == 0 && w->alone)
		recount(w);
	return r;
}

/* ---- each of them ---- */

static enum report_action
action_of(const struct report_rcpts *w, const struct queue_rcpt *rcpt)
{
	return rcpt->mark == RCPT_DONE ? actions[rcpt->done]
				       : notices[w->kind].action;
}

static const char *
orcpt_of(const struct queue_rcpt *rcpt)
{
	return rcpt->dsn.orcpt[0] == '\0' ? NULL : rcpt->dsn.orcpt;
}

static int
tell_one(struct report_rcpts *w, const struct report_rcpt *to)
{
	if (w->most > 0 && w->told == w->most)
		return 0;
	w->told++;
	return w->each(w->arg, to);
}

static int
tell_line(const struct reason *reason, void *arg)
{
	struct report_rcpts *w = arg;
	const struct report_place *place;
	struct queue_rcpt rcpt;
	struct report_rcpt to = {
		.dsn = reason->dsn,
		.relay = reason->relay,
		.text = reason->text,
		.when_wall = reason->when_wall,
	};
	int r;

	w->line++;
	if (reason->index >= w->file->rcpt_count)
		return 0;
	place = &w->places[reason->index];
	if (place->line != w->line)
		return 0;
	r = queue_file_rcpt(
	    w->fd, w->file, place->offset, reason->index, &rcpt);
	if (r < 0)
		return r;
	w->index = reason->index;
	w->address = to.address = rcpt.address;
	to.action = action_of(w, &rcpt);
	to.orcpt = orcpt_of(&rcpt);
	r = tell_one(w, &to);
	w->address = NULL;
	return r;
}

/* A recipient without a reason. */
static int
tell_one_lost(struct report_rcpts *w, const struct queue_rcpt *rcpt)
{
	const struct notice *n = &notices[w->kind];
	const struct report_rcpt to = {
		.address = rcpt->address,
		.orcpt = orcpt_of(rcpt),
		.action = n->action,
		.dsn = is_of_damage(w) ? DAMAGED_DSN : n->dsn,
		.relay = "none",
		.text = is_of_damage(w) ? DAMAGED_TEXT : n->text,
	};

	if (w->places[rcpt->index].line != 0)
		return 0;
	w->index = rcpt->index;
	w->address = rcpt->address;
	return tell_one(w, &to);
}

int
report_rcpts_tell(struct report_rcpts *w,
    int (*each)(void *arg, const struct report_rcpt *to), void *arg)
{
	int r;

	w->told = 0;
	w->each = each;
	w->arg = arg;
	r = read_reasons(w, tell_line);
	return r != 0 || !has_lost(w) ? r : walk_rcpts(w, tell_one_lost);
}

void
report_rcpts_done(struct report_rcpts *w)
{
	free(w->places);
	w->places = NULL;
}
