#include "ipc/ask.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/io.h"
#include "ipc/names.h"
#include "ipc/shm.h"

#define TRIES 3

_Static_assert(sizeof(((struct sockaddr_un *)0)->sun_path) >=
	sizeof(SHM_DIR) + 64 + sizeof("/.qscheduler.ask"),
    "room for the longest name of an instance");

static void
make_address(const char *path, struct sockaddr_un *ret)
{
	*ret = (struct sockaddr_un){ .sun_family = AF_UNIX };
	snprintf(ret->sun_path, sizeof(ret->sun_path), "%.*s",
	    (int)sizeof(ret->sun_path) - 1, path);
}

#define BASE_NAME "ask" /* in QUEUE_BASE */

static void
make_path(const char *instance, int base, char out[IPC_NAME_MAX])
{
	char name[IPC_NAME_MAX];

	if (base >= 0) { /* the path of QUEUE_BASE may be long */
		snprintf(
		    out, IPC_NAME_MAX, "/proc/self/fd/%d/" BASE_NAME, base);
		return;
	}
	ipc_name_ask(instance, name);
	snprintf(out, IPC_NAME_MAX, SHM_DIR "%.*s",
	    (int)(IPC_NAME_MAX - sizeof(SHM_DIR)), name);
}

/* ---- the supervisor ---- */

/* The mode is given before the name, so there is no moment without it. name
 * NULL: the path is in QUEUE_BASE. */
static int
bind_once(const char *path, const char *name, int fd)
{
	struct sockaddr_un address;
	int r = 0;

	if (name != NULL)
		r = shm_remove(name);
	else if (unlink(path) < 0 && errno != ENOENT)
		r = -errno;

	make_address(path, &address);
	if (r == 0 && fchmod(fd, 0600) < 0)
		r = -errno;
	if (r == 0 &&
	    bind(fd, (const struct sockaddr *)&address, sizeof(address)) < 0)
		r = -errno;
	return r;
}

static int
open_bound(const char *path, const char *name, int *ret_fd)
{
	const int on = 1;
	int i, r = -EADDRINUSE;
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return -errno;
	if (setsockopt(fd, SOL_SOCKET, SO_PASSCRED, &on, sizeof(on)) < 0)
		r = -errno;
	for (i = 0; i < TRIES && r == -EADDRINUSE; i++)
		r = bind_once(path, name, fd);
	if (r < 0)
		io_close(&fd);
	else
		*ret_fd = fd;
	return r;
}

/* No other user can take the name away: SHM_DIR is sticky. */
static int
give(const char *path, gid_t group)
{
	if (group == (gid_t)-1)
		return 0;
	return lchown(path, (uid_t)-1, group) < 0 || chmod(path, 0660) < 0
	    ? -errno
	    : 0;
}

int
ask_socket_open(
    const char *instance, int base, gid_t group, struct ask_socket *ret_socket)
{
	char name[IPC_NAME_MAX], path[IPC_NAME_MAX];
	struct stat st;
	int fd, r;

	ipc_name_ask(instance, name);
	make_path(instance, base, path);
	r = open_bound(path, base < 0 ? name : NULL, &fd);
	if (r < 0)
		return r;
	r = lstat(path, &st) < 0 || !S_ISSOCK(st.st_mode) ? -ENOENT
							  : give(path, group);
	if (r < 0) {
		io_close(&fd);
		return r;
	}
	*ret_socket = (struct ask_socket){ fd, base, st.st_dev, st.st_ino };
	return 0;
}

bool
ask_socket_is_there(const char *instance, const struct ask_socket *socket)
{
	char path[IPC_NAME_MAX];
	struct stat st;

	make_path(instance, socket->base, path);
	return lstat(path, &st) == 0 && S_ISSOCK(st.st_mode) &&
	    st.st_dev == socket->dev && st.st_ino == socket->ino;
}

void
ask_socket_close(const char *instance, struct ask_socket *socket)
{
	char path[IPC_NAME_MAX];

	if (socket->fd < 0)
		return;
	make_path(instance, socket->base, path);
	if (socket->base < 0 && ask_socket_is_there(instance, socket))
		(void)unlink(path);
	io_close(&socket->fd);
}

/* Descriptors that come along find no room, and are closed by the kernel. */
union control {
	struct cmsghdr head;
	char space[CMSG_SPACE(sizeof(struct ucred))];
};

static int
take_source(struct msghdr *h, struct ask_source *ret)
{
	struct cmsghdr *c = CMSG_FIRSTHDR(h);
	struct ucred who;

	if (c == NULL || c->cmsg_level != SOL_SOCKET ||
	    c->cmsg_type != SCM_CREDENTIALS ||
	    c->cmsg_len != CMSG_LEN(sizeof(who)))
		return -EBADMSG;
	memcpy(&who, CMSG_DATA(c), sizeof(who));
	*ret = (struct ask_source){ .pid = (uint32_t)who.pid, .uid = who.uid };
	return 0;
}

int
ask_socket_take(int fd, struct ask *ret_ask)
{
	union control control;
	struct iovec data = { ret_ask->data, sizeof(ret_ask->data) };
	struct ask_address from = { 0 };
	struct msghdr h = {
		.msg_name = &from.name,
		.msg_namelen = sizeof(from.name),
		.msg_iov = &data,
		.msg_iovlen = 1,
		.msg_control = &control,
		.msg_controllen = sizeof(control),
	};
	ssize_t n;

	do {
		n = recvmsg(fd, &h, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	} while (n < 0 && errno == EINTR);
	if (n < 0)
		return errno == EAGAIN ? 0 : -errno;
	if (take_source(&h, &ret_ask->from) < 0 || n > ASK_MESSAGE_SIZE ||
	    (h.msg_flags & MSG_TRUNC) != 0)
		return -EBADMSG;
	from.len = h.msg_namelen;
	ret_ask->from.address = from;
	return ask_judge_frame(ret_ask, (size_t)n);
}

void
ask_socket_answer(
    int fd, const struct ask_address *to, const struct sched_answer *answer)
{
	/* An address in a file system may be a link, or on a disk that hangs.
	 */
	if (to->len <= offsetof(struct sockaddr_un, sun_path) ||
	    to->name.sun_path[0] != '\0')
		return;
	(void)sendto(fd, answer, sizeof(*answer), MSG_DONTWAIT | MSG_NOSIGNAL,
	    (const struct sockaddr *)&to->name, to->len);
}

/* ---- commands ---- */

/* The object is held while it is judged and connected to: another user's may
 * have the name. */
static int
connect_to(int fd, int object)
{
	struct sockaddr_un address;
	char path[32];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", object);
	make_address(path, &address);
	if (connect(fd, (const struct sockaddr *)&address, sizeof(address)) ==
	    0)
		return 0;
	return errno == EACCES ? -EACCES : -ENOENT;
}

static int
open_object(const char *path, int *ret_fd)
{
	struct stat st;
	int fd = open(path, O_PATH | O_NOFOLLOW | O_CLOEXEC);

	if (fd < 0)
		return -ENOENT;
	if (fstat(fd, &st) < 0 || !S_ISSOCK(st.st_mode) ||
	    (st.st_uid != 0 && st.st_uid != geteuid())) {
		io_close(&fd);
		return -ENOENT;
	}
	*ret_fd = fd;
	return 0;
}

/* An address of no file system, for the answer. */
static int
give_address(int fd)
{
	const struct sockaddr_un none = { .sun_family = AF_UNIX };

	return bind(fd, (const struct sockaddr *)&none,
		   sizeof(none.sun_family)) < 0
	    ? -errno
	    : 0;
}

static int
connect_path(const char *path, int *ret_fd)
{
	int object, fd, r = open_object(path, &object);

	if (r < 0)
		return r;
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	r = fd < 0 ? -errno : give_address(fd);
	if (r == 0)
		r = connect_to(fd, object);
	io_close(&object);
	if (r < 0)
		io_close(&fd);
	else
		*ret_fd = fd;
	return r;
}

int
ask_socket_connect(const char *instance, const char *base, int *ret_fd)
{
	char path[IPC_NAME_MAX], *there = NULL;
	int r;

	make_path(instance, -1, path);
	r = connect_path(path, ret_fd);
	if (r != -ENOENT || base == NULL)
		return r;
	if (asprintf(&there, "%s/" BASE_NAME, base) < 0)
		return -ENOMEM;
	r = connect_path(there, ret_fd);
	free(there);
	return r;
}
