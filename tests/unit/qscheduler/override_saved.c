/* Settings of operators over a restart. */
#include "hand.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"

#define NOW HAND_NOW

TestSuite(override_saved, .init = hand_setup, .fini = hand_teardown);

static void
hand_restart(usec_t now)
{
	memset(hand.s.queues.overrides, 0, sizeof(hand.s.queues.overrides));
	memset(&hand.s.grow, 0, sizeof(hand.s.grow));
	hand.s.store.saved = hand.s.store.change;
	store_restore(&hand.s, now);
}

static bool
is_about(usec_t until, usec_t now, uint32_t seconds)
{
	return until <= now + (usec_t)seconds * USEC_PER_SEC &&
	    until > now + (usec_t)(seconds - 60) * USEC_PER_SEC;
}

/* The clock that nobody sets says what has passed. */
Test(override_saved, all_that_is_set_survives_with_the_rest_of_its_time)
{
	const usec_t later = NOW + 600 * USEC_PER_SEC;
	const struct override *one = &hand.s.queues.overrides[1],
			      *two = &hand.s.queues.overrides[2];

	hand.s.queues.count = 1;
	hand.s.queues.max = 4;
	cr_expect_eq(hand_disable(1, 3600, "new disk"), 0);
	cr_expect_eq(hand_disable(2, 0, ""), 0);
	cr_expect_eq(hand_load(2, 1, 2, 1200), 0);
	cr_expect_eq(hand_load(7, 0, 1, 599), 0);
	hand.s.grow.held = 3;
	hand.s.grow.held_until = NOW + 1800 * USEC_PER_SEC;
	store_changed(&hand.s);
	store_save(&hand.s, NOW);
	hand_pump();
	hand_restart(later);
	cr_expect(hand_holds(1, OVERRIDE_DISABLED, later));
	cr_expect_str_eq(one->reason, "new disk");
	cr_expect(is_about(one->until[OVERRIDE_DISABLED], later, 3000));
	cr_expect_eq(two->until[OVERRIDE_DISABLED], USEC_NEVER);
	cr_expect_eq(two->value[OVERRIDE_LOAD], 50);
	cr_expect(is_about(two->until[OVERRIDE_LOAD], later, 600));
	cr_expect_not(hand_holds(7, OVERRIDE_LOAD, NOW), "over");
	cr_expect_eq(hand.s.grow.held, 3);
	cr_expect(is_about(hand.s.grow.held_until, later, 1200));
	cr_expect(hand_unsaved(), "what is over is to go");
	hand_tick(later);
	hand_restart(later);
	cr_expect_not(hand_unsaved());
	cr_expect_eq(hand.s.grow.held, 3);
}

/* Each of them alone has the file written, and taken back, removed. */
Test(override_saved, each_is_written_and_removed)
{
	hand.s.queues.count = 1;
	hand.s.queues.max = 4;
	cr_expect_eq(hand_load(1, 1, 2, 0), 0);
	cr_expect_eq(faccessat(hand.s.base.fd, OVERRIDE_NAME, F_OK, 0), 0);
	cr_expect_eq(hand_clear(1), 0);
	cr_expect_eq(faccessat(hand.s.base.fd, OVERRIDE_NAME, F_OK, 0), -1);
	cr_expect_eq(hand_load(1, 1, 2, 0), 0);
	cr_expect_eq(hand_clear(0), 0);
	cr_expect_eq(faccessat(hand.s.base.fd, OVERRIDE_NAME, F_OK, 0), -1);
	cr_expect_eq(hand_load(1, 1, 2, 5), 0);
	override_tick(&hand.s.queues, NOW + 5 * USEC_PER_SEC);
	hand_tick(NOW + 120 * USEC_PER_SEC);
	cr_expect_eq(faccessat(hand.s.base.fd, OVERRIDE_NAME, F_OK, 0), -1);
	cr_expect_eq(hand_disable(1, 0, ""), 0);
	cr_expect_eq(faccessat(hand.s.base.fd, OVERRIDE_NAME, F_OK, 0), 0);
	cr_expect_eq(hand_enable(1), 0);
	cr_expect_eq(faccessat(hand.s.base.fd, OVERRIDE_NAME, F_OK, 0), -1);
}

/* Where no load changes the number, a count that was reached stays. */
Test(override_saved, a_count_that_was_reached)
{
	uint32_t count;

	hand.s.queues.count = 1;
	hand.s.queues.max = 4;
	hand.s.options.mode = MODE_FIXED;
	hand.s.grow.reached = 3;
	cr_expect_eq(grow_count_by_hand(&hand.s, &count), USEC_NEVER);
	cr_expect_eq(count, 3);
	store_changed(&hand.s);
	store_save(&hand.s, NOW);
	hand_pump();
	hand_restart(NOW);
	cr_expect_eq(hand.s.grow.held, 3);
	cr_expect_eq(hand.s.grow.held_until, 0);
	hand.s.queues.max = 2;
	hand_restart(NOW);
	cr_expect_eq(hand.s.grow.held, 0, "more than there can be");
	cr_expect(hand_unsaved());
}

/* A queue that does not run at a start comes back as it was set. */
Test(override_saved, what_waits_for_its_queue)
{
	struct queue *q;

	cr_expect_eq(hand_disable(2, 0, "new disk"), 0);
	cr_expect_eq(hand_load(2, 1, 2, 1200), 0);
	cr_expect_eq(hand_disable(7, 60, ""), -EBUSY);
	cr_expect_eq(hand_load(7, 1, 2, 60), 0);
	q = hand.s.queues.queues[1];
	hand.s.queues.queues[1] = hand.s.queues.queues[--hand.s.queues.nqueues];
	hand.s.queues.nqueues--; /* queue 1 is left */
	hand_restart(NOW);
	cr_expect(override_is_any(hand.s.queues.overrides, NOW));
	cr_expect_eq(hand_disable(1, 0, ""), 0, "it writes all of them");
	cr_expect_eq(hand_enable(1), 0);
	hand_restart(NOW);
	cr_expect_eq(hand_clear(7), 0);
	cr_expect_str_eq(
	    hand.text, "queue 7: load by hand cleared; it is not run");
	cr_expect_eq(hand_clear(7), -ENOENT);
	cr_expect_eq(hand_enable(7), -ENOENT);
	hand_restart(NOW);
	cr_expect_eq(hand_clear(7), -ENOENT, "it came back");
	cr_assert_eq(queue_insert(q), 0);
	publish(&hand.s, NOW);
	cr_expect_eq(hand.page.rows[1].state, QUEUE_STATE_DISABLED);
	cr_expect_eq(hand.page.rows[1].until_mono, 0, "for ever");
	cr_expect_str_eq(hand.page.rows[1].reason, "new disk");
	cr_expect_eq(hand.page.rows[1].load_pct, 50);
	cr_expect(is_about(hand.page.rows[1].manual_until_mono, NOW, 1200));
	cr_expect_eq(hand_enable(2), 0);
	cr_expect_str_eq(hand.text, "queue 2: enabled");
	hand.s.queues.nqueues++;
	hand_restart(NOW);
	cr_expect_not(hand_holds(2, OVERRIDE_DISABLED, NOW));
	cr_expect(hand_holds(2, OVERRIDE_LOAD, NOW));
}

Test(override_saved, what_waits_ends_with_its_time)
{
	cr_expect_eq(hand_disable(2, 60, ""), 0);
	cr_expect_eq(hand_load(2, 1, 2, 90), 0);
	hand.s.queues.queues[1]->number = 5; /* another one runs */
	hand_restart(NOW);
	override_tick(&hand.s.queues, NOW + 59 * USEC_PER_SEC);
	cr_expect(hand_holds(2, OVERRIDE_DISABLED, NOW));
	override_tick(&hand.s.queues, NOW + 61 * USEC_PER_SEC);
	cr_expect_not(hand_holds(2, OVERRIDE_DISABLED, NOW));
	cr_expect(hand_holds(2, OVERRIDE_LOAD, NOW));
	override_tick(&hand.s.queues, NOW + 91 * USEC_PER_SEC);
	cr_expect_not(override_is_any(hand.s.queues.overrides, NOW));
	cr_expect(hand_unsaved());
}

/* What it says of the wall clock is put right when that is set.
 * mutation: qscheduler/supervisor/store.c: follow_clock() keeps the offset. */
Test(override_saved, T1_a_step_of_the_wall_clock)
{
	cr_expect_eq(hand_disable(1, 3600, ""), 0);
	cr_expect_not(hand_unsaved());
	hand.s.store.as_of.wall -= 86400 * USEC_PER_SEC;
	store_tick(&hand.s, NOW);
	cr_expect(hand_unsaved());
	hand_pump();
	store_tick(&hand.s, NOW);
	cr_expect_not(hand_unsaved(), "once");
	cr_expect_eq(hand_enable(1), 0);
	hand_pump();
	hand.s.store.as_of.wall = 0;
	store_tick(&hand.s, NOW);
	cr_expect_not(hand_unsaved(), "nothing is set");
	cr_expect_gt(hand.s.store.as_of.wall, 0, "the new offset");
}

Test(override_saved, a_damaged_file_is_told_and_kept)
{
	int fd =
	    openat(hand.s.base.fd, OVERRIDE_NAME, O_WRONLY | O_CREAT, 0644);

	cr_assert_eq(write(fd, "1 0 x\n", 6), 6);
	close(fd);
	hand_restart(NOW);
	cr_expect_not(hand_holds(1, OVERRIDE_DISABLED, NOW));
	cr_expect_not(hand_unsaved());
	cr_expect_eq(faccessat(hand.s.base.fd, OVERRIDE_NAME, F_OK, 0), -1);
	cr_expect_eq(hand_disable(2, 0, ""), 0);
	hand_restart(NOW);
	cr_expect_not(hand_holds(1, OVERRIDE_DISABLED, NOW));
	cr_expect(hand_holds(2, OVERRIDE_DISABLED, NOW));
	cr_expect_eq(unlinkat(hand.s.base.fd, OVERRIDE_NAME ".aside-1", 0), 0);
}

Test(override_saved, what_cannot_be_written_is_told_and_tried_again)
{
	const usec_t later = NOW + hand.conf.error_interval;

	cr_assert_eq(mkdirat(hand.s.base.fd, OVERRIDE_NAME ".new", 0755), 0);
	cr_expect_eq(hand_disable(1, 0, ""), 0);
	cr_expect_str_eq(hand.text,
	    "queue 1: disabled for ever; a restart may forget it: Is a "
	    "directory");
	cr_expect(hand_unsaved());
	cr_assert_eq(
	    unlinkat(hand.s.base.fd, OVERRIDE_NAME ".new", AT_REMOVEDIR), 0);
	hand_tick(later - 1);
	cr_expect(hand_unsaved(), "too early");
	hand_tick(later);
	cr_expect_not(hand_unsaved());
	hand_restart(NOW);
	cr_expect(hand_holds(1, OVERRIDE_DISABLED, NOW));
}

/* A change while the file is being written is written behind that. */
Test(override_saved, a_change_during_a_save)
{
	struct queue *const *queues = hand.s.queues.queues;

	override_disable(queues[0], USEC_NEVER, "", 0);
	store_save(&hand.s, NOW);
	override_disable(queues[1], USEC_NEVER, "", 0);
	hand_tick(NOW);
	cr_expect_not(hand_unsaved());
	hand_restart(NOW);
	cr_expect(hand_holds(1, OVERRIDE_DISABLED, NOW));
	cr_expect(hand_holds(2, OVERRIDE_DISABLED, NOW));
}
