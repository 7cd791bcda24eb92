#include "todo-proc/pickup_task.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/io.h"

struct drop {
	const struct spool *sp;
	const char *name;
	int fd;
	struct stat st;
	struct queue_file file;
	struct picked *picked;
};

/* Checksums and recipients are examined in incoming/, as of any message. */
static int
check(struct drop *drop)
{
	int r = queue_file_read(drop->fd, &drop->file);

	if (r < 0)
		return r;
	if (fstat(drop->fd, &drop->st) < 0)
		return -errno;
	if (drop->file.uid != drop->st.st_uid)
		return spool_refuse("not of the user who owns it");
	if (drop->file.queue != drop->sp->queue)
		return spool_refuse("of another queue");
	return 0;
}

/* Two files cannot have the same inode, so a file that has the name already is
 * not named by its inode: it is foreign, and goes to corrupt/. */
static int
move(const struct drop *drop)
{
	const uint64_t inode = (uint64_t)drop->st.st_ino;
	int r = spool_drop_move(drop->sp, drop->name, inode);
	char name[QUEUE_FILE_MAX];

	if (r != -EEXIST)
		return r;
	queue_file_name(inode, name);
	r = spool_move_corrupt(drop->sp, SPOOL_INCOMING,
	    (uint32_t)(inode % drop->sp->split), name);
	drop->picked->met_foreign = true;
	drop->picked->foreign_moved = r;
	if (r < 0 && r != -ENOENT)
		return r;
	return spool_drop_move(drop->sp, drop->name, inode);
}

static int
pick_up(struct drop *drop)
{
	struct picked *p = drop->picked;
	int r = spool_file_settled(drop->fd);

	if (r == 0)
		r = check(drop);
	if (r < 0)
		return r;
	p->id = queue_file_id(&drop->file, (uint64_t)drop->st.st_ino);
	p->uid = drop->st.st_uid;
	p->size = drop->file.size;
	p->mtime_wall = clock_usec(drop->st.st_mtim);
	return move(drop);
}

void
pickup_drop(const struct spool *sp, const char *name, struct picked *ret)
{
	struct drop drop = { .sp = sp, .name = name, .picked = ret };

	*ret = (struct picked){ 0 };
	drop.fd = spool_drop_open(sp, name);
	/* After a power cut the drop may have a name in incoming/, too. */
	if (drop.fd == -EPERM &&
	    spool_keep_one_name(sp, SPOOL_MAILDROP, name) == 0)
		drop.fd = spool_drop_open(sp, name);
	ret->error = drop.fd < 0 ? drop.fd : pick_up(&drop);
	io_close(&drop.fd);
	if (ret->error != -EBADMSG && ret->error != -EPERM)
		return;
	ret->why = queue_file_reason();
	ret->moved = spool_move_corrupt(sp, SPOOL_MAILDROP, 0, name);
}
