#include "deliver-smtp/reach/reach.h"

#include <arpa/inet.h>
#include <errno.h>
#include <string.h>

#include "base/clock.h"

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

/* The words of a verdict, before and behind the name of the next hop. */
static const struct {
	const char *dsn, *permanent, *before, *behind;
} verdicts[MX_NVERDICTS] = {
	[MX_NO_NAME] = { "4.4.4", "5.1.2", "name of host ", ": " },
	[MX_NO_MAIL] = { "4.4.4", "5.1.10", "domain ",
	    " takes no mail: its MX record is null" },
	[MX_NO_HOST] = { "4.4.4", NULL, "no MX record of ", " names a host" },
	[MX_NO_ADDRESS] = { "4.4.4", NULL, "name of host ",
	    ": no address to connect to" },
	[MX_LOOP] = { "4.4.6", "5.4.6", "mail for ",
	    " loops back to this host" },
};

static bool
is_domain(const struct reach *r)
{
	return r->mx && strchr(r->hop.host, '.') != NULL;
}

/* DNS says no. */
static void
fail_by_name(struct reach *r, enum mx_verdict verdict, const char *text)
{
	/* Of a host DNS was not asked whether it takes mail. */
	struct reach_failure failure = {
		.permanent = is_domain(r) ? verdicts[verdict].permanent : NULL,
		.unknown = true,
	};

	if (text == NULL)
		text = "Domain name not found";
	verdict_set(&failure.why, AGENT_DEFERRED, verdicts[verdict].dsn,
	    "%s%s%s%s", verdicts[verdict].before, r->hop.host,
	    verdicts[verdict].behind, verdict == MX_NO_NAME ? text : "");
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

static void
fail_to_connect(struct reach *r, const struct connect_result *result)
{
	struct reach_failure failure = { .ours = result->ours };
	char from[INET6_ADDRSTRLEN] = "";

	choose_peer(r, result->target);
	if (result->bind) {
		source_text(r, from);
		verdict_set(&failure.why, AGENT_DEFERRED, "4.3.5",
		    "connect to %s: address %s to connect from: %s", r->relay,
		    from, strerror(-result->result));
	} else {
		verdict_set(&failure.why, AGENT_DEFERRED,
		    result->ours ? "4.3.0" : "4.4.1", "connect to %s: %s",
		    r->relay, strerror(-result->result));
	}
	if (!result->ours)
		lookup_forget(r->lookups, &r->hop, r->mx);
	fail(r, &failure);
}

static void
on_connected(void *arg, const struct connect_result *result)
{
	struct reach *r = arg;

	r->race = NULL;
	r->used += clock_mono() - r->began_at;
	if (result->result < 0) {
		fail_to_connect(r, result);
		return;
	}
	choose_peer(r, result->target);
	r->ops->connected(r->arg, result->result);
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
	};
	struct connect_result failed;

	r->began_at = clock_mono();
	if (connect_start(&plan, on_connected, r, &failed, &r->race) < 0)
		fail_to_connect(r, &failed);
}

/* ---- addresses to connect to ---- */

static bool
loops_count(const struct reach *r)
{
	return is_domain(r) && r->hop.port == SMTP_PORT;
}

static void
take_set(struct reach *r, const struct mx_set *set, const char *text)
{
	bool loops = loops_count(r);
	enum mx_verdict verdict = mx_judge(set, loops);

	if (verdict != MX_FOUND) {
		fail_by_name(r, verdict, text);
		return;
	}
	if (is_domain(r) && r->ops->found != NULL &&
	    !r->ops->found(r->arg, set, loops))
		return;
	r->plan.port = r->hop.port;
	r->plan.loops = loops;
	r->plan.seed = mx_chance(&r->lookups->seed);
	mx_order(set, &r->plan, &r->targets);
	try_targets(r);
}

static void
on_looked_up(void *arg, const struct lookup_answer *answer)
{
	struct reach *r = arg;
	struct reach_failure failure = {
		.ours = answer->error == -ENOMEM,
		.unknown = true,
	};

	r->lookup = NULL;
	if (answer->error == 0) {
		take_set(r, answer->set, answer->text);
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
	struct mx_set set;
	int error;

	if (lookup_known(r->lookups, &r->hop, r->mx, &set)) {
		take_set(r, &set, NULL);
		return;
	}
	error = lookup_start(
	    r->lookups, &r->hop, r->mx, on_looked_up, r, &r->lookup);
	if (error < 0)
		fail_here(r, error);
}

void
reach_start(struct reach *r)
{
	r->mx = r->mx && r->hop.kind == NEXTHOP_DOMAIN;
	if (r->hop.kind == NEXTHOP_ADDRESS || r->hop.kind == NEXTHOP_UNIX)
		take_address(r);
	else
		look_up(r);
}

void
reach_again(struct reach *r)
{
	struct mx_target current;

	if (r->targets.count == 0) {
		reach_start(r);
		return;
	}
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
	size_t i;

	for (i = 0; i < r->targets.count; i++)
		if (i != r->current && !r->over[i])
			return r->used < r->limit_all;
	return false;
}

bool
reach_next(struct reach *r)
{
	r->over[r->current] = true;
	if (!is_left(r) || r->used >= r->limit_all)
		return false;
	try_targets(r);
	return true;
}

void
reach_cancel(struct reach *r)
{
	lookup_cancel(&r->lookup);
	connect_cancel(&r->race);
}
