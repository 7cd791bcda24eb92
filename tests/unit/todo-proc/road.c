/* From bells and scans to MESSAGE and GONE. */
#include "tests/unit/todo-proc/world.h"

#include "todo-proc/todo.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
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

TestSuite(road, .init = start, .fini = end, .timeout = 60);

static uint32_t
u32_at(const char *p, int i)
{
	uint32_t v;

	memcpy(&v, p + 4 * i, sizeof(v));
	return v;
}

Test(road, offered_over_with_its_census)
{
	uint64_t inode = world_file(&w, SPOOL_INCOMING, "d", 3);
	const struct msg_MESSAGE *m = &w.messages[0];
	const uint32_t discard =
	    (uint32_t)conf_transport_find(&w.conf, "discard");

	world_bell(&w, inode);
	world_run(&w);
	cr_assert_eq(w.nmessages, 0, "no credit");
	world_credit(&w, 2);
	cr_assert_eq(w.nmessages, 1);
	cr_assert_eq(w.t.credit, 1);
	cr_assert_eq(m->inode, inode);
	cr_assert_eq(m->dir, SPOOL_INCOMING);
	cr_assert_eq(m->queue, 1);
	cr_assert_eq(m->content_len, 5);
	cr_assert_eq(m->recipients, 3);
	cr_assert_eq(m->pending, 3);
	cr_assert_eq(m->sender.len, 11);
	cr_assert_eq(w.census_len[0], 16);
	cr_assert_eq(u32_at(w.census[0], 0), discard);
	cr_assert_eq(u32_at(w.census[0], 1), 3);
	cr_assert_eq(u32_at(w.census[0], 2), 3);
	cr_assert_eq(u32_at(w.census[0], 3), 3);
	cr_assert_eq(w.t.counts.rings, 1);
	cr_assert_eq(w.t.counts.rings_stale, 0);
	cr_assert_eq(w.t.counts.found_by_scan, 0);
	/* It still lies there; nothing finds it again. */
	world_bell(&w, inode);
	world_scan(&w);
	cr_assert_eq(w.nmessages, 1);
	cr_assert_eq(w.t.counts.rings_stale, 1);
}

/* Facts that queue-send would read in the file. */
static void
expect_facts(uint64_t inode, uint32_t n)
{
	const struct msg_MESSAGE *m = &w.messages[n];
	char rcpts[MSG_FEW_BYTES];
	struct queue_file file;
	int fd = spool_open_file(&w.t.sp, SPOOL_INCOMING, inode, O_RDONLY);

	cr_assert_geq(fd, 0);
	cr_assert_eq(queue_file_read(fd, &file), 0);
	cr_expect_eq(m->version, file.version);
	cr_expect_eq(m->uid, file.uid);
	cr_expect_eq(m->flags, file.flags);
	cr_expect_eq(m->env_len, file.env_len);
	cr_expect_eq(m->rcpt_len, file.rcpt_len);
	cr_assert_leq(m->rcpts.len, sizeof(rcpts));
	cr_assert_eq(
	    queue_file_content(fd, file.rcpt_off, rcpts, m->rcpts.len), 0);
	cr_expect_eq(memcmp(w.rcpts[n], rcpts, m->rcpts.len), 0);
	close(fd);
}

/* mutation: todo-proc/examine_task.c: recipients are counted from 21 on. */
Test(road, brings_along_what_a_first_attempt_needs_of_the_file)
{
	const uint64_t few = world_file(&w, SPOOL_INCOMING, "d", MSG_FEW_RCPTS);
	const uint64_t many =
	    world_file(&w, SPOOL_INCOMING, "d", MSG_FEW_RCPTS + 1);

	world_bell(&w, few);
	world_bell(&w, many);
	world_credit(&w, 2);
	cr_assert_eq(w.nmessages, 2);
	expect_facts(few, 0);
	cr_expect_eq(w.messages[0].rcpts.len, w.messages[0].rcpt_len);
	cr_expect_str_eq(w.message_id[0], "");
	expect_facts(many, 1);
	cr_expect_eq(w.messages[1].rcpts.len, 0);
}

/* mutation: todo-proc/examine_task.c: e->pending is not looked at. */
Test(road, marked_recipients_are_left_in_the_file)
{
	const uint64_t inode = world_file(&w, SPOOL_INCOMING, "d", 2);
	int fd = spool_open_file(&w.t.sp, SPOOL_INCOMING, inode, O_RDWR);
	struct queue_file file;

	cr_assert_geq(fd, 0);
	cr_assert_eq(queue_file_read(fd, &file), 0);
	cr_assert_eq(
	    queue_file_mark(w.t.sp.sys, fd, file.rcpt_off, RCPT_DONE), 0);
	close(fd);
	world_bell(&w, inode);
	world_credit(&w, 1);
	cr_assert_eq(w.nmessages, 1);
	cr_expect_eq(w.messages[0].pending, 1);
	cr_expect_eq(w.messages[0].rcpts.len, 0);
	cr_expect_eq(w.messages[0].version, file.version);
}

Test(road, nothing_of_a_deferred_message_is_brought_along)
{
	const uint64_t inode = world_file(&w, SPOOL_DEFERRED, "d", 1);

	world_prepare(&w, inode);
	cr_assert_eq(w.nmessages, 1);
	cr_expect_eq(w.messages[0].version, 0);
	cr_expect_eq(w.messages[0].rcpts.len, 0);
	cr_expect_eq(w.fds[0], -1);
}

Test(road, I5_found_by_the_scan_in_order_of_arrival)
{
	uint64_t inode[20];
	struct timespec times[2] = { { .tv_nsec = UTIME_OMIT } };
	char leaf[SPOOL_PATH_MAX];
	int i;

	for (i = 0; i < 20; i++) {
		inode[i] = world_file(&w, SPOOL_INCOMING, "d", 1);
		spool_leaf(
		    &w.t.sp, SPOOL_INCOMING, inode[i], leaf, sizeof(leaf));
		times[1].tv_sec = 1000000 + (i * 7) % 20;
		cr_assert_eq(
		    utimensat(w.t.sp.dir[SPOOL_INCOMING], leaf, times, 0), 0);
	}
	world_scan(&w);
	world_credit(&w, 20);
	cr_assert_eq(w.nmessages, 20);
	for (i = 0; i < 20; i++)
		cr_assert_eq(w.messages[(i * 7) % 20].inode, inode[i]);
	cr_assert_eq(w.t.counts.found_by_scan, 20);
}

/* 60 files of long ago, found by a scan. */
static void
make_backlog(void)
{
	struct timespec times[2] = { { .tv_nsec = UTIME_OMIT } };
	char leaf[SPOOL_PATH_MAX];
	uint64_t inode;
	int i;

	for (i = 0; i < 60; i++) {
		inode = world_file(&w, SPOOL_INCOMING, "d", 1);
		spool_leaf(&w.t.sp, SPOOL_INCOMING, inode, leaf, sizeof(leaf));
		times[1].tv_sec = 1000000 + i;
		cr_assert_eq(
		    utimensat(w.t.sp.dir[SPOOL_INCOMING], leaf, times, 0), 0);
	}
	world_scan(&w);
	cr_assert_eq(w.t.inbox.nready, 60);
}

/* mutation: bells_rung() adds to what was found. */
Test(road, N19_new_mail_does_not_wait_for_the_backlog)
{
	uint64_t rang;

	make_backlog();
	rang = world_file(&w, SPOOL_INCOMING, "d", 1);
	world_bell(&w, rang);
	world_credit(&w, 2);
	cr_assert_eq(w.nmessages, 2);
	cr_expect(w.messages[0].inode == rang || w.messages[1].inode == rang);
}

/* mutation: add_found() takes all for old. */
Test(road, I1_nor_does_mail_whose_ring_was_lost)
{
	uint64_t lost;

	make_backlog();
	lost = world_file(&w, SPOOL_INCOMING, "d", 1);
	world_scan(&w);
	cr_expect_eq(w.t.inbox.nfresh, 1);
	world_credit(&w, 2);
	cr_assert_eq(w.nmessages, 2);
	cr_expect(w.messages[0].inode == lost || w.messages[1].inode == lost);
}

/* mutation: offer_next() does not ask scan_holds(). */
Test(road, new_mail_does_not_wait_for_a_scan)
{
	static const struct walk_kind kind = { .dir = SPOOL_INCOMING };
	uint64_t rang;

	make_backlog();
	world_run(&w);
	w.t.incoming.started_at = w.t.now; /* it has begun just now */
	cr_assert_eq(walk_begin(&w.t, &w.t.incoming.walk, &kind), 0);
	rang = world_file(&w, SPOOL_INCOMING, "d", 1);
	world_bell(&w, rang);
	w.t.credit = 2;
	cr_assert(scan_holds(&w.t));
	(void)offer_work(&w.t);
	cr_expect_eq(w.t.inbox.nfresh, 0);
	cr_expect_eq(w.t.inbox.nready, 60);
	cr_expect_eq(w.t.credit, 1);
}

Test(road, I6_bells_for_what_is_not_there_or_twice)
{
	uint64_t inode = world_file(&w, SPOOL_INCOMING, "d", 1);

	world_bell(&w, 4711);
	world_bell(&w, inode);
	world_bell(&w, inode);
	world_bell(&w, 0);
	world_credit(&w, 5);
	cr_assert_eq(w.nmessages, 1);
	cr_assert_eq(w.t.counts.rings, 3);
	cr_assert_eq(w.t.counts.rings_stale, 2);
	cr_assert_eq(w.t.counts.rings_bad, 1);
}

Test(road, a_file_whose_writer_is_not_done_is_left)
{
	struct accept a;
	uint64_t inode = world_unfinished(&w, &a);

	world_credit(&w, 5);
	world_bell(&w, inode);
	world_run(&w);
	cr_assert_eq(w.nmessages, 0);
	cr_assert_eq(world_where(&w, inode), SPOOL_INCOMING);
	cr_assert_eq(w.t.inbox.nlater, 1);
	accept_end(&a);
	RB_ROOT(&w.t.inbox.later)->at = 0; /* its time has come */
	world_run(&w);
	cr_assert_eq(w.nmessages, 1);
}

Test(road, prepare_and_gone)
{
	uint64_t inode = world_file(&w, SPOOL_INCOMING, "d", 1);

	cr_assert_eq(
	    spool_move(&w.t.sp, SPOOL_INCOMING, SPOOL_DEFERRED, inode), 0);
	world_prepare(&w, inode);
	cr_assert_eq(w.nmessages, 1, "without credit: it was asked for");
	cr_assert_eq(w.messages[0].dir, SPOOL_DEFERRED);
	world_prepare(&w, inode); /* again, when it failed again */
	cr_assert_eq(w.nmessages, 2);
	world_prepare(&w, 4711);
	cr_assert_eq(w.ngone, 1);
	cr_assert_eq(w.gone[0].inode, 4711);
	cr_assert_eq(w.gone[0].error, -ENOENT);
	cr_assert_eq(spool_remove(&w.t.sp, SPOOL_DEFERRED, inode), 0);
	inode = world_raw_named(&w, SPOOL_DEFERRED, "x", 1);
	world_prepare(&w, inode);
	cr_assert_eq(w.gone[1].error, -EBADMSG);
	cr_assert_eq(world_where(&w, inode), SPOOL_CORRUPT);
}

Test(road, a_new_queue_send_gets_all_again)
{
	uint64_t inode = world_file(&w, SPOOL_INCOMING, "d", 1);

	world_bell(&w, inode);
	world_credit(&w, 5);
	cr_assert_eq(w.nmessages, 1);
	world_link(&w);
	world_scan(&w);
	world_credit(&w, 5);
	cr_assert_eq(w.nmessages, 2);
	cr_assert_eq(w.messages[1].inode, inode);
	/* And the same one when it asks. */
	cr_assert_eq(offer_frame(&w.t, &(struct msg){ .type = MSG_SCAN }), 0);
	world_scan(&w);
	cr_assert_eq(w.nmessages, 3);
}

Test(road, queue_send_may_not_say_everything)
{
	static const struct msg wrong[] = {
		{ .type = MSG_CREDIT, .u.CREDIT = { .messages = 65 } },
		{ .type = MSG_CREDIT, .u.CREDIT = { .messages = UINT32_MAX } },
		{ .type = MSG_PREPARE, .u.PREPARE = { .inode = 0 } },
		{ .type = MSG_DONE },
	};
	size_t i;

	for (i = 0; i < ARRAY_LEN(wrong); i++)
		cr_assert_eq(offer_frame(&w.t, &wrong[i]), -EBADMSG, "%zu", i);
	for (i = 0; i < OFFERED_MAX; i++)
		cr_assert_eq(offer_frame(&w.t,
				 &(struct msg){ .type = MSG_PREPARE,
				     .u.PREPARE = { .inode = 5 } }),
		    0);
	cr_assert_eq(offer_frame(&w.t,
			 &(struct msg){ .type = MSG_PREPARE,
			     .u.PREPARE = { .inode = 5 } }),
	    -EBADMSG);
}

/* ---- damage ---- */

static uint64_t
damaged(const char *what, off_t from_end, const char *bytes, off_t cut)
{
	uint64_t inode = world_file(&w, SPOOL_INCOMING, "d", 2);
	int fd = spool_open_file(&w.t.sp, SPOOL_INCOMING, inode, O_RDWR);
	struct stat st;

	cr_assert_geq(fd, 0, "%s", what);
	cr_assert_eq(fstat(fd, &st), 0);
	if (bytes != NULL)
		cr_assert_eq(
		    pwrite(fd, bytes, strlen(bytes), st.st_size - from_end),
		    (ssize_t)strlen(bytes));
	if (cut != 0)
		cr_assert_eq(
		    ftruncate(fd, cut > 0 ? cut - 1 : st.st_size + cut), 0);
	close(fd);
	return inode;
}

Test(road, D13_D14_D15_damaged_files_go_to_corrupt_and_others_on)
{
	static const struct {
		const char *name;
		off_t from_end;
		const char *bytes;
		off_t cut; /* 1 + size, or less by -n */
	} cases[] = {
		{ "D13 empty", 0, NULL, 1 },
		{ "D13 one byte", 0, NULL, 2 },
		{ "D13 no trailer", 0, NULL, -128 },
		{ "D13 half a trailer", 0, NULL, -64 },
		{ "D14 content", 0, NULL, 0 },
		{ "D14 recipient", 135, "?", 0 },
		{ "D14 trailer", 100, "\1", 0 },
		{ "D15 garbage behind", 0, "x", 0 },
		{ "D15 magic of the end", 10, "Q", 0 },
	};
	uint64_t inode, good;
	size_t i;
	int fd;

	for (i = 0; i < ARRAY_LEN(cases); i++) {
		inode = damaged(cases[i].name, cases[i].from_end,
		    cases[i].bytes, cases[i].cut);
		if (strcmp(cases[i].name, "D14 content") == 0) {
			fd = spool_open_file(
			    &w.t.sp, SPOOL_INCOMING, inode, O_RDWR);
			cr_assert_eq(pwrite(fd, "z", 1, 18), 1);
			close(fd);
		}
		good = world_file(&w, SPOOL_INCOMING, "e", 1);
		world_bell(&w, inode);
		world_bell(&w, good);
		world_credit(&w, 2); /* whichever is examined first */
		cr_assert_eq(
		    world_where(&w, inode), SPOOL_CORRUPT, "%s", cases[i].name);
		cr_assert_eq(w.nmessages, i + 1, "%s", cases[i].name);
		cr_assert_eq(w.messages[i].inode, good);
		cr_assert_eq(w.t.counts.corrupt, i + 1);
	}
}

/* Name what is at the path by its inode, in incoming/. */
static uint64_t
named_by_inode(const char *from)
{
	int dir = w.t.sp.dir[SPOOL_INCOMING];
	char to[SPOOL_PATH_MAX];
	struct stat st;

	cr_assert_eq(fstatat(dir, from, &st, AT_SYMLINK_NOFOLLOW), 0);
	spool_leaf(
	    &w.t.sp, SPOOL_INCOMING, (uint64_t)st.st_ino, to, sizeof(to));
	cr_assert_eq(renameat(dir, from, dir, to), 0);
	return (uint64_t)st.st_ino;
}

Test(road, D16_what_is_no_queue_file_is_not_opened_and_goes_to_corrupt)
{
	int dir = w.t.sp.dir[SPOOL_INCOMING], fd;
	uint64_t inode[6];
	char leaf[SPOOL_PATH_MAX];
	size_t i;

	cr_assert_eq(mkfifoat(dir, "0/f", 0600), 0);
	inode[0] = named_by_inode("0/f");
	cr_assert_eq(symlinkat("/etc/passwd", dir, "0/l"), 0);
	inode[1] = named_by_inode("0/l");
	cr_assert_eq(mkdirat(dir, "0/d", 0700), 0);
	inode[2] = named_by_inode("0/d");
	/* Two links; both leave. */
	inode[3] = world_file(&w, SPOOL_INCOMING, "d", 1);
	spool_leaf(&w.t.sp, SPOOL_INCOMING, inode[3], leaf, sizeof(leaf));
	cr_assert_eq(linkat(dir, leaf, dir, "0/second", 0), 0);
	/* Readable by all. */
	inode[4] = world_file(&w, SPOOL_INCOMING, "d", 1);
	spool_leaf(&w.t.sp, SPOOL_INCOMING, inode[4], leaf, sizeof(leaf));
	cr_assert_eq(fchmodat(dir, leaf, 0644, 0), 0);
	/* The name of another file. */
	fd = openat(dir, "0/999999999", O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
	cr_assert_geq(fd, 0);
	close(fd);
	inode[5] = 999999999;
	world_scan(&w);
	world_credit(&w, 10);
	for (i = 0; i < ARRAY_LEN(inode); i++)
		cr_assert_eq(
		    world_where(&w, inode[i]), SPOOL_CORRUPT, "%zu", i);
	cr_assert_eq(w.nmessages, 0);
	cr_assert_eq(w.t.counts.corrupt, 6);
}

Test(road, D17_foreign_names_are_ignored)
{
	static const char *const names[] = { "core", ".dot", "a b", "01", "-1",
		"1x", "18446744073709551616", "%n", "\033[31m" };
	uint64_t good;
	size_t i;

	for (i = 0; i < ARRAY_LEN(names); i++) {
		world_raw(&w, SPOOL_INCOMING, names[i], "x", 1);
		world_raw(&w, SPOOL_MAILDROP, names[i], "x", 1);
	}
	good = world_file(&w, SPOOL_INCOMING, "d", 1);
	world_scan(&w);
	world_scan(&w);
	world_credit(&w, 10);
	cr_assert_eq(w.nmessages, 1);
	cr_assert_eq(w.messages[0].inode, good);
	cr_assert_eq(w.t.counts.corrupt, 0);
	cr_assert_eq(world_count(&w, SPOOL_INCOMING), ARRAY_LEN(names) + 1);
	cr_assert_eq(world_count(&w, SPOOL_MAILDROP), ARRAY_LEN(names));
}

/* A submitter may have rung the bell before this one, of a file that the first
 * scan did not find. */
Test(road, I8_a_new_bell_is_scanned_for_until_all_know_it)
{
	int ends[2];

	cr_assert_eq(pipe(ends), 0);
	w.t.incoming.wanted = false;
	cr_assert_eq(bells_linked(&w.t, ends[0]), 0);
	cr_expect(w.t.incoming.wanted);
	cr_expect_eq(w.t.bell_known_at, w.t.now + BELL_BELIEVED);
	w.t.bell_known_at += 3600 * USEC_PER_SEC; /* the clock goes on */
	world_scan(&w);
	cr_expect(w.t.incoming.wanted, "it began too early");
	w.t.bell_known_at = 0;
	world_scan(&w);
	cr_expect_not(w.t.incoming.wanted);
	close(ends[1]);
}
