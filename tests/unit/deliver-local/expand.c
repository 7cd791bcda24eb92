/* The messages of an expansion: each recipient exactly once, wherever the
 * process dies, and nothing left where it fails. */
#include "expand.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "dying_sys.h"
#include "scratch.h"
#include "spool/accept.h"
#include "spool/prepared.h"

#define CONTENT "Received: by elsewhere\r\nSubject: x\r\n\r\nbody\r\n"

static struct names_scratch names;
static struct spool sp;
static struct spool_sys sys;
static struct conf conf;
static struct verdict verdict;
static char base[256], instance[] = "no-such-instance";
static struct queue_id parent;

#define TABLE                                                         \
	"list: ann, bob@far.test, sub, sub2, ann\nowner-list: boss\n" \
	"sub: carl, bob@far.test\nowner-sub: boss\n"                  \
	"sub2: dora\nnobody: /dev/null\nloop: p, q\np: q\nq: p\n"     \
	"owner-p: x\nowner-q: x\n"

static void
open_spool(void)
{
	const struct spool_owner owner = { geteuid(), geteuid(), getegid(),
		getegid(), true };

	snprintf(base, sizeof(base), "%s", scratch_path("base"));
	cr_assert_eq(
	    spool_create(base, 1, 3, &owner), 0, "%s", queue_file_reason());
	sys = spool_sys_real;
	cr_assert_eq(spool_open(&sp, &sys, base, 1), 0);
	conf = (struct conf){ .queue_base = base, .instance = instance };
}

static uint64_t
accept_message(const char *const *rcpts, uint32_t n)
{
	const struct accept_options opt = { .dir = SPOOL_INCOMING };
	struct accept a;
	uint32_t i;
	int r = accept_begin(&a, &sp, &opt, clock_wall(), 4711);

	if (r == 0)
		r = accept_content(&a, CONTENT, sizeof(CONTENT) - 1);
	if (r == 0)
		r = queue_file_add_sender(&a.writer, "s@far.test", 10);
	for (i = 0; i < n && r == 0; i++)
		r = queue_file_add_rcpt(&a.writer, rcpts[i], strlen(rcpts[i]));
	if (r == 0)
		r = accept_commit(&a, &parent);
	accept_end(&a);
	cr_assert_eq(r, 0);
	cr_assert_eq(
	    spool_move(&sp, SPOOL_INCOMING, SPOOL_ACTIVE, parent.inode), 0);
	return parent.inode;
}

static void
begin(void)
{
	static const char *const rcpts[] = { "zoe@far.test", "list@one.test" };

	names_begin(&names, TABLE, "");
	open_spool();
	accept_message(rcpts, 2);
}

static void
end(void)
{
	spool_close(&sp);
	names_done(&names);
}

TestSuite(expand, .init = begin, .fini = end, .timeout = 120);

static void
run_index(const char *key, uint32_t index)
{
	char id[QUEUE_ID_SIZE], recipient[64];
	struct expansion x = { .sp = &sp,
		.conf = &conf,
		.host = "host.test",
		.names = &names.names,
		.includes = &names.includes,
		.id = id,
		.index = index,
		.of = { key, recipient, "s@far.test", NULL } };

	queue_id_format(&parent, id);
	snprintf(recipient, sizeof(recipient), "%s@one.test", key);
	expand_run(&x, &verdict);
}

static void
run(const char *key)
{
	run_index(key, 1);
}

/* "SENDER: RCPT RCPT" of each message in a directory, sorted by sender. */
static struct buf found;
static uint32_t nfiles;

static int
compare(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static char *
describe(int fd)
{
	struct buf sender = { 0 }, line = { 0 };
	struct queue_rcpt_cursor cursor;
	struct queue_rcpt rcpt;
	struct queue_file file;

	cr_assert_geq(fd, 0);
	cr_assert_eq(queue_file_read(fd, &file), 0);
	cr_assert_eq(queue_file_verify(fd, &file), 0);
	cr_expect_eq(
	    file.flags & QUEUE_FILE_EXPANDED, (uint32_t)QUEUE_FILE_EXPANDED);
	cr_expect_eq(file.uid, 4711u, "the submitter");
	cr_assert_eq(queue_file_sender(fd, &file, &sender), 0);
	cr_assert_eq(buf_printf(&line, "%s:", buf_str(&sender)), 0);
	queue_rcpt_begin(&cursor, &file);
	while (queue_rcpt_next(&cursor, fd, &rcpt) > 0)
		cr_assert_eq(buf_printf(&line, " %s", rcpt.address), 0);
	buf_done(&sender);
	close(fd);
	return line.data;
}

static const char *
look(enum spool_dir dir)
{
	struct spool_scan scan;
	struct spool_item item;
	char *lines[64];
	uint32_t i;

	nfiles = 0;
	buf_reset(&found);
	spool_scan_begin(&scan, &sp, dir);
	while (spool_scan_next(&scan, false, &item) > 0) {
		cr_assert_lt(nfiles, ARRAY_LEN(lines));
		lines[nfiles++] = describe(dir == SPOOL_PREPARED
			? openat(sp.dir[dir], item.name, O_RDONLY | O_CLOEXEC)
			: spool_open_file(&sp, dir, item.inode, O_RDONLY));
	}
	spool_scan_done(&scan);
	qsort(lines, nfiles, sizeof(*lines), compare);
	for (i = 0; i < nfiles; i++) {
		cr_assert_eq(
		    buf_printf(&found, "%s%s", i == 0 ? "" : "; ", lines[i]),
		    0);
		free(lines[i]);
	}
	return buf_str(&found);
}

#define LIST                                                             \
	"owner-list@one.test: ann@one.test bob@far.test dora@one.test; " \
	"owner-sub@one.test: carl@one.test"

static enum rcpt_mark
mark_of(uint32_t index)
{
	struct queue_rcpt rcpt;
	struct queue_file file;
	int fd = spool_open_file(&sp, SPOOL_ACTIVE, parent.inode, O_RDONLY);

	cr_assert_geq(fd, 0);
	cr_assert_eq(queue_file_read(fd, &file), 0);
	cr_assert_eq(queue_file_verify(fd, &file), 0);
	cr_assert_eq(prepared_find_rcpt(fd, &file, index, &rcpt), 0);
	close(fd);
	return rcpt.mark;
}

/* mutation: deliver-local/expand.c: release() does nothing. */
Test(expand, a_list_becomes_a_message_for_each_owner)
{
	char text[QUEUE_ID_SIZE];
	const char *as;

	run("list");
	cr_expect_eq(verdict.outcome, AGENT_SENT, "%s", verdict.text);
	cr_expect_str_eq(verdict.dsn, "2.0.0");
	as = strstr(verdict.text, "alias list: 4 recipients as ");
	cr_assert_eq(as, verdict.text, "%s", verdict.text);
	snprintf(
	    text, sizeof(text), "%.*s", (int)strcspn(as + 28, ","), as + 28);
	cr_expect_eq(
	    queue_id_parse(text, &(struct queue_id){ 0 }), 0, "%s", text);
	cr_expect_str_eq(look(SPOOL_INCOMING), LIST, "%s", buf_str(&found));
	look(SPOOL_PREPARED);
	cr_expect_eq(nfiles, 0u);
	cr_expect_eq(mark_of(0), RCPT_PENDING);
	cr_expect_eq(mark_of(1), RCPT_DONE);
}

Test(expand, the_content_has_a_received_field_of_this_system)
{
	struct spool_scan scan;
	struct spool_item item;
	struct queue_file file;
	char content[1024];
	int64_t n;
	int fd;

	run("sub2");
	spool_scan_begin(&scan, &sp, SPOOL_INCOMING);
	cr_assert_eq(spool_scan_next(&scan, false, &item), 1);
	spool_scan_done(&scan);
	fd = spool_open_file(&sp, SPOOL_INCOMING, item.inode, O_RDONLY);
	cr_assert_eq(queue_file_read(fd, &file), 0);
	cr_assert_lt(file.content_len, sizeof(content));
	n = pread(fd, content, file.content_len, (off_t)file.content_off);
	cr_assert_eq((uint64_t)n, file.content_len);
	content[n] = '\0';
	close(fd);
	cr_expect_eq(
	    strncmp(content, "Received: by host.test (qscheduler, ", 36), 0,
	    "%s", content);
	cr_expect_str_eq(content + n - (sizeof(CONTENT) - 1), CONTENT);
	cr_expect_null(strstr(content, "\tid \r"));
	cr_expect_not_null(strstr(content, ")\r\n\tid "));
}

Test(expand, results_without_messages)
{
	run("nobody");
	cr_expect_eq(verdict.outcome, AGENT_SENT, "%s", verdict.text);
	cr_expect_str_eq(verdict.text, "alias nobody: no recipients");
	look(SPOOL_INCOMING);
	cr_expect_eq(nfiles, 0u);
}

Test(expand, results_of_failures)
{
	static const struct {
		const char *key, *dsn;
		enum agent_outcome outcome;
		uint32_t limit;
	} rows[] = {
		{ "gone", "4.2.4", AGENT_DEFERRED, 100 },
		{ "list", "5.2.4", AGENT_FAILED, 3 },
		{ "loop", "5.4.6", AGENT_FAILED, 100 },
	};
	size_t i;

	for (i = 0; i < ARRAY_LEN(rows); i++) {
		names.names.limit = rows[i].limit;
		run(rows[i].key);
		cr_expect_eq(verdict.outcome, rows[i].outcome, "%s: %s",
		    rows[i].key, verdict.text);
		cr_expect_str_eq(verdict.dsn, rows[i].dsn, "%s: %s %s",
		    rows[i].key, verdict.dsn, verdict.text);
		look(SPOOL_INCOMING);
		cr_expect_eq(nfiles, 0u);
		look(SPOOL_PREPARED);
		cr_expect_eq(nfiles, 0u);
		cr_expect_eq(mark_of(1), RCPT_PENDING);
	}
}

Test(expand, another_expansion_of_the_message_is_waited_for)
{
	int fd = spool_open_file(&sp, SPOOL_ACTIVE, parent.inode, O_RDONLY);

	cr_assert_eq(flock(fd, LOCK_EX), 0);
	run("list");
	cr_expect_eq(verdict.outcome, AGENT_DEFERRED);
	cr_expect_str_eq(
	    verdict.text, "alias list: another process works on the message");
	close(fd);
	run("list");
	cr_expect_eq(verdict.outcome, AGENT_SENT, "%s", verdict.text);
	run("list");
	cr_expect_str_eq(verdict.text, "alias list: expanded before");
	cr_expect_str_eq(look(SPOOL_INCOMING), LIST);
}

/* mutation: deliver-local/expand.c: check_identity() is always 0. */
Test(expand, a_message_that_is_another_or_has_moved_is_not_expanded)
{
	const struct queue_id id = parent;

	parent.nonce++;
	run("list");
	cr_expect_eq(verdict.outcome, AGENT_DEFERRED, "%s", verdict.text);
	parent = id;
	cr_assert_eq(
	    spool_move(&sp, SPOOL_ACTIVE, SPOOL_DEFERRED, id.inode), 0);
	run("list");
	cr_expect_eq(verdict.outcome, AGENT_DEFERRED, "%s", verdict.text);
	look(SPOOL_INCOMING);
	cr_expect_eq(nfiles, 0u);
}

/* mutation: queue_minfree_bytes is not asked. */
Test(expand, D5_a_disk_that_is_nearly_full_waits)
{
	conf.queue_minfree_bytes = UINT64_MAX;
	run("list");
	cr_expect_eq(verdict.outcome, AGENT_DEFERRED);
	cr_expect_str_eq(verdict.dsn, "4.3.1", "%s", verdict.text);
}

Test(expand, a_queue_that_is_being_closed_prepares_nothing)
{
	cr_assert_eq(spool_set_sealed(base, 1, true), 0);
	run("list");
	cr_expect_eq(verdict.outcome, AGENT_DEFERRED);
	cr_expect_str_eq(verdict.dsn, "4.3.2", "%s", verdict.text);
}

/* After a power cut behind the mark each message counts that is in prepared/:
 * none of an earlier expansion may be back there. And a message that has moved
 * to incoming/ is one too many if the mark is not there.
 * mutations: deliver-local/expand.c: sync_prepared() syncs nothing; mark_done()
 * does not sync the mark. */
Test(expand, D35_names_are_synced_before_the_mark_and_the_mark_before_a_move)
{
	dying_sys(&sys, 0, false);
	run("list");
	cr_expect_eq(verdict.outcome, AGENT_SENT, "%s", verdict.text);
	cr_expect_str_eq(dying_trace(), "lflffpfrr", "%s", dying_trace());
}

/* ---- death and failures at each call ---- */

/* false: the expansion came through. */
static bool
die_at(unsigned nth)
{
	pid_t pid = fork();
	int status;

	cr_assert_geq(pid, 0);
	if (pid == 0) {
		dying_sys(&sys, nth, false);
		run("list");
		_exit(0);
	}
	cr_assert_eq(waitpid(pid, &status, 0), pid);
	return WIFSIGNALED(status);
}

/* As todo-proc does. */
static void
settle_all(void)
{
	struct spool_scan scan;
	struct spool_item item;
	uint64_t inode;

	spool_scan_begin(&scan, &sp, SPOOL_PREPARED);
	while (spool_scan_next(&scan, false, &item) > 0)
		cr_expect_geq(spool_settle_prepared(&sp, item.name, &inode), 0);
	spool_scan_done(&scan);
}

static void
empty(enum spool_dir dir)
{
	struct spool_scan scan;
	struct spool_item item;

	spool_scan_begin(&scan, &sp, dir);
	while (spool_scan_next(&scan, false, &item) > 0)
		cr_assert_eq(spool_remove(&sp, dir, item.inode), 0);
	spool_scan_done(&scan);
}

static void
again(void)
{
	static const char *const rcpts[] = { "zoe@far.test", "list@one.test" };

	empty(SPOOL_INCOMING);
	empty(SPOOL_ACTIVE);
	accept_message(rcpts, 2);
}

/* What queue-send does with the parent after the death: it is tried again while
 * the recipient is pending, and goes when it is marked. settles: todo-proc
 * looks before that, after it, or when the parent is gone. */
static void
go_on(unsigned settles)
{
	if (settles == 0)
		settle_all();
	if (mark_of(1) == RCPT_PENDING) {
		run("list");
		cr_expect_eq(verdict.outcome, AGENT_SENT, "%s", verdict.text);
	}
	if (settles == 1)
		settle_all();
	cr_assert_eq(spool_remove(&sp, SPOOL_ACTIVE, parent.inode), 0);
	settle_all();
}

/* mutations: deliver-local/expand.c: prepare() marks first; release() comes
 * before the mark; common/spool/prepared.c: settle_by() always releases. */
Test(expand, D35_killed_before_and_after_each_call)
{
	bool died = true;
	unsigned nth, settles;

	for (nth = 1; died && nth < 2000; nth++)
		for (settles = 0; settles < 3; settles++) {
			again();
			died = die_at(nth);
			go_on(settles);
			cr_expect_str_eq(look(SPOOL_INCOMING), LIST,
			    "point %u, settled %u: %s", nth, settles,
			    buf_str(&found));
			look(SPOOL_PREPARED);
			cr_expect_eq(nfiles, 0u, "point %u", nth);
		}
	cr_expect_not(died);
	cr_expect_gt(nth, 40u, "%u points", nth);
}

/* A system call that fails leaves the recipient pending with nothing prepared,
 * or done with all of its messages. */
Test(expand, D35_each_call_fails)
{
	bool failed = true;
	unsigned nth;

	for (nth = 1; failed && nth < 1000; nth++) {
		again();
		dying_sys(&sys, nth, true);
		run("list");
		failed = dying_came();
		sys = spool_sys_real;
		if (verdict.outcome == AGENT_SENT) {
			cr_expect_eq(mark_of(1), RCPT_DONE, "call %u", nth);
		} else {
			cr_expect_eq(verdict.outcome, AGENT_DEFERRED);
			cr_expect_eq(mark_of(1), RCPT_PENDING, "call %u", nth);
		}
		go_on(0);
		cr_expect_str_eq(look(SPOOL_INCOMING), LIST, "call %u: %s", nth,
		    buf_str(&found));
	}
	cr_expect_gt(nth, 20u, "%u calls", nth);
}

/* ---- two recipients of one message, at the same time ---- */

Test(expand, two_recipients_of_a_message)
{
	static const char *const rcpts[] = { "sub@one.test", "sub2@one.test" };
	pid_t pid;
	int status, i;

	for (i = 0; i < 20; i++) {
		empty(SPOOL_INCOMING);
		empty(SPOOL_ACTIVE);
		accept_message(rcpts, 2);
		pid = fork();
		if (pid == 0) {
			do
				run_index("sub", 0);
			while (verdict.outcome == AGENT_DEFERRED);
			_exit(0);
		}
		do
			run_index("sub2", 1);
		while (verdict.outcome == AGENT_DEFERRED);
		cr_assert_eq(waitpid(pid, &status, 0), pid);
		cr_expect_str_eq(look(SPOOL_INCOMING),
		    "owner-sub@one.test: carl@one.test bob@far.test; "
		    "s@far.test: dora@one.test",
		    "%s", buf_str(&found));
	}
}
