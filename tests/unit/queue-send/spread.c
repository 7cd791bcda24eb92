/* Messages that wait go to another queue, each once. */
#include "queue-send/backlog/own.h"
#include "tests/unit/queue-send/world.h"

#include "queue-send/backlog/backlog.h"
#include "queue-send/operators/own.h"
#include "queue-send/agents/agents.h"
#include "spool/prepared.h"
#include "spool/reason.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/io.h"
#include "tests/unit/descriptors.h"

static struct world w, there; /* of `there' its spool is used: queue 2 */
static struct spread spread;

static void
start(void)
{
	const struct spool_owner owner = { getuid(), getuid(), getgid(),
		getgid(), true };

	memset(&w, 0, sizeof(w));
	memset(&there, 0, sizeof(there));
	memset(&spread, 0, sizeof(spread));
	world_start(&w, "minimal_backoff_time = 1h\n");
	cr_assert_eq(spool_create(w.dir, 2, 5, &owner), 0);
	cr_assert_eq(spool_create(w.dir, 3, 1, &owner), 0);
	cr_assert_eq(spool_open(&there.s.sp, &spool_sys_real, w.dir, 2), 0);
}

static void
end(void)
{
	spread_end(&w.s, &spread);
	spool_close(&there.s.sp);
	world_end(&w);
}

TestSuite(spread, .init = start, .fini = end, .timeout = 120);

static struct queue_id
id_of(uint64_t inode)
{
	const enum spool_dir dir = world_where(&w, inode);
	int fd = spool_open_file(&w.s.sp, dir, inode, O_RDONLY);
	struct queue_file file;

	cr_assert_geq(fd, 0);
	cr_assert_eq(queue_file_read(fd, &file), 0);
	io_close(&fd);
	return (struct queue_id){ file.arrival_wall, file.nonce, file.queue,
		inode };
}

static int
go(uint64_t inode, uint32_t to)
{
	const struct queue_id id = id_of(inode);
	int r;

	send_read_clocks(&w.s);
	r = world_spread(&w, &spread, &id, to);
	world_run(&w);
	return r;
}

static uint64_t
lay(enum spool_dir dir)
{
	uint64_t inode = world_file(&w, "x", 2, 0);

	if (dir != SPOOL_INCOMING)
		cr_assert_eq(
		    spool_move(&w.s.sp, SPOOL_INCOMING, dir, inode), 0);
	return inode;
}

/* A message that was tried, and waits with its reason. */
static uint64_t
deferred_message(void)
{
	uint64_t inode = world_message(&w, "d", 2);

	cr_assert_eq(world_deliver(&w, AGENT_DEFERRED), 2);
	cr_assert_eq(world_where(&w, inode), SPOOL_DEFERRED);
	return inode;
}

Test(spread, what_waits_goes_and_nothing_else)
{
	static const struct {
		enum spool_dir dir;
		int want;
	} rows[] = {
		{ SPOOL_INCOMING, 0 },
		{ SPOOL_DEFERRED, 0 },
		{ SPOOL_ACTIVE, -EAGAIN }, /* of no process: a stray */
		{ SPOOL_HOLD, -EINVAL },
		{ SPOOL_DELETED, -EINVAL },
	};
	size_t i;

	for (i = 0; i < ARRAY_LEN(rows); i++) {
		const uint64_t inode = lay(rows[i].dir);
		const bool goes = rows[i].want == 0;

		cr_expect_eq(go(inode, 2), rows[i].want, "%s",
		    spool_dirs[rows[i].dir].name);
		cr_expect_eq(world_where(&there, inode),
		    goes ? rows[i].dir : SPOOL_NDIRS, "%s",
		    spool_dirs[rows[i].dir].name);
	}
}

Test(spread, reasons_due_time_and_id_go_along)
{
	const uint64_t inode = deferred_message();
	const struct queue_id id = id_of(inode);
	enum spool_dir dir;
	int fd;

	cr_expect_eq(w.s.due.count, 1);
	cr_expect_eq(go(inode, 2), 0);
	cr_expect_eq(w.s.due.count, 0, "it is not known here any more");
	cr_expect_eq(world_count(&w, SPOOL_DEFER), 0);
	cr_expect_eq(world_count(&there, SPOOL_DEFER), 1);
	cr_expect_str_neq(world_reason(&there, SPOOL_DEFER, inode, 0), "");
	fd = act_find(&there.s.sp, SPOOL_DEFERRED, &id, &dir);
	cr_expect_geq(fd, 0, "its id stays");
	io_close(&fd);
	cr_expect_eq(spread.moved, 1);
	spread_end(&w.s, &spread);
	cr_expect_eq(spread.moved, 0);
	cr_expect_null(spread.to[0]);
}

Test(spread, never_out_of_the_active_queue)
{
	struct world_delivery delivery;
	const uint64_t inode = world_message(&w, "x", 1);

	cr_assert(world_take(&w, &delivery));
	cr_expect_eq(go(inode, 2), -EINVAL);
	cr_expect_eq(world_where(&w, inode), SPOOL_ACTIVE);
	world_result(&w, &delivery, 0, AGENT_SENT);
	world_done(&w, &delivery);
	close(delivery.fd);
	world_run(&w);
	cr_expect_eq(world_where(&w, inode), SPOOL_NDIRS, "delivered here");
	cr_expect_eq(world_where(&there, inode), SPOOL_NDIRS);
}

Test(spread, an_offer_is_forgotten)
{
	uint64_t inode;

	w.s.admission_blocked_until = USEC_NEVER; /* it is not its turn */
	inode = world_message(&w, "x", 1);
	if (world_where(&w, inode) != SPOOL_INCOMING)
		cr_skip_test("it is active at once");
	cr_expect_eq(go(inode, 2), 0);
	cr_expect_null(messages_find(&w.s.messages, inode));
	cr_expect_eq(world_where(&there, inode), SPOOL_INCOMING);
}

Test(spread, what_todo_proc_was_asked_for_waits_for_the_answer)
{
	const uint64_t inode = deferred_message();
	struct due *d = due_find(&w.s.due, inode);

	d->asked = 1;
	cr_expect_eq(go(inode, 2), -EAGAIN);
	d = due_find(&w.s.due, inode);
	d->asked = 0;
	d->deaths = 1;
	cr_expect_eq(go(inode, 2), -EINVAL, "agents died of it");
	d->deaths = 0;
	cr_expect_eq(go(inode, 2), 0);
}

Test(spread, D22_another_message_of_that_inode_stays)
{
	const uint64_t inode = lay(SPOOL_DEFERRED);
	struct queue_id id = id_of(inode);

	id.arrival_wall++;
	cr_expect_eq(world_spread(&w, &spread, &id, 2), -ENOENT);
	cr_expect_eq(world_where(&w, inode), SPOOL_DEFERRED);
}

/* The message that moves, and the answer that came while it did. */
static struct queue_id moving;
static int answer;

static int
ask_and_renameat(int olddir, const char *old, int newdir, const char *name)
{
	answer = world_spread(&w, &spread, &moving, 2);
	return spool_sys_real.renameat(olddir, old, newdir, name);
}

/* A file would leave active/ for no queue, and its place in the share of a
 * destination would never be free again.
 * mutation: queue-send/operators/spread.c: spread_message() asks for no move.
 */
Test(spread, D41_a_message_that_moves_goes_when_it_has_moved)
{
	const uint64_t inode = world_file(&w, "x", 1, 0);

	moving = id_of(inode);
	world_sys.renameat = ask_and_renameat;
	answer = 0;
	world_offer(&w, SPOOL_INCOMING, inode);
	world_run(&w);
	cr_expect_eq(answer, -EAGAIN, "on its way to active/");
	answer = 0;
	cr_expect_eq(world_deliver(&w, AGENT_DEFERRED), 1);
	world_run(&w);
	cr_expect_eq(answer, -EAGAIN, "on its way to deferred/");
	world_sys.renameat = spool_sys_real.renameat;
	cr_expect_eq(world_where(&w, inode), SPOOL_DEFERRED);
	cr_expect_eq(go(inode, 2), 0);
	cr_expect_eq(world_where(&there, inode), SPOOL_DEFERRED);
	cr_expect_null(w.s.share->names.rbh_root, "no share is held");
}

Test(spread, other_queues_that_cannot_take_it)
{
	const uint64_t inode = lay(SPOOL_DEFERRED);

	cr_expect_eq(go(inode, 0), -EINVAL);
	cr_expect_eq(go(inode, 1), -EINVAL, "itself");
	cr_expect_eq(go(inode, QUEUE_NUM_MAX + 1), -EINVAL);
	cr_expect_eq(go(inode, 9), -ESTALE, "not there");
	cr_assert_eq(spool_set_sealed(w.dir, 2, true), 0);
	cr_expect_eq(go(inode, 2), -ESHUTDOWN);
	cr_assert_eq(spool_set_sealed(w.dir, 2, false), 0);
	world_fail(CALL_RENAME, ENOSPC, 1);
	cr_expect_eq(go(inode, 2), -ENOSPC);
	cr_expect_eq(world_where(&w, inode), SPOOL_DEFERRED);
	w.s.health.read_only = true;
	cr_expect_eq(go(inode, 2), -EROFS);
	w.s.health.read_only = false;
	cr_expect_eq(go(inode, 3), 0);
	cr_expect_eq(world_where(&w, inode), SPOOL_NDIRS);
}

/* mutation: queue-send/operators/spread.c: place_of() does not look for one
 * that is open, or lend_queue() frees nothing. */
Test(spread, P12_queues_stay_open_but_not_many)
{
	const uint64_t inode = lay(SPOOL_DEFERRED), last = lay(SPOOL_DEFERRED);
	const unsigned before = unit_descriptors();
	unsigned open;
	uint32_t to;

	cr_expect_eq(go(lay(SPOOL_DEFERRED), 2), 0);
	cr_expect_eq(go(lay(SPOOL_DEFERRED), 3), 0);
	open = unit_descriptors();
	cr_expect_eq(go(lay(SPOOL_DEFERRED), 2), 0);
	cr_expect_eq(go(lay(SPOOL_DEFERRED), 3), 0);
	cr_expect_eq(unit_descriptors(), open, "both are open");
	for (to = 10; to < 10 + SPREAD_OPEN; to++)
		cr_expect_eq(go(inode, to), -ESTALE);
	cr_expect_eq(unit_descriptors(), before, "others took their places");
	cr_expect_eq(go(inode, 2), 0);
	cr_expect_eq(go(last, 3), 0);
	cr_expect_eq(unit_descriptors(), open);
	spread_end(&w.s, &spread);
	cr_expect_eq(unit_descriptors(), before);
}

static void
lose(const char *queue, unsigned split)
{
	char path[160];
	unsigned i;

	for (i = 0; i < split; i++) {
		snprintf(
		    path, sizeof(path), "%s/%s/deferred/%u", w.dir, queue, i);
		cr_assert_eq(rmdir(path), 0);
	}
}

/* mutation: queue-send/operators/spread.c: moved() tries nothing again;
 * queue-send/disk/other_queue.c: other_queue_used() keeps it in the table. */
Test(spread, D19_a_directory_that_was_replaced_is_opened_once_more)
{
	const struct spool_owner owner = { getuid(), getuid(), getgid(),
		getgid(), true };
	const uint64_t inode = lay(SPOOL_DEFERRED), other = lay(SPOOL_DEFERRED);
	char old[128], new[128];

	cr_assert_eq(go(lay(SPOOL_INCOMING), 2), 0);
	lose("queue2", 5);
	snprintf(old, sizeof(old), "%s/queue2", w.dir);
	snprintf(new, sizeof(new), "%s/replaced", w.dir);
	cr_assert_eq(rename(old, new), 0);
	cr_assert_eq(spool_create(w.dir, 2, 5, &owner), 0);
	spool_close(&there.s.sp);
	cr_assert_eq(spool_open(&there.s.sp, &spool_sys_real, w.dir, 2), 0);
	cr_expect_eq(go(inode, 2), 0);
	cr_expect_eq(world_where(&there, inode), SPOOL_DEFERRED);
	lose("queue3", 1);
	cr_expect_eq(go(other, 3), -ESTALE, "and not again and again");
	cr_expect_eq(world_where(&w, other), SPOOL_DEFERRED);
}

Test(spread, what_is_being_expanded_stays)
{
	const uint64_t inode = lay(SPOOL_INCOMING);
	int fd = spool_open_file(&w.s.sp, SPOOL_INCOMING, inode, O_RDONLY);

	cr_assert_geq(fd, 0);
	cr_assert_eq(prepared_lock(fd), 0);
	cr_expect_eq(go(inode, 2), -EAGAIN);
	/* One who has begun to read it may expand it next. */
	cr_assert_eq(flock(fd, LOCK_SH), 0);
	cr_expect_eq(go(inode, 2), -EAGAIN);
	cr_expect_eq(world_where(&w, inode), SPOOL_INCOMING);
	io_close(&fd);
	cr_expect_eq(go(inode, 2), 0);
}

/* ---- the frames ---- */

static int
connect_to(void)
{
	int fd = world_operator(&w);

	world_run(&w);
	return fd;
}

/* The error of the answer. */
static int
ask(int fd, const struct msg *msg)
{
	static struct chan_frame frame; /* large */

	cr_assert_eq(chan_send(fd, msg, -1), 0);
	world_run(&w);
	cr_assert_eq(chan_recv(fd, &frame), 1);
	cr_assert_eq(frame.msg.type, MSG_ACTED);
	cr_assert_eq(frame.msg.u.ACTED.serial, 7);
	return frame.msg.u.ACTED.error;
}

static int
ask_to(int fd, uint64_t inode, uint32_t to)
{
	const struct queue_id id = id_of(inode);
	const struct msg msg = { .type = MSG_ACT_TO,
		.u.ACT_TO = {
		    7, id.arrival_wall, id.nonce, id.queue, inode, to } };

	return ask(fd, &msg);
}

Test(spread, A1_only_its_own_frame_moves_a_message)
{
	const uint64_t inode = lay(SPOOL_DEFERRED);
	const struct queue_id id = id_of(inode);
	const struct msg act = { .type = MSG_ACT,
		.u.ACT = { 7, ACT_SPREAD, id.arrival_wall, id.nonce, id.queue,
		    inode } };
	const struct msg nothing = { .type = MSG_ACT_TO,
		.u.ACT_TO = { .serial = 7, .to = 2 } };
	struct operator* o;
	int fd;

	operators_init(&w.s);
	fd = connect_to();
	cr_expect_eq(ask(fd, &act), -EINVAL, "it names no queue");
	cr_expect_eq(ask(fd, &nothing), -EINVAL, "it names no message");
	cr_expect_eq(ask_to(fd, inode, 1), -EINVAL);
	cr_expect_eq(world_where(&w, inode), SPOOL_DEFERRED);
	cr_expect_eq(ask_to(fd, inode, 2), 0);
	cr_expect_eq(world_where(&there, inode), SPOOL_DEFERRED);
	o = TAILQ_FIRST(&w.s.operators->list);
	cr_assert_not_null(o);
	cr_expect_eq(o->spread.moved, 1);
	cr_expect_eq(o->done, 1);
	cr_expect_eq(o->refused, 3);
	close(fd);
	world_run(&w);
	cr_expect_eq(w.s.operators->count, 0);
	operators_done(&w.s);
}

Test(spread, a_queue_that_got_files_looks_for_them)
{
	const struct msg came = { .type = MSG_ACT_CAME,
		.u.ACT_CAME.serial = 7 };
	uint64_t inode;
	int fd;

	operators_init(&w.s);
	fd = connect_to();
	inode = lay(SPOOL_DEFERRED);
	cr_expect_null(due_find(&w.s.due, inode));
	cr_expect_eq(ask(fd, &came), 0);
	world_run(&w);
	cr_expect_not_null(due_find(&w.s.due, inode));
	cr_expect_eq(w.scans, 1);
	close(fd);
	operators_done(&w.s);
}

/* ---- death ---- */

static void
check_one(uint64_t inode, enum spool_dir dir, unsigned nth)
{
	const enum spool_dir here = world_where(&w, inode);
	const enum spool_dir other = world_where(&there, inode);
	struct world *at = here == SPOOL_NDIRS ? &there : &w;

	cr_assert_neq(here == SPOOL_NDIRS, other == SPOOL_NDIRS,
	    "call %u, %s: in one queue", nth, spool_dirs[dir].name);
	cr_expect_eq(here == SPOOL_NDIRS ? other : here, dir, "call %u", nth);
	if (dir == SPOOL_DEFERRED)
		cr_expect_str_neq(world_reason(at, SPOOL_DEFER, inode, 0), "",
		    "call %u: with its reason", nth);
}

Test(spread, P1_D24_death_at_every_call_and_the_next_start)
{
	bool cut = true;
	unsigned nth;

	end();
	for (nth = 1; cut && nth < 200; nth++) {
		uint64_t incoming, deferred;

		start();
		incoming = lay(SPOOL_INCOMING);
		deferred = deferred_message();
		world_cut(nth);
		(void)go(incoming, 2);
		(void)go(deferred, 2);
		cut = world_was_cut();
		spread_end(&w.s, &spread);
		world_again(&w);
		w.s.dispatch_at = USEC_NEVER;
		check_one(incoming, SPOOL_INCOMING, nth);
		check_one(deferred, SPOOL_DEFERRED, nth);
		/* The same command again. */
		if (world_where(&w, incoming) != SPOOL_NDIRS)
			cr_expect_eq(go(incoming, 2), 0, "call %u", nth);
		if (world_where(&w, deferred) != SPOOL_NDIRS)
			cr_expect_eq(go(deferred, 2), 0, "call %u", nth);
		check_one(incoming, SPOOL_INCOMING, nth);
		check_one(deferred, SPOOL_DEFERRED, nth);
		cr_expect_eq(world_count(&there, SPOOL_DEFER), 1);
		end();
	}
	cr_expect_gt(nth, 5u);
	cr_expect_not(cut);
	start();
}
