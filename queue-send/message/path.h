/* queue-send/message/path.h - the way of a message through the active queue
 * (docs/QUEUE.md), in this order.
 *
 *	active.c        moved to active/, its trailer read, announced
 *	recipients.c    recipients are read and routed, a batch at a time
 *	                (agents/agents.h: dispatched to agents, their replies)
 *	undelivered.c   an entry that is given up, or moved
 *	dead.c          recipients of dead destinations are deferred
 *	results.c       the result of each recipient: reason, mark, log
 *	success.c       deliveries whose sender asked to be told
 *	probe.c         can marks be written again?
 *	late.c          is the disk late?
 *	delivery_log.c  the line of the log
 *	settle.c        has all of it been dealt with?
 *	sync.c          marks are on disk before the file moves
 *	                (reports/reports.h: failures are reported)
 *	finish.c        what becomes of it, and whether it leaves now
 *	leave.c         to deferred/, hold/, corrupt/, or to be removed
 *	removal.c       removed, behind the others
 *
 * Beside it: moves.c moves files in threads, accepted.c writes that a message
 * was accepted, recover.c deals with files that a crash left in active/, and
 * gone.c with files that are gone or cannot be read.
 */
#ifndef QUEUE_SEND_MESSAGE_PATH_H
#define QUEUE_SEND_MESSAGE_PATH_H

#include "queue-send/message/move_task.h"
#include "queue-send/message/record_task.h"
#include "queue-send/disk/files.h"
#include "queue-send/disk/work.h"
#include "queue-send/state/send.h"

/* ---- moves.c: the file of a message goes to another directory ----
 *
 * A thread does that, with what belongs to it: reasons and the due time that
 * are written before, the open after. Until it has ended the message is on
 * STATE_ENTERING_* or STATE_LEAVING: nothing else is done with it, it is not
 * dropped, and its file lies in one of the two directories. On a file system in
 * memory the loop does it. */

struct move {
	struct move_task t; /* first; from, inode, id are move_begin()'s */
	/* The move has ended, with t.task.error; m is in the state that it
	 * got. May drop m, and takes t.fd if it sets that to -1. */
	void (*ended)(struct send *s, struct message *m, struct move *mv);
	enum message_fate fate; /* of a message that leaves */
	usec_t at_mono;         /* when it is due again */
};

/* m is STATE_ENTERING_* or STATE_LEAVING from now on: mv is copied. Where there
 * is no thread ended() was called when this returns, and m may be gone. */
void move_begin(struct send *s, struct message *m, struct move *mv);
bool move_is_under_way(const struct message *m);
/* So many leave that the next one waits, on STATE_UNMOVED. */
bool moves_are_full(const struct send *s);

/* ---- active.c ---- */

/* Fill the active queue from the two lists of offered messages, in turn. */
usec_t active_work(struct send *s);
/* Nothing may be done with this message any more: take it out of the active
 * queue and out of memory. The file is not touched. */
void active_forget(struct send *s, struct message *m);

/* ---- accepted.c ----
 *
 * The line of a message that was accepted, by whatever way it came:
 *
 *	ID: uid=1000, size=2041, from=<s>, message-id=<m>
 *
 * Submitters have no log, so it is written when the message leaves incoming/:
 * what lies there has no line yet. Exceptions are messages of other queues,
 * which log them before they give them away, and messages that came back to
 * incoming/, which are noted in memory, so that the line is not repeated. */

/* This message, whose line is in the log, goes back to incoming/. Without
 * memory its line is repeated. */
void
accepted_note(struct accepted_tree *tree, uint64_t inode, usec_t arrival_wall);
/* Was it noted, and has not left incoming/ since? */
bool accepted_is_noted(
    struct accepted_tree *tree, uint64_t inode, usec_t arrival_wall);
void accepted_done(struct accepted_tree *tree);
/* The message left incoming/; fd is its open file. */
void accepted_log(struct send *s, uint64_t inode, int fd,
    const struct queue_file *file, const char *sender);
/* The same where the Message-ID is known. */
void accepted_log_known(struct send *s, uint64_t inode,
    const struct queue_file *file, const char *sender, const char *message_id);
/* The same where the trailer and the sender are to be read. */
void accepted_log_file(struct send *s, uint64_t inode, int fd);
/* The same of a message that lies in deferred/ now; fd: its file, or below 0.
 */
void accepted_log_parked(struct send *s, uint64_t inode, int fd);

/* ---- recipients.c ----
 *
 * Recipients are routed as they are read, so that a message follows a routing
 * that was corrected. How large a batch is, and when the next one is read, says
 * the scheduler (docs/SCHEDULING.md, section 6). A batch may span turns:
 * nothing of it is selected before its end. A recipient without a route is
 * deferred (4.3.5). */
usec_t recipients_work(struct send *s);
/* Read all of a message of few recipients, which is on STATE_READING, in the
 * turn in which its file is opened. */
void recipients_read_few(struct send *s, struct message *m);
/* Where a recipient of mail from this sender is delivered, NULL when the sender
 * is not known: by_itself: the recipient is the destination. Nothing is made or
 * changed. -ENOENT: no route, or no transport; -EDESTADDRREQ: the recipient
 * makes no next hop, now or ever; -ENOMEM; all with `why'. */
struct recipient_route {
	uint32_t transport;
	bool mailbox; /* the next hop stands for it */
	bool by_itself;
	const char *why;
	char nexthop[ROUTE_NEXTHOP_MAX + 1];
};
int recipients_route(const struct send *s, const char *sender,
    const char *address, bool expanded, struct recipient_route *ret);
/* Read the record again that a handle of the entry stands for; the handles of
 * an entry one after the other. 0 or -errno. */
int recipients_read(struct send *s, const struct message *m,
    const struct sched_entry *e, uint32_t handle, struct queue_rcpt *ret_rcpt);

/* ---- sender.c ---- */

/* The envelope sender of the copy for this recipient, ended by NUL. Of a VERP
 * message -ENAMETOOLONG or -ENOMEM as verp_expand(). */
int sender_for(const struct send *s, const struct message *m,
    const char *recipient, char out[ADDRESS_MAX + 1]);

/* ---- undelivered.c ---- */

/* The entry cannot be dealt with: the file (-errno), or the fate of its message
 * does not let it. Its message is to leave the active queue for that. */
void entry_give_up(
    struct send *s, struct sched_entry *e, enum site_result result, int error);
/* The entry waits for another destination, if its message still goes its way.
 */
void entry_move(struct send *s, struct sched_entry *e, const char *destination);

/* ---- dead.c ----
 *
 * Entries for a dead destination are deferred without an attempt, with the
 * reason that killed the destination. */
usec_t dead_work(struct send *s);

/* ---- results.c ----
 *
 * The reason, if there is one, is appended first, then the mark is written,
 * then the result is logged and counted: no mark stands without its reason. A
 * result whose mark cannot be written stays in memory, unrecorded, and is
 * tried again; its message waits for it. */
void
results_apply(struct send *s, struct message *m, const struct report *report);
/* Unrecorded results. */
usec_t results_work(struct send *s);
void results_init(struct send *s);
void results_done(struct send *s);
/* So many wait for the disk that no delivery begins. */
bool results_are_full(const struct send *s);
/* So many reasons of deferrals wait that no recipient of a dead destination is
 * deferred. */
bool reasons_are_full(const struct send *s);
/* The reason of a recipient alone, in bounce/, which is begun anew with the
 * first of a new message, since what lies there is another message's: inode
 * numbers are reused. */
void results_add_reason(
    struct send *s, struct message *m, const struct report *report);

/* ---- probe.c ----
 *
 * A queue that cannot write marks tries to every error_interval: a thread
 * writes one byte, so that a probe that hangs delays nothing but itself. */
usec_t probe_work(struct send *s);
/* All that the disk refused is tried now, not after error_interval. */
void probe_try_all(struct send *s);

/* ---- late.c ----
 *
 * A thread writes one block to the disk, past the memory of the kernel: every
 * two seconds, and ten times a second while mail comes or waits. So a
 * disk that hangs shows, also while nothing else waits for the disk. A spool in
 * memory is not asked.
 */
usec_t late_work(struct send *s);
/* The fields of the page. */
void late_fill(struct send *s, struct queue_page *page);

/* ---- delivery_log.c ----
 *
 * The line of one result, as log readers of other systems parse it:
 *
 *	ID: to=<r>, relay=…, delay=2.3, delays=a/b/c/d, dsn=2.0.0, status=sent
 *	(text)
 *
 * In front of it the sender, where each recipient has one of its own (VERP).
 *
 * delays: before the active queue / in it / connecting / sending. */
void delivery_log(
    const struct send *s, const struct message *m, const struct report *r);

#define DELAY_SIZE 24
/* Seconds with at most two significant digits behind the point: "0", "0.02",
 * "1.5", "73". The length. */
size_t delay_format(usec_t delay, char out[DELAY_SIZE]);

/* ---- settle.c ---- */

/* Recipients of the message have been dealt with: it is finished when nothing
 * of it waits, runs or is unread. */
void settle_message(struct send *s, struct message *m);
/* Nothing more of it is to start here: it is finished, as FATE_ASIDE, when
 * what runs has ended. A message that only waits for that is left as it is. */
void settle_aside(struct send *s, struct message *m);

/* ---- sync.c ----
 *
 * A move to deferred/, hold/ or incoming/ is in the journal of the file system
 * within moments, the marks that were written before it within half a minute:
 * a power cut between the two delivers everything again (docs/SPOOL.md, "Power
 * cuts"). So a message that leaves with marks of its own waits for a sync of
 * its reasons and then of its file, which a pool of threads does.
 *
 * For messages that stay long, and for what was removed, the whole file system
 * of the queue is synced mark_sync_interval after the first change. Marks carry
 * the epoch in which they were written: a sync of the whole begins a new epoch,
 * and when it succeeds all marks of the epochs before are on disk.
 *
 * A file whose sync fails is never synced again as proof: its message is
 * deferred, and the error counts in health. */

void sync_init(struct send *s);
/* A mark of the message was written. */
void sync_marked(struct send *s, struct message *m);
/* Something was done that a power cut may undo for long. */
void sync_changed(struct send *s);
/* Has the message marks that may not be on disk? */
bool sync_is_wanting(const struct send *s, const struct message *m);
usec_t sync_work(struct send *s);

/* ---- finish.c ---- */

/* By its fate (message.h), a finished message leaves the active queue. */
usec_t finish_work(struct send *s);

/* ---- removal.c ----
 *
 * A message that is done is forgotten, and its file and its reasons are removed
 * by threads, since some file systems take a millisecond for it. Until then the
 * file lies in active/, its inode is known here, and no other message of that
 * inode is taken. A start removes it, or has it go its way again, which
 * delivers and reports nothing that was delivered or reported.
 *
 * As many as WAITING_MAX can wait; then no message comes into the active queue.
 * On a file system in memory the loop removes. */

void removal_init(struct send *s);
void removal_done(struct send *s);
/* The message is done, and forgotten by the caller. reported: failures of it
 * were; its reasons in bounce/ go after the file. 0, -ENOMEM, -EEXIST. */
int removal_begin(struct send *s, const struct message *m, bool reported);
/* The last recipient of the message is delivered, and where that waits for no
 * disk its file goes at once, in place of the mark: nothing can happen between
 * the two. Its reasons would have to go before. 0: m->removed; -EAGAIN: not of
 * this message, or not here; -errno. */
int removal_in_place_of_mark(struct send *s, struct message *m);
/* Behind the line of its last recipient, the line of that removal. */
void removal_tell(struct send *s, const struct message *m);
/* The same of one that the last run had done. */
int removal_begin_left(struct send *s, const struct queue_id *id);
/* Is a file of that inode to be removed? */
bool removal_is_under_way(struct send *s, uint64_t inode);
/* So many wait that no message may come. */
bool removal_is_full(const struct send *s);
/* How many can be removed and were not yet. */
uint32_t removal_to_do(const struct send *s);
/* The queue can be written again. */
void removal_probed(struct send *s);
usec_t removal_work(struct send *s);

/* ---- recover.c ----
 *
 * At start, files that the last queue-send left in active/ go back to
 * incoming/, but for messages whose marks say that all of it was delivered:
 * those leave right then. All of it may be done twice. Files that could not be
 * moved then (a full or read-only file system) are tried again by the walks of
 * deferred.c.
 *
 * Which marks the last queue-send has synced is unknown, so the file system
 * is synced once before the first marked message moves. A mark that says
 * "failed" without a reason in bounce/ is left by a power cut: that recipient
 * is pending again. */
struct recovered {
	struct accepted_tree *accepted; /* gets the returned ones */
	uint64_t returned;
	uint64_t removed;
	uint64_t errors;
	uint64_t unmarked; /* recipients whose reason was lost */
	bool synced;
	struct send *behind; /* removes what is done */
};

/* With the queue's lock held. Counts in *done; logs files that it cannot move.
 */
void recover_active(const struct spool *sp, struct recovered *done);
/* One file of active/ that is no message of the running queue-send, in a
 * thread. 1: it is back in incoming/; 0: all of it was delivered, and its file
 * is to be removed; -errno, -ENOENT when it is not there. Nothing is synced
 * here. *ret_id: with both; its arrival is 0 if it could not be read. */
int
recover_stray(const struct spool *sp, uint64_t inode, struct queue_id *ret_id);

/* ---- success.c: docs/REPORTS.md, "What the sender asks for" ---- */

/* Is a report to tell of this recipient, who has the message? */
bool success_is_wanted(bool has_sender, const struct queue_rcpt *rcpt);

/* ---- gone.c ---- */

/* The file is gone from where it was. Its reasons go too, lest they meet the
 * next file of that inode, unless the file lies elsewhere in the queue. Those
 * for which there is no place among the acts the next message clears. */
void found_gone(struct send *s, uint64_t inode);
/* todo-proc cannot read a file of deferred/ (EIO), so it is never offered. When
 * it has not changed for longer than mail is kept it goes to corrupt/; without
 * a place among the acts when it is asked for again. */
void found_unreadable(struct send *s, uint64_t inode);

#endif
