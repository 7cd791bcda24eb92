#include "queue-send/control.h"

#include "log/log.h"
#include "queue-send/backlog/backlog.h"
#include "queue-send/operators/operators.h"
#include "queue-send/agents/agents.h"
#include "queue-send/reports/reports.h"
#include "queue-send/message/path.h"
#include "queue-send/rules/rules.h"
#include "queue-send/schedule/schedule.h"
#include "queue-send/walks/walks.h"
#include "queue-send/evacuation/evacuation.h"

/* Files that are still to be moved or removed. */
static uint32_t
to_move(const struct send *s)
{
	const uint32_t *count = s->messages.count;

	return messages_to_leave(&s->messages) +
	    count[STATE_ENTERING_INCOMING] + count[STATE_ENTERING_DEFERRED] +
	    removal_to_do(s);
}

bool
stop_is_over(const struct send *s)
{
	return sched_figures(s->sched).running == 0 && kept_count(s) == 0 &&
	    STAILQ_EMPTY(&s->unrecorded) && s->records == 0 &&
	    s->acts.count == 0 && (to_move(s) == 0 || s->health.read_only);
}

/* The end of a stop: all deliveries are over, or the time is. Files in active/
 * go back to incoming/ at the next start. */
static usec_t
stop_work(struct send *s)
{
	const uint32_t running = sched_figures(s->sched).running;
	bool over = stop_is_over(s);

	if (!s->stopping)
		return USEC_NEVER;
	if (!over && s->now < s->stop_at)
		return s->stop_at;
	/* Places are given back when connections are closed. */
	if ((running > 0 || kept_count(s) > 0) && !s->hung_up) {
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
	spread_work,
	rules_work,
	links_work,
	probe_work,
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
	walks_work,
	schedule_log_work,
	late_work,
	publish_work,
	clock_file_work,
	disk_look,
	stop_work,
};

TURN_WORKS(send_turn, send, send_read_clocks, works)
