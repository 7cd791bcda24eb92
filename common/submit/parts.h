/* submit/parts.h - shared by the sources of common/submit only.
 *
 *	submission.c  one message: begin to commit
 *	accept.c      options of an acceptance, the Received field
 *	submit.c      facts about the queues, and their open directories
 *	choose.c      which queue a message goes to; pure
 *	door.c        a message through the program queue-drop
 */
#ifndef SUBMIT_PARTS_H
#define SUBMIT_PARTS_H

#include "ipc/bell.h"
#include "ipc/page.h"
#include "submit/submit.h"

#include <sys/queue.h>
#include <sys/types.h>

/* ---- choose.c ----
 *
 * A message goes to an open queue that is not full: whose load is below
 * queue_load. Of several queues the one with the smallest backlog is chosen, of
 * equal backlogs the queue with the least load, of equal loads each in turn. A
 * queue whose disk is late has no load either, since nothing leaves or enters.
 * If the disks of all queues are late, the queue whose disk has been late for
 * the shortest time is chosen. On a busy host every disk is late now and then,
 * and only one of the disks may hang.
 * The backlog goes before the load, since a queue whose mail waits for a
 * destination that another queue fills has no load. The facts come from
 * shared memory (docs/IPC.md), which is believed no further than this choice: a
 * page that is missing, short, stale or absurd only makes a queue less
 * attractive, and where the supervisor's page says nothing, the queue
 * directories on disk are the queues. Shared memory can refuse one thing: mail
 * for an instance whose queues are all disabled or draining.
 *
 * Pure but for the reader that is passed in. */

/* Better ones first. */
enum queue_rank {
	RANK_OPEN,  /* open, and its page is fresh */
	RANK_BLIND, /* open, nothing is known of its load */
	RANK_LATE,  /* open, and the disk is late: `late` is not 0 */
	RANK_DISK,  /* the directory is there; or the queue is quarantined, or
		     * its file system took no mail */
	RANK_NEVER, /* draining or disabled */
};

struct queue_fact {
	uint32_t queue;
	enum queue_rank rank;
	bool failed;  /* did not take the message when it was tried */
	bool is_full; /* the load is at queue_load or above */
	/* Time that the oldest call to the disk has waited; 0 if that time is
	 * shorter than DISK_SLOW. The disk is late if this is not 0. */
	usec_t late;
	uint32_t load_pct;
	/* Files in maildrop, incoming and active, and those of deferred that
	 * were never tried. */
	uint64_t backlog;
	uint64_t incoming; /* of a page, else 0 */
};

struct queue_facts {
	size_t count;
	bool shut; /* the supervisor lives, and no queue is open */
	struct queue_fact rows[PAGE_QUEUES_MAX];
};

/* Reads pages: sched_page_read() and queue_page_read(), or a test's. */
struct choose_reader {
	int (*sched)(void *arg, struct sched_page *ret_page);
	int (*queue)(void *arg, uint32_t queue, struct queue_page *ret_page);
	void *arg;
};

/* Read shared memory. Without a usable page of the supervisor there
 * are no rows. */
void choose_judge(const struct choose_reader *reader, usec_t now_mono,
    struct queue_facts *ret_facts);
/* Add queues that are known by their directories only; a queue whose own page
 * is fresh and says disabled is never chosen. */
void choose_add_disk(struct queue_facts *facts, const uint32_t *queues,
    size_t count, const struct choose_reader *reader, usec_t now_mono);
/* The row to try next, or -1. `turn` goes up by one a message. */
int choose_queue(const struct queue_facts *facts, uint32_t turn);
/* The row of a queue, or NULL. */
struct queue_fact *choose_find(struct queue_facts *facts, uint32_t queue);

/* ---- submit.c ---- */

/* A queue whose directories are open. */
struct submit_queue {
	TAILQ_ENTRY(submit_queue) link;
	struct spool spool;
	struct bell_rope bell;
	usec_t looked_at; /* found open and with ample room; 0: not */
	uint32_t users;   /* submissions that write to it */
	bool listed;      /* else it is closed by its last user */
};
TAILQ_HEAD(submit_queue_list, submit_queue);

struct submit {
	const struct conf *conf;
	const struct spool_sys *sys;
	struct choose_reader reader;
	struct queue_facts facts;
	usec_t judged_mono; /* when the facts were read */
	usec_t now_mono;    /* of this submission */
	int32_t pid;        /* for the bell */
	bool judged;        /* the facts are valid, */
	bool disk;          /* and have the directories too */
	bool knows_qmails;  /* the supervisor's page was read for the facts: */
	uid_t qmails_uid;   /* the owner of the queues' pages, by that page */
	uint32_t turn;
	struct submit_queue_list open; /* the one used last is first */
	size_t nopen;
};

/* Read the facts, unless they are fresh. */
void submit_judge(struct submit *s);
/* Add the queue directories to the facts. How many there are; 0: they were
 * added before, or need not be; -errno of the directory, -ESHUTDOWN: all are
 * sealed. */
int submit_judge_disk(struct submit *s);
/* Open the directories of a queue. The caller is a user of it until
 * submit_release(). */
int submit_open_queue(
    struct submit *s, uint32_t queue, struct submit_queue **ret_queue);
void submit_release(struct submit_queue **queue);
/* Read the facts anew. Does the disk of a queue let calls wait, or is the
 * queue, which took a message before, closed now? */
bool submit_is_late(struct submit *s, uint32_t queue);
/* Note a failure against the queue: its row is not chosen while the facts last,
 * its directories are opened anew next time. */
void submit_queue_failed(struct submit *s, uint32_t queue);

/* ---- door.c ----
 *
 * One run of queue-drop. Soft: as submit.h says of the door; -ENOENT: the
 * program is not found; -ETIMEDOUT: give_up() said so, the door was left
 * behind, and will not accept the message, since it was not told the end. The
 * text is in `reason`. */

struct through_door {
	pid_t pid;        /* 0: there is none */
	int in, out, err; /* pipes to it; -1 */
	struct buf content;
	char reason[ROOM_TEXT_SIZE];
	/* Asked each THROUGH_DOOR_PATIENCE in which the door does not go on: is
	 * the disk late, and the message to begin in another queue? NULL: the
	 * door is waited for, however long it takes. */
	bool (*give_up)(void *arg);
	void *arg;
};

#define THROUGH_DOOR_PATIENCE USEC_PER_SEC

/* The program lies in program_dir, beside this one, or in libexec. */
int through_door_begin(
    struct through_door *t, const struct conf *conf, uint32_t queue);
int through_door_content(struct through_door *t, const void *data, size_t len);
int
through_door_sender(struct through_door *t, const char *address, size_t len);
int through_door_rcpt(struct through_door *t, const char *address, size_t len);
int through_door_dsn(struct through_door *t, const struct dsn_mail *dsn);
int through_door_rcpt_dsn(struct through_door *t, const struct dsn_rcpt *dsn);
int through_door_commit(struct through_door *t, struct queue_id *ret_id);
/* Always: a message that is not committed is not accepted. */
void through_door_end(struct through_door *t);

#endif
