/* todo-proc/scan.h - the directories are read: incoming/ as a net under the
 * doorbells, maildrop/ for what was dropped.
 *
 * At start, when queue-send asks, when rings may have been lost, when the
 * backlog runs low and had left something out, and every scan_interval; some
 * hundred names a turn. A scan is not begun again before ten times its own
 * duration has passed, so it takes at most a tenth of the time. */
#ifndef TODO_PROC_SCAN_H
#define TODO_PROC_SCAN_H

#include "todo-proc/todo.h"

void scan_init(struct todo *t);
void scan_done(struct todo *t);
usec_t scan_incoming_work(struct todo *t);
usec_t scan_maildrop_work(struct todo *t);
/* A scan that began a moment ago may find something older than what is known:
 * hand nothing over yet. False at the latest SCAN_HOLD after its begin. */
#define SCAN_HOLD (USEC_PER_SEC / 2)
bool scan_holds(const struct todo *t);

#endif
