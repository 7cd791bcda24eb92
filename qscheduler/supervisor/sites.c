#include "qscheduler/supervisor/super.h"

#include <errno.h>
#include <inttypes.h>
#include <sys/mman.h>

#include "base/clock.h"
#include "base/io.h"
#include "ipc/msg.h"
#include "ipc/names.h"
#include "log/log.h"
#include "site/shared.h"

/* Beside QUEUE_MAX: queues above it that have mail left, and members of a
 * supervisor that was killed, until their processes have ended. Rounded up, so
 * that one queue more or less at the next start is the same shape. */
#define MEMBERS_SPARE 4
#define MEMBERS_STEP  8
#define MEMBERS_MAX   256

static uint32_t
members(const struct super *s)
{
	const uint32_t queues =
	    s->nqueues > s->queue_max ? s->nqueues : s->queue_max;
	const uint32_t steps =
	    (queues + MEMBERS_SPARE + MEMBERS_STEP - 1) / MEMBERS_STEP;

	return steps * MEMBERS_STEP > MEMBERS_MAX ? MEMBERS_MAX
						  : steps * MEMBERS_STEP;
}

static struct shared_owner
owner_of(const struct super *s)
{
	const bool private = s->users.private;

	return (struct shared_owner){
		.uid = private ? (uid_t)-1 : s->users.qmails,
		.gid = private ? (gid_t)-1 : s->users.qmail,
	};
}

static bool
is_anybody_left(const struct super *s)
{
	uint32_t i;

	for (i = 0; i < s->nqueues; i++)
		if (!queue_is_down(s->queues[i]))
			return true;
	return orphans_any(s);
}

void
sites_close(struct super *s)
{
	char name[IPC_NAME_MAX];

	if (s->sites.fd < 0)
		return;
	ipc_name_sites(s->instance, name);
	if (!is_anybody_left(s) && publish_is_same(name, s->sites.fd))
		(void)shm_unlink(name);
	io_close(&s->sites.fd);
}

/* ---- a table that was lost ---- */

/* The process was killed, and no more can be done. */
static bool
child_is_stuck(const struct child *c)
{
	return c->proc.state == PROC_KILLED && c->proc.deadline == USEC_NEVER;
}

static void
link_all(struct super *s)
{
	uint32_t i;

	for (i = 0; i < s->nqueues; i++) {
		struct child *c = &s->queues[i]->children[ROLE_QUEUE_SEND];

		if (c->channel != NULL && proc_is_there(&c->proc))
			sites_link(c);
	}
}

/* Each of them may hold places that are counted nowhere but in the old one. */
static void
all_owe(struct super *s)
{
	uint32_t i;

	for (i = 0; i < s->nqueues; i++) {
		struct queue *q = s->queues[i];
		struct child *c = &q->children[ROLE_QUEUE_SEND];

		q->uncounted = !child_is_stuck(c) &&
		    (q->group_going || proc_is_there(&c->proc));
	}
	link_all(s);
}

static void
renew(struct super *s, const char *name, const char *why)
{
	const struct shared_owner owner = owner_of(s);
	struct sites *t = &s->sites;
	int fd = -1;
	int r = shared_renew(name, &t->shape, &owner, &t->id, &fd);

	if (r == 0)
		r = shared_identify(fd, &t->id);
	if (r < 0) {
		io_close(&fd);
		if (log_due(clock_mono(), SUPER_HEALTH, &t->complained))
			log_error("ALERT: shared memory %s %s, and cannot be "
				  "made again: %s: queues that have lost it "
				  "start no delivery; tried again every second",
			    name, why, strerror(-r));
		return;
	}
	log_warning("shared memory %s %s: made again; no delivery starts until "
		    "those that run are counted in it",
	    name, why);
	io_close(&t->fd);
	t->fd = fd;
	t->renewed = true;
	all_owe(s);
}

static bool
is_all_counted(const struct super *s)
{
	uint32_t i;

	for (i = 0; i < s->nqueues; i++)
		if (s->queues[i]->uncounted)
			return false;
	return true;
}

/* New tables are closed: a queue whose processes began with an older one has to
 * count what it holds, or end, before anybody takes a place. One that hangs in
 * the kernel though it was killed is not waited for: it begins nothing more,
 * and the disk that it waits for may never answer. */
static void
open_if_counted(struct super *s)
{
	struct sites *t = &s->sites;
	int r;

	if (t->id.open || orphans_any_to_count(s) || !is_all_counted(s))
		return;
	r = shared_open_up(t->fd);
	t->id.open = r == 0;
	if (r < 0 && log_due(clock_mono(), SUPER_HEALTH, &t->complained))
		log_error("the table of destinations: %s", strerror(-r));
	if (r == 0 && t->renewed)
		log_info("the new table of destinations is in use");
}

/* ---- start ---- */

/* At the start: only orphans have a member then. */
static bool
is_owner_there(void *ctx, uint32_t queue, uint32_t generation)
{
	return orphans_of_group(ctx, queue, generation);
}

static void
first(struct super *s, const char *name)
{
	const struct shared_owner owner = owner_of(s);
	struct sites *t = &s->sites;
	int r;

	r = shared_create(name, &t->shape, &owner, &t->fd);
	if (r == 0)
		r = shared_identify(t->fd, &t->id);
	if (r == 0)
		r = shared_owners(t->fd, is_owner_there, s);
	if (r == 0) {
		open_if_counted(s);
		link_all(s);
		return;
	}
	io_close(&t->fd);
	if (log_due(clock_mono(), SUPER_HEALTH, &t->complained))
		log_error("ALERT: shared memory %s: %s: no delivery starts "
			  "without it; tried again every second",
		    name, strerror(-r));
}

void
sites_open(struct super *s)
{
	char name[IPC_NAME_MAX];

	s->sites.shape = (struct shared_shape){
		.slots = s->conf->destination_table_size,
		.members = members(s),
		.spool = base_identity(&s->base),
	};
	ipc_name_sites(s->instance, name);
	first(s, name);
}

/* ---- while it runs ---- */

void
sites_tick(struct super *s)
{
	const char *why = "cannot be looked at";
	char name[IPC_NAME_MAX];

	ipc_name_sites(s->instance, name);
	if (s->sites.fd < 0 && !s->stopping)
		first(s, name);
	if (s->sites.fd < 0)
		return;
	if (!s->stopping && shared_check(s->sites.fd, &s->sites.id, &why) < 0)
		renew(s, name, why);
	open_if_counted(s);
}

/* One that has an older table has lost it while the new one was on its way. */
void
sites_on_lost(struct child *c, const struct msg_SITES_LOST *frame)
{
	struct super *s = c->queue->super;
	char name[IPC_NAME_MAX];

	if (c->role != ROLE_QUEUE_SEND || s->sites.fd < 0 || s->stopping)
		return;
	ipc_name_sites(s->instance, name);
	if (frame->number == s->sites.id.number)
		renew(s, name, "was written over");
	else
		sites_link(c);
}

void
sites_on_counted(struct child *c, const struct msg_SITES_COUNTED *frame)
{
	struct super *s = c->queue->super;

	if (c->role != ROLE_QUEUE_SEND || frame->number != s->sites.id.number)
		return;
	c->queue->uncounted = false;
	if (s->sites.fd >= 0)
		open_if_counted(s);
}

/* A queue-send that can still count does so. What the others hold may exceed a
 * limit for as long as they hang. */
void
sites_child_stuck(struct child *c)
{
	struct queue *q = c->queue;

	if (c->role != ROLE_QUEUE_SEND &&
	    proc_is_there(&q->children[ROLE_QUEUE_SEND].proc))
		return;
	q->uncounted = false;
	if (q->super->sites.fd >= 0)
		open_if_counted(q->super);
}

/* A queue-send that has not got it starts no delivery. */
void
sites_link(struct child *c)
{
	struct super *s = c->queue->super;
	const struct msg msg = { .type = MSG_LINK,
		.u.LINK = {
		    .name = MSG_S("sites"),
		    .generation = c->queue->group,
		} };
	int r;

	if (s->sites.fd < 0)
		return;
	r = child_send(c, &msg, s->sites.fd);
	if (r < 0 && r != -EPIPE)
		child_event(c, PROC_EV_WANT_AGAIN);
}

/* One of them clears the member; all are told, since any may be stopped. */
void
sites_forget(struct super *s, uint32_t queue, uint32_t generation)
{
	const struct msg msg = { .type = MSG_FORGET,
		.u.FORGET = { .queue = queue, .generation = generation } };
	uint32_t i;

	if (s->sites.fd < 0)
		return;
	for (i = 0; i < s->nqueues; i++) {
		struct child *c = &s->queues[i]->children[ROLE_QUEUE_SEND];

		if (s->queues[i]->number != queue && child_is_joinable(c))
			(void)child_send(c, &msg, -1);
	}
}

void
sites_group_gone(struct queue *q)
{
	q->uncounted = false;
	sites_forget(q->super, q->number, q->group);
}

/* ---- members of nobody: of a supervisor that was killed, of a queue that is
 * gone, or of one whose FORGET was lost ---- */

static bool
forget_stray(void *ctx, uint32_t queue, uint32_t generation)
{
	struct super *s = ctx;
	const struct queue *q = queue_find(s, queue);

	if ((q == NULL || q->group != generation) &&
	    !orphans_of_group(s, queue, generation))
		sites_forget(s, queue, generation);
	return true;
}

void
sites_collect(struct super *s)
{
	int r;

	if (s->sites.fd < 0)
		return;
	r = shared_owners(s->sites.fd, forget_stray, s);
	if (r < 0)
		log_debug("the table of destinations: %s", strerror(-r));
}
