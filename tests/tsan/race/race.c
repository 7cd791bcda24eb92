/* The negative control of make tsan-instance. queue-send and todo-proc are
 * linked with --wrap=clock_mono: their loop and the threads of their pools
 * count the calls without a lock, and ThreadSanitizer has to report that. */
#include "base/clock.h"

usec_t __real_clock_mono(void);
usec_t __wrap_clock_mono(void);

static unsigned calls;

usec_t
__wrap_clock_mono(void)
{
	calls++;
	return __real_clock_mono();
}
