#include "qscheduler/children/children.h"

#include <errno.h>
#include <event2/event.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/io.h"
#include "log/log.h"

/* Beside stop_time_limit, to end deliveries. */
#define END_GRACE   (5 * USEC_PER_SEC)
/* A process that SIGKILL does not end by then hangs in the kernel. */
#define STUCK_AFTER (10 * USEC_PER_SEC)
#define STUCK_AGAIN (60 * USEC_PER_SEC)

/* ---- orphans ---- */

struct orphan {
	LIST_ENTRY(orphan) link;
	struct children *all;
	uint32_t queue, place;
	char name[CHILD_NAME_SIZE];
	struct process process;
	struct event *gone;
	bool killed; /* SIGKILL was sent */
	bool stuck;  /* hangs though it was killed: nothing of it runs */
	usec_t act_at;
};

static bool
has_ended(const struct orphan *o)
{
	struct pollfd wait = { o->process.pidfd, POLLIN, 0 };

	return poll(&wait, 1, 0) == 1;
}

bool
orphans_any(const struct children *all)
{
	return !LIST_EMPTY(&all->orphans.list);
}

bool
orphans_any_to_count(const struct children *all)
{
	const struct orphan *o;

	LIST_FOREACH (o, &all->orphans.list, link)
		if (!o->stuck)
			return true;
	return false;
}

bool
orphans_of(const struct children *all, uint32_t queue)
{
	const struct orphan *o;

	LIST_FOREACH (o, &all->orphans.list, link)
		if (o->queue == queue)
			return true;
	return false;
}

static void
orphan_free(struct orphan *o)
{
	if (o->gone != NULL)
		event_free(o->gone);
	io_close(&o->process.pidfd);
	free(o);
}

static void
hurry(struct orphan *o, usec_t now)
{
	if (o->killed)
		return;
	(void)process_signal(&o->process, SIGTERM);
	(void)process_signal(&o->process, SIGCONT);
	if (o->act_at > now + FOLLOW_LIMIT)
		o->act_at = now + FOLLOW_LIMIT;
}

static void
hurry_others(struct children *all, uint32_t queue, usec_t now)
{
	struct orphan *o = LIST_FIRST(&all->orphans.list);

	for (; o != NULL; o = LIST_NEXT(o, link))
		if (o->queue == queue)
			hurry(o, now);
}

static bool
is_leader(const struct orphan *o)
{
	return o->queue != 0 && o->place == ROLE_QUEUE_SEND;
}

static bool
has_leader(const struct children *all, uint32_t queue)
{
	const struct orphan *o;

	LIST_FOREACH (o, &all->orphans.list, link)
		if (o->queue == queue && is_leader(o))
			return true;
	return false;
}

static void
orphan_end(struct orphan *o)
{
	struct children *all = o->all;
	const uint32_t queue = o->queue;
	const bool leader = is_leader(o);

	LIST_REMOVE(o, link);
	log_debug("%s (pid %ld) of an earlier supervisor has ended", o->name,
	    (long)o->process.pid);
	orphan_free(o);
	if (leader)
		hurry_others(all, queue, clock_mono());
	if (orphans_of(all, queue))
		return;
	if (queue != 0)
		log_info("queue %" PRIu32 ": the processes of an earlier "
			 "supervisor have ended",
		    queue);
	all->orphans_gone(all->ctx, queue);
}

static void
on_gone(evutil_socket_t fd UNUSED, short what UNUSED, void *arg)
{
	struct orphan *o = arg;

	if (has_ended(o))
		orphan_end(o);
}

/* ---- found at the start ---- */

static const char *
waits_for(const struct orphan *o)
{
	return o->queue == 0 ? "the next one" : "its queue";
}

static void
orphan_add(const struct orphan *like)
{
	struct orphan *o = malloc(sizeof(*o));
	int pidfd = like->process.pidfd;

	if (o == NULL) {
		io_close(&pidfd);
		return;
	}
	*o = *like;
	/* Without this event the tick finds the end of the orphan. */
	o->gone = event_new(o->all->instance->loop, pidfd, EV_READ, on_gone, o);
	if (o->gone != NULL)
		(void)event_add(o->gone, NULL);
	role_describe(o->queue, o->place, o->name);
	LIST_INSERT_HEAD(&o->all->orphans.list, o, link);
	log_info("%s (pid %ld) of an earlier supervisor is still there: %s "
		 "waits for its end",
	    o->name, (long)o->process.pid, waits_for(o));
	/* If it is stopped it has to see that it is alone. */
	(void)process_signal(&o->process, SIGCONT);
}

/* The first place counts of a process that has taken the locks of others. */
static bool
is_known(const struct children *all, pid_t pid)
{
	const struct orphan *o;

	LIST_FOREACH (o, &all->orphans.list, link)
		if (o->process.pid == pid)
			return true;
	return false;
}

static bool
has_lock(const struct children *all, off_t at, pid_t pid)
{
	pid_t holder;

	return child_lock_holder(all->orphans.fd, at, &holder) == 1 &&
	    holder == pid;
}

static void
find_orphan(struct children *all, uint32_t queue, uint32_t place)
{
	const usec_t limit = all->instance->conf->stop_time_limit;
	const off_t at = child_lock_at(queue, place);
	pid_t pid;
	int pidfd;

	if (child_lock_holder(all->orphans.fd, at, &pid) != 1 || pid <= 0 ||
	    is_known(all, pid))
		return;
	pidfd = pidfd_open(pid, 0);
	/* The pid may be another process's by now; that one has no lock. */
	if (pidfd < 0 || !has_lock(all, at, pid)) {
		io_close(&pidfd);
		return;
	}
	orphan_add(&(struct orphan){
	    .all = all,
	    .queue = queue,
	    .place = place,
	    .process = { pid, pidfd },
	    .act_at = clock_mono() + limit + END_GRACE,
	});
}

/* Agents without their queue-send have nobody to report to. */
static void
find_all(struct children *all)
{
	uint32_t queue, place;

	for (queue = 0; queue <= CONF_QUEUE_NUM_MAX; queue++) {
		if (child_locks_any(all->orphans.fd, queue) != 1)
			continue;
		for (place = 0; place < GROUP_MAX; place++)
			find_orphan(all, queue, place);
		if (queue != 0 && !has_leader(all, queue))
			hurry_others(all, queue, clock_mono());
	}
}

void
orphans_open(struct children *all, int base)
{
	int r;

	LIST_INIT(&all->orphans.list);
	all->orphans.fd = -1;
	r = child_locks_open(base, &all->orphans.fd);
	if (r == 0)
		r = child_locks_any(all->orphans.fd, 0);
	if (r < 0)
		log_error("ALERT: %s/children: %s: processes of an earlier "
			  "supervisor are not known: they may exceed limits "
			  "of destinations for a while",
		    all->instance->conf->queue_base, strerror(-r));
	else
		find_all(all);
}

void
orphans_close(struct children *all)
{
	struct orphan *o;

	while ((o = LIST_FIRST(&all->orphans.list)) != NULL) {
		LIST_REMOVE(o, link);
		orphan_free(o);
	}
	io_close(&all->orphans.fd);
}

/* ---- orphans that do not end ---- */

/* The process group has this number as long as the orphan is there. */
static void
orphan_kill(struct orphan *o, usec_t now)
{
	log_warning("%s (pid %ld) of an earlier supervisor does not end: "
		    "killed",
	    o->name, (long)o->process.pid);
	(void)kill(-o->process.pid, SIGKILL);
	(void)process_signal(&o->process, SIGKILL);
	o->killed = true;
	o->act_at = now + STUCK_AFTER;
}

static void
orphan_act(struct orphan *o, usec_t now)
{
	if (!o->killed) {
		orphan_kill(o, now);
		return;
	}
	log_error("ALERT: %s (pid %ld) of an earlier supervisor does not end, "
		  "though it was killed: %s waits for it",
	    o->name, (long)o->process.pid, waits_for(o));
	o->stuck = true;
	o->act_at = now + STUCK_AGAIN;
}

static void
orphan_tick(struct orphan *o, usec_t now)
{
	if (has_ended(o))
		orphan_end(o);
	else if (now >= o->act_at)
		orphan_act(o, now);
}

void
orphans_tick(struct children *all, usec_t now)
{
	struct orphan *o, *next;

	for (o = LIST_FIRST(&all->orphans.list); o != NULL; o = next) {
		next = LIST_NEXT(o, link);
		orphan_tick(o, now);
	}
}
