#include "deliver-local/local.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/io.h"
#include "daemon/daemon.h"
#include "scratch.h"

#define TEXT(s) (s), sizeof(s) - 1

/* The whole program in a process, the test being supervisor and queue-send.
 * It runs as an ordinary user: users of the mail system need not exist. */
static pid_t pid;
static int sup = -1, work = -1;
static int log_out = -1; /* what it logs */
static struct message message;
static struct chan_frame in;

static void
become_ordinary(void)
{
	const struct passwd *pw = getpwnam(SCRATCH_USER);

	if (geteuid() == 0 &&
	    (pw == NULL || setgid(pw->pw_gid) < 0 || setuid(pw->pw_uid) < 0))
		_exit(99);
}

static void
own(const char *path)
{
	const struct passwd *pw = getpwnam(SCRATCH_USER);

	if (geteuid() == 0)
		cr_assert(chown(path, pw->pw_uid, pw->pw_gid) == 0);
}

static void
run_program(int channel, int log)
{
	char name[] = "deliver-local", c[] = "-c", queue[] = "3";
	char *conf = strdup(scratch_path("conf"));
	char *argv[] = { name, c, conf, queue, NULL };

	become_ordinary();
	dup2(log, 2);
	if (dup2(channel, DAEMON_CHANNEL_FD) < 0)
		_exit(98);
	close_range(DAEMON_CHANNEL_FD + 1, ~0u, 0);
	optind = 1;
	_exit(local_main(4, argv));
}

static void
write_files(const char *programs)
{
	struct buf conf = { 0 };

	buf_printf(&conf,
	    "queue_base = %s\nmaildir_path = %s/%%u\nprograms_file = %s\n"
	    "stop_time_limit = 20s\nlog_level = debug\n",
	    scratch(), scratch_path("mail"), scratch_path("programs"));
	own(scratch_file("conf", conf.data, conf.len));
	own(scratch_file("programs", programs, strlen(programs)));
	buf_done(&conf);
}

static void
receive(int sock)
{
	struct pollfd p = { .fd = sock, .events = POLLIN };
	int r;

	do {
		if (in.left == 0)
			cr_assert_eq(poll(&p, 1, 120000), 1, "no answer");
		r = chan_recv(sock, &in);
		/* An agent says first which process it is. */
	} while (r == -EAGAIN || (r == 1 && in.msg.type == MSG_AGENT));
	if (r != 1)
		in.msg.type = (enum msg_type)0;
}

static void
start(const char *programs)
{
	int fds[2], log[2];

	write_files(programs);
	if (access(scratch_path("mail"), F_OK) < 0)
		cr_assert(mkdir(scratch_path("mail"), 0700) == 0);
	own(scratch_path("mail"));
	cr_assert(chan_pair(fds) == 0 && pipe2(log, O_CLOEXEC) == 0);
	pid = fork();
	if (pid == 0)
		run_program(fds[1], log[1]);
	close(fds[1]);
	close(log[1]);
	log_out = log[0];
	sup = fds[0];
	receive(sup);
}

static void
link_up(int *ret_sock)
{
	const struct msg msg = { .type = MSG_LINK,
		.u.LINK = { .name = MSG_S("queue-send"), .generation = 1 } };
	int fds[2];

	cr_assert(chan_pair(fds) == 0);
	cr_assert_eq(chan_send(sup, &msg, fds[1]), 0);
	close(fds[1]);
	*ret_sock = fds[0];
}

static void
setup(void)
{
	signal(SIGPIPE, SIG_IGN);
	scratch_message(&message, "", "", TEXT("Subject: x\n\nbody\n"));
	start("true " SCRATCH_USER " /bin/true\n"
	      "wait " SCRATCH_USER " /bin/sleep 1000\n");
	cr_assert_eq(in.msg.type, MSG_READY);
	cr_expect_eq(in.msg.u.READY.pid, (uint32_t)pid);
	link_up(&work);
}

static int
status_of_end(void)
{
	int status = -1;

	cr_assert_eq(waitpid(pid, &status, 0), pid);
	pid = 0;
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void
teardown(void)
{
	io_close(&sup);
	io_close(&work);
	io_close(&log_out);
	if (pid > 0) {
		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
	}
	scratch_message_done(&message);
	scratch_done();
}

static void
send_delivery(uint64_t number, enum agent_kind kind, const char *nexthop)
{
	struct buf list = { 0 };
	struct msg msg = { .type = MSG_DELIVER };

	agent_rcpt_add(&list, 0, "bob@x", 5);
	msg.u.DELIVER = (struct msg_DELIVER){
		.job = number,
		.id = MSG_S("0A"),
		.kind = (uint8_t)kind,
		.transport = MSG_S("t"),
		.nexthop = MSG_S(nexthop),
		.sender = MSG_S("s@x"),
		.content_off = message.off,
		.content_len = message.len,
		.nrcpts = 1,
		.rcpts = { list.data, list.len },
	};
	cr_assert_eq(chan_send(work, &msg, message.fd), 0);
	buf_done(&list);
}

static bool
is(const struct msg_str *s, const char *want)
{
	return s->len == strlen(want) && memcmp(s->data, want, s->len) == 0;
}

Test(local, every_kind_has_its_answer, .init = setup, .fini = teardown)
{
	static const struct {
		enum agent_kind kind;
		const char *nexthop;
		enum agent_outcome outcome;
		const char *dsn, *relay, *text;
	} rows[] = {
		{ AGENT_LOCAL, "x", AGENT_SENT, "2.0.0", "local",
		    "delivered to maildir" },
		{ AGENT_PIPE, "true", AGENT_SENT, "2.0.0", "pipe:true",
		    "delivered to program true" },
		{ AGENT_DISCARD, "x", AGENT_SENT, "2.0.0", "discard",
		    "discarded" },
		{ AGENT_ERROR, "gone", AGENT_FAILED, "5.0.0", "none", "gone" },
		{ AGENT_ERROR, "4.7.1 later", AGENT_DEFERRED, "4.7.1", "none",
		    "later" },
	};
	size_t i;

	for (i = 0; i < ARRAY_LEN(rows); i++) {
		send_delivery(i, rows[i].kind, rows[i].nexthop);
		receive(work);
		cr_assert_eq(in.msg.type, MSG_RESULT, "row %zu", i);
		cr_expect_eq(in.msg.u.RESULT.outcome, rows[i].outcome);
		cr_expect(is(&in.msg.u.RESULT.dsn, rows[i].dsn), "row %zu", i);
		cr_expect(
		    is(&in.msg.u.RESULT.relay, rows[i].relay), "row %zu", i);
		cr_expect(
		    is(&in.msg.u.RESULT.text, rows[i].text), "row %zu", i);
		receive(work);
		cr_assert_eq(in.msg.type, MSG_DONE);
	}
	cr_expect_eq(scratch_count(scratch_path("mail/bob/new"), NULL), 1);
	send_delivery(9, AGENT_SMTP, "x");
	receive(work);
	cr_assert_eq(in.msg.type, MSG_DONE, "no transport of this agent");
}

Test(local, I18_rubbish_ends_nothing, .init = setup, .fini = teardown)
{
	int i;

	for (i = 0; i < 100; i++)
		cr_assert_gt(
		    send(work, "rubbish rubbish", (size_t)i % 15 + 1, 0), 0);
	send_delivery(1, AGENT_DISCARD, "x");
	receive(work);
	cr_expect_eq(in.msg.type, MSG_RESULT);
}

Test(local, P2_ends_when_queue_send_is_gone, .init = setup, .fini = teardown)
{
	send_delivery(1, AGENT_PIPE, "wait");
	send_delivery(2, AGENT_DISCARD, "x");
	receive(work); /* the first has begun by now */
	io_close(&work);
	cr_expect_eq(status_of_end(), 0);
}

Test(
    local, P2_ends_when_the_supervisor_is_gone, .init = setup, .fini = teardown)
{
	io_close(&sup);
	cr_expect_eq(status_of_end(), 0);
}

Test(local, P10_stop_lets_deliveries_end, .init = setup, .fini = teardown)
{
	const struct msg stop = { .type = MSG_STOP,
		.u.STOP = { .limit_usec = 2 * USEC_PER_SEC } };

	send_delivery(1, AGENT_PIPE, "wait");
	send_delivery(2, AGENT_DISCARD, "x");
	receive(work);
	receive(work);
	cr_assert_eq(chan_send(sup, &stop, -1), 0);
	receive(work); /* a second later, when it is asked to end */
	cr_assert_eq(in.msg.type, MSG_RESULT);
	cr_expect_eq(in.msg.u.RESULT.job, 1);
	cr_expect_eq(in.msg.u.RESULT.outcome, AGENT_DEFERRED);
	receive(work);
	cr_expect_eq(in.msg.type, MSG_DONE);
	cr_expect_eq(status_of_end(), 0);
}

Test(local, a_second_link_means_to_begin_anew, .init = setup, .fini = teardown)
{
	int other;

	link_up(&other);
	cr_expect_eq(status_of_end(), 0);
	close(other);
}

/* Until it has said this. */
static void
wait_for_log(const char *text)
{
	static char said[8192];
	static size_t len;
	struct pollfd p = { .fd = log_out, .events = POLLIN };

	while (strstr(said, text) == NULL) {
		cr_assert_eq(poll(&p, 1, 120000), 1, "not said: %s", text);
		ssize_t n = read(log_out, said + len, sizeof(said) - 1 - len);

		cr_assert_gt(n, 0, "not said: %s", text);
		len += (size_t)n;
	}
	memset(said, 0, sizeof(said));
	len = 0;
}

Test(
    local, reload_takes_programs_or_keeps_them, .init = setup, .fini = teardown)
{
	static const struct {
		const char *text;
		const char *verdict;
	} rows[] = {
		{ "true " SCRATCH_USER " relative\n",
		    "delivered to program true" },
		{ "true " SCRATCH_USER " /bin/false\n",
		    "program true ended with unknown status 1" },
		{ "rubbish\n", "program true ended with unknown status 1" },
		{ "true " SCRATCH_USER " /bin/true\n",
		    "delivered to program true" },
	};
	const struct msg reload = { .type = MSG_RELOAD };
	size_t i;

	for (i = 0; i < ARRAY_LEN(rows); i++) {
		write_files(rows[i].text);
		cr_assert_eq(chan_send(sup, &reload, -1), 0);
		wait_for_log("configuration reloaded");
		send_delivery(i, AGENT_PIPE, "true");
		receive(work);
		cr_assert_eq(in.msg.type, MSG_RESULT);
		cr_expect(
		    is(&in.msg.u.RESULT.text, rows[i].verdict), "row %zu", i);
		receive(work);
	}
}

Test(local, F4_wrong_programs_refuse_to_start, .fini = teardown)
{
	scratch_message(&message, "", "", TEXT("x"));
	start("true nobody relative\n");
	cr_expect_eq(in.msg.type, MSG_STATUS, "why, and not that it is ready");
	cr_expect_eq(status_of_end(), EXIT_PERMANENT);
}
