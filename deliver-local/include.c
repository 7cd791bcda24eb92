#include "deliver-local/expand.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/io.h"

/* One datagram each way. */
struct request {
	uid_t reader;
	char path[PATH_MAX];
};
struct answer {
	int32_t error; /* 0, or -errno */
	uid_t owner;
	char why[128];
};

/* ---- opening ---- */

static int
because(struct answer *a, int error, const char *why)
{
	a->error = error;
	snprintf(a->why, sizeof(a->why), "%s", why);
	return error;
}

static int
judge(int fd, struct answer *a)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return because(a, -errno, strerror(errno));
	if (!S_ISREG(st.st_mode))
		return because(a, -EINVAL, "not a regular file");
	if ((st.st_mode & (S_IWGRP | S_IWOTH)) != 0)
		return because(a, -EPERM, "others than its owner may write it");
	a->owner = st.st_uid;
	return 0;
}

#define FILE_FLAGS (O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC)

/* denied: called for a directory that may not be entered (walk.c). */
static int
open_path(const char *path, walk_denied_fn *denied, void *arg, struct answer *a)
{
	int dir = -1, fd = -1, r = walk_to_file(path, denied, arg, &dir);

	if (r == 0) {
		fd = openat(dir, strrchr(path, '/') + 1, FILE_FLAGS);
		if (fd < 0 && errno == EACCES && denied != NULL &&
		    denied(arg, dir))
			fd = openat(dir, strrchr(path, '/') + 1, FILE_FLAGS);
		r = fd < 0 ? -errno : 0;
	}
	io_close(&dir);
	if (r < 0)
		return because(
		    a, r, r == -ELOOP ? "a link on its path" : strerror(-r));
	r = judge(fd, a);
	if (r < 0)
		io_close(&fd);
	return r < 0 ? r : fd;
}

/* The memory that was copied holds mail of others. The kernel forgets both when
 * ids change. */
static void
guard(void)
{
	(void)prctl(PR_SET_DUMPABLE, 0);
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
}

/* ---- the process that opens ----
 *
 * This process keeps the right to become any user, sees nothing but paths of
 * alias and include files, and forks for each of them. */

static bool
become_owner(void *arg, int dir)
{
	bool *is_root = arg;
	struct account account;
	struct stat st;

	if (!*is_root || fstat(dir, &st) < 0 || st.st_uid == 0 ||
	    account_of(st.st_uid, &account) != 1 ||
	    account_become(&account) < 0)
		return false;
	guard();
	*is_root = false;
	return true;
}

static int
become_reader(uid_t reader, struct answer *a)
{
	struct account account;
	int r;

	if (reader == 0)
		return 0;
	r = account_of(reader, &account);
	if (r == 0)
		return because(a, -EPERM,
		    "the owner of the file that names it has no account");
	if (r > 0)
		r = account_become(&account);
	return r < 0 ? because(a, r, strerror(-r)) : 0;
}

static bool
send_answer(int sock, const struct answer *a, int fd)
{
	union {
		char bytes[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} control = { 0 };
	struct iovec iov = { (void *)(uintptr_t)a, sizeof(*a) };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	struct cmsghdr *c;

	if (fd >= 0) {
		msg.msg_control = control.bytes;
		msg.msg_controllen = sizeof(control.bytes);
		c = CMSG_FIRSTHDR(&msg);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(c), &fd, sizeof(int));
	}
	return sendmsg(sock, &msg, MSG_NOSIGNAL) >= 0;
}

/* A process whose file system does not answer ends when that is over. */
static void
end_with(pid_t parent)
{
	guard();
	if (getppid() != parent)
		_exit(EXIT_TEMPORARY);
}

static _Noreturn void
answer_one(int sock, const struct request *q, pid_t parent)
{
	struct answer a = { 0 };
	bool is_root = q->reader == 0;
	int fd = become_reader(q->reader, &a);

	end_with(parent);
	if (fd == 0)
		fd = open_path(q->path, become_owner, &is_root, &a);
	/* A user may have too many descriptors on their way already. */
	_exit(send_answer(sock, &a, fd < 0 ? -1 : fd) ? 0 : EXIT_TEMPORARY);
}

static _Noreturn void
serve(int sock, pid_t parent)
{
	struct answer a = { 0 };
	struct request q;
	int status;
	ssize_t n;
	pid_t pid;

	end_with(parent);
	_Static_assert(CHILD_RESULT_FD == 4, "which stays open");
	(void)close_range(3, 3, 0);
	(void)close_range(CHILD_RESULT_FD + 1, (unsigned)sock - 1, 0);
	(void)close_range((unsigned)sock + 1, ~0u, 0);
	for (;;) {
		n = recv(sock, &q, sizeof(q), 0);
		if (n != sizeof(q) || memchr(q.path, '\0', PATH_MAX) == NULL)
			_exit(0);
		pid = fork();
		if (pid == 0)
			answer_one(sock, &q, getppid());
		if (pid > 0 && waitpid(pid, &status, 0) == pid && status == 0)
			continue;
		(void)because(&a, -EAGAIN, "the process that opens it died");
		(void)send_answer(sock, &a, -1);
	}
}

int
includes_begin(struct includes *in, bool private)
{
	const pid_t self = getpid();
	int fds[2];

	*in = (struct includes){ .sock = -1 };
	if (private)
		return 0;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds) < 0)
		return -errno;
	in->pid = fork();
	if (in->pid == 0)
		serve(fds[1], self);
	io_close(&fds[1]);
	in->sock = fds[0];
	if (in->pid > 0)
		return 0;
	io_close(&in->sock);
	return -errno;
}

void
includes_done(struct includes *in)
{
	io_close(&in->sock);
	if (in->pid > 0)
		while (waitpid(in->pid, NULL, 0) < 0 && errno == EINTR)
			continue;
	in->pid = 0;
}

/* ---- asking ---- */

static int
take_answer(int sock, struct answer *ret)
{
	union {
		char bytes[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} control;
	struct iovec iov = { ret, sizeof(*ret) };
	struct msghdr msg = { .msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control.bytes,
		.msg_controllen = sizeof(control.bytes) };
	struct cmsghdr *c;
	ssize_t n;
	int fd = -1;

	do
		n = recvmsg(sock, &msg, MSG_CMSG_CLOEXEC);
	while (n < 0 && errno == EINTR);
	if (n != sizeof(*ret))
		return because(ret, -EAGAIN, "nobody is there to open it");
	c = CMSG_FIRSTHDR(&msg);
	if (ret->error == 0 && c != NULL && c->cmsg_type == SCM_RIGHTS)
		memcpy(&fd, CMSG_DATA(c), sizeof(int));
	return ret->error < 0 ? ret->error : fd < 0 ? -EBADMSG : fd;
}

static int
ask(int sock, const char *path, uid_t reader, struct answer *a)
{
	struct request q = { .reader = reader };

	snprintf(q.path, sizeof(q.path), "%s", path);
	if (send(sock, &q, sizeof(q), MSG_NOSIGNAL) != sizeof(q))
		return because(a, -EAGAIN, "nobody is there to open it");
	return take_answer(sock, a);
}

int
includes_open(const struct includes *in, const char *path, uid_t reader,
    uid_t *ret_owner, struct buf *ret_why)
{
	struct answer a = { 0 };
	int fd;

	if (strlen(path) >= PATH_MAX)
		fd = because(&a, -ENAMETOOLONG, strerror(ENAMETOOLONG));
	else if (in->sock < 0)
		fd = open_path(path, NULL, NULL, &a);
	else
		fd = ask(in->sock, path, reader, &a);
	a.why[sizeof(a.why) - 1] = '\0';
	if (fd < 0)
		(void)buf_add_str(ret_why, a.why);
	*ret_owner = a.owner;
	return fd;
}

int
includes_open_one(bool private, const char *path, uid_t reader,
    uid_t *ret_owner, struct buf *ret_why)
{
	struct includes in;
	int r = includes_begin(&in, private);

	if (r == 0)
		r = includes_open(&in, path, reader, ret_owner, ret_why);
	includes_done(&in);
	return r;
}
