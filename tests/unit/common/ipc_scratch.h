/* An instance name of its own for each test process, and forks as another
 * user. Criterion runs each test in a process, so the pid is enough. */
#ifndef TESTS_IPC_SCRATCH_H
#define TESTS_IPC_SCRATCH_H

#include "base/base.h"

#include <sys/types.h>

/* "t<pid>"; its objects are removed by ipc_scratch_done(). */
const char *ipc_scratch(void);
/* .fini of every test that makes objects. */
void ipc_scratch_done(void);
/* An ordinary user: as root, one that no other test is (limits of message
 * queues count per user); else this one. */
uid_t ipc_nobody(void);
/* Run body(arg) in a child as that user and give its result, 0..127. */
int ipc_as_nobody(int (*body)(void *arg), void *arg);

#endif
