#include "spool/prepared.h"

#include <errno.h>
#include <string.h>

#include "log/log.h"
#include "todo-proc/todo.h"

#define NAMES_PER_TURN 50

void
prepared_begin(struct todo *t)
{
	prepared_done(t);
	if (t->sp.dir[SPOOL_PREPARED] < 0)
		return;
	spool_scan_begin(&t->prepared.walk, &t->sp, SPOOL_PREPARED);
	t->prepared.running = true;
}

void
prepared_done(struct todo *t)
{
	if (t->prepared.running)
		spool_scan_done(&t->prepared.walk);
	t->prepared.running = false;
}

static void
say_error(struct todo *t, const char *name, int error)
{
	if (error != -EAGAIN && error != -ENOENT && todo_say(t, error))
		log_error("%s/%s/%s: %s: tried again", t->sp.path,
		    spool_dirs[SPOOL_PREPARED].name, name, strerror(-error));
}

/* Under the id of the message that was expanded or reported. */
static void
say_settled(const char *name, int how)
{
	const char *next =
	    how == SETTLED_INCOMING ? "goes on" : "is to be made again";
	struct prepared p = { 0 };
	char id[QUEUE_ID_SIZE];

	(void)prepared_parse(name, &p);
	queue_id_format(&p.parent, id);
	if (p.index == PREPARED_REPORT)
		log_message(LOG_INFO_L, "report", id,
		    "report %u of its failures, left by a process that died: "
		    "%s",
		    p.number, next);
	else
		log_message(LOG_INFO_L, "expansion", id,
		    "expansion: message %u of recipient %u, left by a process "
		    "that died: %s",
		    p.number, p.index, next);
}

static void
settle(struct todo *t, const char *name)
{
	uint64_t inode = 0;
	int r = spool_settle_prepared(&t->sp, name, &inode);

	if (r == SETTLED_CORRUPT) {
		t->counts.corrupt++;
		log_error("%s/%s/%s: the message that it was made of is "
			  "damaged: moved to corrupt/",
		    t->sp.path, spool_dirs[SPOOL_PREPARED].name, name);
	} else if (r >= 0) {
		say_settled(name, r);
	} else if (r != -EINVAL) {
		say_error(t, name, r);
	} else if (foreign_warn(&t->foreign, SPOOL_PREPARED, name, t->now)) {
		log_warning("%s/%s/%s: not a queue file: ignored", t->sp.path,
		    spool_dirs[SPOOL_PREPARED].name, name);
	}
}

bool
prepared_work(struct todo *t)
{
	struct prepared_walk *p = &t->prepared;
	struct spool_item item;
	int n, r = 1;

	for (n = 0; p->running && n < NAMES_PER_TURN; n++) {
		r = spool_scan_next(&p->walk, false, &item);
		if (r > 0)
			settle(t, item.name);
		else if (r < 0)
			say_error(t, ".", r);
		else
			prepared_done(t);
	}
	return p->running;
}
