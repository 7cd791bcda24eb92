/* Files that are gone, and files of deferred/ that cannot be read. */
#include "queue-send/message/path.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "log/log.h"
#include "queue-send/backlog/backlog.h"
#include "queue-send/disk/act_task.h"

/* The time of the last mark, or of the acceptance, stands for its age. */
static int
ask_age(struct act_task *t)
{
	char leaf[SPOOL_PATH_MAX];
	struct stat st;

	spool_leaf(t->sp, SPOOL_DEFERRED, t->id.inode, leaf, sizeof(leaf));
	if (fstatat(
		t->sp->dir[SPOOL_DEFERRED], leaf, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	t->changed_wall = (usec_t)st.st_mtim.tv_sec * USEC_PER_SEC;
	return 0;
}

static int
put_aside(struct act_task *t)
{
	char name[QUEUE_FILE_MAX];

	queue_file_name(t->id.inode, name);
	return spool_move_corrupt(t->sp, SPOOL_DEFERRED,
	    (uint32_t)(t->id.inode % t->sp->split), name);
}

static int
was_put_aside(struct send *s, struct act_task *t, uint32_t *ret_running UNUSED)
{
	if (t->task.error < 0)
		return 0;
	log_error(
	    "ALERT: %s/deferred/%llu: cannot be read, for longer than mail is "
	    "kept: %s: moved to corrupt/",
	    s->sp.path, (unsigned long long)t->id.inode, strerror(EIO));
	s->walks[WALK_CORRUPT].count++;
	deferred_forget(s, t->id.inode);
	return 0;
}

static int
age_is_known(struct send *s, struct act_task *t, uint32_t *ret_running UNUSED)
{
	const usec_t age = jumps_age(&s->jumps, t->changed_wall, s->now_wall);

	if (t->task.error == 0 && retry_is_hopeless(&s->retry, age, false))
		act_run_own(
		    s, SPOOL_DEFERRED, t->id.inode, put_aside, was_put_aside);
	return 0;
}

void
found_unreadable(struct send *s, uint64_t inode)
{
	if (s->now >= s->expire_after && !acts_own_are_full(s) &&
	    !act_is_under_way(s, inode))
		act_run_own(s, SPOOL_DEFERRED, inode, ask_age, age_is_known);
}

/* A file that an act is under way on may be moving. */
void
found_gone(struct send *s, uint64_t inode)
{
	if (!acts_own_are_full(s) && !act_is_under_way(s, inode))
		act_run_own(s, SPOOL_BOUNCE, inode, act_task_clear, NULL);
}
