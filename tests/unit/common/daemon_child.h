/* tests/unit/common/daemon_child.h - a program as the supervisor starts it, in
 * a child; the test is the supervisor. */
#ifndef UNIT_COMMON_DAEMON_CHILD_H
#define UNIT_COMMON_DAEMON_CHILD_H

#include <sys/types.h>

#include "daemon/daemon.h"
#include "ipc/wire.h"

#define CHILD_LIMIT_MSEC 120000

extern const struct daemon_ops *child_ops; /* set before */
extern char child_dir[];                   /* of its configuration */
extern struct chan_frame child_frame;      /* the last that was heard */

void child_set_up(void);
void child_tear_down(void);
/* With these lines more. */
void child_write_conf(const char *more);
/* In a child: daemon_main() with this channel, or none. */
int child_run(int channel, char **argv);
/* *ret_sock is the supervisor's end. */
pid_t child_start(int *ret_sock);
/* The same, with `run` in place of child_run(). */
pid_t child_start_by(int (*run)(int channel, char **argv), int *ret_sock);
/* Its status, or the signal below 0. */
int child_finish(pid_t pid);
/* The next frame within the limit: "READY", or the text of a STATUS. */
const char *child_heard_all(int sock);
/* The same, but for what it logged. */
const char *child_heard(int sock);
void child_tell(int sock, const struct msg *msg, int fd);

#endif
