#include "qscheduler/supervisor/supervisor.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/io.h"
#include "log/log.h"

/* A load report does not lead to a decision more often than this. */
#define DECIDE_EVERY (USEC_PER_SEC / 4)
/* Descriptors that a queue takes, and some to work with. */
#define DESCRIPTORS  24
/* A queue that cannot be made now is not tried at each tick. */
#define RETRY_MIN    (5 * USEC_PER_SEC)
/* A number whose directory could not be had: others are tried first. */
#define AVOID_TIME   (600 * USEC_PER_SEC)

/* ---- the pages of queues ---- */

static uint64_t
add(uint64_t a, uint64_t b)
{
	uint64_t sum;

	return __builtin_add_overflow(a, b, &sum) ? UINT64_MAX : sum;
}

static void
judge_page(const struct queue_page *page, struct queue_seen *seen)
{
	const uint64_t running =
	    add((uint64_t)page->local_used, (uint64_t)page->remote_used);
	const uint64_t fresh =
	    add(add(page->maildrop, page->incoming), page->untried);

	seen->load_pct = queue_page_load(page);
	seen->rate = page->rate_out;
	seen->waiting = fresh;
	if (page->active_recipients > running)
		seen->waiting = add(fresh, page->active_recipients - running);
	seen->backlog =
	    add(add(fresh, page->active), add(page->deferred, page->hold));
}

/* A page that is being written to is as it was a moment ago. */
static void
read_page(struct queue *q, usec_t now)
{
	const int fd = q->page_fd;
	struct queue_page page;
	int r = fd < 0 ? -ENOENT : queue_page_read_fd(fd, &page);

	if (r == -EAGAIN)
		return;
	queue_note_late(q, r < 0 ? NULL : &page, now);
	q->seen.fresh =
	    r == 0 && !page_stale(&page.head, now) && page.queue == q->number;
	if (q->seen.fresh)
		judge_page(&page, &q->seen);
}

static void
fill_input(struct super *s, usec_t now, struct scale_queue *queues)
{
	uint32_t i;

	for (i = 0; i < s->queues.nqueues; i++) {
		struct queue *q = s->queues.queues[i];
		const struct override *o = &s->queues.overrides[q->number];
		const bool by_hand = now < o->until[OVERRIDE_LOAD];
		const bool usable = queue_is_usable(q, now);

		read_page(q, now);
		queues[i] = (struct scale_queue){
			.load_pct = by_hand ? o->value[OVERRIDE_LOAD]
					    : q->seen.load_pct,
			.wanted = q->want == QUEUE_STATE_OPEN,
			.usable = usable,
			.known = usable && (by_hand || q->seen.fresh),
			.by_hand = by_hand,
			.waiting = q->seen.waiting,
			.rate = q->seen.rate,
		};
	}
}

static void
fill_params(const struct super *s, struct scale_params *p)
{
	*p = (struct scale_params){
		.dynamic = s->options.mode == MODE_DYNAMIC,
		/* -n keeps the queues that are there, be they fewer. */
		.min = s->options.mode == MODE_KEEP ? 0 : s->queues.count,
		.max = s->queues.max,
		.threshold_pct = s->instance.conf->queue_load_pct,
		.grow_time = s->instance.conf->queue_grow_time,
		.shrink_time = s->instance.conf->queue_shrink_time,
		.interval = s->instance.conf->queue_change_interval,
	};
}

/* ---- words of a change ---- */

static double
seconds(usec_t t)
{
	return (double)t / (double)USEC_PER_SEC;
}

static void
describe(const struct super *s, const struct scale_decision *d, char *out,
    size_t size)
{
	const struct scale_figures *f = &d->figures;

	if (d->by_load)
		snprintf(out, size,
		    "mean load %" PRIu32 " %%%s for %.0f s (threshold %" PRIu32
		    " %%), %" PRIu64 " waiting",
		    d->act == SCALE_GROW ? f->mean_pct : f->without_pct,
		    d->act == SCALE_GROW ? "" : " without it",
		    seconds(d->held_for), s->instance.conf->queue_load_pct,
		    f->waiting);
	else if (s->grow.held > 0)
		snprintf(
		    out, size, "%" PRIu32 " wanted by setqload", s->grow.held);
	else
		snprintf(out, size, "%" PRIu32 " wanted", s->queues.count);
}

static void
tell_change(struct super *s, uint32_t number, const char *what,
    const struct scale_decision *d, uint32_t count)
{
	char why[100];

	describe(s, d, why, sizeof(why));
	snprintf(s->grow.change, sizeof(s->grow.change),
	    "queue %" PRIu32 " %s: %s; %" PRIu32 " queues", number, what, why,
	    count);
	s->grow.changes++;
	s->grow.change_wall = clock_wall();
	log_info("%s", s->grow.change);
}

static void
tell_failure(struct super *s, uint32_t number, const char *why)
{
	scale_undone(&s->grow.scale);
	s->grow.failed_at = clock_mono();
	log_error("queue %" PRIu32 " could not be added: %s; tried again after "
		  "%.0f s",
	    number, why,
	    seconds(s->instance.conf->queue_change_interval > RETRY_MIN
		    ? s->instance.conf->queue_change_interval
		    : RETRY_MIN));
}

/* ---- one more ---- */

static uint32_t
count_usable(const struct super *s, usec_t now)
{
	uint32_t i, n = 0;

	for (i = 0; i < s->queues.nqueues; i++)
		n += queue_is_usable(s->queues.queues[i], now);
	return n;
}

/* The lowest from QUEUE_START on that is not run; a queue that drains is opened
 * again instead. 0: there is none. */
static uint32_t
find_number(const struct super *s, usec_t now, struct queue **ret_draining)
{
	uint32_t number;

	*ret_draining = NULL;
	for (number = s->queues.start; number <= QUEUE_NUM_MAX; number++) {
		struct queue *q = queue_find(&s->queues, number);

		if (q == NULL && now >= s->grow.avoid[number] &&
		    !worker_runs(&s->workers, number))
			return number;
		if (q != NULL && retirement_cancel(q)) {
			*ret_draining = q;
			return number;
		}
	}
	return 0;
}

/* A queue is begun only with descriptors enough for it and its processes. */
static int
check_descriptors(void)
{
	int fds[DESCRIPTORS], n, r = 0;

	for (n = 0; n < DESCRIPTORS && r == 0; n++) {
		fds[n] = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3);
		if (fds[n] < 0)
			r = -errno;
	}
	while (n > 0)
		io_close(&fds[--n]);
	return r;
}

/* A queue that is there lives without one of these; another one without them
 * would help nobody. */
static int
open_objects(struct queue *q)
{
	int r = check_descriptors();

	if (r < 0)
		return r;
	objects_open(q);
	return q->page_fd < 0 || q->bell < 0 ? -ENOSPC : 0;
}

static void
on_made(void *ctx, uint32_t number, const struct worker_result *result,
    struct buf *more UNUSED)
{
	struct queues *all = ctx;
	struct super *s = all->ctx;
	struct queue *q = all->coming;
	const usec_t now = clock_mono();
	int r = result->r;

	if (q == NULL || q->number != number)
		return;
	s->queues.coming = NULL;
	if (s->stopping) { /* the others have been asked to end */
		queue_free(&q);
		return;
	}
	if (r == 0)
		r = queue_insert(q);
	if (r < 0) {
		s->grow.avoid[number] = now + AVOID_TIME;
		queue_free(&q);
		tell_failure(
		    s, number, result->r < 0 ? result->text : strerror(-r));
		return;
	}
	queue_note_disk(&s->queues, number);
	queue_start(q);
	tell_change(s, number, "added", &s->grow.why, count_usable(s, now));
	publish(s, now);
	if (s->grow.held > 0)
		grow_tick(s, now);
}

static const struct worker_task making = { "make", disk_make, on_made };

static int
begin(struct super *s, uint32_t number)
{
	struct queue *q;
	int r;

	/* Queues that drain keep their rows until they are gone. */
	if (s->queues.nqueues == PAGE_QUEUES_MAX)
		return -ENOSPC;
	q = queue_new(&s->queues, number, QUEUE_STATE_OPEN);
	if (q == NULL)
		return -ENOMEM;
	r = open_objects(q);
	if (r == 0)
		r = worker_start(&s->workers, &making, number, &s->queues);
	if (r < 0)
		queue_free(&q);
	else
		s->queues.coming = q;
	return r;
}

static void
grow_one(struct super *s, const struct scale_decision *d, usec_t now)
{
	struct queue *draining;
	const uint32_t number = find_number(s, now, &draining);
	int r = number == 0 ? -ENOSPC : 0;

	if (draining != NULL) {
		tell_change(s, number, "opened again", d, count_usable(s, now));
		publish(s, now);
		return;
	}
	s->grow.why = *d;
	if (r == 0)
		r = begin(s, number);
	if (r < 0)
		tell_failure(s, number, strerror(-r));
}

static void
retire_one(struct super *s, const struct scale_decision *d, usec_t now)
{
	struct queue *q = s->queues.queues[d->index];
	char why[100];

	describe(s, d, why, sizeof(why));
	retirement_begin(q, why, now);
	retirement_tick(q, now);
	tell_change(s, q->number, "closed", d, count_usable(s, now));
	publish(s, now);
}

/* ---- each second ---- */

static bool
may_try(const struct super *s, usec_t now)
{
	const usec_t interval = s->instance.conf->queue_change_interval;
	const usec_t pause = interval > RETRY_MIN ? interval : RETRY_MIN;

	return s->grow.failed_at == 0 || now - s->grow.failed_at >= pause;
}

/* Where no load changes the number of queues, a count that was reached stays
 * until the end, and is sought again after it. */
static uint32_t
stays(const struct super *s)
{
	return s->options.mode != MODE_DYNAMIC && s->grow.held_until == 0 &&
		s->grow.held != s->queues.count
	    ? s->grow.held
	    : 0;
}

/* A count that was asked for holds until it is reached, or for its time. */
static void
let_go(struct super *s, usec_t now)
{
	struct grow *g = &s->grow;

	if (g->held == 0)
		return;
	if (g->held_until > 0 ? now >= g->held_until
			      : s->queues.coming == NULL &&
		    (g->figures.usable == g->held ||
			g->figures.wanted >= s->queues.max)) {
		g->reached = stays(s);
		g->held = 0;
		g->held_until = 0;
		s->queues.events->overrides_changed(s->queues.ctx);
	}
}

/* True: something was done, and a held count may ask for more. */
static bool
decide(struct super *s, usec_t now)
{
	struct scale_queue queues[PAGE_QUEUES_MAX];
	struct scale_params params;
	struct scale_decision d;
	const struct scale_input in = {
		.now = now,
		.queues = queues,
		.n = s->queues.nqueues,
		.held = s->grow.held,
		.busy = s->queues.coming != NULL || !may_try(s, now),
	};

	s->grow.decided_at = now;
	fill_params(s, &params);
	fill_input(s, now, queues);
	scale_decide(&s->grow.scale, &params, &in, &d);
	s->grow.figures = d.figures;
	if (d.act == SCALE_GROW)
		grow_one(s, &d, now);
	else if (d.act == SCALE_RETIRE)
		retire_one(s, &d, now);
	else
		let_go(s, now);
	return d.act != SCALE_NOTHING && s->grow.held > 0;
}

uint32_t
grow_mean_pct(struct super *s, usec_t now)
{
	struct scale_queue queues[PAGE_QUEUES_MAX];
	const struct scale_input in = { .queues = queues,
		.n = s->queues.nqueues };

	fill_input(s, now, queues);
	return scale_mean_pct(&in);
}

void
grow_tick(struct super *s, usec_t now)
{
	uint32_t i;

	if (!s->ready || s->stopping)
		return;
	for (i = 0; i < PAGE_QUEUES_MAX && decide(s, now); i++)
		;
}

void
grow_soon(struct super *s, usec_t now)
{
	if (now - s->grow.decided_at >= DECIDE_EVERY)
		grow_tick(s, now);
}

void
grow_stop(struct super *s)
{
	if (s->queues.coming != NULL)
		queue_free(&s->queues.coming);
}

/* ---- by hand ---- */

int
grow_judge_count(const struct super *s, uint32_t count, char *out, size_t size)
{
	if (s->stopping) {
		snprintf(out, size, "the supervisor is stopping");
		return -EBUSY;
	}
	if (count < s->queues.count || count > s->queues.max) {
		snprintf(out, size,
		    "count %" PRIu32 ": not between queue_count (%" PRIu32
		    ") and queue_max (%" PRIu32 ")",
		    count, s->queues.count, s->queues.max);
		return -ERANGE;
	}
	return 0;
}

static void
hold(struct super *s, uint32_t count, usec_t until)
{
	s->grow.held = count;
	s->grow.held_until = until;
	s->grow.reached = 0;
	s->queues.events->overrides_changed(s->queues.ctx);
}

int
grow_set_count(
    struct super *s, uint32_t count, usec_t until, char *out, size_t size)
{
	const usec_t now = clock_mono();
	const int r = grow_judge_count(s, count, out, size);
	uint32_t usable;

	if (r < 0)
		return r;
	usable = count_usable(s, now);
	hold(s, count, until);
	s->grow.failed_at = 0;
	if (count > usable)
		snprintf(out, size, "%" PRIu32 " to come", count - usable);
	else if (count < usable)
		snprintf(out, size, "%" PRIu32 " close", usable - count);
	else
		snprintf(out, size, "as it is");
	grow_tick(s, now);
	return 0;
}

usec_t
grow_count_by_hand(const struct super *s, uint32_t *ret_count)
{
	*ret_count = s->grow.held > 0 ? s->grow.held : s->grow.reached;
	if (*ret_count == 0)
		return 0;
	return s->grow.held_until > 0 ? s->grow.held_until : USEC_NEVER;
}

bool
grow_restore_count(struct super *s, uint32_t count, usec_t until)
{
	char why[SCHED_ANSWER_SIZE];

	if (grow_judge_count(s, count, why, sizeof(why)) < 0) {
		log_warning("%" PRIu32
			    " queues, wanted by hand, are forgotten: %s",
		    count, why);
		return false;
	}
	s->grow.held = count;
	s->grow.held_until = until == USEC_NEVER ? 0 : until;
	log_info("%" PRIu32 " queue%s, still wanted by hand", count,
	    count == 1 ? "" : "s");
	return true;
}
