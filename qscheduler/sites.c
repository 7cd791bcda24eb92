#include "qscheduler/super.h"

#include <errno.h>
#include <inttypes.h>
#include <sys/mman.h>

#include "base/io.h"
#include "ipc/msg.h"
#include "ipc/names.h"
#include "log/log.h"
#include "sites/shared.h"

/* Beside QUEUE_MAX: queues above it that have mail left, and columns of a
 * supervisor that was killed, until their processes have ended. Rounded up, so
 * that one queue more or less at the next start is the same shape. */
#define COLUMNS_SPARE 4
#define COLUMNS_STEP  8
#define COLUMNS_MAX   256

static uint32_t
columns(const struct super *s)
{
	const uint32_t queues =
	    s->nqueues > s->queue_max ? s->nqueues : s->queue_max;
	const uint32_t steps =
	    (queues + COLUMNS_SPARE + COLUMNS_STEP - 1) / COLUMNS_STEP;

	return steps * COLUMNS_STEP > COLUMNS_MAX ? COLUMNS_MAX
						  : steps * COLUMNS_STEP;
}

void
sites_open(struct super *s)
{
	const struct shared_shape shape = {
		.slots = s->conf->destination_table_size,
		.columns = columns(s),
	};
	const bool private = s->users.private;
	const struct shared_owner owner = {
		.uid = private ? (uid_t)-1 : s->users.qmails,
		.gid = private ? (gid_t)-1 : s->users.qmail,
	};
	char name[IPC_NAME_MAX];
	int r;

	ipc_name_sites(s->instance, name);
	r = shared_create(name, &shape, &owner, &s->sites_fd);
	if (r == 0)
		return;
	s->sites_fd = -1;
	log_error("ALERT: shared memory %s: %s: until the next start each "
		  "queue has its part of the limit of a destination, and "
		  "learns alone which of them are dead",
	    name, strerror(-r));
}

static bool
is_anybody_left(const struct super *s)
{
	uint32_t i;

	for (i = 0; i < s->nqueues; i++)
		if (!queue_is_down(s->queues[i]))
			return true;
	return false;
}

void
sites_close(struct super *s)
{
	char name[IPC_NAME_MAX];

	if (s->sites_fd < 0)
		return;
	ipc_name_sites(s->instance, name);
	if (!is_anybody_left(s) && publish_is_same(name, s->sites_fd))
		(void)shm_unlink(name);
	io_close(&s->sites_fd);
}

/* The segment serves all that have its descriptor, and those that get it from
 * us: one that is made anew would be a second window. */
void
sites_health(struct super *s)
{
	char name[IPC_NAME_MAX];

	if (s->sites_fd < 0 || s->sites_lost)
		return;
	ipc_name_sites(s->instance, name);
	if (publish_is_same(name, s->sites_fd))
		return;
	s->sites_lost = true;
	log_warning("shared memory %s was taken away: it is used without its "
		    "name until the next start",
	    name);
}

/* One that has not got it would have a window of its own. */
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

	r = child_send(c, &msg, s->sites_fd);
	if (r < 0 && r != -EPIPE)
		child_event(c, PROC_EV_WANT_AGAIN);
}

/* One of them clears the column; all are told, since any may be stopped. */
void
sites_group_gone(struct queue *q)
{
	struct super *s = q->super;
	const struct msg msg = { .type = MSG_FORGET,
		.u.FORGET = { .queue = q->number, .generation = q->group } };
	uint32_t i;

	if (s->sites_fd < 0)
		return;
	for (i = 0; i < s->nqueues; i++) {
		struct child *c = &s->queues[i]->children[ROLE_QUEUE_SEND];

		if (s->queues[i] != q && child_is_joinable(c))
			(void)child_send(c, &msg, -1);
	}
}
