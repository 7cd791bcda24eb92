/* The scheduler driven by chance, with a mirror that counts along: what is
 * waiting, running, in memory; who was selected. Every call is checked against
 * the mirror, and with `check` everything is walked after it. The same seed
 * gives the same drive. */
#ifndef TESTS_COMMON_SCHED_DRIVE_H
#define TESTS_COMMON_SCHED_DRIVE_H

#include "sched/sched.h"

#define DRIVE_TRANSPORTS 3
#define DRIVE_MESSAGES   12
#define DRIVE_RCPTS      400 /* of a message */
#define DRIVE_TAKEN      64

/* How often what is done, in weights; `check`: walk after every step. */
struct drive_style {
	uint32_t new, read, select, select_all, dead, done, put_back, cancel,
	    free, configure, flush, wait;
	uint32_t move; /* to other destinations; some of these are shared */
	bool check;
	bool damaged; /* what the table says of a site may be anything */
};

struct drive_message {
	struct sched_message *m;
	uint32_t unread, next; /* recipients; the index of the next */
	uint32_t waiting, taken;
	bool open;     /* a batch is being read */
	bool all_read; /* or cancelled */
	bool selected[DRIVE_RCPTS];
	uint8_t group[DRIVE_RCPTS]; /* at a shared destination; 0: none */
};

/* Where windows live, when it is not in a table of the drive's own. */
struct drive;
struct drive_sites {
	struct shared *(*begin)(struct drive *d);
	void (*configure)(struct drive *d);
	void (*end)(struct drive *d);
	void *of; /* as they like */
};

struct drive {
	const struct drive_style *style;
	const struct drive_sites *elsewhere; /* or NULL */
	uint64_t dice;
	usec_t now;
	struct sched *sched;
	struct shared *sites; /* NULL: `elsewhere' has the destinations */
	uint32_t ntransports;
	struct sched_params params;
	struct sched_transport_params transports[DRIVE_TRANSPORTS];
	struct site_params site_params[DRIVE_TRANSPORTS];
	struct site_backoff backoff;
	struct drive_message *messages[DRIVE_MESSAGES]; /* or NULL */
	struct {
		struct sched_entry *entry;
		struct drive_message *of;
		uint32_t nrcpts;
		bool dead; /* of sched_take_dead() */
	} taken[DRIVE_TAKEN];
	uint32_t ntaken;
	uint32_t recipients, most; /* in memory; and at most so far */
};

uint32_t drive_dice(struct drive *d, uint32_t low, uint32_t high);
bool drive_chance(struct drive *d, uint32_t pct);
/* Parameters of every kind. */
void drive_params(struct drive *d);
void drive_begin(struct drive *d, const struct drive_style *style);
void drive_step(struct drive *d);
/* Parts of a step: a recipient for a destination that next hops share; an
 * entry that moves to one. */
void drive_add_shared(struct drive *d, struct drive_message *m,
    uint32_t transport, const struct sched_rcpt *rcpt);
void drive_move(struct drive *d);
/* The entry at this place is not the drive's any more. */
void drive_forget_taken(struct drive *d, uint32_t i);
/* As drive_step() does it with `configure`: new parameters are in force. */
void drive_configure(struct drive *d);
/* What is there is read, selected and delivered, as far as it goes now. True:
 * nothing waits. */
bool drive_serve(struct drive *d);
/* All is ended and freed. */
void drive_end(struct drive *d);

#endif
