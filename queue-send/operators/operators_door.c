#include "queue-send/operators/own.h"

#include <errno.h>
#include <event2/event.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/io.h"
#include "daemon/daemon.h"
#include "log/log.h"

#define GROUPS_MAX  256
#define PAUSE       USEC_PER_SEC
#define LINES_EVERY (60 * USEC_PER_SEC)

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

static struct caller
who_calls(const struct door *door, int fd)
{
	struct ucred cred = { 0 };
	socklen_t len = sizeof(cred);
	struct caller who = { .uid = (uid_t)-1 };

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &len) < 0)
		return who;
	who.uid = cred.uid;
	who.owner = cred.uid == 0 || cred.uid == geteuid();
	who.may_act = who.owner || has_group(fd, cred.gid, door->group);
	return who;
}

/* ---- refusals ---- */

/* A connection that is refused hears why, if it takes one frame. */
static void
refuse(int fd, int error)
{
	const struct msg msg = { .type = MSG_ACTED,
		.u.ACTED = { .error = error } };

	(void)chan_send(fd, &msg, -1);
	close(fd);
}

/* A user who is refused may try again at once, for ever. */
void
door_say_refused(struct door *door, usec_t now, uid_t uid)
{
	if (!log_due(now, LINES_EVERY, &door->said_refused)) {
		door->unsaid++;
		return;
	}
	log_warning("operator uid=%u: refused: not a member of operator_group "
		    "(%llu more were refused since the last line)",
	    uid, (unsigned long long)door->unsaid);
	door->unsaid = 0;
}

/* ---- connections ---- */

/* The last place is for root: no other user can lock root out; and those who
 * only ask cannot lock out those who act. */
bool
door_has_place(struct send *s, const struct caller *who)
{
	const uint32_t places = OPERATORS_MAX + (who->owner ? 1 : 0);

	if (!who->may_act && s->operators->askers >= ASKERS_MAX &&
	    !operators_end_idle(s, true))
		return false;
	while (s->operators->count >= places)
		if (!operators_end_idle(s, !who->may_act))
			return false;
	return true;
}

static void
admit(struct send *s, int fd)
{
	struct door *door = &s->operators->door;
	const struct caller who = who_calls(door, fd);

	if (!door_has_place(s, &who)) {
		if (log_due(s->now, LINES_EVERY, &door->said_full))
			log_warning("operator uid=%u: refused: %u operators "
				    "are connected",
			    who.uid, s->operators->count);
		refuse(fd, -EUSERS);
	} else if (operators_welcome(s, fd, &who) < 0)
		refuse(fd, -ENOMEM);
}

static void
listen_again(int fd UNUSED, short what UNUSED, void *arg)
{
	event_add(((struct door *)arg)->listening, NULL);
}

/* A connection that cannot be taken stays readable: the loop would turn for it
 * alone. */
static void
pause_listening(struct send *s, int error)
{
	struct door *door = &s->operators->door;
	const struct timeval pause = clock_timeval(PAUSE);

	if (event_add(door->again, &pause) == 0)
		event_del(door->listening);
	if (log_due(s->now, LINES_EVERY, &door->said_full))
		log_warning("lock/" OPERATORS_SOCKET ": %s: operators wait",
		    strerror(error));
}

static void
on_connect(int listening, short what UNUSED, void *arg)
{
	struct send *s = arg;
	int fd = accept4(listening, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
	const int error = errno;

	send_read_clocks(s);
	if (fd >= 0)
		admit(s, fd);
	else if (error != EAGAIN && error != EINTR && error != ECONNABORTED)
		pause_listening(s, error);
}

/* ---- open, close ---- */

static gid_t
find_group(const char *name)
{
	const gid_t group = daemon_group(name);

	if (*name != '\0' && group == (gid_t)-1)
		log_warning("operator_group: no group `%s': only root and the "
			    "user of this process act on messages",
		    name);
	return group;
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

static void
free_event(struct event **event)
{
	if (*event != NULL)
		event_free(*event);
	*event = NULL;
}

int
door_open(struct door *door, struct send *s)
{
	int fd = listen_in(&s->sp);

	if (fd < 0)
		return fd;
	door->fd = fd;
	door->listening =
	    event_new(s->base, fd, EV_READ | EV_PERSIST, on_connect, s);
	door->again = evtimer_new(s->base, listen_again, door);
	if (door->listening == NULL || door->again == NULL ||
	    event_add(door->listening, NULL) < 0) {
		door_close(door, s);
		return -ENOMEM;
	}
	door->group = find_group(s->conf->operator_group);
	return 0;
}

void
door_close(struct door *door, struct send *s)
{
	free_event(&door->listening);
	free_event(&door->again);
	io_close(&door->fd);
	(void)unlinkat(s->sp.dir[SPOOL_LOCK], OPERATORS_SOCKET, 0);
}
