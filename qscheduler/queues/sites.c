#include "qscheduler/queues/queues.h"

#include <errno.h>
#include <inttypes.h>
#include <sys/mman.h>

#include "base/clock.h"
#include "base/io.h"
#include "ipc/msg.h"
#include "ipc/names.h"
#include "ipc/shm.h"
#include "log/log.h"
#include "site/shared.h"

/* Beside QUEUE_MAX: queues above it that have mail left, and members of a
 * supervisor that was killed, until their processes have ended. Rounded up, so
 * that one queue more or less at the next start is the same shape. */
#define MEMBERS_SPARE 4
#define MEMBERS_STEP  8
#define MEMBERS_MAX   256

static uint32_t
members(const struct queues *all)
{
	const uint32_t queues =
	    all->nqueues > all->max ? all->nqueues : all->max;
	const uint32_t steps =
	    (queues + MEMBERS_SPARE + MEMBERS_STEP - 1) / MEMBERS_STEP;

	return steps * MEMBERS_STEP > MEMBERS_MAX ? MEMBERS_MAX
						  : steps * MEMBERS_STEP;
}

static struct shared_owner
owner_of(const struct queues *all)
{
	const struct daemon_users *users = &all->instance->users;

	return (struct shared_owner){
		.uid = users->private ? (uid_t)-1 : users->qmails,
		.gid = users->private ? (gid_t)-1 : users->qmail,
	};
}

static bool
are_processes_left(const struct queues *all)
{
	return !queues_are_down(all) || orphans_any(all->children);
}

void
sites_close(struct queues *all)
{
	char name[IPC_NAME_MAX];

	if (all->sites.fd < 0)
		return;
	ipc_name_sites(all->instance->name, name);
	if (!are_processes_left(all) && segment_is_same(name, all->sites.fd))
		(void)shm_unlink(name);
	io_close(&all->sites.fd);
}

/* ---- a table without a name ---- */

/* Any user can fill the file system of shared memory, and no delivery starts
 * without a table. */
static void
tell_unnamed(const char *name, int error)
{
	char text[SHM_TEXT_SIZE];

	log_warning("shared memory %s: %s: deliveries go on, and readers such "
		    "as \"qctl sites\" find no destinations; tried again "
		    "every minute",
	    name, shm_describe(error, text));
}

/* ---- a table that was lost ---- */

/* The process was killed, and no more can be done. */
static bool
child_is_stuck(const struct child *c)
{
	return c->proc.state == PROC_KILLED && c->proc.deadline == USEC_NEVER;
}

static void
link_all(struct queues *all)
{
	uint32_t i;

	for (i = 0; i < all->nqueues; i++) {
		struct child *c = &all->queues[i]->group.child[ROLE_QUEUE_SEND];

		if (c->channel.wire != NULL && proc_is_there(&c->proc))
			sites_link(c);
	}
}

/* Each queue may hold places that are counted nowhere but in the old table. */
static void
all_owe(struct queues *all)
{
	uint32_t i;

	for (i = 0; i < all->nqueues; i++) {
		struct queue *q = all->queues[i];
		struct child *c = &q->group.child[ROLE_QUEUE_SEND];

		q->uncounted = !child_is_stuck(c) &&
		    (q->group.going || proc_is_there(&c->proc));
	}
	link_all(all);
}

/* name NULL: a table without a name. */
static int
put_in_place(struct queues *all, const char *name)
{
	const struct shared_owner owner = owner_of(all);
	struct sites *t = &all->sites;
	int fd = -1;
	int r = shared_renew(name, &t->shape, &owner, &t->id, &fd);

	if (r == 0)
		r = shared_identify(fd, &t->id);
	if (r < 0) {
		io_close(&fd);
		return r;
	}
	io_close(&t->fd);
	t->fd = fd;
	t->renewed = true;
	return 0;
}

static void
renew(struct queues *all, const char *name, const char *why)
{
	struct sites *t = &all->sites;
	const int named = put_in_place(all, name);
	int r = named;

	if (r < 0) {
		/* The next supervisor would keep a table that has the name, as
		 * a second window for each destination. */
		(void)shm_remove(name);
		r = put_in_place(all, NULL);
	}
	if (r < 0) {
		if (log_due(clock_mono(), EVERY_HEALTH, &t->complained))
			log_error("ALERT: shared memory %s %s, and cannot be "
				  "made again: %s: queues that have lost it "
				  "start no delivery; tried again every second",
			    name, why, strerror(-r));
		return;
	}
	if (named < 0)
		tell_unnamed(name, named);
	log_warning("shared memory %s %s: made again; no delivery starts until "
		    "those that run are counted in it",
	    name, why);
	all_owe(all);
}

/* Readers find the table again. The queue-sends carry over the places that they
 * hold, as after a loss. */
static void
name_again(struct queues *all)
{
	char name[IPC_NAME_MAX];

	if (all->sites.id.named || !all->sites.id.open || all->stopping)
		return;
	ipc_name_sites(all->instance->name, name);
	if (put_in_place(all, name) < 0)
		return;
	log_info("shared memory %s: made again; no delivery starts until those "
		 "that run are counted in it",
	    name);
	all_owe(all);
}

static bool
is_all_counted(const struct queues *all)
{
	uint32_t i;

	for (i = 0; i < all->nqueues; i++)
		if (all->queues[i]->uncounted)
			return false;
	return true;
}

/* New tables are closed: a queue whose processes began with an older one has to
 * count what it holds, or end, before any queue takes a place. A process that
 * hangs in the kernel though it was killed is not waited for: it begins nothing
 * more, and the disk that it waits for may never answer. */
static void
open_if_counted(struct queues *all)
{
	struct sites *t = &all->sites;
	int r;

	if (t->id.open || orphans_any_to_count(all->children) ||
	    !is_all_counted(all))
		return;
	r = shared_open_up(t->fd);
	t->id.open = r == 0;
	if (r < 0 && log_due(clock_mono(), EVERY_HEALTH, &t->complained))
		log_error("the table of destinations: %s", strerror(-r));
	if (r == 0 && t->renewed)
		log_info("the new table of destinations is in use");
}

/* ---- start ---- */

/* At the start: only orphans have a member then. */
static bool
is_owner_there(void *ctx, uint32_t queue, uint32_t generation UNUSED)
{
	const struct queues *all = ctx;

	return orphans_of(all->children, queue);
}

static void
first(struct queues *all, const char *name)
{
	const struct shared_owner owner = owner_of(all);
	struct sites *t = &all->sites;
	const int named = shared_create(name, &t->shape, &owner, &t->fd);
	int r = named;

	if (r < 0) {
		(void)shm_remove(name); /* as in renew() */
		r = shared_create(NULL, &t->shape, &owner, &t->fd);
	}
	if (r == 0)
		r = shared_identify(t->fd, &t->id);
	if (r == 0)
		r = shared_owners(t->fd, is_owner_there, all);
	if (r == 0) {
		if (named < 0)
			tell_unnamed(name, named);
		open_if_counted(all);
		link_all(all);
		return;
	}
	io_close(&t->fd);
	if (log_due(clock_mono(), EVERY_HEALTH, &t->complained))
		log_error("ALERT: shared memory %s: %s: no delivery starts "
			  "without it; tried again every second",
		    name, strerror(-r));
}

void
sites_open(struct queues *all)
{
	char name[IPC_NAME_MAX];

	all->sites.shape = (struct shared_shape){
		.slots = all->instance->conf->destination_table_size,
		.members = members(all),
		.spool = base_identity(all->base),
	};
	ipc_name_sites(all->instance->name, name);
	first(all, name);
}

/* ---- while it runs ---- */

void
sites_tick(struct queues *all)
{
	const char *why = "cannot be checked";
	char name[IPC_NAME_MAX];

	ipc_name_sites(all->instance->name, name);
	if (all->sites.fd < 0 && !all->stopping)
		first(all, name);
	if (all->sites.fd < 0)
		return;
	if (!all->stopping &&
	    shared_check(all->sites.fd, &all->sites.id, &why) < 0)
		renew(all, name, why);
	open_if_counted(all);
}

/* A queue that has an older table has lost it while the new one was on its way.
 */
void
sites_on_lost(struct queue *q, uint32_t table)
{
	struct queues *all = q->all;
	char name[IPC_NAME_MAX];

	if (all->sites.fd < 0 || all->stopping)
		return;
	ipc_name_sites(all->instance->name, name);
	if (table == all->sites.id.number)
		renew(all, name, "was written over");
	else
		sites_link(&q->group.child[ROLE_QUEUE_SEND]);
}

void
sites_on_counted(struct queue *q, uint32_t table)
{
	struct queues *all = q->all;

	if (table != all->sites.id.number)
		return;
	q->uncounted = false;
	if (all->sites.fd >= 0)
		open_if_counted(all);
}

/* A queue-send that is there counts the places itself. Places of the others may
 * exceed a limit for as long as they hang. */
void
sites_child_stuck(struct child *c)
{
	struct queue *q = c->group->owner;

	if (!c->role->leads &&
	    proc_is_there(&q->group.child[ROLE_QUEUE_SEND].proc))
		return;
	q->uncounted = false;
	if (q->all->sites.fd >= 0)
		open_if_counted(q->all);
}

/* A queue-send that has not got it starts no delivery. */
void
sites_link(struct child *c)
{
	const struct queue *q = c->group->owner;
	int r = 0;

	if (q->all->sites.fd >= 0)
		r = child_link(c, "sites", q->all->sites.fd);
	if (r < 0 && r != -EPIPE)
		child_event(c, PROC_EV_WANT_AGAIN);
}

/* One queue-send clears the member; all are told, since any may be stopped. */
void
sites_forget(struct queues *all, uint32_t queue, uint32_t generation)
{
	const struct msg msg = { .type = MSG_FORGET,
		.u.FORGET = { .queue = queue, .generation = generation } };
	uint32_t i;

	if (all->sites.fd < 0)
		return;
	for (i = 0; i < all->nqueues; i++) {
		struct child *c = &all->queues[i]->group.child[ROLE_QUEUE_SEND];

		if (all->queues[i]->number != queue && child_is_joinable(c))
			(void)child_send(c, &msg, -1);
	}
}

void
sites_group_gone(struct queue *q)
{
	q->uncounted = false;
	sites_forget(q->all, q->number, q->group.generation);
}

/* ---- stray members: of a supervisor that was killed, of a queue that is gone,
 * or of one whose FORGET was lost ---- */

static bool
forget_stray(void *ctx, uint32_t queue, uint32_t generation)
{
	struct queues *all = ctx;
	const struct queue *q = queue_find(all, queue);

	if ((q == NULL || q->group.generation != generation) &&
	    !orphans_of(all->children, queue))
		sites_forget(all, queue, generation);
	return true;
}

void
sites_collect(struct queues *all)
{
	int r;

	if (all->sites.fd < 0)
		return;
	name_again(all);
	r = shared_owners(all->sites.fd, forget_stray, all);
	if (r < 0)
		log_debug("the table of destinations: %s", strerror(-r));
}
