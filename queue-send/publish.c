#include "queue-send/agents/agents.h"

#include <unistd.h>

#include "base/io.h"
#include "ipc/ask.h"
#include "ipc/mapping.h"
#include "log/log.h"
#include "queue-send/message/path.h"
#include "queue-send/control.h"
#include "queue-send/evacuation/evacuation.h"

/* Injectors go by the page for as long: a burst must not all go to the queue
 * that was idle when it began. */
#define PUBLISH_EVERY (USEC_PER_SEC / 10)
#define PUBLISH_IDLE  (5 * USEC_PER_SEC)
#define LOAD_EVERY    (10 * USEC_PER_SEC)

static void
unmap(struct send *s)
{
	void *page = s->pub.page;

	if (page != NULL)
		page_unmap(&page, sizeof(struct queue_page));
	s->pub.page = NULL;
}

int
publish_linked(void *send, int fd)
{
	struct send *s = send;
	void *page;
	int r =
	    page_map(fd, sizeof(struct queue_page), QUEUE_PAGE_MAGIC, &page);

	if (r < 0)
		return r;
	io_close(&fd);
	unmap(s);
	s->pub.page = page;
	page_own(&s->pub.page->head);
	s->pub.self = getpid();
	s->pub.published_at = 0;
	s->pub.changed = true;
	return 0;
}

int
publish_requests_linked(void *send, int fd)
{
	struct send *s = send;

	io_close(&s->pub.requests);
	s->pub.requests = fd;
	return 0;
}

/* All process limits together are far below INT32_MAX. */
static void
fill_load(const struct send *s, struct queue_page *page)
{
	const struct conf_transport *t = s->conf->transports;
	int32_t used[2] = { 0 }, limit[2] = { 0 }, busiest = 0;
	uint32_t i;

	for (i = 0; i < s->conf->ntransports; i++, t++) {
		const int32_t running =
		    (int32_t)sched_transport_running(s->sched, i);
		const int32_t most = (int32_t)t->sched.process_limit;
		int local = agent_kinds[t->kind].program == AGENT_PROGRAM_LOCAL;

		used[local] += running;
		limit[local] += most;
		if (running * 100 / most > busiest)
			busiest = running * 100 / most;
	}
	page->local_used = used[1];
	page->remote_used = used[0];
	page->local_limit = limit[1];
	page->remote_limit = limit[0];
	page->busiest_pct = busiest;
}

static void
fill_backlog(struct send *s, struct queue_page *page)
{
	usec_t oldest;

	page->maildrop = s->todo_counts.maildrop;
	page->incoming = send_is_evacuating(s) ? evacuate_incoming(s)
					       : s->todo_counts.incoming;
	page->active = (uint64_t)s->active + s->removals.count; /* files */
	page->deferred = s->due.count - s->due.untried;
	page->untried = s->due.untried;
	page->hold = s->walks[WALK_HOLD].count;
	page->corrupt = s->walks[WALK_CORRUPT].count;
	page->active_recipients = sched_figures(s->sched).recipients;
	ages_read(&s->ages, s->now_wall, page->age, &oldest);
	page->oldest_wall = oldest;
}

static void
fill_counters(struct send *s, struct queue_page *page)
{
	const struct send_counters *c = &s->counters;
	const struct msg_COUNTS *t = &s->todo_counts;

	page->accepted = c->accepted;
	page->delivered = c->delivered;
	page->deferred_total = c->deferred;
	page->failed = c->failed;
	page->expired = c->expired;
	page->bytes_delivered = c->bytes_delivered;
	page->io_errors = s->health.errors;
	page->rings = t->rings;
	page->rings_bad = t->rings_bad;
	page->rings_stale = t->rings_stale;
	page->found_by_scan = t->found_by_scan;
	page->lost_rings = t->lost_rings;
	page->scan_only = t->scan_only;
	page->read_only = s->health.read_only;
	page->rate_in = rate_read(&s->rate_in, s->now);
	page->rate_out = rate_read(&s->rate_out, s->now);
}

void
publish_fill(struct send *s, struct queue_page *page)
{
	page->queue = s->sp.queue;
	fill_load(s, page);
	fill_backlog(s, page);
	fill_counters(s, page);
	late_fill(s, page);
}

/* Nothing depends on it: the supervisor reads the pages, too. */
static void
report_load(struct send *s)
{
	uint32_t load = queue_page_load(s->pub.page);
	const struct load_report report = {
		.pid = (int32_t)s->pub.self,
		.queue = s->sp.queue,
		.load_pct = load,
	};

	if (s->pub.requests < 0 || load < s->conf->queue_load_pct ||
	    (s->pub.reported_at != 0 &&
		s->now - s->pub.reported_at < LOAD_EVERY))
		return;
	s->pub.reported_at = s->now;
	(void)load_report_put((mqd_t)s->pub.requests, &report);
}

static void
publish(struct send *s)
{
	struct queue_page *page = s->pub.page;

	page_write_begin(&page->head);
	publish_fill(s, page);
	page_write_end(&page->head, s->now, s->now_wall);
	s->pub.published_at = s->now;
	s->pub.changed_at = 0;
	s->pub.changed = false;
	report_load(s);
}

static void
give_up(struct send *s, const char *what)
{
	log_warning("the shared memory of this queue was %s: "
		    "nothing is published until there is another one",
	    what);
	unmap(s);
}

/* False: there is no page, and the supervisor makes another one. */
static bool
has_page(struct send *s)
{
	if (s->pub.page != NULL && mapping_is_lost(s->pub.page))
		give_up(s, "cut off");
	return s->pub.page != NULL;
}

static bool
is_own(struct send *s)
{
	struct page_head *head = &s->pub.page->head;

	if (page_is_own(
		head, sizeof(*s->pub.page), QUEUE_PAGE_MAGIC, s->pub.self))
		return true;
	head->magic = 0; /* for the supervisor to see */
	give_up(s, "written over");
	return false;
}

/* A message that has gone a moment later is published once, not as it comes and
 * again as it goes. */
static usec_t
due_at(struct send *s)
{
	struct publisher *p = &s->pub;
	const bool busy = s->active > 0 || s->removals.count > 0;

	if (!p->changed)
		return p->published_at + PUBLISH_IDLE;
	if (p->changed_at == 0)
		p->changed_at = s->now;
	return (busy && p->published_at > 0 ? p->changed_at : p->published_at) +
	    PUBLISH_EVERY;
}

usec_t
publish_work(struct send *s)
{
	usec_t at;

	if (!has_page(s))
		return USEC_NEVER;
	at = due_at(s);
	if (s->now < at)
		return at;
	if (!is_own(s))
		return USEC_NEVER;
	publish(s);
	return s->now + PUBLISH_IDLE;
}

void
publish_done(struct send *s)
{
	unmap(s);
	io_close(&s->pub.requests);
}
