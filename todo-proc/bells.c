#include "todo-proc/todo.h"

#include <errno.h>
#include <event2/event.h>
#include <string.h>
#include <sys/stat.h>

#include "log/log.h"

#define BELLS_PER_TURN 256

bool
bell_is_right(const struct bell *bell)
{
	return bell->pid > 0 && bell->split < SPOOL_SPLIT_MAX &&
	    bell->inode > 0 && bell->inode <= INT64_MAX;
}

void
bells_rung(struct todo *t, const struct bell *bell)
{
	char leaf[SPOOL_PATH_MAX];
	struct stat st;
	usec_t mtime;

	if (!bell_is_right(bell)) {
		t->counts.rings_bad++;
		return;
	}
	t->counts.rings++;
	spool_leaf(&t->sp, SPOOL_INCOMING, bell->inode, leaf, sizeof(leaf));
	if (fstatat(t->sp.dir[SPOOL_INCOMING], leaf, &st, AT_SYMLINK_NOFOLLOW) <
	    0) {
		t->counts.rings_stale++;
		return;
	}
	mtime = todo_mtime(&st);
	if (offered_has(&t->offered, bell->inode, mtime, t->now) ||
	    inbox_ring(&t->inbox, bell->inode, mtime) != 1)
		t->counts.rings_stale++;
}

/* How many rings there are to take, at most BELLS_PER_TURN. */
static int
check_if_full(struct todo *t, mqd_t mq)
{
	struct mq_attr attr;

	if (mq_getattr(mq, &attr) < 0)
		return BELLS_PER_TURN;
	if (attr.mq_curmsgs >= attr.mq_maxmsg) {
		t->counts.lost_rings++;
		t->incoming.wanted = true;
	}
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

void
bells_take(struct todo *t)
{
	struct bell bell;
	mqd_t mq;
	int i, left, r = 1;

	if (t->bell == NULL)
		return;
	mq = (mqd_t)event_get_fd(t->bell);
	left = check_if_full(t, mq);
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

static void
on_bell(evutil_socket_t fd UNUSED, short what UNUSED, void *arg)
{
	struct todo *t = arg;

	todo_tick(t);
	bells_take(t);
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
