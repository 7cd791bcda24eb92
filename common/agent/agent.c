#include "agent/parts.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include <event2/event.h>

#include "base/io.h"
#include "base/text.h"

/* Answers that wait above this mean that queue-send does not keep up: take no
 * new deliveries until they have gone. Far below the limit of the wire. */
#define QUEUED_HIGH ((size_t)1 << 20)

static int
compare(const struct agent_delivery *a, const struct agent_delivery *b)
{
	return a->number < b->number ? -1 : a->number > b->number;
}

TREE_GENERATE(delivery_tree, agent_delivery, node, compare)

/* The link ends here; the owner of deliveries hears of it from the loop. */
static void
lose_link(struct agent *a)
{
	if (a->wire == NULL)
		return;
	wire_free(&a->wire);
	event_active(a->lost, EV_TIMEOUT, 0);
}

static void
on_lost(evutil_socket_t fd UNUSED, short what UNUSED, void *arg)
{
	struct agent *a = arg;

	a->ops->orphaned(a->arg);
}

/* An answer that cannot be queued would leave its delivery open for ever at the
 * other end; without a link queue-send defers it and starts us anew. */
void
agent_answer(struct agent *a, const struct msg *msg)
{
	if (a->wire == NULL)
		return;
	if (wire_send(a->wire, msg, -1) < 0) {
		lose_link(a);
		return;
	}
	if (!a->paused && wire_queued(a->wire) > QUEUED_HIGH) {
		a->paused = true;
		wire_pause(a->wire, true);
	}
}

struct msg_str
agent_clean(struct buf *room, const char *s, size_t max)
{
	if (text_clean(room, s, strlen(s), max) < 0)
		buf_reset(room);
	return (struct msg_str){ buf_str(room), room->len };
}

static void
send_result(struct agent *a, uint64_t number, uint32_t index,
    const struct agent_report *report)
{
	struct buf dsn = { 0 }, relay = { 0 }, text = { 0 };
	struct msg msg = { .type = MSG_RESULT };

	msg.u.RESULT = (struct msg_RESULT){
		.job = number,
		.rcpt = index,
		.outcome = (uint8_t)report->outcome,
		.dsn = agent_clean(&dsn, report->dsn, AGENT_DSN_MAX),
		.relay = agent_clean(&relay, report->relay, AGENT_RELAY_MAX),
		.text = agent_clean(&text, report->text, AGENT_TEXT_MAX),
		.conn_usec = report->conn,
		.xfer_usec = report->xfer,
	};
	agent_answer(a, &msg);
	buf_done(&dsn);
	buf_done(&relay);
	buf_done(&text);
}

static void
send_passed_on(struct agent *a, uint64_t number, uint32_t index)
{
	const struct msg msg = { .type = MSG_PASSED_ON,
		.u.PASSED_ON = { number, index } };

	agent_answer(a, &msg);
}

/* The delivery ends with this answer. */
static void
end_delivery(struct agent_delivery *d, const struct msg *msg)
{
	if (d->agent != NULL) {
		RB_REMOVE(delivery_tree, &d->agent->deliveries, d);
		agent_answer(d->agent, msg);
	}
	agent_delivery_free(&d);
}

static void
send_done(struct agent *a, uint64_t number, enum agent_site site,
    const char *dsn, const char *text)
{
	struct buf dsn_room = { 0 }, text_room = { 0 };
	struct msg msg = { .type = MSG_DONE };

	msg.u.DONE = (struct msg_DONE){
		.job = number,
		.site = (uint8_t)site,
		.dsn = agent_clean(&dsn_room, dsn, AGENT_DSN_MAX),
		.text = agent_clean(&text_room, text, AGENT_TEXT_MAX),
	};
	agent_answer(a, &msg);
	buf_done(&dsn_room);
	buf_done(&text_room);
}

void
agent_result(
    struct agent_delivery *d, uint32_t place, const struct agent_report *report)
{
	ASSERT(place < d->nrcpts && !d->rcpts[place].reported);
	ASSERT(report->outcome < AGENT_NOUTCOMES);
	d->rcpts[place].reported = true;
	if (d->agent == NULL)
		return;
	if (report->passed_on && (d->rcpts[place].notify & DSN_SUCCESS) != 0)
		send_passed_on(d->agent, d->number, d->rcpts[place].index);
	send_result(d->agent, d->number, d->rcpts[place].index, report);
}

void
agent_result_rest(struct agent_delivery *d, const struct agent_report *report)
{
	uint32_t i;

	for (i = 0; i < d->nrcpts; i++)
		if (!d->rcpts[i].reported)
			agent_result(d, i, report);
}

void
agent_done(struct agent_delivery *d, enum agent_site site, const char *dsn,
    const char *text)
{
	struct agent *a = d->agent;

	ASSERT(site < AGENT_SITE_NENDS);
	if (a != NULL) {
		RB_REMOVE(delivery_tree, &a->deliveries, d);
		send_done(a, d->number, site, dsn, text);
	}
	agent_delivery_free(&d);
}

void
agent_greeted(struct agent_delivery *d)
{
	const struct msg msg = { .type = MSG_GREETED,
		.u.GREETED.job = d->number };

	if (d->agent != NULL && !d->greeted)
		agent_answer(d->agent, &msg);
	d->greeted = true;
}

void
agent_elsewhere(struct agent_delivery *d, const char *site, uint32_t seconds)
{
	const struct msg msg = { .type = MSG_ELSEWHERE,
		.u.ELSEWHERE = { .job = d->number,
		    .site = MSG_S(site),
		    .seconds = seconds } };

	ASSERT(d->site != NULL);
	end_delivery(d, &msg);
}

void
agent_kept(struct agent_delivery *d)
{
	const struct msg msg = { .type = MSG_KEPT, .u.KEPT.job = d->number };

	ASSERT(d->may_keep);
	end_delivery(d, &msg);
}

void
agent_connection_closed(struct agent *a, uint64_t connection)
{
	const struct msg msg = { .type = MSG_CLOSED,
		.u.CLOSED.connection = connection };

	agent_answer(a, &msg);
}

void
agent_defer(struct agent_delivery *d, const char *dsn, const char *text)
{
	const struct agent_report report = {
		.outcome = AGENT_DEFERRED,
		.dsn = dsn,
		.relay = "none",
		.text = text,
	};

	agent_result_rest(d, &report);
	agent_done(d, AGENT_SITE_TALKED, dsn, text);
}

void
agent_say_bad(struct agent *a, const char *what)
{
	if (a->ops->bad != NULL)
		a->ops->bad(a->arg, what);
}

/* A number that is in use is not answered: DONE would end the delivery that has
 * it. */
static bool
is_in_use(struct agent *a, uint64_t number)
{
	struct agent_delivery key = { .number = number };

	if (RB_FIND(delivery_tree, &a->deliveries, &key) == NULL)
		return false;
	agent_say_bad(a, "DELIVER: number in use");
	return true;
}

static void
close_connection(struct agent *a, uint64_t connection)
{
	if (a->ops->close != NULL && connection != 0)
		a->ops->close(a->arg, connection);
}

/* WISHES, for the delivery that comes next. Without memory that one is refused:
 * its wishes are as of another number of recipients. */
static void
note_wishes(struct agent *a, const struct msg_WISHES *f)
{
	const size_t envid = f->envid.len;

	buf_reset(&a->wished);
	a->wishes = (struct msg_WISHES){ .job = f->job, .ret = f->ret };
	a->has_wishes = true;
	if (buf_add(&a->wished, f->envid.data, envid) < 0 ||
	    buf_add(&a->wished, f->rcpts.data, f->rcpts.len) < 0)
		return;
	a->wishes.envid = (struct msg_str){ a->wished.data, envid };
	a->wishes.rcpts =
	    (struct msg_str){ a->wished.data + envid, f->rcpts.len };
}

/* Put its wishes into a delivery that was made: r, or what is wrong with them.
 */
static int
wish(struct agent *a, struct agent_delivery **d, const char **ret_what)
{
	const bool has = a->has_wishes && a->wishes.job == (*d)->number;
	int r = 0;

	a->has_wishes = false;
	if (has)
		r = agent_delivery_wish(*d, &a->wishes, ret_what);
	if (r < 0)
		agent_delivery_free(d);
	return r;
}

/* SITE, for the delivery that comes next. Without memory that one is refused,
 * since its site is no name. */
static void
note_site(struct agent *a, const struct msg_SITE *f)
{
	buf_reset(&a->site);
	a->placed = f->job;
	if (f->site.len <= AGENT_SITE_MAX)
		(void)buf_add(&a->site, f->site.data, f->site.len);
}

static int
place(struct agent *a, struct agent_delivery **d, const char **ret_what)
{
	const bool has = a->placed != 0 && a->placed == (*d)->number;
	int r = 0;

	a->placed = 0;
	if (has)
		r = agent_delivery_place(*d, buf_str(&a->site));
	if (r < 0) {
		*ret_what = r == -ENOMEM ? "out of memory" : "site";
		agent_delivery_free(d);
	}
	return r;
}

/* r, what: the result of making the delivery. */
static void
begin(struct agent *a, uint64_t number, struct agent_delivery *d, int r,
    const char *what)
{
	const struct msg_REUSE reuse = a->reuse;
	const bool meant = reuse.job == number && a->ops->close != NULL;

	a->reuse = (struct msg_REUSE){ 0 };
	if (r == 0)
		r = wish(a, &d, &what);
	if (r == 0)
		r = place(a, &d, &what);
	if (r < 0) {
		/* DONE gives its place back. */
		close_connection(a, meant ? reuse.connection : 0);
		agent_say_bad(a, what);
		send_done(a, number, AGENT_SITE_TALKED, "4.3.0", what);
		return;
	}
	d->agent = a;
	d->may_keep = meant;
	d->connection = meant ? reuse.connection : 0;
	RB_INSERT(delivery_tree, &a->deliveries, d);
	a->ops->deliver(a->arg, d);
}

static void
take_deliver(struct agent *a, const struct msg_DELIVER *f, int *fd)
{
	struct agent_delivery *d = NULL;
	const char *what = "out of memory";
	uint64_t number = f->job;
	int r;

	if (is_in_use(a, number))
		return;
	r = agent_delivery_new(f, *fd, &d, &what);
	if (r == 0)
		*fd = -1;
	begin(a, number, d, r, what);
}

static void
take_whole(struct agent *a, const struct msg_DELIVER_WHOLE *f)
{
	struct agent_delivery *d = NULL;
	const char *what = "";
	uint64_t number = f->job;
	int r;

	if (is_in_use(a, number))
		return;
	r = agent_delivery_new_whole(f, &d, &what);
	begin(a, number, d, r, what);
}

static void
take_cancel(struct agent *a, const struct msg_CANCEL *f)
{
	struct agent_delivery key = { .number = f->job };
	struct agent_delivery *d = RB_FIND(delivery_tree, &a->deliveries, &key);

	if (f->stage >= AGENT_NSTAGES)
		agent_say_bad(a, "CANCEL: stage");
	else if (d != NULL && a->ops->cancel != NULL)
		a->ops->cancel(a->arg, d, (enum agent_stage)f->stage);
}

static void
on_frame(void *arg, struct wire *w UNUSED, struct chan_frame *frame)
{
	struct agent *a = arg;

	if (frame->msg.type == MSG_DELIVER)
		take_deliver(a, &frame->msg.u.DELIVER, &frame->fd);
	else if (frame->msg.type == MSG_DELIVER_WHOLE)
		take_whole(a, &frame->msg.u.DELIVER_WHOLE);
	else if (frame->msg.type == MSG_REUSE)
		a->reuse = frame->msg.u.REUSE;
	else if (frame->msg.type == MSG_WISHES)
		note_wishes(a, &frame->msg.u.WISHES);
	else if (frame->msg.type == MSG_SITE)
		note_site(a, &frame->msg.u.SITE);
	else if (frame->msg.type == MSG_CLOSE)
		close_connection(a, frame->msg.u.CLOSE.connection);
	else if (frame->msg.type == MSG_CANCEL)
		take_cancel(a, &frame->msg.u.CANCEL);
	else if (frame->msg.type == MSG_TRACE)
		agent_take_trace(a, &frame->msg.u.TRACE);
	else
		agent_say_bad(a, "frame that is not for an agent");
}

static void
on_bad(void *arg, struct wire *w UNUSED)
{
	agent_say_bad(arg, "malformed frame");
}

static void
on_closed(void *arg, struct wire *w UNUSED)
{
	lose_link(arg);
}

static void
on_drained(void *arg, struct wire *w)
{
	struct agent *a = arg;

	if (a->paused)
		wire_pause(w, false);
	a->paused = false;
	if (a->ops->drained != NULL)
		a->ops->drained(a->arg);
}

static const struct wire_ops wire_ops = {
	.manner = WIRE_BUNDLED,
	.frame = on_frame,
	.bad = on_bad,
	.closed = on_closed,
	.drained = on_drained,
};

void
agent_introduce(struct agent *a)
{
	const struct msg msg = { .type = MSG_AGENT,
		.u.AGENT = { .pid = (uint32_t)getpid() } };

	agent_answer(a, &msg);
}

int
agent_new(struct event_base *base, int sock, const struct agent_ops *ops,
    void *arg, struct agent **ret_agent)
{
	struct agent *a = calloc(1, sizeof(*a));
	int r = -ENOMEM;

	if (a == NULL)
		return -ENOMEM;
	a->ops = ops;
	a->arg = arg;
	RB_INIT(&a->deliveries);
	a->lost = event_new(base, -1, 0, on_lost, a);
	if (a->lost != NULL)
		r = wire_new(base, sock, &wire_ops, a, &a->wire);
	if (r < 0) {
		if (a->lost != NULL)
			event_free(a->lost);
		free(a);
		return r;
	}
	*ret_agent = a;
	return 0;
}

void
agent_free(struct agent **agent)
{
	struct agent *a = *agent;
	struct agent_delivery *d, *next;

	*agent = NULL;
	if (a == NULL)
		return;
	RB_FOREACH_SAFE (d, delivery_tree, &a->deliveries, next)
		d->agent = NULL;
	wire_free(&a->wire);
	buf_done(&a->wished);
	buf_done(&a->site);
	event_free(a->lost);
	free(a);
}

size_t
agent_queued(const struct agent *agent)
{
	return agent->wire == NULL ? 0 : wire_queued(agent->wire);
}
