#include "qctl/act/actor.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/io.h"
#include "base/num.h"
#include "base/text.h"
#include "spool/hold_note.h"

#define WINDOW     128 /* acts without their answers */
#define PAUSE_MSEC 20  /* between two looks */
#define TRIES      100
/* For all messages together that are being delivered. */
#define AWAIT      (3 * USEC_PER_SEC)
/* Beyond that, for moves of messages that no delivery has: such an act is in
 * the memory of queue-send alone. */
#define AWAIT_MOVE (27 * USEC_PER_SEC)

/* ---- one round over all messages ---- */

static void
note_answer(struct work *k, int error, uint32_t running)
{
	k->error = error;
	k->again = error == -EAGAIN;
	k->waits =
	    error == 0 && (running > 0 || k->target->dir == SPOOL_ACTIVE);
	k->marked = running > 1;
}

/* The note of a hold: until when. */
static usec_t
hold_until(const struct actor *a)
{
	const struct task *t = a->t;

	return t->options.hold_time > 0
	    ? t->view.now_wall + t->options.hold_time
	    : 0;
}

static const char *
hold_reason(const struct actor *a)
{
	const char *reason = a->t->options.hold_reason;

	return reason == NULL ? "" : reason;
}

static struct msg
msg_of(const struct actor *a, enum spool_act act, const struct work *k)
{
	const struct queue_id *id = &k->target->id;
	const uint64_t serial = a->peer.serial;

	if (act == ACT_SPREAD)
		return (struct msg){ .type = MSG_ACT_TO,
			.u.ACT_TO = { .serial = serial,
			    PEER_ID(id),
			    .to = k->target->to } };
	if (act == ACT_HOLD && a->t->options.rule)
		return (struct msg){ .type = MSG_ACT_HOLD_RULE,
			.u.ACT_HOLD_RULE = { .serial = serial,
			    .rule = a->t->options.rule_number,
			    PEER_ID(id) } };
	if (act == ACT_HOLD)
		return (struct msg){ .type = MSG_ACT_HOLD_FOR,
			.u.ACT_HOLD_FOR = { .serial = serial,
			    .until_wall = hold_until(a),
			    PEER_ID(id),
			    .reason = MSG_S(hold_reason(a)) } };
	if (k->due_wall > 0)
		return (struct msg){ .type = MSG_ACT_AT,
			.u.ACT_AT = { .serial = serial,
			    .act = act,
			    .due_wall = k->due_wall,
			    PEER_ID(id) } };
	return (struct msg){ .type = MSG_ACT,
		.u.ACT = { .serial = serial, .act = act, PEER_ID(id) } };
}

static int
ask_one(struct actor *a, enum spool_act act, const struct work *k)
{
	const struct msg msg = msg_of(a, act, k);

	return peer_act(&a->peer, &msg);
}

/* Up to WINDOW acts are on their way, and half of them go together: each call
 * of either side is for many. */
static int
ask_all(struct actor *a, enum spool_act act)
{
	size_t sent = 0, got = 0, flying = 0, room;
	uint32_t running;
	int r = 0, error;

	while (r == 0 && (got < a->count)) {
		room = flying <= WINDOW / 2 ? WINDOW : 0;
		for (; sent < a->count && flying < room && r == 0; sent++)
			if (a->works[sent].error == 1) {
				r = ask_one(a, act, &a->works[sent]);
				flying++;
			}
		while (got < sent && a->works[got].error != 1)
			got++;
		if (r < 0 || got == sent)
			continue;
		r = peer_answer(&a->peer, &error, &running);
		if (r == 0)
			note_answer(&a->works[got++], error, running);
		flying--;
		worker_step(a->w);
	}
	return r;
}

static int
spread_one(struct actor *a, const struct work *k, enum spool_dir dir, int fd)
{
	const uint32_t to = k->target->to;
	int r = 0;

	if (a->to_open && a->to.queue != to) {
		spool_close(&a->to);
		a->to_open = false;
	}
	if (!a->to_open)
		r = spool_open(&a->to, a->sp.sys, a->t->base, to);
	a->to_open = r == 0;
	if (r < 0)
		return r == -ENOENT ? -ESTALE : r;
	return act_spread(&a->sp, &a->to, dir, k->target->id.inode, fd);
}

static int
move_one(struct actor *a, enum spool_act act, const struct work *k)
{
	const usec_t now = clock_wall();
	struct hold_note note = { .uid = a->uid,
		.since_wall = now,
		.until_wall = hold_until(a),
		.rule = a->t->options.rule_number };
	const struct act_plan plan = { .what = act,
		.due_wall = k->due_wall,
		.now_wall = now,
		.note = act == ACT_HOLD ? &note : NULL,
		.uid = a->uid,
		.passes_rules = a->ruled };
	enum spool_dir dir, to;
	int r, fd = act_find(&a->sp, act_source(act), &k->target->id, &dir);

	if (fd < 0)
		return fd;
	snprintf(note.reason, sizeof(note.reason), "%s", hold_reason(a));
	r = act == ACT_SPREAD
	    ? spread_one(a, k, dir, fd)
	    : act_do(&a->sp, &plan, dir, &k->target->id, fd, &to);
	io_close(&fd);
	return r;
}

static void
move_all(struct actor *a, enum spool_act act)
{
	size_t i;

	for (i = 0; i < a->count; i++) {
		struct work *k = &a->works[i];

		if (k->error != 1)
			continue;
		worker_step(a->w);
		note_answer(k, move_one(a, act, k), 0);
		k->waits = false;
	}
}

static void
pause_a_while(struct actor *a)
{
	(void)poll(NULL, 0, PAUSE_MSEC);
	worker_step(a->w);
}

/* How many messages are to be done. Those that were refused for the moment are
 * among them again. */
static size_t
count_undone(struct actor *a)
{
	size_t i, n = 0;

	for (i = 0; i < a->count; i++) {
		if (a->works[i].again)
			a->works[i].error = 1;
		a->works[i].again = false;
		n += a->works[i].error == 1;
	}
	return n;
}

/* A message that is about to leave, or is being prepared, is asked about
 * again. */
int
actor_do(struct actor *a, enum spool_act act)
{
	unsigned try;
	int r = 0;

	for (try = 0; r == 0 && try < TRIES && count_undone(a) > 0; try++) {
		if (try > 0)
			pause_a_while(a);
		if (a->offline)
			move_all(a, act);
		else {
			a->peer.serial = try + 1;
			r = ask_all(a, act);
		}
	}
	return r;
}

/* ---- queues that messages went to ---- */

static void
tell_came(struct actor *a, uint32_t queue)
{
	struct peer peer = { .fd = -1 };
	struct spool sp;
	int r = spool_open(&sp, a->sp.sys, a->t->base, queue);

	if (r == 0)
		r = peer_connect(&peer, &sp, a->t->silence_limit);
	if (r == 0)
		r = peer_ask(&peer,
		    &(struct msg){
			.type = MSG_ACT_CAME, .u.ACT_CAME.serial = 1 });
	if (r < 0 && r != -ENOENT && r != -ECONNREFUSED)
		worker_note(a->w,
		    "queue %u was not told of what it got, and finds it within "
		    "the hour: %s",
		    queue, spool_error(r));
	peer_close(&peer);
	spool_close(&sp);
}

/* The queue-send that moved them may die before it has told the supervisor; one
 * that did not answer may have moved some. Messages for one queue are one after
 * the other. */
void
actor_tell_came(struct actor *a)
{
	uint32_t told = 0;
	size_t i;

	for (i = 0; i < a->count; i++) {
		const uint32_t to = a->works[i].target->to;
		const int error = a->works[i].error;

		if (to == told || (error < 0 && error != -EAGAIN))
			continue;
		told = to;
		worker_step(a->w);
		tell_came(a, to);
	}
}

/* ---- messages that were in delivery ---- */

struct marks {
	uint32_t done, pending;
};

static int
count_marks(struct actor *a, int fd, struct marks *ret)
{
	struct queue_rcpt_cursor cursor;
	struct queue_rcpt rcpt;
	struct queue_file file;
	int r = queue_file_read(fd, &file);

	*ret = (struct marks){ 0 };
	if (r < 0)
		return r;
	queue_rcpt_begin(&cursor, &file);
	while ((r = queue_rcpt_next(&cursor, fd, &rcpt)) > 0) {
		ret->done += rcpt.mark == RCPT_DONE;
		ret->pending += rcpt.mark == RCPT_PENDING;
		worker_step(a->w);
	}
	return r;
}

/* 1: it is where the act leads, or nowhere any more; 0: not yet. */
static int
look(struct actor *a, const struct work *k, enum spool_act act,
    struct marks *ret, bool *ret_gone)
{
	enum spool_dir dir = SPOOL_NDIRS;
	int fd = act_find(
		&a->sp, act_target(act, SPOOL_ACTIVE), &k->target->id, &dir),
	    r = 0;

	*ret_gone = fd == -ENOENT;
	if (fd >= 0 && dir == act_target(act, SPOOL_ACTIVE))
		r = count_marks(a, fd, ret) < 0 ? 0 : 1;
	io_close(&fd);
	return *ret_gone ? 1 : r;
}

/* NULL: all of it was delivered, or has failed, and it is gone. */
static void
say(struct actor *a, const struct work *k, const struct marks *marks)
{
	char id[QUEUE_ID_SIZE], text[128];

	queue_id_format(&k->target->id, id);
	if (marks == NULL)
		snprintf(text, sizeof(text), "%s: it had been delivered\n", id);
	else
		snprintf(text, sizeof(text),
		    "%s: was being delivered: %u recipient%s %s it, %u %s "
		    "not\n",
		    id, marks->done, text_plural(marks->done),
		    marks->done == 1 ? "has" : "have", marks->pending,
		    marks->pending == 1 ? "does" : "do");
	(void)worker_text(a->w, text, strlen(text));
	worker_message(a->w, 0);
}

/* The act is on disk, and is done when the attempt ends. */
static void
say_later(struct actor *a, const struct work *k, enum spool_act act)
{
	char id[QUEUE_ID_SIZE];
	struct buf text = { 0 };

	queue_id_format(&k->target->id, id);
	buf_printf(&text,
	    "%s: is being delivered now; it will be %s when that attempt ends, "
	    "within ",
	    id, act_past(act));
	num_add_span(&text, a->t->delivery_max);
	buf_add_str(&text, " at most\n");
	(void)out_send(&text, a->w);
	worker_message(a->w, 0);
	buf_done(&text);
}

/* An act without a mark may be forgotten: only its move is its proof. */
static void
end_wait(struct actor *a, struct work *k, enum spool_act act)
{
	k->later = k->marked;
	if (k->later)
		say_later(a, k, act);
	else
		k->error = -EAGAIN;
}

/* Deliveries that have been made are told. */
static void
await(struct actor *a, struct work *k, enum spool_act act, usec_t until)
{
	struct marks marks;
	bool gone = false;

	while (look(a, k, act, &marks, &gone) == 0) {
		if (clock_mono() > until + (k->marked ? 0 : AWAIT_MOVE)) {
			end_wait(a, k, act);
			return;
		}
		pause_a_while(a);
	}
	k->waits = false;
	if (gone) {
		k->error = -ENODATA;
		say(a, k, NULL);
	} else if (marks.done > 0)
		say(a, k, &marks);
}

/* A message that is requeued is tried again at once: it may be in delivery
 * again before it is looked for. That queue-send has taken it is all there is
 * to know. Of one that is given up the mark is on disk. queue-send ends
 * sessions whose server cannot have accepted the message, so most end at once.
 */
void
actor_await(struct actor *a, enum spool_act act)
{
	const usec_t until = clock_mono() + AWAIT;
	size_t i;

	if (act == ACT_REQUEUE || act_gives_up(act))
		return;
	for (i = 0; i < a->count; i++)
		if (a->works[i].waits)
			await(a, &a->works[i], act, until);
}
