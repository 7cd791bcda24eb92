/* site/params.h - the parameters of windows and of dead destinations, as
 * common/config reads them and the tables of destinations use them. */
#ifndef SITE_PARAMS_H
#define SITE_PARAMS_H

#include "base/base.h"

/* How far one delivery report moves a window. */
enum window_form {
	WINDOW_FIXED,      /* amount */
	WINDOW_PER_N,      /* amount/concurrency */
	WINDOW_PER_ROOT_N, /* amount/sqrt_concurrency */
};
struct window_feedback {
	double amount; /* 0 to 1 */
	enum window_form form;
};

struct site_params {                              /* of one transport */
	uint32_t initial_destination_concurrency; /* 0 counts as 1 */
	uint32_t destination_concurrency_limit;   /* 0: none */
	struct window_feedback positive, negative;
	double failed_cohort_limit; /* 0: never dead */
};
/* Of all transports: how long nothing is tried at a dead destination. Doubled
 * and capped first, then spread, so that those at the maximum do not meet:
 * times are from jitter_pct below the minimum to jitter_pct above the maximum.
 */
struct site_backoff {
	usec_t minimal_backoff_time, maximal_backoff_time;
	uint32_t jitter_pct; /* either way; 100 at most */
};

#endif
