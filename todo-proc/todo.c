#include "todo-proc/todo.h"

#include "base/clock.h"
#include "log/log.h"

void
todo_tick(struct todo *t)
{
	t->now = clock_mono();
	t->now_wall = clock_wall();
}

void
todo_kick(struct todo *t)
{
	turn_kick(&t->turn);
}

bool
todo_say(struct todo *t, int error)
{
	const size_t cause = (size_t)-error;

	return log_due(t->now, 60 * USEC_PER_SEC,
	    &t->said[cause < TODO_CAUSES ? cause : 0]);
}

int
todo_found(struct todo *t, uint64_t inode, usec_t mtime_wall)
{
	return mtime_wall >= t->began_wall
	    ? inbox_ring(&t->inbox, inode, mtime_wall)
	    : inbox_add(&t->inbox, inode, mtime_wall);
}
