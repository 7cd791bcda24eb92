/* base/clock.h - the clocks. Programs read them once a turn of the loop
 * and pass the time on; common/site and common/sched never read a clock. */
#ifndef BASE_CLOCK_H
#define BASE_CLOCK_H

#include "base/base.h"

#include <sys/time.h>
#include <time.h>

usec_t clock_mono(void); /* CLOCK_MONOTONIC: deadlines, delays */
usec_t clock_wall(void); /* CLOCK_REALTIME: times that are stored or shown */
usec_t clock_boot(void); /* CLOCK_BOOTTIME: also runs in a suspend */

/* A time as files have it. */
usec_t clock_usec(struct timespec time);
/* The duration as timers take it; 0 for a time in the past. */
struct timeval clock_timeval(usec_t length);

#endif
