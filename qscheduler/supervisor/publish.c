#include "qscheduler/supervisor/super.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/io.h"
#include "ipc/ask.h"
#include "ipc/mapping.h"
#include "ipc/names.h"
#include "log/log.h"

bool
publish_is_same(const char *name, int fd)
{
	struct stat ours, theirs;
	int other = shm_open(name, O_RDONLY | O_NONBLOCK, 0);
	bool same;

	if (other < 0)
		return errno == EMFILE || errno == ENFILE || errno == ENOMEM;
	same = fstat(fd, &ours) == 0 && fstat(other, &theirs) == 0 &&
	    ours.st_dev == theirs.st_dev && ours.st_ino == theirs.st_ino;
	io_close(&other);
	return same;
}

static void
set_constants(struct super *s)
{
	struct sched_page *page = s->page;

	page_write_begin(&page->head);
	page->queue_start = s->queue_start;
	page->queue_count = s->queue_count;
	page->queue_max = s->queue_max;
	page->dynamic = s->options.mode == MODE_DYNAMIC;
	page->qmails_uid = s->users.qmails;
	page_write_end(&page->head, clock_mono(), clock_wall());
}

/* 0; without a segment the page is memory of our own, so that nothing else
 * has to know. */
int
publish_open(struct super *s, uint32_t *ret_pid)
{
	const struct page_owner owner = { (uid_t)-1, (gid_t)-1, 0644 };
	char name[IPC_NAME_MAX];
	void *page = NULL;
	int r;

	ipc_name_scheduler(s->instance, name);
	s->page_fd = -1;
	r = page_create(name, sizeof(*s->page), SCHED_PAGE_MAGIC, &owner, &page,
	    &s->page_fd, ret_pid);
	if (r == -EBUSY)
		return r;
	if (r < 0) {
		s->page_fd = -1;
		log_error("ALERT: shared memory %s: %s: nothing is published",
		    name, strerror(-r));
		page = calloc(1, sizeof(*s->page));
		if (page == NULL)
			return -ENOMEM;
	}
	s->page = page;
	set_constants(s);
	return 0;
}

static void
forget(struct super *s)
{
	void *page = s->page;

	if (s->page_fd >= 0)
		page_unmap(&page, sizeof(*s->page));
	else
		free(page);
	io_close(&s->page_fd);
	s->page = NULL;
}

void
publish_close(struct super *s)
{
	char name[IPC_NAME_MAX];

	if (s->page == NULL)
		return;
	ipc_name_scheduler(s->instance, name);
	if (s->page_fd >= 0 && publish_is_same(name, s->page_fd))
		(void)shm_unlink(name);
	forget(s);
}

static usec_t
shown_time(usec_t at)
{
	return at == USEC_NEVER ? 0 : at;
}

static void
show_closing(struct sched_row *row, const struct queue *q)
{
	if (row->state != QUEUE_STATE_CLOSING)
		return;
	row->until_mono = shown_time(retire_gives_at(q));
	memcpy(row->reason, q->retire.why, sizeof(row->reason));
	if (q->retire.step == RETIRE_GIVING)
		row->flags |= SCHED_ROW_GIVING;
}

static void
fill_row(struct sched_row *row, const struct queue *q, usec_t now)
{
	const struct child *send = &q->children[ROLE_QUEUE_SEND];
	uint64_t restarts = 0;
	int role;

	for (role = 0; role < NROLES; role++)
		restarts += q->children[role].proc.restarts;
	*row = (struct sched_row){
		.queue = q->number,
		.state = queue_state(q, now),
		.generation = q->generation + q->changes,
		.pid = (uint32_t)send->process.pid,
		.restarts =
		    restarts > UINT32_MAX ? UINT32_MAX : (uint32_t)restarts,
		.load_pct = q->seen.load_pct,
		.last_status = q->last_status,
		.reported_load_pct = q->reported_load_pct,
	};
	snprintf(row->reason, sizeof(row->reason), "%.*s",
	    (int)sizeof(row->reason) - 1, queue_reason(q));
	if (row->state == QUEUE_STATE_QUARANTINED)
		row->until_mono = quarantine_until(q, now);
	show_closing(row, q);
	if (row->state == QUEUE_STATE_QUARANTINED)
		row->until_mono = quarantine_until(q, now);
	hand_show(q, now, row);
}

static void
fill_grow(struct sched_page *page, const struct super *s)
{
	const struct grow *g = &s->grow;

	page->threshold_pct = s->conf->queue_load_pct;
	page->mean_load_pct = g->figures.mean_pct;
	page->held_count = g->held;
	page->held_until_mono = shown_time(g->held_until);
	page->changes = g->changes;
	page->change_wall = g->change_wall;
	memcpy(page->change, g->change, sizeof(page->change));
}

void
publish(struct super *s, usec_t now)
{
	struct sched_page *page = s->page;
	uint32_t i, open = 0;

	page_write_begin(&page->head);
	for (i = 0; i < s->nqueues; i++) {
		const struct sched_row *row = &page->rows[i];

		fill_row(&page->rows[i], s->queues[i], now);
		if (row->state == QUEUE_STATE_OPEN)
			open++;
		objects_show_shut(s->queues[i],
		    row->state == QUEUE_STATE_CLOSING ||
			row->state == QUEUE_STATE_DISABLED);
	}
	for (; i < PAGE_QUEUES_MAX; i++)
		page->rows[i] = (struct sched_row){ 0 };
	page->qcount = open;
	page->qconf = s->nqueues_disk;
	page->bad_requests = s->bad_requests;
	fill_grow(page, s);
	page_write_end(&page->head, now, clock_wall());
}

/* Looked at through our own descriptor: a fault of the mapping alone shows
 * when the page is written. */
static bool
is_whole(const struct super *s, const char **ret_why)
{
	*ret_why = "was cut off";
	return !mapping_is_lost(s->page) &&
	    page_check(
		s->page_fd, sizeof(*s->page), SCHED_PAGE_MAGIC, ret_why) == 0;
}

void
publish_tick(struct super *s)
{
	const char *why = "cannot be looked at";
	struct page_head *head = &s->page->head;
	char name[IPC_NAME_MAX];

	if (s->page_fd < 0)
		return;
	ipc_name_scheduler(s->instance, name);
	if (!is_whole(s, &why)) {
		if (log_due(clock_mono(), SUPER_HEALTH, &s->page_complained))
			log_warning("shared memory %s %s", name, why);
		publish_health(s);
		if (is_whole(s, &why))
			s->page_complained = 0;
	} else if (!page_is_own(head, sizeof(*s->page), SCHED_PAGE_MAGIC)) {
		log_warning(
		    "shared memory %s was written over: put right", name);
		page_mend(head, sizeof(*s->page), SCHED_PAGE_MAGIC);
		set_constants(s);
	}
}

void
publish_health(struct super *s)
{
	struct sched_page *old = s->page;
	const int old_fd = s->page_fd;
	const char *why;
	char name[IPC_NAME_MAX];
	uint32_t pid;

	ipc_name_scheduler(s->instance, name);
	if (old_fd >= 0 && is_whole(s, &why) && publish_is_same(name, old_fd))
		return;
	if (publish_open(s, &pid) < 0 || s->page_fd < 0) {
		/* What we have serves as well as before. */
		if (s->page != old)
			free(s->page);
		s->page = old;
		s->page_fd = old_fd;
		return;
	}
	publish(s, clock_mono());
	log_info("shared memory %s: made again", name);
	if (old_fd >= 0) {
		void *page = old;
		int fd = old_fd;

		page_unmap(&page, sizeof(*old));
		io_close(&fd);
	} else {
		free(old);
	}
}

void
publish_answer(
    struct super *s, uint32_t pid, uint32_t nonce, int code, const char *text)
{
	page_write_begin(&s->page->head);
	ask_answer(s->page, pid, nonce, code, text);
	page_write_end(&s->page->head, clock_mono(), clock_wall());
}
