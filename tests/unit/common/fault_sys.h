/* fault_sys.h - a spool_sys whose Nth call of a kind fails. One state a
 * process: Criterion runs each test in its own. */
#ifndef TESTS_FAULT_SYS_H
#define TESTS_FAULT_SYS_H

#include "base/base.h"
#include "spool/sys.h"

enum fault_call {
	FAULT_OPENAT,
	FAULT_WRITE,
	FAULT_PWRITE,
	FAULT_FTRUNCATE,
	FAULT_LINKAT,
	FAULT_RENAMEAT,
	FAULT_REPLACEAT,
	FAULT_UNLINKAT,
	FAULT_UTIMENSAT,
	FAULT_FLOCK,
	FAULT_FSYNC,
	FAULT_SYNCFS,
	FAULT_CLOSE,
	FAULT_FSTATVFS,
	FAULT_NCALLS,
};
extern const char *const fault_names[FAULT_NCALLS];

extern const struct spool_sys fault_sys;

void fault_reset(void);
/* The nth call from now on (from 1), once; nothing is done in its place. */
void fail_nth(enum fault_call call, unsigned nth, int error);
/* That one and every later one. */
void fail_from(enum fault_call call, unsigned nth, int error);
/* As a death at the nth call of any kind: it and all after it do nothing. */
void fault_cut(unsigned nth);
bool fault_was_cut(void);
/* Every write takes at most so many bytes; every other one is EINTR. */
void fault_short_writes(size_t at_most);
/* The file system has no O_TMPFILE: open says this. */
void fault_no_tmpfile(int error);
/* What fstatvfs() answers; NULL: the truth. */
void fault_statvfs(const struct statvfs *v);
/* Called after each success; NULL: nothing. */
void fault_watch(void (*seen)(enum fault_call call, void *arg), void *arg);
unsigned fault_count(enum fault_call call);

#endif
