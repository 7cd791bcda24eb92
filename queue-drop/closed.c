/* Why the gate is closed to this process, for the user who meets it. The user
 * database is not asked: its modules would run with our rights. */
#include "queue-drop/door.h"

#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#define CLOSED_HINT "\"qscheduler --check\" as root says what mends it"

/* The path of this program, and its file. False: not known. */
static bool
closed_find_self(char path[PATH_MAX], struct stat *ret_st)
{
	ssize_t n = readlink("/proc/self/exe", path, PATH_MAX - 1);

	path[n < 0 ? 0 : n] = '\0';
	return n > 0 && stat("/proc/self/exe", ret_st) == 0;
}

void
door_explain_closed(const struct door *d, char *out, size_t size)
{
	char path[PATH_MAX];
	struct stat self, gate;
	const char *why;

	if (d->sp.private || !closed_find_self(path, &self) ||
	    fstatat(d->sp.fd, SPOOL_GATE, &gate, AT_SYMLINK_NOFOLLOW) < 0) {
		snprintf(out, size,
		    "the gate is closed: queue%" PRIu32 "/" SPOOL_GATE
		    "/maildrop cannot be entered; " CLOSED_HINT,
		    d->queue);
		return;
	}
	if ((self.st_mode & S_ISGID) == 0)
		why = "is not set-group-id";
	else if (self.st_gid != gate.st_gid)
		why = "is set-group-id for another group than the gate has";
	else if (getegid() != gate.st_gid)
		why = "may not take its group here (no_new_privs, or a file "
		      "system mounted nosuid)";
	else
		why = "has its group, but the gate is closed to that";
	snprintf(out, size,
	    "the gate is closed: %.100s (mode %04o, gid %u; gate: gid %u, mode "
	    "%04o) %s; " CLOSED_HINT,
	    path, (unsigned)self.st_mode & 07777, (unsigned)self.st_gid,
	    (unsigned)gate.st_gid, (unsigned)gate.st_mode & 07777, why);
}
