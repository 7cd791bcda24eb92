#include <errno.h>
#include <event2/event.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/io.h"
#include "deliver-smtp/reach/reach.h"

struct attempt {
	struct connect_race *race;
	bool open;
	int sock;
	size_t target;
	struct event *event;
};

struct connect_race {
	struct connect_plan plan;
	connect_fn *done;
	void *arg;
	struct attempt attempts[CONNECT_AT_ONCE];
	struct event *head_start, *limit_all;
	struct connect_result last; /* failure */
};

/* ---- sockets ---- */

static bool
error_is_ours(int error)
{
	static const int ours[] = { EMFILE, ENFILE, ENOMEM, ENOBUFS };
	size_t i;

	for (i = 0; i < ARRAY_LEN(ours); i++)
		if (ours[i] == -error)
			return true;
	return false;
}

/* 0; -errno: the operator's address cannot be used. Without one, as is usual,
 * a connection costs no call here. */
static int
bind_source(const struct connect_source *source, int sock, sa_family_t family)
{
	const struct sockaddr *address = NULL;
	socklen_t len = 0;
	int one = 1;

	if (family == AF_INET && source->in.sin_family == AF_INET) {
		address = (const struct sockaddr *)&source->in;
		len = sizeof(source->in);
	} else if (family == AF_INET6 && source->in6.sin6_family == AF_INET6) {
		address = (const struct sockaddr *)&source->in6;
		len = sizeof(source->in6);
	}
	if (address == NULL)
		return 0;
	/* The port is chosen by connect(), for each address of the far end. */
	(void)setsockopt(
	    sock, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &one, sizeof(one));
	return bind(sock, address, len) < 0 ? -errno : 0;
}

/* EAGAIN is a local socket whose server has no room in its queue: connect()
 * does not wait there, so neither can we. */
static int
begin_connect(int sock, const struct mx_target *t)
{
	if (connect(sock, (const struct sockaddr *)&t->address,
		t->address_len) == 0 ||
	    errno == EINPROGRESS)
		return 0;
	return errno == EAGAIN ? -ECONNREFUSED : -errno;
}

/* A socket on its way, or -errno with *ret_bind. */
static int
open_socket(const struct connect_source *source, const struct mx_target *t,
    bool *ret_bind)
{
	sa_family_t family = t->address.ss_family;
	int sock =
	    socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	int one = 1, r = 0;

	*ret_bind = false;
	if (sock < 0)
		return -errno;
	/* Commands are written whole: waiting for more only costs time. */
	if (family != AF_UNIX) {
		(void)setsockopt(
		    sock, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
		r = bind_source(source, sock, family);
		*ret_bind = r < 0;
	}
	if (r == 0)
		r = begin_connect(sock, t);
	if (r == 0)
		return sock;
	io_close(&sock);
	return r;
}

/* ---- the race ---- */

static void
close_attempt(struct attempt *a)
{
	if (a->event != NULL)
		event_free(a->event);
	a->event = NULL;
	if (a->open)
		io_close(&a->sock);
	a->open = false;
}

static void
race_free(struct connect_race *race)
{
	size_t i;

	for (i = 0; i < CONNECT_AT_ONCE; i++)
		close_attempt(&race->attempts[i]);
	if (race->head_start != NULL)
		event_free(race->head_start);
	if (race->limit_all != NULL)
		event_free(race->limit_all);
	free(race);
}

static void
end(struct connect_race *race, const struct connect_result *result)
{
	const struct connect_result copy = *result;
	connect_fn *done = race->done;
	void *arg = race->arg;

	race_free(race);
	done(arg, &copy);
}

static void
note_failure(struct connect_race *race, size_t target, int error, bool bind)
{
	race->plan.over[target] = true;
	race->last = (struct connect_result){
		.result = error,
		.target = target,
		.ours = bind || error_is_ours(error),
		.bind = bind,
	};
}

static bool
is_under_way(const struct connect_race *race, size_t target)
{
	size_t i;

	for (i = 0; i < CONNECT_AT_ONCE; i++)
		if (race->attempts[i].open &&
		    race->attempts[i].target == target)
			return true;
	return false;
}

static const struct attempt *
any_under_way(const struct connect_race *race)
{
	size_t i;

	for (i = 0; i < CONNECT_AT_ONCE; i++)
		if (race->attempts[i].open)
			return &race->attempts[i];
	return NULL;
}

/* The target of the best rank that may begin now; among equal ranks the first
 * in the list. The count of targets: no target may begin. */
static size_t
next_target(const struct connect_race *race)
{
	const struct mx_targets *t = race->plan.targets;
	const struct attempt *other = any_under_way(race);
	size_t i = t->count, k;

	for (k = 0; k < t->count; k++)
		if (!race->plan.over[k] && !is_under_way(race, k) &&
		    (i == t->count || t->list[k].rank < t->list[i].rank))
			i = k;
	if (i < t->count && other != NULL &&
	    t->list[i].rank != t->list[other->target].rank)
		return t->count;
	return i;
}

/* Tell of a failed address, unless the failure is the result: then no other
 * address is left. */
static void
tell_failure(struct connect_race *race)
{
	if (any_under_way(race) != NULL ||
	    next_target(race) < race->plan.targets->count)
		race->plan.goes_on(race->arg, &race->last);
}

static struct attempt *
free_attempt(struct connect_race *race)
{
	size_t i;

	for (i = 0; i < CONNECT_AT_ONCE; i++)
		if (!race->attempts[i].open)
			return &race->attempts[i];
	return NULL;
}

static void on_ready(evutil_socket_t sock, short what, void *arg);

static int
watch(struct connect_race *race, struct attempt *a)
{
	const struct timeval limit = clock_timeval(race->plan.limit);
	const struct timeval start = clock_timeval(race->plan.head_start);

	a->event = event_new(race->plan.base, a->sock, EV_WRITE, on_ready, a);
	if (a->event == NULL || event_add(a->event, &limit) < 0)
		return -ENOMEM;
	if (race->plan.head_start > 0)
		(void)evtimer_add(race->head_start, &start);
	return 0;
}

/* Begin with the next address that can begin. False: the failure in race->last
 * is our own, and would be that of each. */
static bool
begin_next(struct connect_race *race)
{
	struct attempt *a = free_attempt(race);
	size_t target;
	bool bind;
	int r;

	if (a == NULL)
		return true;
	while ((target = next_target(race)) < race->plan.targets->count) {
		r = open_socket(race->plan.source,
		    &race->plan.targets->list[target], &bind);
		if (r >= 0) {
			*a = (struct attempt){ .race = race,
				.open = true,
				.sock = r,
				.target = target };
			r = watch(race, a);
			if (r == 0)
				return true;
			close_attempt(a);
		}
		note_failure(race, target, r, bind);
		if (!race->last.ours) {
			tell_failure(race);
			continue;
		}
		/* Another one is under way: it comes back when that fails. */
		race->plan.over[target] = false;
		return any_under_way(race) != NULL;
	}
	return true;
}

/* One has failed, or had its head start. */
static void
go_on(struct connect_race *race)
{
	if (!begin_next(race) || any_under_way(race) == NULL)
		end(race, &race->last);
}

static int
outcome(int sock, short what)
{
	int error = 0;
	socklen_t len = sizeof(error);

	if (what & EV_TIMEOUT)
		return -ETIMEDOUT;
	if (getsockopt(sock, SOL_SOCKET, SO_ERROR, &error, &len) < 0)
		return -errno;
	return -error;
}

static void
on_ready(evutil_socket_t sock, short what, void *arg)
{
	struct attempt *a = arg;
	struct connect_race *race = a->race;
	struct connect_result won = { .target = a->target };
	int r = outcome(sock, what);

	if (r == 0) {
		won.result = a->sock;
		a->sock = -1;
		end(race, &won);
		return;
	}
	close_attempt(a);
	note_failure(race, a->target, r, false);
	tell_failure(race);
	go_on(race);
}

static void
on_head_start(evutil_socket_t sock UNUSED, short what UNUSED, void *arg)
{
	go_on(arg);
}

static void
on_limit_all(evutil_socket_t sock UNUSED, short what UNUSED, void *arg)
{
	struct connect_race *race = arg;
	const struct attempt *a = any_under_way(race);

	if (a != NULL)
		note_failure(race, a->target, -ETIMEDOUT, false);
	end(race, &race->last);
}

static struct connect_race *
race_new(const struct connect_plan *plan, connect_fn *done, void *arg)
{
	const struct timeval all = clock_timeval(plan->limit_all);
	struct connect_race *race = calloc(1, sizeof(*race));

	if (race == NULL)
		return NULL;
	race->plan = *plan;
	race->done = done;
	race->arg = arg;
	race->head_start = evtimer_new(plan->base, on_head_start, race);
	race->limit_all = evtimer_new(plan->base, on_limit_all, race);
	if (race->head_start == NULL || race->limit_all == NULL ||
	    evtimer_add(race->limit_all, &all) < 0) {
		race_free(race);
		return NULL;
	}
	return race;
}

int
connect_start(const struct connect_plan *plan, connect_fn *done, void *arg,
    struct connect_result *ret_failed, struct connect_race **ret_race)
{
	struct connect_race *race = race_new(plan, done, arg);

	if (race == NULL) {
		*ret_failed =
		    (struct connect_result){ .result = -ENOMEM, .ours = true };
		return -ENOMEM;
	}
	if (begin_next(race) && any_under_way(race) != NULL) {
		*ret_race = race;
		return 0;
	}
	*ret_failed = race->last;
	race_free(race);
	return ret_failed->result;
}

void
connect_cancel(struct connect_race **race)
{
	struct connect_race *r = *race;

	*race = NULL;
	if (r != NULL)
		race_free(r);
}
