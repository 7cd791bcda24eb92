#include "daemon/daemon.h"

#include <event2/event.h>

#define PRIORITIES (DAEMON_IDLE + 1)
_Static_assert(DAEMON_PRIORITY == PRIORITIES / 2, "what new events have");

/* Of a few descriptors poll() tells as fast as epoll, without a call to add or
 * to remove one, and without one to set a timer in each turn. */
struct event_base *
daemon_loop_new(bool many)
{
	struct event_config *cfg = event_config_new();
	struct event_base *base = NULL;

	if (cfg == NULL)
		return NULL;
	/* With the coarse clock a timer is a tick early or late; an early one
	 * wakes an idle process once more. For the precise one epoll needs a
	 * call to set a timer in each turn, which costs more where turns are
	 * many. */
	if (event_config_set_flag(cfg, EVENT_BASE_FLAG_IGNORE_ENV) == 0 &&
	    event_config_set_flag(cfg, EVENT_BASE_FLAG_NOLOCK) == 0 &&
	    (many ||
		(event_config_set_flag(cfg, EVENT_BASE_FLAG_PRECISE_TIMER) ==
			0 &&
		    event_config_avoid_method(cfg, "epoll") == 0)))
		base = event_base_new_with_config(cfg);
	event_config_free(cfg);
	if (base != NULL && event_base_priority_init(base, PRIORITIES) < 0) {
		event_base_free(base);
		return NULL;
	}
	return base;
}
