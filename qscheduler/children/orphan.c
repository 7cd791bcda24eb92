#include "qscheduler/children/children.h"

#include <errno.h>
#include <event2/event.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/pidfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/io.h"
#include "ipc/names.h"
#include "ipc/page.h"
#include "log/log.h"

/* Beside stop_time_limit, to end deliveries. */
#define END_GRACE   (5 * USEC_PER_SEC)
/* A process that SIGKILL does not end by then hangs in the kernel. */
#define STUCK_AFTER (10 * USEC_PER_SEC)
#define STUCK_AGAIN (60 * USEC_PER_SEC)

/* ---- the roster ---- */

static void
open_roster(struct children *all)
{
	char name[IPC_NAME_MAX];
	int r;

	all->orphans.fd = -1;
	ipc_name_children(all->instance->name, name);
	r = roster_open(name, &all->orphans.fd);
	if (r < 0)
		log_error("ALERT: shared memory %s: %s: after a kill of this "
			  "process, agents that are stopped will not be known",
		    name, strerror(-r));
}

static void
write_down(const struct children *all, const char *child, uint32_t queue,
    uint32_t generation, uint32_t place, pid_t pid)
{
	const int fd = all->orphans.fd;
	int r = fd < 0 ? 0 : roster_write(fd, queue, generation, place, pid);

	if (r < 0)
		log_warning("%s (pid %ld): not written down: %s", child,
		    (long)pid, strerror(-r));
}

void
orphans_record(const struct child *c)
{
	const struct group *g = c->group;

	write_down(g->all, c->name, g->number, g->generation,
	    (uint32_t)(c - g->child), c->process.pid);
}

/* ---- orphans ---- */

struct orphan {
	LIST_ENTRY(orphan) link;
	struct children *all;
	uint32_t queue, generation, place;
	char name[CHILD_NAME_SIZE];
	struct process process;
	struct event *gone;
	bool sure;   /* the start time is the one in the roster */
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

bool
orphans_of_generation(
    const struct children *all, uint32_t queue, uint32_t generation)
{
	const struct orphan *o;

	LIST_FOREACH (o, &all->orphans.list, link)
		if (o->queue == queue && o->generation == generation)
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
	if (!o->sure || o->killed)
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
	const uint32_t queue = o->queue, generation = o->generation;
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
	all->orphans_gone(all->ctx, queue, generation);
}

static void
on_gone(evutil_socket_t fd UNUSED, short what UNUSED, void *arg)
{
	struct orphan *o = arg;

	if (has_ended(o))
		orphan_end(o);
}

/* ---- found at the start ---- */

enum identity {
	IDENTITY_ANOTHER, /* or none */
	IDENTITY_UNSURE,  /* start times are hidden */
	IDENTITY_SURE,
};

/* The pidfd is open by then, and stands for the process that was identified. */
static enum identity
identify(const struct roster_record *r)
{
	const int64_t ticks = page_start_ticks((pid_t)r->pid);

	if (ticks < 0)
		return IDENTITY_ANOTHER;
	if (ticks == 0 || r->start_ticks == 0)
		return IDENTITY_UNSURE;
	return ticks == r->start_ticks ? IDENTITY_SURE : IDENTITY_ANOTHER;
}

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
	if (o->sure) /* if it is stopped it has to see that it is alone */
		(void)process_signal(&o->process, SIGCONT);
}

static void
find(struct children *all, uint32_t queue, const struct roster_row *row,
    uint32_t place)
{
	const usec_t limit = all->instance->conf->stop_time_limit;
	const struct roster_record *r = &row->records[place];
	enum identity identity;
	int pidfd;

	if (r->pid == 0 || r->pid > INT32_MAX)
		return;
	pidfd = pidfd_open((pid_t)r->pid, 0);
	identity = pidfd < 0 ? IDENTITY_ANOTHER : identify(r);
	if (identity == IDENTITY_ANOTHER) {
		io_close(&pidfd);
		return;
	}
	orphan_add(&(struct orphan){
	    .all = all,
	    .queue = queue,
	    .generation = row->generation,
	    .place = place,
	    .process = { (pid_t)r->pid, pidfd },
	    .sure = identity == IDENTITY_SURE,
	    .act_at = clock_mono() + limit + END_GRACE,
	});
}

/* Agents without their queue-send have nobody to report to. */
static void
find_all(struct children *all, const struct roster *roster)
{
	uint32_t queue, place;

	for (queue = 0; queue <= CONF_QUEUE_NUM_MAX; queue++) {
		for (place = 0; place < GROUP_MAX; place++)
			find(all, queue, &roster->rows[queue], place);
		if (queue != 0 && !has_leader(all, queue))
			hurry_others(all, queue, clock_mono());
	}
}

void
orphans_open(struct children *all)
{
	struct roster *roster;

	LIST_INIT(&all->orphans.list);
	open_roster(all);
	all->orphans.made_at = clock_mono();
	if (all->orphans.fd < 0)
		return;
	all->orphans.made_at = 0;
	roster = malloc(sizeof(*roster));
	if (roster != NULL && roster_read(all->orphans.fd, roster) == 0)
		find_all(all, roster);
	else
		log_error("processes of an earlier supervisor are not known");
	free(roster);
}

void
orphans_close(struct children *all, bool anybody_left)
{
	char name[IPC_NAME_MAX];
	struct orphan *o;

	anybody_left |= orphans_any(all);
	while ((o = LIST_FIRST(&all->orphans.list)) != NULL) {
		LIST_REMOVE(o, link);
		orphan_free(o);
	}
	if (all->orphans.fd < 0)
		return;
	ipc_name_children(all->instance->name, name);
	if (!anybody_left && segment_is_same(name, all->orphans.fd))
		(void)shm_unlink(name);
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

/* False: it is given up. */
static bool
orphan_act(struct orphan *o, usec_t now)
{
	if (!o->sure) {
		log_error("ALERT: pid %ld, perhaps %s of an earlier "
			  "supervisor, does not end: %s goes on without "
			  "knowing",
		    (long)o->process.pid, o->name, waits_for(o));
		return false;
	}
	if (!o->killed) {
		orphan_kill(o, now);
		return true;
	}
	log_error("ALERT: %s (pid %ld) of an earlier supervisor does not end, "
		  "though it was killed: %s waits for it",
	    o->name, (long)o->process.pid, waits_for(o));
	o->stuck = true;
	o->act_at = now + STUCK_AGAIN;
	return true;
}

static void
orphan_tick(struct orphan *o, usec_t now)
{
	if (has_ended(o) || (now >= o->act_at && !orphan_act(o, now)))
		orphan_end(o);
}

static void
write_down_all(const struct children *all)
{
	const struct orphan *o;
	const struct group *g;
	unsigned i;

	LIST_FOREACH (o, &all->orphans.list, link)
		write_down(all, o->name, o->queue, o->generation, o->place,
		    o->process.pid);
	LIST_FOREACH (g, &all->groups, link)
		for (i = 0; i < g->n; i++)
			if (g->child[i].process.pid > 0)
				orphans_record(&g->child[i]);
}

/* A roster that is damaged is made again; one that was not to be had is tried
 * again every minute. */
static void
mend_roster(struct children *all, usec_t now)
{
	struct orphans *o = &all->orphans;

	if (o->fd >= 0 && roster_is_whole(o->fd))
		return;
	if (!log_due(now, EVERY_HEALTH, &o->made_at))
		return;
	if (o->fd >= 0)
		log_warning("shared memory of this process's children was "
			    "taken away, cut off or written over: made again");
	io_close(&o->fd);
	open_roster(all);
	write_down_all(all);
	if (o->fd >= 0)
		o->made_at = 0;
}

void
orphans_tick(struct children *all, usec_t now)
{
	struct orphan *o, *next;

	mend_roster(all, now);
	for (o = LIST_FIRST(&all->orphans.list); o != NULL; o = next) {
		next = LIST_NEXT(o, link);
		orphan_tick(o, now);
	}
}
