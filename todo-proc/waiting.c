#include "todo-proc/todo.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/io.h"
#include "log/log.h"

#define QUIET_EVERY (60 * USEC_PER_SEC)
#define SHORT_WAIT  USEC_PER_SEC

/* Both below. */
static void
look(const struct spool *sp, enum spool_dir dir, struct walk_found *found);
static void count(struct todo *t, const struct walk_found *f);

static const struct walk_kind kinds[] = {
	{ SPOOL_INCOMING, false, WALK_PART_MAX, look, count },
	{ SPOOL_ACTIVE, false, WALK_PART_MAX, look, count },
	{ SPOOL_DEFERRED, false, WALK_PART_MAX, look, count },
	/* Messages that are tried again while the walk reads deferred/. */
	{ SPOOL_ACTIVE, false, WALK_PART_MAX, look, count },
	{ SPOOL_HOLD, false, WALK_PART_MAX, look, count },
};

/* One writing of the file gate/waiting. */
struct writing {
	struct sync_task task; /* first */
	const struct spool *sp;
	usec_t walked_wall;
	uint32_t count;
	struct waiting_user rows[];
};

/* Root and the system's own users are counted to be shown: no limit is on them,
 * so nothing need be known of them soon. */
static bool
is_free(const struct todo *t, uid_t uid)
{
	return uid == 0 || t->sp.private || waiting_is_made(&t->sp, uid);
}

static bool
is_limited(const struct todo *t, uid_t uid)
{
	return !is_free(t, uid);
}

/* ---- the walk ---- */

/* Until the first walk has ended the counts of the process before this one
 * hold. */
static void
take_old_counts(struct todo *t)
{
	struct waiting *x = &t->waiting;
	struct waiting_file f;
	struct waiting_user row;
	uint64_t i;
	int r = waiting_open(&t->sp, &f);

	for (i = 0; r == 0 && i < f.count; i++) {
		r = waiting_row(&f, i, &row);
		if (r == 0)
			r = waiting_table_add(&x->counted, &row);
	}
	if (r == 0)
		x->walked_wall = f.walked_wall;
	waiting_close(&f);
}

void
waiting_init(struct todo *t)
{
	t->waiting.wanted = true;
	take_old_counts(t);
}

static bool
is_expansion(const struct queue_file *file)
{
	return (file->flags & QUEUE_FILE_EXPANDED) != 0;
}

/* Only files that the system wrote are opened: relayed mail, which is root's or
 * a listener's, costs no more than its fstatat(). */
static uid_t
submitter_of(const struct spool *sp, enum spool_dir dir, uint64_t inode,
    const struct stat *st, uint64_t *ret_made)
{
	struct queue_file file = { .uid = st->st_uid };
	struct stat opened;
	int fd;

	*ret_made = 0;
	if (!waiting_is_made(sp, st->st_uid))
		return waiting_submitter(sp, st->st_uid, st->st_uid);
	fd = spool_open_stat(sp, dir, inode, O_RDONLY, &opened);
	if (fd < 0)
		return st->st_uid;
	if (queue_file_trailer(fd, (uint64_t)opened.st_size, &file) < 0)
		file.uid = st->st_uid;
	else
		*ret_made = is_expansion(&file);
	io_close(&fd);
	return waiting_submitter(sp, opened.st_uid, file.uid);
}

static void
look(const struct spool *sp, enum spool_dir dir, struct walk_found *found)
{
	struct waiting_user one = { .messages = 1 };
	struct stat st;

	found->u.one.messages = 0;
	if (found->item.inode == 0)
		return;
	if (spool_stat(sp, dir, found->item.inode, &st) < 0)
		return;
	one.uid = submitter_of(sp, dir, found->item.inode, &st, &one.made);
	one.bytes = (uint64_t)st.st_size;
	found->u.one = one;
}

static void
walk_next(struct todo *t)
{
	struct waiting *x = &t->waiting;

	if (walk_begin(t, &x->walk, &kinds[x->dir]) == 0)
		return;
	table_clear(&x->met);
	x->running = false;
	x->wanted = true;
	x->not_before = t->now + SHORT_WAIT;
}

static void
begin(struct todo *t)
{
	struct waiting *x = &t->waiting;

	table_clear(&x->fresh);
	table_clear(&x->met);
	x->short_of_memory = false;
	x->dir = 0;
	x->began_at = t->now;
	x->began_wall = t->now_wall;
	x->running = true;
	x->wanted = false;
	walk_next(t);
}

static void
take_counts(struct todo *t)
{
	struct waiting *x = &t->waiting;

	x->seen = waiting_table_any(&x->fresh, t, is_limited);
	table_clear(&x->counted);
	x->counted = x->fresh;
	x->fresh = (struct table){ 0 };
	x->walked_wall = x->began_wall;
	x->publish = true;
}

/* A walk for which there was no memory leaves the counts of the last one. */
static void
end_walk(struct todo *t)
{
	struct waiting *x = &t->waiting;
	const usec_t took = t->now - x->began_at;

	x->running = false;
	if (x->short_of_memory) {
		x->wanted = true;
		table_clear(&x->met);
	} else
		take_counts(t);
	x->not_before = t->now + took * WAITING_SHARE;
	if (x->not_before < t->now + WAITING_EVERY)
		x->not_before = t->now + WAITING_EVERY;
	x->quiet_at = x->not_before + QUIET_EVERY;
}

static void
end_dir(struct todo *t)
{
	struct waiting *x = &t->waiting;

	walk_end(&x->walk);
	if (++x->dir == ARRAY_LEN(kinds))
		end_walk(t);
	else
		walk_next(t);
}

/* 1: neither the walk that is under way nor, until the next one begins, the
 * last walk has counted this file; 0: one has; -ENOMEM. A file that moves ahead
 * of the walk is met in each directory, and is told as new, too. Mail of users
 * without limits may count twice, so that it needs no memory. */
static int
is_new(struct todo *t, uint64_t inode, const struct waiting_user *one)
{
	return is_free(t, one->uid)
	    ? 1
	    : waiting_met_add(&t->waiting.met, inode, one);
}

/* For the walk that is under way. */
static void
count_fresh(struct waiting *x, const struct waiting_user *one, int is_new)
{
	if (is_new < 0 ||
	    (is_new == 1 && waiting_table_add(&x->fresh, one) < 0))
		x->short_of_memory = true;
}

/* Users without limits are not counted a second time. */
static bool
was_read(const struct todo *t, const struct waiting_user *one)
{
	uint32_t i;

	for (i = 0; i < t->waiting.dir; i++)
		if (kinds[i].dir == kinds[t->waiting.dir].dir)
			return is_free(t, one->uid);
	return false;
}

static void
count(struct todo *t, const struct walk_found *f)
{
	if (f->error == 0 && f->u.one.messages > 0 && !was_read(t, &f->u.one))
		count_fresh(&t->waiting, &f->u.one,
		    is_new(t, f->item.inode, &f->u.one));
}

/* ---- the file gate/waiting ---- */

/* A message that cannot be counted now is found by the next walk. The counts
 * have no message that only the walk under way has met. */
static void
came(struct todo *t, uint64_t inode, const struct waiting_user *one)
{
	struct waiting *x = &t->waiting;
	const int r = is_new(t, inode, one);

	if (x->running)
		count_fresh(x, one, r);
	if (x->running || r != 0)
		(void)waiting_table_add(&x->counted, one);
	x->publish = true;
	x->unpublished += one->bytes;
	x->wanted |= !is_free(t, one->uid);
}

void
waiting_picked_up(struct todo *t, uint64_t inode, uid_t uid, uint64_t bytes)
{
	came(t, inode, &(struct waiting_user){ uid, 1, bytes, 0 });
}

/* The last walk counted a message that was written before it began, unless the
 * message was in prepared/ until the walk had passed: then the next one does.
 */
void
waiting_offered(struct todo *t, const struct examine_task *e)
{
	const struct spool *sp = &t->sp;
	const struct waiting_user one = { waiting_submitter(
					      sp, e->owner, e->file.uid),
		1, e->file.size, is_expansion(&e->file) };

	if (!waiting_is_made(sp, e->owner))
		return;
	if (e->mtime_wall < t->waiting.walked_wall)
		t->waiting.wanted |= !is_free(t, one.uid);
	else
		came(t, e->inode, &one);
}

void
waiting_changed(struct todo *t)
{
	struct waiting *x = &t->waiting;

	if (!x->seen || x->wanted)
		return;
	x->wanted = true;
	if (x->not_before < t->now + WAITING_EVERY)
		x->not_before = t->now + WAITING_EVERY;
}

static int
write_file(struct sync_task *task)
{
	struct writing *w = (struct writing *)(void *)task;

	return waiting_write(w->sp, w->walked_wall, w->rows, w->count);
}

static void
on_written(void *todo, struct sync_task *task)
{
	struct todo *t = todo;
	const int r = task->error;

	t->waiting.writing = false;
	if (r < 0 && todo_say(t, r))
		log_error(
		    "%s/" SPOOL_GATE "/waiting: %s", t->sp.path, strerror(-r));
	sync_task_free(task);
}

static void
tell(struct todo *t)
{
	struct waiting *x = &t->waiting;
	struct writing *w =
	    malloc(sizeof(*w) + x->counted.count * sizeof(w->rows[0]));

	x->published_at = t->now;
	if (w == NULL)
		return;
	sync_task_init(&w->task, write_file, NULL, on_written);
	w->sp = &t->sp;
	w->walked_wall = x->walked_wall;
	w->count = waiting_table_rows(&x->counted, w->rows);
	x->publish = false;
	x->unpublished = 0;
	x->writing = true;
	executor_do(t->executor, 0, &w->task);
}

static usec_t
publish(struct todo *t)
{
	const usec_t at = t->waiting.published_at + WAITING_TELL;

	if (!t->waiting.publish || t->waiting.writing)
		return USEC_NEVER;
	if (t->waiting.published_at != 0 && t->now < at &&
	    t->waiting.unpublished < WAITING_TELL_BYTES)
		return at;
	tell(t);
	return USEC_NEVER;
}

void
waiting_leave(struct todo *t)
{
	if (t->waiting.publish && !t->waiting.writing)
		tell(t);
}

void
waiting_done(struct todo *t)
{
	struct waiting *x = &t->waiting;

	walk_end(&x->walk);
	x->running = false;
	table_clear(&x->counted);
	table_clear(&x->fresh);
	table_clear(&x->met);
}

static usec_t
next_walk(const struct todo *t)
{
	const struct waiting *x = &t->waiting;

	if (x->wanted)
		return x->not_before;
	return x->seen ? x->quiet_at : x->not_before + WAITING_SELDOM;
}

/* The time of the next part of a walk. */
static usec_t
walk_some(struct todo *t)
{
	struct waiting *x = &t->waiting;
	enum walk_state state;

	if (!x->running && t->now >= next_walk(t))
		begin(t);
	if (x->running) {
		state = walk_take(t, &x->walk);
		if (state == WALK_READING)
			return USEC_NEVER;
		if (state == WALK_LAST)
			end_dir(t);
	}
	return x->running ? t->now : next_walk(t);
}

usec_t
waiting_work(struct todo *t)
{
	const usec_t next = walk_some(t), at = publish(t);

	return at < next ? at : next;
}
