/* The destination of the model: rules 2 and 3, as they are written. */
#ifndef TESTS_QSIM_MODEL_SITE_H
#define TESTS_QSIM_MODEL_SITE_H

#include "config/conf.h"

struct model_site {
	const struct conf *conf;
	const struct conf_transport *rules;
	uint32_t transport;
	const char *name;
	uint32_t nexthop; /* index into the scenario's destinations */
	uint32_t window, busy;
	double success, failure, fail_cohorts;
	bool dead;
	usec_t dead_until;
	uint32_t deaths; /* without a success between */
};

void model_site_init(struct model_site *s);
bool model_site_is_dead(struct model_site *s, usec_t now);
bool model_site_has_room(struct model_site *s, usec_t now);
/* A delivery is over; busy still counts it. */
void model_site_report(struct model_site *s, bool failed, usec_t now);

#endif
