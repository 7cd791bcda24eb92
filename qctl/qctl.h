/* qctl/qctl.h - the command qctl(8). Its parts stand on floors (qctl/LAYERS);
 * the header of each says which source does what.
 *
 *	read     messages of a queue, processes for queues, queue-send, readers
 *	select   which messages: ids and filters
 *	task     the work of one command
 *	routing, check, act, show   what each verb does
 *
 * Above them, in no folder:
 *
 *	qctl     the command: configuration, rights, the table of verbs
 *	options  the command line of qctl; faces: of its other names; help
 *	reading  the queues are read: the process of each, the exit code
 *
 * The spool is read as it is: no lock is taken, and no process is asked but by
 * `explain` and by acts, which work on the spool alone while there is none.
 */
#ifndef QCTL_QCTL_H
#define QCTL_QCTL_H

#include "qctl/task/task.h"

/* All but main(). Exit codes: 0; 64 usage; 65 a message that was named is not
 * there; 67 an address is not deliverable, or no such user; 69 this name cannot
 * do that; 74 output; 75 a queue did not answer, or could not be read; 77
 * permission; 78 configuration. */
int qctl_main(int argc, char **argv);
/* Does this command only show, and no content? own_only: and nothing but the
 * own share? */
bool qctl_only_shows(const struct options *o, bool own_only);

/* Reads the queues that were found, and does what the verb says with their
 * messages: an exit code. reading.c */
int task_read_all(struct task *t);

/* ---- options: -errno with the complaint in *ret_error ---- */

/* -EINVAL: usage; -EOPNOTSUPP: the option is known, and not for this command.
 * The caller calls select_done() in either case. */
int options_parse(
    int argc, char **argv, struct options *ret_options, struct buf *ret_error);
/* The same for other names (faces.c): `mailq`, `sendmail -q` that sendmail
 * handed on, `postqueue`, `qread`, `postsuper`. */
int face_mailq(int argc, char **argv, struct options *o, struct buf *error);
int face_sendmail(int argc, char **argv, struct options *o, struct buf *error);
int face_postqueue(int argc, char **argv, struct options *o, struct buf *error);
int face_qread(int argc, char **argv, struct options *o, struct buf *error);
int face_postsuper(int argc, char **argv, struct options *o, struct buf *error);
/* The help of qctl (help.c); a line for each of its options. -ENOMEM. */
int options_help(struct buf *out);
int options_help_rows(struct buf *out);
/* --help of another name; -ENOENT: it has none. */
int face_help(const char *name, struct buf *out);

#endif
