#include "queue-send/message/move_task.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/io.h"
#include "spool/reason.h"

/* As much as the loop reads of a message before it delivers. */
#define WARM_MAX 65536

static void
clear(const struct move_task *t, unsigned bits)
{
	static const enum spool_dir dirs[] = { SPOOL_DEFER, SPOOL_BOUNCE };
	size_t i;

	for (i = 0; i < ARRAY_LEN(dirs); i++)
		if ((bits & SPOOL_DIR_BIT(dirs[i])) != 0)
			(void)reason_clear(t->sp, dirs[i], t->task.inode);
}

static int
write_note(struct move_task *t)
{
	struct hold_note_before before;

	if (t->has_note)
		t->note_error =
		    hold_note_write(t->sp, &t->id, &t->note, &before);
	return t->note_error;
}

static int
set_due(struct move_task *t)
{
	int r = t->due == MOVE_WITHOUT_DUE
	    ? 0
	    : spool_set_due(t->sp, t->task.inode, t->due_wall);

	if (t->due == MOVE_DUE_NEEDED)
		return r;
	t->due_error = r;
	return 0;
}

static int
move_file(const struct move_task *t)
{
	const uint64_t inode = t->task.inode;
	char name[QUEUE_FILE_MAX];

	if (t->to != SPOOL_CORRUPT)
		return spool_move(t->sp, t->from, t->to, inode);
	queue_file_name(inode, name);
	return spool_move_corrupt(
	    t->sp, t->from, (uint32_t)(inode % t->sp->split), name);
}

/* When no recipient has failed, reasons without a mark of this message are of
 * another one: inode numbers are reused. */
static void
look_at_reasons(struct move_task *t)
{
	t->marks = reason_marks(t->sp, &t->id);
	if (t->marks == 0 && t->clear_unmarked)
		(void)reason_clear(t->sp, SPOOL_BOUNCE, t->task.inode);
}

static void
read_part(int fd, uint64_t off, uint64_t len)
{
	char part[WARM_MAX];

	if (len > sizeof(part))
		len = sizeof(part);
	(void)!pread(fd, part, (size_t)len, (off_t)off);
}

/* The parts that the loop is about to read are in memory then. The reads of the
 * loop find what is wrong with the file. */
static void
warm(int fd, off_t size)
{
	struct queue_file file;

	read_part(fd, 0, WARM_MAX);
	if (size > WARM_MAX && queue_file_read(fd, &file) == 0)
		read_part(fd, file.rcpt_off, file.rcpt_len);
}

static void
open_file(struct move_task *t)
{
	struct stat st;

	t->fd = spool_open_stat(t->sp, t->to, t->task.inode, O_RDWR, &st);
	if (t->fd >= 0)
		warm(t->fd, st.st_size);
}

int
move_task_work(struct sync_task *task)
{
	struct move_task *t = (struct move_task *)(void *)task;
	int r;

	clear(t, t->clear);
	if (t->stays)
		return 0;
	r = write_note(t);
	if (r == 0)
		r = set_due(t);
	if (r == 0)
		r = move_file(t);
	if (r < 0)
		return r;
	clear(t, t->clear_after);
	if (t->look)
		look_at_reasons(t);
	if (t->open)
		open_file(t);
	return 0;
}

void
move_task_drop(struct sync_task *task)
{
	io_close(&((struct move_task *)(void *)task)->fd);
}
