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

usec_t
todo_mtime(const struct stat *st)
{
	return (usec_t)st->st_mtim.tv_sec * USEC_PER_SEC +
	    st->st_mtim.tv_nsec / 1000;
}
