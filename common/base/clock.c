#include "base/clock.h"

usec_t
clock_usec(struct timespec time)
{
	return (usec_t)time.tv_sec * USEC_PER_SEC + time.tv_nsec / 1000;
}

static usec_t
read_clock(clockid_t id)
{
	struct timespec ts;

	if (clock_gettime(id, &ts) != 0)
		return 0;
	return clock_usec(ts);
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
