#include "todo-proc/todo.h"

#include <errno.h>
#include <event2/event.h>
#include <string.h>

#include "log/log.h"

#define UNLOOKED_MAX 4 /* rings, behind a look at the message queue */

bool
bell_is_right(const struct bell *bell)
{
	return bell->pid > 0 && bell->split < SPOOL_SPLIT_MAX &&
	    bell->inode > 0 && bell->inode <= INT64_MAX;
}

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
}

static long
room(const struct todo *t)
{
	return (long)(INBOX_HEARD_MAX - t->inbox.nheard);
}

/* How many rings there are to take. */
static long
check_if_full(struct todo *t, mqd_t mq)
{
	struct mq_attr attr;

	if (mq_getattr(mq, &attr) < 0)
		return room(t);
	if (attr.mq_curmsgs + (long)t->unlooked >= attr.mq_maxmsg)
		rings_were_lost(t);
	t->unlooked = 0;
	t->bell_seldom = attr.mq_curmsgs <= 1;
	return attr.mq_curmsgs < room(t) ? attr.mq_curmsgs : room(t);
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
take_rings(struct todo *t, mqd_t mq, long left)
{
	struct bell bell;
	long i;
	int r = 1;

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
	take_rings(t, mq, check_if_full(t, mq));
}

void
bells_listen(struct todo *t)
{
	const bool deaf = room(t) == 0;

	if (t->bell == NULL || deaf == t->bell_deaf)
		return;
	if ((deaf ? event_del(t->bell) : event_add(t->bell, NULL)) == 0)
		t->bell_deaf = deaf;
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
	take_rings(t, (mqd_t)event_get_fd(t->bell), room(t) > 0);
}

static void
on_bell(evutil_socket_t fd UNUSED, short what UNUSED, void *arg)
{
	struct todo *t = arg;

	todo_tick(t);
	take_some(t);
	bells_listen(t);
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
	t->bell_deaf = false;
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
