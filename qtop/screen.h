/* qtop/screen.h - the live screen (ncurses). One wake-up per delay, key, or
 * signal. The terminal is restored whatever ends it. Returns an exit code. */
#ifndef QTOP_SCREEN_H
#define QTOP_SCREEN_H

#include "qtop/model.h"
#include "qtop/options.h"

int screen_run(const struct options *options, const char *instance,
    const struct model_source *source);

#endif
