/* spool/reason_line.h - the first words of lines (spool/reason.h), shared by
 * the writer and the reader alone. */
#ifndef SPOOL_REASON_LINE_H
#define SPOOL_REASON_LINE_H

#include "spool/reason.h"

#define REASON_REPORT     "report"
#define REASON_EXPIRY     "expire"
#define REASON_RELEASE    "release"
#define REASON_HOLD       "hold"
#define REASON_DELETE     "delete"
#define REASON_UNDECIDED  "undecided"
#define REASON_DELAY      "delay"
#define REASON_ATTEMPT    "attempt"
#define REASON_RCPT       "rcpt"
#define REASON_LINES      "lines"
/* In the mode of the file: there may be lines of marks. */
#define REASON_MARKED_BIT 0100u

#endif
