#include "qscheduler/queues/queues.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/io.h"
#include "ipc/bell.h"
#include "ipc/names.h"
#include "ipc/shm.h"
#include "log/log.h"

/* Rings that wait in a doorbell: more than stock Linux allows, where we may; 10
 * where we may not. */
#define BELL_DEPTH 256

/* ---- shared memory ---- */

static int
page_make(struct queue *q, const char *name, uint32_t *ret_pid)
{
	const struct daemon_users *users = &q->all->instance->users;
	const struct page_owner owner = {
		.uid = users->private ? (uid_t)-1 : users->qmails,
		.gid = users->private ? (gid_t)-1 : users->qmail,
		.mode = 0644,
	};
	void *page = NULL;
	int r = page_create(name, sizeof(struct queue_page), QUEUE_PAGE_MAGIC,
	    &owner, &page, &q->page_fd, ret_pid);

	if (r < 0) {
		q->page_fd = -1;
		return r;
	}
	page_unmap(&page, sizeof(struct queue_page));
	return 0;
}

void
objects_show_shut(struct queue *q, bool shut)
{
	const off_t at = offsetof(struct queue_page, disabled);
	const int32_t flag = shut;
	int32_t there;

	if (q->page_fd < 0 ||
	    (pread(q->page_fd, &there, sizeof(there), at) == sizeof(there) &&
		there == flag))
		return;
	(void)!pwrite(q->page_fd, &flag, sizeof(flag), at);
}

static int
page_open(struct queue *q)
{
	char name[IPC_NAME_MAX], text[SHM_TEXT_SIZE];
	uint32_t pid = 0;
	int r;

	ipc_name_queue(q->all->instance->name, q->number, name);
	r = page_make(q, name, &pid);
	if (r == -EBUSY) {
		/* A queue-send of a supervisor that was killed is about to
		 * end. The instance is ours; that process may go on writing to
		 * its old page. */
		log_info("shared memory %s: pid %" PRIu32
			 " of an earlier supervisor still has it: replaced",
		    name, pid);
		(void)shm_unlink(name);
		r = page_make(q, name, &pid);
	}
	if (r < 0 && !q->complained)
		log_error("ALERT: shared memory %s: %s: queue %" PRIu32
			  " runs without it; tried again every minute",
		    name, shm_describe(r, text), q->number);
	if (r == 0)
		child_give(
		    &q->group.child[ROLE_QUEUE_SEND], "page", q->page_fd);
	return r;
}

/* ---- the doorbell ---- */

static int
bell_open(struct queue *q)
{
	const struct daemon_users *users = &q->all->instance->users;
	char name[IPC_NAME_MAX];
	uint32_t depth;
	int r;

	ipc_name_queue(q->all->instance->name, q->number, name);
	r = mq_create(name, &(struct mq_shape){ BELL_DEPTH, MQ_MESSAGE_SIZE },
	    users->private ? (uid_t)-1 : users->qmailq,
	    users->private ? (gid_t)-1 : users->qmail, 0640, &q->bell, &depth);
	if (r < 0) {
		q->bell = -1;
		if (!q->complained)
			log_warning("message queue %s: %s: queue %" PRIu32
				    " lives by the scan; tried again every "
				    "minute",
			    name, strerror(-r), q->number);
		return r;
	}
	child_give(&q->group.child[ROLE_TODO_PROC], "bell", q->bell);
	return 0;
}

/* ---- both ---- */

void
objects_open(struct queue *q)
{
	int page = 0, bell = 0;

	if (q->page_fd < 0)
		page = page_open(q);
	if (q->bell < 0)
		bell = bell_open(q);
	q->complained = page < 0 || bell < 0;
}

static void
forget_page(struct queue *q, const char *name, const char *why)
{
	log_warning("shared memory %s %s: made again", name, why);
	if (segment_is_same(name, q->page_fd))
		(void)shm_unlink(name);
	io_close(&q->page_fd);
}

/* Two system calls on a descriptor of ours, so in each tick: readers see no
 * queue meanwhile. */
void
objects_tick(struct queue *q)
{
	const char *why = "cannot be checked";
	char name[IPC_NAME_MAX];

	if (q->page_fd < 0 || queue_is_leaving(q) ||
	    page_check(q->page_fd, sizeof(struct queue_page), QUEUE_PAGE_MAGIC,
		&why) == 0)
		return;
	ipc_name_queue(q->all->instance->name, q->number, name);
	forget_page(q, name, why);
	objects_open(q);
}

static void
forget_lost(struct queue *q, const char *name)
{
	if (q->page_fd >= 0 && !segment_is_same(name, q->page_fd))
		forget_page(q, name, "was taken away");
	if (q->bell >= 0 && !mq_same(name, q->bell)) {
		log_warning(
		    "message queue %s was taken away: made again", name);
		mq_close(q->bell);
		q->bell = -1;
	}
}

void
objects_health(struct queue *q)
{
	char name[IPC_NAME_MAX];

	ipc_name_queue(q->all->instance->name, q->number, name);
	forget_lost(q, name);
	objects_open(q);
}

void
objects_close(struct queue *q)
{
	char name[IPC_NAME_MAX];

	ipc_name_queue(q->all->instance->name, q->number, name);
	if (q->page_fd >= 0 && segment_is_same(name, q->page_fd))
		(void)shm_unlink(name);
	io_close(&q->page_fd);
	if (q->bell >= 0) {
		if (mq_same(name, q->bell))
			(void)mq_unlink(name);
		mq_close(q->bell);
	}
	q->bell = -1;
}
