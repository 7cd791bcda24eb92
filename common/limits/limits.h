/* limits/limits.h - the parameters of the schedulers, from a configuration.
 *
 * The scheduler (common/sched) does not know configurations, and those not the
 * scheduler; queue-send and qsim, which run it, fill its parameters here.
 * Overrides of transports are applied already (config/conf.h). Cannot fail.
 * Transports are named by their index in conf->transports; names stay the
 * configuration's.
 */
#ifndef LIMITS_LIMITS_H
#define LIMITS_LIMITS_H

#include "config/conf.h"
#include "sched/sched.h"

void limits_sched(const struct conf *conf, struct sched_params *ret_params);
void limits_transport(const struct conf *conf, uint32_t transport,
    struct sched_transport_params *ret_params);
void limits_site(const struct conf *conf, uint32_t transport,
    struct site_params *ret_params);
void limits_backoff(const struct conf *conf, struct site_backoff *ret_backoff);

#endif
