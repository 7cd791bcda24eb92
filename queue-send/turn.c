#include "queue-send/turn.h"

#include "queue-send/active.h"
#include "queue-send/control.h"
#include "queue-send/dead.h"
#include "queue-send/deferred.h"
#include "queue-send/disk.h"
#include "queue-send/dispatch.h"
#include "queue-send/finish.h"
#include "queue-send/evacuate.h"
#include "queue-send/links.h"
#include "queue-send/offers.h"
#include "queue-send/publish.h"
#include "queue-send/recipients.h"
#include "queue-send/results.h"
#include "queue-send/sync.h"
#include "queue-send/watch.h"
#include "queue-send/site_table.h"

/* Each kind of work does a bounded part of it and says when it wants to go on:
 * a past time for at once, USEC_NEVER when nothing is left. The order matters:
 * what leaves makes room for what comes, and what came is dispatched. */
static usec_t (*const works[])(struct send *s) = {
	links_work,
	results_work,
	finish_work,
	sync_work,
	active_work,
	recipients_work,
	site_table_work,
	dead_work,
	dispatch_work,
	disk_work,
	evacuate_work,
	offers_work,
	deferred_work,
	watch_work,
	publish_work,
	control_work,
};

usec_t
send_turn(void *arg)
{
	struct send *s = arg;
	usec_t next = USEC_NEVER, at;
	size_t i;

	send_read_clocks(s);
	for (i = 0; i < ARRAY_LEN(works); i++) {
		at = works[i](s);
		next = at < next ? at : next;
	}
	return next == USEC_NEVER ? USEC_NEVER : next - s->now;
}
