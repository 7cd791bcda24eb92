/* qsim/replay.h - the line of one selection, as `qsim replay` prints it:
 * TIME MESSAGE TRANSPORT/DESTINATION RECIPIENTS. -ENOMEM. */
#ifndef QSIM_REPLAY_H
#define QSIM_REPLAY_H

#include "base/buf.h"
#include "qsim/simulate.h"

int replay_add_line(const struct scenario *sc,
    const struct simulate_selection *selection, struct buf *out);

#endif
