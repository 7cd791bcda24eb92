/* qtop/batch.h - `qtop -b`: plain text to standard output, look by look.
 * Returns an exit code: 0, or 1 with the reason on standard error. */
#ifndef QTOP_BATCH_H
#define QTOP_BATCH_H

#include "qtop/model.h"
#include "qtop/options.h"

int batch_run(const struct options *options, const char *instance,
    const struct model_source *source);

#endif
