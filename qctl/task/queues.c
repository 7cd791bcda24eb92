/* The queues that there are. QUEUE_BASE may lie on another disk than they do,
 * and that may not answer: a process of its own reads it. */
#include "qctl/task/task.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "ipc/page_text.h"
#include "spool/spool.h"

/* A row of that process. */
struct listing {
	int32_t count; /* or -errno */
	uint32_t queues[QUEUE_NUM_MAX];
};

struct search {
	const struct task *task;
	struct listing found;
};

static int
read_base(struct worker *w, void *arg)
{
	struct search *s = arg;

	s->found.count = spool_list(
	    s->task->base, s->found.queues, ARRAY_LEN(s->found.queues));
	worker_row(w, &s->found, sizeof(s->found));
	return 0;
}

static void
take_row(uint32_t queue UNUSED, const void *data, size_t len, void *arg)
{
	struct search *s = arg;

	if (len == sizeof(s->found))
		memcpy(&s->found, data, len);
}

static void
ask_supervisor(struct task *t)
{
	static struct sched_page page;
	char absent[PAGE_ABSENT_SIZE];
	size_t i;

	t->nqueues = 0;
	if (sched_page_read(t->instance, &page) < 0) {
		task_tell(&t->options, "no queue is known: %s",
		    page_absent_text(absent));
		return;
	}
	for (i = 0; i < PAGE_QUEUES_MAX; i++)
		if (page.rows[i].state != QUEUE_STATE_NONE)
			t->queues[t->nqueues++] = page.rows[i].queue;
}

void
queues_find(struct task *t)
{
	const uint32_t none = 0;
	struct search search = { .task = t, .found.count = -ESRCH };
	struct worker_totals totals;
	struct worker_job job = task_job(t, read_base,
	    "its disk does not answer; the queues are those that the "
	    "supervisor knows");
	int r;

	job.queues = &none;
	job.nqueues = 1;
	job.name = t->base;
	job.take_row = take_row;
	job.arg = &search;
	r = worker_run_all(&job, &totals);
	t->base_silent = r == 0 && totals.silent > 0;
	if (t->base_silent) {
		ask_supervisor(t);
		return;
	}
	t->nqueues = r < 0 ? r : search.found.count;
	if (t->nqueues > 0)
		memcpy(t->queues, search.found.queues,
		    (size_t)t->nqueues * sizeof(t->queues[0]));
}
