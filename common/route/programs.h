/* route/programs.h - programs_file: programs that mail may be piped into, as
 * qscheduler-programs(5) describes it.
 *
 *	NAME USER PATH [ARGUMENT ...]
 *
 * USER `-` is the user of a private instance. Words are split at blanks;
 * "double quotes" group, and within them \" and \\ stand for themselves; `#` at
 * the start of a line comments. ${sender} ${recipient} ${user} ${domain}
 * ${nexthop} are replaced inside one argument, which is never split again and
 * never passed to a shell.
 *
 * The file is read by base/file.h: whole before it is parsed, and as root only
 * if no other user may write it, since it names programs and their users. A
 * table does not change once loaded. Soft: -errno, with "FILE:LINE: what is
 * wrong". Never logs.
 */
#ifndef ROUTE_PROGRAMS_H
#define ROUTE_PROGRAMS_H

#include "base/buf.h"

#define PROGRAMS_FILE_MAX ((size_t)1 << 20)
#define PROGRAMS_LINE_MAX 4096
#define PROGRAMS_ARGS_MAX 64
#define PROGRAMS_NAME_MAX 64

struct program {
	char *name; /* compared without case, as next hops are */
	char *user;
	char **args; /* templates, ended by NULL; args[0] an absolute path */
	size_t nargs;
	uint32_t line;
};

struct programs;

/* A file that is absent is an empty table. -EINVAL, and the errors of
 * file_read().
 */
int programs_load(
    const char *path, struct programs **ret_programs, struct buf *ret_error);
void programs_free(struct programs **programs);
/* NULL: no program has this name. */
const struct program *
programs_find(const struct programs *programs, const char *name);

enum program_value {
	PROGRAM_SENDER,
	PROGRAM_RECIPIENT,
	PROGRAM_USER,
	PROGRAM_DOMAIN,
	PROGRAM_NEXTHOP,
	PROGRAM_NVALUES,
};
/* The argument vector, ended by NULL, for program_argv_free(). An empty value
 * makes an empty argument. -EPERM: an argument that begins with a value would
 * begin with `-`, and no argument `--` stands before it: the address could
 * play an option. -ENOMEM. */
int program_argv(const struct program *program,
    const char *const values[PROGRAM_NVALUES], char ***ret_argv);
void program_argv_free(char ***argv);

#endif
