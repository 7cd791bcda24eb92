#include "qscheduler/supervisor/supervisor.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/io.h"
#include "ipc/ask.h"
#include "ipc/mapping.h"
#include "ipc/names.h"
#include "ipc/page_text.h"
#include "ipc/shm.h"
#include "log/log.h"

static void
set_constants(struct super *s)
{
	struct sched_page *page = s->publisher.page;

	page_write_begin(&page->head);
	page->queue_start = s->queues.start;
	page->queue_count = s->queues.count;
	page->queue_max = s->queues.max;
	page->dynamic = s->options.mode == MODE_DYNAMIC;
	page->qmails_uid = s->instance.users.qmails;
	page_write_end(&page->head, clock_mono(), clock_wall());
}

/* Without a segment the page is memory of our own, so that no caller has to
 * know. */
int
publish_open(struct super *s, uint32_t *ret_pid)
{
	const struct page_owner owner = { (uid_t)-1, (gid_t)-1, 0644 };
	char name[IPC_NAME_MAX], text[SHM_TEXT_SIZE];
	void *page = NULL;
	int r;

	ipc_name_scheduler(s->instance.name, name);
	s->publisher.fd = -1;
	r = page_create(name, sizeof(*s->publisher.page), SCHED_PAGE_MAGIC,
	    &owner, &page, &s->publisher.fd, ret_pid);
	if (r == -EBUSY)
		return r;
	if (r < 0) {
		s->publisher.fd = -1;
		log_error("ALERT: shared memory %s: %s: qtop and "
			  "\"setqload --list\" find no queues; tried again "
			  "every minute",
		    name, shm_describe(r, text));
		page = calloc(1, sizeof(*s->publisher.page));
		if (page == NULL)
			return -ENOMEM;
	}
	s->publisher.page = page;
	set_constants(s);
	return 0;
}

static void
forget(struct super *s)
{
	void *page = s->publisher.page;

	if (s->publisher.fd >= 0)
		page_unmap(&page, sizeof(*s->publisher.page));
	else
		free(page);
	io_close(&s->publisher.fd);
	s->publisher.page = NULL;
}

void
publish_close(struct super *s)
{
	char name[IPC_NAME_MAX];

	if (s->publisher.page == NULL)
		return;
	ipc_name_scheduler(s->instance.name, name);
	if (s->publisher.fd >= 0 && segment_is_same(name, s->publisher.fd))
		(void)shm_unlink(name);
	forget(s);
}

static usec_t
shown_time(usec_t at)
{
	return at == USEC_NEVER ? 0 : at;
}

static void
show_draining(struct sched_row *row, const struct queue *q)
{
	if (row->state != QUEUE_STATE_CLOSING)
		return;
	row->until_mono = shown_time(retirement_evacuates_at(q));
	memcpy(row->reason, q->retirement.why, sizeof(row->reason));
	if (q->retirement.step == RETIRE_EVACUATING)
		row->flags |= SCHED_ROW_EVACUATING;
}

static void
show_late(struct sched_row *row, const struct queue *q)
{
	if (q->late.time == 0)
		return;
	row->flags |= SCHED_ROW_LATE;
	if (row->state == QUEUE_STATE_OPEN && row->reason[0] == '\0')
		snprintf(row->reason, sizeof(row->reason),
		    "disk late for %" PRId64 " s (%s)",
		    q->late.time / USEC_PER_SEC, page_text_kind(q->late.work));
}

/* A child that hangs is shown before its time is over. */
static void
show_silent(struct sched_row *row, const struct queue *q)
{
	unsigned i;

	for (i = 0; i < q->group.n; i++) {
		const struct child *c = &q->group.child[i];
		const unsigned ticks = heartbeat_silence(c);

		if (ticks == 0)
			continue;
		row->flags |= SCHED_ROW_SILENT;
		if (row->state == QUEUE_STATE_OPEN && row->reason[0] == '\0')
			snprintf(row->reason, sizeof(row->reason),
			    "%s has given no sign of life for %u s", c->name,
			    ticks);
	}
}

/* The file system takes no new mail; what was accepted is delivered. */
static void
show_room(struct sched_row *row, const struct queue *q)
{
	const struct base_room *room = &q->room;

	if (room->error == 0)
		return;
	row->flags |= room->error == -EROFS || room->error == -EIO
	    ? SCHED_ROW_READ_ONLY
	    : SCHED_ROW_FULL;
	if (row->state == QUEUE_STATE_OPEN && row->reason[0] == '\0')
		room_shorten(room->text, row->reason, sizeof(row->reason));
}

static void
fill_row(struct sched_row *row, const struct queue *q, usec_t now)
{
	const struct child *send = &q->group.child[ROLE_QUEUE_SEND];
	uint64_t restarts = 0;
	unsigned i;

	for (i = 0; i < q->group.n; i++)
		restarts += q->group.child[i].proc.restarts;
	*row = (struct sched_row){
		.queue = q->number,
		.state = queue_state(q, now),
		.generation = q->group.generation + q->changes,
		.pid = (uint32_t)send->process.pid,
		.restarts =
		    restarts > UINT32_MAX ? UINT32_MAX : (uint32_t)restarts,
		.load_pct = q->seen.load_pct,
		.last_status = q->last_status,
		.reported_load_pct = q->reported_load_pct,
	};
	queue_show_reason(q, row->reason);
	if (row->state == QUEUE_STATE_QUARANTINED)
		row->until_mono = quarantine_until(q, now);
	show_draining(row, q);
	if (row->state == QUEUE_STATE_QUARANTINED)
		row->until_mono = quarantine_until(q, now);
	override_show(q, now, row);
	show_room(row, q);
	show_late(row, q);
	show_silent(row, q);
}

static void
fill_grow(struct sched_page *page, const struct super *s, uint32_t mean_pct)
{
	const struct grow *g = &s->grow;

	page->threshold_pct = s->instance.conf->queue_load_pct;
	page->mean_load_pct = mean_pct;
	page->held_until_mono =
	    shown_time(grow_count_by_hand(s, &page->held_count));
	page->changes = g->changes;
	page->change_wall = g->change_wall;
	memcpy(page->change, g->change, sizeof(page->change));
	memcpy(page->conf_error, s->reload.error, sizeof(page->conf_error));
}

void
publish(struct super *s, usec_t now)
{
	struct sched_page *page = s->publisher.page;
	const uint32_t mean_pct = grow_mean_pct(s, now);
	uint32_t i, open = 0;

	page_write_begin(&page->head);
	for (i = 0; i < s->queues.nqueues; i++) {
		const struct sched_row *row = &page->rows[i];

		fill_row(&page->rows[i], s->queues.queues[i], now);
		if (row->state == QUEUE_STATE_OPEN)
			open++;
		objects_show_shut(s->queues.queues[i],
		    row->state == QUEUE_STATE_CLOSING ||
			row->state == QUEUE_STATE_DISABLED);
	}
	for (; i < PAGE_QUEUES_MAX; i++)
		page->rows[i] = (struct sched_row){ 0 };
	page->qcount = open;
	page->qconf = s->queues.nqueues_disk;
	page->bad_requests = s->requests.bad;
	fill_grow(page, s, mean_pct);
	page_write_end(&page->head, now, clock_wall());
}

/* Read through our own descriptor: a fault of the mapping alone shows when the
 * page is written. */
static bool
is_whole(const struct super *s, const char **ret_why)
{
	*ret_why = "was cut off";
	return !mapping_is_lost(s->publisher.page) &&
	    page_check(s->publisher.fd, sizeof(*s->publisher.page),
		SCHED_PAGE_MAGIC, ret_why) == 0;
}

void
publish_tick(struct super *s)
{
	const char *why = "cannot be checked";
	struct page_head *head = &s->publisher.page->head;
	char name[IPC_NAME_MAX];

	if (s->publisher.fd < 0)
		return;
	ipc_name_scheduler(s->instance.name, name);
	if (!is_whole(s, &why)) {
		if (log_due(
			clock_mono(), EVERY_HEALTH, &s->publisher.complained))
			log_warning("shared memory %s %s", name, why);
		publish_health(s);
		if (is_whole(s, &why))
			s->publisher.complained = 0;
	} else if (!page_is_own(head, sizeof(*s->publisher.page),
		       SCHED_PAGE_MAGIC, getpid())) {
		log_warning(
		    "shared memory %s was written over: put right", name);
		page_mend(head, sizeof(*s->publisher.page), SCHED_PAGE_MAGIC);
		set_constants(s);
	}
}

void
publish_health(struct super *s)
{
	struct sched_page *old = s->publisher.page;
	const int old_fd = s->publisher.fd;
	const char *why;
	char name[IPC_NAME_MAX];
	uint32_t pid;

	ipc_name_scheduler(s->instance.name, name);
	if (old_fd >= 0 && is_whole(s, &why) && segment_is_same(name, old_fd))
		return;
	if (publish_open(s, &pid) < 0 || s->publisher.fd < 0) {
		/* The page that we have serves as before. */
		if (s->publisher.page != old)
			free(s->publisher.page);
		s->publisher.page = old;
		s->publisher.fd = old_fd;
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
publish_answer(struct super *s, struct asker *asker, int code, const char *text)
{
	struct sched_answer answer = { asker->pid, asker->nonce, code, "" };
	const int fd =
	    asker->socket >= 0 ? asker->socket : s->requests.socket.fd;

	snprintf(answer.text, sizeof(answer.text), "%s", text);
	ask_socket_answer(fd, &asker->to, &answer);
	io_close(&asker->socket);
}

void
publish_warnings(struct buf *lines)
{
	char *rest = lines->data, *line;

	while ((line = strsep(&rest, "\n")) != NULL)
		if (*line != '\0')
			log_warning("%s", line);
	buf_done(lines);
}
