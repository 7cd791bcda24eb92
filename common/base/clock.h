/* base/clock.h - the clocks. Programs read them once a turn of the loop
 * and pass the time on; common/site and common/sched never read one. */
#ifndef BASE_CLOCK_H
#define BASE_CLOCK_H

#include "base/base.h"

#include <sys/time.h>

usec_t clock_mono(void); /* CLOCK_MONOTONIC: deadlines, delays */
usec_t clock_wall(void); /* CLOCK_REALTIME: what is stored or shown */
usec_t clock_boot(void); /* CLOCK_BOOTTIME: goes on in a suspend */

/* The same length of time, as timers take it; 0 for what is past. */
struct timeval clock_timeval(usec_t length);

#endif
