/* ipc/ask.h - the socket of requests, and the message queue /qscheduler of load
 * reports.
 *
 * A request is a frame of ipc/msg.h, link ASK. It comes by the socket, with
 * pid and user of its sender by the word of the kernel. The supervisor answers
 * to the socket that the request came from. A new request is a row of msg.def,
 * and then one of qscheduler/supervisor/requests.c.
 */
#ifndef IPC_ASK_H
#define IPC_ASK_H

#include "ipc/bell.h"
#include "ipc/msg.h"
#include "ipc/page.h"

#include <sys/socket.h>
#include <sys/un.h>

#define ASK_MESSAGE_SIZE 256 /* bytes of a request at most */
#define ASK_DEPTH        64  /* load reports that wait */

/* The limits of a request; commands refuse the same at once. */
#define ASK_LIMIT_MAX    1000000           /* of a ratio of SET_LOAD */
#define ASK_SECONDS_MAX  (365 * 24 * 3600) /* of any time */
#define ASK_LOAD_SECONDS 60                /* the time of a load, by default */
/* Checks a reason, which is shown in a page: at most 95 printable bytes. NULL,
 * or the complaint. */
const char *ask_judge_reason(const char *reason, size_t len);

struct load_report {
	int32_t pid;
	uint32_t queue;
	uint64_t load_pct;
};
_Static_assert(sizeof(struct load_report) == 16, "16-byte load report");

/* Without blocking; -EAGAIN full. On a descriptor from the supervisor, since
 * queue-send may not open the queue. */
int load_report_put(mqd_t mq, const struct load_report *report);

struct sched_answer {
	uint32_t pid;   /* of the sender, as in the request */
	uint32_t nonce; /* of the request */
	int32_t code;   /* 0 or -errno */
	char text[SCHED_ANSWER_SIZE];
};

/* For commands. */
struct ask_question {
	const char *instance;
	const char *base; /* QUEUE_BASE, where the socket is when /dev/shm is
			   * full; NULL: not known */
	const struct msg *request; /* with its own pid and nonce */
	uint32_t nonce;
	bool judge;   /* only: would it be carried out? */
	usec_t limit; /* of the whole wait; at most two fifths are for room */
};
/* Sends, then waits for the answer. 0: answered, *ret_code is 0 or -errno with
 * the text of the supervisor; -ETIMEDOUT: no answer, and the request will not
 * be done; -ENOENT, -EACCES: no such instance, no permission; -EAGAIN: the
 * supervisor takes no request. */
int ask_request(const struct ask_question *question, int *ret_code,
    char text[SCHED_ANSWER_SIZE]);

/* The socket of a command. */
struct ask_address {
	struct sockaddr_un name;
	socklen_t len; /* 0: none */
};
struct ask_source {
	bool judge;   /* the request is to be judged, and not carried out */
	uint32_t pid; /* by the word of the kernel, as uid is */
	uid_t uid;    /* the real one */
	struct ask_address address;
};

/* A request of link ASK that was taken; it points into data. */
struct ask {
	struct msg msg;
	struct ask_source from;
	char data[8192];
};

/* ---- ask_socket.c: datagrams ----
 * The socket is /dev/shm/qscheduler.ask, or QUEUE_BASE/ask, where no user can
 * use up the room for the name. */
struct ask_socket {
	int fd;   /* -1: none */
	int base; /* descriptor of QUEUE_BASE, owned by the caller; -1: /dev/shm
		   */
	dev_t dev;
	ino_t ino;
};
/* Supervisor: in the place of what has the name; open to the group, too, unless
 * it is (gid_t)-1. base: as in struct ask_socket. -EPERM: another user's. */
int ask_socket_open(
    const char *instance, int base, gid_t group, struct ask_socket *ret_socket);
/* The name in /dev/shm goes if it is still this socket's. A name in QUEUE_BASE,
 * whose disk may hang, stays for the next supervisor. */
void ask_socket_close(const char *instance, struct ask_socket *socket);
bool ask_socket_is_there(const char *instance, const struct ask_socket *socket);
/* Supervisor: takes one datagram. 1: a request; 0: none; -EBADMSG: taken, to be
 * counted; -ETIME: taken, and void, since its sender no longer waits; -errno.
 */
int ask_socket_take(int fd, struct ask *ret_ask);
/* Supervisor: an answer to the sender of a request. Not heard by one that has
 * gone. */
void ask_socket_answer(
    int fd, const struct ask_address *to, const struct sched_answer *answer);
/* Command: connects to the socket of root or of this user. base: QUEUE_BASE, or
 * NULL. The kernel lets no other process send to *ret_fd. -ENOENT: there is
 * none, or nobody behind it; -EACCES. */
int ask_socket_connect(const char *instance, const char *base, int *ret_fd);
/* A request of so many bytes in ask->data: ask_socket_take() without a socket.
 */
int ask_judge_frame(struct ask *ask, size_t len);

#endif
