#include "queue-send/message/path.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>

#include "log/log.h"
#include "spool/reason.h"

#define WAITING_MAX      16384
#define BATCH            32
#define REMOVED_PER_TURN 50 /* by the loop */
#define DELAY            (20 * USEC_PER_MSEC)

/* All that a thread reads of it is set before the thread gets it. */
struct removal {
	struct sync_task task; /* first; its inode is the message's */
	RB_ENTRY(removal) by_inode;
	const struct spool *sp;
	struct queue_id id;
	bool defer, bounce; /* reasons may lie there */
	bool reported;      /* bounce/ goes last */
};

static int
compare(const struct removal *a, const struct removal *b)
{
	return (a->id.inode > b->id.inode) - (a->id.inode < b->id.inode);
}

TREE_GENERATE(removal_tree, removal, by_inode, compare)

/* ---- in a thread ---- */

/* The reasons are this message's: no other file gets its inode while this one
 * is open. Of a message that was not reported they go first, since a start
 * removes no reasons of a file that is gone. Of a message that was, bounce/
 * goes last: a failure without a reason would be tried again, and reported
 * again. That holds over a power cut, too: where the file system keeps no order
 * of names (btrfs), the sync of another file may take bounce/ alone, and bring
 * the message back where it was before. */
static int
remove_with_reasons(const struct removal *t)
{
	const uint64_t inode = t->id.inode;
	int r = 0;

	if (t->defer)
		r = reason_clear(t->sp, SPOOL_DEFER, inode);
	if (r == 0 && t->bounce && !t->reported)
		r = reason_clear(t->sp, SPOOL_BOUNCE, inode);
	if (r == 0)
		r = spool_remove(t->sp, SPOOL_ACTIVE, inode);
	if (r == 0 && t->reported &&
	    spool_sync_names(t->sp, SPOOL_ACTIVE, inode) == 0)
		(void)reason_clear(t->sp, SPOOL_BOUNCE, inode);
	return r;
}

static int
remove_one(const struct removal *t)
{
	char leaf[SPOOL_PATH_MAX];
	int r, fd;

	if (!t->defer && !t->bounce)
		return spool_remove(t->sp, SPOOL_ACTIVE, t->id.inode);
	spool_leaf(t->sp, SPOOL_ACTIVE, t->id.inode, leaf, sizeof(leaf));
	fd = t->sp->sys->openat(
	    t->sp->dir[SPOOL_ACTIVE], leaf, O_PATH | O_NOFOLLOW | O_CLOEXEC, 0);
	r = fd < 0 ? -errno : remove_with_reasons(t);
	if (fd >= 0)
		t->sp->sys->close(fd);
	return r;
}

static int
remove_files(struct sync_task *task)
{
	const struct removal *t = (const struct removal *)(void *)task;
	int r = remove_one(t);

	if (r == -ENOENT)
		reason_clear_lost(t->sp, t->id.inode);
	return r;
}

/* ---- tasks that are done ---- */

static void
say(const struct removal *t, enum log_level level, const char *name,
    const char *text)
{
	char id[QUEUE_ID_SIZE];
	const struct log_event event = {
		.level = level,
		.name = name,
		.id = id,
		.text = text,
		.plain = true,
	};

	queue_id_format(&t->id, id);
	log_write(&event);
}

static void
forget(struct send *s, struct removal *t)
{
	struct removals *p = &s->removals;

	RB_REMOVE(removal_tree, &p->tree, t);
	p->count--;
	s->pub.changed = true;
	sync_task_free(&t->task);
}

static void
failed(struct send *s, struct removal *t)
{
	struct removals *p = &s->removals;

	disk_removal_failed(s, &t->id, t->task.error);
	if (p->nfailed++ == 0)
		p->again_at = s->now + s->conf->error_interval;
	STAILQ_INSERT_TAIL(&p->failed, &t->task, link);
	if (health_is_general(t->task.error))
		p->not_before = s->now + s->conf->error_interval;
}

static void
ended(void *send, struct sync_task *task)
{
	struct send *s = send;
	struct removal *t = (struct removal *)(void *)task;

	switch (-task->error) {
	case 0:
		sync_changed(s);
		say(t, LOG_INFO_L, "removed", "removed");
		forget(s, t);
		break;
	case ENOENT:
		say(t, LOG_WARNING_L, "vanished",
		    "status=removed (the file is gone from the active queue)");
		forget(s, t);
		break;
	default:
		failed(s, t);
	}
}

/* ---- tasks to do ---- */

static int
begin(struct send *s, const struct removal *like)
{
	struct removals *p = &s->removals;
	struct removal *t = calloc(1, sizeof(*t));

	if (t == NULL)
		return -ENOMEM;
	*t = *like;
	t->sp = &s->sp;
	sync_task_init(&t->task, remove_files, NULL, ended);
	if (RB_INSERT(removal_tree, &p->tree, t) != NULL) {
		free(t);
		return -EEXIST;
	}
	if (p->nwaiting++ == 0)
		p->since = s->now;
	STAILQ_INSERT_TAIL(&p->waiting, &t->task, link);
	p->count++;
	s->pub.changed = true;
	return 0;
}

int
removal_in_place_of_mark(struct send *s, struct message *m)
{
	int r;

	if (!s->in_memory || disk_has_threads(s, DISK_REMOVE) ||
	    reasons_may_exist(m, SPOOL_DEFER) ||
	    reasons_may_exist(m, SPOOL_BOUNCE))
		return -EAGAIN;
	r = spool_remove(&s->sp, SPOOL_ACTIVE, m->inode);
	m->removed = r == 0;
	return r;
}

void
removal_tell(struct send *s, const struct message *m)
{
	const struct removal t = { .id = message_queue_id(m) };

	say(&t, LOG_INFO_L, "removed", "removed");
	s->pub.changed = true;
}

int
removal_begin(struct send *s, const struct message *m, bool reported)
{
	const struct removal t = {
		.id = message_queue_id(m),
		.defer = reasons_may_exist(m, SPOOL_DEFER),
		.bounce = reported || reasons_may_exist(m, SPOOL_BOUNCE),
		.reported = reported,
	};

	return begin(s, &t);
}

int
removal_begin_left(struct send *s, const struct queue_id *id)
{
	const struct removal t = { .id = *id, .defer = true, .bounce = true };

	return begin(s, &t);
}

bool
removal_is_under_way(struct send *s, uint64_t inode)
{
	struct removal key = { .id.inode = inode };
	struct removal_tree *tree = &s->removals.tree;

	/* Most of what is found here has ended by now. */
	if (RB_FIND(removal_tree, tree, &key) == NULL)
		return false;
	executor_take(s->disk.executor, DISK_REMOVE);
	return RB_FIND(removal_tree, tree, &key) != NULL;
}

bool
removal_is_full(const struct send *s)
{
	return s->removals.count >= s->removals.limit;
}

uint32_t
removal_to_do(const struct send *s)
{
	return s->removals.count - s->removals.nfailed;
}

static void
start_waiting(struct send *s)
{
	struct removals *p = &s->removals;
	const bool threads = disk_has_threads(s, DISK_REMOVE);
	struct sync_task *task;
	int n;

	for (n = 0; threads || n < REMOVED_PER_TURN; n++) {
		task = STAILQ_FIRST(&p->waiting);
		if (task == NULL || s->now < p->not_before)
			return;
		STAILQ_REMOVE_HEAD(&p->waiting, link);
		p->nwaiting--;
		disk_do(s, DISK_REMOVE, task);
	}
}

static void
try_failed(struct send *s)
{
	struct removals *p = &s->removals;

	STAILQ_CONCAT(&p->waiting, &p->failed);
	p->nwaiting += p->nfailed;
	p->nfailed = 0;
	p->since = 0;
}

/* When those that wait may begin. A thread is woken for some of them at once,
 * since a wake-up costs as much as a removal in memory. */
static usec_t
begins_at(const struct send *s)
{
	const struct removals *p = &s->removals;

	if (p->nwaiting == 0)
		return USEC_NEVER;
	if (s->now < p->not_before)
		return p->not_before;
	if (!disk_has_threads(s, DISK_REMOVE) || s->stopping ||
	    p->nwaiting >= BATCH)
		return s->now;
	return p->since + p->delay;
}

usec_t
removal_work(struct send *s)
{
	struct removals *p = &s->removals;
	usec_t at, again_at;

	executor_take(s->disk.executor, DISK_REMOVE);
	if (s->health.read_only)
		return USEC_NEVER;
	if (p->nfailed > 0 && s->now >= p->again_at)
		try_failed(s);
	if (s->now >= begins_at(s))
		start_waiting(s);
	at = begins_at(s);
	again_at = p->nfailed > 0 ? p->again_at : USEC_NEVER;
	return at < again_at ? at : again_at;
}

void
removal_probed(struct send *s)
{
	s->removals.not_before = s->removals.again_at = 0;
}

/* ---- start and end ---- */

void
removal_init(struct send *s)
{
	struct removals *p = &s->removals;

	RB_INIT(&p->tree);
	STAILQ_INIT(&p->waiting);
	STAILQ_INIT(&p->failed);
	p->limit = WAITING_MAX;
	p->delay = DELAY;
}

static void
drop_all(struct sync_tasks *tasks)
{
	struct sync_task *task;

	while ((task = STAILQ_FIRST(tasks)) != NULL) {
		STAILQ_REMOVE_HEAD(tasks, link);
		sync_task_free(task);
	}
}

void
removal_done(struct send *s)
{
	struct removals *p = &s->removals;

	drop_all(&p->waiting);
	drop_all(&p->failed);
	RB_INIT(&p->tree);
	p->count = p->nfailed = p->nwaiting = 0;
}
