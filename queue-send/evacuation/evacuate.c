#include "queue-send/message/path.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/io.h"
#include "log/log.h"
#include "queue-send/backlog/backlog.h"
#include "queue-send/disk/act_task.h"
#include "queue-send/agents/agents.h"
#include "queue-send/evacuation/targets.h"
#include "queue-send/operators/operators.h"
#include "queue-send/disk/walk.h"
#include "queue-send/evacuation/evacuation.h"

#define FOUND_PER_TURN 100
#define ASIDE_PER_TURN 500
#define PASS_EVERY     USEC_PER_SEC
#define TELL_EVERY     USEC_PER_SEC
#define SAY_EVERY      (60 * USEC_PER_SEC)

struct evacuation {
	struct targets targets;
	uint64_t aside; /* messages up to this inode were put aside */
	bool all_aside;
	bool running;   /* a pass */
	bool again;     /* a target refused files: other targets take them */
	unsigned step;  /* of it: in steps[] */
	uint64_t found; /* by it, and not moved */
	uint64_t found_incoming;
	usec_t pass_at;
	uint64_t moved, left, incoming;
	uint64_t told; /* of moved */
	usec_t tell_at, said;
};

uint64_t
evacuate_incoming(const struct send *s)
{
	return s->evacuation->incoming;
}

/* ---- one file ---- */

static void
stays(struct evacuation *e, enum spool_dir dir)
{
	e->found++;
	e->found_incoming += dir == SPOOL_INCOMING;
}

/* Without an evacuation the other queue is told as of one that was spread. */
static void
moved(struct send *s, const struct act_task *t)
{
	struct evacuation *e = s->evacuation;

	spread_left(s, t);
	if (e == NULL) {
		spread_end(s, &(struct spread){ .moved = 1 });
		return;
	}
	e->moved++;
	e->left -= e->left > 1;
}

static void
not_moved(struct send *s, const struct act_task *t)
{
	struct evacuation *e = s->evacuation;
	const int r = t->task.error;

	stays(e, t->dir);
	if (t->of_other) {
		e->again = true;
		targets_refused(s, &e->targets, t->to, r);
	} else if (r != -EAGAIN && log_due(s->now, SAY_EVERY, &e->said))
		log_error("%s/%" PRIu64
			  ": cannot be moved to another queue: %s",
		    spool_dirs[t->dir].name, t->id.inode, strerror(-r));
}

static int
handed_over(struct send *s, struct act_task *t, uint32_t *ret_running UNUSED)
{
	const bool gone = t->task.error == -ENOENT && !t->of_other;

	other_queue_used(t->to, t->task.error);
	if (t->task.error == 0)
		moved(s, t);
	else if (!gone && s->evacuation != NULL)
		not_moved(s, t);
	return 0;
}

/* -EBUSY, -EAGAIN: of targets_next(). */
static int
move_file(struct send *s, enum spool_dir dir, uint64_t inode)
{
	struct evacuation *e = s->evacuation;
	struct other_queue *other = NULL;
	struct act_task *t = NULL;
	const bool is_left = messages_find(&s->messages, inode) != NULL ||
	    act_is_under_way(s, inode) || removal_is_under_way(s, inode);
	int r = is_left ? 0 : targets_next(s, &e->targets, &other);

	if (r < 0)
		return r;
	if (other != NULL)
		t = act_task_own(
		    s, dir, inode, act_task_hand_over, handed_over);
	if (t == NULL) {
		stays(e, dir);
		return 0;
	}
	t->to = other_queue_share(other);
	(void)act_run(s, t);
	return 0;
}

/* Remove reasons that a crash left without their message. */
static int
clear_left_reasons(struct send *s, enum spool_dir dir, uint64_t inode)
{
	struct act_task *t = NULL;

	if (!removal_is_under_way(s, inode))
		t = act_task_own(s, dir, inode, act_task_clear, NULL);
	if (t != NULL)
		(void)act_run(s, t);
	return 0;
}

/* ---- a pass ---- */

static const struct {
	enum spool_dir dir;
	int (*handle)(struct send *s, enum spool_dir dir, uint64_t inode);
	bool when_empty; /* nothing was found in the rows before */
} steps[] = {
	{ SPOOL_INCOMING, move_file, false },
	{ SPOOL_DEFERRED, move_file, false },
	{ SPOOL_ACTIVE, move_file, false },
	{ SPOOL_HOLD, move_file, false },
	{ SPOOL_DEFER, clear_left_reasons, true },
	{ SPOOL_BOUNCE, clear_left_reasons, true },
};

static void
end_pass(struct send *s, usec_t next)
{
	struct evacuation *e = s->evacuation;

	if (e->running)
		walk_end(s);
	e->running = false;
	e->pass_at = next;
}

/* The directory of the step is read; without memory the pass comes later. */
static void
begin_step(struct send *s)
{
	const struct walk_plan plan = {
		.dir = steps[s->evacuation->step].dir,
		.most = FOUND_PER_TURN,
	};

	walk_end(s);
	if (walk_begin(s, &plan) < 0)
		end_pass(s, s->now + PASS_EVERY);
}

static void
begin_pass(struct send *s)
{
	struct evacuation *e = s->evacuation;

	e->running = true;
	e->again = false;
	e->step = 0;
	e->found = e->found_incoming = 0;
	begin_step(s);
}

/* All of the step before has ended. */
static void
next_step(struct send *s)
{
	struct evacuation *e = s->evacuation;

	do
		e->step++;
	while (e->step < ARRAY_LEN(steps) && steps[e->step].when_empty &&
	    e->found > 0);
	if (e->step < ARRAY_LEN(steps)) {
		begin_step(s);
		return;
	}
	e->left = e->found + s->todo_counts.maildrop;
	e->incoming = e->found_incoming;
	if (e->told != e->moved) /* so that they are looked for */
		e->tell_at = s->now;
	s->pub.changed = true;
	end_pass(s, e->again ? s->now : s->now + PASS_EVERY);
}

/* One file that was found, or an error; it comes again with -EAGAIN and with
 * -EBUSY. */
static int
take_found(struct send *s, int error, const struct spool_item *item)
{
	struct evacuation *e = s->evacuation;
	int r;

	if (error < 0) /* a part that cannot be read is not empty */
		e->found++;
	if (error < 0 || item->inode == 0)
		return 0;
	r = steps[e->step].handle(s, steps[e->step].dir, item->inode);
	if (r < 0)
		walk_again(s);
	return r;
}

/* A bounded part of a pass. -EAGAIN: a thread wakes the loop. */
static int
pass(struct send *s)
{
	struct evacuation *e = s->evacuation;
	const struct walk_item *item;
	int n, r = 0;

	if (!e->running)
		begin_pass(s);
	for (n = 0; r == 0 && e->running && n < FOUND_PER_TURN; n++) {
		if (acts_own_are_full(s))
			return -EAGAIN;
		r = walk_next(s, &item);
		if (r == -EAGAIN || (r == 0 && s->acts.count > 0))
			return -EAGAIN;
		if (r == 0)
			next_step(s);
		else
			r = take_found(s, r, &item->file);
	}
	return r;
}

/* ---- messages in memory ---- */

/* Put messages that wait aside. A message of which deliveries run is put aside
 * after them, or finishes if that was all of it. */
static void
put_aside(struct send *s)
{
	struct evacuation *e = s->evacuation;
	struct message *m;
	int n;

	for (n = 0; n < ASIDE_PER_TURN; n++) {
		m = messages_after(&s->messages, e->aside);
		if (m == NULL) {
			e->all_aside = true;
			return;
		}
		e->aside = m->inode;
		if (message_is_active(m))
			settle_aside(s, m);
	}
}

/* ---- begin, end ---- */

static void
end(struct send *s)
{
	evacuate_done(s);
	s->want_scan = true;
	deferred_walk(s);
	send_wake(s);
}

static int
begin(struct send *s)
{
	struct evacuation *e = calloc(1, sizeof(*e));

	if (e == NULL)
		return -ENOMEM;
	/* Nothing is known to be empty before the first pass: hence the 1. */
	e->left = 1 + s->active + s->due.count + s->todo_counts.incoming +
	    s->todo_counts.maildrop + s->walks[WALK_HOLD].count;
	e->incoming = s->todo_counts.incoming;
	s->evacuation = e;
	offers_drop(s);
	deferred_pause(s);
	log_info("the mail of this queue goes to other queues: %u deliveries "
		 "to end",
	    sched_figures(s->sched).running);
	return 0;
}

int
evacuate_told(struct send *s, const struct msg *msg)
{
	const msg_blob *queues = &msg->u.HAND_OVER.queues;

	if (queues->len % 4 != 0)
		return -EBADMSG;
	if (queues->len == 0) {
		if (s->evacuation != NULL) {
			log_info(
			    "the mail of this queue is delivered here again");
			end(s);
		}
		return 0;
	}
	if (s->evacuation == NULL && begin(s) < 0)
		return -ENOMEM;
	targets_set(s, &s->evacuation->targets, queues);
	s->evacuation->pass_at = s->now;
	send_wake(s);
	return 0;
}

void
evacuate_done(struct send *s)
{
	struct evacuation *e = s->evacuation;

	s->evacuation = NULL;
	if (e == NULL)
		return;
	if (e->running)
		walk_end(s);
	targets_close(&e->targets);
	free(e);
}

void
evacuate_try_again(struct send *s)
{
	struct evacuation *e = s->evacuation;

	if (e == NULL)
		return;
	targets_try_again(&e->targets);
	if (!e->running)
		e->pass_at = s->now;
}

/* ---- the turn ---- */

static usec_t
tell(struct send *s)
{
	struct evacuation *e = s->evacuation;

	if (s->now < e->tell_at)
		return e->tell_at;
	e->tell_at = s->now + TELL_EVERY;
	e->told = e->moved;
	if (s->d != NULL)
		daemon_tell(s->d,
		    &(struct msg){ .type = MSG_HANDED,
			.u.HANDED = { .moved = e->moved, .left = e->left } });
	return e->tell_at;
}

/* No target takes anything. */
static usec_t
wait_for_targets(struct send *s, usec_t next)
{
	struct evacuation *e = s->evacuation;

	if (s->acts.count > 0) /* the last one wakes the loop */
		return next;
	if (targets_are_foreign(&e->targets)) {
		log_warning(
		    "no other queue is on this file system: the mail of "
		    "this queue is delivered here");
		end(s);
		return s->now;
	}
	end_pass(s, targets_first_pause(&e->targets));
	return next;
}

/* The end of an act wakes the loop. */
usec_t
evacuate_work(struct send *s)
{
	struct evacuation *e = s->evacuation;
	usec_t next;
	int r;

	if (e == NULL || s->stopping)
		return USEC_NEVER;
	next = tell(s);
	if (!e->all_aside) {
		put_aside(s);
		return s->now;
	}
	/* A pass would miss what moves from one directory to another. */
	if (!e->running && s->acts.count > 0)
		return next;
	if (!e->running && s->now < e->pass_at)
		return e->pass_at < next ? e->pass_at : next;
	r = pass(s);
	if (r == -EAGAIN)
		return next;
	if (r == -EBUSY)
		return wait_for_targets(s, next);
	if (e->running)
		return s->now;
	return e->pass_at < e->tell_at ? e->pass_at : e->tell_at;
}
