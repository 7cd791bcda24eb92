#include "queue-send/operators/operators.h"

#include <errno.h>
#include <event2/event.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/text.h"
#include "log/log.h"
#include "queue-send/backlog/backlog.h"
#include "queue-send/operators/explain.h"
#include "queue-send/operators/operators_door.h"
#include "queue-send/operators/rules.h"
#include "queue-send/schedule/schedule.h"

#define SELECTION_MAX  400 /* in the log */
/* For one connection, before the next one in line comes. */
#define FRAMES_AT_ONCE 16
#define TIME_AT_ONCE   (USEC_PER_MSEC / 4)

/* ---- the log ---- */

static void
say_acts(struct operator* o, const char *selection, size_t len)
{
	struct buf text = { 0 };

	if (o->done + o->refused == 0)
		return;
	if (buf_printf(&text, "operator uid=%u: %s %llu message%s", o->uid,
		act_name(o->act), (unsigned long long)o->done,
		text_plural(o->done)) == 0 &&
	    (o->refused == 0 ||
		buf_printf(
		    &text, ", %llu not", (unsigned long long)o->refused) == 0))
		log_info("%s (%.*s)", buf_str(&text),
		    (int)(len < SELECTION_MAX ? len : SELECTION_MAX),
		    selection);
	buf_done(&text);
	o->done = o->refused = 0;
}

/* ---- peers ---- */

static void join_line(struct operator* o)
{
	o->waits = true;
	TAILQ_INSERT_TAIL(&o->send->operators->line, o, in_line);
}

static void leave_line(struct operator* o)
{
	if (o->waits)
		TAILQ_REMOVE(&o->send->operators->line, o, in_line);
	o->waits = false;
}

static void drop(struct operator* o)
{
	struct operators *all = o->send->operators;

	say_acts(o, "interrupted", strlen("interrupted"));
	spread_end(o->send, &o->spread);
	leave_line(o);
	wire_free(&o->wire);
	TAILQ_REMOVE(&all->list, o, link);
	all->count--;
	all->askers -= o->may_act ? 0 : 1;
	free(o);
}

static void
answer(struct operator* o, uint64_t serial, int error, uint32_t running)
{
	const struct msg msg = { .type = MSG_ACTED,
		.u.ACTED = { serial, error, running } };

	if (error == 0)
		o->done++;
	else
		o->refused++;
	/* A peer that does not read waits in vain: `closed' comes. */
	(void)wire_send(o->wire, &msg, -1);
}

static void
take_act(struct operator* o, const struct msg_ACT *f, usec_t due_wall)
{
	const struct queue_id id = { f->arrival_wall, f->nonce, f->queue,
		f->inode };
	struct send *s = o->send;
	uint32_t running = 0;
	int r;

	o->act = f->act;
	if (f->act == ACT_RETRY && f->inode == 0) {
		running = (uint32_t)s->due.count;
		acts_flush(s);
		answer(o, f->serial, 0, running);
		return;
	}
	if (f->act < ACT_HOLD || f->act >= ACT_SPREAD || f->inode == 0) {
		answer(o, f->serial, -EINVAL, 0);
		return;
	}
	r = acts_do(s, (enum spool_act)f->act, &id, due_wall, &running);
	if (r == 0 && f->act == ACT_UNDELETE)
		hold_note_renew(&s->sp, &id, o->uid, s->now_wall);
	/* A message that is to be tried now is not to wait for a destination
	 * that was dead. */
	if (r == 0 && f->act == ACT_RETRY && !o->opened) {
		o->opened = true;
		sched_flush(s->sched, s->now);
		share_flush(s);
	}
	answer(o, f->serial, r, running);
}

static void
take_hold(struct operator* o, const struct msg_ACT *f, usec_t until_wall,
    const char *reason, size_t len)
{
	const struct queue_id id = { f->arrival_wall, f->nonce, f->queue,
		f->inode };
	struct hold_note note = { .uid = o->uid,
		.since_wall = o->send->now_wall,
		.until_wall = until_wall };
	uint32_t running = 0;
	int r = -EINVAL;

	o->act = ACT_HOLD;
	snprintf(note.reason, sizeof(note.reason), "%.*s", (int)len, reason);
	if (until_wall >= 0 && f->inode != 0)
		r = acts_hold(o->send, &id, &note, &running);
	answer(o, f->serial, r, running);
}

static void
take_hold_for(struct operator* o, const struct msg *msg)
{
	const struct msg_ACT_HOLD_FOR *f = &msg->u.ACT_HOLD_FOR;
	const struct msg_ACT act = { f->serial, ACT_HOLD, f->arrival_wall,
		f->nonce, f->queue, f->inode };

	take_hold(o, &act, f->until_wall, f->reason.data, f->reason.len);
}

/* The reason and the end are those of the rule. */
static void
take_hold_rule(struct operator* o, const struct msg *msg)
{
	const struct msg_ACT_HOLD_RULE *f = &msg->u.ACT_HOLD_RULE;
	const struct queue_id id = { f->arrival_wall, f->nonce, f->queue,
		f->inode };
	struct hold_note note;
	uint32_t running = 0;
	int r = rules_note(o->send, f->rule, &note);

	o->act = ACT_HOLD;
	if (r == 0)
		r = f->inode == 0 ? -EINVAL
				  : acts_hold(o->send, &id, &note, &running);
	answer(o, f->serial, r, running);
}

static void
take_act_at(struct operator* o, const struct msg *msg)
{
	const struct msg_ACT_AT *f = &msg->u.ACT_AT;
	const struct msg_ACT act = { f->serial, f->act, f->arrival_wall,
		f->nonce, f->queue, f->inode };

	if ((f->act != ACT_RELEASE && f->act != ACT_RETRY) || f->inode == 0 ||
	    f->due_wall <= 0)
		answer(o, f->serial, -EINVAL, 0);
	else
		take_act(o, &act, f->due_wall);
}

static void
take_frame_act(struct operator* o, const struct msg *msg)
{
	if (msg->u.ACT.act == ACT_HOLD)
		take_hold(o, &msg->u.ACT, 0, "", 0);
	else
		take_act(o, &msg->u.ACT, 0);
}

static void
take_to(struct operator* o, const struct msg *msg)
{
	const struct msg_ACT_TO *f = &msg->u.ACT_TO;
	const struct queue_id id = { f->arrival_wall, f->nonce, f->queue,
		f->inode };

	o->act = ACT_SPREAD;
	answer(o, f->serial,
	    f->inode == 0 ? -EINVAL
			  : spread_message(o->send, &o->spread, &id, f->to),
	    0);
}

/* No act on a message, and nothing for the log. */
static void
take_came(struct operator* o, const struct msg *msg)
{
	deferred_rescan(o->send);
	(void)wire_send(o->wire,
	    &(struct msg){ .type = MSG_ACTED,
		.u.ACTED = { .serial = msg->u.ACT_CAME.serial } },
	    -1);
}

static void
take_end(struct operator* o, const struct msg *msg)
{
	const struct msg_ACT_END *f = &msg->u.ACT_END;

	o->act = f->act;
	say_acts(o, f->selection.data, f->selection.len);
	spread_end(o->send, &o->spread);
}

static void
take_explain(struct operator* o, const struct msg *msg)
{
	explain_message(o->send, o->wire, &msg->u.EXPLAIN);
}

static void
take_explain_to(struct operator* o, const struct msg *msg)
{
	explain_address(o->send, o->wire, &msg->u.EXPLAIN_TO);
}

static const struct {
	enum msg_type type;
	bool acts;
	void (*take)(struct operator* o, const struct msg *msg);
} frames[] = {
	{ MSG_ACT, true, take_frame_act },
	{ MSG_ACT_AT, true, take_act_at },
	{ MSG_ACT_HOLD_FOR, true, take_hold_for },
	{ MSG_ACT_TO, true, take_to },
	{ MSG_ACT_CAME, true, take_came },
	{ MSG_ACT_HOLD_RULE, true, take_hold_rule },
	{ MSG_ACT_END, true, take_end },
	{ MSG_RULE_ADD, true, operators_rule_add },
	{ MSG_RULE_DROP, true, operators_rule_drop },
	{ MSG_RULES_READ, true, operators_rules_read },
	{ MSG_EXPLAIN, false, take_explain },
	{ MSG_EXPLAIN_TO, false, take_explain_to },
};

/* Time that a system call slept counts, too: the loop slept with it. */
static void pay(struct operator* o)
{
	struct operators *all = o->send->operators;
	const usec_t now = clock_mono();

	quota_spend(&all->quota, now - all->paid_at);
	all->paid_at = now;
	if (!quota_is_open(&all->quota) || now - all->began_at >= TIME_AT_ONCE)
		wire_pause(o->wire, true);
}

/* The reason, and the end of the connection. */
static void
turn_away(struct operator* o, int error)
{
	const struct msg msg = { .type = MSG_ACTED, .u.ACTED.error = error };

	(void)wire_send(o->wire, &msg, -1);
	drop(o);
}

static void
take_frame(struct operator* o, size_t row, const struct msg *msg)
{
	struct send *s = o->send;

	if (!frames[row].acts || o->may_act) {
		frames[row].take(o, msg);
		pay(o);
		return;
	}
	door_say_refused(&s->operators->door, s->now, o->uid);
	turn_away(o, -EPERM);
}

static void
on_frame(void *arg, struct wire *w UNUSED, struct chan_frame *frame)
{
	struct operator* o = arg;
	const struct msg *msg = &frame->msg;
	size_t i;

	send_read_clocks(o->send);
	o->heard = o->send->now;
	for (i = 0; i < ARRAY_LEN(frames); i++)
		if (frames[i].type == msg->type) {
			take_frame(o, i, msg);
			return;
		}
	drop(o);
}

static void
on_end(void *arg, struct wire *w UNUSED)
{
	struct operator* o = arg;

	send_read_clocks(o->send);
	drop(o);
}

/* ---- when ---- */

static void
on_ready(void *arg, struct wire *w UNUSED)
{
	struct operator* o = arg;

	join_line(o);
	event_active(o->send->operators->idle, EV_TIMEOUT, 0);
	send_wake(o->send);
}

/* In turn, each a little, while there is credit. */
static void
serve(struct operators *all)
{
	struct operator* o;

	all->paid_at = clock_mono();
	while (quota_is_open(&all->quota) &&
	    (o = TAILQ_FIRST(&all->line)) != NULL) {
		leave_line(o);
		all->began_at = all->paid_at;
		if (wire_take(o->wire, FRAMES_AT_ONCE))
			join_line(o);
	}
	if (!TAILQ_EMPTY(&all->line))
		event_active(all->idle, EV_TIMEOUT, 0);
}

usec_t
operators_work(struct send *s)
{
	struct operators *all = s->operators;

	if (all == NULL)
		return USEC_NEVER;
	quota_earn(&all->quota, s->now);
	serve(all);
	return TAILQ_EMPTY(&all->line) ? USEC_NEVER
				       : quota_opens_at(&all->quota);
}

static void
on_idle(evutil_socket_t fd UNUSED, short what UNUSED, void *arg)
{
	struct send *s = arg;

	send_read_clocks(s);
	quota_fill(&s->operators->quota, s->now);
	serve(s->operators);
}

static const struct wire_ops ops = {
	.ready = on_ready,
	.frame = on_frame,
	.bad = on_end,
	.closed = on_end,
};

/* ---- begin, end ---- */

int
operators_welcome(struct send *s, int fd, const struct caller *who)
{
	struct operator* o = calloc(1, sizeof(*o));
	int r;

	if (o == NULL)
		return -ENOMEM;
	o->send = s;
	o->uid = who->uid;
	o->may_act = who->may_act;
	o->heard = s->now;
	o->number = ++s->operators->last;
	r = wire_new(s->base, fd, &ops, o, &o->wire);
	if (r < 0) {
		free(o);
		return r;
	}
	wire_gather(o->wire);
	TAILQ_INSERT_TAIL(&s->operators->list, o, link);
	s->operators->count++;
	s->operators->askers += o->may_act ? 0 : 1;
	return 0;
}

bool
operators_end_idle(struct send *s, bool askers)
{
	struct operator* o, *idle = NULL;

	TAILQ_FOREACH (o, &s->operators->list, link)
		if (!o->waits && (!askers || !o->may_act) &&
		    (idle == NULL || o->heard < idle->heard))
			idle = o;
	if (idle == NULL || s->now - idle->heard < OPERATORS_IDLE)
		return false;
	turn_away(idle, -ETIME);
	return true;
}

static struct event *
idle_new(struct send *s)
{
	struct event *idle = event_new(s->base, -1, 0, on_idle, s);

	if (idle != NULL)
		(void)event_priority_set(idle, DAEMON_IDLE);
	return idle;
}

static void
free_all(struct operators *all)
{
	if (all != NULL && all->idle != NULL)
		event_free(all->idle);
	free(all);
}

void
operators_init(struct send *s)
{
	struct operators *all = calloc(1, sizeof(*all));
	int r = -ENOMEM;

	if (all != NULL) {
		TAILQ_INIT(&all->list);
		TAILQ_INIT(&all->line);
		quota_init(&all->quota, s->now);
		all->idle = idle_new(s);
		r = all->idle == NULL ? -ENOMEM : door_open(&all->door, s);
	}
	if (r < 0) {
		log_warning("%s/lock/" OPERATORS_SOCKET ": %s: operators can "
			    "act only while this queue is stopped",
		    s->sp.path, strerror(-r));
		free_all(all);
		return;
	}
	s->operators = all;
}

void
operators_done(struct send *s)
{
	struct operators *all = s->operators;
	struct operator* o;

	if (all == NULL)
		return;
	while ((o = TAILQ_FIRST(&all->list)) != NULL)
		drop(o);
	door_close(&all->door, s);
	s->operators = NULL;
	free_all(all);
}
