#include "queue-send/road/road.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/io.h"
#include "log/log.h"
#include "queue-send/backlog/backlog.h"
#include "queue-send/peers/peers.h"
#include "spool/prepared.h"

#define MOVED_PER_TURN 100
#define ASIDE_PER_TURN 500
#define PASS_EVERY     USEC_PER_SEC
#define TELL_EVERY     USEC_PER_SEC
#define SAY_EVERY      (60 * USEC_PER_SEC)

struct target {
	uint32_t queue;
	bool open;
	bool foreign; /* on another file system */
	usec_t not_before;
	struct spool sp;
};

struct evacuation {
	struct target targets[PAGE_QUEUES_MAX];
	uint32_t ntargets, nopen, turn;
	uint64_t aside; /* messages up to this inode were put aside */
	bool all_aside;
	struct spool_scan scan;
	bool running;   /* a pass */
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

/* ---- targets ---- */

static void
close_target(struct evacuation *e, struct target *t)
{
	if (!t->open)
		return;
	spool_close(&t->sp);
	t->open = false;
	e->nopen--;
}

static void
close_targets(struct evacuation *e)
{
	uint32_t i;

	for (i = 0; i < e->ntargets; i++)
		close_target(e, &e->targets[i]);
	e->ntargets = 0;
}

static void
set_targets(const struct send *s, struct evacuation *e, const msg_blob *b)
{
	uint32_t i, queue;

	close_targets(e);
	for (i = 0; i < b->len / 4 && e->ntargets < PAGE_QUEUES_MAX; i++) {
		queue = bytes_get_u32(b->data + 4 * (size_t)i);
		if (queue == 0 || queue > QUEUE_NUM_MAX || queue == s->sp.queue)
			continue;
		e->targets[e->ntargets++] = (struct target){ .queue = queue };
	}
	/* Queues that end together begin with different targets. */
	e->turn = s->sp.queue;
	e->pass_at = s->now;
}

static void
pause_target(struct send *s, struct target *t, int error)
{
	struct evacuation *e = s->evacuation;

	t->not_before = s->now + s->conf->error_interval;
	close_target(e, t);
	if (log_due(s->now, SAY_EVERY, &e->said))
		log_warning("queue%" PRIu32 ": takes no mail of this queue: %s",
		    t->queue,
		    error == -ESHUTDOWN    ? "it is sealed"
			: error == -ESTALE ? "its directory is gone"
					   : strerror(-error));
}

static bool
is_usable(struct send *s, struct target *t)
{
	struct evacuation *e = s->evacuation;
	int r;

	if (t->foreign || s->now < t->not_before)
		return false;
	if (t->open || e->nopen == EVACUATE_OPEN)
		return t->open;
	r = spool_open(&t->sp, s->sp.sys, s->conf->queue_base, t->queue);
	t->open = r == 0;
	if (r < 0)
		pause_target(s, t, r);
	else
		e->nopen++;
	return t->open;
}

static bool
all_foreign(const struct evacuation *e)
{
	uint32_t i;

	for (i = 0; i < e->ntargets; i++)
		if (!e->targets[i].foreign)
			return false;
	return true;
}

static usec_t
first_pause_ends(const struct evacuation *e)
{
	usec_t first = USEC_NEVER;
	uint32_t i;

	for (i = 0; i < e->ntargets; i++)
		if (!e->targets[i].foreign && e->targets[i].not_before < first)
			first = e->targets[i].not_before;
	return first;
}

/* Does the error say something of the target, and nothing of the file? */
static bool
is_of_target(int error)
{
	static const int errors[] = { EXDEV, ESHUTDOWN, ESTALE, ENOSPC, EDQUOT,
		EROFS, EMFILE, ENFILE, ENOMEM };
	size_t i;

	for (i = 0; i < ARRAY_LEN(errors); i++)
		if (errors[i] == -error)
			return true;
	return false;
}

/* -EBUSY: no target takes anything now; else the answer of the last one. */
static int
move_to_next(struct send *s, enum spool_dir dir, uint64_t inode)
{
	struct evacuation *e = s->evacuation;
	uint32_t tries;
	int r;

	for (tries = 0; tries < e->ntargets; tries++) {
		struct target *t = &e->targets[e->turn++ % e->ntargets];

		if (!is_usable(s, t))
			continue;
		r = spool_hand_over(&s->sp, &t->sp, dir, inode);
		if (!is_of_target(r))
			return r;
		t->foreign = r == -EXDEV;
		if (t->foreign)
			close_target(e, t);
		else
			pause_target(s, t, r);
	}
	return -EBUSY;
}

/* ---- one file ---- */

/* The place and the marks of a message settle its prepared messages, so that
 * comes before the move, and no expansion begins meanwhile: the caller keeps
 * the lock. */
static int
settle_prepared(const struct send *s, uint64_t inode, int fd)
{
	struct queue_file file;

	/* todo-proc judges a damaged one, where it goes. */
	if (queue_file_read(fd, &file) < 0)
		return 0;
	return spool_settle_message(&s->sp, fd, &file, inode, NULL, NULL) < 0
	    ? -EAGAIN
	    : 0;
}

/* Opens and locks it. *ret_fd is to be closed, also after a failure; -1: no
 * queue file, which is moved all the same. -EAGAIN: its writer has not
 * committed it, or it is being expanded. */
static int
take_file(const struct send *s, enum spool_dir dir, uint64_t inode, int *ret_fd)
{
	int fd = spool_open_file(&s->sp, dir, inode, O_RDONLY);
	int r;

	if (fd == -ENOENT || fd == -EMFILE || fd == -ENFILE)
		return fd == -ENOENT ? fd : -EAGAIN;
	*ret_fd = fd < 0 ? -1 : fd;
	if (fd < 0)
		return 0;
	r = prepared_lock(fd);
	return r == 0 ? settle_prepared(s, inode, fd) : r;
}

static void
moved(struct send *s, enum spool_dir dir, uint64_t inode)
{
	struct walk *hold = &s->walks[WALK_HOLD];
	struct evacuation *e = s->evacuation;

	s->began_wall = s->now_wall;
	e->moved++;
	e->left -= e->left > 1;
	if (dir == SPOOL_DEFERRED)
		deferred_forget(s, inode);
	if (dir == SPOOL_HOLD && hold->count > 0)
		hold->count--;
	s->pub.changed = true;
}

static int
move_file(struct send *s, enum spool_dir dir, uint64_t inode)
{
	struct evacuation *e = s->evacuation;
	int r = -EAGAIN, fd = -1;

	if (messages_find(&s->messages, inode) == NULL &&
	    !removal_is_under_way(s, inode))
		r = take_file(s, dir, inode, &fd);
	if (r == 0)
		r = move_to_next(s, dir, inode);
	if (r == 0)
		moved(s, dir, inode);
	if (r == 0 && fd >= 0 && dir == SPOOL_INCOMING)
		accepted_log_file(s, inode, fd);
	io_close(&fd);
	if (r == 0 || r == -ENOENT)
		return 0;
	e->found++;
	e->found_incoming += dir == SPOOL_INCOMING;
	if (r == -EBUSY)
		return r;
	if (r != -EAGAIN && log_due(s->now, SAY_EVERY, &e->said))
		log_error("%s/%" PRIu64
			  ": cannot be moved to another queue: %s",
		    spool_dirs[dir].name, inode, strerror(-r));
	return 0;
}

/* Remove reasons that a crash left without their message. */
static int
clear_left_reasons(struct send *s, enum spool_dir dir UNUSED, uint64_t inode)
{
	reasons_clear(s, inode);
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
		spool_scan_done(&e->scan);
	e->running = false;
	e->pass_at = next;
}

static void
begin_pass(struct send *s)
{
	struct evacuation *e = s->evacuation;

	e->running = true;
	e->step = 0;
	e->found = e->found_incoming = 0;
	spool_scan_begin(&e->scan, &s->sp, steps[0].dir);
}

/* False: that was the last step. */
static bool
next_step(struct send *s)
{
	struct evacuation *e = s->evacuation;

	spool_scan_done(&e->scan);
	do
		e->step++;
	while (e->step < ARRAY_LEN(steps) && steps[e->step].when_empty &&
	    e->found > 0);
	if (e->step < ARRAY_LEN(steps)) {
		spool_scan_begin(&e->scan, &s->sp, steps[e->step].dir);
		return true;
	}
	e->left = e->found + s->todo_counts.maildrop;
	e->incoming = e->found_incoming;
	if (e->told != e->moved) /* so that they are looked for */
		e->tell_at = s->now;
	s->pub.changed = true;
	end_pass(s, s->now + PASS_EVERY);
	return false;
}

/* A bounded part of a pass. */
static int
pass(struct send *s)
{
	struct evacuation *e = s->evacuation;
	struct spool_item item;
	int n, r = 0;

	if (!e->running)
		begin_pass(s);
	for (n = 0; r == 0 && n < MOVED_PER_TURN; n++) {
		r = spool_scan_next(&e->scan, false, &item);
		if (r < 0) { /* a part that cannot be read is not empty */
			e->found++;
			r = 0;
		} else if (r == 0) {
			if (!next_step(s))
				return 0;
		} else {
			r = item.inode == 0
			    ? 0
			    : steps[e->step].handle(
				  s, steps[e->step].dir, item.inode);
		}
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
		if (m->active)
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
	set_targets(s, s->evacuation, queues);
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
		spool_scan_done(&e->scan);
	close_targets(e);
	free(e);
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

usec_t
evacuate_work(struct send *s)
{
	struct evacuation *e = s->evacuation;
	usec_t next;

	if (e == NULL || s->stopping)
		return USEC_NEVER;
	next = tell(s);
	if (!e->all_aside) {
		put_aside(s);
		return s->now;
	}
	if (s->acts.count > 0) /* the last one wakes the loop */
		return next;
	if (!e->running && s->now < e->pass_at)
		return e->pass_at < next ? e->pass_at : next;
	if (pass(s) != -EBUSY)
		return e->running || e->tell_at <= s->now ? s->now : next;
	if (all_foreign(e)) {
		log_warning(
		    "no other queue is on this file system: the mail of "
		    "this queue is delivered here");
		end(s);
		return s->now;
	}
	end_pass(s, first_pause_ends(e));
	return next;
}
