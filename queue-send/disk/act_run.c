#include "queue-send/disk/act_task.h"

#include <errno.h>
#include <stdlib.h>

#include "base/clock.h"
#include "queue-send/disk/work.h"

static struct act_task *
find(const struct send *s, uint64_t inode)
{
	struct act_task *t;

	TAILQ_FOREACH (t, &s->acts.list, on)
		if (t->id.inode == inode)
			return t;
	return NULL;
}

bool
act_is_under_way(const struct send *s, uint64_t inode)
{
	return find(s, inode) != NULL;
}

bool
act_meets_offer(struct send *s, uint64_t inode)
{
	struct act_task *t = find(s, inode);

	if (t != NULL)
		t->met_offered = true;
	return t != NULL;
}

bool
act_meets_held(struct send *s, uint64_t inode)
{
	struct act_task *t = find(s, inode);

	if (t != NULL)
		t->met_held = true;
	return t != NULL;
}

bool
acts_are_full(const struct send *s)
{
	return s->acts.count + s->acts.nwaiting >= ACTS_MAX;
}

bool
acts_own_are_full(const struct send *s)
{
	return s->acts.own >= ACTS_OWN_MAX;
}

/* A file that was passed over is looked for again: it may lie where it lay, and
 * another message may have its inode by now. */
static void
look_again(struct send *s, const struct act_task *t)
{
	s->want_scan |= t->met_offered || (t->offered && t->task.error < 0);
	s->walks[WALK_HOLD].wanted |= t->met_held;
}

static void
end(struct send *s, struct act_task *t)
{
	uint32_t running = 0;
	int r;

	TAILQ_REMOVE(&s->acts.list, t, on);
	s->acts.count--;
	s->acts.own -= t->by.answer == NULL;
	look_again(s, t);
	r = t->ended == NULL ? 0 : t->ended(s, t, &running);
	if (t->by.answer != NULL && r != ACT_UNDER_WAY)
		t->by.answer(s, &t->by, r, running);
	send_wake(s);
	sync_task_free(&t->task);
}

/* The loop's time for it is the operators' (operators_work()). */
void
act_ended(void *send, struct sync_task *task)
{
	struct send *s = send;
	struct act_task *t = (struct act_task *)(void *)task;
	const bool own = t->by.answer == NULL;
	const usec_t began = clock_mono();

	end(s, t);
	if (!own)
		quota_spend(&s->acts.quota, clock_mono() - began);
}

/* Notes of active messages lie beside reasons of their results: the thread that
 * writes these has them, in one order. */
int
act_run(struct send *s, struct act_task *t)
{
	TAILQ_INSERT_TAIL(&s->acts.list, t, on);
	s->acts.count++;
	s->acts.own += t->by.answer == NULL;
	if (s->acts.count == 1) /* disk_look() looks from now on */
		send_wake(s);
	disk_do(s, t->message != NULL ? DISK_RECORD : DISK_ACT, &t->task);
	return ACT_UNDER_WAY;
}

void
act_run_own(struct send *s, enum spool_dir dir, uint64_t inode,
    int (*work)(struct act_task *t),
    int (*ended)(struct send *s, struct act_task *t, uint32_t *ret_running))
{
	struct act_task *t = act_task_own(s, dir, inode, work, ended);

	if (t != NULL)
		(void)act_run(s, t);
}

/* ---- start and end ---- */

void
acts_init(struct send *s)
{
	TAILQ_INIT(&s->acts.list);
	TAILQ_INIT(&s->acts.waiting);
}

/* Tasks that are under way are the threads', or have gone with the executor. */
void
acts_done(struct send *s)
{
	struct act_task *t;

	while ((t = TAILQ_FIRST(&s->acts.waiting)) != NULL) {
		TAILQ_REMOVE(&s->acts.waiting, t, on);
		sync_task_free(&t->task);
	}
	s->acts.nwaiting = 0;
	TAILQ_INIT(&s->acts.list);
	s->acts.count = s->acts.own = 0;
}
