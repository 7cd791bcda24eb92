#include "spool/prepared.h"

#include <errno.h>
#include <string.h>

#include "log/log.h"
#include "todo-proc/todo.h"

static void
settle(
    const struct spool *sp, enum spool_dir dir UNUSED, struct walk_found *found)
{
	uint64_t inode;

	found->result = spool_settle_prepared(sp, found->item.name, &inode);
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
settled(struct todo *t, const struct walk_found *f)
{
	const char *name = f->item.name;
	const int how = f->result;

	if (f->error < 0) {
		say_error(t, ".", f->error);
	} else if (how == SETTLED_CORRUPT) {
		t->counts.corrupt++;
		log_error("ALERT: %s/%s/%s: the message that it was made of is "
			  "damaged: moved to corrupt/",
		    t->sp.path, spool_dirs[SPOOL_PREPARED].name, name);
	} else if (how >= 0) {
		say_settled(name, how);
	} else if (how != -EINVAL) {
		say_error(t, name, how);
	} else if (foreign_warn(&t->foreign, SPOOL_PREPARED, name, t->now)) {
		log_warning("%s/%s/%s: not a queue file: ignored", t->sp.path,
		    spool_dirs[SPOOL_PREPARED].name, name);
	}
}

static const struct walk_kind kind = {
	.dir = SPOOL_PREPARED,
	.most = 50,
	.work = settle,
	.take = settled,
};

void
prepared_begin(struct todo *t)
{
	prepared_done(t);
	/* Without memory the next scan does it. */
	(void)walk_begin(t, &t->prepared, &kind);
}

void
prepared_done(struct todo *t)
{
	walk_end(&t->prepared);
}

bool
prepared_work(struct todo *t, usec_t *ret_next)
{
	enum walk_state state;

	if (t->prepared.part == NULL)
		return false;
	state = walk_take(t, &t->prepared);
	*ret_next = state == WALK_READING ? USEC_NEVER : t->now;
	if (state == WALK_LAST)
		walk_end(&t->prepared);
	return state != WALK_LAST;
}
