#include "todo-proc/todo.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "log/log.h"

#define NAMES_PER_TURN 300
#define QUIET_EVERY    (60 * USEC_PER_SEC)

static const enum spool_dir dirs[] = { SPOOL_INCOMING, SPOOL_ACTIVE,
	SPOOL_DEFERRED, SPOOL_HOLD };

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
begin(struct todo *t)
{
	struct waiting *x = &t->waiting;

	memset(&x->fresh, 0, sizeof(x->fresh));
	memset(&x->since, 0, sizeof(x->since));
	x->dir = 0;
	spool_scan_begin(&x->walk, &t->sp, dirs[0]);
	x->began_at = t->now;
	x->running = true;
	x->wanted = false;
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
count_file(struct todo *t, const struct spool_item *item)
{
	struct waiting *x = &t->waiting;
	char leaf[SPOOL_PATH_MAX];
	struct stat st;

	spool_leaf(&t->sp, dirs[x->dir], item->inode, leaf, sizeof(leaf));
	if (fstatat(t->sp.dir[dirs[x->dir]], leaf, &st, AT_SYMLINK_NOFOLLOW) ==
		0 &&
	    !is_ours(t, st.st_uid))
		count(&x->fresh, st.st_uid, (uint64_t)st.st_size);
}

static void
walk(struct todo *t)
{
	struct waiting *x = &t->waiting;
	struct spool_item item;
	int n, r;

	for (n = 0; n < NAMES_PER_TURN; n++) {
		r = spool_scan_next(&x->walk, false, &item);
		if (r > 0 && item.inode != 0)
			count_file(t, &item);
		if (r != 0)
			continue;
		spool_scan_done(&x->walk);
		if (++x->dir == ARRAY_LEN(dirs)) {
			end(t);
			return;
		}
		spool_scan_begin(&x->walk, &t->sp, dirs[x->dir]);
	}
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
	t->waiting.wanted |= t->waiting.seen;
}

static void
tell(struct todo *t)
{
	struct waiting_user rows[WAITING_PLACES];
	struct waiting *x = &t->waiting;
	size_t n = 0;
	uint32_t i;
	int r;

	for (i = 0; i < WAITING_PLACES; i++)
		if (x->counted.rows[i].uid != 0) {
			rows[n] = x->counted.rows[i];
			rows[n++].uid--;
		}
	r = waiting_write(&t->sp, rows, n);
	if (r < 0 && todo_say(t, r))
		log_error(
		    "%s/" SPOOL_GATE "/waiting: %s", t->sp.path, strerror(-r));
	x->publish = false;
	x->published_at = t->now;
}

static usec_t
publish(struct todo *t)
{
	const usec_t at = t->waiting.published_at + WAITING_TELL;

	if (!t->waiting.publish)
		return USEC_NEVER;
	if (t->waiting.published_at != 0 && t->now < at)
		return at;
	tell(t);
	return USEC_NEVER;
}

void
waiting_done(struct todo *t)
{
	if (t->waiting.running)
		spool_scan_done(&t->waiting.walk);
	t->waiting.running = false;
	if (t->waiting.publish)
		tell(t);
}

static usec_t
next_walk(const struct todo *t)
{
	const struct waiting *x = &t->waiting;

	if (x->wanted)
		return x->not_before;
	return x->seen ? x->quiet_at : USEC_NEVER;
}

usec_t
waiting_work(struct todo *t)
{
	struct waiting *x = &t->waiting;
	usec_t at, next;

	if (!x->running && t->now >= next_walk(t))
		begin(t);
	if (x->running)
		walk(t);
	next = x->running ? t->now : next_walk(t);
	at = publish(t);
	return at < next ? at : next;
}
