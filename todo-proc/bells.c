#include "todo-proc/todo.h"

#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "log/log.h"

#define BELLS_PER_TURN 256
#define UNLOOKED_MAX   4 /* rings, behind a look at the message queue */

bool
bell_is_right(const struct bell *bell)
{
	return bell->pid > 0 && bell->split < SPOOL_SPLIT_MAX &&
	    bell->inode > 0 && bell->inode <= INT64_MAX;
}

/* ---- looks at files that were heard of ---- */

struct look {
	struct disk_task task; /* first */
	const struct spool *sp;
	uint32_t count;
	uint64_t inode[INBOX_HEARD_MAX];
	usec_t mtime_wall[INBOX_HEARD_MAX]; /* -1: it is not there */
};

static int
look_at_files(struct sync_task *task)
{
	struct look *l = (struct look *)(void *)task;
	char leaf[SPOOL_PATH_MAX];
	struct stat st;
	uint32_t i;

	for (i = 0; i < l->count; i++) {
		spool_leaf(
		    l->sp, SPOOL_INCOMING, l->inode[i], leaf, sizeof(leaf));
		l->mtime_wall[i] = -1;
		if (fstatat(l->sp->dir[SPOOL_INCOMING], leaf, &st,
			AT_SYMLINK_NOFOLLOW) == 0)
			l->mtime_wall[i] = clock_usec(st.st_mtim);
	}
	return 0;
}

static void
on_looked(struct todo *t, struct disk_task *task)
{
	const struct look *l = (const struct look *)(void *)task;
	uint32_t i;

	t->looking = false;
	for (i = 0; i < l->count; i++)
		if (l->mtime_wall[i] == -1 ||
		    offered_has(
			&t->offered, l->inode[i], l->mtime_wall[i], t->now) ||
		    inbox_ring(&t->inbox, l->inode[i], l->mtime_wall[i]) != 1)
			t->counts.rings_stale++;
	sync_task_free(&task->task);
}

static void
look(struct todo *t)
{
	struct look *l = malloc(sizeof(*l));

	if (l == NULL)
		return;
	disk_task_init(&l->task, look_at_files, NULL, on_looked);
	l->sp = &t->sp;
	l->count = inbox_take_heard(&t->inbox, l->inode);
	t->looking = true;
	disk_do(t, &l->task);
}

/* ---- rings ---- */

static void
rings_were_lost(struct todo *t)
{
	t->counts.lost_rings++;
	t->incoming.wanted = true;
}

void
bells_rung(struct todo *t, const struct bell *bell)
{
	int r;

	if (!bell_is_right(bell)) {
		t->counts.rings_bad++;
		return;
	}
	t->counts.rings++;
	r = inbox_hear(&t->inbox, bell->inode);
	if (r == 0)
		t->counts.rings_stale++;
	else if (r < 0)
		rings_were_lost(t);
	if (t->inbox.nheard >= INBOX_HEARD_LOOK && !t->looking)
		look(t);
}

/* How many rings there are to take, at most BELLS_PER_TURN. */
static int
check_if_full(struct todo *t, mqd_t mq)
{
	struct mq_attr attr;

	if (mq_getattr(mq, &attr) < 0)
		return BELLS_PER_TURN;
	if (attr.mq_curmsgs + (long)t->unlooked >= attr.mq_maxmsg)
		rings_were_lost(t);
	t->unlooked = 0;
	t->bell_seldom = attr.mq_curmsgs <= 1;
	return attr.mq_curmsgs < BELLS_PER_TURN ? (int)attr.mq_curmsgs
						: BELLS_PER_TURN;
}

static void
lost(struct todo *t, int error)
{
	log_warning("doorbell: %s: until there is another one mail is found "
		    "by scanning",
	    strerror(-error));
	bells_done(t);
}

static void
take(struct todo *t, mqd_t mq, int left)
{
	struct bell bell;
	int i, r = 1;

	for (i = 0; r != 0 && i < left; i++) {
		r = bell_take(mq, &bell);
		if (r == 1) {
			bells_rung(t, &bell);
		} else if (r == -EBADMSG) {
			t->counts.rings_bad++;
		} else if (r < 0) {
			lost(t, r);
			break;
		}
	}
}

void
bells_take(struct todo *t)
{
	mqd_t mq;

	if (t->bell == NULL)
		return;
	mq = (mqd_t)event_get_fd(t->bell);
	take(t, mq, check_if_full(t, mq));
}

/* Where rings come one by one, the one that woke us is taken without a look at
 * the message queue; the loop tells of the next one. */
static void
take_some(struct todo *t)
{
	if (!t->bell_seldom || t->unlooked == UNLOOKED_MAX) {
		bells_take(t);
		return;
	}
	t->unlooked++;
	take(t, (mqd_t)event_get_fd(t->bell), 1);
}

static void
on_bell(evutil_socket_t fd UNUSED, short what UNUSED, void *arg)
{
	struct todo *t = arg;

	todo_tick(t);
	take_some(t);
	todo_kick(t);
}

int
bells_linked(void *todo, int fd)
{
	struct todo *t = todo;
	struct event *event =
	    event_new(t->base, fd, EV_READ | EV_PERSIST, on_bell, t);

	if (event == NULL)
		return -ENOMEM;
	if (event_add(event, NULL) < 0) {
		event_free(event);
		return -EINVAL;
	}
	bells_done(t);
	t->bell = event;
	t->bell_seldom = false;
	t->unlooked = 0;
	/* Rings before this queue came were not heard. */
	t->incoming.wanted = true;
	todo_tick(t);
	t->bell_known_at = t->now + BELL_BELIEVED;
	return 0;
}

void
bells_done(struct todo *t)
{
	mqd_t mq;

	if (t->bell == NULL)
		return;
	mq = (mqd_t)event_get_fd(t->bell);
	event_free(t->bell);
	t->bell = NULL;
	mq_close(mq);
}
