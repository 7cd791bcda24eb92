/* qctl/act/actor.h - the process that acts on the messages of one queue
 * (act.c), its rounds over all of them (rounds.c), and requeue --failed
 * (requeue.c). */
#ifndef QCTL_ACT_ACTOR_H
#define QCTL_ACT_ACTOR_H

#include "qctl/act/act.h"
#include "qctl/read/peer.h"

/* One message in the hands of this process. */
struct work {
	const struct target *target;
	usec_t due_wall; /* 0: at once */
	int error;       /* 1: to be done; 0: done; -errno */
	bool waits;      /* until its deliveries have ended */
	bool marked;     /* the act is on disk, and survives queue-send */
	bool later;      /* the act is done after this command */
	bool again;      /* not at this moment */
};

struct actor {
	struct worker *w;
	struct task *t;
	struct spool sp;
	struct peer peer;
	struct spool to; /* of ACT_SPREAD, under the lock */
	bool to_open;
	bool offline; /* under the lock of the queue */
	int lock;
	bool ruled; /* and there are rules of hold */
	uid_t uid;  /* the user who acts */
	struct work *works;
	size_t count;
	struct tally tally;
};

/* Asks queue-send for the act for each message whose error is 1, or does it
 * under the lock, until each has its answer. -errno: queue-send does not
 * answer.
 */
int actor_do(struct actor *a, enum spool_act act);
/* Waits for messages that were in delivery; deliveries that have been made
 * cannot be undone, and are told. */
void actor_await(struct actor *a, enum spool_act act);
/* requeue.c, of a message on hold, as the user of the queue: marks of failure
 * are pending again, then their reasons go, but for what the sender was told
 * of. What dies in between leaves it on hold, and nothing that was told untold.
 * -EAGAIN: queue-send has it. */
int requeue_forget(const struct spool *sp, const struct queue_id *id);
/* After ACT_SPREAD: queues that messages went to, or may have gone to, look for
 * them. One that does not run does so when it starts. */
void actor_tell_came(struct actor *a);

#endif
