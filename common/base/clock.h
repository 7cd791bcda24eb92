/* base/clock.h - the two clocks. Programs read them once a turn of the loop
 * and pass the time on; common/sched and common/proc never read one. */
#ifndef BASE_CLOCK_H
#define BASE_CLOCK_H

#include "base/base.h"

usec_t clock_mono(void); /* CLOCK_MONOTONIC: deadlines, delays */
usec_t clock_wall(void); /* CLOCK_REALTIME: what is stored or shown */

#endif
