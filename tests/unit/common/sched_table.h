/* A table of destinations that a test has alone. */
#ifndef TESTS_COMMON_SCHED_TABLE_H
#define TESTS_COMMON_SCHED_TABLE_H

#include "site/shared.h"

int table_new(const struct site_params *params, uint32_t count,
    const struct site_backoff *backoff, struct shared **ret_sites);
int table_configure(struct shared *sites, const struct site_params *params,
    uint32_t count, const struct site_backoff *backoff);

#endif
