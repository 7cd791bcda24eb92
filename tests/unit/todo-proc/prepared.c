/* Messages that an interrupted expansion left in prepared/. */
#include "tests/unit/todo-proc/world.h"

#include "spool/prepared.h"

#include <criterion/criterion.h>
#include <fcntl.h>
#include <unistd.h>

static struct world w;

static void
start(void)
{
	world_start(&w, "");
	world_link(&w);
	world_run(&w);
}

static void
end(void)
{
	world_end(&w);
}

TestSuite(prepared, .init = start, .fini = end, .timeout = 60);

/* A message of recipient 0 of this one, in prepared/. */
static uint64_t
prepare(uint64_t parent, uint32_t number)
{
	char name[PREPARED_NAME_MAX];
	struct prepared p = { .number = number };
	struct queue_file file;
	uint64_t inode;
	char leaf[SPOOL_PATH_MAX];
	int fd = spool_open_file(&w.t.sp, SPOOL_INCOMING, parent, O_RDONLY);

	cr_assert_geq(fd, 0);
	cr_assert_eq(queue_file_read(fd, &file), 0);
	close(fd);
	p.parent = (struct queue_id){ .arrival_wall = file.arrival_wall,
		.nonce = file.nonce,
		.queue = file.queue,
		.inode = parent };
	prepared_name(&p, name);
	inode = world_file(&w, SPOOL_INCOMING, "made@d.test", 1);
	spool_leaf(&w.t.sp, SPOOL_INCOMING, inode, leaf, sizeof(leaf));
	cr_assert_eq(renameat(w.t.sp.dir[SPOOL_INCOMING], leaf,
			 w.t.sp.dir[SPOOL_PREPARED], name),
	    0);
	return inode;
}

static void
mark(uint64_t inode, enum rcpt_mark mark)
{
	struct queue_rcpt rcpt;
	struct queue_file file;
	int fd = spool_open_file(&w.t.sp, SPOOL_INCOMING, inode, O_RDWR);

	cr_assert_eq(queue_file_read(fd, &file), 0);
	cr_assert_eq(prepared_find_rcpt(fd, &file, 0, &rcpt), 0);
	cr_assert_eq(queue_file_mark(w.t.sp.sys, fd, rcpt.offset, mark), 0);
	close(fd);
}

/* mutation: todo-proc/scan.c: prepared_work() is not called. */
Test(prepared, D35_settled_and_offered_by_the_scan_that_finds_it)
{
	uint64_t done = world_file(&w, SPOOL_INCOMING, "a@d.test", 2);
	uint64_t pending = world_file(&w, SPOOL_INCOMING, "b@d.test", 1);
	uint64_t goes = prepare(done, 0), away = prepare(pending, 0);

	mark(done, RCPT_DONE);
	world_credit(&w, 64);
	world_scan(&w);
	world_run(&w);
	cr_expect_eq(world_count(&w, SPOOL_PREPARED), 0);
	cr_expect_eq(world_where(&w, goes), SPOOL_INCOMING);
	cr_expect_eq(world_where(&w, away), SPOOL_NDIRS);
	cr_expect_eq(w.nmessages, 3, "both parents, and the one that goes on");
}

Test(prepared, D35_more_than_one_turn_takes)
{
	uint64_t parent = world_file(&w, SPOOL_INCOMING, "a@d.test", 2);
	uint32_t i;

	for (i = 0; i < 60; i++)
		prepare(parent, i);
	mark(parent, RCPT_DONE);
	world_credit(&w, 64);
	world_scan(&w);
	world_run(&w);
	cr_expect_eq(world_count(&w, SPOOL_PREPARED), 0);
	cr_expect_eq(w.nmessages, 61);
}

Test(prepared, foreign_names_stay)
{
	world_raw(&w, SPOOL_PREPARED, "core", "x", 1);
	world_scan(&w);
	world_run(&w);
	cr_expect_eq(world_count(&w, SPOOL_PREPARED), 1);
}
