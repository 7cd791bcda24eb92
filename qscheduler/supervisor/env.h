/* qscheduler/supervisor/env.h - the environment and limits that children get.
 *
 * Started as root, only what is known to be needed is passed on, so that
 * nothing that the supervisor was started with reaches the programs (P19). A
 * private instance passes on its user's, but for what belongs to the service
 * manager: a child must not speak to that in our name. */
#ifndef QSCHEDULER_SUPERVISOR_ENV_H
#define QSCHEDULER_SUPERVISOR_ENV_H

#include "base/base.h"

/* NULL: no memory. pins: "NAME=value" that replace what is there, ended by
 * NULL: what the supervisor was started with and a changed file must not
 * change for one child alone. */
char **env_make(char *const *from, bool private, char *const *pins);
void env_free(char ***env);

/* As many descriptors and message queues as we may have. */
void env_raise_limits(void);

#endif
