#include "queue-inject/submit.h"

#include "queue-inject/choose.h"
#include "queue-inject/through_door.h"

#include "base/clock.h"
#include "ipc/bell.h"
#include "spool/received.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <unistd.h>

#define OPEN_SPOOLS_MAX 32 /* about ten descriptors each */

/* A queue whose directories are open. */
struct handle {
	TAILQ_ENTRY(handle) link;
	struct spool spool;
};
TAILQ_HEAD(handle_list, handle);

struct submit {
	const struct conf *conf;
	const struct spool_sys *sys;
	struct choose_reader reader;
	struct queue_facts facts;
	usec_t judged_mono; /* when the facts were read */
	bool judged, disk;  /* they were; they have the directories too */
	uint32_t turn;

	struct handle_list open; /* the one used last is first */
	size_t nopen;

	size_t row;            /* in facts, of the queue that is written to */
	struct handle *handle; /* of that queue; NULL: nothing is begun */
	struct accept accept;
	bool by_door; /* `door` takes the message instead of `accept` */
	struct through_door door;
	uint64_t content_len; /* without what was added here */
	char reason[160];
};

/* ---- what is known ---- */

static int
read_sched(void *arg, struct sched_page *ret_page)
{
	const struct submit *s = arg;

	return sched_page_read(s->conf->instance, ret_page);
}

static int
read_queue(void *arg, uint32_t queue, struct queue_page *ret_page)
{
	const struct submit *s = arg;

	return queue_page_read(s->conf->instance, queue, ret_page);
}

static void
judge(struct submit *s)
{
	usec_t now = clock_mono();

	if (s->judged && now - s->judged_mono < SUBMIT_KNOWN)
		return;
	choose_judge(&s->reader, now, &s->facts);
	s->judged = true;
	s->judged_mono = now;
	s->disk = false;
}

static const char *
error_text(int error)
{
	return error == -ESHUTDOWN ? "the queue is being closed"
				   : strerror(-error);
}

/* The queue directories that are not closed; -ESHUTDOWN: all are. */
static int
list_open(const struct submit *s, uint32_t queues[PAGE_QUEUES_MAX])
{
	const char *base = s->conf->queue_base;
	int all = spool_list(base, queues, PAGE_QUEUES_MAX), n = 0, i;

	for (i = 0; i < all; i++)
		if (!spool_is_closed_at(base, queues[i]))
			queues[n++] = queues[i];
	if (all > 0 && n == 0)
		return -ESHUTDOWN;
	return all < 0 ? all : n;
}

/* When shared memory names no queue that takes the message: the directories.
 * False: they were looked at already. */
static bool
judge_disk(struct submit *s)
{
	uint32_t queues[PAGE_QUEUES_MAX];
	int n;

	if (s->disk || s->facts.shut)
		return false;
	s->disk = true;
	n = list_open(s, queues);
	if (n < 0)
		snprintf(s->reason, sizeof(s->reason), "%s: %s",
		    s->conf->queue_base, error_text(n));
	if (n > 0)
		choose_add_disk(
		    &s->facts, queues, (size_t)n, &s->reader, clock_mono());
	return n > 0;
}

/* ---- open queue directories ---- */

static void
close_handle(struct submit *s, struct handle *h)
{
	TAILQ_REMOVE(&s->open, h, link);
	s->nopen--;
	spool_close(&h->spool);
	free(h);
}

static struct handle *
find_handle(struct submit *s, uint32_t queue)
{
	struct handle *h;

	TAILQ_FOREACH (h, &s->open, link)
		if (h->spool.queue == queue)
			return h;
	return NULL;
}

static int
open_handle(struct submit *s, uint32_t queue, struct handle **ret_handle)
{
	struct handle *h = find_handle(s, queue);
	int r;

	if (h != NULL) {
		TAILQ_REMOVE(&s->open, h, link);
		TAILQ_INSERT_HEAD(&s->open, h, link);
		*ret_handle = h;
		return 0;
	}
	if (s->nopen >= OPEN_SPOOLS_MAX)
		close_handle(s, TAILQ_LAST(&s->open, handle_list));
	h = calloc(1, sizeof(*h));
	if (h == NULL)
		return -ENOMEM;
	r = spool_open(&h->spool, s->sys, s->conf->queue_base, queue);
	if (r < 0) {
		spool_close(&h->spool);
		free(h);
		return r;
	}
	TAILQ_INSERT_HEAD(&s->open, h, link);
	s->nopen++;
	*ret_handle = h;
	return 0;
}

/* ---- one message ---- */

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
	TAILQ_INIT(&s->open);
	*ret_submit = s;
	return 0;
}

static void
drop_message(struct submit *s)
{
	if (s->handle != NULL && s->by_door) {
		snprintf(s->reason, sizeof(s->reason), "%s", s->door.reason);
		through_door_end(&s->door);
	} else if (s->handle != NULL)
		accept_end(&s->accept);
	s->handle = NULL;
	s->by_door = false;
}

void
submit_free(struct submit **submit)
{
	struct submit *s = *submit;

	*submit = NULL;
	if (s == NULL)
		return;
	drop_message(s);
	while (!TAILQ_EMPTY(&s->open))
		close_handle(s, TAILQ_FIRST(&s->open));
	free(s);
}

static uint64_t
max_content(const struct conf *conf)
{
	uint64_t limit = conf->message_size_limit;

	return limit == 0 ? 0 : limit + ACCEPT_ADDED_MAX;
}

static int
begin_in(struct submit *s, struct handle *h, const struct submit_origin *origin)
{
	const struct accept_options opt = {
		.dir = SPOOL_INCOMING,
		.max_content = max_content(s->conf),
		.reserve_bytes = s->conf->queue_minfree_bytes,
		.reserve_inodes = s->conf->queue_minfree_inodes,
		.announced = origin->announced,
		.strict = s->conf->strict_sync,
	};
	int r;

	if (h->spool.dir[SPOOL_INCOMING] < 0)
		return -EACCES;
	r = accept_begin(
	    &s->accept, &h->spool, &opt, clock_wall(), origin->uid);
	if (r < 0)
		accept_end(&s->accept);
	else
		s->handle = h;
	s->content_len = 0;
	return r;
}

static int
put_received(struct submit *s, const struct submit_origin *origin)
{
	char line[RECEIVED_MAX];
	int n = received_format(&s->accept, origin->host, origin->eol, line);

	return n < 0 ? n : submit_added(s, line, (size_t)n);
}

/* What this process may not write itself. */
static int
begin_door(struct submit *s, struct handle *h)
{
	int r = through_door_begin(&s->door, s->conf, h->spool.queue);

	s->handle = h;
	s->by_door = true;
	s->content_len = 0;
	return r == -ENOENT ? -EACCES : r;
}

static int
begin_row(struct submit *s, const struct submit_origin *origin)
{
	struct handle *h;
	int r = open_handle(s, s->facts.rows[s->row].queue, &h);

	if (r < 0)
		return r;
	r = begin_in(s, h, origin);
	if (r == -EACCES || r == -EPERM)
		return begin_door(s, h);
	return r < 0 ? r : put_received(s, origin);
}

/* Note it against the queue; its directories are opened anew next time. */
static void
queue_failed(struct submit *s, int error)
{
	struct queue_fact *fact = &s->facts.rows[s->row];
	struct handle *h = find_handle(s, fact->queue);
	const bool by_door = s->by_door;

	drop_message(s);
	fact->failed = true;
	if (!by_door)
		snprintf(s->reason, sizeof(s->reason), "queue%u: %s%s",
		    fact->queue, error_text(error),
		    error == -ENOSPC ? " beyond queue_minfree_bytes and _inodes"
				     : "");
	if (h != NULL)
		close_handle(s, h);
}

/* Queues in turn until one can be begun. */
static int
begin_somewhere(struct submit *s, const struct submit_origin *origin, int error)
{
	for (;;) {
		int i = choose_queue(&s->facts, s->turn);

		if (i < 0 && judge_disk(s))
			continue;
		if (i < 0)
			return s->facts.shut && error == -ENOENT ? -EAGAIN
								 : error;
		s->row = (size_t)i;
		error = begin_row(s, origin);
		if (error == 0)
			return 0;
		queue_failed(s, error);
	}
}

int
submit_begin(struct submit *s, const struct submit_origin *origin)
{
	int r;

	ASSERT(s->handle == NULL);
	judge(s);
	s->turn++;
	snprintf(s->reason, sizeof(s->reason), "no queue in %s",
	    s->conf->queue_base);
	if (s->facts.shut)
		snprintf(s->reason, sizeof(s->reason),
		    "all queues are closing or disabled");
	r = begin_somewhere(s, origin, -ENOENT);
	/* What failed now may be well the next time. */
	if (r < 0)
		s->judged = false;
	return r;
}

int
submit_again(struct submit *s, int error, const struct submit_origin *origin)
{
	static const int elsewhere[] = { -ENOSPC, -EDQUOT, -EROFS, -ENOENT,
		-EACCES, -EPERM, -ESHUTDOWN };
	size_t i;

	for (i = 0; i < ARRAY_LEN(elsewhere); i++)
		if (error == elsewhere[i])
			return begin_somewhere(s, origin, error);
	return error;
}

int
submit_content(struct submit *s, const void *data, size_t len)
{
	uint64_t limit = s->conf->message_size_limit;

	if (limit != 0 && len > limit - s->content_len)
		return -EFBIG;
	s->content_len += len;
	return submit_added(s, data, len);
}

int
submit_added(struct submit *s, const void *data, size_t len)
{
	if (s->by_door)
		return through_door_content(&s->door, data, len);
	return accept_content(&s->accept, data, len);
}

int
submit_sender(struct submit *s, const char *address, size_t len)
{
	if (s->by_door)
		return through_door_sender(&s->door, address, len);
	return queue_file_add_sender(&s->accept.writer, address, len);
}

int
submit_rcpt(struct submit *s, const char *address, size_t len)
{
	if (s->by_door)
		return through_door_rcpt(&s->door, address, len);
	return queue_file_add_rcpt(&s->accept.writer, address, len);
}

/* With a full active queue each file in incoming/ is one too many. */
usec_t
submit_pause(const struct submit *s)
{
	const struct queue_fact *fact = &s->facts.rows[s->row];

	if (fact->incoming == 0 || fact->active < s->conf->message_active_limit)
		return 0;
	return s->conf->in_flow_delay;
}

/* A hint; the message is found without it. */
static void
ring(const struct submit *s, const struct queue_id *id)
{
	const struct bell bell = {
		.pid = (int32_t)getpid(),
		.split = (uint32_t)(id->inode % s->handle->spool.split),
		.inode = id->inode,
	};

	(void)bell_ring(s->conf->instance, id->queue, &bell);
}

int
submit_commit(struct submit *s, struct queue_id *ret_id)
{
	int r = s->by_door ? through_door_commit(&s->door, ret_id)
			   : accept_commit(&s->accept, ret_id);
	const bool by_door = s->by_door;

	if (r < 0)
		return r;
	if (!by_door)
		accept_end(&s->accept);
	if (!by_door)
		ring(s, ret_id);
	if (by_door)
		drop_message(s);
	s->handle = NULL;
	s->facts.rows[s->row].backlog++;
	return 0;
}

void
submit_abort(struct submit *s, int error)
{
	if (error == 0)
		drop_message(s);
	else
		queue_failed(s, error);
	s->judged &= error == 0;
}

const char *
submit_reason(const struct submit *s)
{
	return s->reason;
}
