#include "qscheduler/queues/queues.h"

#include <inttypes.h>

#include "base/num.h"
#include "ipc/page_text.h"
#include "log/log.h"

/* The disk has answered at once for so long: the lateness is over. */
#define STEADY (5 * USEC_PER_SEC)

static void
log_lateness(const struct queue *q, const char *begin, const char *what,
    usec_t span, const char *end)
{
	struct buf text = { 0 };

	(void)num_add_span(&text, span);
	log_warning("queue %" PRIu32 ": %s/queue%" PRIu32 ": %s%s %s%s",
	    q->number, q->all->instance->conf->queue_base, q->number, begin,
	    what, buf_str(&text), end);
	buf_done(&text);
}

static void
begins(struct queue *q, usec_t now)
{
	struct queue_late *l = &q->late;

	l->told = true;
	l->since = now - l->time;
	/* The check says whether the disk answers at all. */
	if (q->check_at > now)
		q->check_at = now;
	log_lateness(q, "late: ", page_text_work(l->work), l->time,
	    "; new mail goes to other queues while one takes mail");
}

static void
goes_on_well(struct queue *q, usec_t now)
{
	struct queue_late *l = &q->late;

	if (l->well_since == 0)
		l->well_since = now;
	if (now - l->well_since < STEADY)
		return;
	l->told = false;
	log_lateness(q, "", "the disk answers again, after",
	    l->well_since - l->since, "");
}

void
queue_note_late(struct queue *q, const struct queue_page *page, usec_t now)
{
	struct queue_late *l = &q->late;
	/* The page of a process that has ended says nothing of the disk. */
	const usec_t late =
	    page != NULL && page->queue == q->number && queue_hears(q)
	    ? queue_page_disk_late(page, now)
	    : 0;

	l->time = late >= DISK_LATE ? late : 0;
	if (l->time > 0) {
		l->work = page->disk_work;
		l->well_since = 0;
	}
	if (l->time > 0 && !l->told)
		begins(q, now);
	else if (l->time == 0 && l->told)
		goes_on_well(q, now);
}
