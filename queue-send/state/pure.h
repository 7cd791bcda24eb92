/* queue-send/state/pure.h - decisions and figures that need no disk and no
 * clock. Times and chance are passed in, and nothing here fails.
 *
 *	retry.c      when a message is tried again, and when it is given up
 *	health.c     whether marks can be written
 *	jumps.c      jumps of the wall clock
 *	admission.c  which side's message comes into the active queue next
 *	ages.c       how old the messages are
 *	rate.c       events of the last minute
 *	header.c     fields in the header of a message
 *	told.c       the rate of reports to one address
 *	quota.c      the part of the loop's time that operators get
 */
#ifndef QUEUE_SEND_STATE_PURE_H
#define QUEUE_SEND_STATE_PURE_H

#include "config/conf.h"
#include "ipc/page.h"

/* ---- retry.c ---- */

struct retry_params {
	usec_t minimal, maximal; /* backoff */
	uint32_t jitter_pct;
	usec_t lifetime, lifetime_null; /* by sender: any, the null sender */
};

/* The first delay after an agent died; doubled for each further death with the
 * same message. */
#define RETRY_AGENT_DELAY    (10 * USEC_PER_SEC)

/* A message that was in flight in two deaths of agents is a suspect, and is
 * delivered while no other suspect is. A suspect that is the only message in
 * flight in the third death is put aside. Messages beside it may be to blame
 * and be no suspects yet: then it takes five deaths, so that each of them has
 * its own two first and no innocent message is put aside. */
#define RETRY_SUSPECT_DEATHS 2
#define RETRY_POISON_DEATHS  3
#define RETRY_POISON_BESIDE  5

/* No message expires for as long after a start, or for a lifetime if that is
 * shorter: the system may have been down, or its clock been set meanwhile, and
 * each message gets more than one attempt. */
#define RETRY_GRACE          (3600 * USEC_PER_SEC)

struct retry_params retry_params(const struct conf *conf);
/* clamp(age, minimal, maximal), spread by jitter_pct either way; random is any
 * 32 bits. A negative age (the clock was set back) counts as none. */
usec_t retry_delay(const struct retry_params *p, usec_t age, uint32_t random);
/* After the deaths-th (from 1) death of an agent; at most maximal. */
usec_t retry_agent_delay(const struct retry_params *p, uint32_t deaths);
bool retry_is_poison(uint32_t deaths, bool alone);
usec_t retry_grace(const struct retry_params *p);
/* A start this long after the last run, by the wall clock, is believed to be
 * that; a longer time, or one below 0, is taken for a wrong clock: a fifth of
 * the shortest lifetime, so that no wrong clock ends one. */
usec_t retry_believed_gap(const struct retry_params *p);
bool retry_expired(const struct retry_params *p, usec_t age, bool null_sender);
/* Longer by RETRY_GRACE: a message that cannot even be read is no longer
 * tried. */
bool
retry_is_hopeless(const struct retry_params *p, usec_t age, bool null_sender);

struct retry_now {
	usec_t mono, wall;
};
/* A due time from disk, on the monotonic clock. A time further away than any
 * delay was written before the clock was set back: it is due now. */
usec_t retry_due_mono(
    const struct retry_params *p, usec_t due_wall, const struct retry_now *now);

/* ---- health.c: no delivery starts while marks cannot be written ----
 *
 * A mark that meets a full file system, or anything that meets a read-only
 * one, stops deliveries at the first error. No room for a name or a reason
 * stops none, since marks take no room. Other errors stop them when there were
 * HEALTH_ERRORS within HEALTH_SPAN. A probe every probe_every ends it. */
#define HEALTH_ERRORS 3
#define HEALTH_SPAN   (60 * USEC_PER_SEC)

enum health_write {
	HEALTH_MARK,  /* in place, or the opening for it */
	HEALTH_OTHER, /* names, reasons */
};

struct health {
	usec_t probe_every; /* error_interval */
	bool read_only;
	int error; /* the -errno that made it so */
	usec_t probe_at;
	usec_t at[HEALTH_ERRORS]; /* of the last errors that count */
	uint64_t counted;
	uint64_t errors; /* ever, of all kinds */
};

/* Is this an error of the whole file system (full, read-only, quota)? */
bool health_is_general(int error);
/* Writing failed with -errno; true when that made the queue read-only. */
bool
health_failed(struct health *h, enum health_write what, int error, usec_t now);
bool health_probe_due(const struct health *h, usec_t now);
/* The probe ended with 0 or -errno; true when the queue can write again. */
bool health_probed(struct health *h, int error, usec_t now);

/* ---- jumps.c: mail does not age by jumps of the wall clock ----
 *
 * A clock that is set a week forward must not end the lifetime of all that
 * waits. CLOCK_BOOTTIME, which counts through suspends and cannot be set, shows
 * each jump. A message on disk has the wall clock of its arrival and nothing
 * else, so a jump forward counts for messages that had arrived before it; a
 * jump back for those that had arrived before the time that the clock was set
 * to, and for those that seem to arrive in the future. Between these two
 * nothing can be known, and the message is taken for a younger one. */
#define JUMPS_MAX   8                   /* the oldest is forgotten */
#define JUMPS_LEAST (60 * USEC_PER_SEC) /* less is not told from slewing */

struct jump {
	usec_t before_wall; /* the clock just before it */
	usec_t size;        /* forward above 0 */
};

struct jumps {
	usec_t wall, boot; /* of the last comparison; 0: none yet */
	struct jump last[JUMPS_MAX];
	uint32_t next;
};

/* Begin with those of the last run, before the first comparison. Within one
 * boot CLOCK_BOOTTIME tells how long the process was gone. Over a boot nothing
 * does: a wall clock that is between 0 and `believed' ahead is believed, any
 * other is one that jumped by all of the difference. */
void jumps_resume(struct jumps *j, const struct jumps *saved, bool same_boot,
    usec_t wall, usec_t boot, usec_t believed);
/* Compare the clocks: the size of the jump since the last time, 0: none. */
usec_t jumps_find(struct jumps *j, usec_t wall, usec_t boot);
/* The time since the arrival, jumps taken out; below 0 when it is not known. */
usec_t jumps_age(const struct jumps *j, usec_t arrival_wall, usec_t now_wall);

/* ---- admission.c: new and deferred mail take turns ----
 *
 * One message from incoming/, one from deferred/, also when the active queue
 * has been full, so that neither starves the other. Behind each side is a short
 * list of messages that todo-proc has prepared. CREDIT and PREPARE keep both
 * lists filled up to a window, whatever the other side does; only the step from
 * the lists into the active queue takes turns. */
enum admission_side {
	ADMISSION_INCOMING,
	ADMISSION_DEFERRED,
	ADMISSION_NSIDES,
};

struct admission {
	enum admission_side turn;
};

/* The side that gives the next message and loses its turn; -1: none waits. */
int admission_choose(
    struct admission *in, const uint32_t waiting[ADMISSION_NSIDES]);
/* Messages of one side that may have been let come and not be in the active
 * queue: MSG_PREP_WINDOW, or the active queue's size if that is less. */
uint32_t admission_window(uint32_t active_limit);
/* How many more may be let come, with so many on their way (granted) and
 * waiting. Small rests wait until a quarter of the window is free, to save
 * messages, unless nothing at all would come. */
uint32_t admission_grant(uint32_t window, uint32_t granted, uint32_t waiting);

/* ---- ages.c: a histogram of ages, kept without walking the messages ----
 *
 * Arrivals are counted by the second, the minute and the hour, each for as long
 * as its ring goes back; older ones together. So the histogram is exact to a
 * minute, and the oldest to the second for two hours, to the minute for two
 * days and to the hour beyond.
 */
#define AGES_SECONDS 8192 /* above two hours */
#define AGES_MINUTES 4096 /* above two days, and the histogram's last step */
#define AGES_HOURS   4096 /* above the longest lifetime, 100 days */

struct ages {
	uint32_t second; /* the newest slot, seconds since the epoch */
	uint32_t seconds[AGES_SECONDS], minutes[AGES_MINUTES];
	uint32_t hours[AGES_HOURS];
	uint64_t older, count;
};

/* A message that arrived then. The answer is the second for ages_remove(). */
uint32_t ages_add(struct ages *a, usec_t arrival_wall, usec_t now_wall);
void ages_remove(struct ages *a, uint32_t second, usec_t now_wall);
/* Messages by age, and the arrival of the oldest, 0 when there is none. */
void ages_read(struct ages *a, usec_t now_wall, uint64_t ret_age[PAGE_AGES],
    usec_t *ret_oldest_wall);

/* ---- rate.c ---- */

#define RATE_SECONDS 60

struct rate {
	int64_t second; /* the newest slot */
	uint32_t events[RATE_SECONDS];
};

void rate_add(struct rate *r, usec_t now);
/* In 1/100 per second, over the last RATE_SECONDS. */
uint64_t rate_read(struct rate *r, usec_t now);

/* ---- told.c: the rate of reports to one address ----
 *
 * An address may get `limit' reports of the mail of one user at once, and as
 * many an hour; a report above that waits for its time. So a user who forges
 * the address of another one holds up no report of that one's own mail. Pairs
 * of user and address are kept by a hash, the busiest TOLD_PAIRS of them: a
 * pair that is forgotten begins anew, as do all pairs with a restart. Reports
 * that wait are counted, so that each gets a time of its own. */
#define TOLD_PAIRS  1024
#define TOLD_PERIOD (3600 * USEC_PER_SEC)

struct told_rate {
	uint64_t seed;
	struct told_pair {
		uint64_t hash;    /* 0: free */
		usec_t full;      /* until then all of `limit' is not there */
		uint32_t waiting; /* that were told to wait, since then */
	} pairs[TOLD_PAIRS];
};

/* The recipient of a report. */
struct told_to {
	uint32_t uid; /* account of the submitter of the message */
	const char *address;
};

/* Has this address had its reports of this user's mail? limit 0: no bound. */
bool told_is_above(
    struct told_rate *t, const struct told_to *to, uint32_t limit, usec_t now);
/* The time until such a report may go: 0, it may now, and is counted by
 * told_count(); else it is counted among those that wait. */
usec_t told_wait(
    struct told_rate *t, const struct told_to *to, uint32_t limit, usec_t now);
void told_count(
    struct told_rate *t, const struct told_to *to, uint32_t limit, usec_t now);
/* A report that was counted is not made. */
void
told_take_back(struct told_rate *t, const struct told_to *to, uint32_t limit);

/* ---- quota.c: the part of the loop's time that requests of operators get ----
 *
 * Requests are done one after the other. Each is measured, and pays from a
 * credit what it took; none begins without credit. Time brings credit, a
 * QUOTA_PARTS-th of itself, up to QUOTA_SLICE; and the credit is full whenever
 * the loop would sleep. So, with other work in every moment of a time T:
 *
 *	requests take at most T / QUOTA_PARTS + QUOTA_SLICE, and the last one
 *	they may take at least T / QUOTA_PARTS
 *	the next one begins within QUOTA_PARTS * QUOTA_DEBT
 *
 * What is owed is at most QUOTA_DEBT. Of requests that take longer each, on a
 * slow disk, the third line holds and the first one does not. */
#define QUOTA_PARTS 16
#define QUOTA_SLICE (2 * USEC_PER_MSEC)
#define QUOTA_DEBT  (50 * USEC_PER_MSEC)

struct quota {
	int64_t credit;
	usec_t at; /* credit came up to here */
};

void quota_init(struct quota *q, usec_t now);
/* Time has passed. A clock that stands still, or goes back, brings nothing. */
void quota_earn(struct quota *q, usec_t now);
/* The loop has nothing else to do. */
void quota_fill(struct quota *q, usec_t now);
/* A request took so long. */
void quota_spend(struct quota *q, usec_t took);
/* May a request begin? */
bool quota_is_open(const struct quota *q);
/* When one may, if nothing is spent until then. */
usec_t quota_opens_at(const struct quota *q);

#endif
