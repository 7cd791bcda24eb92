#include "todo-proc/todo.h"

#include <errno.h>
#include <string.h>

#include "log/log.h"

static void
say_foreign(struct todo *t, const struct picked *p)
{
	char name[QUEUE_FILE_MAX];

	queue_file_name(p->id.inode, name);
	(void)examine_say_corrupt(t,
	    &(struct corrupt){ SPOOL_INCOMING,
		(uint32_t)(p->id.inode % t->sp.split), name,
		"has the name of another message", p->foreign_moved });
}

static void
picked_up(struct todo *t, const struct picked *p)
{
	char text[QUEUE_ID_SIZE];

	queue_id_format(&p->id, text);
	log_message(LOG_DEBUG_L, "picked-up", text, "picked up");
	waiting_picked_up(t, p->id.inode, p->uid, p->size);
	if (todo_found(t, p->id.inode, p->mtime_wall) == 1)
		inbox_note_drop(&t->inbox, p->id.inode, p->mtime_wall);
}

int
pickup_ended(struct todo *t, const char *name, const struct picked *p)
{
	const int r = p->error;

	if (p->met_foreign)
		say_foreign(t, p);
	if (r == 0)
		picked_up(t, p);
	if (r == -EBADMSG || r == -EPERM)
		return examine_say_corrupt(t,
		    &(struct corrupt){
			SPOOL_MAILDROP, 0, name, p->why, p->moved });
	if (r < 0 && r != -EAGAIN && r != -ENOENT && todo_say(t, r))
		log_error("%s/%s/%s: %s: the drop waits", t->sp.path,
		    spool_dirs[SPOOL_MAILDROP].name, name, strerror(-r));
	return r;
}
