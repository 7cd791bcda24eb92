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
	uint32_t i;

	for (i = 0; i < hand.s.queues.nqueues; i++)
		memset(&hand.s.queues.queues[i]->override, 0,
		    sizeof(hand.s.queues.queues[i]->override));
	free(hand.s.queues.waiting);
	hand.s.queues.waiting = NULL;
	memset(&hand.s.grow, 0, sizeof(hand.s.grow));
	hand.s.store.unsaved = false;
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
	const struct override *one = &hand.s.queues.queues[0]->override,
			      *two = &hand.s.queues.queues[1]->override;

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
	cr_expect(override_is_disabled(hand.s.queues.queues[0], later));
	cr_expect_str_eq(one->reason, "new disk");
	cr_expect(is_about(one->disabled_until, later, 3000));
	cr_expect_eq(two->disabled_until, USEC_NEVER);
	cr_expect_eq(two->load_pct, 50);
	cr_expect(is_about(two->load_until, later, 600));
	cr_expect_eq(hand.s.queues.queues[2]->override.load_until, 0, "over");
	cr_expect_eq(hand.s.grow.held, 3);
	cr_expect(is_about(hand.s.grow.held_until, later, 1200));
	cr_expect(hand.s.store.unsaved, "what is over is to go");
	hand_tick(later);
	hand_restart(later);
	cr_expect_not(hand.s.store.unsaved);
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
	override_tick(hand.s.queues.queues[0], NOW + 5 * USEC_PER_SEC);
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
	struct override_count count;

	hand.s.queues.count = 1;
	hand.s.queues.max = 4;
	hand.s.options.mode = MODE_FIXED;
	hand.s.grow.reached = 3;
	count = grow_count_by_hand(&hand.s);
	cr_expect_eq(count.count, 3);
	cr_expect_eq(count.until, 0);
	store_changed(&hand.s);
	store_save(&hand.s, NOW);
	hand_pump();
	hand_restart(NOW);
	cr_expect_eq(hand.s.grow.held, 3);
	cr_expect_eq(hand.s.grow.held_until, 0);
	hand.s.queues.max = 2;
	hand_restart(NOW);
	cr_expect_eq(hand.s.grow.held, 0, "more than there can be");
	cr_expect(hand.s.store.unsaved);
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
	cr_expect(override_is_any(&hand.s.queues));
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
	memset(&q->override, 0, sizeof(q->override));
	cr_assert_eq(queue_insert(q), 0);
	cr_expect_eq(q->override.disabled_until, USEC_NEVER);
	cr_expect_str_eq(q->override.reason, "new disk");
	cr_expect(is_about(q->override.load_until, NOW, 1200));
	cr_expect_not(override_waits_disabled(&hand.s.queues, 2));
	cr_expect_eq(hand_enable(2), 0);
	cr_expect_str_eq(hand.text, "queue 2: enabled");
	hand.s.queues.nqueues++;
	hand_restart(NOW);
	cr_expect_not(override_is_disabled(q, NOW));
	cr_expect(override_has_load(q, NOW));
}

Test(override_saved, what_waits_ends_with_its_time)
{
	cr_expect_eq(hand_disable(2, 60, ""), 0);
	cr_expect_eq(hand_load(2, 1, 2, 90), 0);
	hand.s.queues.queues[1]->number = 5; /* another one runs */
	hand_restart(NOW);
	override_tick_waiting(&hand.s.queues, NOW + 59 * USEC_PER_SEC);
	cr_expect(override_waits_disabled(&hand.s.queues, 2));
	override_tick_waiting(&hand.s.queues, NOW + 61 * USEC_PER_SEC);
	cr_expect_not(override_waits_disabled(&hand.s.queues, 2));
	cr_expect(override_waits_with_load(&hand.s.queues, 2));
	override_tick_waiting(&hand.s.queues, NOW + 91 * USEC_PER_SEC);
	cr_expect_not(override_is_any(&hand.s.queues));
	cr_expect_not(override_waits_disabled(&hand.s.queues, UINT32_MAX));
}

/* What the first version says is in force, and written in the new form. */
Test(override_saved, a_file_of_the_first_version)
{
	char line[256];
	const int n = snprintf(line, sizeof(line),
	    "# comment\n1 %lld new disk\n2 0 \n3 1 over\n7 %lld far\nend\n",
	    (long long)(clock_wall() / USEC_PER_SEC) + 3600, 1LL << 39);
	int fd =
	    openat(hand.s.base.fd, OVERRIDE_NAME, O_WRONLY | O_CREAT, 0644);
	char head[12] = "";

	cr_assert_eq(write(fd, line, (size_t)n), n);
	close(fd);
	hand_restart(NOW);
	cr_expect(is_about(
	    hand.s.queues.queues[0]->override.disabled_until, NOW, 3600));
	cr_expect_str_eq(hand.s.queues.queues[0]->override.reason, "new disk");
	cr_expect_eq(
	    hand.s.queues.queues[1]->override.disabled_until, USEC_NEVER);
	cr_expect_eq(hand.s.queues.queues[2]->override.disabled_until,
	    NOW + (usec_t)ASK_SECONDS_MAX * USEC_PER_SEC);
	cr_expect(hand.s.store.unsaved);
	hand_tick(NOW);
	fd = openat(hand.s.base.fd, OVERRIDE_NAME, O_RDONLY);
	cr_assert_eq(read(fd, head, 10), 10);
	close(fd);
	cr_expect_str_eq(head, "by-hand 2\n");
}

/* What it says of the wall clock is put right when that is set. */
Test(override_saved, T1_a_step_of_the_wall_clock)
{
	cr_expect_eq(hand_disable(1, 3600, ""), 0);
	cr_expect_not(hand.s.store.unsaved);
	hand.s.store.offset -= 86400 * USEC_PER_SEC;
	hand.s.store.save_at = INT64_MAX;
	store_tick(&hand.s, NOW);
	cr_expect(hand.s.store.unsaved);
	hand.s.store.unsaved = false;
	store_tick(&hand.s, NOW);
	cr_expect_not(hand.s.store.unsaved, "once");
}

Test(override_saved, a_damaged_file_is_told_and_kept)
{
	int fd =
	    openat(hand.s.base.fd, OVERRIDE_NAME, O_WRONLY | O_CREAT, 0644);

	cr_assert_eq(write(fd, "1 0 x\n", 6), 6);
	close(fd);
	hand_restart(NOW);
	cr_expect_not(override_is_disabled(hand.s.queues.queues[0], NOW));
	cr_expect_not(hand.s.store.unsaved);
	cr_expect_eq(faccessat(hand.s.base.fd, OVERRIDE_NAME, F_OK, 0), -1);
	cr_expect_eq(hand_disable(2, 0, ""), 0);
	hand_restart(NOW);
	cr_expect_not(override_is_disabled(hand.s.queues.queues[0], NOW));
	cr_expect(override_is_disabled(hand.s.queues.queues[1], NOW));
	cr_expect_eq(unlinkat(hand.s.base.fd, OVERRIDE_NAME ".aside-1", 0), 0);
}

Test(override_saved, what_cannot_be_written_is_told_and_tried_again)
{
	const usec_t later = NOW + 60 * USEC_PER_SEC;

	cr_assert_eq(mkdirat(hand.s.base.fd, OVERRIDE_NAME ".new", 0755), 0);
	cr_expect_eq(hand_disable(1, 0, ""), 0);
	cr_expect_str_eq(hand.text,
	    "queue 1: disabled for ever; a restart may forget it: Is a "
	    "directory");
	cr_expect(hand.s.store.unsaved);
	cr_assert_eq(
	    unlinkat(hand.s.base.fd, OVERRIDE_NAME ".new", AT_REMOVEDIR), 0);
	hand_tick(later - 1);
	cr_expect(hand.s.store.unsaved, "too early");
	hand_tick(later);
	cr_expect_not(hand.s.store.unsaved);
	hand_restart(NOW);
	cr_expect(override_is_disabled(hand.s.queues.queues[0], NOW));
}

/* A number that is used again begins anew. */
Test(override_saved, a_queue_that_goes_takes_it_along)
{
	cr_expect_eq(hand_disable(2, 0, ""), 0);
	override_gone(hand.s.queues.queues[1]);
	cr_expect(hand.s.store.unsaved);
}
