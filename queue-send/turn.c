#include "queue-send/control.h"

#include "log/log.h"
#include "queue-send/backlog.h"
#include "queue-send/operators.h"
#include "queue-send/peers.h"
#include "queue-send/road.h"
#include "queue-send/rules.h"
#include "queue-send/schedule.h"

/* The end of a stop: all deliveries are over, or the time is. Files in active/
 * go back to incoming/ at the next start. */
static usec_t
stop_work(struct send *s)
{
	const uint32_t running = sched_figures(s->sched).running;
	bool over = running == 0 && s->kept.count == 0 &&
	    STAILQ_EMPTY(&s->unrecorded) &&
	    (messages_to_leave(&s->messages) + removal_to_do(s) == 0 ||
		s->health.read_only);

	if (!s->stopping)
		return USEC_NEVER;
	if (!over && s->now < s->stop_at)
		return s->stop_at;
	/* Places are given back when connections are closed. */
	if ((running > 0 || s->kept.count > 0) && !s->hung_up) {
		s->hung_up = true;
		links_hang_up(s);
		s->stop_at = s->now + LINKS_LOST;
		return s->stop_at;
	}
	if (!over)
		log_warning("stopped with %u deliveries running, %u messages "
			    "to be removed",
		    running, removal_to_do(s));
	site_table_tell(s);
	daemon_exit(s->d, 0);
	return USEC_NEVER;
}

/* The order matters: messages that leave make room for those that come, and
 * those that came are dispatched. */
static usec_t (*const works[])(struct send *s) = {
	operators_work,
	rules_work,
	links_work,
	results_work,
	finish_work,
	removal_work,
	sync_work,
	reports_work,
	active_work,
	recipients_work,
	site_table_work,
	dead_work,
	dispatch_work,
	kept_work,
	disk_work,
	evacuate_work,
	offers_work,
	acts_hold_work,
	deferred_work,
	schedule_log_work,
	publish_work,
	clock_file_work,
	stop_work,
};

TURN_WORKS(send_turn, send, send_read_clocks, works)
