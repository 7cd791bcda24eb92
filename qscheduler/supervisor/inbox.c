#include "qscheduler/supervisor/supervisor.h"

#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "daemon/daemon.h"
#include "ipc/names.h"
#include "ipc/shm.h"
#include "log/log.h"

#define REQUESTS_TURN 32 /* taken in one turn of the loop */
#define LOAD_PCT_MAX  1000

/* ---- the message queue ---- */

static void
close_queue(struct super *s)
{
	char name[IPC_NAME_MAX];

	if (s->requests.event != NULL)
		event_free(s->requests.event);
	s->requests.event = NULL;
	if (s->requests.mq < 0)
		return;
	ipc_name_scheduler(s->instance.name, name);
	if (mq_same(name, s->requests.mq))
		(void)mq_unlink(name);
	mq_close(s->requests.mq);
	if (s->queues.reports >= 0)
		mq_close(s->queues.reports);
	s->requests.mq = s->queues.reports = -1;
}

static bool
take_report(struct super *s, const struct load_report *report)
{
	struct queue *q = queue_find(&s->queues, report->queue);

	if (q == NULL || report->load_pct > LOAD_PCT_MAX)
		return false;
	q->reported_load_pct = (uint32_t)report->load_pct;
	grow_soon(s, clock_mono());
	return true;
}

static void
on_records(evutil_socket_t fd UNUSED, short what UNUSED, void *arg)
{
	struct super *s = arg;
	struct load_report report;
	int i, r = 1;

	for (i = 0; r != 0 && i < REQUESTS_TURN; i++) {
		r = mq_take(s->requests.mq, &report, sizeof(report));
		if (r == -EBADMSG || (r == 1 && !take_report(s, &report))) {
			s->requests.bad++;
		} else if (r < 0) {
			log_error("message queue of load reports: %s: closed, "
				  "made again within a minute",
			    strerror(-r));
			close_queue(s);
			return;
		}
	}
}

static int
open_queue(struct super *s)
{
	char name[IPC_NAME_MAX];
	uint32_t depth;
	int r;

	ipc_name_scheduler(s->instance.name, name);
	r = mq_create(name, &(struct mq_shape){ ASK_DEPTH, MQ_MESSAGE_SIZE },
	    (uid_t)-1, (gid_t)-1, 0600, &s->requests.mq, &depth);
	if (r < 0) {
		s->requests.mq = -1;
		return r;
	}
	/* A child may tell its load, and not take what others tell. */
	s->queues.reports = mq_open(name, O_WRONLY | O_NONBLOCK | O_CLOEXEC);
	s->requests.event = event_new(s->instance.loop, s->requests.mq,
	    EV_READ | EV_PERSIST, on_records, s);
	if (s->queues.reports < 0 || s->requests.event == NULL ||
	    event_add(s->requests.event, NULL) < 0) {
		close_queue(s);
		return -ENOMEM;
	}
	return 0;
}

static bool
queue_is_lost(const struct super *s)
{
	struct stat st;

	return s->requests.mq >= 0 && fstat(s->requests.mq, &st) == 0 &&
	    st.st_nlink == 0;
}

static void
check_queue(struct super *s)
{
	char name[IPC_NAME_MAX];
	uint32_t i;

	ipc_name_scheduler(s->instance.name, name);
	if (s->requests.mq >= 0 && mq_same(name, s->requests.mq))
		return;
	close_queue(s);
	if (open_queue(s) < 0)
		return;
	log_info("message queue %s: made again", name);
	for (i = 0; i < s->queues.nqueues; i++)
		child_give(&s->queues.queues[i]->group.child[ROLE_QUEUE_SEND],
		    "qscheduler", s->queues.reports);
	services_link_reports(s);
}

/* ---- the socket ---- */

static void
close_socket(struct super *s)
{
	if (s->requests.socket_event != NULL)
		event_free(s->requests.socket_event);
	s->requests.socket_event = NULL;
	ask_socket_close(s->instance.name, &s->requests.socket);
}

static void
on_datagrams(evutil_socket_t fd, short what UNUSED, void *arg)
{
	struct super *s = arg;
	struct ask ask;
	int i, r = 1;

	for (i = 0; r != 0 && i < REQUESTS_TURN; i++) {
		r = ask_socket_take(fd, &ask);
		if (r == -ETIME) {
			log_warning(
			    "a request of setqload came too late: dropped");
		} else if (r < 0 && r != -EBADMSG) {
			log_error("socket of requests: %s: closed, made again "
				  "within a second",
			    strerror(-r));
			close_socket(s);
			return;
		} else if (r == -EBADMSG ||
		    (r == 1 &&
			request_handle(s, &ask.msg, &ask.from, clock_mono()) <
			    0)) {
			s->requests.bad++;
		}
	}
}

static int
open_socket(struct super *s, int base)
{
	int r = ask_socket_open(
	    s->instance.name, base, s->requests.operators, &s->requests.socket);

	if (r < 0)
		return r;
	s->requests.socket_event = event_new(s->instance.loop,
	    s->requests.socket.fd, EV_READ | EV_PERSIST, on_datagrams, s);
	if (s->requests.socket_event != NULL &&
	    event_add(s->requests.socket_event, NULL) == 0)
		return 0;
	close_socket(s);
	return -ENOMEM;
}

static bool
socket_is_lost(const struct super *s)
{
	/* A look at the one in QUEUE_BASE could wait for the disk. */
	return s->requests.socket.fd >= 0 && s->requests.socket.base < 0 &&
	    !ask_socket_is_there(s->instance.name, &s->requests.socket);
}

static void
check_socket(struct super *s)
{
	char name[IPC_NAME_MAX];

	if (s->requests.socket.fd >= 0 && !socket_is_lost(s))
		return;
	close_socket(s);
	if (open_socket(s, -1) < 0)
		return;
	ipc_name_ask(s->instance.name, name);
	log_info("socket %s: made again", name);
}

/* Commands that do not know QUEUE_BASE find the socket in /dev/shm alone. */
static void
leave_base(struct super *s)
{
	struct ask_socket old = s->requests.socket;
	struct event *event = s->requests.socket_event;
	char name[IPC_NAME_MAX];

	if (old.fd < 0 || old.base < 0)
		return;
	if (open_socket(s, -1) < 0) {
		s->requests.socket = old;
		s->requests.socket_event = event;
		return;
	}
	event_free(event);
	ask_socket_close(s->instance.name, &old);
	ipc_name_ask(s->instance.name, name);
	log_info("socket %s: made again", name);
}

/* ---- both ---- */

/* Names are looked up here alone, since that may wait for a directory service;
 * members of operator_group are shown by number. */
static void
learn_user(struct request_user *user, uid_t uid)
{
	const struct passwd *pw = getpwuid(uid);

	user->uid = uid;
	snprintf(user->name, sizeof(user->name), "%s",
	    pw == NULL ? "" : pw->pw_name);
}

void
requests_open(struct super *s)
{
	char text[SHM_TEXT_SIZE];
	const char *why;
	int r;

	/* In a private instance there is no other user. */
	s->requests.operators = geteuid() != 0
	    ? (gid_t)-1
	    : daemon_group(s->instance.conf->operator_group);
	learn_user(&s->requests.users[0], 0);
	learn_user(&s->requests.users[1], geteuid());
	r = open_queue(s);
	if (r < 0)
		log_warning("message queue of load reports: %s: they are not "
			    "heard; tried again every minute",
		    strerror(-r));
	r = open_socket(s, -1);
	if (r == 0)
		return;
	why = shm_describe(r, text);
	/* At the start alone: later the loop does not wait for a disk. */
	r = open_socket(s, s->base.fd);
	if (r == 0)
		log_warning("socket of requests: %s: commands find the socket "
			    "at %s/ask; tried again every minute",
		    why, s->base.path);
	else
		log_warning("socket of requests: %s; %s/ask: %s: no request is "
			    "heard; tried again every second",
		    why, s->base.path, strerror(-r));
}

void
requests_close(struct super *s)
{
	close_queue(s);
	close_socket(s);
}

/* One system call for each, so in each tick: no request is heard meanwhile. A
 * socket that could not be had costs no more than that either. */
void
requests_tick(struct super *s)
{
	if (queue_is_lost(s))
		check_queue(s);
	if (s->requests.socket.fd < 0 || socket_is_lost(s))
		check_socket(s);
}

void
requests_health(struct super *s)
{
	check_queue(s);
	check_socket(s);
	leave_base(s);
}
