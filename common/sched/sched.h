/* sched/sched.h - which entry is delivered next: the preemptive scheduler,
 * pure. "Rule N" in a comment is section N of docs/SCHEDULING.md.
 *
 *	            1       n       1       n
 *	  message ────▶ job ─────────▶ peer ─────────▶ entry ──▶ recipients
 *	                 ▲ n            ▲ n
 *	               1 │            1 │
 *	             transport ────▶ destination ─ ─ ▶ site (site.h: the window)
 *	                         n
 *
 *   message      one queue file with its recipients
 *   transport    a delivery service with its own agents and limits
 *   destination  one nexthop of one transport; owns a concurrency window
 *   job          one message within one transport
 *   peer         the part of a job bound for one destination
 *   entry        a batch of at most destination_recipient_limit recipients of
 *                one peer: what is selected and handed to a delivery agent
 *   window,busy  how many deliveries a destination may have at once, and has
 *   full         of a job: it has entries, none for a destination with room
 *   current job  where selection stands in the job list: mostly the job whose
 *                entry was selected last
 *   blocker      a full job that selection has gone by: those before the
 *                current one
 *
 * A message has a job in each transport that its recipients use, a job has a
 * peer for each destination that it still has entries for. A transport keeps
 * its jobs in the job list: by the arrival of their messages, but for those
 * that preempted another one, which stand directly before it.
 *
 * No I/O, no clock (the caller passes the time), no logging; on the path of a
 * selection memory is only taken when one of three pools has to grow.
 * Recipients are handles (where the record lies in the queue file), not
 * addresses. Nexthops compare without case. What a destination has learned is
 * in the table that queues share (site/site.h).
 *
 * Cost, amortized: selecting, ending, blocking, unblocking and arriving take
 * O(log n) in messages, blocked jobs, destinations and recipients. A search for
 * a candidate takes O(log n) for each of log n trees (rule 5). A job that
 * preempts moves its peers, O(log n) each. No table is moved, cleared or freed
 * as a whole. Section 8 has the most steps that were found, and their test.
 *
 * Soft: -ENOMEM, nothing changed; -EINVAL for a transport that is not there.
 * The scheduler owns everything it returns; an entry lives from sched_select()
 * or sched_take_dead() to sched_done(), a message from sched_message_new() to
 * sched_message_free().
 */
#ifndef SCHED_SCHED_H
#define SCHED_SCHED_H

#include "sched/params.h"
#include "site/site.h"

struct sched;
struct sched_message;

/* More recipients than this are never in one entry, whatever the parameter
 * says: the frame that hands an entry to an agent must hold any of them
 * (queue-send/agents/dispatch.c asserts it). 0 counts as this, too. */
#define SCHED_ENTRY_RCPTS_MAX 100
uint32_t sched_recipient_limit(uint32_t destination_recipient_limit);

/* There are many: 12 bytes. */
struct sched_rcpt {
	uint64_t offset; /* of the record in the queue file */
	uint32_t index;  /* of the recipient */
} __attribute__((packed, aligned(4)));

struct sched_entry {
	struct sched_message *message;
	void *owner;             /* as given to sched_message_new() */
	uint32_t transport;      /* index into the parameters */
	uint32_t mark;           /* the caller's own; 0 when it is selected */
	const char *destination; /* name: nexthop, or local@nexthop */
	const char *nexthop;
	const struct sched_rcpt *rcpts;
	uint32_t nrcpts;
	uint32_t moves; /* sched_move() so far */
	usec_t selected_at;
	/* Of sched_take_dead(): what killed the destination; good until the
	 * next call. */
	const char *why;
};

/* Why the current job was preempted, or was not: rule 5, in its order. */
enum sched_preemption {
	SCHED_PREEMPT_OFF,      /* delivery_slot_cost is 0 or 1 */
	SCHED_PREEMPT_NO_SLOTS, /* slots(C) <= 0 */
	SCHED_PREEMPT_SMALL,    /* total(C) < minimum * cost */
	SCHED_PREEMPT_NOBODY,   /* no candidate */
	SCHED_PREEMPT_UNPAID,   /* there is one, and not slots enough yet */
	SCHED_PREEMPT_DONE,     /* the candidate preempted the current job */
};

/* A job as it was when the selection began. */
struct sched_job_view {
	void *owner;   /* of its message; NULL: there was no such job */
	int64_t slots; /* in units of 1/cost slot */
	uint32_t total, selected;
};

/* One selection, for people: what was looked at and why it came out so. */
struct sched_decision {
	const struct sched_entry *entry;
	struct site_view site; /* after the place was taken */
	struct sched_job_view current, candidate;
	double score; /* of the candidate: seconds per entry */
	enum sched_preemption preemption;
	bool last; /* entry of its job */
};

/* Called from within the scheduler, which must not be called back. Each may be
 * NULL, and costs nothing then. */
struct sched_watch {
	void *ctx;
	void (*selected)(void *ctx, const struct sched_decision *decision);
	void (*step)(void *ctx, uint32_t transport, const char *destination,
	    const struct site_step *step);
};

/* sites: the table of destinations (site/shared.h), which must outlive the
 * scheduler. */
int sched_new(const struct sched_params *params,
    const struct sched_transport_params *transports, uint32_t count,
    struct shared *sites, struct sched **ret_sched);
/* With no message left. */
void sched_free(struct sched **s);
/* NULL: nobody watches. *watch is copied. */
void sched_set_watch(struct sched *s, const struct sched_watch *watch);
/* New parameters for the same transports, by index; what runs goes on. A
 * process limit of 0 stops a transport (its agent is not there); waiting
 * entries stay as large as they are; recipient slots that were given stay
 * given until they come back. -EINVAL for another count. The sites have
 * parameters of their own; call this after they were changed. */
int sched_configure(struct sched *s, const struct sched_params *params,
    const struct sched_transport_params *transports, uint32_t count,
    usec_t now);

/* One process limit alone: an agent came, went, or does not keep up. O(1). */
void
sched_set_process_limit(struct sched *s, uint32_t transport, uint32_t limit);

/* A message that came into the active queue at `now`. It has no job yet. */
int sched_message_new(struct sched *s, void *owner, usec_t now,
    struct sched_message **ret_message);
/* Each entry of the message has one recipient; destinations stay as they are.
 * Called before the first batch. */
void sched_message_single(struct sched_message *m);
/* The exact total of entries for a transport (todo-proc's census), so that
 * unread recipients count, too (rule 6). Called before the first batch. */
int sched_message_expect(
    struct sched_message *m, uint32_t transport, uint32_t entries);
/* A recipient that was read; `address` is used when the transport's
 * destination is the recipient, and not kept; NULL: the nexthop is the
 * destination, whatever destination_recipient_limit. It is not selected before
 * sched_batch_end(), and not added after the batch that was the last. -EINVAL
 * for a name above SITE_NAME_MAX, too. */
int sched_rcpt_add(struct sched_message *m, uint32_t transport,
    const char *nexthop, const char *address, const struct sched_rcpt *rcpt);
/* The same for a destination that several next hops share: recipients of one
 * group, not 0, are in entries of their own, and `nexthop` of such an entry is
 * the name of the destination. */
int sched_rcpt_add_shared(struct sched_message *m, uint32_t transport,
    const char *destination, uint64_t group, const struct sched_rcpt *rcpt);
/* The batch is complete; all_read: and so is the file. Cannot fail. */
void sched_batch_end(struct sched_message *m, bool all_read, usec_t now);
/* How many recipients may be read now, in this batch (rule 6): of the message
 * as it is, so ask once, before the first of a batch. */
uint32_t sched_message_room(const struct sched_message *m);
/* The next message whose next batch is to be read now, or NULL; each is given
 * once, then sched_batch_end() must follow for it. Messages whose first batch
 * was not read are not among them. */
struct sched_message *sched_next_unread(struct sched *s, usec_t now);
/* When sched_next_unread() may have one, if nothing happens before. */
usec_t sched_unread_at(const struct sched *s);
void *sched_message_owner(const struct sched_message *m);

/* Recipients neither selected nor done, and entries being delivered. */
uint32_t sched_message_waiting(const struct sched_message *m);
uint32_t sched_message_running(const struct sched_message *m);
/* Waiting entries are dropped and nothing more is read; running ones go on. */
void sched_message_cancel(struct sched_message *m);
/* Nothing may run; waiting entries are dropped. */
void sched_message_free(struct sched_message **m);

/* The next entry, or NULL when none may start now, or there is no memory and
 * others run. */
struct sched_entry *sched_select(struct sched *s, usec_t now);
/* The next entry that waits for a dead destination, or NULL: to be deferred
 * without an attempt, then sched_done() with SITE_UNTRIED. */
struct sched_entry *sched_take_dead(struct sched *s, usec_t now);
/* The entry of sched_select() could not be started after all: as if it had not
 * been selected, but for the order of jobs and peers, and what preemption cost
 * if it was the last of a job that preempted. */
void sched_put_back(struct sched *s, struct sched_entry *entry, usec_t now);
/* The same, and from now on the entry waits for another destination of its
 * transport, which is its nexthop. -ENOMEM: it is as it was. */
int sched_move(struct sched *s, struct sched_entry *entry,
    const char *destination, usec_t now);
/* The delivery is over; the entry is gone. The reason of the report is the one
 * that waiting recipients are deferred with if the destination dies of it. */
void sched_report(struct sched *s, struct sched_entry *entry,
    const struct site_report *report, usec_t now);
/* The same for any result but SITE_DOUBTED. */
void sched_done(struct sched *s, struct sched_entry *entry,
    enum site_result result, const char *why, usec_t now);
/* A site that had no room may have some now, or is dead (site_wait()):
 * `destination` is what site_user() points to. */
void sched_site_ready(struct sched *s, void *destination, usec_t now);
/* Flush: every destination is opened again. */
void sched_flush(struct sched *s, usec_t now);

struct sched_figures {
	uint32_t running;    /* entries being delivered */
	uint32_t waiting;    /* recipients not yet selected */
	uint32_t recipients; /* in memory: waiting or being delivered */
	uint32_t messages;
	uint32_t jobs;         /* on job lists */
	uint32_t destinations; /* with entries, waiting or running */
};
struct sched_figures sched_figures(const struct sched *s);
/* Deliveries of one transport that run now. */
uint32_t sched_transport_running(const struct sched *s, uint32_t transport);

/* The reason why some recipients of a message wait, for people: those of one
 * destination that were not selected. */
enum sched_reason {
	SCHED_WAITS_AGENT,  /* the transport has a process limit of 0 */
	SCHED_WAITS_DEAD,   /* about to be deferred */
	SCHED_WAITS_WINDOW, /* the destination is full */
	SCHED_WAITS_BEHIND, /* a large job is current: rule 5 */
	SCHED_WAITS_LIMIT,  /* all agents of the transport are busy */
	SCHED_WAITS_TURN,   /* for the next selection */
};
struct sched_wait {
	enum sched_reason reason;
	uint32_t transport;
	const char *destination;
	uint32_t recipients;
	struct site_view site;
	uint32_t busy, limit; /* of the transport */
	/* WINDOW: messages before it in line for the destination; LIMIT,
	 * BEHIND: jobs between the current one and its own. */
	uint32_t ahead;
	bool more;                   /* and more than that */
	struct sched_job_view other; /* BEHIND: the current job */
	/* BEHIND, in hundredths of slots: what overtaking costs, 0: it cannot
	 * overtake; what there is. */
	int64_t need, have;
};
/* Calls each() for at most `most` destinations, and counts for at most *budget
 * steps of lists, which it takes off: bounded work for a message of any size.
 * The number of recipients that were told of, or were counted. each() must not
 * call the scheduler. */
uint32_t
sched_explain(const struct sched_message *m, uint32_t most, uint32_t *budget,
    void (*each)(void *ctx, const struct sched_wait *wait), void *ctx);

#endif
