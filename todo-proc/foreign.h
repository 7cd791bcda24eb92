/* todo-proc/foreign.h - names that are none of ours are ignored, with one
 * warning each (D17). Pure. Remembers the last FOREIGN_MAX by a hash, so a
 * directory with more of them than that warns again, at most FOREIGN_SAID
 * times an hour. */
#ifndef TODO_PROC_FOREIGN_H
#define TODO_PROC_FOREIGN_H

#include "base/base.h"

#define FOREIGN_MAX  256
#define FOREIGN_SAID 100

struct foreign {
	uint64_t last[FOREIGN_MAX];
	uint32_t next;
	uint32_t said; /* in this hour */
	int64_t hour;
};

/* Should this name be warned about now? where tells directories apart. */
bool
foreign_warn(struct foreign *f, uint32_t where, const char *name, usec_t now);

#endif
