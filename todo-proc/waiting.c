#include "todo-proc/todo.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "log/log.h"

#define QUIET_EVERY (60 * USEC_PER_SEC)
#define SHORT_WAIT  USEC_PER_SEC

static void look(const struct spool *sp, enum spool_dir dir,
    struct walk_found *found); /* below */

static const struct walk_kind kinds[] = {
	{ SPOOL_INCOMING, false, WALK_PART_MAX, look },
	{ SPOOL_ACTIVE, false, WALK_PART_MAX, look },
	{ SPOOL_DEFERRED, false, WALK_PART_MAX, look },
	{ SPOOL_HOLD, false, WALK_PART_MAX, look },
};

/* One writing of the file gate/waiting. */
struct writing {
	struct disk_task task; /* first */
	const struct spool *sp;
	size_t count;
	struct waiting_user rows[WAITING_PLACES];
};

/* ---- counts ---- */

/* The row of a user, made if there is room. A row holds uid + 1, since 0 is
 * free. A user for whom there is no room is not counted. */
static struct waiting_user *
row_of(struct waiting_table *table, uid_t uid)
{
	const uid_t key = uid + 1;
	uint32_t i, at = (uint32_t)uid * 2654435761u;

	for (i = 0; i < WAITING_PLACES; i++, at++) {
		struct waiting_user *row = &table->rows[at % WAITING_PLACES];

		if (row->uid == key)
			return row;
		if (row->uid == 0) {
			row->uid = key;
			return row;
		}
	}
	return NULL;
}

static void
count(struct waiting_table *table, uid_t uid, uint64_t bytes)
{
	struct waiting_user *row = row_of(table, uid);

	if (row == NULL)
		return;
	row->messages++;
	row->bytes += bytes;
}

/* Mail that did not come through the door is counted for no user. */
static bool
is_ours(const struct todo *t, uid_t uid)
{
	return uid == 0 ||
	    (!t->sp.private &&
		(uid == t->sp.owner[SPOOL_INCOMING] ||
		    uid == t->sp.owner[SPOOL_ACTIVE]));
}

/* ---- the walk ---- */

void
waiting_init(struct todo *t)
{
	t->waiting.wanted = true;
}

static void
look(const struct spool *sp, enum spool_dir dir, struct walk_found *found)
{
	char leaf[SPOOL_PATH_MAX];
	struct stat st;

	found->u.one.messages = 0;
	if (found->item.inode == 0)
		return;
	spool_leaf(sp, dir, found->item.inode, leaf, sizeof(leaf));
	if (fstatat(sp->dir[dir], leaf, &st, AT_SYMLINK_NOFOLLOW) == 0)
		found->u.one =
		    (struct waiting_user){ st.st_uid, 1, (uint64_t)st.st_size };
}

static void
walk_next(struct todo *t)
{
	struct waiting *x = &t->waiting;

	if (walk_begin(t, &x->walk, &kinds[x->dir]) == 0)
		return;
	x->running = false;
	x->wanted = true;
	x->not_before = t->now + SHORT_WAIT;
}

static void
begin(struct todo *t)
{
	struct waiting *x = &t->waiting;

	memset(&x->fresh, 0, sizeof(x->fresh));
	memset(&x->since, 0, sizeof(x->since));
	x->dir = 0;
	x->began_at = t->now;
	x->running = true;
	x->wanted = false;
	walk_next(t);
}

/* The walk may have seen files that were picked up since it began: they count
 * twice until the next walk, rather than not at all. */
static void
end(struct todo *t)
{
	struct waiting *x = &t->waiting;
	const usec_t took = t->now - x->began_at;
	uint32_t i;

	x->running = false;
	x->seen = false;
	for (i = 0; i < WAITING_PLACES; i++)
		x->seen |= x->fresh.rows[i].uid != 0;
	x->counted = x->fresh;
	for (i = 0; i < WAITING_PLACES; i++) {
		const struct waiting_user *row = &x->since.rows[i];
		struct waiting_user *to =
		    row->uid == 0 ? NULL : row_of(&x->counted, row->uid - 1);

		if (to == NULL)
			continue;
		to->messages += row->messages;
		to->bytes += row->bytes;
		x->wanted = true;
	}
	x->not_before = t->now + took * WAITING_SHARE;
	if (x->not_before < t->now + WAITING_EVERY)
		x->not_before = t->now + WAITING_EVERY;
	x->quiet_at = x->not_before + QUIET_EVERY;
	x->publish = true;
}

static void
walk(struct todo *t)
{
	struct waiting *x = &t->waiting;
	const struct waiting_user *one;
	bool more;
	int i, n;

	n = walk_count(&x->walk, &more);
	for (i = 0; i < n; i++) {
		one = &walk_found(&x->walk, i)->u.one;
		if (walk_found(&x->walk, i)->error == 0 && one->messages > 0 &&
		    !is_ours(t, one->uid))
			count(&x->fresh, one->uid, one->bytes);
	}
	if (more)
		return;
	walk_end(&x->walk);
	if (++x->dir == ARRAY_LEN(kinds))
		end(t);
	else
		walk_next(t);
}

/* ---- the file gate/waiting ---- */

void
waiting_picked_up(struct todo *t, uid_t uid, uint64_t bytes)
{
	struct waiting *x = &t->waiting;

	if (is_ours(t, uid))
		return;
	count(&x->counted, uid, bytes);
	if (x->running)
		count(&x->since, uid, bytes);
	x->publish = true;
	x->wanted = true;
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

	return waiting_write(w->sp, w->rows, w->count);
}

static void
on_written(struct todo *t, struct disk_task *task)
{
	const int r = task->task.error;

	t->waiting.writing = false;
	if (r < 0 && todo_say(t, r))
		log_error(
		    "%s/" SPOOL_GATE "/waiting: %s", t->sp.path, strerror(-r));
	sync_task_free(&task->task);
}

static void
tell(struct todo *t)
{
	struct waiting *x = &t->waiting;
	struct writing *w = malloc(sizeof(*w));
	uint32_t i;

	x->published_at = t->now;
	if (w == NULL)
		return;
	disk_task_init(&w->task, write_file, NULL, on_written);
	w->sp = &t->sp;
	w->count = 0;
	for (i = 0; i < WAITING_PLACES; i++)
		if (x->counted.rows[i].uid != 0) {
			w->rows[w->count] = x->counted.rows[i];
			w->rows[w->count++].uid--;
		}
	x->publish = false;
	x->writing = true;
	disk_do(t, &w->task);
}

static usec_t
publish(struct todo *t)
{
	const usec_t at = t->waiting.published_at + WAITING_TELL;

	if (!t->waiting.publish || t->waiting.writing)
		return USEC_NEVER;
	if (t->waiting.published_at != 0 && t->now < at)
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
	walk_end(&t->waiting.walk);
	t->waiting.running = false;
}

static usec_t
next_walk(const struct todo *t)
{
	const struct waiting *x = &t->waiting;

	if (x->wanted)
		return x->not_before;
	return x->seen ? x->quiet_at : USEC_NEVER;
}

/* The time of the next part of a walk. */
static usec_t
walk_some(struct todo *t)
{
	struct waiting *x = &t->waiting;

	if (!x->running && t->now >= next_walk(t))
		begin(t);
	if (x->running && !walk_read(t, &x->walk))
		return USEC_NEVER;
	if (x->running)
		walk(t);
	return x->running ? t->now : next_walk(t);
}

usec_t
waiting_work(struct todo *t)
{
	const usec_t next = walk_some(t), at = publish(t);

	return at < next ? at : next;
}
