/* What the children do. They are started with the name of a role; what they
 * are to do is read from the stage's directory. */
#include "fake.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/io.h"
#include "daemon/daemon.h"
#include "ipc/msg.h"
#include "qscheduler/supervisor/supervisor.h"

/* The four of a queue, and two that the product does not have. */
static const struct role roles[] = {
	{ .name = "queue-send",
	    .user = DAEMON_AS_ROOT,
	    .objects = OBJECT(PAGE) | OBJECT(REPORTS) | OBJECT(SITES),
	    .leads = true },
	{ .name = "todo-proc",
	    .user = DAEMON_AS_ROOT,
	    .objects = OBJECT(BELL) },
	{ .name = "deliver-local", .user = DAEMON_AS_ROOT, .stops_last = true },
	{ .name = "deliver-smtp", .user = DAEMON_AS_ROOT, .stops_last = true },
	{ .name = "fake-server",
	    .scope = SCOPE_INSTANCE,
	    .user = DAEMON_AS_ROOT,
	    .objects = OBJECT(REPORTS),
	    .args = { "--listen", "25" } },
	{ .name = "fake-second",
	    .scope = SCOPE_INSTANCE,
	    .user = DAEMON_AS_ROOT },
};
const struct role_table stage_roles = { roles, ARRAY_LEN(roles) };

static int say_fd = -1;

static void
say(const char *what)
{
	const char *role = basename(program_invocation_name);
	char text[SAID_SIZE] = { 0 };

	snprintf(text, sizeof(text), "%s %s %d", role, what, (int)getpid());
	(void)io_write_all(say_fd, text, sizeof(text));
}

static void
send_up(const struct msg *msg, int fd)
{
	while (chan_send(DAEMON_CHANNEL_FD, msg, fd) == -EAGAIN) {
		struct pollfd look = { DAEMON_CHANNEL_FD, POLLOUT, 0 };

		(void)poll(&look, 1, -1);
	}
}

static void
send_ready(void)
{
	const struct msg ready = { .type = MSG_READY };

	send_up(&ready, -1);
}

static void
print_list(const struct msg_str *queues, char *out, size_t size)
{
	size_t i, n = (size_t)snprintf(out, size, "HAND_OVER");

	for (i = 0; i + 4 <= queues->len; i += 4)
		n +=
		    (size_t)snprintf(out + n, size - n, " %d", queues->data[i]);
	snprintf(out + n, size - n, " of");
}

static void
send_pong(uint32_t serial)
{
	const struct msg pong = { .type = MSG_PONG,
		.u.PONG = { .serial = serial } };

	send_up(&pong, -1);
}

static void
say_frame(const struct msg *msg)
{
	char text[100];

	if (msg->type == MSG_LINK)
		snprintf(text, sizeof(text), "LINK %.*s of %u",
		    (int)msg->u.LINK.name.len, msg->u.LINK.name.data,
		    msg->u.LINK.generation);
	else if (msg->type == MSG_HAND_OVER)
		print_list(&msg->u.HAND_OVER.queues, text, sizeof(text));
	else
		snprintf(text, sizeof(text), "%s", msg_name(msg->type));
	say(text);
}

/* It ends well when it loses the other end of its last link. */
static void
end_with_link(void)
{
	static struct chan_frame frame;
	struct pollfd look[2] = { { DAEMON_CHANNEL_FD, POLLIN, 0 },
		{ -1, 0, 0 } };

	send_ready();
	for (;;) {
		(void)poll(look, 2, -1);
		if (look[1].fd >= 0 && (look[1].revents & POLLHUP) != 0) {
			say("lost");
			_exit(0);
		}
		if (look[0].revents == 0)
			continue;
		if (chan_recv(DAEMON_CHANNEL_FD, &frame) == 0)
			_exit(0);
		say_frame(&frame.msg);
		if (frame.msg.type == MSG_LINK &&
		    frame.msg.u.LINK.name.len == strlen("deliver-smtp"))
			look[1].fd = frame.fd;
	}
}

static _Noreturn void
serve(void)
{
	static struct chan_frame frame;

	for (;;) {
		struct pollfd look = { DAEMON_CHANNEL_FD, POLLIN, 0 };
		int r;

		(void)poll(&look, 1, -1);
		r = chan_recv(DAEMON_CHANNEL_FD, &frame);
		if (r == 0) {
			say("EOF");
			_exit(0);
		}
		if (r < 0)
			continue;
		io_close(&frame.fd);
		say_frame(&frame.msg);
		if (frame.msg.type == MSG_PING)
			send_pong(frame.msg.u.PING.serial);
		if (frame.msg.type == MSG_STOP)
			_exit(0);
	}
}

static void
be_ready(void)
{
	signal(SIGTERM, SIG_IGN); /* STOP comes with it */
	send_ready();
	serve();
}

/* An operator has moved files of its queue to others. */
static void
tell_moved(void)
{
	const struct msg moved = { .type = MSG_HANDED,
		.u.HANDED = { .moved = 3 } };

	signal(SIGTERM, SIG_IGN);
	send_ready();
	send_up(&moved, -1);
	serve();
}

/* A message that came while the others were asked to end, once. */
static void
put_late_mail(const char *dir)
{
	char line[256] = { 0 }, path[300];
	int fd = open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? 0 : read(fd, line, sizeof(line) - 1);

	io_close(&fd);
	snprintf(path, sizeof(path), "%s/late", dir);
	fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0 || n < 2)
		return;
	io_close(&fd);
	for (n--; n > 0 && line[n - 1] != '\0'; n--)
		; /* the last argument is the queue's number */
	snprintf(
	    path, sizeof(path), "%s/queue/queue%s/incoming/0/2", dir, line + n);
	fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	say(fd < 0 ? "cannot" : "late");
	io_close(&fd);
}

static void
bring_late_mail(void)
{
	static struct chan_frame frame;

	signal(SIGTERM, SIG_IGN);
	send_ready();
	say("waits");
	for (;;) {
		struct pollfd look = { DAEMON_CHANNEL_FD, POLLIN, 0 };

		(void)poll(&look, 1, -1);
		if (chan_recv(DAEMON_CHANNEL_FD, &frame) == 0)
			_exit(0);
		io_close(&frame.fd);
		if (frame.msg.type != MSG_STOP)
			continue;
		put_late_mail(getenv("QSCHED_FAKE"));
		_exit(0);
	}
}

static void
end_well(void)
{
	_exit(0);
}

static void
end_badly(void)
{
	_exit(3);
}

static void
say_and_end_badly(void)
{
	const struct msg msg = { .type = MSG_STATUS,
		.u.STATUS = { .text = MSG_S("no\1 use") } };

	send_up(&msg, -1);
	_exit(3);
}

static void
crash(void)
{
	raise(SIGKILL);
	_exit(1);
}

static void
hang(void)
{
	signal(SIGTERM, SIG_IGN);
	send_ready();
	for (;;)
		pause();
}

static void
hang_orphan(void)
{
	alarm(240);
	hang();
}

/* Everything that a child may not send, without end, each with a descriptor;
 * well, too, now and then. */
static void
flood(void)
{
	static const char junk[] = "\377\377\377\377 junk";
	const int null = open("/dev/null", O_RDONLY);
	const struct msg odd = { .type = MSG_STOP };

	send_ready();
	for (;;) {
		(void)send(DAEMON_CHANNEL_FD, junk, sizeof(junk), MSG_NOSIGNAL);
		send_up(&odd, null);
		send_ready();
		if (getppid() == 1)
			_exit(0);
	}
}

static void
close_channel(void)
{
	send_ready();
	close(DAEMON_CHANNEL_FD);
	for (;;)
		pause();
}

/* What an orphan of its group must not outlive it with. */
static void
leave_child(void)
{
	if (fork() == 0) {
		alarm(240);
		say("left");
		for (;;)
			pause();
	}
	send_ready();
	_exit(0);
}

static const struct {
	const char *name;
	void (*run)(void);
} modes[] = {
	{ "ready", be_ready },
	{ "moved", tell_moved },
	{ "late-mail", bring_late_mail },
	{ "exit-0", end_well },
	{ "exit-0-with-link", end_with_link },
	{ "exit-3", end_badly },
	{ "complain", say_and_end_badly },
	{ "crash", crash },
	{ "hang", hang },
	{ "hang-orphan", hang_orphan },
	{ "flood", flood },
	{ "close-channel", close_channel },
	{ "leave-child", leave_child },
};

static void
run_mode(const char *dir, const char *role)
{
	char path[256], mode[32] = "ready";
	FILE *f;
	size_t i;

	snprintf(path, sizeof(path), "%s/mode.%s", dir, role);
	f = fopen(path, "r");
	if (f != NULL && fscanf(f, "%31s", mode) != 1)
		_exit(99);
	/* "ready" sees the end by itself, which is what a test asks, and an
	 * orphan outlives the supervisor. */
	if (strcmp(mode, "ready") != 0 && strcmp(mode, "hang-orphan") != 0)
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (i = 0; i < ARRAY_LEN(modes); i++)
		if (strcmp(modes[i].name, mode) == 0)
			modes[i].run();
	_exit(98);
}

static bool
is_child_role(const char *name)
{
	size_t role;

	for (role = 0; role < stage_roles.n; role++)
		if (strcmp(stage_roles.rows[role].name, name) == 0)
			return true;
	return false;
}

/* Before the framework sees that it was started under another name. */
__attribute__((constructor)) static void
be_child(void)
{
	const char *dir = getenv("QSCHED_FAKE");
	const char *role = basename(program_invocation_name);
	char path[64];

	if (dir == NULL || !is_child_role(role))
		return;
	snprintf(path, sizeof(path), "%s/said", dir);
	say_fd = open(path, O_RDWR | O_CLOEXEC); /* does not wait for a test */
	say("start");
	run_mode(dir, role);
}
