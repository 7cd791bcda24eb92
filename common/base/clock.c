#include "base/clock.h"

#include <time.h>

static usec_t
read_clock(clockid_t id)
{
	struct timespec ts;

	if (clock_gettime(id, &ts) != 0)
		return 0;
	return (usec_t)ts.tv_sec * USEC_PER_SEC + ts.tv_nsec / 1000;
}

usec_t
clock_mono(void)
{
	return read_clock(CLOCK_MONOTONIC);
}

usec_t
clock_wall(void)
{
	return read_clock(CLOCK_REALTIME);
}

usec_t
clock_boot(void)
{
	return read_clock(CLOCK_BOOTTIME);
}

struct timeval
clock_timeval(usec_t length)
{
	if (length < 0)
		length = 0;
	return (struct timeval){ length / USEC_PER_SEC, length % USEC_PER_SEC };
}
