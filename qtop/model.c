#include "qtop/model.h"

#include <string.h>

#include "config/conf.h"
#include "ipc/page_text.h"

const struct model_source model_source_shm = {
	.read_sched = sched_page_read,
	.read_queue = queue_page_read,
};

/* 0 for a time in the future. */
static usec_t
age(usec_t now, usec_t then)
{
	usec_t d;

	if (__builtin_sub_overflow(now, then, &d))
		return then < 0 ? USEC_NEVER : 0;
	return d < 0 ? 0 : d;
}

static uint64_t
sum_u64(uint64_t a, uint64_t b)
{
	uint64_t sum;

	return __builtin_add_overflow(a, b, &sum) ? UINT64_MAX : sum;
}

static int32_t
sum_i32(int32_t a, int32_t b)
{
	int32_t sum;

	return __builtin_add_overflow(a, b, &sum) ? INT32_MAX : sum;
}

static void
judge_load(const struct model *model, struct model_row *row)
{
	row->load_pct = queue_page_load(&row->page);
	row->manual = page_is_load_manual(&row->sched, model->now_mono);
	if (!row->manual)
		return;
	row->manual_left = age(row->sched.manual_until_mono, model->now_mono);
	row->load_pct = row->sched.load_pct;
}

static void
judge(const struct model *model, struct model_row *row)
{
	const struct page_head *head = &row->page.head;

	row->now_mono = model->now_mono;
	row->stale = row->error == 0 && page_stale(head, model->now_mono);
	row->page_age = age(model->now_mono, head->beat_mono);
	row->in = sum_u64(row->page.maildrop, row->page.incoming);
	row->oldest_age = row->page.oldest_wall <= 0
	    ? -1
	    : age(model->now_wall, row->page.oldest_wall);
	judge_load(model, row);
}

static void
sum_row(struct model_row *total, const struct model_row *row)
{
	struct queue_page *t = &total->page;
	const struct queue_page *p = &row->page;
	size_t i;

	t->local_used = sum_i32(t->local_used, p->local_used);
	t->local_limit = sum_i32(t->local_limit, p->local_limit);
	t->remote_used = sum_i32(t->remote_used, p->remote_used);
	t->remote_limit = sum_i32(t->remote_limit, p->remote_limit);
	t->active = sum_u64(t->active, p->active);
	t->deferred = sum_u64(t->deferred, p->deferred);
	t->untried = sum_u64(t->untried, p->untried);
	t->hold = sum_u64(t->hold, p->hold);
	t->corrupt = sum_u64(t->corrupt, p->corrupt);
	t->rate_in = sum_u64(t->rate_in, p->rate_in);
	t->rate_out = sum_u64(t->rate_out, p->rate_out);
	t->active_recipients =
	    sum_u64(t->active_recipients, p->active_recipients);
	t->failed = sum_u64(t->failed, p->failed);
	t->expired = sum_u64(t->expired, p->expired);
	t->io_errors = sum_u64(t->io_errors, p->io_errors);
	for (i = 0; i < PAGE_AGES; i++)
		t->age[i] = sum_u64(t->age[i], p->age[i]);
	total->in = sum_u64(total->in, row->in);
	if (row->oldest_age > total->oldest_age)
		total->oldest_age = row->oldest_age;
	if (__builtin_add_overflow(total->sched.restarts, row->sched.restarts,
		&total->sched.restarts))
		total->sched.restarts = UINT32_MAX;
}

/* As the supervisor judges it (qscheduler/supervisor/grow.c). */
static bool
has_known_load(const struct model_row *row)
{
	return row->sched.state == QUEUE_STATE_OPEN &&
	    (row->manual || (row->error == 0 && !row->stale));
}

static void
sum_rows(struct model *model)
{
	uint64_t load = 0, known = 0;
	uint32_t i;

	model->total = (struct model_row){ .oldest_age = -1 };
	for (i = 0; i < model->nrows; i++) {
		const struct model_row *row = &model->rows[i];

		sum_row(&model->total, row);
		if (!has_known_load(row))
			continue;
		load += row->load_pct;
		known++;
	}
	if (known > 0)
		model->total.load_pct = (uint32_t)(load / known);
}

static bool
is_queue(const struct sched_row *row)
{
	return row->state != QUEUE_STATE_NONE && row->queue >= 1 &&
	    row->queue <= CONF_QUEUE_NUM_MAX;
}

static void
sample_queue(struct model *model, const struct model_source *source,
    const char *instance, const struct sched_row *sched)
{
	struct model_row *row = &model->rows[model->nrows++];

	*row = (struct model_row){ .sched = *sched };
	row->error = source->read_queue(instance, sched->queue, &row->page);
	if (row->error < 0)
		memset(&row->page, 0, sizeof(row->page));
	judge(model, row);
}

void
model_sample(struct model *model, const struct model_source *source,
    const char *instance, usec_t now_mono, usec_t now_wall)
{
	uint32_t i;

	memset(model, 0, sizeof(*model));
	model->now_mono = now_mono;
	model->now_wall = now_wall;
	model->error = source->read_sched(instance, &model->sched);
	if (model->error < 0) {
		memset(&model->sched, 0, sizeof(model->sched));
	} else {
		model->stale = page_stale(&model->sched.head, now_mono);
		model->sched_age = age(now_mono, model->sched.head.beat_mono);
	}
	for (i = 0; i < PAGE_QUEUES_MAX; i++)
		if (is_queue(&model->sched.rows[i]))
			sample_queue(
			    model, source, instance, &model->sched.rows[i]);
	sum_rows(model);
}
