#include "qscheduler/children/orphan.h"

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
#include "qscheduler/children/roster.h"
#include "qscheduler/supervisor/super.h"

/* With nobody to report to there is no use in more time. */
#define FOLLOW_LIMIT (2 * USEC_PER_SEC)
/* Beside stop_time_limit, for who still has deliveries to end. */
#define END_GRACE    (5 * USEC_PER_SEC)
/* What SIGKILL does not end hangs in the kernel. */
#define STUCK_AFTER  (10 * USEC_PER_SEC)
#define STUCK_AGAIN  (60 * USEC_PER_SEC)
#define TRIES        3

_Static_assert(NROLES == ROSTER_PLACES, "one for each");

/* ---- the roster ---- */

static void
open_roster(struct super *s)
{
	char name[IPC_NAME_MAX];
	int r;

	s->orphans.fd = -1;
	ipc_name_children(s->instance, name);
	r = roster_open(name, &s->orphans.fd);
	if (r < 0)
		log_error("ALERT: shared memory %s: %s: after a kill of this "
			  "process, agents that are stopped will not be known",
		    name, strerror(-r));
}

static void
write_down(const struct super *s, uint32_t queue, uint32_t generation,
    enum role role, pid_t pid)
{
	int r;

	if (s->orphans.fd < 0)
		return;
	r = roster_write(s->orphans.fd, queue, generation, role, pid);
	if (r < 0)
		log_warning("%s/%" PRIu32 " (pid %ld): not written down: %s",
		    role_names[role], queue, (long)pid, strerror(-r));
}

void
orphans_record(const struct child *c)
{
	const struct queue *q = c->queue;

	write_down(q->super, q->number, q->group, c->role, c->process.pid);
}

/* ---- orphans ---- */

struct orphan {
	LIST_ENTRY(orphan) link;
	struct super *super;
	uint32_t queue, generation;
	enum role role;
	struct process process;
	struct event *gone;
	bool sure;   /* its start time is the one that was written down */
	bool killed; /* or told to end, where it may not be killed */
	bool stuck;  /* though it was killed: nothing of it runs any more */
	usec_t act_at;
};

static bool
has_ended(const struct orphan *o)
{
	struct pollfd look = { o->process.pidfd, POLLIN, 0 };

	return poll(&look, 1, 0) == 1;
}

bool
orphans_any(const struct super *s)
{
	return !LIST_EMPTY(&s->orphans.list);
}

bool
orphans_any_to_count(const struct super *s)
{
	const struct orphan *o;

	LIST_FOREACH (o, &s->orphans.list, link)
		if (!o->stuck)
			return true;
	return false;
}

bool
orphans_of(const struct super *s, uint32_t queue)
{
	const struct orphan *o;

	LIST_FOREACH (o, &s->orphans.list, link)
		if (o->queue == queue)
			return true;
	return false;
}

bool
orphans_of_group(const struct super *s, uint32_t queue, uint32_t generation)
{
	const struct orphan *o;

	LIST_FOREACH (o, &s->orphans.list, link)
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

/* Agents have nobody to report to then. */
static void
leader_gone(struct super *s, uint32_t queue, usec_t now)
{
	struct orphan *o = LIST_FIRST(&s->orphans.list);

	for (; o != NULL; o = LIST_NEXT(o, link))
		if (o->queue == queue)
			hurry(o, now);
}

static bool
has_leader(const struct super *s, uint32_t queue)
{
	const struct orphan *o;

	LIST_FOREACH (o, &s->orphans.list, link)
		if (o->queue == queue && o->role == ROLE_QUEUE_SEND)
			return true;
	return false;
}

static void
orphan_end(struct orphan *o)
{
	struct super *s = o->super;
	const uint32_t queue = o->queue, generation = o->generation;
	const bool leader = o->role == ROLE_QUEUE_SEND;

	LIST_REMOVE(o, link);
	log_debug("%s/%" PRIu32 " (pid %ld) of an earlier supervisor has ended",
	    role_names[o->role], queue, (long)o->process.pid);
	orphan_free(o);
	if (leader)
		leader_gone(s, queue, clock_mono());
	if (orphans_of(s, queue))
		return;
	log_info("queue %" PRIu32 ": the processes of an earlier supervisor "
		 "have ended",
	    queue);
	sites_forget(s, queue, generation);
	queue_orphans_gone(s, queue);
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

/* Looked at when the pidfd is there: it stands for that process. */
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

static void
orphan_add(struct super *s, const struct orphan *like)
{
	struct orphan *o = malloc(sizeof(*o));
	int pidfd = like->process.pidfd;

	if (o == NULL) {
		io_close(&pidfd);
		return;
	}
	*o = *like;
	/* Without it the tick finds its end, too. */
	o->gone = event_new(s->loop, pidfd, EV_READ, on_gone, o);
	if (o->gone != NULL)
		(void)event_add(o->gone, NULL);
	LIST_INSERT_HEAD(&s->orphans.list, o, link);
	log_info("%s/%" PRIu32 " (pid %ld) of an earlier supervisor is still "
		 "there: its queue waits for its end",
	    role_names[o->role], o->queue, (long)o->process.pid);
	if (o->sure) /* one that is stopped has to see that it is alone */
		(void)process_signal(&o->process, SIGCONT);
}

static void
find(struct super *s, uint32_t queue, const struct roster_row *row,
    enum role role)
{
	const struct roster_record *r = &row->records[role];
	enum identity who;
	int pidfd;

	if (r->pid == 0 || r->pid > INT32_MAX)
		return;
	pidfd = pidfd_open((pid_t)r->pid, 0);
	who = pidfd < 0 ? IDENTITY_ANOTHER : identify(r);
	if (who == IDENTITY_ANOTHER) {
		io_close(&pidfd);
		return;
	}
	orphan_add(s,
	    &(struct orphan){
		.super = s,
		.queue = queue,
		.generation = row->generation,
		.role = role,
		.process = { (pid_t)r->pid, pidfd },
		.sure = who == IDENTITY_SURE,
		.act_at = clock_mono() + s->conf->stop_time_limit + END_GRACE,
	    });
}

static void
find_all(struct super *s, const struct roster *roster)
{
	uint32_t queue;
	int role;

	for (queue = 0; queue <= QUEUE_NUM_MAX; queue++) {
		for (role = 0; role < NROLES; role++)
			find(s, queue, &roster->rows[queue], (enum role)role);
		if (!has_leader(s, queue))
			leader_gone(s, queue, clock_mono());
	}
}

void
orphans_open(struct super *s)
{
	struct roster *roster;

	LIST_INIT(&s->orphans.list);
	open_roster(s);
	s->orphans.made_at = clock_mono();
	if (s->orphans.fd < 0)
		return;
	s->orphans.made_at = 0;
	roster = malloc(sizeof(*roster));
	if (roster != NULL && roster_read(s->orphans.fd, roster) == 0)
		find_all(s, roster);
	else
		log_error("processes of an earlier supervisor are not known");
	free(roster);
}

void
orphans_close(struct super *s, bool anybody_left)
{
	char name[IPC_NAME_MAX];
	struct orphan *o;

	anybody_left |= orphans_any(s);
	while ((o = LIST_FIRST(&s->orphans.list)) != NULL) {
		LIST_REMOVE(o, link);
		orphan_free(o);
	}
	if (s->orphans.fd < 0)
		return;
	ipc_name_children(s->instance, name);
	if (!anybody_left && publish_is_same(name, s->orphans.fd))
		(void)shm_unlink(name);
	io_close(&s->orphans.fd);
}

/* ---- those that do not end ---- */

/* Its group has its number as long as it is there itself. */
static void
orphan_kill(struct orphan *o, usec_t now)
{
	log_warning("%s/%" PRIu32 " (pid %ld) of an earlier supervisor does "
		    "not end: killed",
	    role_names[o->role], o->queue, (long)o->process.pid);
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
		log_error("ALERT: pid %ld, perhaps %s/%" PRIu32
			  " of an earlier supervisor, does not end: its queue "
			  "goes on without knowing",
		    (long)o->process.pid, role_names[o->role], o->queue);
		return false;
	}
	if (!o->killed) {
		orphan_kill(o, now);
		return true;
	}
	log_error("ALERT: %s/%" PRIu32 " (pid %ld) of an earlier supervisor "
		  "does not end, though it was killed: its queue waits for it",
	    role_names[o->role], o->queue, (long)o->process.pid);
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
write_down_all(const struct super *s)
{
	const struct orphan *o;
	uint32_t i;
	int role;

	LIST_FOREACH (o, &s->orphans.list, link)
		write_down(s, o->queue, o->generation, o->role, o->process.pid);
	for (i = 0; i < s->nqueues; i++)
		for (role = 0; role < NROLES; role++)
			if (s->queues[i]->children[role].process.pid > 0)
				orphans_record(&s->queues[i]->children[role]);
}

/* One that is damaged is made again; one that was not to be had is tried again
 * every minute. */
static void
look_after_roster(struct super *s, usec_t now)
{
	struct orphans *all = &s->orphans;

	if (all->fd >= 0 && roster_is_whole(all->fd))
		return;
	if (!log_due(now, SUPER_HEALTH, &all->made_at))
		return;
	if (all->fd >= 0)
		log_warning("shared memory of this process's children was "
			    "taken away, cut off or written over: made again");
	io_close(&all->fd);
	open_roster(s);
	write_down_all(s);
	if (all->fd >= 0)
		all->made_at = 0;
}

void
orphans_tick(struct super *s, usec_t now)
{
	struct orphan *o, *next;

	look_after_roster(s, now);
	for (o = LIST_FIRST(&s->orphans.list); o != NULL; o = next) {
		next = LIST_NEXT(o, link);
		orphan_tick(o, now);
	}
}
