#include "sched/sched.h"

#include "sched/site.h"

#include "base/address.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct sched_message {
	struct sched *sched;
	void *owner;
	uint64_t arrival; /* its place in the order of all messages */
	LIST_HEAD(entry_list, entry) entries;
	uint32_t waiting; /* recipients */
	uint32_t running; /* entries */
};

struct sched {
	struct transport *transports;
	uint32_t count;
	uint32_t next;      /* the transport whose turn it is */
	uint64_t arrivals;  /* messages that ever came */
	uint64_t sequences; /* of entries and sites */
	struct sched_figures figures;
};

uint32_t
sched_recipient_limit(uint32_t destination_recipient_limit)
{
	if (destination_recipient_limit == 0 ||
	    destination_recipient_limit > SCHED_ENTRY_RCPTS_MAX)
		return SCHED_ENTRY_RCPTS_MAX;
	return destination_recipient_limit;
}

static void
transport_set(struct transport *t, const struct sched_transport_params *params)
{
	t->params = *params;
	t->params.name = NULL; /* the caller's; nothing here needs it */
	t->params.destination_recipient_limit =
	    sched_recipient_limit(params->destination_recipient_limit);
}

int
sched_new(const struct sched_transport_params *params, uint32_t count,
    struct sched **ret_sched)
{
	struct sched *s = calloc(1, sizeof(*s));
	uint32_t i;

	if (s == NULL)
		return -ENOMEM;
	s->transports = calloc(count == 0 ? 1 : count, sizeof(*s->transports));
	if (s->transports == NULL) {
		free(s);
		return -ENOMEM;
	}
	s->count = count;
	for (i = 0; i < count; i++) {
		RB_INIT(&s->transports[i].sites);
		RB_INIT(&s->transports[i].ready);
		transport_set(&s->transports[i], &params[i]);
	}
	*ret_sched = s;
	return 0;
}

void
sched_free(struct sched **s)
{
	if (*s == NULL)
		return;
	ASSERT((*s)->figures.messages == 0);
	free((*s)->transports);
	free(*s);
	*s = NULL;
}

int
sched_configure(struct sched *s, const struct sched_transport_params *params,
    uint32_t count)
{
	uint32_t i, was;

	if (count != s->count)
		return -EINVAL;
	for (i = 0; i < count; i++) {
		was = s->transports[i].params.destination_concurrency_limit;
		transport_set(&s->transports[i], &params[i]);
		if (was != params[i].destination_concurrency_limit)
			transport_update(&s->transports[i]);
	}
	return 0;
}

int
sched_message_new(struct sched *s, void *owner, usec_t now UNUSED,
    struct sched_message **ret_message)
{
	struct sched_message *m = calloc(1, sizeof(*m));

	if (m == NULL)
		return -ENOMEM;
	m->sched = s;
	m->owner = owner;
	m->arrival = s->arrivals++;
	LIST_INIT(&m->entries);
	s->figures.messages++;
	*ret_message = m;
	return 0;
}

int
sched_message_expect(
    struct sched_message *m, uint32_t transport, uint32_t entries UNUSED)
{
	return transport < m->sched->count ? 0 : -EINVAL;
}

static void
entry_free(struct entry *e)
{
	if (e->pub.rcpts != &e->one)
		free((void *)(uintptr_t)e->pub.rcpts);
	free(e);
}

static struct entry *
entry_new(struct sched_message *m, struct site *site)
{
	struct entry *e = calloc(1, sizeof(*e));

	if (e == NULL)
		return NULL;
	e->pub.message = m;
	e->pub.owner = m->owner;
	e->pub.transport = (uint32_t)(site->transport - m->sched->transports);
	e->pub.nexthop = site->nexthop;
	e->pub.rcpts = &e->one;
	e->cap = 1;
	e->site = site;
	e->arrival = m->arrival;
	e->seq = m->sched->sequences++;
	return e;
}

/* Room for one more: 1 in the entry itself, then 4, 8, … up to the limit. */
static int
entry_grow(struct entry *e)
{
	struct sched_rcpt *rcpts;
	uint32_t cap = e->cap == 1 ? 4 : e->cap * 2;
	bool inside = e->pub.rcpts == &e->one;

	if (e->pub.nrcpts < e->cap)
		return 0;
	rcpts = realloc(inside ? NULL : (void *)(uintptr_t)e->pub.rcpts,
	    cap * sizeof(*rcpts));
	if (rcpts == NULL)
		return -ENOMEM;
	if (inside)
		rcpts[0] = e->one;
	e->pub.rcpts = rcpts;
	e->cap = cap;
	return 0;
}

/* The entry that takes the message's next recipient for the site. */
static int
entry_open(struct sched_message *m, struct site *site, struct entry **ret_entry)
{
	struct entry *e = site_last_of(site, m->arrival);
	uint32_t limit = site->transport->params.destination_recipient_limit;
	int r;

	if (e != NULL && e->pub.nrcpts < limit) {
		r = entry_grow(e);
		if (r < 0)
			return r;
		*ret_entry = e;
		return 0;
	}
	e = entry_new(m, site);
	if (e == NULL)
		return -ENOMEM;
	LIST_INSERT_HEAD(&m->entries, e, of_message);
	site_enqueue(site, e);
	*ret_entry = e;
	return 0;
}

int
sched_rcpt_add(struct sched_message *m, uint32_t transport, const char *nexthop,
    const char *address, const struct sched_rcpt *rcpt)
{
	struct site_name name = { .nexthop = nexthop };
	struct sched *s = m->sched;
	struct transport *t;
	struct site *site;
	struct entry *e;
	int r;

	if (transport >= s->count)
		return -EINVAL;
	t = &s->transports[transport];
	if (t->params.destination_recipient_limit == 1) {
		name.address = address;
		name.local_len = address_local_len(address);
	}
	site = site_get(t, &name, s->sequences++);
	if (site == NULL)
		return -ENOMEM;
	r = entry_open(m, site, &e);
	if (r < 0) {
		site_release(site);
		return r;
	}
	((struct sched_rcpt *)(uintptr_t)e->pub.rcpts)[e->pub.nrcpts++] = *rcpt;
	m->waiting++;
	s->figures.waiting++;
	return 0;
}

uint32_t
sched_message_waiting(const struct sched_message *m)
{
	return m->waiting;
}

uint32_t
sched_message_running(const struct sched_message *m)
{
	return m->running;
}

void
sched_message_cancel(struct sched_message *m)
{
	struct entry *e, *next;

	for (e = LIST_FIRST(&m->entries); e != NULL; e = next) {
		next = LIST_NEXT(e, of_message);
		if (e->running)
			continue;
		LIST_REMOVE(e, of_message);
		site_dequeue(e->site, e);
		site_release(e->site);
		entry_free(e);
	}
	m->sched->figures.waiting -= m->waiting;
	m->waiting = 0;
}

void
sched_message_free(struct sched_message **message)
{
	struct sched_message *m = *message;

	if (m == NULL)
		return;
	ASSERT(m->running == 0);
	sched_message_cancel(m);
	m->sched->figures.messages--;
	free(m);
	*message = NULL;
}

/* Forwards: it begins to run. Backwards: it waits again. */
static void
entry_count(struct sched *s, struct entry *e, bool run)
{
	struct sched_message *m = e->pub.message;
	struct transport *t = e->site->transport;
	uint32_t n = e->pub.nrcpts;

	e->running = run;
	e->site->busy += run ? 1u : -1u;
	t->busy += run ? 1u : -1u;
	m->running += run ? 1u : -1u;
	s->figures.running += run ? 1u : -1u;
	m->waiting += run ? -n : n;
	s->figures.waiting += run ? -n : n;
}

struct sched_entry *
sched_select(struct sched *s, usec_t now)
{
	struct transport *t;
	struct entry *e;
	uint32_t i;

	for (i = 0; i < s->count; i++) {
		t = &s->transports[(s->next + i) % s->count];
		if (t->busy >= t->params.process_limit)
			continue;
		e = site_next(t);
		if (e == NULL)
			continue;
		s->next = (s->next + i + 1) % s->count;
		entry_count(s, e, true);
		e->pub.selected_at = now;
		site_dequeue(e->site, e);
		return &e->pub;
	}
	return NULL;
}

/* struct sched_entry is the first member of what was handed out. */
static struct entry *
entry_of(struct sched_entry *entry)
{
	_Static_assert(offsetof(struct entry, pub) == 0, "entry_of()");
	struct entry *e = (struct entry *)(void *)entry;

	ASSERT(e->running);
	return e;
}

void
sched_put_back(struct sched *s, struct sched_entry *entry)
{
	struct entry *e = entry_of(entry);

	entry_count(s, e, false);
	site_enqueue(e->site, e);
}

void
sched_done(struct sched *s, struct sched_entry *entry,
    enum sched_result result UNUSED, usec_t now UNUSED)
{
	struct entry *e = entry_of(entry);
	struct site *site = e->site;

	entry_count(s, e, false);
	e->pub.message->waiting -= e->pub.nrcpts;
	s->figures.waiting -= e->pub.nrcpts;
	LIST_REMOVE(e, of_message);
	entry_free(e);
	site_update(site);
	site_release(site);
}

void
sched_flush(struct sched *s UNUSED, usec_t now UNUSED)
{
	/* Nothing holds a destination back but its limit. */
}

struct sched_figures
sched_figures(const struct sched *s)
{
	struct sched_figures f = s->figures;
	uint32_t i;

	for (i = 0; i < s->count; i++)
		f.destinations += s->transports[i].nsites;
	return f;
}

uint32_t
sched_transport_running(const struct sched *s, uint32_t transport)
{
	return transport < s->count ? s->transports[transport].busy : 0;
}
