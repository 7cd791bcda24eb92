/* queue-send/health.h - can marks be written? Permission to start a delivery
 * is given only while they can (docs/QUEUE.md). Pure.
 *
 * A mark that cannot be written because the file system is full, or anything
 * that cannot because it is read-only, stops deliveries at the first error (D4,
 * D9). No room for a new name or a reason stops none: marks take no room (D3).
 * Other errors stop them when there were HEALTH_ERRORS within HEALTH_SPAN (D7).
 * A probe every probe_every ends it, without a restart.
 */
#ifndef QUEUE_SEND_HEALTH_H
#define QUEUE_SEND_HEALTH_H

#include "base/base.h"

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
/* What the probe said (0 or -errno); true when the queue can write again. */
bool health_probed(struct health *h, int error, usec_t now);

#endif
