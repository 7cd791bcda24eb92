#include "queue-send/message/fetch.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "agent/agent.h"
#include "base/io.h"
#include "queue-send/message/path.h"

#define CHUNK       65536
#define RANGES      2
#define FETCHES_MAX 64 /* under way; each may have a descriptor */
/* Behind that the kernel may have taken the memory of a file for another. */
#define READ_LATELY USEC_PER_SEC

struct range {
	uint64_t off, len;
};

struct fetch {
	struct sync_task task; /* first; its inode is the message's */
	const struct spool *sp;
	usec_t arrival_wall;
	uint8_t nonce;
	bool batch; /* recipients that come next, not an entry */
	struct range ranges[RANGES]; /* to be read */
	int fd;                      /* opened by the thread, or -1 */
};

/* An entry that waits for its message. */
struct fetch_wait {
	STAILQ_ENTRY(fetch_wait) link;
	struct sched_entry *entry;
	void (*go_on)(struct send *s, struct sched_entry *e, const char *why);
	bool has_why;
	char why[SITE_WHY_MAX];
};

/* ---- in a thread ---- */

static void
read_range(const struct spool_sys *sys, int fd, const struct range *r)
{
	char part[CHUNK / 2];
	uint64_t done;
	ssize_t n;

	for (done = 0; done < r->len; done += (uint64_t)n) {
		const uint64_t left = r->len - done;

		n = sys->pread(fd, part,
		    left < sizeof(part) ? left : sizeof(part),
		    (off_t)(r->off + done));
		if (n <= 0)
			return;
	}
}

/* Errors are found by the loop, which meets them when it opens or reads. */
static int
work(struct sync_task *task)
{
	struct fetch *f = (struct fetch *)(void *)task;
	int i;

	f->fd = task->fds[0];
	task->fds[0] = -1; /* the message may have closed its own meanwhile */
	if (f->fd < 0)
		f->fd =
		    spool_open_file(f->sp, SPOOL_ACTIVE, task->inode, O_RDWR);
	for (i = 0; f->fd >= 0 && i < RANGES; i++)
		read_range(f->sp->sys, f->fd, &f->ranges[i]);
	return 0;
}

static void
drop(struct sync_task *task)
{
	io_close(&((struct fetch *)(void *)task)->fd);
}

/* ---- is it in memory? ---- */

static bool
is_there(const struct send *s, int fd, const struct range *r)
{
	static char part[CHUNK];
	const size_t len = r->len < sizeof(part) ? (size_t)r->len : CHUNK;

	return len == 0 ||
	    s->sp.sys->pread_cached(fd, part, len, (off_t)r->off) ==
	    (ssize_t)len;
}

/* Then it is open, too. */
static bool
is_in_memory(
    struct send *s, struct message *m, const struct range ranges[RANGES])
{
	int i;

	if (m->fd < 0) {
		m->fd =
		    spool_open_cached(&s->sp, SPOOL_ACTIVE, m->inode, O_RDWR);
		if (m->fd < 0) {
			m->fd = -1;
			return false;
		}
		messages_rest(&s->messages, m, s->now);
	}
	for (i = 0; i < RANGES; i++)
		if (!is_there(s, m->fd, &ranges[i]))
			return false;
	return true;
}

/* ---- tasks ---- */

static void ended(void *send, struct sync_task *task); /* below */

static int
begin(struct send *s, struct message *m, const struct range ranges[RANGES],
    bool batch)
{
	struct fetch *f = malloc(sizeof(*f));
	int i, r;

	if (f == NULL)
		return -ENOMEM;
	*f = (struct fetch){ .sp = &s->sp,
		.arrival_wall = m->file.arrival_wall,
		.nonce = m->file.nonce,
		.batch = batch,
		.fd = -1 };
	sync_task_init(&f->task, work, drop, ended);
	f->task.inode = m->inode;
	for (i = 0; i < RANGES; i++)
		f->ranges[i] = ranges[i];
	/* The message may close its own. */
	if (m->fd >= 0)
		f->task.fds[0] = fcntl(m->fd, F_DUPFD_CLOEXEC, 0);
	if (m->fd >= 0 && f->task.fds[0] < 0) {
		r = -errno;
		sync_task_free(&f->task);
		return r;
	}
	m->fetching = true;
	s->fetches.tasks++;
	disk_do(s, DISK_READ, &f->task);
	return 0;
}

/* True: a thread has the file; it reads what is wanted and more, unless it is
 * busy with another part. */
static bool
wait_for(struct send *s, struct message *m, const struct range wanted[RANGES],
    const struct range read[RANGES], bool batch)
{
	return m->fetching ||
	    (!is_in_memory(s, m, wanted) && begin(s, m, read, batch) == 0);
}

/* As dispatch.c reads them: the recipients, and the content that goes along. */
static void
ranges_of(const struct message *m, const struct sched_entry *e, size_t ahead,
    struct range ranges[RANGES])
{
	const uint64_t end = m->file.rcpt_off + m->file.rcpt_len;
	const uint64_t off = e->rcpts[0].offset;
	const uint64_t left = m->rcpts == NULL && end > off ? end - off : 0;

	if (end < QUEUE_RCPT_CURSOR_BUF) { /* all before the trailer */
		ranges[0] = (struct range){ 0, end };
		ranges[1] = (struct range){ 0 };
		return;
	}
	ranges[0].off = off;
	ranges[0].len = left < ahead ? left : ahead;
	ranges[1].off = m->file.content_off;
	ranges[1].len =
	    m->file.content_len <= AGENT_WHOLE_MAX ? m->file.content_len : 0;
}

static bool
covers_range(const struct fetch *f, const struct range *r)
{
	int i;

	for (i = 0; i < RANGES; i++) {
		const struct range *has = &f->ranges[i];

		if (r->off >= has->off && r->off - has->off <= has->len &&
		    r->len <= has->len - (r->off - has->off))
			return true;
	}
	return r->len == 0;
}

/* Does the entry go on behind this fetch? */
static bool
covers(const struct fetch *f, const struct range ranges[RANGES])
{
	int i;

	for (i = 0; i < RANGES; i++)
		if (!covers_range(f, &ranges[i]))
			return false;
	return true;
}

/* True: a thread reads the part of the entry, or another one before that. f is
 * what a thread has just read; NULL: nothing. */
static bool
must_wait(struct send *s, const struct sched_entry *e, const struct fetch *f)
{
	struct message *m = e->owner;
	struct range wanted[RANGES], read[RANGES];

	if (m->fate != FATE_OPEN)
		return false;
	ranges_of(m, e, queue_rcpt_ahead(e->nrcpts), wanted);
	ranges_of(m, e, QUEUE_RCPT_CURSOR_BUF, read);
	return (f == NULL || !covers(f, wanted)) &&
	    wait_for(s, m, wanted, read, false);
}

/* Entries of the message go on whose part was read. */
static void
let_go_on(struct send *s, const struct message *m, const struct fetch *f)
{
	struct fetch_waits waits = STAILQ_HEAD_INITIALIZER(waits);
	struct fetch_wait *w;

	STAILQ_CONCAT(&waits, &s->fetches.waits);
	while ((w = STAILQ_FIRST(&waits)) != NULL) {
		STAILQ_REMOVE_HEAD(&waits, link);
		if (w->entry->owner != m || must_wait(s, w->entry, f)) {
			STAILQ_INSERT_TAIL(&s->fetches.waits, w, link);
			continue;
		}
		w->go_on(s, w->entry, w->has_why ? w->why : NULL);
		free(w);
	}
}

static void
take(struct send *s, struct message *m, struct fetch *f)
{
	m->fetching = false;
	if (m->fd < 0 && f->fd >= 0) {
		m->fd = f->fd;
		f->fd = -1;
		messages_rest(&s->messages, m, s->now);
	}
	if (m->state == STATE_FETCHING) {
		m->fetched = f->batch; /* else another part was read */
		messages_put(&s->messages, m, STATE_READING);
	}
	let_go_on(s, m, f);
}

static void
ended(void *send, struct sync_task *task)
{
	struct send *s = send;
	struct fetch *f = (struct fetch *)(void *)task;
	struct message *m = messages_find(&s->messages, task->inode);

	s->fetches.tasks--;
	if (m != NULL && m->fetching &&
	    message_is(m, f->arrival_wall, f->nonce))
		take(s, m, f);
	sync_task_free(task);
}

/* ---- questions ---- */

bool
fetches_are_full(const struct send *s)
{
	return s->fetches.tasks >= FETCHES_MAX;
}

bool
fetch_batch(struct send *s, struct message *m)
{
	const uint64_t end = m->file.rcpt_off + m->file.rcpt_len;
	const uint64_t left = end > m->next ? end - m->next : 0;
	const struct range ranges[RANGES] = { { m->next,
	    left < FETCH_AHEAD ? left : FETCH_AHEAD } };

	if (m->rcpts != NULL || m->fetched || !disk_has_threads(s, DISK_READ)) {
		m->fetched = false;
		return false;
	}
	if (fetches_are_full(s) && !m->fetching)
		return !is_in_memory(s, m, ranges);
	if (!wait_for(s, m, ranges, ranges, true))
		return false;
	messages_put(&s->messages, m, STATE_FETCHING);
	return true;
}

/* Such a file is in memory. */
static bool
was_read_lately(struct send *s, const struct message *m)
{
	return m->fd >= 0 && !m->fetching && !disk_is_slow(s) &&
	    (m->rested_at == 0 || s->now - m->rested_at < READ_LATELY);
}

bool
fetch_entry(struct send *s, struct sched_entry *e, const char *why,
    void (*go_on)(struct send *s, struct sched_entry *e, const char *why))
{
	struct message *m = e->owner;
	struct fetch_wait *w;

	if (!disk_has_threads(s, DISK_READ) || m->fate != FATE_OPEN ||
	    was_read_lately(s, m))
		return false;
	w = malloc(sizeof(*w));
	if (w == NULL || !must_wait(s, e, NULL)) {
		free(w);
		return false;
	}
	w->entry = e;
	w->go_on = go_on;
	w->has_why = why != NULL;
	(void)snprintf(w->why, sizeof(w->why), "%s", why == NULL ? "" : why);
	STAILQ_INSERT_TAIL(&s->fetches.waits, w, link);
	return true;
}

/* ---- start and end ---- */

void
fetch_init(struct send *s)
{
	STAILQ_INIT(&s->fetches.waits);
}

void
fetch_done(struct send *s)
{
	struct fetch_wait *w;

	while ((w = STAILQ_FIRST(&s->fetches.waits)) != NULL) {
		STAILQ_REMOVE_HEAD(&s->fetches.waits, link);
		sched_done(s->sched, w->entry, SITE_UNTRIED, NULL, s->now);
		free(w);
	}
}
