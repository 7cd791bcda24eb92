#include "qscheduler/queues/queues.h"

#include <errno.h>

#include "base/clock.h"
#include "log/log.h"

/* Has the log told of this error of this file system for another queue? */
static bool
room_is_known(const struct queue *q, const struct base_room *room)
{
	const struct queues *all = q->all;
	uint32_t i;

	for (i = 0; i < all->nqueues; i++) {
		const struct base_room *other = &all->queues[i]->room_logged;

		if (all->queues[i] != q && other->disk == room->disk &&
		    other->error == room->error)
			return true;
	}
	return false;
}

static void
room_log_begin(const struct base_room *room)
{
	const bool full = room->error != -EROFS && room->error != -EIO;

	log_error("ALERT: %s; new mail%s is refused with exit code 75 %s",
	    room->text, full ? " of users" : "",
	    full ? "until there is room: remove files or enlarge the file "
		   "system"
		 : "until the file system can be written: read the kernel log");
}

/* Queues of one file system hear of a change at about the same time. */
static void
room_check_all_soon(struct queues *all)
{
	const usec_t now = clock_mono();
	uint32_t i;

	for (i = 0; i < all->nqueues; i++)
		if (all->queues[i]->check_at > now)
			all->queues[i]->check_at = now;
}

static bool
room_log_waits(const struct base_room *logged, const struct base_room *room)
{
	return logged->error == -ENOSPC && logged->disk == room->disk &&
	    room->scarce;
}

void
queue_note_room(struct queue *q, const struct base_room *room)
{
	const struct base_room was = q->room_logged;

	q->room = *room;
	if ((was.error == room->error && was.disk == room->disk) ||
	    room_log_waits(&was, room))
		return;
	q->room_logged = *room;
	if (was.error < 0 && !room_is_known(q, &was))
		log_warning(
		    "new mail is accepted again; until now: %s", was.text);
	if (room->error < 0 && !room_is_known(q, room))
		room_log_begin(room);
	if (was.error < 0 || room->error < 0)
		room_check_all_soon(q->all);
}
