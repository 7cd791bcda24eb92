/* Threads wait for the disk, and the loop goes on. */
#include "tests/unit/todo-proc/world.h"

#include "todo-proc/todo.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define THREADS 2

static struct world w;
static struct spool_sys sys;

/* Opens of this file wait here, each for a byte. */
static int gate[2];
static _Atomic uint64_t held;       /* 0: none; UINT64_MAX: each */
static _Atomic bool drops_are_held; /* at their moves */

static int
slow_openat(int dir, const char *name, int flags, mode_t mode)
{
	const char *slash = strrchr(name, '/');
	const uint64_t inode =
	    strtoull(slash == NULL ? name : slash + 1, NULL, 10);
	char byte;

	if (inode != 0 && strchr(name, '.') == NULL &&
	    (held == inode || held == UINT64_MAX))
		(void)!read(gate[0], &byte, 1);
	return spool_sys_real.openat(dir, name, flags, mode);
}

static int
slow_renameat(int olddir, const char *old, int newdir, const char *name)
{
	char byte;

	if (drops_are_held && olddir == w.t.sp.dir[SPOOL_MAILDROP])
		(void)!read(gate[0], &byte, 1);
	return spool_sys_real.renameat(olddir, old, newdir, name);
}

static void
link_up(void)
{
	sys = spool_sys_real;
	sys.openat = slow_openat;
	sys.renameat = slow_renameat;
	w.t.sp.sys = &sys;
	world_link(&w);
}

/* Until the threads have nothing to do but what is held. */
static void
settle(uint32_t left)
{
	world_run(&w);
	while (executor_under_way(w.t.executor) > left) {
		event_base_loop(w.t.base, EVLOOP_ONCE);
		world_run(&w);
	}
}

static void
start(void)
{
	cr_assert_eq(pipe2(gate, O_CLOEXEC), 0);
	held = 0;
	drops_are_held = false;
	w.threads = THREADS;
	world_start(&w, "scan_interval = 1h\n");
	link_up();
	settle(0);
}

static void
let_go(size_t n)
{
	for (; n > 0; n--)
		cr_assert_eq(write(gate[1], "", 1), 1);
}

static void
end(void)
{
	held = 0;
	close(gate[1]);
	world_end(&w);
	close(gate[0]);
}

TestSuite(disk, .init = start, .fini = end, .timeout = 60);

static uint64_t
mail(void)
{
	return world_file(&w, SPOOL_INCOMING, "d", 1);
}

/* A message whose examination waits for the disk. */
static uint64_t
hold_one(void)
{
	uint64_t inode = mail();

	held = inode;
	world_bell(&w, inode);
	world_credit(&w, 5);
	cr_assert_eq(w.t.examine.count, 1);
	return inode;
}

static void
be_patient(usec_t more)
{
	TAILQ_FIRST(&w.t.examine.list)->began_at += more;
}

/* One thread has both, until the first one takes too long.
 * mutation: todo-proc/control.c: works[] is without disk_work(). */
Test(disk, D42_others_go_on_beside_a_file_that_hangs)
{
	uint64_t slow = hold_one(), other = mail(), due = mail();

	be_patient(-EXAMINE_PATIENCE);
	world_bell(&w, other);
	settle(1);
	cr_assert_eq(w.nmessages, 1);
	cr_expect_eq(w.messages[0].inode, other);
	cr_assert_eq(
	    spool_move(&w.t.sp, SPOOL_INCOMING, SPOOL_DEFERRED, due), 0);
	world_prepare(&w, due);
	world_prepare(&w, 4711);
	settle(1);
	cr_assert_eq(w.nmessages, 2);
	cr_expect_eq(w.messages[1].inode, due);
	cr_expect_eq(w.ngone, 1);
	cr_expect_eq(world_where(&w, slow), SPOOL_INCOMING);
	let_go(1);
	settle(0);
	cr_assert_eq(w.nmessages, 3);
	cr_expect_eq(w.messages[2].inode, slow);
	cr_expect_eq(w.t.credit, 3);
}

/* mutation: todo-proc/examine.c: next_to_end() does not wait. */
Test(disk, D42_in_the_order_of_their_beginnings)
{
	uint64_t inode[4];
	size_t i;

	inode[0] = hold_one();
	be_patient(3600 * USEC_PER_SEC);
	for (i = 1; i < ARRAY_LEN(inode); i++) {
		inode[i] = mail();
		world_bell(&w, inode[i]);
	}
	settle(1);
	cr_expect_eq(w.nmessages, 0);
	let_go(1);
	settle(0);
	cr_assert_eq(w.nmessages, ARRAY_LEN(inode));
	for (i = 0; i < ARRAY_LEN(inode); i++)
		cr_expect_eq(w.messages[i].inode, inode[i], "%zu", i);
}

/* mutation: todo-proc/offer.c: begin_some() does not ask examine_is_full(). */
Test(disk, D42_a_bounded_number_is_under_way)
{
	const uint32_t n = 3 * EXAMINE_MAX;
	uint32_t i;

	held = UINT64_MAX;
	world_credit(&w, 64);
	for (i = 0; i < n; i++)
		world_bell(&w, mail());
	world_run(&w);
	cr_expect_eq(w.t.examine.count, EXAMINE_MAX);
	cr_expect_eq(w.t.credit, 64 - EXAMINE_MAX);
	held = 0;
	let_go(THREADS);
	while (w.nmessages < n)
		settle(0);
	cr_expect_eq(w.t.credit, 64 - n);
	cr_expect_eq(w.t.examine.count, 0);
}

/* mutation: todo-proc/offer.c: offer_next() does not ask examine_has(). */
Test(disk, D42_what_is_heard_of_or_found_again_is_offered_once)
{
	uint64_t slow = hold_one();

	world_bell(&w, slow);
	world_bell(&w, slow);
	world_run(&w);
	cr_expect_eq(w.t.examine.count, 1, "no second thread reads it");
	cr_expect_eq(w.t.inbox.nlater, 1);
	w.t.incoming.wanted = true;
	w.t.incoming.not_before = 0;
	settle(1);
	cr_expect_eq(w.t.inbox.nready + w.t.inbox.nfresh, 0);
	let_go(1);
	settle(0);
	held = 0;
	RB_ROOT(&w.t.inbox.later)->at = 0; /* its time has come */
	settle(0);
	cr_expect_eq(w.nmessages, 1);
	cr_expect_eq(w.t.counts.rings_stale, 1, "the others were tried again");
	cr_expect_eq(w.t.credit, 4);
}

/* mutation: todo-proc/offer.c: offer() takes no notice of the era. */
Test(disk, D42_a_new_queue_send_gets_nothing_of_the_old_one)
{
	uint64_t slow = hold_one();

	world_prepare(&w, 4711);
	settle(1);
	cr_assert_eq(w.ngone, 1);
	world_link(&w);
	settle(1);
	let_go(1);
	settle(0);
	held = 0;
	cr_expect_eq(w.nmessages, 0, "there is no credit");
	cr_expect_eq(w.t.credit, 0);
	world_credit(&w, 64);
	world_scan(&w);
	settle(0);
	cr_assert_eq(w.nmessages, 1);
	cr_expect_eq(w.messages[0].inode, slow);
	cr_expect_eq(w.t.credit, 63);
}

Test(disk, D42_D30_a_drop_that_hangs_holds_nothing_up)
{
	uint64_t drop = world_file(&w, SPOOL_MAILDROP, "d", 1), other;

	drops_are_held = true;
	world_credit(&w, 5);
	w.t.maildrop.wanted = true;
	w.t.maildrop.not_before = 0;
	world_run(&w);
	cr_assert_eq(executor_under_way(w.t.executor), 1);
	other = mail();
	world_bell(&w, other);
	settle(1);
	cr_expect_eq(w.nmessages, 1);
	cr_expect_eq(world_where(&w, drop), SPOOL_MAILDROP);
	let_go(1);
	settle(0);
	cr_expect_eq(world_where(&w, drop), SPOOL_INCOMING);
	settle(0);
	cr_assert_eq(w.nmessages, 2);
	cr_expect_eq(w.messages[1].inode, drop);
}

/* mutation: todo-proc/scan.c: gap_after() takes incoming_gap for both. */
Test(disk, D30_a_scan_that_took_long_keeps_no_later_drop_waiting)
{
	world_file(&w, SPOOL_MAILDROP, "d", 1);
	drops_are_held = true;
	w.t.maildrop.wanted = true;
	w.t.maildrop.not_before = 0;
	world_run(&w);
	cr_assert_eq(executor_under_way(w.t.executor), 1);
	w.t.maildrop.started_at -= 10 * USEC_PER_SEC;
	let_go(1);
	settle(0);
	cr_expect_gt(w.t.maildrop.not_before, 0);
	cr_expect_leq(w.t.maildrop.not_before, w.t.now + 100 * USEC_PER_MSEC);
}

/* mutation: todo-proc/inbox.c: inbox_hear() takes what has no room. */
Test(disk, D42_I5_rings_that_have_no_room_ask_for_a_scan)
{
	const uint32_t n = INBOX_HEARD_MAX + 192;
	uint32_t i;

	held = UINT64_MAX; /* of the scan */
	w.t.incoming.wanted = true;
	w.t.incoming.not_before = 0;
	for (i = 1; i <= n; i++)
		world_bell(&w, mail());
	cr_expect_eq(w.t.inbox.nheard, INBOX_HEARD_MAX);
	cr_expect_eq(w.t.counts.lost_rings, n - INBOX_HEARD_MAX);
	cr_expect(w.t.incoming.wanted);
	held = 0;
	world_bell(&w, mail());
	settle(0);
	cr_expect_eq(w.t.inbox.nheard, INBOX_HEARD_MAX, "there is no credit");
	for (i = 0; i < n + 1;) {
		world_credit(&w, 64 - w.t.credit);
		settle(0);
		i = w.nmessages;
	}
	cr_expect_eq(w.nmessages, n + 1);
	cr_expect_eq(w.t.inbox.nheard, 0);
}

/* mutation: todo-proc/control.c: leave_work() waits for all tasks. */
Test(disk, D42_P10_a_stop_waits_a_moment)
{
	struct daemon d = { .base = w.t.base };
	uint64_t slow = hold_one(), other = mail();

	w.t.d = &d;
	todo_leave(&w.t, 7);
	world_run(&w);
	cr_expect_not(d.exiting);
	world_bell(&w, other);
	world_run(&w);
	cr_expect_eq(w.t.examine.count, 1, "nothing begins");
	w.t.leave_at = 0;
	world_run(&w);
	cr_expect(d.exiting);
	cr_expect_eq(d.status, 7);
	let_go(1);
	cr_expect_eq(world_where(&w, slow), SPOOL_INCOMING);
}

Test(disk, D42_P10_a_stop_ends_with_the_last_task)
{
	struct daemon d = { .base = w.t.base };

	(void)hold_one();
	w.t.d = &d;
	todo_leave(&w.t, 0);
	w.t.leave_at += 3600 * USEC_PER_SEC;
	world_run(&w);
	cr_expect_not(d.exiting);
	let_go(1);
	settle(0);
	cr_expect(d.exiting);
	cr_expect_eq(w.nmessages, 1);
}

/* Two are read, the others wait for a thread. */
Test(disk, D42_D24_the_next_one_finds_what_was_under_way)
{
	uint32_t i;

	held = UINT64_MAX;
	world_credit(&w, 64);
	for (i = 0; i < 9; i++)
		world_bell(&w, mail());
	world_run(&w);
	cr_assert_eq(executor_under_way(w.t.executor), 9);
	held = 0;
	let_go(THREADS);
	world_again(&w);
	link_up();
	world_credit(&w, 64);
	world_scan(&w);
	while (w.nmessages < 9)
		settle(0);
	cr_expect_eq(w.nmessages, 9);
}

/* mutation: todo-proc/routing.c: routing_let_go() destroys at once. */
Test(disk, D42_C8_a_reload_leaves_the_routing_to_what_uses_it)
{
	const struct routing *old = SLIST_FIRST(&w.t.routings);
	struct routing *fresh;
	struct buf error = { 0 };

	(void)hold_one();
	cr_assert_eq(old->users, 2);
	cr_assert_eq(routing_read(&w.conf, &fresh, &error), 0);
	buf_done(&error);
	routing_put(&w.t.routings, fresh);
	cr_expect_eq(old->users, 1);
	cr_expect_neq(SLIST_FIRST(&w.t.routings), old);
	let_go(1);
	settle(0);
	cr_expect_eq(w.nmessages, 1);
	cr_expect_null(SLIST_NEXT(SLIST_FIRST(&w.t.routings), link));
}

/* ---- a reload ---- */

static _Atomic bool files_are_held, reader_came;

static int
read_slowly(const struct conf *fresh, void **ret_made, struct buf *ret_error)
{
	char byte;

	reader_came = true;
	if (files_are_held)
		(void)!read(gate[0], &byte, 1);
	return control_ops.read(fresh, ret_made, ret_error);
}

/* The files of a reload are on a disk that hangs.
 * mutation: common/daemon/reload.c: is_given_to_thread() says no. */
Test(disk, D42_mail_comes_while_a_reload_reads)
{
	const struct routing *old = SLIST_FIRST(&w.t.routings);
	struct daemon_ops ops = control_ops;
	struct daemon d = { .ops = &ops,
		.base = w.t.base,
		.state = &w.t,
		.conf = calloc(1, sizeof(*d.conf)) };
	struct buf error = { 0 };
	char path[128];

	ops.read = read_slowly;
	snprintf(path, sizeof(path), "%s/conf", w.dir);
	d.conf_path = path;
	cr_assert_eq(conf_load(path, d.conf, &error), 0);
	buf_done(&error);
	files_are_held = true;
	daemon_reload(&d);
	while (!reader_came)
		(void)usleep(1000);
	world_credit(&w, 5);
	world_bell(&w, mail());
	settle(0);
	cr_expect_eq(w.nmessages, 1);
	cr_expect_eq(SLIST_FIRST(&w.t.routings), old);
	files_are_held = false;
	let_go(1);
	while (d.reload.away)
		event_base_loop(w.t.base, EVLOOP_ONCE);
	cr_expect_neq(SLIST_FIRST(&w.t.routings), old);
	cr_expect_null(SLIST_NEXT(SLIST_FIRST(&w.t.routings), link));
	world_bell(&w, mail());
	settle(0);
	cr_expect_eq(w.nmessages, 2);
	w.t.conf = &w.conf;
	cr_assert(daemon_reload_done(&d));
	conf_free(&d.conf);
}
