/* sched/sched.h - which entry is delivered next: the selection, pure.
 *
 * Words (docs/ARCHITECTURE.md has the rest):
 *
 *   transport    a delivery service with its own agents and limits
 *   destination  one nexthop of one transport; owns a concurrency window
 *   message      one queue file with its recipients
 *   entry        a batch of recipients of one message for one destination:
 *                what is selected and handed to a delivery agent
 *
 *	message 1──n entry n──1 destination n──1 transport
 *
 * No I/O, no clock (the caller passes the time), no logging. Recipients are
 * handles (where the record lies in the queue file), not addresses. Selection
 * is first come, first served over the destinations with room; round robin
 * over the transports. Nexthops compare without case.
 *
 * Selecting, adding and ending cost O(log n) in entries and destinations; a
 * destination without room costs nothing, however many entries wait for it.
 *
 * Soft: -ENOMEM, nothing changed. The scheduler owns everything it returns;
 * an entry lives from sched_select() to sched_done(), a message from
 * sched_message_new() to sched_message_free().
 */
#ifndef SCHED_SCHED_H
#define SCHED_SCHED_H

#include "base/base.h"

struct sched;
struct sched_message;

struct sched_transport_params {
	const char *name;
	uint32_t process_limit;                 /* deliveries at once */
	uint32_t destination_concurrency_limit; /* 0: none */
	uint32_t
	    destination_recipient_limit; /* recipients per entry; 1 makes
					    the recipient the destination */
};

/* More recipients than this are never in one entry, whatever the parameter
 * says: the frame that hands an entry to an agent must hold any of them
 * (queue-send/dispatch.c asserts it). 0 counts as this, too. */
#define SCHED_ENTRY_RCPTS_MAX 100
uint32_t sched_recipient_limit(uint32_t destination_recipient_limit);

struct sched_rcpt {
	uint64_t offset; /* of the record in the queue file */
	uint32_t index;  /* of the recipient */
};

struct sched_entry {
	struct sched_message *message;
	void *owner;        /* as given to sched_message_new() */
	uint32_t transport; /* index into the parameters */
	const char *nexthop;
	const struct sched_rcpt *rcpts;
	uint32_t nrcpts;
	usec_t selected_at;
};

enum sched_result {
	SCHED_DELIVERED,   /* the site talked to us, whatever it said */
	SCHED_SITE_FAILED, /* connection or handshake failure */
	SCHED_AGENT_DIED,  /* our own agent; says nothing about the site */
};

int sched_new(const struct sched_transport_params *params, uint32_t count,
    struct sched **ret_sched);
void sched_free(struct sched **s);
/* New parameters for the same transports, by index; what runs goes on. A
 * process limit of 0 stops a transport (its agent is not there); waiting
 * entries stay as large as they are. -EINVAL for another count. */
int sched_configure(struct sched *s,
    const struct sched_transport_params *params, uint32_t count);

/* A message that came into the active queue at `now`. */
int sched_message_new(struct sched *s, void *owner, usec_t now,
    struct sched_message **ret_message);
/* Its exact total of entries for a transport (todo-proc's census). -EINVAL for
 * a transport that is not there. First come, first served has no use for it. */
int sched_message_expect(
    struct sched_message *m, uint32_t transport, uint32_t entries);
/* A recipient that was read; `address` is used when the transport's
 * destination is the recipient, and not kept. */
int sched_rcpt_add(struct sched_message *m, uint32_t transport,
    const char *nexthop, const char *address, const struct sched_rcpt *rcpt);
/* Recipients neither selected nor done, and entries being delivered. */
uint32_t sched_message_waiting(const struct sched_message *m);
uint32_t sched_message_running(const struct sched_message *m);
/* What waits is dropped, what runs goes on: the message cannot go on. */
void sched_message_cancel(struct sched_message *m);
/* With nothing running; what waits is dropped. */
void sched_message_free(struct sched_message **m);

/* The next entry, or NULL when none may start now. */
struct sched_entry *sched_select(struct sched *s, usec_t now);
/* The entry could not be started after all: as if it had not been selected. */
void sched_put_back(struct sched *s, struct sched_entry *entry);
/* The delivery is over; the entry is gone. */
void sched_done(struct sched *s, struct sched_entry *entry,
    enum sched_result result, usec_t now);
/* Flush: forget what holds destinations back. */
void sched_flush(struct sched *s, usec_t now);

struct sched_figures {
	uint32_t running; /* entries being delivered */
	uint32_t waiting; /* recipients not yet selected */
	uint32_t messages;
	uint32_t destinations;
};
struct sched_figures sched_figures(const struct sched *s);
/* Deliveries of one transport that run now. */
uint32_t sched_transport_running(const struct sched *s, uint32_t transport);

#endif
