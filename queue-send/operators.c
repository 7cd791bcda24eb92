#include "queue-send/operators.h"

#include <errno.h>
#include <event2/event.h>
#include <grp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/io.h"
#include "ipc/wire.h"
#include "log/log.h"
#include "queue-send/schedule.h"

#define GROUPS_MAX    256
#define SELECTION_MAX 400 /* in the log */

/* One connection: one command of an operator. */
struct operator
{
	TAILQ_ENTRY(operator) link;
	struct send *send;
	struct wire *wire;
	uid_t uid;
	uint64_t done, refused; /* since the last ACT_END */
	uint32_t act;           /* the last one */
	bool opened;            /* destinations, for ACT_RETRY */
};

TAILQ_HEAD(operator_list, operator);

struct operators {
	struct event *listening;
	int fd;
	gid_t group; /* (gid_t)-1: none */
	uint32_t count;
	struct operator_list list;
};

/* ---- the log ---- */

static void
say_acts(struct operator* o, const char *selection, size_t len)
{
	struct buf text = { 0 };

	if (o->done + o->refused == 0)
		return;
	if (buf_printf(&text, "operator uid=%u: %s %llu messages", o->uid,
		act_name(o->act), (unsigned long long)o->done) == 0 &&
	    (o->refused == 0 ||
		buf_printf(
		    &text, ", %llu not", (unsigned long long)o->refused) == 0))
		log_info("%s (%.*s)", buf_str(&text),
		    (int)(len < SELECTION_MAX ? len : SELECTION_MAX),
		    selection);
	buf_done(&text);
	o->done = o->refused = 0;
}

/* ---- peers ---- */

static void drop(struct operator* o)
{
	struct operators *all = o->send->operators;

	say_acts(o, "interrupted", strlen("interrupted"));
	wire_free(&o->wire);
	TAILQ_REMOVE(&all->list, o, link);
	all->count--;
	free(o);
}

static void
answer(struct operator* o, uint64_t serial, int error, uint32_t running)
{
	const struct msg msg = { .type = MSG_ACTED,
		.u.ACTED = { serial, error, running } };

	if (error == 0)
		o->done++;
	else
		o->refused++;
	/* A peer that does not read waits in vain: `closed' comes. */
	(void)wire_send(o->wire, &msg, -1);
}

static void
take_act(struct operator* o, const struct msg_ACT *f)
{
	const struct queue_id id = { f->arrival_wall, f->nonce, f->queue,
		f->inode };
	struct send *s = o->send;
	uint32_t running = 0;
	int r;

	o->act = f->act;
	if (f->act == ACT_RETRY && f->inode == 0) {
		running = (uint32_t)s->due.count;
		acts_flush(s);
		answer(o, f->serial, 0, running);
		return;
	}
	if (f->act < ACT_HOLD || f->act >= NACTS || f->inode == 0) {
		answer(o, f->serial, -EINVAL, 0);
		return;
	}
	r = acts_do(s, (enum spool_act)f->act, &id, &running);
	/* A message that is to be tried now is not to wait for a destination
	 * that was dead. */
	if (r == 0 && f->act == ACT_RETRY && !o->opened) {
		o->opened = true;
		sched_flush(s->sched, s->now);
		share_flush(s);
	}
	answer(o, f->serial, r, running);
}

static void
on_frame(void *arg, struct wire *w UNUSED, struct chan_frame *frame)
{
	struct operator* o = arg;
	const struct msg *msg = &frame->msg;

	send_read_clocks(o->send);
	if (msg->type == MSG_ACT)
		take_act(o, &msg->u.ACT);
	else if (msg->type == MSG_ACT_END) {
		o->act = msg->u.ACT_END.act;
		say_acts(o, msg->u.ACT_END.selection.data,
		    msg->u.ACT_END.selection.len);
	} else
		drop(o);
}

static void
on_end(void *arg, struct wire *w UNUSED)
{
	struct operator* o = arg;

	send_read_clocks(o->send);
	drop(o);
}

static const struct wire_ops ops = {
	.frame = on_frame,
	.bad = on_end,
	.closed = on_end,
};

/* ---- permission ---- */

static bool
has_group(int fd, gid_t primary, gid_t wanted)
{
	gid_t groups[GROUPS_MAX];
	socklen_t len = sizeof(groups);
	size_t i;

	if (wanted == (gid_t)-1)
		return false;
	if (primary == wanted)
		return true;
	if (getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, groups, &len) < 0)
		return false;
	for (i = 0; i < len / sizeof(groups[0]); i++)
		if (groups[i] == wanted)
			return true;
	return false;
}

static bool
may_act(const struct operators *all, int fd, uid_t *ret_uid)
{
	struct ucred cred;
	socklen_t len = sizeof(cred);

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &len) < 0)
		return false;
	*ret_uid = cred.uid;
	return cred.uid == 0 || cred.uid == geteuid() ||
	    has_group(fd, cred.gid, all->group);
}

static int
welcome(struct send *s, int fd, uid_t uid)
{
	struct operator* o = calloc(1, sizeof(*o));
	int r;

	if (o == NULL)
		return -ENOMEM;
	o->send = s;
	o->uid = uid;
	r = wire_new(s->base, fd, &ops, o, &o->wire);
	if (r < 0) {
		free(o);
		return r;
	}
	TAILQ_INSERT_TAIL(&s->operators->list, o, link);
	s->operators->count++;
	return 0;
}

/* A connection that is refused hears why, if it takes one frame. */
static void
refuse(int fd, int error)
{
	const struct msg msg = { .type = MSG_ACTED,
		.u.ACTED = { .error = error } };

	(void)chan_send(fd, &msg, -1);
	close(fd);
}

static void
on_connect(int listening, short what UNUSED, void *arg)
{
	struct send *s = arg;
	struct operators *all = s->operators;
	uid_t uid = 0;
	int fd = accept4(listening, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

	if (fd < 0)
		return;
	send_read_clocks(s);
	if (!may_act(all, fd, &uid)) {
		log_warning("operator uid=%u: refused: not a member of "
			    "operator_group",
		    uid);
		refuse(fd, -EPERM);
	} else if (all->count == OPERATORS_MAX)
		refuse(fd, -EAGAIN);
	else if (welcome(s, fd, uid) < 0)
		refuse(fd, -ENOMEM);
}

/* ---- begin, end ---- */

static gid_t
find_group(const char *name)
{
	const struct group *g = *name == '\0' ? NULL : getgrnam(name);

	if (*name != '\0' && g == NULL)
		log_warning("operator_group: no group `%s': only root and the "
			    "user of this process act on messages",
		    name);
	return g == NULL ? (gid_t)-1 : g->gr_gid;
}

/* The name in lock/, which may be longer than an address of a socket. */
static int
listen_in(const struct spool *sp)
{
	const int dir = sp->dir[SPOOL_LOCK];
	struct sockaddr_un to = { .sun_family = AF_UNIX };
	int r = 0,
	    fd = socket(
		AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return -errno;
	snprintf(to.sun_path, sizeof(to.sun_path),
	    "/proc/self/fd/%d/" OPERATORS_SOCKET, dir);
	if (unlinkat(dir, OPERATORS_SOCKET, 0) < 0 && errno != ENOENT)
		r = -errno;
	if (r == 0 &&
	    (bind(fd, (const struct sockaddr *)&to, sizeof(to)) < 0 ||
		fchmodat(dir, OPERATORS_SOCKET, sp->private ? 0600 : 0660, 0) <
		    0 ||
		listen(fd, OPERATORS_MAX) < 0))
		r = -errno;
	if (r == 0)
		return fd;
	io_close(&fd);
	return r;
}

void
operators_init(struct send *s)
{
	struct operators *all = calloc(1, sizeof(*all));
	int fd = all == NULL ? -ENOMEM : listen_in(&s->sp);

	if (fd >= 0)
		all->listening =
		    event_new(s->base, fd, EV_READ | EV_PERSIST, on_connect, s);
	if (fd < 0 || all->listening == NULL ||
	    event_add(all->listening, NULL) < 0) {
		log_warning("%s/lock/" OPERATORS_SOCKET ": %s: operators can "
			    "act only while this queue is stopped",
		    s->sp.path, strerror(fd < 0 ? -fd : ENOMEM));
		io_close(&fd);
		free(all);
		return;
	}
	all->fd = fd;
	all->group = find_group(s->conf->operator_group);
	TAILQ_INIT(&all->list);
	s->operators = all;
}

void
operators_done(struct send *s)
{
	struct operators *all = s->operators;
	struct operator* o;

	if (all == NULL)
		return;
	while ((o = TAILQ_FIRST(&all->list)) != NULL)
		drop(o);
	event_free(all->listening);
	io_close(&all->fd);
	(void)unlinkat(s->sp.dir[SPOOL_LOCK], OPERATORS_SOCKET, 0);
	s->operators = NULL;
	free(all);
}
