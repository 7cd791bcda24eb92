#include "deliver-smtp/reach/reach.h"

#include <arpa/inet.h>
#include <errno.h>
#include <event2/event.h>
#include <string.h>

#include "base/clock.h"
#include "base/text.h"

#define SMTP_PORT 25

/* ---- failures ---- */

static void
fail(struct reach *r, struct reach_failure *failure)
{
	r->ops->failed(r->arg, failure);
}

static void
fail_here(struct reach *r, int error)
{
	struct reach_failure failure = { .ours = true };

	verdict_set(
	    &failure.why, AGENT_DEFERRED, "4.3.0", "%s", strerror(-error));
	fail(r, &failure);
}

static bool
is_domain(const struct reach *r)
{
	return r->mx && r->hop.kind == NEXTHOP_DOMAIN;
}

static struct lookup_wanted
wanted_of(const struct reach *r)
{
	return (struct lookup_wanted){
		.name = r->hop.host,
		.mx = is_domain(r),
		.ways = r->ways,
	};
}

/* DNS says no. */
static void
fail_by_name(struct reach *r, const struct mx_set *set, enum mx_verdict verdict,
    const char *text)
{
	struct reach_failure failure = { .unknown = true };

	reason_set(&r->hop, set, verdict, text, &failure);
	/* DNS was asked for an address, not whether the name takes mail. */
	if (!is_domain(r) || r->fell_back)
		failure.permanent = NULL;
	fail(r, &failure);
}

/* ---- connecting ---- */

static void
choose_peer(struct reach *r, size_t target)
{
	const struct mx_target *t = &r->targets.list[target];

	r->current = target;
	memcpy(r->host, t->host, sizeof(r->host));
	nexthop_peer(&r->hop, t->host, (const struct sockaddr *)&t->address,
	    r->peer, r->relay);
}

static void
source_text(const struct reach *r, char out[INET6_ADDRSTRLEN])
{
	const struct mx_target *t = &r->targets.list[r->current];

	if (t->address.ss_family == AF_INET)
		inet_ntop(
		    AF_INET, &r->source.in.sin_addr, out, INET6_ADDRSTRLEN);
	else
		inet_ntop(
		    AF_INET6, &r->source.in6.sin6_addr, out, INET6_ADDRSTRLEN);
}

/* Make the address that has failed the current one, and put the failure into
 * words. */
static void
take_failure(
    struct reach *r, const struct connect_result *result, struct verdict *why)
{
	char from[INET6_ADDRSTRLEN] = "";

	choose_peer(r, result->target);
	if (result->bind) {
		source_text(r, from);
		verdict_set(why, AGENT_DEFERRED, "4.3.5",
		    "connect to %s: address %s to connect from: %s", r->relay,
		    from, strerror(-result->result));
	} else {
		verdict_set(why, AGENT_DEFERRED,
		    result->ours ? "4.3.0" : "4.4.1", "connect to %s: %s",
		    r->relay, strerror(-result->result));
	}
}

static void
on_going_on(void *arg, const struct connect_result *result)
{
	struct reach *r = arg;
	struct verdict why = { 0 };

	take_failure(r, result, &why);
	r->ops->goes_on(r->arg, &why);
	verdict_done(&why);
}

static void
fail_to_connect(struct reach *r, const struct connect_result *result)
{
	struct reach_failure failure = { .ours = result->ours };
	const struct lookup_wanted wanted = wanted_of(r);

	take_failure(r, result, &failure.why);
	if (!result->ours)
		lookup_forget(r->lookups, &wanted);
	fail(r, &failure);
}

static bool
is_left(const struct reach *r)
{
	size_t i;

	for (i = 0; i < r->targets.count; i++)
		if (!r->over[i])
			return true;
	return false;
}

/* Hosts that are still looked up may have an address that can be reached. */
static void
wait_or_fail(struct reach *r, const struct connect_result *result)
{
	if (r->lookup == NULL || result->ours || r->used >= r->limit_all) {
		fail_to_connect(r, result);
		return;
	}
	r->held = *result;
	r->waiting = true;
}

static void
on_connected(void *arg, const struct connect_result *result)
{
	struct reach *r = arg;

	r->race = NULL;
	r->used += clock_mono() - r->began_at;
	if (result->result < 0) {
		wait_or_fail(r, result);
		return;
	}
	choose_peer(r, result->target);
	r->ops->connected(r->arg, result->result);
}

/* To the first of the targets that are left. */
static void
try_targets(struct reach *r)
{
	const struct connect_plan plan = {
		.base = r->base,
		.targets = &r->targets,
		.over = r->over,
		.limit = r->limit,
		.limit_all = r->limit_all - r->used,
		.head_start = r->head_start,
		.source = &r->source,
		.goes_on = on_going_on,
	};
	struct connect_result failed;

	r->began_at = clock_mono();
	if (connect_start(&plan, on_connected, r, &failed, &r->race) < 0)
		wait_or_fail(r, &failed);
}

/* ---- addresses to connect to ---- */

static bool
loops_count(const struct reach *r)
{
	return is_domain(r) && r->hop.port == SMTP_PORT;
}

/* Where more hosts follow they are left half of the attempts. */
static void
set_order(struct reach *r, const struct mx_set *set, bool complete,
    struct mx_targets *targets)
{
	struct mx_plan plan = r->plan;

	if (!complete)
		plan.limit =
		    ((plan.limit == 0 ? MX_TARGETS_MAX : plan.limit) + 1) / 2;
	mx_order(set, &plan, targets);
}

/* A worse host may be this one, and be known with the second answer alone. */
static void
note_mine(struct reach *r, const struct mx_set *set)
{
	r->mine |=
	    is_domain(r) && !r->fell_back && mx_limit(set, true) != MX_NOT_OURS;
}

static void
take_set(
    struct reach *r, const struct mx_set *set, const char *text, bool complete)
{
	bool loops = loops_count(r);
	enum mx_verdict verdict = mx_judge(set, loops);

	if (verdict != MX_FOUND) {
		fail_by_name(r, set, verdict, text);
		return;
	}
	r->taken = true;
	note_mine(r, set);
	if (is_domain(r) && !r->fell_back && r->ops->found != NULL &&
	    !r->ops->found(r->arg, set, loops))
		return;
	r->plan.port = r->hop.port;
	r->plan.loops = loops;
	r->plan.seed = mx_chance(&r->lookups->seed);
	set_order(r, set, complete, &r->targets);
	try_targets(r);
}

static bool
is_target(const struct mx_targets *targets, const struct mx_target *t)
{
	size_t i;

	for (i = 0; i < targets->count; i++)
		if (targets->list[i].address_len == t->address_len &&
		    memcmp(&targets->list[i].address, &t->address,
			t->address_len) == 0)
			return true;
	return false;
}

/* Append the hosts that the whole answer adds. Attempts know targets by their
 * place in the list, so the old places stay. A new target may have a better
 * rank than an old one; next_target() looks at ranks. */
static void
take_rest(struct reach *r, const struct mx_set *set)
{
	const size_t limit =
	    r->plan.limit == 0 ? MX_TARGETS_MAX : r->plan.limit;
	struct mx_targets all;
	size_t i;

	set_order(r, set, true, &all);
	for (i = 0; i < all.count && r->targets.count < limit; i++)
		if (!is_target(&r->targets, &all.list[i]))
			r->targets.list[r->targets.count++] = all.list[i];
}

static void
go_on_waiting(struct reach *r)
{
	struct reach_failure failure = { .no_more = true };

	r->waiting = false;
	if (is_left(r)) {
		if (r->held.result < 0)
			on_going_on(r, &r->held);
		try_targets(r);
	} else if (r->held.result < 0) {
		fail_to_connect(r, &r->held);
	} else {
		fail(r, &failure);
	}
}

static void
on_looked_up(void *arg, const struct lookup_answer *answer)
{
	struct reach *r = arg;
	struct reach_failure failure = {
		.ours = answer->error == -ENOMEM,
		.unknown = true,
	};

	if (answer->complete)
		r->lookup = NULL;
	if (r->taken) {
		note_mine(r, answer->set);
		/* None: the mail goes over a connection that was kept. */
		if (r->targets.count > 0)
			take_rest(r, answer->set);
		if (r->waiting)
			go_on_waiting(r);
		return;
	}
	if (answer->error == 0) {
		take_set(r, answer->set, answer->text, answer->complete);
		return;
	}
	verdict_set(&failure.why, AGENT_DEFERRED, "4.4.3",
	    "name of host %s: %s", r->hop.host, answer->text);
	fail(r, &failure);
}

static void
take_address(struct reach *r)
{
	struct mx_target *t = &r->targets.list[0];

	t->address = r->hop.address;
	t->address_len = r->hop.address_len;
	memcpy(t->host, r->hop.host, sizeof(t->host));
	r->targets.count = 1;
	try_targets(r);
}

static void
look_up(struct reach *r)
{
	const struct lookup_wanted wanted = wanted_of(r);
	struct mx_set set;
	int error;

	if (lookup_known(r->lookups, &wanted, &set)) {
		take_set(r, &set, NULL, true);
		return;
	}
	error = lookup_start(r->lookups, &wanted, on_looked_up, r, &r->lookup);
	if (error < 0)
		fail_here(r, error);
}

static void
on_late(evutil_socket_t sock UNUSED, short what UNUSED, void *arg)
{
	struct reach *r = arg;

	r->ops->late(r->arg);
}

/* Start the timer, unless the timer runs. If there is no memory for a timer,
 * the limits of the single steps remain. */
static void
late_start(struct reach *r)
{
	const struct timeval limit = clock_timeval(r->limit_before);

	if (r->limit_before == 0)
		return;
	if (r->late == NULL)
		r->late = evtimer_new(r->base, on_late, r);
	if (r->late != NULL && !evtimer_pending(r->late, NULL))
		(void)evtimer_add(r->late, &limit);
}

static void
hop_start(struct reach *r)
{
	late_start(r);
	lookup_cancel(&r->lookup);
	r->taken = r->waiting = false;
	r->targets.count = r->current = 0;
	if (r->hop.kind == NEXTHOP_ADDRESS || r->hop.kind == NEXTHOP_UNIX)
		take_address(r);
	else
		look_up(r);
}

void
reach_start(struct reach *r)
{
	hop_start(r);
}

bool
reach_has_fallback(const struct reach *r)
{
	const char *rest = r->fallback;
	size_t len;

	/* A host of the domain that is still looked up may be this one. */
	return rest != NULL && !r->mine &&
	    (r->fell_back || r->lookup == NULL) &&
	    text_next_word(&rest, &len) != NULL;
}

bool
reach_fall_back(struct reach *r)
{
	char *text = r->fallback_hop;
	const char *word;
	size_t len;

	if (!reach_has_fallback(r))
		return false;
	word = text_next_word(&r->fallback, &len);
	if (word == NULL || len >= sizeof(r->fallback_hop))
		return false;
	memcpy(text, word, len);
	text[len] = '\0';
	if (nexthop_parse(text, r->default_port, &r->hop) < 0)
		return false;
	r->fell_back = true;
	r->used = 0;
	memset(r->over, 0, sizeof(r->over));
	if (r->late != NULL)
		(void)evtimer_del(r->late);
	hop_start(r);
	return true;
}

void
reach_again(struct reach *r)
{
	struct mx_target current;

	if (r->targets.count == 0) {
		hop_start(r);
		return;
	}
	late_start(r);
	current = r->targets.list[r->current];
	r->targets.list[r->current] = r->targets.list[0];
	r->over[r->current] = r->over[0];
	r->targets.list[0] = current;
	r->over[0] = false;
	r->current = 0;
	try_targets(r);
}

bool
reach_has_next(const struct reach *r)
{
	bool left = r->lookup != NULL;
	size_t i;

	for (i = 0; i < r->targets.count; i++)
		left |= i != r->current && !r->over[i];
	return left && r->used < r->limit_all;
}

bool
reach_next(struct reach *r)
{
	r->over[r->current] = true;
	if (r->used >= r->limit_all || (!is_left(r) && r->lookup == NULL))
		return false;
	late_start(r);
	if (is_left(r)) {
		try_targets(r);
	} else {
		r->held = (struct connect_result){ 0 };
		r->waiting = true;
	}
	return true;
}

void
reach_stop(struct reach *r)
{
	lookup_cancel(&r->lookup);
	connect_cancel(&r->race);
}

void
reach_cancel(struct reach *r)
{
	reach_stop(r);
	if (r->late != NULL)
		event_free(r->late);
	r->late = NULL;
}
