/* What tests of qscheduler/supervisor/scale.h have in common. */
#ifndef TESTS_PROC_SCALE_LOOK_H
#define TESTS_PROC_SCALE_LOOK_H

#include "qscheduler/supervisor/scale.h"

#define QUEUES 24
#define MINUTE (60 * USEC_PER_SEC)
#define HOUR   3600

extern const struct scale_params scale_defaults;
/* One look at n queues of one load. */
enum scale_act scale_look_at(struct scale *s, const struct scale_params *p,
    usec_t now, uint32_t n, uint32_t load, uint64_t waiting,
    struct scale_decision *ret_decision);

#endif
