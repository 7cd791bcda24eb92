#include "todo-proc/todo.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "base/io.h"
#include "log/log.h"

struct drop {
	const char *name;
	int fd;
	struct stat st;
	struct queue_file file;
};

/* Checksums and recipients are examined in incoming/, as of any message. */
static int
check(const struct todo *t, struct drop *drop)
{
	int r = queue_file_read(drop->fd, &drop->file);

	if (r < 0)
		return r;
	if (fstat(drop->fd, &drop->st) < 0)
		return -errno;
	if (drop->file.uid != drop->st.st_uid)
		return spool_refuse("not of the user who owns it");
	if (drop->file.queue != t->sp.queue)
		return spool_refuse("of another queue");
	return 0;
}

/* Two files cannot have the same inode, so a file that has the name already is
 * not named by its inode: it is foreign, and goes to corrupt/. */
static int
move(struct todo *t, const struct drop *drop)
{
	const uint64_t inode = (uint64_t)drop->st.st_ino;
	int r = spool_drop_move(&t->sp, drop->name, inode);

	if (r != -EEXIST)
		return r;
	r = examine_corrupt(
	    t, SPOOL_INCOMING, inode, "has the name of another message");
	if (r != -EBADMSG && r != -ENOENT)
		return r;
	return spool_drop_move(&t->sp, drop->name, inode);
}

static void
picked_up(struct todo *t, const struct drop *drop)
{
	const struct queue_id id = {
		.arrival_wall = drop->file.arrival_wall,
		.nonce = drop->file.nonce,
		.queue = drop->file.queue,
		.inode = (uint64_t)drop->st.st_ino,
	};
	char text[QUEUE_ID_SIZE];

	queue_id_format(&id, text);
	log_message(LOG_DEBUG_L, "picked-up", text, "picked up");
	waiting_picked_up(t, drop->st.st_uid, drop->file.size);
	(void)inbox_add(&t->inbox, id.inode, todo_mtime(&drop->st));
}

static int
pick_up(struct todo *t, struct drop *drop)
{
	int r = spool_file_settled(drop->fd);

	if (r == 0)
		r = check(t, drop);
	if (r == 0)
		r = move(t, drop);
	if (r == 0)
		picked_up(t, drop);
	return r;
}

int
pickup_drop(struct todo *t, const char *name)
{
	struct drop drop = { .name = name };
	int r;

	drop.fd = spool_drop_open(&t->sp, name);
	/* After a power cut the drop may have a name in incoming/, too. */
	if (drop.fd == -EPERM &&
	    spool_keep_one_name(&t->sp, SPOOL_MAILDROP, name) == 0)
		drop.fd = spool_drop_open(&t->sp, name);
	r = drop.fd < 0 ? drop.fd : pick_up(t, &drop);
	io_close(&drop.fd);
	if (r == -EBADMSG || r == -EPERM)
		return examine_corrupt_name(
		    t, SPOOL_MAILDROP, 0, name, queue_file_reason());
	if (r < 0 && r != -EAGAIN && r != -ENOENT && todo_say(t, r))
		log_error("%s/%s/%s: %s: the drop waits", t->sp.path,
		    spool_dirs[SPOOL_MAILDROP].name, name, strerror(-r));
	return r;
}
