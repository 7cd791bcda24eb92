/* System calls of the spool, at one of which the process dies or one of which
 * fails. */
#ifndef TESTS_DYING_SYS_H
#define TESTS_DYING_SYS_H

#include "base/base.h"
#include "spool/sys.h"

/* The nth point from now on kills the process, each call having one before and
 * one after it; or, with fails, the nth call answers EIO and does nothing. */
void dying_sys(struct spool_sys *ret, unsigned nth, bool fails);
/* Was that point reached? */
bool dying_came(void);
/* The calls since dying_sys(): l linkat, f fsync, p pwrite, r renameat. */
const char *dying_trace(void);

#endif
