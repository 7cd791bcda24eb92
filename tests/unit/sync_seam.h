/* tests/unit/sync_seam.h - the order of calls that a power cut shows, of code
 * that has no spool_sys. sync_seam.c replaces fsync(), renameat(), renameat2()
 * and unlinkat() of the C library in each unit program. */
#ifndef UNIT_SYNC_SEAM_H
#define UNIT_SYNC_SEAM_H

/* Forgets the calls so far, and notes those that succeed from now on. */
void sync_seam_begin(void);
/* Notes no more calls. The calls: f fsync of a file, d of a directory; r a
 * rename, u a removal. */
const char *sync_seam_end(void);

#endif
