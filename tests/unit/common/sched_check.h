#ifndef SCHED_CHECK_H
#define SCHED_CHECK_H

#include "sched/sched.h"

/* Walk everything and ASSERT what must hold between the structures. */
void sched_check(const struct sched *s);

#endif
