/* qctl/read/look.h - reading for users who are not members of qmail_group
 * (docs/QCTL.md, "Readers").
 *
 * queue-look is this program, set-group-id qmail_group, where people do not
 * call it by themselves: `qctl` becomes it when its user cannot read the
 * queues. A process with more rights than its caller is queue-look, whatever
 * its name, and only shows.
 */
#ifndef QCTL_READ_LOOK_H
#define QCTL_READ_LOOK_H

#include <sys/types.h>

#include "config/conf.h"

#define LOOK_DENIED                                               \
	"no permission to read the queues; this is for root and " \
	"members of qmail_group, and without the content for "    \
	"those of reader_group"

/* `queue-look QUEUE_BASE NAME [ARGUMENT ...]`: the words before NAME, which is
 * the name of the command that became it. */
#define LOOK_WORDS 2

/* Is this process queue-look? */
bool look_is_called(int argc, char *const *argv);
/* First of all of queue-look: the process is made safe, the instance and the
 * user are judged. An exit code, the complaint told; with EX_OK *ret_conf is
 * the configuration in force, and the caller's. *ret_own_only: the user is no
 * reader, and the words are those of look_is_own_share(). */
int look_begin(
    int argc, char *const *argv, struct conf *ret_conf, bool *ret_own_only);
/* `qctl shares [--json] [NAME | UID]' of this user: the words with which a user
 * who is no reader sees the own share; they are compared before any word is
 * parsed. The caller chooses the first word, too, which chooses the parser of
 * the others. name: empty for a user who has none. */
bool
look_is_own_share(int argc, char *const *argv, const char *name, uid_t uid);
/* Becomes queue-look, if this user needs it and it is there; else returns. */
void look_become(const struct conf *conf, char *const *argv);

/* ---- parts, for tests ---- */

/* A name of a file in the form of /etc/group, or a number; (gid_t)-1: none. */
gid_t look_find_group(const char *path, const char *name);
/* May a process with these groups, which the program did not give it, read? */
bool look_is_reader(const struct conf *conf, const char *groups_path,
    const gid_t *groups, size_t count);
/* From now on this process and its children open no file to write, but
 * /dev/null, and make and remove no name. -errno; -EOPNOTSUPP: the kernel
 * cannot do that. */
int look_lock_down(void);

#endif
