#include "queue-send/operators/own.h"

#include <errno.h>
#include <event2/event.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/text.h"
#include "log/log.h"
#include "queue-send/backlog/backlog.h"
#include "queue-send/rules/rules.h"
#include "queue-send/schedule/schedule.h"

/* For one connection, before the next one in line comes. */
#define FRAMES_AT_ONCE 16
#define TIME_AT_ONCE   (USEC_PER_MSEC / 4)

/* ---- the line of operators ---- */

static void operators_join_line(struct operator* o)
{
	if (o->waits)
		return;
	o->waits = true;
	TAILQ_INSERT_TAIL(&o->send->operators->line, o, in_line);
}

static void operators_leave_line(struct operator* o)
{
	if (o->waits)
		TAILQ_REMOVE(&o->send->operators->line, o, in_line);
	o->waits = false;
}

static void operators_call(struct operator* o)
{
	operators_join_line(o);
	event_active(o->send->operators->idle, EV_TIMEOUT, 0);
	send_wake(o->send);
}

static bool
operators_is_busy(const struct operator* o)
{
	return o->nreplies >= ACTS_AT_ONCE;
}

static void operators_hold_up(struct operator* o)
{
	if (!operators_is_busy(o))
		return;
	o->held_up = true;
	wire_pause(o->wire, true);
}

/* An act that ends within its frame has held up nothing yet. */
void operators_go_on(struct operator* o)
{
	if (!o->held_up || operators_is_busy(o))
		return;
	o->held_up = false;
	operators_call(o);
}

/* ---- peers ---- */

static void drop(struct operator* o)
{
	struct operators *all = o->send->operators;

	spread_end(o->send, &o->spread);
	operators_trace_end(o);
	operators_leave_line(o);
	wire_free(&o->wire);
	all->count--;
	all->askers -= o->may_act ? 0 : 1;
	send_wake(o->send); /* spreads that wait go, too */
	if (o->nreplies == 0) {
		operators_free(o);
		return;
	}
	o->gone = true;
	o->held_up = false;
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
	{ MSG_ACT, true, operators_act },
	{ MSG_ACT_AT, true, operators_act_at },
	{ MSG_ACT_HOLD_FOR, true, operators_hold_for },
	{ MSG_ACT_TO, true, operators_act_to },
	{ MSG_ACT_CAME, true, operators_came },
	{ MSG_ACT_HOLD_RULE, true, operators_hold_rule },
	{ MSG_ACT_END, true, operators_act_end },
	{ MSG_RULE_ADD, true, operators_rule_add },
	{ MSG_RULE_DROP, true, operators_rule_drop },
	{ MSG_RULES_READ, true, operators_rules_read },
	{ MSG_EXPLAIN, false, take_explain },
	{ MSG_EXPLAIN_TO, false, take_explain_to },
	{ MSG_TRACE_BEGIN, true, operators_trace },
};

/* Time that a system call slept counts, too: the loop slept with it. */
static void pay(struct operator* o)
{
	struct operators *all = o->send->operators;
	const usec_t now = clock_mono();

	quota_spend(&o->send->acts.quota, now - all->paid_at);
	all->paid_at = now;
	if (!quota_is_open(&o->send->acts.quota) ||
	    now - all->began_at >= TIME_AT_ONCE)
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
		operators_hold_up(o);
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

	if (!operators_is_busy(o))
		operators_call(o);
}

/* In turn, each a little, while there is credit. */
static void
serve(struct send *s)
{
	struct operators *all = s->operators;
	struct operator* o;

	all->paid_at = clock_mono();
	while (quota_is_open(&s->acts.quota) &&
	    (o = TAILQ_FIRST(&all->line)) != NULL) {
		operators_leave_line(o);
		all->began_at = all->paid_at;
		if (wire_take(o->wire, FRAMES_AT_ONCE) && !operators_is_busy(o))
			operators_join_line(o);
	}
	if (!TAILQ_EMPTY(&all->line))
		event_active(all->idle, EV_TIMEOUT, 0);
}

static void
on_idle(evutil_socket_t fd UNUSED, short what UNUSED, void *arg)
{
	struct send *s = arg;

	send_read_clocks(s);
	quota_fill(&s->acts.quota, s->now);
	serve(s);
}

static const struct wire_ops ops = {
	.manner = WIRE_GATHERED,
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
	o->sock = fd;
	o->may_act = who->may_act;
	o->heard = s->now;
	o->number = ++s->operators->last;
	r = wire_new(s->base, fd, &ops, o, &o->wire);
	if (r < 0) {
		free(o);
		return r;
	}
	TAILQ_INSERT_TAIL(&s->operators->list, o, link);
	s->operators->count++;
	s->operators->askers += o->may_act ? 0 : 1;
	return 0;
}

static bool
is_idle(const struct operator* o)
{
	return !o->waits && o->nreplies == 0 && o->trace.until <= o->send->now;
}

static bool
is_gone(const struct operator* o)
{
	struct pollfd p = { .fd = o->sock };

	return poll(&p, 1, 0) == 1 && (p.revents & POLLHUP) != 0;
}

/* Nothing is read of one that is held up, so its end is asked for. Its acts
 * need no connection. */
static bool
end_gone(struct send *s)
{
	struct operator* o;

	TAILQ_FOREACH (o, &s->operators->list, link)
		if (o->held_up && is_gone(o)) {
			drop(o);
			return true;
		}
	return false;
}

bool
operators_end_idle(struct send *s, bool askers)
{
	struct operator* o, *idle = NULL;

	TAILQ_FOREACH (o, &s->operators->list, link)
		if ((!askers || !o->may_act) && is_idle(o) &&
		    (idle == NULL || o->heard < idle->heard))
			idle = o;
	if (idle == NULL || s->now - idle->heard < OPERATORS_IDLE)
		return !askers && end_gone(s);
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

static int
open_all(struct send *s)
{
	struct operators *all = calloc(1, sizeof(*all));
	int r = -ENOMEM;

	if (all != NULL) {
		TAILQ_INIT(&all->list);
		TAILQ_INIT(&all->line);
		quota_init(&s->acts.quota, s->now);
		all->idle = idle_new(s);
		r = all->idle == NULL ? -ENOMEM : door_open(&all->door, s);
	}
	if (r < 0)
		free_all(all);
	else
		s->operators = all;
	return r;
}

void
operators_init(struct send *s)
{
	const bool again = s->operators_at != USEC_NEVER;
	int r = open_all(s);

	s->operators_at =
	    r == 0 ? USEC_NEVER : s->now + s->conf->error_interval;
	if (r == 0 && again)
		log_info("%s/lock/" OPERATORS_SOCKET ": open: operators can "
			 "act on messages of this queue again",
		    s->sp.path);
	if (r < 0 && !again)
		log_warning("%s/lock/" OPERATORS_SOCKET ": %s: operators can "
			    "act only while this queue is stopped; tried again "
			    "every error_interval, and by a reload",
		    s->sp.path, strerror(-r));
}

void
operators_try_again(struct send *s)
{
	if (s->operators_at != USEC_NEVER)
		s->operators_at = s->now;
}

/* The time of the next try; USEC_NEVER: the socket is open, or none is wanted.
 */
static usec_t
open_when_due(struct send *s)
{
	if (s->now >= s->operators_at)
		operators_init(s);
	return s->operators_at;
}

usec_t
operators_work(struct send *s)
{
	struct operators *all = s->operators;

	if (all == NULL)
		return open_when_due(s);
	quota_earn(&s->acts.quota, s->now);
	serve(s);
	return TAILQ_EMPTY(&all->line) ? USEC_NEVER
				       : quota_opens_at(&s->acts.quota);
}

void
operators_done(struct send *s)
{
	struct operators *all = s->operators;
	struct operator* o;

	s->operators_at = USEC_NEVER;
	if (all == NULL)
		return;
	while ((o = TAILQ_FIRST(&all->list)) != NULL)
		if (o->gone)
			operators_free(o);
		else
			drop(o);
	door_close(&all->door, s);
	s->operators = NULL;
	free_all(all);
}
