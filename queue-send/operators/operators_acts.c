#include "queue-send/operators/own.h"

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
	TAILQ_REMOVE(&o->send->operators->list, o, link);
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

/* An answer that counts no message. */
static void
reply(struct operator* o, uint64_t serial, int error, uint32_t number)
{
	const struct msg msg = { .type = MSG_ACTED,
		.u.ACTED = { serial, error, number } };

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
	send_wake(s);
}

static void
answer_act(
    struct send *s, const struct act_asker *by, int error, uint32_t running)
{
	const bool moved = by->act == ACT_SPREAD && error == 0;
	struct operator* o = operators_find(s, by->operator);

	if (o == NULL) {
		spread_end(s, &(struct spread){ .moved = moved });
		return;
	}
	if (error == 0 && by->act == ACT_RETRY)
		open_destinations(o);
	o->spread.moved += moved;
	o->heard = s->now;
	keep_promise(o, by->slot, error, running);
	if (!o->gone)
		operators_go_on(o);
	else if (o->nreplies == 0)
		operators_free(o);
}

/* ---- acts ---- */

/* Frames of several types name a message by these fields. */
#define ID_OF(f)            \
	((struct queue_id){ \
	    (f)->arrival_wall, (f)->nonce, (f)->queue, (f)->inode })

/* error: of the frame itself, which is refused then. */
static void
order(struct operator* o, uint64_t serial, struct queue_id id,
    struct act_order a, int error)
{
	o->act = a.what;
	if (error == 0 && id.inode == 0)
		error = -EINVAL;
	if (error < 0) {
		answer(o, serial, error, 0);
		return;
	}
	a.id = &id;
	a.spread = &o->spread;
	a.by = (struct act_asker){ answer_act, o->number, promise(o, serial),
		a.what, o->uid };
	acts_do(o->send, &a);
}

/* One frame, and all that is deferred. */
static void
retry_all(struct operator* o, uint64_t serial)
{
	const uint64_t count = o->send->due.count;
	const uint32_t slot = promise(o, serial);

	o->act = ACT_RETRY;
	o->replies[slot % ACTS_AT_ONCE].messages = count;
	deferred_flush(o->send);
	o->opened = false;
	open_destinations(o);
	keep_promise(o, slot, 0, (uint32_t)count);
}

void
operators_act(struct operator* o, const struct msg *msg)
{
	const struct msg_ACT *f = &msg->u.ACT;
	const struct hold_note note = { .uid = o->uid,
		.since_wall = o->send->now_wall };
	const struct act_order a = { .what = (enum spool_act)f->act,
		.note = f->act == ACT_HOLD ? &note : NULL };
	const bool right =
	    f->act >= ACT_HOLD && f->act < NACTS && f->act != ACT_SPREAD;

	if (f->act == ACT_RETRY && f->inode == 0)
		retry_all(o, f->serial);
	else
		order(o, f->serial, ID_OF(f), a, right ? 0 : -EINVAL);
}

void
operators_act_at(struct operator* o, const struct msg *msg)
{
	const struct msg_ACT_AT *f = &msg->u.ACT_AT;
	const struct act_order a = { .what = (enum spool_act)f->act,
		.due_wall = f->due_wall };
	const bool right = f->due_wall > 0 &&
	    (f->act == ACT_RELEASE || f->act == ACT_RELEASE_ALL ||
		f->act == ACT_RETRY);

	order(o, f->serial, ID_OF(f), a, right ? 0 : -EINVAL);
}

void
operators_hold_for(struct operator* o, const struct msg *msg)
{
	const struct msg_ACT_HOLD_FOR *f = &msg->u.ACT_HOLD_FOR;
	struct hold_note note = { .uid = o->uid,
		.since_wall = o->send->now_wall,
		.until_wall = f->until_wall };
	const struct act_order a = { .what = ACT_HOLD, .note = &note };

	snprintf(note.reason, sizeof(note.reason), "%.*s", (int)f->reason.len,
	    f->reason.data);
	order(o, f->serial, ID_OF(f), a, f->until_wall < 0 ? -EINVAL : 0);
}

/* The reason and the end are those of the rule. */
void
operators_hold_rule(struct operator* o, const struct msg *msg)
{
	const struct msg_ACT_HOLD_RULE *f = &msg->u.ACT_HOLD_RULE;
	struct hold_note note;
	const struct act_order a = { .what = ACT_HOLD, .note = &note };

	order(o, f->serial, ID_OF(f), a, rules_note(o->send, f->rule, &note));
}

void
operators_act_to(struct operator* o, const struct msg *msg)
{
	const struct msg_ACT_TO *f = &msg->u.ACT_TO;
	const struct act_order a = { .what = ACT_SPREAD, .to = f->to };

	order(o, f->serial, ID_OF(f), a, 0);
}

/* No act on a message, and nothing for the log. */
void
operators_came(struct operator* o, const struct msg *msg)
{
	deferred_rescan(o->send);
	reply(o, msg->u.ACT_CAME.serial, 0, 0);
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

/* ---- rules of hold ---- */

/* The connection may have ended meanwhile. */
static void
answer_rules(
    struct send *s, const struct rules_asker *by, int error, uint32_t number)
{
	struct operator* o = operators_find(s, by->operator);

	if (o != NULL && !o->gone)
		reply(o, by->serial, error, number);
}

static struct rules_asker
asker_of(const struct operator* o, uint64_t serial)
{
	return (struct rules_asker){ answer_rules, o->number, serial, o->uid };
}

void
operators_rule_add(struct operator* o, const struct msg *msg)
{
	const struct msg_RULE_ADD *f = &msg->u.RULE_ADD;
	const struct rules_asker by = asker_of(o, f->serial);

	rules_add(o->send, &by, f);
}

void
operators_rule_drop(struct operator* o, const struct msg *msg)
{
	const struct msg_RULE_DROP *f = &msg->u.RULE_DROP;
	const struct rules_asker by = asker_of(o, f->serial);

	rules_drop(o->send, &by, f->rule);
}

void
operators_rules_read(struct operator* o, const struct msg *msg)
{
	const struct rules_asker by = asker_of(o, msg->u.RULES_READ.serial);

	rules_read(o->send, &by);
}
