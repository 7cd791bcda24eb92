/* The events of a run, and their times. */
#include "model_parts.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* ---- selection ---- */

static bool
every_job_is_full(struct model *m, const struct list *l)
{
	uint32_t i;

	for (i = 0; i < l->n; i++)
		if (!model_is_full(m, l->jobs[i]))
			return false;
	return true;
}

/* From the current job on there is one that is not full: no blocker has an
 * entry for a destination with room. */
static struct job *
chosen_job(struct model *m, struct list *l)
{
	uint32_t i;

	model_preempt(m, l);
	for (i = model_list_place(l, l->current); i < l->n; i++)
		if (!model_is_full(m, l->jobs[i]))
			break;
	ASSERT(i < l->n);
	l->current = l->jobs[i];
	return l->current;
}

static void
deliver(struct model *m, uint32_t site)
{
	uint32_t nexthop = m->sites[site].nexthop;
	const struct scenario_destination *d = &m->sc->destinations[nexthop];
	struct delivery new = { .site = site, .connected = true };

	new.end = m->now + d->duration;
	if (m->begun[nexthop]++ < d->fail) {
		new.connected = false;
	} else if (m->connected[nexthop] >= d->refuse) {
		new.connected = false;
		new.end = m->now;
	} else
		m->connected[nexthop]++;
	m->sites[site].busy++;
	m->busy[m->sites[site].transport]++;
	m->running =
	    model_grown(m->running, m->nrunning + 1, sizeof(*m->running));
	m->running[m->nrunning++] = new;
}

static void
select_from(struct model *m, struct job *j)
{
	uint32_t at = model_selectable_peer(m, j), site = j->peers[at].site;

	model_take_entry(m, j, at);
	j->slots++;
	j->used++;
	deliver(m, site);
	model_leave_list_if_done(m, j);
}

/* The ring is turned so that the transport in this place is the last. */
static void
turn(struct model *m, uint32_t place)
{
	uint32_t old[CONF_TRANSPORTS_MAX], n = m->nturn, i;

	memcpy(old, m->turn, sizeof(old));
	for (i = 0; i < n; i++)
		m->turn[i] = old[(place + 1 + i) % n];
}

static bool
select_one(struct model *m)
{
	uint32_t i, t;

	for (i = 0; i < m->nturn; i++) {
		t = m->turn[i];
		if (m->busy[t] >= model_rules(m, t)->sched.process_limit)
			continue;
		if (every_job_is_full(m, &m->lists[t]))
			continue;
		select_from(m, chosen_job(m, &m->lists[t]));
		turn(m, i);
		return true;
	}
	return false;
}

/* ---- events ---- */

/* Peers of dead destinations leave at once. */
static void
defer_dead(struct model *m)
{
	uint32_t s, i;
	struct list *l;
	struct job *j;

	for (s = 0; s < m->nsites; s++) {
		if (!model_site_is_dead(&m->sites[s], m->now))
			continue;
		l = &m->lists[m->sites[s].transport];
		for (i = l->n; i-- > 0;) {
			j = l->jobs[i];
			model_defer(m, j, s);
			model_leave_list_if_done(m, j);
		}
	}
}

static bool
a_blocker_waits_for(const struct list *l, uint32_t site)
{
	uint32_t i, k;

	for (i = 0; i < model_list_place(l, l->current); i++)
		for (k = 0; k < l->jobs[i]->npeers; k++)
			if (l->jobs[i]->peers[k].site == site)
				return true;
	return false;
}

static void
end_delivery(struct model *m, uint32_t i)
{
	struct delivery d = m->running[i];
	struct model_site *s = &m->sites[d.site];
	struct list *l = &m->lists[s->transport];

	for (m->nrunning--; i < m->nrunning; i++)
		m->running[i] = m->running[i + 1];
	model_site_report(s, !d.connected, m->now);
	s->busy--;
	m->busy[s->transport]--;
	if (d.connected)
		m->connected[s->nexthop]--;
	if (model_site_has_room(s, m->now) && a_blocker_waits_for(l, d.site))
		l->current = l->jobs[0];
}

static void
end_deliveries(struct model *m)
{
	uint32_t i;

	for (i = 0; i < m->nrunning;)
		if (m->running[i].end <= m->now)
			end_delivery(m, i);
		else
			i++;
}

static uint32_t
site_of(struct model *m, uint32_t nexthop, const char *name)
{
	uint32_t t = m->sc->destinations[nexthop].transport, i;

	for (i = 0; i < m->nsites; i++)
		if (m->sites[i].transport == t &&
		    strcasecmp(m->sites[i].name, name) == 0)
			return i;
	m->sites = model_grown(m->sites, m->nsites + 1, sizeof(*m->sites));
	m->sites[m->nsites] = (struct model_site){ .conf = &m->sc->conf,
		.rules = model_rules(m, t),
		.transport = t,
		.name = name,
		.nexthop = nexthop };
	model_site_init(&m->sites[m->nsites]);
	return m->nsites++;
}

static struct job *
job_of(struct model *m, uint32_t message, uint32_t transport)
{
	struct list *l = &m->lists[transport];
	struct job *j = l->n > 0 ? l->jobs[l->n - 1] : NULL;

	if (j != NULL && j->message == message)
		return j;
	j = model_zeroed(1, sizeof(*j));
	j->message = message;
	j->transport = transport;
	j->since = m->now;
	model_list_insert(l, l->n, j);
	if (l->current == NULL)
		l->current = j;
	return j;
}

static void
add_recipients(struct job *j, uint32_t site, uint32_t count)
{
	uint32_t i;

	for (i = 0; i < j->npeers; i++)
		if (j->peers[i].site == site)
			break;
	if (i == j->npeers) {
		j->peers =
		    model_grown(j->peers, ++j->npeers, sizeof(*j->peers));
		j->peers[i] = (struct peer){ .site = site };
	}
	j->peers[i].left += count;
}

/* The name of the destination that is one recipient. */
static const char *
recipient_name(struct model *m, const char *nexthop, uint32_t number)
{
	struct model_output *o = m->out;
	struct buf name = { 0 };

	if (o->nnames == o->names_room) {
		o->names_room = o->names_room * 2 + 64;
		o->names =
		    model_grown(o->names, o->names_room, sizeof(*o->names));
	}
	ASSERT(buf_printf(&name, "%u@%s", number, nexthop) == 0);
	o->names[o->nnames++] = name.data;
	return name.data;
}

static void
add_spec(struct model *m, struct job *j, const struct scenario_rcpts *r)
{
	const char *nexthop = m->sc->destinations[r->destination].name;
	uint32_t i, site;

	if (model_rules(m, r->transport)->sched.destination_recipient_limit >
	    1) {
		site = site_of(m, r->destination, nexthop);
		add_recipients(j, site, r->count);
		return;
	}
	for (i = 1; i <= r->count; i++) {
		site =
		    site_of(m, r->destination, recipient_name(m, nexthop, i));
		add_recipients(j, site, 1);
	}
}

/* Peers by the names of their destinations, entries counted. */
static void
complete(struct model *m, struct job *j)
{
	uint32_t limit =
	    model_rules(m, j->transport)->sched.destination_recipient_limit;
	uint32_t i, k;
	struct peer p;

	for (i = 0; i < j->npeers; i++) {
		p = j->peers[i];
		j->total += (p.left + limit - 1) / limit;
		for (k = i; k > 0 &&
		     strcasecmp(m->sites[p.site].name,
			 m->sites[j->peers[k - 1].site].name) < 0;
		     k--)
			j->peers[k] = j->peers[k - 1];
		j->peers[k] = p;
	}
}

static void
use_transport(struct model *m, uint32_t transport)
{
	uint32_t i;

	for (i = 0; i < m->nturn; i++)
		if (m->turn[i] == transport)
			return;
	m->turn[m->nturn++] = transport;
}

static void
arrive(struct model *m, uint32_t message)
{
	const struct scenario_message *sm = &m->sc->messages[message];
	struct job *jobs[CONF_TRANSPORTS_MAX] = { NULL };
	const struct scenario_rcpts *r;
	uint32_t i;

	for (i = 0; i < sm->n; i++) {
		r = &m->sc->rcpts[sm->first + i];
		use_transport(m, r->transport);
		jobs[r->transport] = job_of(m, message, r->transport);
		add_spec(m, jobs[r->transport], r);
	}
	for (i = 0; i < CONF_TRANSPORTS_MAX; i++)
		if (jobs[i] != NULL)
			complete(m, jobs[i]);
}

static void
arrivals(struct model *m)
{
	uint32_t i;

	for (i = 0; i < m->sc->nmessages; i++)
		if (!m->arrived[i] && m->sc->messages[i].at <= m->now) {
			m->arrived[i] = true;
			arrive(m, i);
		}
}

/* When something happens next; USEC_NEVER: it is over. */
static usec_t
next_event(const struct model *m)
{
	usec_t t = USEC_NEVER;
	uint32_t i;

	for (i = 0; i < m->sc->nmessages; i++)
		if (!m->arrived[i] && m->sc->messages[i].at < t)
			t = m->sc->messages[i].at;
	for (i = 0; i < m->nrunning; i++)
		if (m->running[i].end < t)
			t = m->running[i].end;
	return t;
}

static void
run(struct model *m)
{
	while ((m->now = next_event(m)) != USEC_NEVER) {
		arrivals(m);
		end_deliveries(m);
		defer_dead(m);
		while (select_one(m))
			;
	}
}

void
model_run(const struct scenario *sc, struct model_output *out)
{
	struct model m = { .sc = sc, .out = out };
	uint32_t i;

	*out = (struct model_output){ 0 };
	m.arrived = model_zeroed(sc->nmessages, sizeof(*m.arrived));
	m.begun = model_zeroed(sc->ndestinations, sizeof(*m.begun));
	m.connected = model_zeroed(sc->ndestinations, sizeof(*m.connected));
	run(&m);
	for (i = 0; i < sc->conf.ntransports; i++) {
		ASSERT(m.lists[i].n == 0);
		free(m.lists[i].jobs);
	}
	free(m.arrived);
	free(m.begun);
	free(m.connected);
	free(m.running);
	free(m.sites);
}
