/* Warnings of what a start, or a submitter, meets on this host: the programs
 * that are set-group-id, the gates of queues, room on the disks, a spool that
 * was restored. */
#include "qscheduler/supervisor/supervisor.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/io.h"

/* A program that users run with the rights of a group. */
struct start_program {
	const char *name, *group;
	gid_t gid;
	const char *effect; /* of a program that lacks its group */
};

#define PROGRAM_MODE 02711

/* NULL: the program is as `make install` leaves it. */
static const char *
start_judge_program(
    const char *path, const struct start_program *p, const struct stat *st)
{
	struct statvfs v;

	if (st->st_uid != 0 || (st->st_mode & (S_IWGRP | S_IWOTH)) != 0)
		return "others than root may change it";
	if (st->st_gid != p->gid || (st->st_mode & S_ISGID) == 0)
		return "it is not set-group-id for that group";
	if ((st->st_mode & S_IXOTH) == 0)
		return "users may not run it";
	if (statvfs(path, &v) == 0 && (v.f_flag & ST_NOSUID) != 0)
		return "its file system is mounted nosuid";
	return NULL;
}

static int
start_warn_program(
    const struct conf *conf, const struct start_program *p, struct buf *out)
{
	char path[PATH_MAX];
	struct stat st;
	const char *why;

	if (conf_find_program(conf, p->name, path) < 0 || stat(path, &st) < 0)
		return buf_printf(out,
		    "%s: not found in program_dir, beside qscheduler or in "
		    "libexec: %s; install it\n",
		    p->name, p->effect);
	why = start_judge_program(path, p, &st);
	if (why == NULL)
		return 0;
	return buf_printf(out,
	    "%s: uid %u, gid %u, mode %04o: %s: %s; run: chown root:%s %s && "
	    "chmod %04o %s\n",
	    path, (unsigned)st.st_uid, (unsigned)st.st_gid,
	    (unsigned)st.st_mode & 07777, why, p->effect, p->group, path,
	    PROGRAM_MODE, path);
}

int
start_warn_programs(
    const struct conf *conf, const struct daemon_users *users, struct buf *out)
{
	const struct start_program programs[] = {
		{ "queue-drop", conf->qdrop_group, users->qdrop,
		    "users other than root cannot submit mail" },
		{ "queue-look", conf->qmail_group, users->qmail,
		    "members of reader_group cannot list mail" },
	};
	const size_t n = conf->reader_group[0] == '\0' ? 1 : 2;
	size_t i;
	int r = 0;

	/* Everything of a private instance belongs to one user. */
	for (i = 0; r == 0 && !users->private && i < n; i++)
		r = start_warn_program(conf, &programs[i], out);
	return r;
}

/* ---- queues ---- */

/* The walk of start_warn_queues(). */
struct start_queues {
	const struct conf *conf;
	const struct daemon_users *users;
	struct base base; /* path alone */
	struct room_want want;
	struct buf *out;
	dev_t told; /* the file system that was told last */
};

static int
start_warn_gate(const struct start_queues *q, uint32_t queue)
{
	const struct daemon_users *u = q->users;
	char path[PATH_MAX];
	struct stat st;

	snprintf(path, sizeof(path), "%s/queue%" PRIu32 "/" SPOOL_GATE,
	    q->base.path, queue);
	if (u->private || stat(path, &st) < 0)
		return 0;
	if (st.st_uid == u->qmailq && st.st_gid == u->qdrop &&
	    (st.st_mode & 07777 & ~(mode_t)S_ISGID) == SPOOL_GATE_MODE)
		return 0;
	return buf_printf(q->out,
	    "%s: uid %u, gid %u, mode %04o: users other than root cannot "
	    "submit mail to queue %" PRIu32 "; restart qscheduler, or run: "
	    "chown %s:%s %s && chmod %04o %s\n",
	    path, (unsigned)st.st_uid, (unsigned)st.st_gid,
	    (unsigned)st.st_mode & 07777, queue, q->conf->qmailq_user,
	    q->conf->qdrop_group, path, SPOOL_GATE_MODE, path);
}

/* Each file system once. */
static int
start_warn_room(struct start_queues *q, const struct spool *sp)
{
	char text[ROOM_TEXT_SIZE];
	struct statvfs v;
	struct stat st;
	int r;

	if (fstat(sp->fd, &st) < 0 || fstatvfs(sp->fd, &v) < 0 ||
	    st.st_dev == q->told)
		return 0;
	r = room_judge(&v, &q->want, 0);
	if (r == 0)
		return 0;
	q->told = st.st_dev;
	room_describe_queue(sp, &q->want, 0, r, text);
	return buf_printf(q->out, "%s; new mail%s is refused\n", text,
	    r == -ENOSPC ? " of users" : "");
}

static int
start_warn_queue(struct start_queues *q, uint32_t queue)
{
	struct buf why = { 0 };
	struct spool sp;
	int r = spool_open(&sp, &spool_sys_real, q->base.path, queue);

	if (r == 0)
		r = start_warn_room(q, &sp);
	spool_close(&sp);
	if (r == -EMEDIUMTYPE)
		return buf_printf(
		    q->out, "queue %" PRIu32 ": %s\n", queue, spool_error(r));
	if (r < 0)
		return r == -ENOMEM ? r : 0;
	r = base_judge_names(&q->base, queue, &why);
	r = r == -EUCLEAN ? buf_printf(q->out, "queue %" PRIu32 ": %s\n", queue,
				buf_str(&why))
			  : 0;
	buf_done(&why);
	return r == 0 ? start_warn_gate(q, queue) : r;
}

int
start_warn_queues(
    const struct conf *conf, const struct daemon_users *users, struct buf *out)
{
	struct start_queues q = {
		.conf = conf,
		.users = users,
		.base.path = conf->queue_base,
		.want = { conf->queue_minfree_bytes, conf->queue_minfree_inodes,
		    ROOM_USER },
		.out = out,
	};
	uint32_t queues[QUEUE_NUM_MAX];
	int i, r = 0, n = spool_list(conf->queue_base, queues, QUEUE_NUM_MAX);

	for (i = 0; r == 0 && i < n; i++)
		r = start_warn_queue(&q, queues[i]);
	return r;
}
