/* The socket of requests: who asks, by the word of the kernel. */
#include "ipc/ask.h"

#include "base/clock.h"
#include "ipc/names.h"
#include "ipc/shm.h"
#include "ipc_scratch.h"
#include "tests/unit/descriptors.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static struct ask_socket ours = { .fd = -1, .base = -1 };
static struct ask ask;

static const char *
path(void)
{
	static char text[256];
	char name[IPC_NAME_MAX];

	ipc_name_ask(ipc_scratch(), name);
	snprintf(text, sizeof(text), SHM_DIR "%s", name);
	return text;
}

static void
teardown(void)
{
	ask_socket_close(ipc_scratch(), &ours);
	(void)unlink(path());
	(void)rmdir(path());
	ipc_scratch_done();
}

TestSuite(ipc_ask_socket, .fini = teardown, .timeout = 60);

static void
open_ours(void)
{
	cr_assert_eq(ask_socket_open(ipc_scratch(), -1, (gid_t)-1, &ours), 0);
}

/* Of a group of this process: another one needs root. */
Test(ipc_ask_socket, attack_1_the_group_alone_may_ask)
{
	struct stat st;

	open_ours();
	cr_assert_eq(lstat(path(), &st), 0);
	cr_assert_eq(st.st_mode & 07777, 0600);
	ask_socket_close(ipc_scratch(), &ours);
	cr_assert_eq(ask_socket_open(ipc_scratch(), -1, getegid(), &ours), 0);
	cr_assert_eq(lstat(path(), &st), 0);
	cr_assert_eq(st.st_mode & 07777, 0660);
	cr_assert_eq(st.st_gid, getegid());
	cr_assert_eq(st.st_uid, geteuid());
}

static struct buf
request(bool judge)
{
	const struct msg enable = { .type = MSG_ENABLE,
		.u.ENABLE = { 4711, 77, 3 } };
	struct buf inner = { 0 }, frame = { 0 };
	struct msg outer = { .type = judge ? MSG_JUDGE : MSG_UNTIL };

	cr_assert_eq(msg_encode(&enable, &inner), 0);
	outer.u.UNTIL.until_usec = USEC_NEVER;
	outer.u.UNTIL.request = (struct msg_str){ inner.data, inner.len };
	cr_assert_eq(msg_encode(&outer, &frame), 0);
	buf_done(&inner);
	return frame;
}

static void
send_bytes(const void *data, size_t len)
{
	int fd;

	cr_assert_eq(ask_socket_connect(ipc_scratch(), NULL, &fd), 0);
	cr_expect_eq(send(fd, data, len, 0), (ssize_t)len);
	close(fd);
}

Test(ipc_ask_socket, pid_and_user_are_those_of_the_sender)
{
	struct buf frame = request(false);
	int status;
	pid_t pid;

	open_ours();
	cr_expect_eq(ask_socket_take(ours.fd, &ask), 0, "nothing yet");
	pid = fork();
	if (pid == 0) {
		send_bytes(frame.data, frame.len);
		_exit(0);
	}
	cr_assert_eq(waitpid(pid, &status, 0), pid);
	cr_expect_eq(status, 0);
	cr_assert_eq(ask_socket_take(ours.fd, &ask), 1);
	cr_expect_eq(ask.msg.type, MSG_ENABLE);
	cr_expect_eq(ask.msg.u.ENABLE.pid, 4711, "as was written");
	cr_expect_eq(ask.from.pid, (uint32_t)pid, "though it is gone");
	cr_expect_eq(ask.from.uid, getuid());
	cr_expect_not(ask.from.judge);
	buf_done(&frame);
	frame = request(true);
	send_bytes(frame.data, frame.len);
	cr_assert_eq(ask_socket_take(ours.fd, &ask), 1);
	cr_expect(ask.from.judge);
	cr_expect_eq(ask.from.pid, (uint32_t)getpid());
	buf_done(&frame);
}

/* The mode of the file keeps others out. */
static int
connect_as_nobody(void *arg UNUSED)
{
	int fd;

	return -ask_socket_connect(ipc_scratch(), NULL, &fd);
}

Test(ipc_ask_socket, A4_is_for_one_user)
{
	struct stat st;

	open_ours();
	cr_assert_eq(lstat(path(), &st), 0);
	cr_expect_eq(st.st_mode & 07777, 0600);
	cr_expect_eq(st.st_uid, geteuid());
	if (geteuid() != 0)
		cr_skip_test("needs two users, that is root");
	cr_expect_eq(ipc_as_nobody(connect_as_nobody, NULL), EACCES);
}

Test(ipc_ask_socket, umask_does_not_matter)
{
	struct stat st;

	(void)umask(0);
	open_ours();
	cr_assert_eq(lstat(path(), &st), 0);
	cr_expect_eq(st.st_mode & 07777, 0600);
}

Test(ipc_ask_socket, I7_garbage_of_any_length)
{
	static char data[70000];
	struct load_report report = { 1, 2, 3 };
	size_t len;

	open_ours();
	for (len = 0; len <= ASK_MESSAGE_SIZE + 1; len++) {
		send_bytes(data, len);
		cr_assert_eq(
		    ask_socket_take(ours.fd, &ask), -EBADMSG, "%zu", len);
	}
	send_bytes(data, sizeof(data));
	cr_expect_eq(ask_socket_take(ours.fd, &ask), -EBADMSG);
	send_bytes(&report, sizeof(report));
	cr_expect_eq(
	    ask_socket_take(ours.fd, &ask), -EBADMSG, "no reports here");
	cr_expect_eq(ask_socket_take(ours.fd, &ask), 0);
}

Test(ipc_ask_socket, I7_descriptors_that_come_along_are_closed)
{
	union {
		struct cmsghdr head;
		char space[CMSG_SPACE(4 * sizeof(int))];
	} control = { 0 };
	struct buf frame = request(false);
	struct iovec data = { frame.data, frame.len };
	struct msghdr h = { .msg_iov = &data,
		.msg_iovlen = 1,
		.msg_control = &control,
		.msg_controllen = sizeof(control) };
	const int fds[4] = { 0, 1, 2, 0 };
	unsigned before;
	int fd;

	open_ours();
	control.head.cmsg_level = SOL_SOCKET;
	control.head.cmsg_type = SCM_RIGHTS;
	control.head.cmsg_len = CMSG_LEN(sizeof(fds));
	memcpy(CMSG_DATA(&control.head), fds, sizeof(fds));
	cr_assert_eq(ask_socket_connect(ipc_scratch(), NULL, &fd), 0);
	cr_assert_gt(sendmsg(fd, &h, 0), 0);
	close(fd);
	before = unit_descriptors();
	cr_expect_eq(ask_socket_take(ours.fd, &ask), 1);
	cr_expect_eq(unit_descriptors(), before);
	buf_done(&frame);
}

Test(ipc_ask_socket, nobody_behind_it)
{
	int fd;

	cr_expect_eq(ask_socket_connect(ipc_scratch(), NULL, &fd), -ENOENT);
	open_ours();
	close(ours.fd); /* as a killed supervisor leaves it */
	cr_expect_eq(access(path(), F_OK), 0);
	cr_expect_eq(ask_socket_connect(ipc_scratch(), NULL, &fd), -ENOENT);
	open_ours();
	cr_expect_eq(ask_socket_connect(ipc_scratch(), NULL, &fd), 0);
	close(fd);
	ask_socket_close(ipc_scratch(), &ours);
	cr_expect_eq(ours.fd, -1);
	cr_expect_neq(access(path(), F_OK), 0);
	ask_socket_close(ipc_scratch(), &ours);
}

/* Whatever has the name. */
Test(ipc_ask_socket, I5_the_name_is_taken)
{
	struct stat st;
	int fd = open(path(), O_WRONLY | O_CREAT | O_CLOEXEC, 0666);

	cr_assert_geq(fd, 0);
	close(fd);
	cr_expect_eq(ask_socket_connect(ipc_scratch(), NULL, &fd), -ENOENT);
	open_ours();
	cr_expect(ask_socket_is_there(ipc_scratch(), &ours));
	cr_assert_eq(unlink(path()), 0);
	cr_expect_not(ask_socket_is_there(ipc_scratch(), &ours));
	cr_assert_eq(symlink("/dev/null", path()), 0);
	cr_expect_not(ask_socket_is_there(ipc_scratch(), &ours));
	cr_expect_eq(ask_socket_connect(ipc_scratch(), NULL, &fd), -ENOENT);
	ask_socket_close(ipc_scratch(), &ours);
	cr_expect_eq(lstat(path(), &st), 0, "not ours to remove");
	open_ours();
	cr_expect(ask_socket_is_there(ipc_scratch(), &ours));
}

/* Another user's socket gets no request of ours. */
Test(ipc_ask_socket, A4_of_another_user)
{
	int fd;

	if (geteuid() != 0)
		cr_skip_test("needs two users, that is root");
	open_ours();
	cr_assert_eq(lchown(path(), ipc_nobody(), (gid_t)-1), 0);
	cr_expect_eq(ask_socket_connect(ipc_scratch(), NULL, &fd), -ENOENT);
	cr_assert_eq(seteuid(ipc_nobody()), 0);
	cr_expect_eq(
	    ask_socket_connect(ipc_scratch(), NULL, &fd), 0, "one's own");
	close(fd);
	cr_assert_eq(seteuid(0), 0);
}

/* QUEUE_BASE may have a long path.
 * mutation: ask_socket_connect() that knows /dev/shm alone */
Test(ipc_ask_socket, I22_in_QUEUE_BASE)
{
	char dir[] = "/tmp/ask-XXXXXX", base[400];
	struct buf frame = request(false);
	struct sched_answer answer = { 4711, 77, -EBUSY, "closing" }, heard;
	struct sockaddr_un reply = { .sun_family = AF_UNIX };
	struct stat st;
	int fd, other, where;

	cr_assert_not_null(mkdtemp(dir));
	snprintf(base, sizeof(base), "%s/%0200d", dir, 0);
	cr_assert_eq(mkdir(base, 0755), 0);
	where = open(base, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	cr_expect_eq(ask_socket_connect(ipc_scratch(), base, &fd), -ENOENT);
	cr_assert_eq(
	    ask_socket_open(ipc_scratch(), where, getegid(), &ours), 0);
	cr_assert_eq(fstatat(where, "ask", &st, AT_SYMLINK_NOFOLLOW), 0);
	cr_expect_eq(st.st_mode & 07777, 0660);
	cr_expect_eq(st.st_gid, getegid());
	cr_expect(ask_socket_is_there(ipc_scratch(), &ours));
	cr_expect_eq(ask_socket_connect(ipc_scratch(), NULL, &fd), -ENOENT);
	cr_assert_eq(ask_socket_connect(ipc_scratch(), base, &fd), 0);
	cr_assert_gt(send(fd, frame.data, frame.len, 0), 0);
	cr_assert_eq(ask_socket_take(ours.fd, &ask), 1);
	ask_socket_answer(ours.fd, &ask.from.address, &answer);
	cr_assert_eq(recv(fd, &heard, sizeof(heard), MSG_DONTWAIT),
	    (ssize_t)sizeof(heard));
	cr_expect_eq(memcmp(&heard, &answer, sizeof(heard)), 0);
	/* No other process can answer. */
	other = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	ask_socket_answer(other, &ask.from.address, &answer);
	cr_expect_lt(recv(fd, &heard, sizeof(heard), MSG_DONTWAIT), 0);
	close(other);
	/* No path of an asker is followed. */
	snprintf(reply.sun_path, sizeof(reply.sun_path), "%s/r", dir);
	other = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	cr_assert_eq(
	    bind(other, (const struct sockaddr *)&reply, sizeof(reply)), 0);
	ask_socket_answer(ours.fd,
	    &(struct ask_address){ .name = reply, .len = sizeof(reply) },
	    &answer);
	cr_expect_lt(recv(other, &heard, sizeof(heard), MSG_DONTWAIT), 0);
	cr_expect_eq(unlink(reply.sun_path), 0);
	close(other);
	close(fd);
	ask_socket_close(ipc_scratch(), &ours);
	cr_expect_eq(ask_socket_connect(ipc_scratch(), base, &fd), -ENOENT);
	/* As a killed supervisor leaves it. */
	cr_assert_eq(
	    ask_socket_open(ipc_scratch(), where, (gid_t)-1, &ours), 0);
	cr_assert_eq(ask_socket_connect(ipc_scratch(), base, &fd), 0);
	close(fd);
	cr_expect_eq(unlinkat(where, "ask", 0), 0);
	close(where);
	cr_expect_eq(rmdir(base), 0);
	cr_expect_eq(rmdir(dir), 0);
	buf_done(&frame);
}
