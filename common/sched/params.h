/* sched/params.h - the parameters of the scheduler, as common/config reads them
 * and the scheduler uses them (rules 3 to 6 of docs/SCHEDULING.md). */
#ifndef SCHED_PARAMS_H
#define SCHED_PARAMS_H

#include "base/base.h"

/* Parameters of all transports together (rules 3 and 6). */
struct sched_params {
	uint32_t message_recipient_limit;   /* qmgr_message_recipient_limit */
	uint32_t message_recipient_minimum; /* …_minimum; 0 counts as 1 */
	uint32_t
	    message_active_limit; /* messages that the caller has at most */
};

struct sched_transport_params {
	uint32_t process_limit; /* deliveries at once; 0: none may start */
	uint32_t
	    destination_recipient_limit; /* recipients per entry; 1 makes
					    the recipient the destination */
	uint32_t delivery_slot_cost;     /* 0 or 1: no preemption */
	uint32_t delivery_slot_discount; /* percent */
	uint32_t delivery_slot_loan;
	uint32_t minimum_delivery_slots;
	uint32_t recipient_limit, extra_recipient_limit;
	uint32_t recipient_refill_limit;
	usec_t recipient_refill_delay;
};

#endif
