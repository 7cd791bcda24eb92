/* queue-send/disk/walk.h - reading directories.
 *
 * A thread reads a part of a directory, with the times of its files, while the
 * loop does other things; then the loop deals with what was found. A file may
 * have moved by then, as it may between readdir() and anything else. On a file
 * system in memory the loop reads. */
#ifndef QUEUE_SEND_DISK_WALK_H
#define QUEUE_SEND_DISK_WALK_H

#include "queue-send/state/send.h"

/* A file that a walk has found, as the one that read the directory saw it: it
 * may have changed since. */
struct walk_item {
	struct spool_item file;
	/* In hold/: */
	struct queue_id id;
	int note_error;    /* -errno of hold_note_read() */
	usec_t until_wall; /* of its note; 0: no end */
	/* In bounce/: */
	bool has_message; /* the queue has a file of that inode */
};

struct walk_plan {
	enum spool_dir dir;
	bool with_stat;
	int most; /* items of a part, which are as many as a turn takes */
	/* The one that reads the directory looks at each file, and tells what
	 * the loop is to know of it; NULL: nothing. */
	void (*look)(const struct spool *sp, struct walk_item *item);
};
/* -ENOMEM. */
int walk_begin(struct send *s, const struct walk_plan *plan);
/* 1: the next item; 0: that was the last one; -EAGAIN: not yet, send_wake()
 * comes; another -errno: a part of the directory could not be read. */
int walk_next(struct send *s, const struct walk_item **ret_item);
/* The last item comes again. */
void walk_again(struct send *s);
/* Of a walk that has not begun, too. */
void walk_end(struct send *s);

#endif
