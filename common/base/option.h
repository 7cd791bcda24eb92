/* base/option.h - what a program says of a command line that it cannot take:
 * fit to be shown, and short, whatever was typed (A1).
 */
#ifndef BASE_OPTION_H
#define BASE_OPTION_H

#include "base/buf.h"

/* Append "WHAT `TYPED'WHY" to error; -EINVAL. */
int option_wrong(
    struct buf *error, const char *what, const char *typed, const char *why);
/* The same for what getopt_long(), with `:` first, could not take: c is `:` or
 * `?`. Values of long options count from OPTION_LONG. -EINVAL. */
#define OPTION_LONG 256
int option_unknown(struct buf *error, int c, char *const *argv);

#endif
