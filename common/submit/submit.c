#include "submit/parts.h"

#include "base/clock.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#define OPEN_QUEUES_MAX 32 /* three descriptors each */

/* ---- facts ---- */

static int
read_sched(void *arg, struct sched_page *ret_page)
{
	struct submit *s = arg;
	int r = sched_page_read(s->conf->instance, ret_page);

	s->knows_qmails = r == 0;
	if (r == 0)
		s->qmails_uid = ret_page->qmails_uid;
	return r;
}

static int
read_queue(void *arg, uint32_t queue, struct queue_page *ret_page)
{
	const struct submit *s = arg;
	const char *instance = s->conf->instance;

	return s->knows_qmails
	    ? queue_page_read_of(instance, queue, s->qmails_uid, ret_page)
	    : queue_page_read(instance, queue, ret_page);
}

void
submit_judge(struct submit *s)
{
	const usec_t now = s->now_mono = clock_mono();

	if (s->judged && now - s->judged_mono < SUBMIT_FACTS_AGE)
		return;
	choose_judge(&s->reader, now, &s->facts);
	s->judged = true;
	s->judged_mono = now;
	s->disk = false;
}

bool
submit_is_late(struct submit *s, uint32_t queue)
{
	const struct queue_fact *fact;
	size_t i;

	s->judged = false;
	submit_judge(s);
	for (i = 0; i < s->facts.count; i++)
		if (s->facts.rows[i].rank == RANK_LATE)
			return true;
	fact = choose_find(&s->facts, queue);
	return fact != NULL && fact->rank == RANK_NEVER;
}

/* The queue directories that are not sealed; -ESHUTDOWN: all are. */
static int
list_unsealed(const struct submit *s, uint32_t queues[PAGE_QUEUES_MAX])
{
	const char *base = s->conf->queue_base;
	int all = spool_list(base, queues, PAGE_QUEUES_MAX), n = 0, i;

	for (i = 0; i < all; i++)
		if (!spool_is_sealed_at(base, queues[i]))
			queues[n++] = queues[i];
	if (all > 0 && n == 0)
		return -ESHUTDOWN;
	return all < 0 ? all : n;
}

int
submit_judge_disk(struct submit *s)
{
	uint32_t queues[PAGE_QUEUES_MAX];
	int n;

	if (s->disk || s->facts.shut)
		return 0;
	s->disk = true;
	n = list_unsealed(s, queues);
	if (n > 0)
		choose_add_disk(
		    &s->facts, queues, (size_t)n, &s->reader, clock_mono());
	return n;
}

/* ---- open queue directories ---- */

static void
close_queue(struct submit_queue *q)
{
	bell_let_go(&q->bell);
	spool_close(&q->spool);
	free(q);
}

/* A queue that is written to stays open for its users. */
static void
unlist(struct submit *s, struct submit_queue *q)
{
	TAILQ_REMOVE(&s->open, q, link);
	s->nopen--;
	q->listed = false;
	if (q->users == 0)
		close_queue(q);
}

static void
list_first(struct submit *s, struct submit_queue *q)
{
	TAILQ_INSERT_HEAD(&s->open, q, link);
	s->nopen++;
	q->listed = true;
}

static struct submit_queue *
find_open(struct submit *s, uint32_t queue)
{
	struct submit_queue *q;

	TAILQ_FOREACH (q, &s->open, link)
		if (q->spool.queue == queue)
			return q;
	return NULL;
}

static int
open_new(struct submit *s, uint32_t queue, struct submit_queue **ret_queue)
{
	struct submit_queue *q;
	int r;

	if (s->nopen >= OPEN_QUEUES_MAX)
		unlist(s, TAILQ_LAST(&s->open, submit_queue_list));
	q = calloc(1, sizeof(*q));
	if (q == NULL)
		return -ENOMEM;
	q->bell.mq = BELL_NO_MQ;
	r = spool_open_some(&q->spool, s->sys, s->conf->queue_base, queue,
	    SPOOL_DIR_BIT(SPOOL_INCOMING));
	if (r < 0) {
		close_queue(q);
		return r;
	}
	list_first(s, q);
	*ret_queue = q;
	return 0;
}

int
submit_open_queue(
    struct submit *s, uint32_t queue, struct submit_queue **ret_queue)
{
	struct submit_queue *q = find_open(s, queue);
	int r = 0;

	if (q != NULL) {
		TAILQ_REMOVE(&s->open, q, link);
		TAILQ_INSERT_HEAD(&s->open, q, link);
	} else {
		r = open_new(s, queue, &q);
	}
	if (r < 0)
		return r;
	q->users++;
	*ret_queue = q;
	return 0;
}

void
submit_release(struct submit_queue **queue)
{
	struct submit_queue *q = *queue;

	*queue = NULL;
	if (q != NULL && --q->users == 0 && !q->listed)
		close_queue(q);
}

void
submit_queue_failed(struct submit *s, uint32_t queue)
{
	struct queue_fact *fact = choose_find(&s->facts, queue);
	struct submit_queue *q = find_open(s, queue);

	if (fact != NULL)
		fact->failed = true;
	if (q != NULL)
		unlist(s, q);
}

/* ---- the beginning and the end ---- */

int
submit_new(const struct conf *conf, const struct spool_sys *sys,
    struct submit **ret_submit)
{
	struct submit *s = calloc(1, sizeof(*s));

	if (s == NULL)
		return -ENOMEM;
	s->conf = conf;
	s->sys = sys;
	s->reader = (struct choose_reader){ read_sched, read_queue, s };
	/* Processes begin at different queues. */
	s->turn = arc4random();
	s->pid = (int32_t)getpid();
	TAILQ_INIT(&s->open);
	*ret_submit = s;
	return 0;
}

void
submit_free(struct submit **submit)
{
	struct submit *s = *submit;

	*submit = NULL;
	if (s == NULL)
		return;
	while (!TAILQ_EMPTY(&s->open))
		unlist(s, TAILQ_FIRST(&s->open));
	free(s);
}
