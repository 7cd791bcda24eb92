/* queue-send/jumps.h - jumps of the wall clock, told by the clock that counts
 * through suspends (CLOCK_BOOTTIME) and cannot be set. Mail does not age by
 * them: a clock that is set a week forward must not end the lifetime of all
 * that waits. Pure: times are passed in.
 *
 * What lies on disk has the wall clock of its arrival and nothing else. A jump
 * forward counts for what had arrived before it; a jump back for what had
 * arrived before the time that the clock was set to, and for what seems to
 * arrive in the future. Between these two nothing can be known, and the message
 * is taken for a younger one. Jumps are forgotten at a restart; for these there
 * is RETRY_GRACE (retry.h).
 */
#ifndef QUEUE_SEND_JUMPS_H
#define QUEUE_SEND_JUMPS_H

#include "base/base.h"

#define JUMPS_MAX   8                   /* the oldest is forgotten */
#define JUMPS_LEAST (60 * USEC_PER_SEC) /* less is not told from slewing */

struct jump {
	usec_t before_wall; /* the clock just before it */
	usec_t size;        /* forward above 0 */
};

struct jumps {
	usec_t wall, boot; /* of the last look; 0: none yet */
	struct jump last[JUMPS_MAX];
	uint32_t next;
};

/* The size of the jump since the last look, 0: none. */
usec_t jumps_look(struct jumps *j, usec_t wall, usec_t boot);
/* How long ago that was, jumps taken out; below 0 when that is not known. */
usec_t jumps_age(const struct jumps *j, usec_t arrival_wall, usec_t now_wall);

#endif
