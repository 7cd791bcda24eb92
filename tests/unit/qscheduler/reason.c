/* The reason of a queue in the page of the supervisor, a field of
 * SCHED_REASON_SIZE. */
#include "qscheduler/queues/queues.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "log/log.h"

static char path[400];
static struct conf conf = { .queue_base = path };
static struct instance instance = { .conf = &conf };
static struct queues all = { .instance = &instance };
static struct base base = { .path = path };
static struct children children = { .instance = &instance };
static struct queue q = {
	.all = &all, .number = QUEUE_NUM_MAX, .group = { .all = &children }
};
static char logged[1024], shown[SCHED_REASON_SIZE];

static void
keep_line(const char *text)
{
	snprintf(logged, sizeof(logged), "%s", text);
}

/* A base with a long path. */
static void
set_up(void)
{
	memset(path, 'b', sizeof(path) - 1);
	path[0] = '/';
	log_watch(keep_line);
}

TestSuite(reason, .init = set_up);

static void
expect_shown(struct buf *reason, const char *want)
{
	queue_fault(&q, buf_str(reason));
	cr_expect(strstr(logged, buf_str(reason)) != NULL, "%s", logged);
	queue_show_reason(&q, shown);
	cr_expect_str_eq(shown, want, "%s", shown);
	buf_done(reason);
}

/* Each text that is shown of a fault, at its longest. mutation:
 * qscheduler/queues/queue.c: reason_set_fault() keeps QUEUE_BASE, or the
 * remark. */
Test(reason, D45_each_fault_is_shown_whole)
{
	struct base_facts facts = { .there = true, .error = -ELOOP };
	struct buf text = { 0 };

	(void)base_describe_names(QUEUE_NUM_MAX, 1000, 1000, &text);
	expect_shown(&text,
	    "run \"qctl check --repair queue=4095\" as root: 1000 of 1000 "
	    "files are not named by their inodes");
	(void)base_describe_lost(&base, QUEUE_NUM_MAX, &facts, &text);
	expect_shown(&text,
	    "its directory is not as it was (Too many levels of symbolic "
	    "links)");
	facts = (struct base_facts){ .error = -ENOENT };
	(void)base_describe_lost(&base, QUEUE_NUM_MAX, &facts, &text);
	expect_shown(
	    &text, "its directory is not there (No such file or directory)");
	(void)base_describe_gone(-ELOOP, &text);
	expect_shown(&text,
	    "its directory is gone (Too many levels of symbolic links): is a "
	    "file system not mounted?");
	/* base_make(), and base_read_list(). */
	(void)buf_printf(&text,
	    "%s/queue%d: the directory above is writable by everybody and not "
	    "sticky",
	    path, QUEUE_NUM_MAX);
	expect_shown(&text,
	    "queue4095: the directory above is writable by everybody and not "
	    "sticky");
	(void)buf_printf(
	    &text, "%s/" BASE_LIST ":4096: not a queue number", path);
	expect_shown(&text, "queues:4096: not a queue number");
}

/* mutation: qscheduler/queues/queue.c: reason_set() cuts without dots. */
Test(reason, a_text_that_is_too_long_ends_at_a_word_with_dots)
{
	struct buf text = { 0 };
	unsigned i;

	for (i = 0; i < 30; i++)
		(void)buf_add_str(&text, "is not ");
	queue_fault(&q, buf_str(&text));
	queue_show_reason(&q, shown);
	cr_expect_eq(strlen(shown), 93);
	cr_expect_str_eq(shown + 83, " is not...", "%s", shown);
	buf_done(&text);
}
