#include "queue-send/operators/operators_door.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "log/log.h"
#include "queue-send/backlog/backlog.h"
#include "queue-send/rules/rules.h"
#include "queue-send/schedule/schedule.h"

#define SELECTION_MAX 400 /* in the log */

/* ---- the log ---- */

/* "3 messages (1 when its delivery has ended), 2 not, 4 without an answer". */
static int
print_counts(const struct operator* o, struct buf *out)
{
	int r = buf_printf(
	    out, "%" PRIu64 " message%s", o->done, text_plural(o->done));

	if (r == 0 && o->later > 0)
		r = buf_printf(out,
		    " (%" PRIu64 " when its delivery has ended)", o->later);
	if (r == 0 && o->refused + o->again > 0)
		r = buf_printf(out, ", %" PRIu64 " not", o->refused + o->again);
	if (r == 0 && o->nreplies > 0)
		r = buf_printf(
		    out, ", %" PRIu32 " without an answer", o->nreplies);
	return r;
}

static void
say_acts(struct operator* o, bool interrupted)
{
	const char *words = o->words == NULL ? "" : o->words;
	struct buf text = { 0 };

	if (!o->answered && o->nreplies == 0)
		return;
	if (print_counts(o, &text) == 0)
		log_info("operator uid=%u: %s %s (%s%s%s)", o->uid,
		    act_name(o->act), buf_str(&text), words,
		    interrupted && words[0] != '\0' ? ", " : "",
		    interrupted ? "interrupted" : "");
	buf_done(&text);
	o->done = o->refused = o->again = o->later = 0;
	o->answered = false;
}

void operators_free(struct operator* o)
{
	if (o->gone)
		TAILQ_REMOVE(&o->send->operators->gone, o, link);
	say_acts(o, true);
	spread_end(o->send, &o->spread);
	free(o->words);
	free(o);
}

/* ---- answers ---- */

static void
send_answer(struct operator* o, const struct act_reply *reply)
{
	const struct msg msg = { .type = MSG_ACTED,
		.u.ACTED = { reply->serial, reply->error, reply->running } };

	o->answered = true;
	if (reply->error == 0 && reply->messages == 1)
		o->later += reply->running > 1;
	if (reply->error == 0)
		o->done += reply->messages;
	else if (reply->error == -EAGAIN)
		o->again += reply->messages;
	else
		o->refused += reply->messages;
	/* A peer that does not read waits in vain: `closed' comes. */
	if (!o->gone)
		(void)wire_send(o->wire, &msg, -1);
}

/* In the order of the acts, whichever ends first. */
static void send_answers(struct operator* o)
{
	struct act_reply *reply;

	for (; o->nreplies > 0; o->first++, o->nreplies--) {
		reply = &o->replies[o->first % ACTS_AT_ONCE];
		if (!reply->is_known)
			return;
		send_answer(o, reply);
	}
}

/* The slot of an act, which has its answer later. */
static uint32_t
promise(struct operator* o, uint64_t serial)
{
	const uint32_t slot = o->first + o->nreplies++;

	/* A serial above 1 repeats an act that was answered with -EAGAIN: the
	 * message is counted by its last answer alone. */
	if (serial > 1 && o->again > 0)
		o->again--;
	ASSERT(o->nreplies <= ACTS_AT_ONCE);
	o->replies[slot % ACTS_AT_ONCE] =
	    (struct act_reply){ .serial = serial, .messages = 1 };
	return slot;
}

static void
keep_promise(struct operator* o, uint32_t slot, int error, uint32_t running)
{
	struct act_reply *reply = &o->replies[slot % ACTS_AT_ONCE];

	reply->error = error;
	reply->running = running;
	reply->is_known = true;
	send_answers(o);
}

static void
answer(struct operator* o, uint64_t serial, int error, uint32_t running)
{
	keep_promise(o, promise(o, serial), error, running);
}

/* A message that is to be tried now is not to wait for a destination that was
 * dead. */
static void open_destinations(struct operator* o)
{
	struct send *s = o->send;

	if (o->opened)
		return;
	o->opened = true;
	sched_flush(s->sched, s->now);
	share_flush(s);
}

static void
answer_act(
    struct send *s, const struct act_asker *by, const struct act_answer *a)
{
	struct operator* o = operators_find(s, by->operator);

	if (o == NULL)
		o = operators_find_gone(s, by->operator);
	if (o == NULL) {
		spread_end(s,
		    &(struct spread){
			.moved = by->act == ACT_SPREAD && a->error == 0 });
		return;
	}
	if (a->error == 0 && by->act == ACT_RETRY)
		open_destinations(o);
	o->spread.moved += by->act == ACT_SPREAD && a->error == 0;
	o->heard = s->now;
	keep_promise(o, by->slot, a->error, a->running);
	if (!o->gone)
		operators_go_on(o);
	else if (o->nreplies == 0)
		operators_free(o);
}

/* ---- acts ---- */

static void
order(struct operator* o, uint64_t serial, struct act_order *a)
{
	a->spread = &o->spread;
	a->by = (struct act_asker){ answer_act, o->number, promise(o, serial),
		a->what, o->uid };
	acts_do(o->send, a);
}

/* One frame, and all that is deferred. */
static void
retry_all(struct operator* o, uint64_t serial)
{
	const uint64_t count = o->send->due.count;
	const uint32_t slot = promise(o, serial);

	o->replies[slot % ACTS_AT_ONCE].messages = count;
	acts_flush(o->send);
	keep_promise(o, slot, 0, (uint32_t)count);
}

static void
take_act(struct operator* o, const struct msg_ACT *f, usec_t due_wall)
{
	const struct queue_id id = { f->arrival_wall, f->nonce, f->queue,
		f->inode };
	struct act_order a = {
		.what = (enum spool_act)f->act, .id = &id, .due_wall = due_wall
	};

	o->act = f->act;
	if (f->act == ACT_RETRY && f->inode == 0)
		retry_all(o, f->serial);
	else if (f->act < ACT_HOLD || f->act >= NACTS || f->act == ACT_SPREAD ||
	    f->inode == 0)
		answer(o, f->serial, -EINVAL, 0);
	else
		order(o, f->serial, &a);
}

static void
hold(struct operator* o, uint64_t serial, const struct queue_id *id,
    const struct hold_note *note)
{
	struct act_order a = { .what = ACT_HOLD, .id = id, .note = note };

	o->act = ACT_HOLD;
	if (id->inode == 0)
		answer(o, serial, -EINVAL, 0);
	else
		order(o, serial, &a);
}

static void
take_hold(struct operator* o, const struct msg_ACT *f, usec_t until_wall,
    const char *reason, size_t len)
{
	const struct queue_id id = { f->arrival_wall, f->nonce, f->queue,
		until_wall < 0 ? 0 : f->inode };
	struct hold_note note = { .uid = o->uid,
		.since_wall = o->send->now_wall,
		.until_wall = until_wall };

	snprintf(note.reason, sizeof(note.reason), "%.*s", (int)len, reason);
	hold(o, f->serial, &id, &note);
}

void
operators_hold_for(struct operator* o, const struct msg *msg)
{
	const struct msg_ACT_HOLD_FOR *f = &msg->u.ACT_HOLD_FOR;
	const struct msg_ACT act = { f->serial, ACT_HOLD, f->arrival_wall,
		f->nonce, f->queue, f->inode };

	take_hold(o, &act, f->until_wall, f->reason.data, f->reason.len);
}

/* The reason and the end are those of the rule. */
void
operators_hold_rule(struct operator* o, const struct msg *msg)
{
	const struct msg_ACT_HOLD_RULE *f = &msg->u.ACT_HOLD_RULE;
	const struct queue_id id = { f->arrival_wall, f->nonce, f->queue,
		f->inode };
	struct hold_note note;
	int r = rules_note(o->send, f->rule, &note);

	o->act = ACT_HOLD;
	if (r < 0)
		answer(o, f->serial, r, 0);
	else
		hold(o, f->serial, &id, &note);
}

void
operators_act_at(struct operator* o, const struct msg *msg)
{
	const struct msg_ACT_AT *f = &msg->u.ACT_AT;
	const struct msg_ACT act = { f->serial, f->act, f->arrival_wall,
		f->nonce, f->queue, f->inode };

	if ((f->act != ACT_RELEASE && f->act != ACT_RELEASE_ALL &&
		f->act != ACT_RETRY) ||
	    f->inode == 0 || f->due_wall <= 0)
		answer(o, f->serial, -EINVAL, 0);
	else
		take_act(o, &act, f->due_wall);
}

void
operators_act(struct operator* o, const struct msg *msg)
{
	if (msg->u.ACT.act == ACT_HOLD)
		take_hold(o, &msg->u.ACT, 0, "", 0);
	else
		take_act(o, &msg->u.ACT, 0);
}

void
operators_act_to(struct operator* o, const struct msg *msg)
{
	const struct msg_ACT_TO *f = &msg->u.ACT_TO;
	const struct queue_id id = { f->arrival_wall, f->nonce, f->queue,
		f->inode };
	struct act_order a = { .what = ACT_SPREAD, .id = &id, .to = f->to };

	o->act = ACT_SPREAD;
	if (f->inode == 0)
		answer(o, f->serial, -EINVAL, 0);
	else
		order(o, f->serial, &a);
}

/* No act on a message, and nothing for the log. */
void
operators_came(struct operator* o, const struct msg *msg)
{
	deferred_rescan(o->send);
	(void)wire_send(o->wire,
	    &(struct msg){ .type = MSG_ACTED,
		.u.ACTED = { .serial = msg->u.ACT_CAME.serial } },
	    -1);
}

/* The words come before the acts, so that the log has them whatever happens to
 * the command, and behind the last one. */
void
operators_act_end(struct operator* o, const struct msg *msg)
{
	const struct msg_ACT_END *f = &msg->u.ACT_END;

	o->act = f->act;
	free(o->words);
	o->words = strndup(f->selection.data,
	    f->selection.len < SELECTION_MAX ? f->selection.len
					     : SELECTION_MAX);
	if (o->nreplies == 0)
		say_acts(o, false);
	spread_end(o->send, &o->spread);
}
