/* What is counted of the acts of an operator, for the log. */
#include "tests/unit/queue-send/slow.h"

#include "log/log.h"
#include "queue-send/operators/own.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <event2/event.h>
#include <sys/mman.h>
#include <string.h>
#include <unistd.h>

static int said; /* standard error, where the log goes, is a file */

/* Before the log is opened. */
static void
set_up(void)
{
	said = memfd_create("log", MFD_CLOEXEC);
	cr_assert_geq(said, 0);
	cr_assert_geq(dup2(said, STDERR_FILENO), 0);
	slow_set_up();
}

TestSuite(words, .init = set_up, .fini = slow_tear_down, .timeout = 60);

static void
begin_log(void)
{
	log_open("test", LOG_TARGET_STDERR, LOG_FORMAT_TEXT, LOG_INFO_L);
}

static void
end_log(const char *want)
{
	char text[4096];
	ssize_t n;

	log_flush();
	world_be_silent();
	n = pread(said, text, sizeof(text) - 1, 0);
	cr_assert_geq(n, 0);
	text[n] = '\0';
	cr_expect(strstr(text, want) != NULL, "got: %s", text);
	close(said);
}

static int
new_operator(void)
{
	int fd;

	operators_init(&slow_w.s);
	fd = world_operator(&slow_w);
	world_run(&slow_w);
	return fd;
}

static void
send_act(int fd, enum spool_act act, const struct queue_id *id, uint64_t serial)
{
	const struct msg msg = { .type = MSG_ACT,
		.u.ACT = { serial, act, id->arrival_wall, id->nonce, id->queue,
		    id->inode } };

	world_send(fd, &msg);
	world_run(&slow_w);
}

static int
answer_of(int fd)
{
	static struct chan_frame frame; /* large */

	cr_assert_eq(chan_recv(fd, &frame), 1);
	cr_assert_eq(frame.msg.type, MSG_ACTED);
	return frame.msg.u.ACTED.error;
}

static void
send_words(int fd, const char *words)
{
	const struct msg msg = { .type = MSG_ACT_END,
		.u.ACT_END = { ACT_DELETE, { words, strlen(words) } } };

	world_send(fd, &msg);
	world_run(&slow_w);
}

/* mutation: queue-send/operators/operators_acts.c: answer_act() believes that
 * the connection is there; operators.c: drop() frees it. */
Test(words, D43_A3_an_act_ends_without_its_operator)
{
	struct operator* gone;
	struct queue_id ids[2];
	int fd;

	slow_use_act_threads(1);
	fd = new_operator();
	ids[0] = world_id(&slow_w, slow_lay(SPOOL_DEFERRED));
	ids[1] = world_id(&slow_w, slow_lay(SPOOL_DEFERRED));
	slow_close();
	slow_came = 0;
	send_words(fd, "delete ALL");
	send_act(fd, ACT_DELETE, &ids[0], 1);
	send_act(fd, ACT_DELETE, &ids[1], 1);
	slow_await(1);
	begin_log();
	close(fd);
	world_run(&slow_w);
	cr_expect_eq(slow_w.s.operators->count, 0);
	gone = TAILQ_FIRST(&slow_w.s.operators->list);
	cr_assert_not_null(gone);
	cr_expect_str_eq(gone->words, "delete ALL");
	slow_open(1);
	while (slow_w.s.acts.count > 0)
		event_base_loop(slow_w.s.base, EVLOOP_ONCE);
	cr_expect_eq(world_where(&slow_w, ids[0].inode), SPOOL_DELETED);
	cr_expect_eq(world_where(&slow_w, ids[1].inode), SPOOL_DELETED);
	cr_expect(TAILQ_EMPTY(&slow_w.s.operators->list));
	end_log("delete 2 messages (delete ALL, interrupted)");
	operators_done(&slow_w.s);
}

Test(words, D43_A3_a_stop_tells_of_acts_without_an_answer)
{
	struct queue_id id;
	int fd;

	slow_use_act_threads(1);
	fd = new_operator();
	id = world_id(&slow_w, slow_lay(SPOOL_DEFERRED));
	slow_close();
	slow_came = 0;
	send_words(fd, "delete ALL");
	send_act(fd, ACT_DELETE, &id, 1);
	slow_await(1);
	begin_log();
	operators_done(&slow_w.s);
	end_log("delete 0 messages, 1 without an answer (delete ALL, "
		"interrupted)");
	slow_open(1);
	while (slow_w.s.acts.count > 0)
		event_base_loop(slow_w.s.base, EVLOOP_ONCE);
	close(fd);
}

/* mutation: queue-send/operators/operators_acts.c: say_acts() logs nothing when
 * no act is under way. */
Test(words, D43_A3_a_connection_that_ends_behind_its_answers)
{
	struct queue_id id;
	int fd;

	slow_use_act_threads(1);
	fd = new_operator();
	id = world_id(&slow_w, slow_lay(SPOOL_DEFERRED));
	slow_act_waits(ACT_HOLD, id.inode);
	send_words(fd, "delete ALL");
	send_act(fd, ACT_DELETE, &id, 1);
	cr_expect_eq(answer_of(fd), -EAGAIN);
	begin_log();
	close(fd);
	world_run(&slow_w);
	end_log("delete 0 messages, 1 not (delete ALL, interrupted)");
	slow_open(1);
	operators_done(&slow_w.s);
}

/* mutation: queue-send/operators/operators_acts.c: order() counts each try. */
Test(words, D43_A3_a_message_that_is_asked_about_again_counts_once)
{
	struct operator* o;
	struct queue_id id;
	uint64_t serial;
	int fd;

	slow_use_act_threads(1);
	fd = new_operator();
	id = world_id(&slow_w, slow_lay(SPOOL_DEFERRED));
	slow_act_waits(ACT_HOLD, id.inode);
	for (serial = 1; serial <= 3; serial++) {
		send_act(fd, ACT_DELETE, &id, serial);
		cr_expect_eq(answer_of(fd), -EAGAIN);
	}
	o = TAILQ_FIRST(&slow_w.s.operators->list);
	cr_expect_eq(o->again, 1);
	cr_expect_eq(o->refused, 0);
	cr_expect_eq(o->done, 0);
	slow_open(1);
	operators_done(&slow_w.s);
}
