/* queue-send/schedule/schedule.h - the scheduler of this queue and the table of
 * destinations that it works on.
 *
 *	schedule.c      the scheduler's life, and its parameters from the
 *	                configuration; the windows of destinations, shared with
 *	                all queues
 *	schedule_log.c  deaths of destinations and selections, in the log
 *	rollup.c        domains whose MX hosts make them one destination
 *	ungreeted.c     destinations that have not greeted: their slots
 */
#ifndef QUEUE_SEND_SCHEDULE_SCHEDULE_H
#define QUEUE_SEND_SCHEDULE_SCHEDULE_H

#include "queue-send/state/send.h"

/* ---- schedule.c ---- */

/* 0 or -ENOMEM; schedule_done() is right after either. */
int schedule_init(struct send *s);
/* With no message left. */
void schedule_done(struct send *s);
/* All parameters are those of s->conf from now on. */
void schedule_configure(struct send *s);
/* An agent came, went, is full or not any more: transports without one that
 * can take deliveries have a process limit of 0. */
void schedule_limits(struct send *s);
/* Nothing is to start meanwhile, whatever agents there are; or again. A queue
 * that may not start anything must not keep its grant at destinations. */
void schedule_pause(struct send *s, bool pause);
bool schedule_is_paused(const struct send *s);

/* ---- rollup.c (docs/SITES.md, "Domains of the same MX hosts") ----
 *
 * What agents said of next hops, for as long as they said, within bounds. A
 * hint: each delivery is asked for by its agent again. */
struct rolled {
	RB_ENTRY(rolled) link;
	TAILQ_ENTRY(rolled) use;
	usec_t until;
	uint64_t number; /* the next hop's, as a group of common/sched */
	uint32_t transport;
	const char *nexthop, *site; /* in text */
	char text[];
};

void rollup_forget_all(struct send *s);
/* The destination of the next hop; NULL: its own. Good until the next call. */
const struct rolled *
rollup_find(struct send *s, uint32_t transport, const char *nexthop);
/* An agent said so. site "": the next hop has its own. */
void rollup_note(struct send *s, uint32_t transport, const char *nexthop,
    const char *site, uint32_t seconds);
/* May the next hop share a destination with other next hops (MX roll-up)? */
bool rollup_may_be_shared(
    const struct send *s, uint32_t transport, const char *nexthop);
/* Is the entry at a shared destination? */
bool rollup_is_shared(const struct send *s, const struct sched_entry *e);
/* Is the agent to say where the entry, which is for this next hop, belongs? */
bool rollup_is_asked(
    const struct send *s, const struct sched_entry *e, const char *nexthop);
/* Can the entry move only to the destination of its next hop? */
bool rollup_is_last_move(const struct sched_entry *e);
/* The destination that an entry belongs to which was selected for another one;
 * NULL: none is known. */
const char *rollup_elsewhere(struct send *s, const struct sched_entry *e);

/* ---- windows of destinations ----
 *
 * The windows of destinations (docs/SITES.md) live in the segment that all
 * queues share: the supervisor links it, and another one in its place when it
 * was lost. No delivery starts while there is none. */

/* This process ends before its deliveries: their places stay taken until the
 * supervisor has seen the end of all processes that may have connections. */
void site_table_abandon(struct send *s);
/* The segment, the first one or one in the place of another; takes the
 * descriptor. */
int site_table_linked(void *send, int fd);
/* All processes of that group are gone. */
void site_table_forget(struct send *s, uint32_t queue, uint32_t generation);
/* Tell the scheduler where there is room now. */
usec_t site_table_work(struct send *s);
/* The cost of the table so far, in the log. */
void site_table_tell(const struct send *s);

/* ---- ungreeted.c (docs/QUEUE.md, "Servers that do not greet") ----
 *
 * Which servers have greeted is forgotten with the process. A queue knows of
 * UNGREETED_KNOWN destinations that have; the least recently used makes room.
 */
#define UNGREETED_KNOWN 65536

void ungreeted_init(struct send *s);
void ungreeted_done(struct send *s);
/* The entry was selected; each of these calls ends with ungreeted_over(). */
void ungreeted_selected(struct send *s, struct sched_entry *e);
/* Before the entry goes back to the scheduler. A call too many is no matter. */
void ungreeted_over(struct send *s, struct sched_entry *e);
/* The server of this delivery has greeted. */
void ungreeted_greeted(struct send *s, struct sched_entry *e);
/* A delivery that was greeted ends. */
void ungreeted_greeted_over(struct send *s, const struct sched_entry *e);
/* A failure before a greeting. Its destination is one that has not greeted,
 * unless it has since the entry was selected, or a delivery that it has greeted
 * is under way. */
void ungreeted_failed(struct send *s, const struct sched_entry *e);
/* Does the destination wait for a slot of those that have not greeted? They
 * have *ret_used of *ret_limit. */
bool ungreeted_is_held(struct send *s, uint32_t transport, const char *name,
    uint32_t *ret_used, uint32_t *ret_limit);
/* Tell the scheduler of destinations that may have a slot now. */
usec_t ungreeted_work(struct send *s);

/* ---- schedule_log.c ----
 *
 * A line when a destination dies and when it opens again; with
 * destination_concurrency_feedback_debug every delivery report with the window
 * it moved, and every selection with the slots it was made by (docs/QUEUE.md
 * has the lines). The queue that found a death tells of it, once, however many
 * share the destination; the others say of each recipient why it waits.
 *
 * The scheduler opens a dead destination when it has something to ask it for,
 * which may be never. So that the log tells when its time was over, dead
 * destinations are kept here, at most WATCH_DEAD_MAX. */
#define WATCH_DEAD_MAX 20000

/* Ask the scheduler for what the configuration wants to see. */
void schedule_log_set(struct send *s);
/* Tell of destinations whose time is over. */
usec_t schedule_log_work(struct send *s);
/* A flush opened all of them; how many there were. */
uint32_t schedule_log_flushed(struct send *s);

#endif
