/* todo-proc/waiting.h - what of each user waits in this queue, for the shares
 * at the door (spool/waiting.h).
 *
 * Counted by walks over incoming/, active/, deferred/ and hold/, by the owners
 * of the files; what is picked up since a walk began is added at once. So what
 * comes is known within WAITING_TELL, what goes by the next walk. A walk is
 * not begun before WAITING_SHARE times the duration of the last has passed, and
 * not at all before anything of a user was seen: where nobody comes through
 * the door this costs one walk at the start. */
#ifndef TODO_PROC_WAITING_H
#define TODO_PROC_WAITING_H

#include "todo-proc/todo.h"

#define WAITING_EVERY USEC_PER_SEC
#define WAITING_SHARE 50
#define WAITING_TELL  (USEC_PER_SEC / 10)

void waiting_init(struct todo *t);
/* Tells what is not told yet: it counts while the system is stopped. */
void waiting_done(struct todo *t);
/* A drop of this user came to incoming/. */
void waiting_picked_up(struct todo *t, uid_t uid, uint64_t bytes);
/* queue-send works: what is counted may have gone. */
void waiting_changed(struct todo *t);
usec_t waiting_work(struct todo *t);

#endif
