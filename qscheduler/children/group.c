#include "qscheduler/children/children.h"

#include <errno.h>
#include <sys/random.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "base/io.h"
#include "ipc/msg.h"
#include "log/log.h"

/* ---- links ---- */

static int
join(struct child *a, struct child *b)
{
	int ends[2];
	int r = chan_pair(ends);

	if (r < 0)
		return r;
	r = child_link(a, b->role->name, ends[0]);
	if (r == 0)
		r = child_link(b, a->role->name, ends[1]);
	io_close(&ends[0]);
	io_close(&ends[1]);
	return r;
}

/* Children are joined to their leader and to nobody else. A pair that cannot be
 * joined is tried again with a new child: the queue does not stay cut. */
static void
join_pair(struct child *leader, struct child *other)
{
	int r;

	if (!child_is_joinable(leader) || !child_is_joinable(other))
		return;
	r = join(leader, other);
	if (r == 0 || r == -EPIPE)
		return;
	log_error("%s: link to %s: %s: started again", other->name,
	    leader->role->name, strerror(-r));
	child_event(other, PROC_EV_WANT_AGAIN);
}

void
group_child_started(struct child *c)
{
	struct group *g = c->group;
	struct child *leader = group_leader(g);
	unsigned i;

	if (g->events->started != NULL)
		g->events->started(c);
	if (leader == NULL)
		return;
	for (i = 0; i < g->n; i++)
		if (&g->child[i] != leader &&
		    (c == leader || c == &g->child[i]))
			join_pair(leader, &g->child[i]);
}

/* ---- a group ---- */

/* A random number: processes of an earlier supervisor have another one. */
static uint32_t
first_generation(void)
{
	uint32_t number = 0;

	if (getrandom(&number, sizeof(number), GRND_NONBLOCK) != sizeof(number))
		number = (uint32_t)clock_wall();
	return number / 2 + 1;
}

int
group_init(struct group *g, struct children *all, uint32_t number,
    const struct child_events *events, void *owner)
{
	const struct role *roles[GROUP_MAX];
	unsigned i;
	int r = 0;

	*g = (struct group){ .all = all,
		.events = events,
		.owner = owner,
		.number = number,
		.generation = first_generation(),
		.leaving = true };
	g->n = roles_of(number == 0 ? SCOPE_INSTANCE : SCOPE_QUEUE, roles);
	LIST_INSERT_HEAD(&all->groups, g, link);
	for (i = 0; i < g->n && r == 0; i++)
		r = child_init(&g->child[i], g, roles[i]);
	return r;
}

void
group_done(struct group *g)
{
	unsigned i;

	for (i = 0; i < g->n; i++)
		child_done(&g->child[i]);
	if (g->all != NULL)
		LIST_REMOVE(g, link);
	g->all = NULL;
}

struct child *
group_leader(struct group *g)
{
	unsigned i;

	for (i = 0; i < g->n; i++)
		if (g->child[i].role->leads)
			return &g->child[i];
	return NULL;
}

static void
want_all(struct group *g, enum proc_event event)
{
	unsigned i;

	for (i = 0; i < g->n; i++)
		child_event(&g->child[i], event);
}

void
group_start(struct group *g)
{
	g->leaving = false;
	want_all(g, PROC_EV_WANT_UP);
}

/* Children that feed the leader are asked before it. Those that stop last learn
 * of it: a program that mail is piped to may hold up the leader. */
void
group_leave(struct group *g)
{
	const struct msg ending = { .type = MSG_ENDING,
		.u.ENDING = { g->all->instance->conf->stop_time_limit } };
	unsigned i;

	g->leaving = true;
	for (i = 0; i < g->n; i++)
		if (g->child[i].role->stops_last &&
		    child_is_joinable(&g->child[i]))
			(void)child_send(&g->child[i], &ending, -1);
	for (i = g->n; i-- > 0;)
		if (!g->child[i].role->stops_last)
			child_event(&g->child[i], PROC_EV_WANT_DOWN);
}

void
group_progress(struct group *g)
{
	const struct child *leader = group_leader(g);
	unsigned i;

	if (g->leaving && leader != NULL && leader->proc.state == PROC_DOWN)
		for (i = 0; i < g->n; i++)
			if (g->child[i].proc.wanted)
				child_event(&g->child[i], PROC_EV_WANT_DOWN);
	if (g->events->changed != NULL)
		g->events->changed(g);
}

bool
group_is_down(const struct group *g)
{
	unsigned i;

	for (i = 0; i < g->n; i++)
		if (g->child[i].proc.state != PROC_DOWN)
			return false;
	return true;
}

bool
group_has_processes(const struct group *g)
{
	unsigned i;

	for (i = 0; i < g->n; i++)
		if (proc_is_there(&g->child[i].proc))
			return true;
	return false;
}

bool
group_is_clear(const struct group *g)
{
	return !g->going && !orphans_of(g->all, g->number);
}

void
group_clear(struct group *g)
{
	if (group_is_clear(g))
		want_all(g, PROC_EV_CLEAR);
}

static void
begin_generation(struct group *g)
{
	g->going = false;
	if (g->events->over != NULL)
		g->events->over(g);
	g->generation++;
	want_all(g, PROC_EV_CLEAR);
}

static void
leader_ended(struct group *g, const struct child *leader)
{
	unsigned i;

	g->going = true;
	for (i = 0; i < g->n; i++)
		if (&g->child[i] != leader) {
			child_event(&g->child[i], PROC_EV_WANT_AGAIN);
			child_judge(&g->child[i]);
		}
}

/* Places of a generation in the table of destinations are free only when no
 * process of it can have a connection any more, so nothing of the next one is
 * started before. */
void
group_child_ended(struct child *c)
{
	struct group *g = c->group;

	if (c->role->leads)
		leader_ended(g, c);
	if (g->going && !group_has_processes(g))
		begin_generation(g);
}

const struct child *
group_looping(const struct group *g, usec_t now)
{
	unsigned i;

	for (i = 0; i < g->n; i++)
		if (proc_is_looping(&g->child[i].proc, now))
			return &g->child[i];
	return NULL;
}

bool
group_release(struct group *g)
{
	bool any = false;
	unsigned i;

	for (i = 0; i < g->n; i++) {
		struct child *c = &g->child[i];

		any |= child_is_failing(c) || c->proc.failures >= PROC_LOOPING;
		child_event(c, PROC_EV_RELEASE);
	}
	return any;
}

void
group_send_all(struct group *g, const struct msg *msg)
{
	unsigned i;

	for (i = 0; i < g->n; i++)
		if (child_is_joinable(&g->child[i]))
			(void)child_send(&g->child[i], msg, -1);
}

void
group_tick(struct group *g)
{
	unsigned i;

	for (i = 0; i < g->n; i++)
		child_tick(&g->child[i]);
}

void
group_dump(const struct group *g)
{
	unsigned i;

	for (i = 0; i < g->n; i++)
		child_dump(&g->child[i]);
}

/* ---- all of them ---- */

struct group *
children_find(const struct children *all, uint32_t number)
{
	struct group *g;

	LIST_FOREACH (g, &all->groups, link)
		if (g->number == number)
			return g;
	return NULL;
}

static struct child *
find_child(struct children *all, pid_t pid)
{
	struct group *g;
	unsigned i;

	LIST_FOREACH (g, &all->groups, link)
		for (i = 0; i < g->n; i++)
			if (g->child[i].process.pid == pid)
				return &g->child[i];
	return NULL;
}

/* Of what ended together, the leader ended first: the others followed it. */
static void
reap_leader(struct group *g)
{
	struct child *leader = group_leader(g);
	siginfo_t info = { 0 };

	if (leader != NULL && leader->process.pid > 0 &&
	    waitid(P_PID, (id_t)leader->process.pid, &info,
		WEXITED | WNOHANG | WNOWAIT) == 0 &&
	    info.si_pid != 0)
		child_ended(leader);
}

void
children_reap(struct children *all)
{
	siginfo_t info;
	struct child *c;

	for (;;) {
		info.si_pid = 0;
		if (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) < 0 &&
		    errno == EINTR)
			continue;
		if (info.si_pid == 0)
			return;
		c = find_child(all, info.si_pid);
		if (c != NULL) {
			reap_leader(c->group);
			if (c->process.pid == info.si_pid)
				child_ended(c);
			continue;
		}
		log_debug("process %ld ended, which is none of ours",
		    (long)info.si_pid);
		(void)waitpid(info.si_pid, NULL, WNOHANG);
	}
}
