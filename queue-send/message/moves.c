#include "queue-send/message/path.h"

#include <errno.h>
#include <stdlib.h>

bool
move_is_under_way(const struct message *m)
{
	return m->state == STATE_ENTERING_INCOMING ||
	    m->state == STATE_ENTERING_DEFERRED || m->state == STATE_LEAVING;
}

static void
ended(void *send, struct sync_task *task)
{
	struct send *s = send;
	struct move *mv = (struct move *)(void *)task;
	struct message *m = messages_find(&s->messages, task->inode);

	if (m != NULL && move_is_under_way(m))
		mv->ended(s, m, mv);
	sync_task_free(task);
}

static const enum message_state moving[NSTATES] = {
	[STATE_OFFERED_INCOMING] = STATE_ENTERING_INCOMING,
	[STATE_OFFERED_DEFERRED] = STATE_ENTERING_DEFERRED,
	[STATE_FINISHED] = STATE_LEAVING,
};

/* All that the move owns is the copy's from here on. Without memory the loop
 * moves the file. */
void
move_begin(struct send *s, struct message *m, struct move *mv)
{
	struct move *copy = malloc(sizeof(*copy));

	sync_task_init(&mv->t.task, move_task_work, move_task_drop, ended);
	mv->t.task.inode = m->inode;
	mv->t.id = message_queue_id(m);
	mv->t.sp = &s->sp;
	mv->t.from = message_dir(m);
	mv->t.fd = -1;
	messages_put(&s->messages, m, moving[m->state]);
	if (copy != NULL) {
		*copy = *mv;
		disk_do(s, DISK_MOVE, &copy->t.task);
		return;
	}
	mv->t.task.error = move_task_work(&mv->t.task);
	mv->ended(s, m, mv);
	move_task_drop(&mv->t.task);
}
