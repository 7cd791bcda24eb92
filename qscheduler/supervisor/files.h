/* qscheduler/supervisor/files.h - the files that children read, judged before
 * they do: a wrong one stops the start, and not each child in turn; on a reload
 * the old ones stay in force everywhere.
 *
 * Soft: -errno with "FILE:LINE: what is wrong". Never logs. */
#ifndef QSCHEDULER_SUPERVISOR_FILES_H
#define QSCHEDULER_SUPERVISOR_FILES_H

#include "config/conf.h"
#include "daemon/daemon.h"

/* routing_file, also whether those may read it who have to, and
 * programs_file. Either may be absent. */
int files_check(const struct conf *conf, const struct daemon_users *users,
    struct buf *ret_error);
/* For --check: that each rule for a pipe names a program that there is. Such a
 * rule stops no start, since the program may come later. */
int files_check_pipes(const struct conf *conf, struct buf *ret_error);

#endif
