/* base/subuid.h - owners of subordinate user ids. A user with a range in
 * /etc/subuid (subuid(5)) can run processes under each uid of the range, so
 * what one user may take is counted for the owner of the range.
 *
 * Soft: -errno. Never logs. One thread at a time.
 */
#ifndef BASE_SUBUID_H
#define BASE_SUBUID_H

#include "base/buf.h"

#include <sys/types.h>

#define SUBUID_FILE "/etc/subuid"

struct subuid_range;

struct subuid_table {
	struct subuid_range *ranges; /* ordered by uid, none overlaps another */
	size_t count;
	struct buf text; /* private: names of owners */
};

/* Reads lines OWNER:FIRST:COUNT; OWNER is a name or a number. Wrong lines are
 * skipped; a missing file is an empty table. An overlapping part belongs to the
 * range that begins first. Failure: -errno of file_read(), -ENOMEM, with an
 * empty table. subuid_done() always. */
int subuid_read(const char *path, struct subuid_table *ret);
void subuid_done(struct subuid_table *table);

/* The owner of the range that has this uid. The uid itself where no range has
 * it, and in a range of root: its uids are containers that root has set up. The
 * first uid of the range where /etc/passwd, the only user database that is
 * asked, does not have the owner's name. */
uid_t subuid_owner(const struct subuid_table *table, uid_t uid);

/* The first uid of the ranges; (uid_t)-1 where there are none. */
uid_t subuid_first(const struct subuid_table *table);

#endif
