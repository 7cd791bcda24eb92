/* qctl/show/shares.h - what each user has in the queues, beside the limits
 * (docs/DOOR.md, "Shares"): from the table that todo-proc writes in each queue,
 * from the drops, and from the door's file of each user.
 *
 *	shares      the command, the process of a queue
 *	share_row   one row: its order, text and JSON */
#ifndef QCTL_SHOW_SHARES_H
#define QCTL_SHOW_SHARES_H

#include "qctl/task/task.h"
#include "submit/use.h"

/* An exit code. */
int shares_show(struct task *t);

enum share {
	SHARE_MESSAGES,
	SHARE_BYTES,
	SHARE_FILES,
	SHARE_RATE, /* level: each message adds one, the rate drains it */
	SHARE_UNDER_WAY,
	NSHARES,
};

struct share_row {
	uid_t uid;
	bool is_free;    /* no limit is on this user */
	bool knows_door; /* the rate and submissions under way could be read */
	struct use use;
	struct share_figure {
		uint64_t use, limit; /* limit 0: none */
	} figures[NSHARES];
};

/* The figures of a row whose use is set. */
void share_row_complete(const struct task *t, struct share_row *row);
/* The order of rows: as strcmp(). The user comes first whose share is the
 * nearest to its limit, of users without limits the one with most messages. */
int share_row_compare(const struct share_row *a, const struct share_row *b);

struct shares_time {
	usec_t walked_wall; /* the earliest of the last walks; 0: none */
	bool is_running;    /* the instance */
};
/* A row for people or for programs, with its end. */
void share_row_text(struct buf *out, const struct share_row *row);
void share_row_object(struct buf *out, const struct share_row *row,
    const struct shares_time *when);
extern const char share_row_head[];

#endif
