/* queue-send/agents/agents.h - todo-proc and the agents.
 *
 *	links.c         frames in, agents that come and go, or die of a message
 *	offers.c        todo-proc offers messages, and is asked for them
 *	dispatch.c      entries are selected and given to agents
 *	delivery.c      an entry at an agent; its RESULT and DONE
 *	kept.c          connections that are open between two deliveries
 */
#ifndef QUEUE_SEND_AGENTS_AGENTS_H
#define QUEUE_SEND_AGENTS_AGENTS_H

#include "ipc/wire.h"
#include "queue-send/state/agent.h"

/* ---- links.c ----
 *
 * A later agent of the same program takes over at once; the earlier one keeps
 * its deliveries until its end is seen, so that results it had sent still
 * count. Of a process that ends the link is closed first, its connections
 * last: its deliveries keep their places until the next agent is linked, or
 * for LINKS_LOST. A peer that breaks the protocol loses its link, and its
 * supervisor starts it again. */
#define LINKS_LOST (500 * USEC_PER_MSEC)

/* Links of the supervisor (struct daemon_link): each takes the descriptor. */
int links_todo(void *send, int fd);
int links_local(void *send, int fd);
int links_smtp(void *send, int fd);
/* 0 or -ENOMEM. */
int links_init(struct send *s);
void links_done(struct send *s);
bool links_has_todo(const struct send *s);
/* Deliveries of agents that are lost end when it is time. */
usec_t links_work(struct send *s);
/* Time is over: agents are to close their connections. */
void links_hang_up(struct send *s);

/* ---- offers.c: the link PREP (docs/QUEUE.md) ----
 *
 * A MESSAGE is only remembered here; its file stays where it is until it is its
 * turn. A message that is known already is passed over: arrival time and nonce
 * say whether it is the same. */

/* 0, or -EBADMSG for values that todo-proc may not send. *fd: the descriptor
 * that came along, or -1; -1 when it was taken. */
int offers_on_message(struct send *s, const struct msg_MESSAGE *frame, int *fd);
int offers_on_gone(struct send *s, const struct msg_GONE *frame);
int offers_on_counts(struct send *s, const struct msg_COUNTS *frame);
/* Send CREDIT, PREPARE and SCAN. */
usec_t offers_work(struct send *s);
/* The peer is another one: nothing is asked for, offered messages lie where
 * they lay. */
void offers_reset(struct send *s);
/* The inode of the suspect that was asked for last (links.c). */
uint64_t offers_suspect(const struct send *s);
/* The same peer; its credit stands. */
void offers_drop(struct send *s);

/* ---- delivery.c ---- */

/* addresses: those of the entry, each with its NUL. NULL: -ENOMEM. */
struct delivery *delivery_new(struct send *s, struct sched_entry *e,
    const char *nexthop, const struct buf *addresses);
/* The agent has it. */
void
delivery_begin(struct send *s, struct delivery *d, struct agent_link *agent);
/* Has an agent a delivery of the message? */
bool delivery_is_of(const struct send *s, const struct message *m);
/* The destination of a next hop that may share a destination: the last answer
 * of an agent, else the destination of a delivery under way. NULL: not known.
 * Valid until the event loop goes on. */
const char *
delivery_destination(struct send *s, uint32_t transport, const char *nexthop);
/* Agents end the deliveries of the message, of NULL all deliveries, that have
 * come no further than that (enum agent_stage). */
void delivery_cancel(struct send *s, const struct message *m, uint8_t stage);
struct delivery *delivery_find(struct send *s, uint64_t id);
/* A delivery of which the agent may speak; NULL: it has none of that number. */
struct delivery *
delivery_of(struct send *s, const struct agent_link *agent, uint64_t id);
/* The delivery is over: its entry goes back, and d is freed. why: with
 * SITE_FAILED and SITE_DOUBTED, "DSN TEXT". */
void delivery_end(struct send *s, struct delivery *d, enum site_result result,
    const char *why);
/* Nothing was delivered: the entry waits for that destination, and d is freed.
 */
void delivery_move(struct send *s, struct delivery *d, const char *destination);

/* ---- dispatch.c ----
 *
 * An entry of a shared destination has one next hop, that of its recipients:
 * they are routed again, and where that differs since the routes have changed,
 * their message begins its attempt anew.
 *
 * The file of a message is open for writing before the agent gets anything:
 * no delivery starts whose marks cannot be written. The agent gets the content
 * in the frame, or a descriptor of its own, read-only. */
usec_t dispatch_work(struct send *s);

/* Frames of an agent: -EBADMSG when it breaks the protocol. */
int replies_on_result(
    struct send *s, struct agent_link *agent, const struct msg_RESULT *frame);
int replies_on_passed_on(struct send *s, struct agent_link *agent,
    const struct msg_PASSED_ON *frame);
int replies_on_greeted(
    struct send *s, struct agent_link *agent, const struct msg_GREETED *frame);
int replies_on_done(
    struct send *s, struct agent_link *agent, const struct msg_DONE *frame);
int replies_on_elsewhere(struct send *s, struct agent_link *agent,
    const struct msg_ELSEWHERE *frame);
/* Recipients of the delivery without a result; ours: of our own trouble. */
void replies_defer_rest(struct send *s, struct delivery *d, const char *dsn,
    const char *text, bool ours);

/* ---- kept.c: connections that are used again (docs/SITES.md) ----
 *
 * KEPT ends a delivery, and its connection keeps the place. The next entry for
 * the destination that the scheduler selects takes place and connection. A
 * connection is closed when its agent says so, and when other queues wait for a
 * place: one without a delivery after KEPT_IDLE; one in use, between two
 * deliveries, where this queue has held more than its share for
 * smtp_connection_turn_time. */
#define KEPT_IDLE (100 * USEC_PER_MSEC)

/* All that are open or being closed. */
uint32_t kept_count(const struct send *s);
/* The connection, and so the place, that the selected entry gets; NULL: a new
 * one. */
struct kept *kept_find(struct send *s, const struct sched_entry *e);
/* The entry waits for its file, and the connection for the entry; it may close
 * meanwhile. */
void kept_promise(struct send *s, struct kept *k, const struct sched_entry *e);
/* Tell the agent, before DELIVER; then one of the two: it has DELIVER, and *k
 * is gone; it has not, and the entry goes back. */
int kept_say(struct send *s, struct delivery *d, const struct kept *k,
    struct agent_link *agent);
void kept_taken(struct send *s, struct kept *k);
void kept_spared(struct send *s, struct kept *k);
/* Frames of an agent: -EBADMSG when it breaks the protocol. */
int kept_on_kept(
    struct send *s, struct agent_link *agent, const struct msg_KEPT *frame);
int kept_on_closed(
    struct send *s, struct agent_link *agent, const struct msg_CLOSED *frame);
/* The connections of the agent are closed. */
void kept_agent_ended(struct send *s, struct agent_link *agent);
/* Close those that are too many or wanted; all, in a stop. */
usec_t kept_work(struct send *s);

#endif
