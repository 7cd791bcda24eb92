/* Where lines go, and a reader that does not read. Every test is a process of
 * its own, so its standard error is its own to replace. */
#include "log/log.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <syslog.h>
#include <unistd.h>

#include "base/io.h"
#include "log/parts.h"

static char output[1 << 20];

/* Standard error becomes this descriptor for the time of a test. */
static int saved_err = -1;

static void
take_stderr(int fd)
{
	saved_err = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3);
	cr_assert_geq(saved_err, 0);
	cr_assert_geq(dup2(fd, STDERR_FILENO), 0);
}

static void
give_stderr(void)
{
	cr_assert_geq(dup2(saved_err, STDERR_FILENO), 0);
	io_close(&saved_err);
}

/* All that is there, without waiting for more. */
static size_t
drain(int fd)
{
	ssize_t n;
	size_t len = 0;

	cr_assert_eq(io_nonblock(fd), 0);
	while (len < sizeof(output) - 1 &&
	    (n = read(fd, output + len, sizeof(output) - 1 - len)) > 0)
		len += (size_t)n;
	output[len] = '\0';
	return len;
}

Test(log_write, to_a_pipe)
{
	int p[2];

	cr_assert_eq(pipe2(p, O_CLOEXEC), 0);
	take_stderr(p[1]);
	log_open(
	    "deliver-local/1", LOG_TARGET_STDERR, LOG_FORMAT_TEXT, LOG_INFO_L);
	log_debug("not shown");
	log_info("one %d", 1);
	errno = EIO;
	log_error("two: %s", strerror(errno));
	cr_expect_eq(errno, EIO);
	give_stderr();
	drain(p[0]);
	cr_expect_str_eq(output,
	    "deliver-local/1: one 1\n"
	    "deliver-local/1: error: two: Input/output error\n");
	cr_expect_eq(log_dropped(), 0);
}

/* The stream that systemd connects to the journal takes a priority off each
 * line. */
Test(log_write, to_the_journal)
{
	char stream[64];
	struct stat st;
	int p[2];

	cr_assert_eq(pipe2(p, O_CLOEXEC), 0);
	cr_assert_eq(fstat(p[1], &st), 0);
	snprintf(stream, sizeof(stream), "%ju:%ju", (uintmax_t)st.st_dev,
	    (uintmax_t)st.st_ino);
	cr_assert_eq(setenv("JOURNAL_STREAM", stream, 1), 0);
	take_stderr(p[1]);
	log_open("p", LOG_TARGET_STDERR, LOG_FORMAT_TEXT, LOG_DEBUG_L);
	log_debug("a");
	log_info("b");
	log_warning("c");
	log_error("d");
	log_error("ALERT: e");
	/* Standard error leads elsewhere. */
	cr_assert_eq(setenv("JOURNAL_STREAM", "1:1", 1), 0);
	log_open("p", LOG_TARGET_STDERR, LOG_FORMAT_TEXT, LOG_DEBUG_L);
	log_info("f");
	give_stderr();
	drain(p[0]);
	cr_expect_str_eq(output,
	    "<7>p: a\n<6>p: b\n<4>p: warning: c\n<3>p: error: d\n"
	    "<1>p: error: ALERT: e\np: f\n");
}

Test(log_write, to_a_file)
{
	char path[] = "/tmp/log_write.XXXXXX";
	int fd = mkostemp(path, O_CLOEXEC);

	cr_assert_geq(fd, 0);
	cr_assert_eq(unlink(path), 0);
	take_stderr(fd);
	log_open("p", LOG_TARGET_STDERR, LOG_FORMAT_JSON, LOG_DEBUG_L);
	log_debug("a \"b\"");
	give_stderr();
	cr_assert_gt(io_pread_all(fd, output, sizeof(output) - 1, 0), 0);
	cr_expect_not_null(strstr(output,
	    "\"level\":\"debug\",\"event\":\"note\","
	    "\"text\":\"a \\\"b\\\"\"}\n"));
	io_close(&fd);
}

Test(log_write, a_part_of_the_program_and_a_message)
{
	const struct log_field field = LOG_INT("uid", 7);
	const struct log_event event = { .level = LOG_INFO_L,
		.name = "accepted",
		.id = "5A",
		.part = "pickup",
		.fields = &field,
		.nfields = 1 };
	int p[2];

	cr_assert_eq(pipe2(p, O_CLOEXEC), 0);
	take_stderr(p[1]);
	log_open(
	    "queue-send/1", LOG_TARGET_STDERR, LOG_FORMAT_TEXT, LOG_INFO_L);
	log_write(&event);
	log_message(LOG_WARNING_L, "held", "5A", "held: %d", 2);
	log_message(LOG_DEBUG_L, "held", "5A", "not shown");
	log_open(
	    "queue-send/1", LOG_TARGET_STDERR, LOG_FORMAT_JSON, LOG_INFO_L);
	log_write(&event);
	give_stderr();
	drain(p[0]);
	cr_expect_not_null(strstr(output,
	    "queue-send/1/pickup: 5A: uid=7\n"
	    "queue-send/1: warning: 5A: held: 2\n"));
	cr_expect_not_null(strstr(output,
	    "\"program\":\"queue-send/1\",\"level\":\"info\","
	    "\"event\":\"accepted\",\"queue_id\":\"5A\",\"uid\":7}\n"));
}

Test(log_write, the_event_of_a_line_of_text)
{
	cr_expect_str_eq(log_topic("queue-send/state/loop.c"), "clock");
	cr_expect_str_eq(log_topic("no/such.c"), "note");
}

/* Fill what stands for standard error until lines are lost, read it empty,
 * and see that nothing waited and the loss is told. */
static void
stuck_reader(int read_fd, int write_fd)
{
	char *end;
	size_t len;
	int i;

	take_stderr(write_fd);
	log_open("p", LOG_TARGET_STDERR, LOG_FORMAT_TEXT, LOG_INFO_L);
	alarm(120); /* a write that waits ends the test as a crash */
	for (i = 0; i < 100000 && log_dropped() < 10; i++)
		log_info("%0100d", i);
	cr_assert_eq(log_dropped(), 10);
	len = drain(read_fd);
	cr_expect_eq(output[len - 1], '\n', "half a line was written");
	log_info("again");
	len = drain(read_fd);
	cr_expect_str_eq(output,
	    "p: warning: lines=10 (lost: the reader of the log did not keep "
	    "up)\np: again\n");
	log_info("and again");
	drain(read_fd);
	cr_expect_str_eq(output, "p: and again\n");
	end = output;
	cr_expect_null(strstr(end, "lost"));
	alarm(0);
	give_stderr();
}

Test(log_write, P21_a_pipe_that_nobody_reads)
{
	int p[2];

	cr_assert_eq(pipe2(p, O_CLOEXEC), 0);
	stuck_reader(p[0], p[1]);
	/* How others have the pipe open has not changed. */
	cr_expect_eq(fcntl(p[1], F_GETFL) & O_NONBLOCK, 0);
}

Test(log_write, P21_a_socket_that_nobody_reads)
{
	int s[2];

	cr_assert_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, s), 0);
	stuck_reader(s[0], s[1]);
}

Test(log_write, P21_a_pipe_that_cannot_be_opened_again)
{
	static char fill[4096];
	char line[128];
	int p[2];
	struct log_sink sink;
	struct log_batch batch = { 0 };

	cr_assert_eq(pipe2(p, O_CLOEXEC | O_NONBLOCK), 0);
	while (write(p[1], fill, sizeof(fill)) > 0)
		;
	cr_assert_eq(fcntl(p[1], F_SETFL, 0), 0);
	sink = (struct log_sink){ .fd = p[1], .waits = true };
	memset(line, 'x', sizeof(line));
	cr_assert_eq(log_batch_add(&batch, line, sizeof(line)), 0);
	cr_assert_eq(log_batch_add(&batch, line, sizeof(line)), 0);
	alarm(120);
	cr_expect_eq(log_sink_write(&sink, &batch, 0), 0);
	drain(p[0]);
	cr_expect_eq(log_sink_write(&sink, &batch, 1), 2);
	cr_expect_eq(drain(p[0]), sizeof(line));
	alarm(0);
	buf_done(&batch.data);
}

Test(log_write, P21_a_reader_that_has_gone)
{
	int p[2];

	signal(SIGPIPE, SIG_IGN);
	cr_assert_eq(pipe2(p, O_CLOEXEC), 0);
	take_stderr(p[1]);
	log_open("p", LOG_TARGET_STDERR, LOG_FORMAT_TEXT, LOG_INFO_L);
	io_close(&p[0]);
	log_info("into nothing");
	log_info("into nothing");
	cr_expect_eq(log_dropped(), 2);
	give_stderr();
}

Test(log_write, P18_no_standard_error_at_all)
{
	int err = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3);

	close(STDERR_FILENO);
	log_open("p", LOG_TARGET_STDERR, LOG_FORMAT_TEXT, LOG_INFO_L);
	log_info("into nothing");
	cr_assert_eq(dup2(err, STDERR_FILENO), STDERR_FILENO);
	cr_expect_eq(log_dropped(), 1);
}

/* ---- syslog ---- */

static int
syslog_server(const char *path)
{
	struct sockaddr_un at = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	cr_assert_geq(fd, 0);
	snprintf(at.sun_path, sizeof(at.sun_path), "%s", path);
	cr_assert_eq(bind(fd, (const struct sockaddr *)&at, sizeof(at)), 0);
	return fd;
}

/* One line, as log.c makes it. */
static bool
send_line(int *fd, const char *path, const char *text)
{
	struct log_batch batch = { 0 };
	struct buf line = { 0 };
	bool sent;

	cr_assert_eq(log_sink_syslog_head(&line, LOG_INFO, "p/1"), 0);
	cr_assert_eq(buf_add_str(&line, text), 0);
	cr_assert_eq(log_batch_add(&batch, line.data, line.len), 0);
	sent = log_sink_syslog_send(fd, path, &batch, 0) == 1;
	buf_done(&line);
	buf_done(&batch.data);
	return sent;
}

Test(log_write, P21_syslog_that_stops_and_comes_back)
{
	char dir[] = "/tmp/log_write.XXXXXX", path[64];
	int server, fd = -1, i;
	char head[64];

	cr_assert_not_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/log", dir);
	alarm(120);
	cr_expect_not(send_line(&fd, path, "text"));
	server = syslog_server(path);
	cr_expect(send_line(&fd, path, "text"));
	drain(server);
	snprintf(head, sizeof(head), "<%d>", LOG_MAIL | LOG_INFO);
	cr_expect_eq(strncmp(output, head, strlen(head)), 0);
	snprintf(head, sizeof(head), " p/1[%d]: text", (int)getpid());
	cr_expect_str_eq(output + strlen(output) - strlen(head), head);
	/* Full: lost, not waited for. */
	for (i = 0; i < 10000; i++)
		if (!send_line(&fd, path, "text"))
			break;
	cr_expect_lt(i, 10000);
	/* Another one takes its place. */
	io_close(&server);
	cr_assert_eq(unlink(path), 0);
	server = syslog_server(path);
	cr_expect(send_line(&fd, path, "again"));
	cr_expect_gt(drain(server), 0);
	alarm(0);
	io_close(&server);
	io_close(&fd);
	cr_expect_eq(unlink(path), 0);
	cr_expect_eq(rmdir(dir), 0);
}

/* Several lines: a datagram each, as many as fit. */
Test(log_write, P21_lines_to_syslog_stay_apart)
{
	char dir[] = "/tmp/log_write.XXXXXX", path[64], got[16];
	struct log_batch batch = { 0 };
	int server, fd, room = 1; /* the least that the kernel gives */
	size_t first = 0;

	cr_assert_not_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/log", dir);
	server = syslog_server(path);
	cr_assert_eq(io_nonblock(server), 0);
	while (log_batch_add(&batch, "line", 4) == 0)
		;
	cr_expect_eq(batch.count, (size_t)LOG_BATCH_LINES);
	/* Its room bounds what waits, whatever net.unix.max_dgram_qlen is: the
	 * kernel's 10, or 512 since systemd. */
	fd = log_sink_syslog(path);
	cr_assert_geq(fd, 0);
	cr_assert_eq(
	    setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &room, sizeof(room)), 0);
	first = log_sink_syslog_send(&fd, path, &batch, 0);
	cr_expect_gt(first, 0);
	cr_expect_lt(first, batch.count);
	for (; first > 0; first--)
		cr_expect_eq(read(server, got, sizeof(got)), 4);
	cr_expect_eq(read(server, got, sizeof(got)), -1);
	io_close(&server);
	io_close(&fd);
	buf_done(&batch.data);
	cr_expect_eq(unlink(path), 0);
	cr_expect_eq(rmdir(dir), 0);
}

/* ---- lines of a turn ---- */

Test(log_write, gathered_lines_are_one_write)
{
	int s[2];

	cr_assert_eq(pipe2(s, O_CLOEXEC), 0);
	take_stderr(s[1]);
	log_open("p", LOG_TARGET_STDERR, LOG_FORMAT_TEXT, LOG_INFO_L);
	log_gather(true);
	log_info("one");
	log_warning("two");
	cr_expect_eq(drain(s[0]), 0);
	log_flush();
	drain(s[0]);
	cr_expect_str_eq(output, "p: one\np: warning: two\n");
	log_info("three");
	log_gather(false);
	log_info("four");
	give_stderr();
	drain(s[0]);
	cr_expect_str_eq(output, "p: three\np: four\n");
}

Test(log_write, more_lines_than_a_batch_has_keep_their_order)
{
	char path[] = "/tmp/log_write.XXXXXX", *at = output;
	int fd = mkostemp(path, O_CLOEXEC), i;

	cr_assert_geq(fd, 0);
	cr_assert_eq(unlink(path), 0);
	take_stderr(fd);
	log_open("p", LOG_TARGET_STDERR, LOG_FORMAT_TEXT, LOG_INFO_L);
	log_gather(true);
	for (i = 0; i < 5 * LOG_BATCH_LINES; i++)
		log_info("%0*d", i % 7 == 0 ? 3000 : 5, i);
	log_gather(false);
	give_stderr();
	cr_assert_gt(io_pread_all(fd, output, sizeof(output) - 1, 0), 0);
	for (i = 0; i < 5 * LOG_BATCH_LINES; i++) {
		cr_assert_eq(strncmp(at, "p: ", 3), 0);
		cr_expect_eq(strtol(at + 3, &at, 10), i);
		cr_assert_eq(*at++, '\n');
	}
	cr_expect_eq(*at, '\0');
	cr_expect_eq(log_dropped(), 0);
	io_close(&fd);
}

/* A pipe with room for some of the lines takes those, and the rest is counted.
 */
Test(log_write, P21_a_pipe_with_room_for_a_part_of_a_turn)
{
	static char fill[65536];
	char *line;
	int p[2], i, got;

	cr_assert_eq(pipe2(p, O_CLOEXEC), 0);
	cr_assert_eq(fcntl(p[1], F_SETPIPE_SZ, 8192), 8192);
	/* A part of a page is left: two lines fit, four at once do not. */
	cr_assert_eq(write(p[1], fill, 6096), 6096);
	take_stderr(p[1]);
	log_open("p", LOG_TARGET_STDERR, LOG_FORMAT_TEXT, LOG_INFO_L);
	log_gather(true);
	for (i = 0; i < 50; i++)
		log_info("%01019d", i); /* 1023 bytes */
	log_flush();
	cr_expect_eq(log_dropped(), 48);
	cr_expect_eq(drain(p[0]), 6096 + 2 * 1023);
	for (line = output + 6096, got = 0; got < 2; got++, line += 1023)
		cr_expect_eq(strtol(line + 3, NULL, 10), got);
	log_info("again");
	log_flush();
	drain(p[0]);
	cr_expect_str_eq(output,
	    "p: warning: lines=48 (lost: the reader of the log did not keep "
	    "up)\np: again\n");
	give_stderr();
}

Test(log_write, P21_a_line_that_is_torn_is_lost_and_not_repeated)
{
	const struct rlimit limit = { 25, RLIM_INFINITY };
	char path[] = "/tmp/log_write.XXXXXX";
	int fd = mkostemp(path, O_CLOEXEC);

	cr_assert_geq(fd, 0);
	cr_assert_eq(unlink(path), 0);
	signal(SIGXFSZ, SIG_IGN);
	take_stderr(fd);
	log_open("p", LOG_TARGET_STDERR, LOG_FORMAT_TEXT, LOG_INFO_L);
	cr_assert_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
	log_gather(true);
	log_info("123456"); /* 10 bytes a line */
	log_info("abcdef");
	log_info("ABCDEF");
	log_info("UVWXYZ");
	log_flush();
	give_stderr();
	cr_expect_eq(log_dropped(), 2);
	cr_assert_eq(io_pread_all(fd, output, sizeof(output) - 1, 0), 25);
	cr_expect_eq(memcmp(output, "p: 123456\np: abcdef\np: AB", 25), 0);
	io_close(&fd);
}

Test(log_write, due_at_most_once_in_a_while)
{
	usec_t last = 0;

	cr_expect(log_due(0, 10, &last));
	cr_expect_not(log_due(5, 10, &last));
	cr_expect(log_due(11, 10, &last));
	cr_expect_not(log_due(20, 10, &last));
	cr_expect(log_due(21, 10, &last));
}
