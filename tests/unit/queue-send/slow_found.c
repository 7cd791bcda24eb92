/* Files that a walk finds to be moved or removed, while the disk is slow. */
#include "queue-send/agents/own.h"
#include "tests/unit/queue-send/slow.h"

#include "queue-send/backlog/backlog.h"
#include "queue-send/operators/operators.h"
#include "queue-send/message/path.h"
#include "spool/reason.h"

#include <criterion/criterion.h>
#include <dirent.h>
#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/io.h"

static void
add_reason(uint64_t inode)
{
	const struct reason reason = { .dsn = "5.1.1",
		.relay = "none",
		.address = "r0@x",
		.text = "put by the test" };

	cr_assert_eq(reason_add(&slow_w.s.sp, SPOOL_BOUNCE, inode, &reason), 0);
}

static uint64_t
lay_stray(void)
{
	return slow_lay(SPOOL_ACTIVE);
}

static uint64_t
lay_deleted(void)
{
	const uint64_t inode = slow_lay(SPOOL_DELETED);

	cr_assert_eq(spool_set_due(&slow_w.s.sp, inode, 1), 0);
	return inode;
}

static uint64_t
lay_held(void)
{
	const uint64_t inode = slow_lay(SPOOL_HOLD);
	const struct queue_id id = world_id(&slow_w, inode);
	const struct hold_note note = { .until_wall = USEC_PER_SEC };
	struct hold_note_before before;

	cr_assert_eq(hold_note_write(&slow_w.s.sp, &id, &note, &before), 0);
	return inode;
}

static uint64_t
lay_reasons(void)
{
	const uint64_t inode = slow_lay(SPOOL_DELETED);

	add_reason(inode);
	cr_assert_eq(spool_remove(&slow_w.s.sp, SPOOL_DELETED, inode), 0);
	return inode;
}

static const struct {
	const char *name;
	enum walk_kind kind;
	uint64_t (*lay)(void);
	enum spool_dir from, to;
} rows[] = {
	{ "stray", WALK_ACTIVE, lay_stray, SPOOL_ACTIVE, SPOOL_INCOMING },
	{ "deleted", WALK_DELETED, lay_deleted, SPOOL_DELETED, SPOOL_NDIRS },
	{ "held", WALK_HOLD, lay_held, SPOOL_HOLD, SPOOL_DEFERRED },
	{ "reasons", WALK_BOUNCE, lay_reasons, SPOOL_NDIRS, SPOOL_NDIRS },
};

static void
walk(enum walk_kind kind)
{
	slow_removes = true;
	slow_close();
	slow_came = 0;
	slow_w.s.walks[kind].wanted = true;
	send_wake(&slow_w.s);
	slow_await(1);
}

static void
go_on(void)
{
	slow_open(1);
	while (slow_w.s.acts.count > 0)
		event_base_loop(slow_w.s.base, EVLOOP_ONCE);
	world_run(&slow_w);
}

/* mutation: queue-send/disk/act_run.c: act_run() leaves nothing to a
 * thread; queue-send/backlog/deferred.c: step() waits for no act. */
Test(slow, D43_deliveries_go_on_while_a_find_waits_for_the_disk)
{
	struct world_delivery delivery;
	uint64_t inode, other;
	size_t i;

	/* The thread for marks would wait at the gate when that takes long. */
	slow_w.threads[DISK_RECORD] = 0;
	for (i = 0; i < ARRAY_LEN(rows); i++) {
		slow_use_act_threads(1);
		/* An inode number that a row gives back is not its own. */
		other = world_message(&slow_w, "e", 1);
		world_take_one(&slow_w, &delivery);
		inode = rows[i].lay();
		walk(rows[i].kind);
		slow_end(&delivery, AGENT_SENT);
		cr_expect_eq(slow_w.s.counters.delivered, 1, "%s: %llu",
		    rows[i].name, (unsigned long long)other);
		cr_expect_eq(world_where(&slow_w, inode), rows[i].from, "%s",
		    rows[i].name);
		cr_expect(slow_w.s.walks[rows[i].kind].running,
		    "%s: the walk ends behind its finds", rows[i].name);
		go_on();
		cr_expect_eq(world_where(&slow_w, inode), rows[i].to, "%s",
		    rows[i].name);
		cr_expect_not(slow_w.s.walks[rows[i].kind].running);
		cr_expect_eq(
		    slow_w.s.walks[WALK_HOLD].count, 0, "%s", rows[i].name);
		if (rows[i].kind == WALK_BOUNCE)
			cr_expect_eq(world_count(&slow_w, SPOOL_BOUNCE), 0);
		(void)world_clear_incoming(&slow_w, &inode);
	}
}

/* Another queue gives a message to this one, with its reasons, which have the
 * names of those that a thread removes.
 * mutation: common/spool/reason.c: clear_seen() looks at nothing. */
Test(slow, D22_reasons_that_come_while_lost_ones_of_that_name_go)
{
	static const enum spool_dir dirs[] = { SPOOL_DEFER, SPOOL_BOUNCE };
	const struct reason own = { .dsn = "4.1.1",
		.relay = "none",
		.address = "r0@x0.test",
		.text = "of the message" };
	struct spool two;
	uint64_t inode;
	size_t i;

	slow_use_act_threads(1);
	cr_assert_eq(spool_open(&two, &spool_sys_real, slow_w.dir, 2), 0);
	inode = slow_lay(SPOOL_DEFERRED);
	cr_assert_eq(
	    spool_hand_over(&slow_w.s.sp, &two, SPOOL_DEFERRED, inode), 0);
	for (i = 0; i < ARRAY_LEN(dirs); i++)
		cr_assert_eq(reason_add(&two, dirs[i], inode, &own), 0);
	cr_assert_eq(spool_set_due(&two, inode, USEC_PER_SEC), 0);
	add_reason(inode);
	cr_assert_eq(reason_add(&slow_w.s.sp, SPOOL_DEFER, inode, &own), 0);
	walk(WALK_BOUNCE);
	cr_assert_eq(
	    spool_hand_over(&two, &slow_w.s.sp, SPOOL_DEFERRED, inode), 0);
	go_on();
	cr_expect_eq(world_where(&slow_w, inode), SPOOL_DEFERRED);
	for (i = 0; i < ARRAY_LEN(dirs); i++)
		cr_expect_str_eq(world_reason(&slow_w, dirs[i], inode, 0),
		    "4.1.1 of the message", "%s", spool_dirs[dirs[i]].name);
	spool_close(&two);
}

/* mutation: queue-send/walks/walks.c: brought_back() wants no scan. */
Test(slow, D43_D22_an_offer_of_a_stray_that_comes_back)
{
	uint64_t inode;

	slow_use_act_threads(1);
	inode = lay_stray();
	walk(WALK_ACTIVE);
	cr_assert_eq(
	    spool_move(&slow_w.s.sp, SPOOL_ACTIVE, SPOOL_INCOMING, inode), 0);
	world_offer(&slow_w, SPOOL_INCOMING, inode);
	world_run(&slow_w);
	cr_expect_null(messages_find(&slow_w.s.messages, inode));
	slow_w.scans = 0;
	slow_w.s.links->scan_at = 0;
	go_on();
	cr_expect_eq(slow_w.scans, 1, "passed over, and asked for again");
	(void)world_clear_incoming(&slow_w, &inode);
}

/* A message leaves for deferred/, and is asked for, behind the walk's look.
 * mutation: queue-send/agents/offers.c: offers_on_message() leaves it asked
 * for.
 */
Test(slow, D43_an_offer_of_a_deferred_message_that_a_find_meets)
{
	struct due_queue *q = &slow_w.s.due;
	uint64_t inode;

	slow_use_act_threads(1);
	inode = lay_stray();
	walk(WALK_ACTIVE);
	cr_assert_eq(
	    spool_move(&slow_w.s.sp, SPOOL_ACTIVE, SPOOL_DEFERRED, inode), 0);
	cr_assert_not_null(due_put(q, inode, 0));
	cr_assert_not_null(due_ask(q, slow_w.s.now));
	world_offer(&slow_w, SPOOL_DEFERRED, inode);
	world_run(&slow_w);
	cr_expect_null(messages_find(&slow_w.s.messages, inode));
	cr_expect_not_null(due_find(q, inode));
	cr_expect_eq(q->asked, 0, "asked for again");
	go_on();
}

/* The move of what it finds fails. */
static void
walk_that_fails(enum walk_kind kind)
{
	walk(kind);
	world_fail(CALL_RENAME, EIO, 1);
	go_on();
}

/* mutation: queue-send/walks/walks.c: end_day() removes what cannot be
 * removed, or tells nothing;
 * queue-send/walks/walks.c: released() tries nothing again. */
Test(slow, D43_D6_finds_that_fail_stay_and_are_tried_again)
{
	uint64_t inode;

	slow_use_act_threads(1);
	inode = lay_held();
	slow_w.s.hold_until = 0;
	walk_that_fails(WALK_HOLD);
	cr_expect_eq(world_where(&slow_w, inode), SPOOL_HOLD);
	cr_expect_gt(slow_w.s.hold_until, slow_w.s.now_wall);
	cr_expect_eq(slow_w.s.walks[WALK_HOLD].count, 1);
	/* The next walk would find it, too, in front or behind. */
	cr_assert_eq(spool_remove(&slow_w.s.sp, SPOOL_HOLD, inode), 0);
	inode = lay_stray();
	slow_w.s.stray_at = USEC_NEVER;
	walk_that_fails(WALK_ACTIVE);
	cr_expect_eq(world_where(&slow_w, inode), SPOOL_ACTIVE);
	cr_expect_neq(slow_w.s.stray_at, USEC_NEVER);
}

/* mutation: queue-send/walks/walks.c: found_active() notes nothing. */
Test(slow, D43_D22_a_stray_that_an_act_is_on_is_looked_for_again)
{
	uint64_t inode;

	slow_use_act_threads(1);
	inode = lay_stray();
	slow_cold = true; /* so that it waits with its open */
	slow_act_waits(ACT_DELETE, inode);
	slow_w.s.stray_at = USEC_NEVER;
	slow_w.s.walks[WALK_ACTIVE].wanted = true;
	send_wake(&slow_w.s);
	world_run(&slow_w);
	cr_expect_not(slow_w.s.walks[WALK_ACTIVE].wanted);
	cr_expect_eq(world_where(&slow_w, inode), SPOOL_ACTIVE);
	cr_expect_leq(slow_w.s.stray_at, slow_w.s.now + 10 * USEC_PER_SEC);
	go_on();
	cr_expect_eq(world_where(&slow_w, inode), SPOOL_ACTIVE);
}

/* Is a file of deleted/ open that has no name any more? */
static bool
deleted_is_open(void)
{
	char link[300], name[300];
	struct dirent *e;
	bool is = false;
	DIR *dir = opendir("/proc/self/fd");
	ssize_t n;

	cr_assert_not_null(dir);
	while ((e = readdir(dir)) != NULL) {
		snprintf(link, sizeof(link), "/proc/self/fd/%s", e->d_name);
		n = readlink(link, name, sizeof(name) - 1);
		name[n < 0 ? 0 : n] = '\0';
		is |= strstr(name, "/deleted/") != NULL &&
		    strstr(name, " (deleted)") != NULL;
	}
	closedir(dir);
	return is;
}

/* mutation: queue-send/walks/walks.c: remove_deleted() closes it at once. */
Test(slow, D43_D22_the_inode_of_what_is_removed_is_not_free_before_its_reasons)
{
	uint64_t inode;
	int came;

	slow_use_act_threads(1);
	inode = lay_deleted();
	add_reason(inode);
	walk(WALK_DELETED);
	for (came = 2; came <= 3; came++) {
		cr_expect_not(deleted_is_open());
		cr_assert_eq(write(slow_gate[1], "", 1), 1);
		slow_await(came);
	}
	cr_expect_eq(world_where(&slow_w, inode), SPOOL_NDIRS);
	cr_expect_eq(world_count(&slow_w, SPOOL_DEFER), 1);
	cr_expect(deleted_is_open());
	go_on();
	cr_expect_eq(world_count(&slow_w, SPOOL_DEFER), 0);
	cr_expect_not(deleted_is_open());
}

static void
make_old(uint64_t inode)
{
	const struct timespec times[2] = { { .tv_sec = 1 }, { .tv_sec = 1 } };
	char leaf[SPOOL_PATH_MAX];

	spool_leaf(&slow_w.s.sp, SPOOL_DEFERRED, inode, leaf, sizeof(leaf));
	cr_assert_eq(
	    utimensat(slow_w.s.sp.dir[SPOOL_DEFERRED], leaf, times, 0), 0);
}

/* A message of deferred/ that was asked for, and this answer of todo-proc. */
static void
answer(uint64_t inode, int error)
{
	deferred_flush(&slow_w.s);
	send_wake(&slow_w.s);
	world_run(&slow_w);
	slow_removes = true;
	slow_close();
	slow_came = 0;
	world_send(slow_w.todo,
	    &(struct msg){ .type = MSG_GONE,
		.u.GONE = { .inode = inode, .error = error } });
	slow_await(1);
}

/* todo-proc has none of those that it is asked for; how many these were. */
static size_t
answer_all(const uint64_t *inodes, size_t n, int error)
{
	const struct due *d;
	size_t i, answered = 0;

	for (i = 0; i < n; i++) {
		d = due_find(&slow_w.s.due, inodes[i]);
		if (d == NULL || !d->asked)
			continue;
		world_send(slow_w.todo,
		    &(struct msg){ .type = MSG_GONE,
			.u.GONE = { .inode = inodes[i], .error = error } });
		world_run(&slow_w);
		answered++;
	}
	return answered;
}

/* mutation: queue-send/walks/walks.c: found_gone(), found_unreadable() begin
 * as many as come. */
Test(slow, D43_D18_what_cannot_be_had_leaves_places_for_operators)
{
	enum {
		N = ACTS_OWN_MAX + 20
	};
	static const int errors[] = { -EIO, -ENOENT };
	static uint64_t inodes[N];
	uint64_t others[ARRAY_LEN(errors)];
	size_t i, k;

	slow_use_act_threads(1);
	slow_w.s.expire_after = 0;
	for (i = 0; i < N; i++)
		inodes[i] = slow_lay(SPOOL_DEFERRED);
	for (k = 0; k < ARRAY_LEN(errors); k++) /* never asked for */
		others[k] = slow_lay(SPOOL_HOLD);
	for (k = 0; k < ARRAY_LEN(errors); k++) {
		deferred_flush(&slow_w.s);
		send_wake(&slow_w.s);
		world_run(&slow_w);
		for (i = 0; k > 0 && i < N; i++)
			cr_assert_eq(spool_remove(&slow_w.s.sp, SPOOL_DEFERRED,
					 inodes[i]),
			    0);
		slow_act_waits(ACT_DELETE, others[k]);
		while (answer_all(inodes, N, errors[k]) > 0)
			;
		cr_expect_eq(slow_w.s.acts.own, ACTS_OWN_MAX, "%zu", k);
		slow_open(1);
		while (slow_w.s.acts.count > 0)
			event_base_loop(slow_w.s.base, EVLOOP_ONCE);
	}
	cr_expect_eq(slow_w.s.due.count, 0);
}

/* mutation: queue-send/walks/walks.c: found_gone() removes the reasons;
 * age_is_known() looks at no age. */
Test(slow, D43_D18_deliveries_go_on_while_what_cannot_be_had_is_dealt_with)
{
	struct world_delivery delivery;
	uint64_t gone, old;

	slow_w.threads[DISK_RECORD] = 0;
	slow_use_act_threads(1);
	gone = world_message(&slow_w, "d", 1);
	cr_assert_eq(world_deliver(&slow_w, AGENT_DEFERRED), 1);
	world_message(&slow_w, "e", 1);
	world_take_one(&slow_w, &delivery);
	cr_assert_eq(spool_remove(&slow_w.s.sp, SPOOL_DEFERRED, gone), 0);
	answer(gone, -ENOENT);
	slow_end(&delivery, AGENT_SENT);
	cr_expect_eq(slow_w.s.counters.delivered, 1);
	cr_expect_eq(world_count(&slow_w, SPOOL_DEFER), 1);
	go_on();
	cr_expect_eq(world_count(&slow_w, SPOOL_DEFER), 0);
	cr_expect_eq(slow_w.s.due.count, 0);

	slow_removes = false;
	old = world_message(&slow_w, "d", 1);
	cr_assert_eq(world_deliver(&slow_w, AGENT_DEFERRED), 1);
	slow_w.s.expire_after = 0;
	make_old(old);
	answer(old, -EIO);
	world_run(&slow_w);
	cr_expect_eq(world_where(&slow_w, old), SPOOL_DEFERRED);
	go_on();
	cr_expect_eq(world_where(&slow_w, old), SPOOL_CORRUPT);
	cr_expect_eq(slow_w.s.due.count, 0);
}
