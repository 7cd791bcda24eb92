/* The keys of the live screen. */
#include "live.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

TestSuite(qtop_keys, .init = live_setup, .fini = live_teardown, .timeout = 60);

Test(qtop_keys, keys)
{
	live_show(40);
	shared->queues[30].deferred = 5;
	terminal_start(&t, 24, 80, live_draw, NULL);
	cr_expect(terminal_shows(&t, "1-19 of 40"));
	terminal_type(&t, "\033[B\033[B"); /* down, twice */
	cr_expect(terminal_shows(&t, "3-21 of 40"));
	terminal_type(&t, "\033[A");
	cr_expect(terminal_shows(&t, "2-20 of 40"));
	terminal_type(&t, "\033[5~");
	cr_expect(terminal_shows(&t, "1-19 of 40"));
	terminal_type(&t, "sssss");
	cr_expect(terminal_shows(&t, "s sort: DEFERRED"));
	cr_expect(strncmp(terminal_line(&t, 4), "   31 open", 10) == 0);
	terminal_type(&t, "S");
	cr_expect(terminal_shows(&t, "\n    1 open"));
	terminal_type(&t, "<");
	cr_expect(terminal_shows(&t, "s sort: ACTIVE"));
	live_quit();
}

Test(qtop_keys, columns_behind_the_edge)
{
	live_show(2);
	shared->sched.rows[1].restarts = 3;
	live_disable_by_hand(&shared->sched.rows[1], "new disk");
	terminal_start(&t, 24, 80, live_draw, NULL);
	cr_expect(terminal_shows(&t,
	    "QUEUE STATE      LOAD%    IN ACTIVE DEFERRED  HOLD CORRUPT "
	    "OLDEST RESTARTS RCPTS\n"));
	cr_expect(terminal_shows(&t, "right: +9 columns"));
	terminal_type(&t, "\033[C");
	cr_expect(terminal_shows(&t,
	    "QUEUE STATE          LOCAL    REMOTE RATE-IN RATE-OUT "
	    "FAILED EXPIRED IO-ERR\n"));
	cr_expect(terminal_shows(&t, "left, right: +2 columns"));
	terminal_type(&t, "\033[C");
	cr_expect(terminal_shows(&t, "QUEUE STATE      UNTRIED NOTE\n"));
	cr_expect(terminal_shows(
	    &t, "    2 disabled         0 by hand for 59m: new disk\n"));
	terminal_type(&t, "\033[C\033[D");
	cr_expect(terminal_shows(&t, "EXPIRED IO-ERR\n"));
	live_quit();
}

Test(qtop_keys, filter_freeze_and_interval)
{
	char frozen[sizeof("FROZEN for 0s")];

	live_show(2);
	shared->queues[1].hold = 1;
	terminal_start(&t, 24, 120, live_draw, NULL);
	cr_expect(terminal_shows(&t, "\n    1 open"));
	terminal_type(&t, "f");
	cr_expect(terminal_shows(&t, "f show: not normal"));
	cr_expect(terminal_hides(&t, "\n    1 open"));
	cr_expect(terminal_shows(&t, "\n    2 open"));
	terminal_type(&t, "ff");
	cr_expect(terminal_shows(&t, "\n    1 open"));
	terminal_type(&t, "p");
	cr_assert(terminal_shows(&t, "s: p goes on"));
	shared->sched.rows[1].state = QUEUE_STATE_CLOSING;
	snprintf(frozen, sizeof(frozen), "%s", strstr(t.text, "FROZEN for "));
	/* Another second: time for ten readings. */
	cr_expect(terminal_hides(&t, frozen));
	cr_expect(terminal_shows(&t, "FROZEN for "));
	cr_expect(terminal_shows(&t, "\n    2 open"));
	terminal_type(&t, "s");
	cr_expect(terminal_shows(&t, "s sort: STATE"));
	terminal_type(&t, "p");
	cr_expect(terminal_shows(&t, "\n    2 closing"));
	terminal_type(&t, "++");
	cr_expect(terminal_shows(&t, "+- every 0.5 s"));
	terminal_type(&t, "-");
	cr_expect(terminal_shows(&t, "+- every 0.2 s"));
	shared->sched.rows[1].state = QUEUE_STATE_OPEN;
	cr_expect(terminal_shows(&t, "\n    2 open"));
	live_quit();
}

Test(qtop_keys, more_notes_than_lines)
{
	uint32_t i;

	live_show(20);
	for (i = 0; i < 20; i++)
		live_disable_by_hand(&shared->sched.rows[i], "x");
	terminal_start(&t, 14, 80, live_draw, NULL);
	cr_expect(terminal_shows(&t,
	    "1: by hand for 59m: x\n2: by hand for 59m: x\n"
	    "and 18 notes more: right\nq quit"));
	live_quit();
}

Test(qtop_keys, help_is_read_in_parts)
{
	live_show(2);
	terminal_start(&t, 24, 80, live_draw, NULL);
	terminal_type(&t, "h");
	cr_expect(terminal_shows(&t, "qtop: columns\n"));
	cr_expect(terminal_shows(&t, "STATE       open, full, read-only"));
	cr_expect(terminal_shows(&t, "up, down: more; any other key ends"));
	terminal_type(&t, "\033[B");
	cr_expect(terminal_hides(&t, "qtop: columns\n"));
	terminal_type(&t, "\033[6~\033[6~\033[6~");
	cr_expect(terminal_shows(&t, "yellow      its load is at the"));
	terminal_type(&t, "\033[5~\033[5~\033[5~");
	cr_expect(terminal_shows(&t, "qtop: columns\n"));
	terminal_type(&t, "x");
	cr_expect(terminal_shows(&t, "s sort: QUEUE"));
	terminal_type(&t, "h");
	terminal_resize(&t, 60, 80);
	cr_expect(terminal_shows(&t, "\nany key ends the help\n"));
	cr_expect(terminal_shows(&t, "yellow"));
	live_quit();
}
