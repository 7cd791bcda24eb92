/* The end of a queue: its mail goes to other queues, each message once. */
#include "queue-send/agents/own.h"
#include "tests/unit/queue-send/world.h"

#include "queue-send/message/path.h"
#include "spool/reason.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"

/* Queue 1 of the world, and others beside it. */
struct beside {
	struct world w;
	struct world there; /* only its spool is used: queue 2 */
};

static void
open_there(struct beside *b)
{
	cr_assert_eq(
	    spool_open(&b->there.s.sp, &spool_sys_real, b->w.dir, 2), 0);
}

static void
begin(struct beside *b)
{
	const struct spool_owner owner = { getuid(), getuid(), getgid(),
		getgid(), true };

	memset(b, 0, sizeof(*b));
	world_start(&b->w, "error_interval = 1h\n");
	cr_assert_eq(spool_create(b->w.dir, 2, 5, &owner), 0);
	cr_assert_eq(spool_create(b->w.dir, 3, 1, &owner), 0);
	open_there(b);
}

static void
finish(struct beside *b)
{
	spool_close(&b->there.s.sp);
	world_end(&b->w);
}

static void
tell(struct beside *b, enum msg_type type, const char *queues, size_t len)
{
	struct daemon d = { .state = &b->w.s };
	struct msg msg = { .type = type };

	if (type == MSG_HAND_OVER)
		msg.u.HAND_OVER.queues = (msg_blob){ queues, (uint32_t)len };
	cr_expect_eq(control_ops.told(&d, &msg), 0);
	world_run(&b->w);
}

static void
hand_over(struct beside *b)
{
	tell(b, MSG_HAND_OVER, "\2\0\0\0", 4);
}

static void
keep(struct beside *b)
{
	tell(b, MSG_HAND_OVER, NULL, 0);
}

static void
add_reason(struct world *w, enum spool_dir dir, uint64_t inode)
{
	const struct reason reason = { .dsn = "4.0.0",
		.relay = "none",
		.address = "r0@x",
		.text = "put by the test" };

	cr_assert_eq(reason_add(&w->s.sp, dir, inode, &reason), 0);
}

/* Put there before queue-send looks: it comes back as world_again(). */
static uint64_t
lay(struct beside *b, enum spool_dir dir)
{
	struct world *w = &b->w;
	uint64_t inode = world_file(w, "x", 2, 0);

	if (dir != SPOOL_INCOMING)
		cr_assert_eq(
		    spool_move(&w->s.sp, SPOOL_INCOMING, dir, inode), 0);
	if (dir == SPOOL_DEFERRED) {
		add_reason(w, SPOOL_DEFER, inode);
		cr_assert_eq(
		    spool_set_due(&w->s.sp, inode, clock_wall() + 1000000000),
		    0);
	}
	if (dir == SPOOL_HOLD)
		add_reason(w, SPOOL_BOUNCE, inode);
	return inode;
}

static uint32_t
all_of(const struct world *w)
{
	static const enum spool_dir dirs[] = { SPOOL_INCOMING, SPOOL_ACTIVE,
		SPOOL_DEFERRED, SPOOL_HOLD, SPOOL_CORRUPT, SPOOL_DEFER,
		SPOOL_BOUNCE };
	uint32_t n = 0;
	size_t i;

	for (i = 0; i < ARRAY_LEN(dirs); i++)
		n += world_count(w, dirs[i]);
	return n;
}

Test(evacuate, all_that_lies_there_goes_to_where_it_belongs)
{
	struct beside b = { 0 };
	uint64_t incoming, deferred, held;

	begin(&b);
	incoming = lay(&b, SPOOL_INCOMING);
	deferred = lay(&b, SPOOL_DEFERRED);
	held = lay(&b, SPOOL_HOLD);
	world_again(&b.w);
	cr_assert_eq(b.w.s.due.count, 1);
	hand_over(&b);
	cr_expect_eq(all_of(&b.w), 0, "nothing is left");
	cr_expect_eq(b.w.s.due.count, 0);
	cr_expect_eq(world_where(&b.there, incoming), SPOOL_INCOMING);
	cr_expect_eq(world_where(&b.there, deferred), SPOOL_DEFERRED);
	cr_expect_eq(world_where(&b.there, held), SPOOL_HOLD);
	cr_expect_str_eq(world_reason(&b.there, SPOOL_DEFER, deferred, 0),
	    "4.0.0 put by the test");
	cr_expect_str_eq(world_reason(&b.there, SPOOL_BOUNCE, held, 0),
	    "4.0.0 put by the test");
	finish(&b);
}

Test(evacuate, what_is_offered_or_waits_goes_what_runs_ends_first)
{
	struct beside b = { 0 };
	struct world *w = &b.w;
	struct world_delivery delivery, other;
	uint64_t running, offered, half;

	begin(&b);
	/* Two destinations: a delivery each, ended one after the other. */
	half = world_message(w, "x", 2);
	cr_assert(world_take(w, &delivery));
	cr_assert(world_take(w, &other));
	close(other.fd);
	running = world_message(w, "one@y.test", 1);
	w->s.dispatch_at = USEC_NEVER;
	offered = world_file(w, "z", 3, 0);
	world_offer(w, SPOOL_INCOMING, offered);
	hand_over(&b);
	cr_expect_eq(world_where(&b.there, offered), SPOOL_INCOMING);
	cr_expect_eq(world_where(w, half), SPOOL_ACTIVE, "is delivered");
	cr_expect_eq(world_where(w, running), SPOOL_ACTIVE, "is delivered");
	world_result(w, &delivery, 0, AGENT_SENT);
	world_done(w, &delivery);
	close(delivery.fd);
	world_result(w, &other, 0, AGENT_DEFERRED);
	world_done(w, &other);
	world_run(w);
	hand_over(&b);
	cr_expect_eq(world_where(&b.there, half), SPOOL_DEFERRED,
	    "its attempt is over, it has a due time");
	cr_expect_str_eq(world_marks(&b.there, SPOOL_DEFERRED, half), "D.");
	cr_assert(world_take(w, &delivery));
	close(delivery.fd);
	world_result(w, &delivery, 0, AGENT_SENT);
	world_done(w, &delivery);
	world_run(w);
	cr_expect_eq(world_where(w, running), SPOOL_NDIRS, "done: gone");
	cr_expect_eq(w->s.active, 0);
	cr_expect_eq(all_of(w), 0);
	finish(&b);
}

/* Fifty destinations, and room for a few deliveries: most wait. */
Test(evacuate, a_message_that_is_half_delivered_goes_when_nothing_of_it_runs)
{
	struct beside b = { 0 };
	struct world *w = &b.w;
	struct world_delivery delivery;
	uint64_t inode;
	const char *marks;

	begin(&b);
	world_reload(w, "default_process_limit = 2\n");
	inode = world_message(w, "x", 50);
	cr_assert(world_take(w, &delivery));
	hand_over(&b);
	cr_expect_eq(world_where(w, inode), SPOOL_ACTIVE);
	do {
		close(delivery.fd);
		world_result(w, &delivery, 0, AGENT_SENT);
		world_done(w, &delivery);
		world_run(w);
	} while (world_take(w, &delivery));
	hand_over(&b);
	cr_expect_eq(world_where(&b.there, inode), SPOOL_INCOMING);
	marks = world_marks(&b.there, SPOOL_INCOMING, inode);
	cr_expect_str_eq(marks + 2, strchr(marks, '.'), "two were under way");
	cr_expect_eq(all_of(w), 0);
	finish(&b);
}

Test(evacuate, nothing_is_offered_and_moved)
{
	struct beside b = { 0 };
	struct world *w = &b.w;
	uint64_t inode, gone = 4711;

	begin(&b);
	hand_over(&b);
	/* Crossed on the way: todo-proc still has credit. */
	inode = world_file(w, "x", 1, 0);
	world_offer(w, SPOOL_INCOMING, inode);
	world_send(w->todo,
	    &(struct msg){ .type = MSG_GONE,
		.u.GONE = { .inode = gone, .error = -ENOENT } });
	world_run(w);
	cr_expect_eq(w->s.messages.count[STATE_OFFERED_INCOMING], 0);
	cr_expect_not_null(w->s.links->todo, "its link is not closed");
	hand_over(&b);
	cr_expect_eq(world_where(&b.there, inode), SPOOL_INCOMING);
	cr_expect_eq(w->scans, 0);
	keep(&b);
	cr_expect_eq(w->scans, 1, "todo-proc looks again");
	cr_expect_eq(world_deliver(w, AGENT_SENT), 0);
	finish(&b);
}

Test(evacuate, the_end_of_it_everything_is_delivered_here)
{
	struct beside b = { 0 };
	struct world *w = &b.w;
	struct world_delivery delivery;
	uint64_t inode, later;

	begin(&b);
	world_reload(w, "default_process_limit = 1\nerror_interval = 1h\n");
	inode = world_message(w, "x", 3);
	later = lay(&b, SPOOL_DEFERRED);
	cr_assert(world_take(w, &delivery));
	world_fail(CALL_RENAME, ENOSPC, 0);
	hand_over(&b);
	world_fail(CALL_NONE, 0, 0);
	keep(&b);
	close(delivery.fd);
	world_result(w, &delivery, 0, AGENT_SENT);
	world_done(w, &delivery);
	world_run(w);
	cr_expect_eq(world_where(w, inode), SPOOL_INCOMING);
	cr_expect_eq(world_where(w, later), SPOOL_DEFERRED);
	cr_expect_not_null(due_find(&w->s.due, later), "found by the walk");
	world_offer(w, SPOOL_INCOMING, inode);
	world_run(w);
	cr_expect_eq(world_deliver(w, AGENT_SENT), 2, "what was left of it");
	cr_expect_eq(world_where(w, inode), SPOOL_NDIRS);
	finish(&b);
}

/* ---- what does not move ---- */

Test(evacuate, D2_D9_another_target_and_none)
{
	static const struct {
		const char *name;
		int error;
		bool runs; /* after all targets have said it */
	} rows[] = {
		{ "D2 full", ENOSPC, true },
		{ "D9 read-only", EROFS, true },
		{ "another file system", EXDEV, false },
		{ "P12 descriptors", EMFILE, true },
	};
	struct beside b = { 0 };
	uint64_t inode;
	size_t i;

	begin(&b);
	for (i = 0; i < ARRAY_LEN(rows); i++) {
		inode = world_file(&b.w, "x", 1, 0);
		world_fail(CALL_RENAME, rows[i].error, 1);
		tell(&b, MSG_HAND_OVER, "\2\0\0\0\3\0\0\0", 8);
		cr_expect_eq(world_where(&b.w, inode), SPOOL_NDIRS,
		    "%s: the other takes it", rows[i].name);
		keep(&b);
		inode = world_file(&b.w, "x", 1, 0);
		world_fail(CALL_RENAME, rows[i].error, 0);
		tell(&b, MSG_HAND_OVER, "\2\0\0\0\3\0\0\0", 8);
		cr_expect_eq(world_where(&b.w, inode), SPOOL_INCOMING, "%s",
		    rows[i].name);
		cr_expect_eq(send_is_evacuating(&b.w.s), rows[i].runs, "%s",
		    rows[i].name);
		world_fail(CALL_NONE, 0, 0);
		hand_over(&b);
		cr_expect_eq(world_where(&b.there, inode), SPOOL_INCOMING,
		    "%s: a new list, a new attempt", rows[i].name);
		keep(&b);
	}
	finish(&b);
}

Test(evacuate, targets_that_are_closed_missing_or_absurd)
{
	struct beside b = { 0 };
	uint64_t inode;

	begin(&b);
	inode = world_file(&b.w, "x", 1, 0);
	cr_assert_eq(spool_set_sealed(b.w.dir, 2, true), 0);
	/* 2 is closed, 9 is not there, 1 is itself, 0 and the last are none. */
	tell(&b, MSG_HAND_OVER,
	    "\2\0\0\0\x9\0\0\0\1\0\0\0\0\0\0\0\377\377\377\377", 20);
	cr_expect_eq(world_where(&b.w, inode), SPOOL_INCOMING);
	cr_expect_eq(world_count(&b.there, SPOOL_INCOMING), 0);
	tell(&b, MSG_HAND_OVER, "\2\0\0\0\3\0\0\0", 8);
	cr_expect_eq(world_where(&b.w, inode), SPOOL_NDIRS, "3 takes it");
	cr_expect_eq(world_count(&b.there, SPOOL_INCOMING), 0);
	cr_expect_eq(control_ops.told(&(struct daemon){ .state = &b.w.s },
			 &(struct msg){ .type = MSG_HAND_OVER,
			     .u.HAND_OVER.queues = { "\2\0\0", 3 } }),
	    -EBADMSG);
	finish(&b);
}

/* Of a long list the last one may be the only one that takes anything. */
Test(evacuate, as_many_targets_as_there_are_queues)
{
	char list[4 * PAGE_QUEUES_MAX] = "";
	struct beside b = { 0 };
	uint64_t inode;
	size_t i;

	begin(&b);
	inode = world_file(&b.w, "x", 1, 0);
	for (i = 0; i < PAGE_QUEUES_MAX; i++) {
		list[4 * i] = (char)(10 + i);
		list[4 * i + 1] = 1; /* 266 and more */
	}
	memcpy(list + sizeof(list) - 4, "\2\0\0\0", 4);
	tell(&b, MSG_HAND_OVER, list, sizeof(list));
	cr_expect_eq(world_where(&b.there, inode), SPOOL_INCOMING);
	finish(&b);
}

/* A file with a trouble of its own holds up no other. */
Test(evacuate, D17_D21_one_that_cannot_be_moved_stays_alone)
{
	struct beside b = { 0 };
	uint64_t first, second;
	char path[160];
	int fd;

	begin(&b);
	first = lay(&b, SPOOL_HOLD);
	second = lay(&b, SPOOL_HOLD);
	snprintf(path, sizeof(path), "%s/queue2/hold/%llu", b.w.dir,
	    (unsigned long long)first);
	fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	cr_assert_geq(fd, 0);
	close(fd);
	snprintf(path, sizeof(path), "%s/queue1/hold/core", b.w.dir);
	fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	cr_assert_geq(fd, 0);
	close(fd);
	hand_over(&b);
	cr_expect_eq(world_where(&b.w, first), SPOOL_HOLD);
	cr_expect_str_eq(world_reason(&b.w, SPOOL_BOUNCE, first, 0),
	    "4.0.0 put by the test");
	cr_expect_eq(world_where(&b.w, second), SPOOL_NDIRS);
	cr_expect_eq(access(path, F_OK), 0, "no file of ours");
	finish(&b);
}

Test(evacuate, what_is_not_settled_is_left_for_the_next_look)
{
	const struct accept_options options = { .dir = SPOOL_INCOMING };
	struct beside b = { 0 };
	struct queue_id id;
	struct accept a;

	begin(&b);
	cr_assert_eq(accept_begin(&a, &b.w.s.sp, &options, clock_wall(), 0), 0);
	cr_assert_eq(queue_file_add_content(&a.writer, "a\n", 2), 0);
	cr_assert_eq(queue_file_add_sender(&a.writer, "", 0), 0);
	cr_assert_eq(queue_file_add_rcpt(&a.writer, "a@b", 3), 0);
	cr_assert_eq(accept_commit(&a, &id), 0);
	hand_over(&b); /* its lock is still held */
	cr_expect_eq(world_where(&b.w, id.inode), SPOOL_INCOMING);
	accept_end(&a);
	hand_over(&b);
	cr_expect_eq(world_where(&b.there, id.inode), SPOOL_INCOMING);
	finish(&b);
}

/* ---- death ---- */

static const enum spool_dir laid[] = { SPOOL_INCOMING, SPOOL_DEFERRED,
	SPOOL_HOLD, SPOOL_ACTIVE };

static void
check_one(struct beside *b, uint64_t inode, enum spool_dir dir, unsigned nth)
{
	enum spool_dir here = world_where(&b->w, inode);
	enum spool_dir there = world_where(&b->there, inode);
	struct world *w = here == SPOOL_NDIRS ? &b->there : &b->w;
	enum spool_dir want = dir == SPOOL_ACTIVE ? SPOOL_INCOMING : dir;

	cr_assert_neq(here == SPOOL_NDIRS, there == SPOOL_NDIRS,
	    "call %u, %s: in one queue", nth, spool_dirs[dir].name);
	cr_expect_eq(here == SPOOL_NDIRS ? there : here, want, "call %u", nth);
	if (dir == SPOOL_DEFERRED)
		cr_expect_str_eq(world_reason(w, SPOOL_DEFER, inode, 0),
		    "4.0.0 put by the test", "call %u", nth);
	if (dir == SPOOL_HOLD)
		cr_expect_str_eq(world_reason(w, SPOOL_BOUNCE, inode, 0),
		    "4.0.0 put by the test", "call %u", nth);
}

/* Reasons of a message that has moved may have kept their name here. */
static void
end_there(const struct beside *b, uint64_t inode)
{
	(void)reason_clear(&b->there.s.sp, SPOOL_DEFER, inode);
	(void)reason_clear(&b->there.s.sp, SPOOL_BOUNCE, inode);
}

Test(evacuate, P1_D24_death_at_every_call_and_the_next_start)
{
	struct beside b = { 0 };
	uint64_t inodes[ARRAY_LEN(laid)];
	bool cut = true;
	unsigned nth;
	size_t i;

	for (nth = 1; cut && nth < 200; nth++) {
		begin(&b);
		for (i = 0; i + 1 < ARRAY_LEN(laid); i++)
			inodes[i] = lay(&b, laid[i]);
		world_again(&b.w);
		b.w.s.dispatch_at = USEC_NEVER;
		inodes[i] = world_message(&b.w, "x", 2);
		world_cut(nth);
		hand_over(&b);
		cut = world_was_cut();
		world_again(&b.w);
		for (i = 0; i < ARRAY_LEN(laid); i++)
			check_one(&b, inodes[i], laid[i], nth);
		hand_over(&b);
		for (i = 0; i < ARRAY_LEN(laid); i++)
			check_one(&b, inodes[i], laid[i], nth);
		cr_expect_eq(all_of(&b.there), 6, "call %u", nth);
		for (i = 0; i < ARRAY_LEN(laid); i++)
			end_there(&b, inodes[i]);
		hand_over(&b);
		cr_expect_eq(all_of(&b.w), 0, "call %u: nothing is left", nth);
		finish(&b);
	}
	cr_expect_gt(nth, 20u);
	cr_expect_not(cut);
}

/* ---- the queue that gets it ---- */

Test(evacuate, a_rescan_finds_what_came_and_passes_over_what_is_known)
{
	struct beside b = { 0 };
	struct world *w = &b.w;
	uint64_t known, came;

	begin(&b);
	known = lay(&b, SPOOL_DEFERRED);
	world_again(w);
	came = lay(&b, SPOOL_DEFERRED);
	lay(&b, SPOOL_HOLD);
	cr_assert_eq(w->s.due.count, 1);
	tell(&b, MSG_RESCAN, NULL, 0);
	cr_expect_eq(w->s.due.count, 2);
	cr_expect_not_null(due_find(&w->s.due, known));
	cr_expect_not_null(due_find(&w->s.due, came));
	cr_expect_eq(w->s.walks[WALK_HOLD].count, 1);
	cr_expect_eq(w->scans, 1);
	finish(&b);
}
