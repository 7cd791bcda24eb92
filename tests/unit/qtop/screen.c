/* The live screen, on a terminal of this test. */
#include "live.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"

TestSuite(
    qtop_screen, .init = live_setup, .fini = live_teardown, .timeout = 60);

Test(qtop_screen, golden_80x24)
{
	live_show(3);
	shared->sched.qcount = 2;
	shared->sched.mean_load_pct = 45;
	shared->sched.dynamic = 1;
	shared->sched.change_wall = clock_wall() - (5 * 60 + 30) * USEC_PER_SEC;
	snprintf(shared->sched.change, sizeof(shared->sched.change),
	    "queue 3 added: load 95 %%");
	shared->queues[1].local_used = 9;
	shared->queues[1].deferred = 1234567;
	shared->queues[0].hold = 7;
	shared->queues[0].corrupt = 1;
	shared->queues[0].age[0] = 8;
	live_disable_by_hand(&shared->sched.rows[2], "new disk");
	terminal_start(&t, 24, 80, live_draw, NULL);
	cr_expect(terminal_is(&t,
	    "qscheduler t: pid 4711, 2 open (1 to 20), 3 on disk, load 45% of "
	    "90%, dynamic\n"
	    "last change 5m ago: queue 3 added: load 95 %\n"
	    "QUEUE STATE         REMOTE LOAD%    IN ACTIVE DEFERRED  HOLD "
	    "CORRUPT OLDEST\n"
	    "TOTAL                 0/60    45     0      0     1.2M     7 "
	    "      1      -\n"
	    "    1 open            0/20     0     0      0        0     7 "
	    "      1      -\n"
	    "    2 open            0/20    90     0      0     1.2M     0 "
	    "      0      -\n"
	    "    3 disabled        0/20     0     0      0        0     0 "
	    "      0      -\n"
	    "\n"
	    "QUEUE    <5   <10   <20   <40   <80  <160  <320  <640 <1280 "
	    "1280+ minutes old\n"
	    "TOTAL     8     0     0     0     0     0     0     0     0     "
	    "0\n"
	    "    1     8     0     0     0     0     0     0     0     0     "
	    "0\n"
	    "    2     0     0     0     0     0     0     0     0     0     "
	    "0\n"
	    "    3     0     0     0     0     0     0     0     0     0     "
	    "0\n"
	    "\n\n\n\n\n\n\n\n\n"
	    "3: by hand for 59m: new disk\n"
	    "q quit  h help  right: +10 columns  p freeze  f show: all  "
	    "s sort: QUEUE\n"));
	live_quit();
}

Test(qtop_screen, golden_40x10)
{
	live_show(20);
	shared->sched.rows[18].queue = 1000;
	shared->sched.rows[19].queue = 4095;
	shared->sched.rows[3].state = QUEUE_STATE_QUARANTINED;
	snprintf(shared->sched.rows[3].reason, SCHED_REASON_SIZE,
	    "todo-proc failed 5 times in a row, signal 11");
	terminal_start(&t, 10, 40, live_draw, NULL);
	cr_expect(terminal_is(&t,
	    "qscheduler t: 20 open (1 to 20), fixed\n"
	    "\n"
	    "QUEUE STATE      LOAD%  HOLD CORRUPT\n"
	    "TOTAL                0     0       0\n"
	    "    1 open           0     0       0\n"
	    "    2 open           0     0       0\n"
	    "    3 open           0     0       0\n"
	    "    4 quarantine     0     0       0\n"
	    "4: todo-proc ...imes in a row, signal 11\n"
	    "q quit  h help  right: +15 columns\n"));
	live_quit();
}

Test(qtop_screen, wide_has_the_reason_in_the_row)
{
	live_show(2);
	live_disable_by_hand(&shared->sched.rows[1], "new disk");
	terminal_start(&t, 24, 200, live_draw, NULL);
	cr_expect(terminal_shows(&t,
	    "     0      0       0      0       0 by hand for 59m: new "
	    "disk\n"));
	cr_expect(terminal_hides(&t, "2: by hand"));
	live_quit();
}

/* ---- sizes ---- */

Test(qtop_screen, resized_while_it_runs)
{
	live_show(3);
	terminal_start(&t, 24, 80, live_draw, NULL);
	cr_expect(terminal_shows(&t, "CORRUPT OLDEST"));
	terminal_resize(&t, 50, 200);
	cr_expect(terminal_shows(&t, "IO-ERR UNTRIED NOTE"));
	cr_expect(terminal_shows(&t, "h help"));
	cr_expect(strncmp(terminal_line(&t, 49), "q quit", 6) == 0);
	terminal_resize(&t, 6, 30);
	cr_expect(terminal_hides(&t, "OLDEST"));
	cr_expect(terminal_shows(&t, "q quit"));
	live_quit();
}

/* Whatever is left over of it, it goes on. */
Test(qtop_screen, no_room_at_all)
{
	static const int sizes[][2] = { { 1, 1 }, { 1, 80 }, { 2, 2 },
		{ 3, 80 }, { 4, 10 }, { 5, 3 }, { 24, 1 } };
	size_t i;

	live_show(5);
	live_disable_by_hand(&shared->sched.rows[1], "new disk");
	terminal_start(&t, 24, 80, live_draw, NULL);
	for (i = 0; i < ARRAY_LEN(sizes); i++) {
		cr_expect(terminal_shows(&t, "TOTAL"));
		terminal_resize(&t, sizes[i][0], sizes[i][1]);
		terminal_type(
		    &t, "sssjk \033[B\033[A\033[C\033[C\033[D\033[Dhh");
		cr_expect(terminal_hides(&t, "TOTAL ") || sizes[i][0] >= 4);
		terminal_resize(&t, 24, 80);
	}
	cr_expect(terminal_shows(&t, "q quit"));
	live_quit();
}

/* ---- the screen is drawn again ---- */

/* Another program writes on the terminal. */
static void
scribble(void)
{
	memcpy(&t.cells[5][0], "wall: the system goes down", 26);
	memcpy(&t.cells[15][9], "Broadcast", 9);
}

static bool
is_clean(void)
{
	return terminal_hides(&t, "the system goes down") &&
	    terminal_hides(&t, "Broadcast") &&
	    terminal_shows(&t, "\n    2 open") && terminal_shows(&t, "q quit");
}

Test(qtop_screen, it_is_drawn_again_by_key_and_by_signals)
{
	static const int signals[] = { SIGCONT, SIGWINCH };
	size_t i;

	live_show(3);
	terminal_start(&t, 24, 80, live_draw, NULL);
	cr_assert(terminal_shows(&t, "q quit"));
	cr_assert(is_clean());
	scribble();
	terminal_type(&t, "\f");
	cr_expect(is_clean(), "^L");
	for (i = 0; i < ARRAY_LEN(signals); i++) {
		scribble();
		kill(t.pid, signals[i]);
		cr_expect(is_clean(), "signal %d", signals[i]);
	}
	terminal_type(&t, "h");
	cr_assert(terminal_shows(&t, "qtop: columns"));
	memcpy(&t.cells[15][9], "Broadcast", 9);
	terminal_type(&t, "\f");
	cr_expect(terminal_hides(&t, "Broadcast"), "^L in the help");
	cr_expect(terminal_shows(&t, "qtop: columns"));
	terminal_resize(&t, 24, 70); /* no key that ends the help */
	memcpy(&t.cells[15][9], "Broadcast", 9);
	terminal_type(&t, "\f");
	cr_expect(terminal_hides(&t, "Broadcast"), "^L behind a resize");
	cr_expect(terminal_shows(&t, "qtop: columns"), "still the help");
	live_quit();
}

static enum terminal_look
look_of(int y, const char *title)
{
	const char *line = terminal_line(&t, 2), *at = strstr(line, title);

	cr_assert_not_null(at, "%s", line);
	return t.looks[y][at - line + (int)strlen(title) - 1];
}

Test(qtop_screen, held_and_corrupt_messages_strike_the_eye)
{
	live_show(2);
	shared->queues[0].hold = 7;
	shared->queues[1].corrupt = 3;
	shared->queues[1].deferred = 5;
	terminal_start(&t, 24, 80, live_draw, NULL);
	cr_assert(terminal_shows(&t, "q quit"));
	cr_expect_eq(look_of(3, "HOLD"), TERMINAL_REVERSE, "the total");
	cr_expect_eq(look_of(3, "CORRUPT"), TERMINAL_REVERSE);
	cr_expect_eq(look_of(4, "HOLD"), TERMINAL_REVERSE);
	cr_expect_eq(look_of(4, "CORRUPT"), TERMINAL_PLAIN);
	cr_expect_eq(look_of(5, "HOLD"), TERMINAL_PLAIN);
	cr_expect_eq(look_of(5, "CORRUPT"), TERMINAL_REVERSE);
	cr_expect_eq(look_of(5, "DEFERRED"), TERMINAL_PLAIN);
	live_quit();
}

Test(qtop_screen, a_long_reason_keeps_its_cause)
{
	static const char *const causes[] = { "No space left on device",
		"Permission denied" };

	live_show(2);
	shared->sched.rows[0].state = QUEUE_STATE_DISABLED;
	snprintf(shared->sched.rows[0].reason, SCHED_REASON_SIZE,
	    "/var/spool/qscheduler/mail/queue1/incoming: not "
	    "created: %s",
	    causes[0]);
	shared->sched.rows[1].state = QUEUE_STATE_QUARANTINED;
	snprintf(shared->sched.rows[1].reason, SCHED_REASON_SIZE,
	    "todo-proc failed 5 times in a row, ended with status 111: "
	    "lock/todo-proc: %s",
	    causes[1]);
	terminal_start(&t, 24, 60, live_draw, NULL);
	cr_expect(terminal_shows(&t, causes[0]));
	cr_expect(terminal_shows(&t, causes[1]));
	cr_expect(terminal_shows(&t, "1: for a fault: /var..."));
	terminal_resize(&t, 24, 220);
	cr_expect(terminal_shows(&t, "UNTRIED NOTE"));
	cr_expect(terminal_shows(&t, "No space left on device\n"));
	cr_expect(terminal_shows(&t, "Permission denied\n"));
	live_quit();
}

/* ---- rows that come and go ---- */

Test(qtop_screen, rows_come_and_go)
{
	uint32_t i;

	live_show(2);
	terminal_start(&t, 24, 80, live_draw, NULL);
	cr_expect(terminal_shows(&t, "\n    2 open"));
	live_show(256);
	for (i = 0; i < 256; i++)
		shared->sched.rows[i].queue = 7 + 15 * i;
	cr_expect(terminal_shows(&t, "\n    7 open"));
	cr_expect(terminal_hides(&t, "\n    2 open"));
	cr_expect(terminal_shows(&t, "up, down: 1-19 of 256"));
	for (i = 0; i < 14; i++)
		terminal_type(&t, "\033[6~"); /* page down */
	cr_expect(terminal_shows(&t, "238-256 of 256"));
	cr_expect(terminal_shows(&t, "\n 3832 open"));
	live_show(3); /* the top row is there no more */
	cr_expect(terminal_shows(&t, "\n    1 open"));
	cr_expect(terminal_hides(&t, "of 256"));
	shared->sched.rows[1].state = QUEUE_STATE_NONE;
	cr_expect(terminal_hides(&t, "\n    2 open"));
	memset(&shared->sched.rows, 0, sizeof(shared->sched.rows));
	cr_expect(terminal_hides(&t, "open    "));
	live_quit();
}

Test(qtop_screen, A5_supervisor_goes_and_comes_back)
{
	live_show(1);
	terminal_start(&t, 24, 80, live_draw, NULL);
	cr_expect(terminal_shows(&t, "\n    1 open"));
	shared->sched_error = -ENOENT;
	cr_expect(terminal_shows(&t,
	    "qscheduler t: not running\n"
	    "instance t: no supervisor of this instance is running: start "
	    "qscheduler\n"));
	live_show(1);
	cr_expect(terminal_shows(&t, "\n    1 open"));
	live_quit();
}

/* ---- what it is shown ---- */

/* Nothing of a page moves the terminal: it fails at what it does not know. */
Test(qtop_screen, A7_hostile_texts)
{
	static const char *const reasons[] = {
		"\x1b[2J\x1b[1;1Howned",
		"\x1b]0;title\x07",
		"\x1b(0\x0e\x0f\x08\x08\r\n\t\x7f",
		"\2332J\302\2332J\xff\xfe\x80",
		"\342\200\256deliver\xe2\x80\x8b",
		"\xf0\x9f\x92\xa9 \xc3\xa4 \xe4\xb8\xad",
	};
	uint32_t i;

	live_show(ARRAY_LEN(reasons));
	for (i = 0; i < ARRAY_LEN(reasons); i++)
		live_disable_by_hand(&shared->sched.rows[i], reasons[i]);
	snprintf(shared->sched.change, sizeof(shared->sched.change), "%s",
	    reasons[0]);
	shared->sched.change_wall = clock_wall();
	terminal_start(&t, 24, 80, live_draw, NULL);
	cr_expect(terminal_shows(&t, "1: by hand for 59m: ?[2J?[1;1Howned\n"));
	cr_expect(terminal_shows(&t, "2: by hand for 59m: ?]0;title?\n"));
	cr_expect(terminal_shows(&t, "3: by hand for 59m: ?(0????"));
	cr_expect(terminal_shows(&t, "4: by hand for 59m: ?2J??2J???\n"));
	terminal_resize(&t, 30, 200);
	cr_expect(terminal_shows(&t, "0 by hand for 59m: ?]0;title?\n"));
	live_quit();
}

/* A longest reason, of characters that are two columns wide. */
static void
make_chinese(void)
{
	char reason[SCHED_REASON_SIZE] = "";
	size_t i;

	for (i = 0; i + 3 < sizeof(reason); i += 3)
		memcpy(reason + i, "\344\270\255", 4);
	live_show(3);
	live_disable_by_hand(&shared->sched.rows[0], reason);
	live_disable_by_hand(&shared->sched.rows[1], "\303\244 b");
}

Test(qtop_screen, A7_cut_at_the_edge)
{
	make_chinese();
	terminal_start(&t, 14, 40, live_draw, NULL);
	cr_expect(terminal_shows(&t,
	    "1: by hand fo...????????????????????????\n"
	    "2: by hand for 59m: ?? b\n"
	    "q quit"));
	cr_expect(strncmp(terminal_line(&t, 4), "    1 disabled", 14) == 0);
	live_quit();
}

Test(qtop_screen, A7_cut_at_the_edge_by_columns)
{
	make_chinese();
	setenv("LC_ALL", "C.UTF-8", 1);
	t.utf8 = true;
	terminal_start(&t, 14, 41, live_draw, NULL);
	cr_expect(terminal_shows(&t,
	    "1: by hand fo...wwwwwwwwwwwwwwwwwwwwwwww\n"
	    "2: by hand for 59m: u b\n"
	    "q quit"));
	live_quit();
}

Test(qtop_screen, I12_absurd_pages)
{
	uint32_t i;

	live_show(256);
	for (i = 0; i < 256; i++) {
		memset(&shared->queues[i], i % 2 == 0 ? 0xff : 0x7f,
		    sizeof(shared->queues[i]));
		shared->sched.rows[i].load_pct = UINT32_MAX;
		shared->sched.rows[i].until_mono = INT64_MIN;
		shared->sched.rows[i].state = i;
		memset(shared->sched.rows[i].reason, 'x', 95);
	}
	terminal_start(&t, 40, 200, live_draw, NULL);
	cr_expect(terminal_shows(&t, "h help"));
	terminal_resize(&t, 40, 80);
	cr_expect(terminal_hides(&t, "NOTE"));
	cr_expect(terminal_shows(&t, "h help"));
	live_quit();
}

/* ---- terminals that cannot show it ---- */

static int
draw_all_the_same(void *arg)
{
	dup2(STDOUT_FILENO, STDERR_FILENO);
	return live_draw(arg);
}

Test(qtop_screen, terminals_without_a_cursor_are_refused)
{
	static const char *const terms[] = { "dumb", "unknown", "",
		"no-such-terminal", "\x1b[2J" };
	size_t i;
	int status;

	live_show(1);
	for (i = 0; i < ARRAY_LEN(terms); i++) {
		t.term = terms[i];
		terminal_start(&t, 24, 120, draw_all_the_same, NULL);
		cr_expect(terminal_shows(&t,
			      "no terminal that a screen can be drawn on: "
			      "`qtop -b' writes plain text"),
		    "%s", terms[i]);
		status = terminal_finish(&t);
		cr_expect(WIFEXITED(status) && WEXITSTATUS(status) == 64,
		    "%s: %d", terms[i], status);
		cr_expect_str_empty(t.unknown, "%s", terms[i]);
	}
}

/* ---- ends ---- */

Test(qtop_screen, signals_restore_the_terminal)
{
	static const int signals[] = { SIGTERM, SIGINT, SIGHUP, SIGQUIT };
	size_t i;
	int status;

	for (i = 0; i < ARRAY_LEN(signals); i++) {
		live_show(1);
		terminal_start(&t, 24, 80, live_draw, NULL);
		cr_expect(terminal_shows(&t, "q quit"));
		kill(t.pid, signals[i]);
		status = terminal_finish(&t);
		cr_expect(WIFEXITED(status) && WEXITSTATUS(status) == 0,
		    "signal %d: %d", signals[i], status);
		cr_expect_str_empty(t.unknown);
	}
}

/* The window is closed: it does not stay and turn. */
Test(qtop_screen, A6_terminal_gone)
{
	int status;

	live_show(1);
	terminal_start(&t, 24, 80, live_draw, NULL);
	cr_expect(terminal_shows(&t, "q quit"));
	close(t.fd);
	cr_assert_eq(waitpid(t.pid, &status, 0), t.pid);
	/* The kernel's SIGHUP may come when qtop has given its handlers back.
	 */
	cr_expect(WIFEXITED(status) || WTERMSIG(status) == SIGHUP, "signal %d",
	    WTERMSIG(status));
}
