#include "tests/unit/queue-send/world.h"
#include "tests/unit/files.h"

#include "base/clock.h"
#include "base/io.h"
#include "log/log.h"
#include "queue-send/backlog/backlog.h"
#include "queue-send/disk/other_queue.h"
#include "queue-send/agents/agents.h"
#include "queue-send/message/path.h"
#include "queue-send/rules/rules.h"
#include "site/shared.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* ---- start and end ---- */

static void
set_kinds(struct world *w)
{
	enum disk_kind i;

	w->threads[DISK_REPORT] = w->threads[DISK_RULES] =
	    w->threads[DISK_SYNC];
	disk_set_kinds(&w->s);
	w->threads[DISK_OPEN] =
	    w->threads[DISK_ACT] > 0 ? w->s.disk.kinds[DISK_OPEN].threads : 0;
	for (i = 0; i < DISK_NKINDS; i++) {
		w->s.disk.kinds[i].threads = w->threads[i];
		if (w->one_a_thread)
			w->s.disk.kinds[i].share_least =
			    w->s.disk.kinds[i].share_most = 1;
	}
}

static void
begin(struct world *w, bool again)
{
	struct send *s = &w->s;
	struct recovered done = { .accepted = &s->accepted, .behind = s };

	memset(s, 0, sizeof(*s));
	s->conf = &w->conf;
	s->d = &w->daemon;
	s->pub.requests = -1;
	s->in_memory = w->in_memory;
	set_kinds(w);
	s->disk.slow_at = w->slow ? INT64_MAX / 2 : 0;
	s->base = daemon_loop_new(false);
	cr_assert_not_null(s->base);
	cr_assert_eq(spool_open(&s->sp, &world_sys, w->dir, 1), 0);
	s->lock = spool_lock(&s->sp, SEND_LOCK, false);
	cr_assert_geq(s->lock, 0);
	cr_assert_eq(send_init(s), 0);
	if (again)
		recover_active(&s->sp, &done);
	while (rules_wait(s) > 0) /* a thread reads them */
		event_base_loop(s->base, EVLOOP_ONCE);
	w->todo = w->agent = -1;
	w->credit = w->nprepared = w->scans = 0;
	world_link_todo(w);
	if (w->segment >= 0)
		links_linked(s, "sites", dup(w->segment));
	world_link_agent(w);
	world_run(w);
}

static void
finish(struct world *w)
{
	send_done(&w->s);
	io_close(&w->s.lock);
	spool_close(&w->s.sp);
	event_base_free(w->s.base);
	io_close(&w->todo);
	io_close(&w->agent);
}

/* The table of destinations, with room for one queue; it has no name. */
static int
make_segment(void)
{
	const struct shared_shape shape = { .slots = 1024, .members = 1 };
	const struct shared_owner owner = { (uid_t)-1, (gid_t)-1 };
	char name[64];
	int fd;

	snprintf(name, sizeof(name), "/w%d.sites", (int)getpid());
	cr_assert_eq(shared_create(name, &shape, &owner, &fd), 0);
	cr_assert_eq(shared_open_up(fd), 0);
	shm_unlink(name);
	return fd;
}

void
world_start(struct world *w, const char *conf)
{
	const struct spool_owner owner = { getuid(), getuid(), getgid(),
		getgid(), true };
	const char *tmp = getenv("TMPDIR");

	w->unnamed = false;
	world_be_silent();
	w->ops = control_ops;
	world_fail(CALL_NONE, 0, 0);
	world_cut(0);
	world_sys_init();
	snprintf(w->dir, sizeof(w->dir), "%s/qsend.XXXXXX",
	    tmp == NULL || strlen(tmp) > 40 ? "/tmp" : tmp);
	cr_assert_not_null(mkdtemp(w->dir));
	world_read_conf(w, conf);
	cr_assert_eq(
	    spool_create(w->dir, 1, 3, &owner), 0, "%s", queue_file_reason());
	w->segment = w->no_segment ? -1 : make_segment();
	begin(w, false);
}

void
world_again(struct world *w)
{
	finish(w);
	world_fail(CALL_NONE, 0, 0);
	world_cut(0);
	begin(w, true);
}

void
world_use_threads(struct world *w)
{
	w->threads[DISK_RECORD] = w->threads[DISK_READ] = 1;
	w->slow = true;
	world_again(w);
}

void
world_end(struct world *w)
{
	finish(w);
	io_close(&w->segment);
	conf_done(&w->conf);
	unit_remove_tree(w->dir);
}

/* ---- links ---- */

static void
link_one(struct world *w, const char *name, int *end, struct chan_frame *frame)
{
	int fds[2];

	io_close(end);
	frame->left = 0;
	cr_assert_eq(chan_pair(fds), 0);
	links_linked(&w->s, name, fds[0]);
	*end = fds[1];
}

void
world_link_todo(struct world *w)
{
	link_one(w, "todo-proc", &w->todo, &w->from_todo);
}

void
world_link_agent(struct world *w)
{
	link_one(w, "deliver-local", &w->agent, &w->from_agent);
}

void
world_link_smtp(struct world *w)
{
	link_one(w, "deliver-smtp", &w->agent, &w->from_agent);
}

static void
hear_todo(struct world *w)
{
	const struct msg *msg = &w->from_todo.msg;

	while (w->todo >= 0 && chan_recv(w->todo, &w->from_todo) == 1)
		if (msg->type == MSG_CREDIT)
			w->credit += msg->u.CREDIT.messages;
		else if (msg->type == MSG_PREPARE)
			w->prepared[w->nprepared++ % 256] =
			    msg->u.PREPARE.inode;
		else if (msg->type == MSG_SCAN)
			w->scans++;
}

/* The time that a lost agent has to close its connections. */
static void
pass_lost(struct world *w)
{
	struct agent_link *agent;

	TAILQ_FOREACH (agent, &w->s.agents, link)
		if (agent->wire == NULL && agent->over_at > 0) {
			agent->over_at = 0;
			send_wake(&w->s);
		}
}

static void
await_thread(const struct world *w, enum disk_kind kind)
{
	struct pollfd fd = { .fd = executor_fd(w->s.disk.executor, kind),
		.events = POLLIN };

	cr_assert_eq(poll(&fd, 1, 120000), 1, "a thread does not end");
}

/* Acts on active messages are with the thread for records. */
static void
await_acts(const struct world *w)
{
	const struct executor *x = w->s.disk.executor;
	struct pollfd fds[2];
	nfds_t n = 0;

	if (disk_has_threads(&w->s, DISK_ACT))
		fds[n++] = (struct pollfd){ .fd = executor_fd(x, DISK_ACT),
			.events = POLLIN };
	if (disk_has_threads(&w->s, DISK_RECORD))
		fds[n++] = (struct pollfd){ .fd = executor_fd(x, DISK_RECORD),
			.events = POLLIN };
	cr_assert_geq(poll(fds, n, 60000), 1, "an act does not end");
}

static void
await_threads(const struct world *w)
{
	if (w->gated)
		return;
	if (w->s.records > 0)
		await_thread(w, DISK_RECORD);
	if (w->s.acts.nwaiting > 0)
		await_thread(w, DISK_OPEN);
	if (w->s.acts.count > 0)
		await_acts(w);
	if (w->s.fetches.tasks > 0)
		await_thread(w, DISK_READ);
}

void
world_run(struct world *w)
{
	int i;

	for (i = 0; i < 60; i++) {
		event_base_loop(w->s.base, EVLOOP_NONBLOCK);
		await_threads(w);
		hear_todo(w);
		pass_lost(w);
	}
	cr_assert_eq(w->s.messages.faults, 0, "a step that the table has not");
}

void
world_send(int sock, const struct msg *msg)
{
	cr_assert_eq(chan_send(sock, msg, -1), 0);
}

/* ---- messages ---- */

static void
add_name(struct world *w, struct buf *names, const char *address)
{
	char nexthop[ROUTE_NEXTHOP_MAX + 1], name[ROUTE_DESTINATION_MAX + 1];
	struct route route;
	const char *why;
	uint32_t head[2];

	cr_assert_eq(route_lookup(w->s.routes, address, false, &route), 0);
	cr_assert_eq(route_nexthop(&route, address, nexthop, &why), 0);
	head[0] = (uint32_t)conf_transport_find(&w->conf, route.transport);
	head[1] = (uint32_t)route_destination(nexthop, NULL, name);
	if (names->len > 0 &&
	    memmem(names->data, names->len, name, head[1]) != NULL)
		return;
	buf_add(names, head, sizeof(head));
	buf_add(names, name, head[1]);
}

/* As todo-proc names them: of what is pending, while they are few. */
static void
name_destinations(
    struct world *w, const struct queue_file *file, int fd, struct buf *names)
{
	static struct queue_rcpt_cursor cursor;
	struct queue_rcpt rcpt;

	queue_rcpt_begin(&cursor, file);
	while (!w->unnamed && queue_rcpt_next(&cursor, fd, &rcpt) > 0)
		if (rcpt.mark == RCPT_PENDING && names->len < 4096)
			add_name(w, names, rcpt.address);
	if (names->len > 16 * 16) /* "dN.test" and its head */
		buf_reset(names);
}

/* Facts of the file that a first attempt needs, as todo-proc reads them. */
static void
tell_facts(const struct queue_file *file, int fd, struct msg_MESSAGE *m)
{
	static char rcpts[MSG_FEW_BYTES];

	m->version = file->version;
	m->uid = file->uid;
	m->flags = file->flags;
	m->env_len = file->env_len;
	m->rcpt_len = file->rcpt_len;
	m->message_id = MSG_S("id@here.test");
	if (file->rcpt_count > MSG_FEW_RCPTS ||
	    file->rcpt_len > sizeof(rcpts) || m->pending < file->rcpt_count)
		return;
	cr_assert_eq(queue_file_content(
			 fd, file->rcpt_off, rcpts, (size_t)file->rcpt_len),
	    0);
	m->rcpts = (struct msg_str){ rcpts, (size_t)file->rcpt_len };
}

static void
offer(
    struct world *w, enum spool_dir dir, uint64_t inode, int with, uint64_t as)
{
	struct msg msg = { .type = MSG_MESSAGE };
	struct buf names = { 0 }, sender = { 0 };
	struct queue_file file;
	uint32_t pending = 0;
	const char *mark;
	int fd = spool_open_file(&w->s.sp, dir, inode, O_RDONLY);

	cr_assert_geq(fd, 0);
	cr_assert_eq(queue_file_read(fd, &file), 0);
	cr_assert_eq(queue_file_sender(fd, &file, &sender), 0);
	name_destinations(w, &file, fd, &names);
	for (mark = world_marks(w, dir, inode); *mark != '\0'; mark++)
		pending += *mark == '.';
	if (file.rcpt_count > 255)
		pending = file.rcpt_count;
	if (dir == SPOOL_INCOMING) {
		cr_assert_gt(w->credit, 0);
		w->credit--;
	}
	msg.u.MESSAGE = (struct msg_MESSAGE){
		.inode = inode,
		.dir = dir,
		.arrival_wall = file.arrival_wall,
		.queue = file.queue,
		.nonce = file.nonce,
		.size = file.size,
		.content_len = file.content_len,
		.recipients = file.rcpt_count,
		.pending = pending,
		.sender = { sender.data, (uint32_t)sender.len },
		.destinations = { names.data, names.len },
		.hops = w->hops,
	};
	if (w->tells && dir == SPOOL_INCOMING)
		tell_facts(&file, fd, &msg.u.MESSAGE);
	close(fd);
	if (as != 0)
		msg.u.MESSAGE.inode = as;
	cr_assert_eq(chan_send(w->todo, &msg, with), 0);
	buf_done(&names);
	buf_done(&sender);
}

void
world_offer(struct world *w, enum spool_dir dir, uint64_t inode)
{
	int fd = w->passes && dir == SPOOL_INCOMING
	    ? spool_open_file(&w->s.sp, dir, inode, O_RDWR)
	    : -1;

	offer(w, dir, inode, fd, 0);
	io_close(&fd);
}

void
world_offer_with(struct world *w, uint64_t inode, int fd, uint64_t as)
{
	offer(w, world_where(w, inode), inode, fd, as);
}

void
world_offer_stranger(struct world *w, uint64_t inode)
{
	const struct msg other = { .type = MSG_MESSAGE,
		.u.MESSAGE = { .inode = inode,
		    .dir = SPOOL_INCOMING,
		    .arrival_wall = 4711,
		    .recipients = 1,
		    .pending = 1 } };

	w->credit--;
	world_send(w->todo, &other);
}

uint64_t
world_message(struct world *w, const char *format, uint32_t n)
{
	uint64_t inode = world_file(w, format, n, 0);

	world_offer(w, SPOOL_INCOMING, inode);
	world_run(w);
	return inode;
}

void
world_offer_again(struct world *w, uint64_t inode)
{
	const enum spool_dir dir = world_where(w, inode);

	if (dir == SPOOL_DEFERRED) {
		deferred_flush(&w->s);
		send_wake(&w->s);
		world_run(w);
	}
	if (dir == SPOOL_DEFERRED || dir == SPOOL_INCOMING)
		world_offer(w, dir, inode);
	world_run(w);
}
