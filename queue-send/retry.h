/* queue-send/retry.h - when a message is tried again, and when it is given up
 *. Pure: time and chance are passed in. */
#ifndef QUEUE_SEND_RETRY_H
#define QUEUE_SEND_RETRY_H

#include "config/conf.h"

struct retry_params {
	usec_t minimal, maximal; /* backoff */
	uint32_t jitter_pct;
	usec_t lifetime, lifetime_null; /* by sender: any, the null sender */
};

/* The first delay after an agent of ours died; doubled for each further one
 * with the same message. */
#define RETRY_AGENT_DELAY    (10 * USEC_PER_SEC)

/* A message that was in flight in two deaths of agents is a suspect, and is
 * delivered while no other suspect is. One that is the only message in flight
 * in the third is put aside (P15, C7). With others beside it, which may be to
 * blame and are no suspects yet, it takes more: innocents do not get there. */
#define RETRY_SUSPECT_DEATHS 2
#define RETRY_POISON_DEATHS  3
#define RETRY_POISON_BESIDE  5

/* So long after a start no message expires, or as long as a lifetime if that is
 * shorter: the system may have been down, or its clock been set meanwhile, and
 * each message gets more than one attempt. */
#define RETRY_GRACE          (3600 * USEC_PER_SEC)

struct retry_params retry_params(const struct conf *conf);
/* clamp(age, minimal, maximal), spread by jitter_pct either way; random is any
 * 32 bits. A negative age (the clock was stepped back) counts as none. */
usec_t retry_delay(const struct retry_params *p, usec_t age, uint32_t random);
/* After the deaths-th (from 1) death of an agent; at most maximal. */
usec_t retry_agent_delay(const struct retry_params *p, uint32_t deaths);
bool retry_is_poison(uint32_t deaths, bool alone);
usec_t retry_grace(const struct retry_params *p);
bool retry_expired(const struct retry_params *p, usec_t age, bool null_sender);

struct retry_now {
	usec_t mono, wall;
};
/* A due time from disk on the monotonic clock. One further away than any delay
 * can be was written before the clock was stepped back: it is due now (T2). */
usec_t retry_due_mono(
    const struct retry_params *p, usec_t due_wall, const struct retry_now *now);

#endif
