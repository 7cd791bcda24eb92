/* A reload whose files are on a disk that hangs. */
#include "tests/unit/common/daemon_child.h"

#include <criterion/criterion.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- the program ---- */

static bool hangs;
static char gate[64];

static int
say_start(struct daemon *d)
{
	daemon_ready(d);
	return 0;
}

/* The files are on a disk that hangs until a byte comes through the gate. */
static int
read_slowly(const struct conf *fresh, void **ret_made, struct buf *ret_error)
{
	int fd = open(gate, O_RDONLY | O_CLOEXEC);
	char c = '-';

	(void)!read(fd, &c, 1);
	close(fd);
	if (c == '-')
		return buf_printf(ret_error, "made of %u: no",
			   fresh->queue_load_pct) < 0
		    ? -ENOMEM
		    : -EINVAL;
	*ret_made = strdup("made");
	return *ret_made == NULL ? -ENOMEM : 0;
}

static void
say_reload(struct daemon *d, const struct conf *fresh)
{
	char text[100];

	snprintf(text, sizeof(text), "reload %u %u", d->conf->queue_load_pct,
	    fresh->queue_load_pct);
	daemon_status(d, text);
	daemon_status(d, d->made == NULL ? "none" : d->made);
	free(d->made);
}

static void
say_flush(struct daemon *d)
{
	daemon_status(d, "flush");
}

static void
say_stop(struct daemon *d, usec_t limit UNUSED)
{
	daemon_status(d, "stop");
	if (!hangs)
		daemon_exit(d, 7);
}

static const struct daemon_ops ops = {
	.name = "test-daemon",
	.user = DAEMON_AS_QMAILR,
	.start = say_start,
	.read = read_slowly,
	.drop = free,
	.reload = say_reload,
	.flush = say_flush,
	.stop = say_stop,
};

/* ---- the tests ---- */

static void
set_up(void)
{
	child_ops = &ops;
	child_set_up();
	snprintf(gate, sizeof(gate), "%s/gate", child_dir);
	cr_assert_eq(mkfifo(gate, 0600), 0);
	cr_assert_eq(chmod(gate, 0644), 0);
}

static void
tear_down(void)
{
	unlink(gate);
	child_tear_down();
}

TestSuite(daemon_reload, .init = set_up, .fini = tear_down);

static const struct msg reload_msg = { .type = MSG_RELOAD };
static const struct msg flush_msg = { .type = MSG_FLUSH };

static pid_t
start_slow(int *ret_sock)
{
	pid_t pid = child_start(ret_sock);

	cr_expect_str_eq(child_heard(*ret_sock), "READY");
	return pid;
}

static void
configure(int sock, const char *conf)
{
	child_write_conf(conf);
	child_tell(sock, &reload_msg, -1);
}

/* A thread that reads is at the gate; its end. */
static int
await_reader(void)
{
	int fd, n;

	for (n = 0; n < CHILD_LIMIT_MSEC / 10; n++) {
		fd = open(gate, O_WRONLY | O_NONBLOCK | O_CLOEXEC);
		if (fd >= 0)
			return fd;
		(void)usleep(10000);
	}
	cr_assert_fail("no thread reads");
	return -1;
}

static void
let_read(int fd, char how)
{
	cr_assert_eq(write(fd, &how, 1), 1);
	close(fd);
}

static void
expect_it_goes_on(int sock, uint32_t serial)
{
	const struct msg ping = { .type = MSG_PING,
		.u.PING = { .serial = serial } };

	child_tell(sock, &ping, -1);
	cr_expect_str_eq(child_heard(sock), "PONG");
	cr_expect_eq(child_frame.msg.u.PONG.serial, serial);
}

Test(daemon_reload, D43_a_thread_reads_what_is_reloaded)
{
	int sock, at_gate;
	pid_t pid = start_slow(&sock);

	configure(sock, "queue_load = 60");
	at_gate = await_reader();
	child_tell(sock, &flush_msg, -1);
	expect_it_goes_on(sock, 1);
	let_read(at_gate, '+');
	cr_expect_str_eq(child_heard(sock), "reload 50 60");
	cr_expect_str_eq(child_heard(sock), "made");
	cr_expect_str_eq(
	    child_heard(sock), "flush"); /* by what it came behind */
	close(sock);
	cr_expect_eq(child_finish(pid), 7);
}

Test(daemon_reload, P11_D43_reloads_meanwhile_make_one_more)
{
	int sock, at_gate;
	pid_t pid = start_slow(&sock);

	configure(sock, "queue_load = 60");
	at_gate = await_reader();
	configure(sock, "queue_load = 70");
	configure(sock, "queue_load = 80");
	expect_it_goes_on(sock, 1);
	let_read(at_gate, '+');
	cr_expect_str_eq(child_heard(sock), "reload 50 60");
	cr_expect_str_eq(child_heard(sock), "made");
	let_read(await_reader(), '+');
	cr_expect_str_eq(child_heard(sock), "reload 60 80");
	cr_expect_str_eq(child_heard(sock), "made");
	child_tell(sock, &flush_msg, -1); /* would wait for another one */
	cr_expect_str_eq(child_heard(sock), "flush");
	close(sock);
	cr_expect_eq(child_finish(pid), 7);
}

Test(daemon_reload, D43_what_a_thread_cannot_read_stays)
{
	int sock;
	pid_t pid = start_slow(&sock);

	configure(sock, "queue_load = 60\nqueue_load = 70"); /* no gate */
	cr_expect(strstr(child_heard_all(sock), "the old configuration stays"));
	configure(sock, "queue_load = 60");
	let_read(await_reader(), '-');
	cr_expect_str_eq(child_heard(sock), "reload 50 60");
	cr_expect_str_eq(child_heard(sock), "none");
	cr_expect_str_eq(child_heard_all(sock), "error: made of 60: no");
	close(sock);
	cr_expect_eq(child_finish(pid), 7);
}

/* mutation: common/daemon/reload.c: daemon_reload_done() waits for the thread.
 */
Test(daemon_reload, P10_D43_a_stop_waits_for_no_reload)
{
	const struct msg stop = { .type = MSG_STOP,
		.u.STOP = { .limit_usec = USEC_PER_SEC } };
	int sock, at_gate;
	pid_t pid = start_slow(&sock);

	configure(sock, "queue_load = 60");
	at_gate = await_reader();
	child_tell(sock, &reload_msg, -1);
	child_tell(sock, &flush_msg, -1);
	child_tell(sock, &stop, -1);
	cr_expect_str_eq(child_heard(sock), "stop");
	cr_expect_str_eq(child_heard(sock), "end");
	cr_expect_eq(child_finish(pid), 7);
	close(at_gate);
}

/* What has been read when the stop begins is dropped. */
Test(daemon_reload, P10_D43_a_reload_that_ends_in_a_stop_is_dropped)
{
	const struct msg stop = { .type = MSG_STOP,
		.u.STOP = { .limit_usec = 1 } };
	int sock, at_gate;
	pid_t pid;

	hangs = true;
	pid = start_slow(&sock);
	configure(sock, "queue_load = 60");
	at_gate = await_reader();
	child_tell(sock, &reload_msg, -1);
	child_tell(sock, &flush_msg, -1);
	child_tell(sock, &stop, -1);
	cr_expect_str_eq(child_heard(sock), "stop");
	let_read(at_gate, '+');
	cr_expect_str_eq(child_heard(sock), "end");
	cr_expect_eq(child_finish(pid), EXIT_TEMPORARY);
}
