/* What is said of a page. */
#include "setqload/setqload.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#define NOW  (1000 * USEC_PER_SEC)
#define WALL (1700000000 * USEC_PER_SEC)

static struct sched_page page;
static struct buf text;
static const struct list_view view = { &page, NOW, WALL };

static void
setup(void)
{
	page = (struct sched_page){
		.qcount = 2,
		.queue_count = 2,
		.queue_max = 20,
		.threshold_pct = 90,
		.mean_load_pct = 45,
	};
	page.rows[0].queue = 1;
	page.rows[0].state = QUEUE_STATE_OPEN;
}

static void
teardown(void)
{
	buf_done(&text);
}

TestSuite(setqload_list, .init = setup, .fini = teardown);

#define SUMMARY                                                     \
	"2 open, 2 to 20 wanted, fixed; mean load 45 %, threshold " \
	"90 %\n"

Test(setqload_list, nothing)
{
	cr_assert_eq(list_text(&view, &text), 0);
	cr_expect_str_eq(buf_str(&text), SUMMARY "nothing is set by hand\n");
}

Test(setqload_list, of_a_queue)
{
	static const struct {
		struct sched_row row;
		const char *want;
	} rows[] = {
		{ { .state = QUEUE_STATE_OPEN,
		      .flags = SCHED_ROW_MANUAL,
		      .manual_until_mono = NOW + 61 * USEC_PER_SEC },
		    "queue 7: load 0 % by hand for 61s\n" },
		{ { .state = QUEUE_STATE_DISABLED,
		      .flags = SCHED_ROW_OVERRIDE,
		      .reason = "new disk" },
		    "queue 7: disabled, by hand for ever: new disk\n" },
		{ { .state = QUEUE_STATE_DISABLED,
		      .flags = SCHED_ROW_OVERRIDE | SCHED_ROW_MANUAL,
		      .until_mono = NOW + 7200 * USEC_PER_SEC,
		      .load_pct = 50,
		      .manual_until_mono = NOW + USEC_PER_SEC },
		    "queue 7: disabled, by hand for 2h\n"
		    "queue 7: load 50 % by hand for 1s\n" },
		{ { .state = QUEUE_STATE_DISABLED, .reason = "not mounted" },
		    "queue 7: disabled, for a fault: not mounted\n" },
		{ { .state = QUEUE_STATE_DISABLED,
		      .flags = SCHED_ROW_ALSO_HAND,
		      .reason = "not mounted" },
		    "queue 7: disabled, for a fault and by hand: not "
		    "mounted\n" },
		{ { .state = QUEUE_STATE_QUARANTINED,
		      .until_mono = NOW + 5 * USEC_PER_SEC,
		      .reason = "signal 11" },
		    "queue 7: quarantined, tried again in 5s: signal 11\n" },
		{ { .state = QUEUE_STATE_QUARANTINED, .until_mono = NOW - 1 },
		    "queue 7: quarantined, tried again in 0s\n" },
		{ { .state = QUEUE_STATE_CLOSING, .flags = SCHED_ROW_OVERRIDE },
		    "queue 7: closing (and disabled by hand)\n" },
		{ { .state = QUEUE_STATE_CLOSING,
		      .until_mono = NOW + 600 * USEC_PER_SEC,
		      .reason = "idle" },
		    "queue 7: closing, hands its mail over in 10m: idle\n" },
		{ { .state = QUEUE_STATE_CLOSING,
		      .flags = SCHED_ROW_EVACUATING },
		    "queue 7: closing, hands its mail over\n" },
		{ { .state = QUEUE_STATE_CLOSING }, "queue 7: closing\n" },
		/* A load whose time is over, by a supervisor that is late. */
		{ { .state = QUEUE_STATE_OPEN,
		      .flags = SCHED_ROW_MANUAL,
		      .manual_until_mono = NOW },
		    "nothing is set by hand\n" },
	};
	char want[512];
	size_t i;

	for (i = 0; i < ARRAY_LEN(rows); i++) {
		page.rows[200] = rows[i].row;
		page.rows[200].queue = 7;
		buf_reset(&text);
		cr_assert_eq(list_text(&view, &text), 0);
		snprintf(want, sizeof(want), "%s%s", SUMMARY, rows[i].want);
		cr_expect_str_eq(
		    buf_str(&text), want, "row %zu: %s", i, buf_str(&text));
	}
}

Test(setqload_list, count_and_change)
{
	page.dynamic = 1;
	page.held_count = 4;
	page.change_wall = WALL - 300 * USEC_PER_SEC;
	snprintf(page.change, sizeof(page.change), "queue 3 added");
	cr_assert_eq(list_text(&view, &text), 0);
	cr_expect_str_eq(buf_str(&text),
	    "2 open, 2 to 20 wanted, dynamic; mean load 45 %, threshold 90 "
	    "%\n"
	    "4 queues wanted by hand\n"
	    "last change 5m ago: queue 3 added\n");
	buf_reset(&text);
	page.held_until_mono = NOW + 120 * USEC_PER_SEC;
	cr_assert_eq(list_text(&view, &text), 0);
	cr_expect_not_null(
	    strstr(buf_str(&text), "4 queues wanted by hand for 2m\n"));
	buf_reset(&text);
	page.held_until_mono = NOW;
	cr_assert_eq(list_text(&view, &text), 0);
	cr_expect_null(strstr(buf_str(&text), "queues wanted"));
}

Test(setqload_list, A7_I12_hostile_page)
{
	size_t i;

	memset(&page, 0xff, sizeof(page));
	for (i = 0; i < PAGE_QUEUES_MAX; i++) {
		struct sched_row *row = &page.rows[i];

		row->state = (uint32_t)i;
		row->until_mono = i % 2 == 0 ? INT64_MIN : INT64_MAX;
		row->manual_until_mono = INT64_MAX;
		memset(row->reason, '\x1b', sizeof(row->reason) - 1);
		row->reason[sizeof(row->reason) - 1] = '\0';
	}
	memset(page.change, '\n', sizeof(page.change) - 1);
	page.change[sizeof(page.change) - 1] = '\0';
	memset(page.conf_error, '\033', sizeof(page.conf_error) - 1);
	page.conf_error[sizeof(page.conf_error) - 1] = '\0';
	cr_assert_eq(list_text(&view, &text), 0);
	cr_assert_eq(list_json(&view, &text), 0);
	for (i = 0; i < text.len; i++)
		cr_assert(text.data[i] == '\n' ||
			(text.data[i] >= ' ' && text.data[i] < 0x7f),
		    "byte %zu", i);
	cr_expect_null(strstr(buf_str(&text), "\n\n"));
}

Test(setqload_list, F14_an_old_configuration_is_in_force)
{
	snprintf(page.conf_error, sizeof(page.conf_error), "/c:3: no \"x\"");
	cr_assert_eq(list_text(&view, &text), 0);
	cr_expect_not_null(strstr(
	    buf_str(&text), "old configuration in force: /c:3: no \"x\"\n"));
	cr_assert_eq(list_json(&view, &text), 0);
	cr_expect_not_null(
	    strstr(buf_str(&text), "\"conf_error\":\"/c:3: no \\\"x\\\"\"}\n"));
}

/* A queue that is open, with a process that hangs. */
Test(setqload_list, a_process_that_hangs)
{
	page.rows[0].flags = SCHED_ROW_SILENT;
	snprintf(page.rows[0].reason, sizeof(page.rows[0].reason),
	    "deliver-smtp/1 has given no sign of life for 12 s");
	cr_assert_eq(list_text(&view, &text), 0);
	cr_expect_not_null(strstr(buf_str(&text),
			       "queue 1: open, a process hangs: deliver-smtp/1 "
			       "has given no sign of life for 12 s\n"),
	    "%s", buf_str(&text));
}

/* mutation: common/ipc/page_text.c: page_text_row() is empty for an open queue.
 */
Test(setqload_list, D51_a_disk_that_is_late)
{
	page.rows[0].flags = SCHED_ROW_LATE;
	snprintf(page.rows[0].reason, sizeof(page.rows[0].reason),
	    "disk late for 12 s (a move waits)");
	cr_assert_eq(list_text(&view, &text), 0);
	cr_expect_not_null(strstr(buf_str(&text),
			       "queue 1: open, disk late for 12 s (a move "
			       "waits)\n"),
	    "%s", buf_str(&text));
	buf_reset(&text);
	cr_assert_eq(list_json(&view, &text), 0);
	cr_expect_not_null(strstr(buf_str(&text), "\"late\":true"));
}

/* mutation: setqload/list.c: tell_state() passes over a queue that is open. */
Test(setqload_list, D46_a_file_system_that_takes_no_mail)
{
	page.rows[0].flags = SCHED_ROW_FULL;
	snprintf(page.rows[0].reason, sizeof(page.rows[0].reason),
	    "/q has 50 MB free, queue_minfree_bytes wants 64 MB");
	cr_assert_eq(list_text(&view, &text), 0);
	cr_expect_not_null(strstr(buf_str(&text),
			       "queue 1: full, no new mail: /q has 50 MB free, "
			       "queue_minfree_bytes wants 64 MB\n"),
	    "%s", buf_str(&text));
	buf_reset(&text);
	page.rows[0].flags = SCHED_ROW_READ_ONLY;
	cr_assert_eq(list_text(&view, &text), 0);
	cr_expect_not_null(
	    strstr(buf_str(&text), "queue 1: read-only, no new mail: /q"), "%s",
	    buf_str(&text));
}

Test(setqload_list, for_programs)
{
	page.held_count = 3;
	page.rows[0].flags = SCHED_ROW_SILENT;
	page.rows[1] = (struct sched_row){
		.queue = 12,
		.state = QUEUE_STATE_DISABLED,
		.flags = SCHED_ROW_OVERRIDE | SCHED_ROW_MANUAL,
		.until_mono = NOW + 90 * USEC_PER_SEC,
		.manual_until_mono = NOW + 30 * USEC_PER_SEC,
		.restarts = 2,
		.reason = "say \"why\" \\ \xc3\xa4",
	};
	cr_assert_eq(list_json(&view, &text), 0);
	cr_expect_str_eq(buf_str(&text),
	    "{\"open\":2,\"count_min\":2,\"count_max\":20,\"dynamic\":false,"
	    "\"mean_load\":45,\"threshold\":90,\"count_by_hand\":3,"
	    "\"count_left\":null,\"changes\":0,\"change_age\":null,"
	    "\"change\":\"\",\"conf_error\":\"\"}\n"
	    "{\"queue\":1,\"state\":\"open\",\"by_hand\":false,"
	    "\"giving\":false,\"left\":null,\"reason\":\"\",\"load\":0,"
	    "\"load_by_hand\":false,\"load_left\":null,\"restarts\":0,"
	    "\"silent\":true,\"late\":false,"
	    "\"full\":false,\"read_only\":false,\"fault\":false}\n"
	    "{\"queue\":12,\"state\":\"disabled\",\"by_hand\":true,"
	    "\"giving\":false,\"left\":90,"
	    "\"reason\":\"say \\\"why\\\" \\\\ \xc3\xa4\",\"load\":0,"
	    "\"load_by_hand\":true,\"load_left\":30,\"restarts\":2,"
	    "\"silent\":false,\"late\":false,"
	    "\"full\":false,\"read_only\":false,\"fault\":false}\n");
	page.rows[1].flags = SCHED_ROW_ALSO_HAND;
	buf_reset(&text);
	cr_assert_eq(list_json(&view, &text), 0);
	cr_expect_not_null(strstr(buf_str(&text), "\"by_hand\":true"));
	cr_expect_not_null(strstr(buf_str(&text), "\"fault\":true"));
}
