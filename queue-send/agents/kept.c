#include "queue-send/agents/own.h"

#include <errno.h>
#include <stdlib.h>

#include "queue-send/schedule/schedule.h"
#include "site/shared.h"

#define CHECK_EVERY (100 * USEC_PER_MSEC)

/* A place at a destination whose connection is open between two deliveries. */
struct kept {
	RB_ENTRY(kept) by_number, by_site;
	TAILQ_ENTRY(kept) of_agent, age;
	uint64_t number; /* of the delivery that left it open */
	struct agent_link *agent;
	struct site *site; /* open */
	uint32_t transport;
	usec_t idle_at; /* when a delivery left it open */
	bool closing;   /* CLOSED will come */
	/* Has its place, and waits for its file; NULL: none. */
	const struct sched_entry *promised;
};

static int
number_compare(const struct kept *a, const struct kept *b)
{
	return (a->number > b->number) - (a->number < b->number);
}

static int
site_compare(const struct kept *a, const struct kept *b)
{
	if (a->site != b->site)
		return (uintptr_t)a->site < (uintptr_t)b->site ? -1 : 1;
	return number_compare(a, b);
}

TREE_GENERATE(kept_numbers, kept, by_number, number_compare)
TREE_GENERATE(kept_sites, kept, by_site, site_compare)

uint32_t
kept_count(const struct send *s)
{
	return s->links->kept.count;
}

/* ---- one ---- */

static bool
is_in_use(const struct send *s, uint32_t transport)
{
	const enum agent_kind kind = s->conf->transports[transport].kind;

	return (kind == AGENT_SMTP || kind == AGENT_LMTP) && !s->stopping &&
	    s->conf->smtp_connection_cache_time_limit > 0;
}

/* The next delivery takes it. */
static void
offer(struct send *s, struct kept *k)
{
	RB_INSERT(kept_sites, &s->links->kept.sites, k);
	TAILQ_INSERT_TAIL(&s->links->kept.ages, k, age);
	s->links->kept.open[k->transport]++;
}

/* No delivery takes it any more. */
static void
put_aside(struct send *s, struct kept *k)
{
	if (k->promised != NULL) {
		TAILQ_REMOVE(&s->links->kept.promised, k, age);
		k->promised = NULL;
		return;
	}
	RB_REMOVE(kept_sites, &s->links->kept.sites, k);
	TAILQ_REMOVE(&s->links->kept.ages, k, age);
	s->links->kept.open[k->transport]--;
}

static void
leave(struct send *s, struct kept *k)
{
	RB_REMOVE(kept_numbers, &s->links->kept.numbers, k);
	TAILQ_REMOVE(&k->agent->kept, k, of_agent);
	s->links->kept.count--;
	site_close(k->site, s->now);
	free(k);
}

/* The place of a connection that is gone. */
static void
give_back(struct send *s, struct kept *k)
{
	static const struct site_report report = { .result = SITE_AGENT_DIED };
	void *destination;

	if (!k->closing)
		shared_keep_not(k->site);
	site_done(k->site, &report, s->now, NULL);
	destination = *site_user(k->site);
	if (destination != NULL)
		sched_site_ready(s->sched, destination, s->now);
}

/* The connection is gone. The place is that of the entry it was promised to. */
static void
end(struct send *s, struct kept *k)
{
	if (k->promised == NULL)
		give_back(s, k);
	if (k->closing)
		RB_REMOVE(kept_sites, &s->links->kept.closing, k);
	else
		put_aside(s, k);
	leave(s, k);
	send_wake(s);
}

static void
tell_agent(struct agent_link *agent, uint64_t connection)
{
	const struct msg msg = { .type = MSG_CLOSE,
		.u.CLOSE.connection = connection };

	/* links.c hears of a link that fails, and drops the agent. */
	if (agent->wire != NULL)
		(void)wire_send(agent->wire, &msg, -1);
}

static void
close_one(struct send *s, struct kept *k)
{
	put_aside(s, k);
	shared_keep_not(k->site);
	shared_yield(k->site, s->now);
	k->closing = true;
	RB_INSERT(kept_sites, &s->links->kept.closing, k);
	tell_agent(k->agent, k->number);
}

/* ---- a delivery takes one ---- */

struct kept *
kept_find(struct send *s, const struct sched_entry *e)
{
	struct kept key = { .number = UINT64_MAX }, *k;

	TAILQ_FOREACH (k, &s->links->kept.promised, age)
		if (k->promised == e)
			return k;
	if (s->links->kept.open[e->transport] == 0)
		return NULL;
	key.site = site_open(s->sites, e->transport, e->destination, s->now);
	if (key.site == NULL)
		return NULL;
	RB_INSERT(kept_sites, &s->links->kept.sites, &key);
	k = RB_PREV(kept_sites, &s->links->kept.sites, &key);
	RB_REMOVE(kept_sites, &s->links->kept.sites, &key);
	site_close(key.site, s->now);
	return k != NULL && k->site == key.site ? k : NULL;
}

int
kept_say(struct send *s, struct delivery *d, const struct kept *k,
    struct agent_link *agent)
{
	const struct msg msg = { .type = MSG_REUSE,
		.u.REUSE = {
		    .job = d->id,
		    .connection = k == NULL ? 0 : k->number,
		} };

	d->may_keep = k != NULL || is_in_use(s, d->entry->transport);
	return d->may_keep ? wire_send(agent->wire, &msg, -1) : 0;
}

void
kept_taken(struct send *s, struct kept *k)
{
	put_aside(s, k);
	leave(s, k);
}

void
kept_spared(struct send *s, struct kept *k)
{
	if (k->promised != NULL) {
		put_aside(s, k);
		offer(s, k);
	}
	shared_keep(k->site);
}

void
kept_promise(struct send *s, struct kept *k, const struct sched_entry *e)
{
	put_aside(s, k);
	k->promised = e;
	TAILQ_INSERT_TAIL(&s->links->kept.promised, k, age);
}

/* ---- a delivery leaves one ---- */

static struct kept *
add(struct send *s, const struct delivery *d)
{
	struct kept *k = calloc(1, sizeof(*k));

	if (k == NULL)
		return NULL;
	k->number = d->id;
	k->agent = d->agent;
	k->transport = d->entry->transport;
	k->idle_at = s->now;
	k->site =
	    site_open(s->sites, k->transport, d->entry->destination, s->now);
	if (k->site == NULL) {
		free(k);
		return NULL;
	}
	RB_INSERT(kept_numbers, &s->links->kept.numbers, k);
	TAILQ_INSERT_TAIL(&k->agent->kept, k, of_agent);
	offer(s, k);
	s->links->kept.count++;
	shared_keep(k->site);
	return k;
}

/* Places at the site of k that this queue gives up already. */
static uint32_t
count_closing(struct send *s, const struct kept *k)
{
	struct kept key = { .site = k->site }, *other;
	uint32_t n = 0;

	other = RB_NFIND(kept_sites, &s->links->kept.closing, &key);
	for (; other != NULL && other->site == k->site; n++)
		other = RB_NEXT(kept_sites, &s->links->kept.closing, other);
	return n;
}

static enum shared_want
want(struct send *s, const struct kept *k)
{
	return shared_want(k->site, count_closing(s, k),
	    s->conf->smtp_connection_turn_time, s->now);
}

/* The delivery has its place until the connection is closed. */
static void
close_first(struct delivery *d)
{
	d->closing = true;
	tell_agent(d->agent, d->id);
}

int
kept_on_kept(struct send *s, struct agent_link *agent, const struct msg_KEPT *f)
{
	struct delivery *d = delivery_of(s, agent, f->job);
	struct kept *k;

	if (d == NULL || !d->may_keep)
		return -EBADMSG;
	replies_defer_rest(s, d, "4.0.0", "the agent gave no result", false);
	k = is_in_use(s, d->entry->transport) ? add(s, d) : NULL;
	if (k == NULL) {
		close_first(d);
		return 0;
	}
	delivery_end(s, d, SITE_DELIVERED, NULL);
	if (want(s, k) == SHARED_WANT_NOW)
		close_one(s, k);
	return 0;
}

int
kept_on_closed(
    struct send *s, struct agent_link *agent, const struct msg_CLOSED *f)
{
	struct kept key = { .number = f->connection }, *k;
	struct delivery *d = delivery_find(s, f->connection);

	k = RB_FIND(kept_numbers, &s->links->kept.numbers, &key);
	if ((k != NULL && k->agent != agent) ||
	    (d != NULL && (d->agent != agent || !d->closing)))
		return -EBADMSG;
	if (k != NULL)
		end(s, k);
	if (d != NULL)
		delivery_end(s, d, SITE_DELIVERED, NULL);
	return 0; /* neither: a delivery was to use it, and opened another */
}

/* ---- the end ---- */

void
kept_agent_ended(struct send *s, struct agent_link *agent)
{
	struct kept *k;

	while ((k = TAILQ_FIRST(&agent->kept)) != NULL)
		end(s, k);
}

static bool
is_too_many(const struct send *s, uint32_t transport)
{
	return s->links->kept.open[transport] +
	    sched_transport_running(s->sched, transport) >
	    s->conf->transports[transport].sched.process_limit;
}

static bool
is_one_too_many(const struct send *s, uint32_t transport)
{
	return s->links->kept.open[transport] > 0 &&
	    (!is_in_use(s, transport) || is_too_many(s, transport));
}

static bool
are_too_many(const struct send *s)
{
	uint32_t i;

	for (i = 0; i < s->conf->ntransports; i++)
		if (is_one_too_many(s, i))
			return true;
	return false;
}

usec_t
kept_work(struct send *s)
{
	const bool check = s->now >= s->links->kept.check_at;
	struct kept *k = NULL, *next;

	if (TAILQ_EMPTY(&s->links->kept.ages))
		return USEC_NEVER;
	if (check || are_too_many(s))
		k = TAILQ_FIRST(&s->links->kept.ages);
	for (; k != NULL; k = next) {
		next = TAILQ_NEXT(k, age);
		if (is_one_too_many(s, k->transport) ||
		    (check && s->now - k->idle_at >= KEPT_IDLE &&
			want(s, k) > SHARED_WANT_NONE))
			close_one(s, k);
	}
	if (check)
		s->links->kept.check_at = s->now + CHECK_EVERY;
	return TAILQ_EMPTY(&s->links->kept.ages) ? USEC_NEVER
						 : s->links->kept.check_at;
}
