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

/* The order matters: what leaves makes room for what comes, and what came is
 * dispatched. */
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

TURN_WORKS(send_turn, send, send_read_clocks, works)
