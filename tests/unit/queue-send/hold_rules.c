/* Rules that hold mail before its first attempt. */
#include "queue-send/rules/own.h"
#include "tests/unit/queue-send/world.h"

#include "queue-send/operators/operators.h"
#include "queue-send/rules/rules.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

static struct world w;

static void
start(void)
{
	char path[128];

	world_start(&w,
	    "minimal_backoff_time = 1h\nmaximal_backoff_time = 1h\n"
	    "error_interval = 1h\n");
	snprintf(path, sizeof(path), "%s/" SPOOL_RULES, w.dir);
	cr_assert_eq(mkdir(path, 0700), 0);
}

static void
end(void)
{
	world_end(&w);
}

TestSuite(hold_rules, .init = start, .fini = end, .timeout = 60);

static int answered;
static uint32_t answered_number;

static void
answer(struct send *s UNUSED, const struct rules_asker *by UNUSED, int error,
    uint32_t number)
{
	answered = error;
	answered_number = number;
}

static const struct rules_asker me = { .answer = answer, .uid = 7 };

/* 1: no answer. */
static int
ask_rule(const struct msg_RULE_ADD *add)
{
	answered = 1;
	send_read_clocks(&w.s);
	rules_add(&w.s, &me, add);
	return answered;
}

static struct msg_RULE_ADD
about(const char *sender)
{
	return (struct msg_RULE_ADD){ .sender = MSG_S(sender),
		.recipient = MSG_S(""),
		.domain = MSG_S(""),
		.destination = MSG_S(""),
		.reason = MSG_S("a\ttest") };
}

/* A rule about all mail of these senders, read. */
static uint32_t
rule(const char *sender)
{
	const struct msg_RULE_ADD add = about(sender);

	cr_assert_eq(ask_rule(&add), 0);
	return answered_number;
}

/* mutation: route_one() does not look at rules. */
Test(hold_rules, mail_to_come_is_held_with_a_note)
{
	uint32_t number = rule("*");
	uint64_t inode = world_message(&w, "d", 3);
	const struct queue_id id = world_id(&w, inode);
	struct world_delivery first;
	struct hold_note note;

	world_run(&w);
	cr_expect_eq(world_where(&w, inode), SPOOL_HOLD);
	cr_expect(!world_take(&w, &first), "no attempt");
	cr_assert_eq(hold_note_read(&w.s.sp, &id, &note), 0);
	cr_expect_eq(note.rule, number);
	cr_expect_eq(note.uid, 7);
	cr_expect_str_eq(note.reason, "a?test");
}

Test(hold_rules, other_mail_goes)
{
	uint64_t inode;

	rule("nobody@nowhere");
	inode = world_message(&w, "d", 1);
	cr_expect_eq(world_deliver(&w, AGENT_DEFERRED), 1);
	cr_expect_eq(world_where(&w, inode), SPOOL_DEFERRED);
}

/* mutation: is_ruled() does not look at m->released. */
Test(hold_rules, what_was_released_is_not_held_again)
{
	uint64_t inode;
	uint32_t running;
	struct queue_id id;

	rule("*");
	inode = world_message(&w, "d", 1);
	id = world_id(&w, inode);
	world_run(&w);
	cr_assert_eq(world_where(&w, inode), SPOOL_HOLD);
	cr_assert_eq(world_do(&w, ACT_RELEASE, &id, 0, &running), 0);
	world_offer_again(&w, inode);
	cr_expect_eq(world_deliver(&w, AGENT_DEFERRED), 1);
	cr_expect_eq(world_where(&w, inode), SPOOL_DEFERRED);
	world_offer_again(&w, inode);
	cr_expect_eq(world_deliver(&w, AGENT_DEFERRED), 1, "for ever");
	cr_expect_eq(world_where(&w, inode), SPOOL_DEFERRED);
	world_again(&w);
	world_offer_again(&w, inode);
	cr_expect_eq(world_deliver(&w, AGENT_DEFERRED), 1, "over a crash");
	cr_expect_eq(world_where(&w, inode), SPOOL_DEFERRED);
}

/* mutation: rules_release() marks when there is a rule alone of its own. */
Test(hold_rules, what_an_operator_held_and_released_is_not_held_by_a_rule)
{
	uint64_t inode = world_file(&w, "d", 1, 0);
	const struct queue_id id = world_id(&w, inode);
	uint32_t running;

	cr_assert_eq(world_do(&w, ACT_HOLD, &id, 0, &running), 0);
	rule("*");
	cr_assert_eq(world_do(&w, ACT_RELEASE, &id, 0, &running), 0);
	world_offer_again(&w, inode);
	cr_expect_eq(world_deliver(&w, AGENT_DEFERRED), 1);
	cr_expect_eq(world_where(&w, inode), SPOOL_DEFERRED);
}

/* A hold that ends by itself is no release by an operator. */
Test(hold_rules, another_rule_holds_what_a_hold_of_an_hour_leaves)
{
	uint64_t inode = world_file(&w, "d", 1, 0);
	const struct queue_id id = world_id(&w, inode);
	const struct hold_note note = { .until_wall = USEC_PER_SEC };
	uint32_t running;

	cr_assert_eq(world_hold(&w, &id, &note, &running), 0);
	rule("*");
	w.s.walks[WALK_HOLD].wanted = true;
	send_wake(&w.s);
	world_run(&w);
	cr_assert_eq(world_where(&w, inode), SPOOL_DEFERRED);
	world_offer_again(&w, inode);
	world_run(&w);
	cr_expect_eq(world_where(&w, inode), SPOOL_HOLD);
}

/* mutation: is_ruled() takes the first attempt alone. */
Test(hold_rules, what_was_tried_before_is_held_by_its_next_attempt)
{
	uint64_t inode = world_message(&w, "d", 1);

	cr_assert_eq(world_deliver(&w, AGENT_DEFERRED), 1);
	rule("*");
	world_offer_again(&w, inode);
	world_run(&w);
	cr_expect_eq(world_where(&w, inode), SPOOL_HOLD);
}

Test(hold_rules, what_an_operator_gave_up_is_not_held)
{
	uint64_t inode = world_message(&w, "d", 1);
	const struct queue_id id = world_id(&w, inode);
	uint32_t running;

	cr_assert_eq(world_deliver(&w, AGENT_DEFERRED), 1);
	rule("*");
	cr_assert_eq(world_do(&w, ACT_EXPIRE, &id, 0, &running), 0);
	world_offer_again(&w, inode);
	cr_expect_eq(world_deliver(&w, AGENT_DEFERRED), 1);
	cr_expect_eq(world_where(&w, inode), SPOOL_NDIRS);
}

/* A crash between note and move brings the message back to incoming/, from
 * where it is held. */
Test(hold_rules, D24_a_note_without_a_move_is_no_release)
{
	uint64_t inode = world_message(&w, "d", 1);
	const struct queue_id id = world_id(&w, inode);
	const struct hold_note note = { .uid = 7, .rule = 1 };
	struct hold_note_before before;
	struct world_delivery first;

	cr_assert(world_take(&w, &first));
	cr_assert_eq(hold_note_write(&w.s.sp, &id, &note, &before), 0);
	rule("*");
	world_again(&w);
	world_offer_again(&w, inode);
	cr_expect_eq(world_where(&w, inode), SPOOL_HOLD);
}

/* A death at each call of the way to hold/: never an attempt. */
Test(hold_rules, P1_a_death_at_each_call)
{
	struct world_delivery delivery;
	uint64_t inode;
	unsigned nth;
	bool cut = true;

	rule("*");
	for (nth = 1; cut; nth++) {
		cr_assert_lt(nth, 30u);
		inode = world_file(&w, "d", 1, 0);
		world_cut(nth);
		world_offer(&w, SPOOL_INCOMING, inode);
		world_run(&w);
		cut = world_was_cut();
		world_cut(0);
		world_again(&w);
		if (world_where(&w, inode) != SPOOL_HOLD)
			world_offer_again(&w, inode);
		cr_expect(!world_take(&w, &delivery), "call %u", nth);
		cr_expect_eq(
		    world_where(&w, inode), SPOOL_HOLD, "call %u", nth);
	}
	cr_expect_gt(nth, 3u);
}

/* mutation: hold() goes on without the note. */
Test(hold_rules, D6_without_a_note_it_is_not_delivered_either)
{
	struct world_delivery first;
	uint64_t inode;

	rule("*");
	inode = world_file(&w, "d", 1, 0);
	world_fail(CALL_WRITE, ENOSPC, 0);
	world_offer(&w, SPOOL_INCOMING, inode);
	world_run(&w);
	cr_expect(!world_take(&w, &first));
	cr_expect_neq(world_where(&w, inode), SPOOL_HOLD);
	world_fail(CALL_WRITE, 0, 1);
}

/* A message that is older than any mail is not called damaged.
 * mutation: queue-send/message/finish.c: not_noted() leaves it as unreadable.
 */
Test(hold_rules, D7_without_a_note_an_old_message_is_deferred)
{
	uint64_t inode;

	rule("*");
	w.s.expire_after = 0;
	inode = world_file(&w, "d", 1, 30 * 86400);
	world_fail(CALL_WRITE, EIO, 1);
	world_offer(&w, SPOOL_INCOMING, inode);
	world_run(&w);
	cr_expect_eq(world_where(&w, inode), SPOOL_DEFERRED);
}

/* mutation: queue-send/message/finish.c: fate_of() looks at no rule. */
Test(hold_rules, a_rule_that_is_gone_before_the_move_holds_nothing)
{
	uint64_t inode;

	rule("*");
	w.s.finish_at = USEC_NEVER;
	inode = world_message(&w, "d", 1);
	cr_expect_eq(world_where(&w, inode), SPOOL_ACTIVE);
	w.s.rules->force.count = 0;
	w.s.finish_at = 0;
	send_wake(&w.s);
	world_run(&w);
	cr_expect_eq(world_where(&w, inode), SPOOL_DEFERRED);
	world_offer_again(&w, inode);
	cr_expect_eq(world_deliver(&w, AGENT_SENT), 1);
}

/* mutation: queue-send/rules/rules.c: rules_noted() does not say that the
 * file in defer/ has begun; finish.c: moved() keeps the rule. */
Test(hold_rules, D6_the_note_outlives_a_move_that_fails)
{
	uint64_t inode = world_file(&w, "d", 1, 0);
	const struct queue_id id = world_id(&w, inode);
	struct hold_note note;

	rule("*");
	w.s.finish_at = USEC_NEVER;
	world_offer(&w, SPOOL_INCOMING, inode);
	world_run(&w);
	world_fail(CALL_RENAME, EIO, 1);
	w.s.finish_at = 0;
	send_wake(&w.s);
	world_run(&w);
	cr_expect_eq(w.s.messages.count[STATE_STUCK], 1);
	w.s.stuck_at = 0;
	(void)world_trace();
	send_wake(&w.s);
	world_run(&w);
	cr_expect_eq(world_where(&w, inode), SPOOL_HOLD);
	cr_expect_eq(hold_note_read(&w.s.sp, &id, &note), 0);
	cr_expect_null(strchr(world_trace(), 'a'), "it is written once");
}

/* mutation: put_in_force() takes the rules of a damaged file. */
Test(hold_rules, F11_a_damaged_file_leaves_the_rules_that_were_read)
{
	char path[128];
	FILE *f;
	uint64_t inode;

	rule("*");
	snprintf(path, sizeof(path), "%s/" SPOOL_RULES "/hold", w.dir);
	f = fopen(path, "w");
	cr_assert_not_null(f);
	fputs("x\n", f);
	fclose(f);
	answered = 1;
	rules_read(&w.s, &me);
	cr_expect_eq(answered, -EBADMSG);
	inode = world_message(&w, "d", 1);
	world_run(&w);
	cr_expect_eq(world_where(&w, inode), SPOOL_HOLD);
}

/* mutation: look() never reads again a file that is the same. */
Test(hold_rules, F11_what_could_not_be_read_is_read_again)
{
	char path[128];

	rule("a@*");
	rule("b@*");
	snprintf(path, sizeof(path), "%s/" SPOOL_RULES "/hold", w.dir);
	cr_assert_eq(chmod(path, 0660), 0);
	answered = 1;
	rules_read(&w.s, &me);
	cr_expect_eq(answered, -EBADMSG);
	cr_assert_eq(chmod(path, 0640), 0);
	w.s.rules->look_at = 0;
	(void)rules_work(&w.s);
	cr_expect_eq(w.s.rules->wrong, 0);
	cr_expect_eq(w.s.rules->force.count, 2);
}

/* mutation: finish() answers what reading says. */
Test(hold_rules, D7_D9_what_cannot_be_written_leaves_the_rules)
{
	static const int errors[] = { EIO, ENOSPC, EROFS, EACCES };
	const struct msg_RULE_ADD all = about("*");
	uint64_t inode;
	size_t i;

	rule("nobody@nowhere");
	for (i = 0; i < ARRAY_LEN(errors); i++) {
		world_fail(CALL_WRITE, errors[i], 0);
		cr_expect_eq(ask_rule(&all), -errors[i]);
		world_fail(CALL_NONE, 0, 0);
		cr_expect_eq(w.s.rules->force.count, 1);
	}
	inode = world_message(&w, "d", 1);
	cr_expect_eq(world_deliver(&w, AGENT_DEFERRED), 1);
	cr_expect_eq(world_where(&w, inode), SPOOL_DEFERRED);
}

Test(hold_rules, A1_frames_that_are_no_rules)
{
	struct msg_RULE_ADD add = about("a");
	struct hold_note note;

	add.sender = (msg_str){ "a\0b", 3 };
	cr_expect_eq(ask_rule(&add), -EINVAL);
	add.sender = MSG_S("");
	cr_expect_eq(ask_rule(&add), -EINVAL);
	add.sender = MSG_S("a");
	add.until_wall = -1;
	cr_expect_eq(ask_rule(&add), -EINVAL);
	answered = 1;
	rules_drop(&w.s, &me, 1);
	cr_expect_eq(answered, -ESRCH);
	cr_expect_eq(rules_note(&w.s, 1, &note), -ESRCH);
}
