#include "deliver-local/local.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include <event2/event.h>

#include "base/clock.h"
#include "base/io.h"

/* Between two looks at those that end. */
#define LOOK_EVERY (500 * USEC_PER_MSEC)

struct resident {
	TAILQ_ENTRY(resident) entry;
	pid_t pid;
	int fd;
	uint64_t generation;
	uint32_t served;
	usec_t began;
	usec_t since; /* idle, or ending */
	char asks[MAILBOX_PART_MAX + 1];
	char site[]; /* as the scheduler has it */
};

TAILQ_HEAD(resident_list, resident);

struct residents {
	struct resident_list idle;   /* the one that came last is the first */
	struct resident_list ending; /* killed, and not collected yet */
	uint32_t nidle;
	uint64_t generation;
	usec_t idle_time;
	usec_t look_at; /* at those that end */
	struct strays *strays;
	int (*kill)(pid_t, int);
	struct event *timer;
};

/* ---- the end of a process ---- */

/* The timer is set anew whenever the first time changes, which costs no system
 * call: mail that keeps a process busy is not interrupted. */
static void
look_later(struct residents *s)
{
	const struct resident *oldest = TAILQ_LAST(&s->idle, resident_list);
	const usec_t now = clock_mono();
	usec_t at = TAILQ_EMPTY(&s->ending) ? USEC_NEVER : s->look_at;
	struct timeval tv;

	if (oldest != NULL && oldest->since + s->idle_time < at)
		at = oldest->since + s->idle_time;
	tv = clock_timeval(at > now ? at - now : 0);
	if (at == USEC_NEVER)
		(void)event_del(s->timer);
	else
		(void)event_add(s->timer, &tv);
}

void
resident_free(struct resident **resident)
{
	free(*resident);
	*resident = NULL;
}

/* The end of the socket is an order to end, too, for an agent that may not
 * kill. */
void
resident_end(struct residents *s, struct resident *r, pid_t pid, int fd)
{
	r->pid = pid;
	(void)s->kill(pid, SIGKILL);
	io_close(&fd);
	r->since = clock_mono();
	if (TAILQ_EMPTY(&s->ending))
		s->look_at = r->since + LOOK_EVERY;
	TAILQ_INSERT_TAIL(&s->ending, r, entry);
	look_later(s);
}

static void
end_idle(struct residents *s, struct resident *r)
{
	TAILQ_REMOVE(&s->idle, r, entry);
	s->nidle--;
	resident_end(s, r, r->pid, r->fd);
}

/* true: it is collected, or is a stray from here on. */
static bool
has_gone(struct residents *s, const struct resident *r, usec_t now)
{
	if (waitpid(r->pid, NULL, WNOHANG) != 0)
		return true;
	if (now - r->since < KILL_GRACE)
		return false;
	strays_add(s->strays, r->site, r->pid, now);
	return true;
}

static void
collect(struct residents *s, usec_t now)
{
	struct resident *r = TAILQ_FIRST(&s->ending), *next;

	for (; r != NULL; r = next) {
		next = TAILQ_NEXT(r, entry);
		if (!has_gone(s, r, now))
			continue;
		TAILQ_REMOVE(&s->ending, r, entry);
		free(r);
	}
}

static void
on_timer(evutil_socket_t fd UNUSED, short what UNUSED, void *arg)
{
	struct residents *s = arg;
	const usec_t now = clock_mono();
	struct resident *r;

	while ((r = TAILQ_LAST(&s->idle, resident_list)) != NULL &&
	    now - r->since >= s->idle_time)
		end_idle(s, r);
	collect(s, now);
	s->look_at = now + LOOK_EVERY;
	look_later(s);
}

void
residents_end_idle(struct residents *s)
{
	while (s != NULL && !TAILQ_EMPTY(&s->idle))
		end_idle(s, TAILQ_FIRST(&s->idle));
}

/* ---- the table ---- */

int
residents_new(struct event_base *base, struct strays *strays,
    int (*kill_process)(pid_t, int), struct residents **ret_residents)
{
	struct residents *s = calloc(1, sizeof(*s));

	if (s == NULL)
		return -ENOMEM;
	s->timer = event_new(base, -1, 0, on_timer, s);
	if (s->timer == NULL) {
		free(s);
		return -ENOMEM;
	}
	s->strays = strays;
	s->kill = kill_process;
	TAILQ_INIT(&s->idle);
	TAILQ_INIT(&s->ending);
	*ret_residents = s;
	return 0;
}

void
residents_free(struct residents **residents)
{
	struct residents *s = *residents;
	struct resident *r;

	*residents = NULL;
	if (s == NULL)
		return;
	residents_end_idle(s);
	collect(s, clock_mono());
	while ((r = TAILQ_FIRST(&s->ending)) != NULL) {
		TAILQ_REMOVE(&s->ending, r, entry);
		free(r);
	}
	event_free(s->timer);
	free(s);
}

void
residents_renew(struct residents *s, usec_t idle_time)
{
	if (s == NULL)
		return;
	s->idle_time = idle_time;
	s->generation++;
	residents_end_idle(s);
}

/* All that is looked up for the delivery is the account of the process: a look
 * into the directory is for a process that is the agent's user. */
static bool
may_stay(const struct residents *s, const struct child_plan *plan)
{
	const bool looks_up = plan->maildir_user[0] != '\0' &&
	    mailbox_path_uses(plan->maildir_path, 'h');

	return s != NULL && s->idle_time > 0 &&
	    !mailbox_is_mbox(plan->maildir_path) &&
	    (plan->forward_path == NULL || plan->forward_path[0] == '\0') &&
	    plan->delivery->kind == AGENT_LOCAL &&
	    plan->delivery->content != NULL &&
	    (plan->private || (plan->asks[0] != '\0' && !looks_up));
}

struct resident *
resident_new(struct residents *s, const struct child_plan *plan)
{
	const char *site = plan->delivery->nexthop;
	const size_t size = strlen(site) + 1;
	struct resident *r;

	if (!may_stay(s, plan))
		return NULL;
	r = calloc(1, sizeof(*r) + size);
	if (r == NULL)
		return NULL;
	r->generation = s->generation;
	memcpy(r->asks, plan->asks, sizeof(r->asks));
	memcpy(r->site, site, size);
	r->began = plan->started_at;
	return r;
}

void
resident_keep(struct residents *s, struct resident *r, pid_t pid, int fd)
{
	if (r->generation != s->generation || s->idle_time == 0 ||
	    ++r->served >= RESIDENT_SERVES) {
		resident_end(s, r, pid, fd);
		return;
	}
	r->pid = pid;
	r->fd = fd;
	r->since = clock_mono();
	TAILQ_INSERT_HEAD(&s->idle, r, entry);
	if (++s->nidle > RESIDENTS_MAX)
		end_idle(s, TAILQ_LAST(&s->idle, resident_list));
	look_later(s);
}

static bool
fits(const struct resident *r, const struct child_plan *plan)
{
	return plan->private ||
	    (strcmp(r->asks, plan->asks) == 0 &&
		plan->started_at - r->began < RESIDENT_HOLDS);
}

struct resident *
resident_take(struct residents *s, const struct child_plan *plan,
    pid_t *ret_pid, int *ret_fd)
{
	struct resident *r;

	if (!may_stay(s, plan))
		return NULL;
	TAILQ_FOREACH (r, &s->idle, entry)
		if (fits(r, plan))
			break;
	if (r == NULL)
		return NULL;
	TAILQ_REMOVE(&s->idle, r, entry);
	s->nidle--;
	look_later(s);
	*ret_pid = r->pid;
	*ret_fd = r->fd;
	return r;
}

bool
resident_serves(const struct resident *r)
{
	return r->served > 0;
}
