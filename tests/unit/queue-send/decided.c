/* Marks of acts that are decided while a message is in the active queue. */
#include "tests/unit/queue-send/world.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <unistd.h>

#include "queue-send/message/path.h"
#include "spool/reason.h"

static struct world w;
static uint32_t running;

static void
start(void)
{
	w = (struct world){ .threads[DISK_RECORD] = 1 };
	world_start(&w, "error_interval = 1h\n");
}

static void
end(void)
{
	world_end(&w);
}

TestSuite(decided, .init = start, .fini = end, .timeout = 60);

static int
decision(uint64_t inode)
{
	const struct queue_id id = world_id(&w, inode);

	return reason_marks(&w.s.sp, &id) & REASON_DECIDED;
}

/* mutation: queue-send/disk/act_run.c: a thread of acts writes the note.
 */
Test(decided, P23_no_record_removes_the_mark)
{
	const uint64_t inode = world_message(&w, "d", 2);
	struct message *m = messages_find(&w.s.messages, inode);
	struct world_delivery delivery[2];
	int i;

	for (i = 0; i < 2; i++)
		world_take_one(&w, &delivery[i]);
	/* No thread has it when the act comes. */
	results_add_reason(&w.s, m,
	    &(struct report){ .address = "r0@d0.test",
		.dsn = "5.1.1",
		.relay = "none",
		.text = "no" });
	cr_assert_eq(w.s.records, 1);
	cr_expect_eq(world_act(&w, ACT_DELETE, inode, &running), 0);
	cr_expect_eq(running, 3);
	cr_assert_eq(w.s.records, 0);
	cr_expect_eq(decision(inode), REASON_TO_DELETE);
	cr_expect_str_neq(world_reason(&w, SPOOL_BOUNCE, inode, 0), "");
	for (i = 0; i < 2; i++) {
		world_result(&w, &delivery[i], 0, AGENT_DEFERRED);
		world_done(&w, &delivery[i]);
	}
	world_run(&w);
	cr_expect_eq(world_where(&w, inode), SPOOL_DELETED);
}

/* mutation: queue-send/operators/acts.c: needs_mark() looks at deliveries
 * alone. */
Test(decided, P23_a_later_act_has_the_last_mark)
{
	struct message *m;
	struct queue_id id;
	uint64_t inode;

	close(w.agent);
	w.agent = -1;
	inode = world_message(&w, "d", 1);
	cr_assert_eq(world_where(&w, inode), SPOOL_ACTIVE);
	id = world_id(&w, inode);
	m = messages_find(&w.s.messages, inode);
	cr_assert_not_null(m);
	cr_assert_eq(reason_add_decision(&w.s.sp, &id, REASON_TO_DELETE, 1), 0);
	m->decided = m->bounce_begun = true;
	cr_expect_eq(world_act(&w, ACT_HOLD, inode, &running), 0);
	cr_expect_eq(running, 1, "no delivery, which qctl would wait for");
	world_run(&w);
	cr_expect_eq(world_where(&w, inode), SPOOL_HOLD);
	cr_expect_eq(decision(inode), REASON_TO_HOLD);
}

/* The note fails and the mark would not: the operator is told that nothing was
 * done.
 * mutation: queue-send/disk/act_task.c: act_task_note() marks behind a
 * note that failed. */
Test(decided, D6_P23_without_its_note_nothing_is_decided)
{
	const struct hold_note hold = { .uid = 7 };
	struct world_delivery delivery;
	struct queue_id id;
	uint64_t inode;

	inode = world_message(&w, "d", 1);
	id = world_id(&w, inode);
	world_take_one(&w, &delivery);
	world_fail(CALL_WRITE, ENOSPC, 1);
	cr_expect_eq(world_hold(&w, &id, &hold, &running), -ENOSPC);
	cr_expect_eq(reason_marks(&w.s.sp, &id), -ENOENT);
	world_result(&w, &delivery, 0, AGENT_DEFERRED);
	world_done(&w, &delivery);
	world_run(&w);
	cr_expect_eq(world_where(&w, inode), SPOOL_DEFERRED);
}
