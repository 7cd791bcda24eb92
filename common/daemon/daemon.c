#include "daemon/daemon.h"

#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/io.h"
#include "base/num.h"
#include "ipc/wire.h"
#include "log/log.h"
#include "spool/id.h"

/* The time that a program has after the limit of its stop, before it is ended.
 */
#define STOP_GRACE    (2 * USEC_PER_SEC)
#define STOP_MAX      (86400 * USEC_PER_SEC)
#define LINK_NAME_MAX 32

/* ---- stop ---- */

void
daemon_exit(struct daemon *d, int status)
{
	if (d->exiting)
		return;
	d->exiting = true;
	d->status = status;
	event_base_loopbreak(d->base);
}

static void
on_deadline(evutil_socket_t fd UNUSED, short what UNUSED, void *arg)
{
	log_warning("the time to stop is over: ended with work undone");
	daemon_exit(arg, EXIT_TEMPORARY);
}

static void
begin_stop(struct daemon *d, usec_t limit)
{
	struct timeval tv;

	if (d->stopping)
		return;
	d->stopping = true;
	limit = limit < 0 ? 0 : limit > STOP_MAX ? STOP_MAX : limit;
	tv = clock_timeval(limit + STOP_GRACE);
	(void)evtimer_add(d->deadline, &tv);
	if (d->ops->stop != NULL)
		d->ops->stop(d, limit);
	else
		daemon_exit(d, 0);
}

/* ---- the channel ---- */

static void
send_up(struct daemon *d, const struct msg *msg)
{
	int r = d->channel == NULL ? -EPIPE : wire_send(d->channel, msg, -1);

	/* on_closed() reports -EPIPE. */
	if (r < 0 && r != -EPIPE)
		log_warning("%s to the supervisor: %s: not sent",
		    msg_name(msg->type), strerror(-r));
}

static bool
is_known_to_program(struct daemon *d, const struct msg *msg)
{
	return d->ops->told != NULL && d->ops->told(d, msg) == 0;
}

static void
on_link(struct daemon *d, struct chan_frame *frame)
{
	const struct msg_str *name = &frame->msg.u.LINK.name;
	char copy[LINK_NAME_MAX];
	int fd = frame->fd;

	d->generation = frame->msg.u.LINK.generation;
	if (fd < 0 || name->len >= sizeof(copy) || d->ops->linked == NULL) {
		log_warning("a link without a descriptor or a use: dropped");
		return;
	}
	memcpy(copy, name->data, name->len);
	copy[name->len] = '\0';
	frame->fd = -1;
	d->ops->linked(d, copy, fd);
}

static void
on_reload(struct daemon *d, struct chan_frame *frame UNUSED)
{
	if (!d->stopping)
		daemon_reload(d);
}

static void
on_flush(struct daemon *d, struct chan_frame *frame UNUSED)
{
	daemon_flush(d);
}

static void
on_stop(struct daemon *d, struct chan_frame *frame)
{
	begin_stop(d, frame->msg.u.STOP.limit_usec);
}

static void
on_ending(struct daemon *d, struct chan_frame *frame)
{
	if (d->ops->ending != NULL && !d->stopping)
		d->ops->ending(d, frame->msg.u.ENDING.limit_usec);
}

/* Only a loop that runs gets here. */
static void
on_ping(struct daemon *d, struct chan_frame *frame)
{
	const struct msg pong = { .type = MSG_PONG,
		.u.PONG = { .serial = frame->msg.u.PING.serial } };

	send_up(d, &pong);
}

static const struct {
	enum msg_type type;
	void (*handle)(struct daemon *d, struct chan_frame *frame);
} frames[] = {
	{ MSG_PING, on_ping },
	{ MSG_LINK, on_link },
	{ MSG_RELOAD, on_reload },
	{ MSG_FLUSH, on_flush },
	{ MSG_STOP, on_stop },
	{ MSG_ENDING, on_ending },
};

static void
on_frame(void *arg, struct wire *w UNUSED, struct chan_frame *frame)
{
	size_t i;

	for (i = 0; i < ARRAY_LEN(frames); i++)
		if (frames[i].type == frame->msg.type) {
			frames[i].handle(arg, frame);
			return;
		}
	if (!is_known_to_program(arg, &frame->msg))
		log_warning("the supervisor sent %s, which this program "
			    "does not know: dropped",
		    msg_name(frame->msg.type));
}

static void
on_bad(void *arg UNUSED, struct wire *w UNUSED)
{
	log_warning("a bad frame from the supervisor: dropped");
}

static void
on_closed(void *arg, struct wire *w UNUSED)
{
	struct daemon *d = arg;

	words_forget();
	if (!d->stopping)
		log_warning("the supervisor is gone: stopping");
	begin_stop(d, d->conf->stop_time_limit);
}

static const struct wire_ops channel_ops = {
	.frame = on_frame,
	.bad = on_bad,
	.closed = on_closed,
};

void
daemon_ready(struct daemon *d)
{
	struct msg msg = { .type = MSG_READY,
		.u.READY = { .pid = (uint32_t)getpid() } };

	send_up(d, &msg);
}

void
daemon_status(struct daemon *d, const char *text)
{
	struct msg msg = { .type = MSG_STATUS,
		.u.STATUS = { .text = MSG_S(text) } };

	send_up(d, &msg);
}

void
daemon_tell(struct daemon *d, const struct msg *msg)
{
	send_up(d, msg);
}

/* ---- signals, which come through the loop ---- */

static void
on_signal_stop(struct daemon *d)
{
	begin_stop(d, d->conf->stop_time_limit);
}

static void
on_signal_reload(struct daemon *d)
{
	on_reload(d, NULL);
}

static void
on_signal_flush(struct daemon *d)
{
	on_flush(d, NULL);
}

static const struct {
	int signal;
	void (*handle)(struct daemon *d);
} signals[DAEMON_NSIGNALS] = {
	{ SIGTERM, on_signal_stop },
	{ SIGINT, on_signal_stop },
	{ SIGHUP, on_signal_reload },
	{ SIGALRM, on_signal_flush },
};

static void
on_signal(evutil_socket_t sig, short what UNUSED, void *arg)
{
	size_t i;

	for (i = 0; i < ARRAY_LEN(signals); i++)
		if (signals[i].signal == sig)
			signals[i].handle(arg);
}

/* ---- start ---- */

static void
complain(const struct daemon_ops *ops, const char *what)
{
	fprintf(stderr, "%s: %s\n", ops->name, what);
	words_say(what);
}

static int
parse_arguments(struct daemon *d, int argc, char **argv)
{
	uint64_t queue;
	int c;

	opterr = 0;
	while ((c = getopt(argc, argv, "+c:")) != -1) {
		if (c != 'c')
			return -EINVAL;
		d->conf_path = optarg;
	}
	if (optind + 1 != argc ||
	    num_u64(argv[optind], 0, QUEUE_NUM_MAX, &queue) < 0)
		return -EINVAL;
	d->queue = (uint32_t)queue;
	if (getenv(DAEMON_CONF_VARIABLE) != NULL)
		d->conf_path = getenv(DAEMON_CONF_VARIABLE);
	return 0;
}

static bool
is_channel(int fd)
{
	int domain = 0, type = 0;
	socklen_t len = sizeof(int);

	if (getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &len) < 0)
		return false;
	len = sizeof(int);
	if (getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &len) < 0)
		return false;
	return domain == AF_UNIX && type == SOCK_SEQPACKET;
}

/* Arguments, channel, configuration, log, user: an exit code, 0 to go on. */
static int
prepare(struct daemon *d, int argc, char **argv)
{
	struct daemon_users users;
	struct buf error = { 0 };
	int r;

	if (parse_arguments(d, argc, argv) < 0 ||
	    !is_channel(DAEMON_CHANNEL_FD)) {
		complain(d->ops, "is started by qscheduler");
		return EXIT_PERMANENT;
	}
	words_begin(DAEMON_CHANNEL_FD);
	d->conf = calloc(1, sizeof(*d->conf));
	r = d->conf == NULL ? -ENOMEM
			    : conf_load(d->conf_path, d->conf, &error);
	if (r == 0) {
		snprintf(d->log_name, sizeof(d->log_name), "%s/%u",
		    d->ops->name, d->queue);
		daemon_open_log(d->conf, d->log_name);
		r = daemon_users(d->conf, &users, &error);
	}
	if (r == 0) {
		d->private = users.private;
		r = daemon_become(&users, d->ops->user);
	}
	if (r < 0)
		complain(
		    d->ops, error.len > 0 ? buf_str(&error) : strerror(-r));
	buf_done(&error);
	return r < 0 ? daemon_exit_code(r) : 0;
}

static int
open_loop(struct daemon *d)
{
	size_t i;

	/* Both came over an exec; the programs of deliver-local must not get
	 * them. */
	if (fcntl(DAEMON_CHANNEL_FD, F_SETFD, FD_CLOEXEC) < 0)
		return -errno;
	(void)fcntl(DAEMON_LOCK_FD, F_SETFD, FD_CLOEXEC);
	d->base = daemon_loop_new(d->ops->many);
	if (d->base == NULL)
		return -ENOMEM;
	words_attach(d->base);
	d->deadline = evtimer_new(d->base, on_deadline, d);
	if (d->deadline == NULL)
		return -ENOMEM;
	for (i = 0; i < ARRAY_LEN(signals); i++) {
		d->signals[i] =
		    evsignal_new(d->base, signals[i].signal, on_signal, d);
		if (d->signals[i] == NULL ||
		    evsignal_add(d->signals[i], NULL) < 0)
			return -ENOMEM;
	}
	return wire_new(
	    d->base, DAEMON_CHANNEL_FD, &channel_ops, d, &d->channel);
}

static void
close_loop(struct daemon *d)
{
	size_t i;

	if (d->channel != NULL)
		wire_free(&d->channel);
	for (i = 0; i < ARRAY_LEN(signals); i++)
		if (d->signals[i] != NULL)
			event_free(d->signals[i]);
	if (d->deadline != NULL)
		event_free(d->deadline);
	if (d->base != NULL)
		event_base_free(d->base);
}

/* The lines of a turn are written together, before the loop waits again. False:
 * nobody asked for the end. */
static bool
loop(struct daemon *d)
{
	bool goes_on = true;

	log_gather(true);
	while (!d->exiting && goes_on) {
		log_flush();
		goes_on = event_base_loop(d->base, EVLOOP_ONCE) == 0;
	}
	log_gather(false);
	return d->exiting;
}

static int
run(struct daemon *d)
{
	int r;

	if (d->ops->lockdown != NULL)
		d->ops->lockdown(d);
	r = open_loop(d);
	if (r < 0) {
		log_error("event loop: %s", strerror(-r));
		return daemon_exit_code(r);
	}
	r = d->ops->start == NULL ? 0 : d->ops->start(d);
	if (r < 0)
		return daemon_exit_code(r);
	if (!loop(d)) {
		log_error("event loop ended by itself");
		return EXIT_TEMPORARY;
	}
	if (d->ops->done != NULL)
		d->ops->done(d);
	return d->status;
}

int
daemon_main(int argc, char **argv, const struct daemon_ops *ops, void *state)
{
	struct daemon d = { .ops = ops, .state = state };
	int status;

	daemon_sane_process();
	status = prepare(&d, argc, argv);
	if (status == 0)
		status = run(&d);
	words_end();
	/* A thread that is left behind reads the configuration. */
	if (daemon_reload_done(&d))
		conf_free(&d.conf);
	close_loop(&d);
	return status;
}
