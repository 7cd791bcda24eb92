/* A template for each situation; % and a letter stand for a field. */
#include "qctl/show/explain.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/num.h"
#include "base/text.h"
#include "ipc/situation.h"

#define TEXT_MAX 2100

static const struct {
	enum situation situation;
	const char *text;
} templates[] = {
	/* clang-format off */
	{ SITUATION_READ_ONLY, "Queue: its disk cannot be written (%w), so nothing is delivered or moved. Next: the disk is tried again %U." },
	{ SITUATION_CLOSING, "Queue: it is closing, and its mail goes to other queues. Next: the message goes to one of them, and is delivered there." },
	{ SITUATION_STOPPING, "Queue: it is stopping. Next: the message is delivered after the next start." },
	{ SITUATION_DISABLED, "Queue: it is disabled, and gets no new mail. What it has is delivered." },
	{ SITUATION_NO_TABLE, "Queue: it has no table of destinations, so no delivery starts. Next: the supervisor makes that table." },
	{ SITUATION_NO_TODO, "Queue: its todo-proc does not run, so no message enters the active queue. Next: the supervisor starts todo-proc." },
	{ SITUATION_ACTIVE_FULL, "Queue: its active queue is full, %u of %l messages." },

	{ SITUATION_LATER, "Next: the message is due %U; then all remaining recipients are tried." },
	{ SITUATION_DUE, "Next: the message is due, and waits to be prepared (%u of %l are being prepared)." },
	{ SITUATION_PREPARED, "Next: the message is due, and todo-proc prepares it for the active queue." },
	{ SITUATION_PARKED, "Parked: %s has its share of the active queue, %u of %l messages; parked before this one: %a. Next: the message enters the active queue when the messages before it have left." },
	{ SITUATION_SUSPECT, "Suspect: %n delivery agents died while they had the message. Next: it is delivered while no other suspect is%o." },
	{ SITUATION_OFFERED, "Waiting: for room in the active queue, which has %u of %l messages; before this one: %a. Next: the message is moved to active." },
	{ SITUATION_ENTERING, "Moving: the file goes to the active queue, and the disk has not answered yet. Next: recipients are read and routed." },

	{ SITUATION_READING, "Reading: recipients are being read and routed; %r left. Next: deliveries start." },
	{ SITUATION_UNREAD, "Waiting: %r not read yet, since the memory for recipients is full. Next: they are read when other recipients of the message are done." },
	{ SITUATION_RECORDING, "Unrecorded: the results of %r cannot be written. Next: the queue tries to write them again; no recipient gets the message twice." },
	{ SITUATION_SYNCING, "Leaving: this attempt is over, and its marks are being synced. Next: the message leaves the active queue." },
	{ SITUATION_REPORTING, "Leaving: this attempt is over, and its failures are being reported to the sender. Next: the message leaves the active queue." },
	{ SITUATION_LEAVING, "Leaving: this attempt is over. Next: the message leaves the active queue." },
	{ SITUATION_STUCK, "Stuck: this attempt is over, but the file could not be moved. Next: the queue tries to move it again %U." },
	{ SITUATION_DECIDED, "Decided: the message is to be %w. Next: that is done when its deliveries have ended; %n running." },
	{ SITUATION_MOVING, "Leaving: this attempt is over, and the file moves; the disk has not answered yet. Next: the message leaves the active queue." },

	{ SITUATION_DELIVERING, "Being delivered for %D: %r to %s, by %w%p. Next: the server or program answers, or a time limit ends the attempt." },
	{ SITUATION_NO_AGENT, "Waiting: %r for %s: %w does not run, or takes no more deliveries. Next: the supervisor starts it." },
	{ SITUATION_PAUSED, "Waiting: %r for %s: this queue starts no delivery now. Next: one starts when it can." },
	{ SITUATION_DEAD, "Dead: %s since %S, until %U: %w." },
	{ SITUATION_WINDOW, "Waiting: %r for %s: its window is full, %u of %l deliveries; messages before this one: %a. Next: a delivery starts when one has ended." },
	{ SITUATION_AGENTS, "Waiting: %r for %s: no agent of the transport is free, %u of %l are busy; messages before this one: %a. Next: a delivery starts when one has ended." },
	{ SITUATION_BEHIND, "Waiting: %r for %s: behind the larger message %O, of which %u of %l deliveries have begun. Next: %b" },
	{ SITUATION_NEXT, "Waiting: %r for %s. Next: a delivery starts at once." },
	{ SITUATION_UNGREETED, "Waiting: %r for %s: no server of it has greeted so far, and such destinations have %u deliveries, of %l that they may have. Next: a delivery starts when one of these has ended or was greeted." },

	{ SITUATION_OPEN, "Open: %s takes mail, %u of %l deliveries." },
	{ SITUATION_NO_ROUTE, "No route: %w. Next: the route is looked up again in the next attempt." },
	{ SITUATION_UNPLACED, "Next hop: %s; its destination depends on MX records, and is known when it is tried." },
	{ SITUATION_HOPELESS, "No next hop: %w. Next: it fails in the next attempt, and is reported." },
	/* clang-format on */
};

static const char *const later[] = {
	/* clang-format off */
	[SENTENCE_DEAD_SOME] = "Next: the message is due %U; recipients whose destination is still dead then are deferred again without an attempt, all others are tried.",
	[SENTENCE_DEAD_ALL] = "Next: the message is due %U; if its destination is still dead then, the message is deferred again without an attempt. qctl retry opens the destination and tries the message now.",
	/* clang-format on */
};

static void
add_clean(struct buf *out, const msg_str *text)
{
	if (text->len > 0)
		text_clean(out, text->data, text->len, TEXT_MAX);
}

void
sentence_add_recipients(struct buf *out, uint64_t count)
{
	buf_printf(
	    out, "%" PRIu64 " recipient%s", count, count == 1 ? "" : "s");
}

void
sentence_add_more(struct buf *out, uint32_t count)
{
	if (count == 0)
		return;
	buf_add_str(out, "    And ");
	sentence_add_recipients(out, count);
	buf_add_str(out, " more.\n");
}

void
sentence_add_hold(
    struct buf *out, const struct hold_note *note, const char *who)
{
	buf_printf(out, " (%s", who);
	if (note->rule != 0)
		buf_printf(out, ", rule %" PRIu32, note->rule);
	if (note->reason[0] != '\0')
		buf_add_str(out, ": ");
	out_clean(out, note->reason, TEXT_MAX);
	buf_add_str(out, ")");
}

void
sentence_add_not_asked(struct buf *out, int error)
{
	if (error == -ENOENT || error == -ECONNREFUSED)
		buf_add_str(out,
		    "    Queue: it does not run: this is what lies on disk. "
		    "Next: nothing, until its queue-send is started.\n");
	else
		buf_printf(out,
		    "    Queue: its queue-send could not be asked: %s: this is "
		    "what lies on disk.\n",
		    error == -EPERM || error == -EACCES
			? "this is for root and members of qmail_group"
			: strerror(-error));
}

void
sentence_add_time(struct buf *out, usec_t wall, usec_t now_wall)
{
	if (wall == 0)
		buf_add_str(out, "some time");
	else
		out_time(out, wall, now_wall);
}

/* Hundredths of slots: what overtaking takes, and what there is. */
static void
put_slots(struct buf *out, uint32_t need, uint32_t have)
{
	if (need == 0)
		buf_add_str(out,
		    "this one is too large to overtake, and comes when the "
		    "other has no delivery to start.");
	else
		buf_printf(out,
		    "this one overtakes when deliveries of the other have "
		    "earned it %" PRIu32 ".%02" PRIu32 " slots; %" PRIu32
		    ".%02" PRIu32 " are there.",
		    need / 100, need % 100, have / 100, have % 100);
}

static void
put_field(
    struct buf *out, const struct msg_EXPLAINED *f, usec_t now, char letter)
{
	switch (letter) {
	case 'D':
		num_add_span(
		    out, f->since_wall > now ? 0 : now - f->since_wall);
		return;
	case 'O':
		add_clean(out, &f->other);
		return;
	case 'S':
		sentence_add_time(out, f->since_wall, now);
		return;
	case 'U': /* a time to come; one that has passed is now */
		if (f->until_wall <= now)
			buf_add_str(out, "now");
		else
			sentence_add_time(out, f->until_wall, now);
		return;
	case 'a':
		buf_printf(out, "%" PRIu32 "%s", f->ahead,
		    f->more != 0 ? " or more" : "");
		return;
	case 'b':
		put_slots(out, f->need, f->have);
		return;
	case 'l':
		if (f->limit == UINT32_MAX)
			buf_add_str(out, "any number of");
		else
			buf_printf(out, "%" PRIu32, f->limit);
		return;
	case 'n':
		buf_printf(out, "%" PRIu32, f->need);
		return;
	case 'o':
		if (f->other.len > 0) {
			buf_add_str(out, " (now ");
			add_clean(out, &f->other);
			buf_add_str(out, ")");
		}
		return;
	case 'p':
		if (f->pid != 0)
			buf_printf(out, " (pid %" PRIu32 ")", f->pid);
		return;
	case 'r':
		sentence_add_recipients(out, f->recipients);
		return;
	case 's':
		add_clean(out, &f->site);
		return;
	case 'u':
		buf_printf(out, "%" PRIu32, f->used);
		return;
	case 'w':
		add_clean(out, &f->why);
		return;
	default:
		ASSERT(false);
	}
}

static void
fill(struct buf *out, const struct msg_EXPLAINED *fact, usec_t now,
    const char *text)
{
	buf_add_str(out, "    ");
	while (*text != '\0') {
		const size_t plain = strcspn(text, "%");

		buf_add(out, text, plain);
		text += plain;
		if (*text == '%') {
			put_field(out, fact, now, text[1]);
			text += 2;
		}
	}
	buf_add_str(out, "\n");
}

void
sentence_add(struct buf *out, const struct msg_EXPLAINED *fact, usec_t now_wall)
{
	size_t i;

	for (i = 0; i < ARRAY_LEN(templates); i++)
		if (templates[i].situation == fact->situation)
			fill(out, fact, now_wall, templates[i].text);
}

void
sentence_add_later(struct buf *out, const struct msg_EXPLAINED *fact,
    enum sentence_dead dead, usec_t now_wall)
{
	if (dead == SENTENCE_DEAD_NONE)
		sentence_add(out, fact, now_wall);
	else
		fill(out, fact, now_wall, later[dead]);
}
