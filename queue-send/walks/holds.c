#include "queue-send/disk/act_task.h"

#include <errno.h>
#include <fcntl.h>

#include "base/io.h"
#include "log/log.h"
#include "queue-send/backlog/backlog.h"
#include "queue-send/message/path.h"
#include "queue-send/walks/walks.h"

/* A file of hold/ could not be dealt with, with that error: the walk comes
 * again, if that may help. */
static void
hold_again(struct send *s, int error)
{
	if (error < 0 && error != -ENOENT && error != -EBADMSG)
		acts_hold_ends(s, s->now_wall + s->conf->error_interval);
}

static int
released(struct send *s, struct act_task *t, uint32_t *ret_running UNUSED)
{
	char text[QUEUE_ID_SIZE];

	hold_again(s, t->task.error);
	if (t->task.error < 0)
		return 0;
	queue_id_format(&t->id, text);
	deferred_left_hold(s);
	deferred_make_due(s, t->id.inode, 0, true);
	sync_changed(s);
	s->pub.changed = true;
	log_message(LOG_INFO_L, "hold-is-over", text,
	    "released: the time of its hold is over");
	return 0;
}

static int
read_note(const struct spool *sp, uint64_t inode, struct queue_id *ret_id,
    struct hold_note *ret_note)
{
	struct queue_file file;
	int r, fd = spool_open_file(sp, SPOOL_HOLD, inode, O_RDONLY);

	if (fd < 0)
		return -ENOENT;
	r = queue_file_read(fd, &file);
	if (r == 0) {
		*ret_id = (struct queue_id){ file.arrival_wall, file.nonce,
			file.queue, inode };
		r = hold_note_read(sp, ret_id, ret_note);
	}
	io_close(&fd);
	return r;
}

void
acts_look_at_held(const struct spool *sp, struct walk_item *item)
{
	struct hold_note note = { 0 };

	item->note_error = read_note(sp, item->file.inode, &item->id, &note);
	item->until_wall = note.until_wall;
}

/* The thread that releases it reads the note again. */
void
acts_found_held(struct send *s, const struct walk_item *item)
{
	struct act_task *t = NULL;

	hold_again(s, item->note_error);
	if (item->note_error < 0 || item->until_wall == 0)
		return;
	if (item->until_wall <= s->now_wall)
		t = act_task_own(s, SPOOL_HOLD, item->file.inode,
		    act_task_release, released);
	else
		acts_hold_ends(s, item->until_wall);
	if (t == NULL)
		return;
	t->what = ACT_RELEASE;
	t->id = item->id;
	(void)act_run(s, t);
}

usec_t
acts_hold_work(struct send *s)
{
	if (s->hold_until == 0)
		return USEC_NEVER;
	if (s->now_wall < s->hold_until)
		return s->now + (s->hold_until - s->now_wall);
	if (s->health.read_only)
		return USEC_NEVER;
	s->hold_until = 0; /* the walk finds the next one */
	s->walks[WALK_HOLD].wanted = true;
	return s->now;
}
