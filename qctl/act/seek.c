/* Messages that were not where they were seen: they were delivered or removed,
 * or have gone to another queue. */
#include "qctl/act/act.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

#include "base/array.h"
#include "base/io.h"

/* queue-send removes files of messages that are done a moment later. */
#define PAUSE_MSEC 100

/* ---- in the process of a queue ---- */

struct found {
	uint64_t index; /* in t->gone */
	uint32_t dir;   /* enum spool_dir */
};

/* A file that is locked is there. */
static int
seek_one(struct worker *w, const struct spool *sp, const struct task *t,
    size_t index)
{
	enum spool_dir dir = SPOOL_NDIRS;
	int fd = act_find(
		sp, act_source(t->options.act), &t->gone[index].id, &dir),
	    r = fd;
	const struct found found = { .index = index, .dir = dir };

	io_close(&fd);
	if (r >= 0 || r == -EAGAIN)
		worker_row(w, &found, sizeof(found));
	else
		worker_step(w);
	return r >= 0 || r == -EAGAIN || r == -ENOENT ? 0 : r;
}

static int
seek_in_queue(struct worker *w, void *arg)
{
	const struct task *t = arg;
	struct spool sp;
	size_t i;
	const int opened = spool_open(&sp, &spool_sys_real, t->base, w->queue);
	int error, r = opened;

	/* A file that cannot be read hides no other. */
	for (i = 0; opened == 0 && i < t->ngone; i++) {
		error = seek_one(w, &sp, t, i);
		r = r == 0 ? error : r;
	}
	if (r < 0)
		worker_note(w, "%s", spool_error(r));
	spool_close(&sp);
	return 0;
}

/* ---- in the process of the command ---- */

void
seek_take_row(uint32_t queue, const void *data, size_t len, void *arg)
{
	struct task *t = arg;
	struct target target;

	_Static_assert(sizeof(struct tally) != sizeof(struct target),
	    "rows differ in size");
	if (len != sizeof(target)) {
		task_take_tally(queue, data, len, arg);
		return;
	}
	memcpy(&target, data, len);
	target.dir = SPOOL_NDIRS; /* until it is found */
	if (array_add(
		&t->gone, &t->ngone, &t->gone_cap, &target, sizeof(target)) < 0)
		t->error = -ENOMEM;
}

static void
take_found(uint32_t queue, const void *data, size_t len, void *arg)
{
	struct task *t = arg;
	struct found found;

	if (len != sizeof(found))
		return;
	memcpy(&found, data, len);
	if (found.index < t->ngone && found.dir < SPOOL_NDIRS) {
		t->gone[found.index].queue = queue;
		t->gone[found.index].dir = found.dir;
	}
}

/* A message that a filter met and that was delivered is none of those that are
 * meant any more. A message that was named is missed. all: all queues could be
 * searched. */
static void
count_gone(struct task *t, const struct target *gone, bool all,
    struct worker_totals *totals)
{
	char id[QUEUE_ID_SIZE];

	if (all)
		t->tally.gone++;
	else
		t->unfound++;
	if (t->options.select.nids == 0)
		return;
	queue_id_format(&gone->id, id);
	task_tell(&t->options, "%s: %s", id,
	    all ? "no such message any more" : "was not found");
	totals->troubled++;
}

static int
take_targets(struct task *t, struct worker_totals *totals)
{
	const bool all = totals->silent + totals->troubled == 0;
	size_t i;
	int r = 0;

	t->ntargets = 0;
	for (i = 0; i < t->ngone && r == 0; i++)
		if (t->gone[i].dir == SPOOL_NDIRS)
			count_gone(t, &t->gone[i], all, totals);
		else
			r = array_add(&t->targets, &t->ntargets,
			    &t->targets_cap, &t->gone[i], sizeof(*t->gone));
	t->ngone = 0;
	return r;
}

int
seek_targets(struct task *t, struct worker_totals *totals)
{
	struct worker_job job = task_job(t, seek_in_queue,
	    "its disk does not answer; messages that went there are not found");
	int r;

	if (t->ngone == 0) {
		t->ntargets = 0;
		return 0;
	}
	job.gentle = task_is_bulk(t);
	job.take_row = take_found;
	(void)poll(NULL, 0, PAUSE_MSEC);
	r = worker_run_all(&job, totals);
	return r < 0 ? r : take_targets(t, totals);
}
