/* A disk that lets calls of queue-send wait. */
#include "qscheduler/queues/queues.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "log/log.h"

#define NOW (1000 * USEC_PER_SEC)

static struct conf conf = { .queue_base = (char[]){ "/base" } };
static struct instance instance = { .conf = &conf };
static struct queues all = { .instance = &instance };
static struct queue q = { .all = &all, .number = 3 };
static struct queue_page page = { .queue = 3 };
static unsigned lines;
static char last[256];

static void
keep_line(const char *text)
{
	lines++;
	snprintf(last, sizeof(last), "%s", text);
}

/* The processes of the queue run; its disk is to be checked in a while. */
static void
set_up(void)
{
	static char wire;
	struct child *send = &q.group.child[ROLE_QUEUE_SEND];

	send->proc.state = PROC_UP;
	send->channel.wire = (void *)&wire;
	q.check_at = NOW + 15 * USEC_PER_SEC;
	log_watch(keep_line);
}

TestSuite(late, .init = set_up);

/* The page at this time: a call waits since then. */
static void
look(usec_t at, usec_t since, enum disk_work work)
{
	page.disk_since_mono = since;
	page.disk_work = work;
	queue_note_late(&q, &page, at);
}

/* mutation: qscheduler/queues/late.c: begins() does not set `told`;
 * goes_on_well() does not wait for STEADY. */
Test(late, D51_the_beginning_and_the_end_are_logged_once)
{
	const usec_t s = USEC_PER_SEC, ms = USEC_PER_MSEC;

	look(NOW, NOW - 900 * ms, DISK_WORK_PROBE);
	cr_expect_eq(lines, 0);
	cr_expect_eq(q.late.time, 0);
	look(NOW + s, NOW - 900 * ms, DISK_WORK_MOVE);
	cr_expect_eq(lines, 1);
	cr_expect_str_eq(last,
	    "warning: queue 3: /base/queue3: late: a move has waited for the "
	    "disk for 1s; new mail goes to other queues while one takes mail");
	cr_expect_eq(q.late.time, 1900 * ms);
	look(NOW + 2 * s, NOW - 900 * ms, DISK_WORK_MOVE);
	look(NOW + 3 * s, NOW + 4 * s, DISK_WORK_NONE);
	cr_expect_eq(q.late.time, 0, "shown no longer");
	look(NOW + 6 * s, NOW + 4 * s, DISK_WORK_MARK);
	cr_expect_eq(q.late.time, 2 * s, "late again");
	look(NOW + 7 * s, NOW + 8 * s, DISK_WORK_NONE);
	look(NOW + 11 * s, NOW + 12 * s, DISK_WORK_NONE);
	cr_expect_eq(lines, 1, "%s", last);
	look(NOW + 12 * s, NOW + 13 * s, DISK_WORK_NONE);
	cr_expect_eq(lines, 2);
	cr_expect_str_eq(last,
	    "warning: queue 3: /base/queue3: the disk answers again, after 7s");
	look(NOW + 20 * s, NOW + 21 * s, DISK_WORK_NONE);
	cr_expect_eq(lines, 2);
}

/* mutation: qscheduler/queues/late.c: begins() leaves check_at. */
Test(late, D51_the_check_of_the_disk_begins_at_once)
{
	look(NOW, NOW - USEC_PER_SEC, DISK_WORK_PROBE);
	cr_expect_eq(q.check_at, NOW);
	q.check_at = NOW + 20 * USEC_PER_SEC;
	look(NOW + USEC_PER_SEC, NOW - USEC_PER_SEC, DISK_WORK_PROBE);
	cr_expect_eq(q.check_at, NOW + 20 * USEC_PER_SEC, "once");
}

/* queue-send itself waits for the disk, or is stopped. */
Test(late, D51_a_question_that_is_not_asked_is_told)
{
	look(NOW, NOW - USEC_PER_SEC, DISK_WORK_NONE);
	cr_expect_eq(lines, 1);
	cr_expect_not_null(
	    strstr(last, ": late: queue-send has not asked the disk for 1s; "),
	    "%s", last);
}

/* mutation: qscheduler/queues/late.c: queue_note_late() does not ask
 * queue_hears(). */
Test(late, D51_the_page_of_a_process_that_has_ended_says_nothing)
{
	q.group.child[ROLE_QUEUE_SEND].proc.state = PROC_DOWN;
	look(NOW, NOW - USEC_PER_SEC, DISK_WORK_PROBE);
	queue_note_late(&q, NULL, NOW);
	cr_expect_eq(lines, 0);
	cr_expect_eq(q.late.time, 0);
}
