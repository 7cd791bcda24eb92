#include "queue-send/message/path.h"

#include <errno.h>
#include <stdlib.h>

#define LEAVING_MAX 64 /* under way */

bool
move_is_under_way(const struct message *m)
{
	return m->state == STATE_ENTERING_INCOMING ||
	    m->state == STATE_ENTERING_DEFERRED || m->state == STATE_LEAVING;
}

bool
moves_are_full(const struct send *s)
{
	return s->messages.count[STATE_LEAVING] >= LEAVING_MAX;
}

static void
end_move(struct send *s, struct move *mv)
{
	struct message *m = messages_find(&s->messages, mv->t.task.inode);

	if (m != NULL && move_is_under_way(m))
		mv->ended(s, m, mv);
}

/* Messages for which there was no place have the next. What becomes of them is
 * decided anew. */
static void
let_more_leave(struct send *s)
{
	const uint32_t leaving = s->messages.count[STATE_LEAVING];
	uint32_t places = leaving < LEAVING_MAX ? LEAVING_MAX - leaving : 0;
	struct message *m;

	for (; places > 0; places--) {
		m = messages_first(&s->messages, STATE_UNMOVED);
		if (m == NULL)
			return;
		messages_put(&s->messages, m, STATE_FINISHED);
	}
}

static void
ended(void *send, struct sync_task *task)
{
	struct send *s = send;

	end_move(s, (struct move *)(void *)task);
	sync_task_free(task);
	let_more_leave(s);
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
