/* queue-send/message/leave.h - how a message leaves the active queue, by its
 * fate (docs/QUEUE.md, "States in queue-send"): finish.c says when. */
#ifndef QUEUE_SEND_MESSAGE_LEAVE_H
#define QUEUE_SEND_MESSAGE_LEAVE_H

#include "queue-send/message/path.h"

struct leave {
	/* Either the message goes at once: 0 or -errno; */
	int (*go)(struct send *s, struct message *m);
	/* or its file moves there, with a due time, */
	enum spool_dir to;
	enum move_due due;
	unsigned clear_after; /* SPOOL_DIR_BIT() of reasons that go then, */
	/* and then memory follows, unless in is NULL. */
	void (*in)(struct send *s, struct message *m, const struct move *mv);
	void (*say)(const struct message *m, const char *id); /* or NULL */
	bool for_good; /* counted as finished */
	/* The marks are on disk before the file moves, since a power cut may
	 * keep the move and lose them. A file that is removed takes its marks
	 * along; one that is gone or another message's has none of this one. */
	bool needs_marks;
	/* Failures are reported before it moves. Where they are not, the next
	 * attempt is soon and tells of them, or nothing can be told. */
	bool tells;
};

extern const struct leave leave[NFATES];
/* Sets the fields of the move that the table has for mv->fate. */
void leave_prepare(struct send *s, const struct message *m, struct move *mv);

#endif
