#include "sched_check.h"
#include "sched_drive.h"
#include "sched_table.h"
#include "sched/parts.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>

/* ---- parameters ---- */

void
drive_configure(struct drive *d)
{
	if (d->elsewhere != NULL)
		d->elsewhere->configure(d);
	else
		cr_assert_eq(table_configure(d->sites, d->site_params,
				 d->ntransports, &d->backoff),
		    0);
	cr_assert_eq(sched_configure(d->sched, &d->params, d->transports,
			 d->ntransports, d->now),
	    0);
}

static void
configure(struct drive *d)
{
	drive_params(d);
	drive_configure(d);
}

/* ---- the mirror ---- */

static void
count(struct drive *d, int64_t recipients)
{
	d->recipients = (uint32_t)(d->recipients + recipients);
	if (d->recipients > d->most)
		d->most = d->recipients;
}

static void
compare(struct drive *d)
{
	struct sched_figures f = sched_figures(d->sched);
	uint32_t waiting = 0, messages = 0, running = 0, i;
	struct drive_message *m;

	for (i = 0; i < DRIVE_MESSAGES; i++) {
		m = d->messages[i];
		if (m == NULL)
			continue;
		messages++;
		waiting += m->waiting;
		cr_assert_eq(sched_message_waiting(m->m), m->waiting);
		cr_assert_eq(sched_message_running(m->m), m->taken);
	}
	for (i = 0; i < d->ntaken; i++)
		running += d->taken[i].dead ? 0 : 1;
	cr_assert_eq(f.messages, messages);
	cr_assert_eq(f.waiting, waiting);
	cr_assert_eq(f.running, running);
	cr_assert_eq(f.recipients, d->recipients);
	if (d->style->check)
		sched_check(d->sched);
}

static void
took(struct drive *d, struct sched_entry *e, bool dead)
{
	struct drive_message *m = e->owner;
	uint32_t i;

	cr_assert_eq(e->message, m->m);
	cr_assert_eq(sched_message_owner(m->m), m);
	cr_assert_gt(e->nrcpts, 0);
	for (i = 0; i < e->nrcpts; i++) {
		cr_assert_lt(e->rcpts[i].index, m->next);
		cr_assert_eq(e->rcpts[i].offset, 7 * e->rcpts[i].index);
		cr_assert_not(m->selected[e->rcpts[i].index], "twice");
		m->selected[e->rcpts[i].index] = true;
		cr_assert_eq(
		    m->group[e->rcpts[i].index], m->group[e->rcpts[0].index]);
	}
	m->waiting -= e->nrcpts;
	m->taken++;
	d->taken[d->ntaken].entry = e;
	d->taken[d->ntaken].of = m;
	d->taken[d->ntaken].nrcpts = e->nrcpts;
	d->taken[d->ntaken++].dead = dead;
}

/* ---- messages ---- */

static struct drive_message *
any_message(struct drive *d)
{
	return d->messages[drive_dice(d, 0, DRIVE_MESSAGES - 1)];
}

/* Of few destinations; the case of their names does not count. */
static void
add_rcpt(struct drive *d, struct drive_message *m)
{
	static const char *const nexthops[] = { "a", "A", "b", "c", "d", "e" };
	const struct sched_rcpt rcpt = { .index = m->next,
		.offset = 7 * m->next };
	const char *nexthop =
	    nexthops[drive_dice(d, 0, ARRAY_LEN(nexthops) - 1)];
	const uint32_t user = drive_dice(d, 0, 9),
		       transport = drive_dice(d, 0, d->ntransports - 1);
	char address[40];

	snprintf(address, sizeof(address), "u%u@%s", user, nexthop);
	if (d->style->move > 0 && drive_chance(d, 30)) {
		drive_add_shared(d, m, transport, &rcpt);
	} else {
		m->group[m->next] = (uint8_t)(nexthop[0] | 0x20);
		cr_assert_eq(
		    sched_rcpt_add(m->m, transport, nexthop, address, &rcpt),
		    0);
	}
	m->next++;
	m->unread--;
	m->waiting++;
	count(d, 1);
}

static void
end_batch(struct drive *d, struct drive_message *m)
{
	m->open = false;
	m->all_read = m->unread == 0;
	sched_batch_end(m->m, m->all_read, d->now);
}

/* As much as there is room for, or less; mostly ended at once. */
static void
read_batch(struct drive *d, struct drive_message *m)
{
	uint32_t room = sched_message_room(m->m), n;

	cr_assert_gt(room, 0);
	n = room < m->unread ? room : m->unread;
	if (n > 0 && drive_chance(d, 20))
		n = drive_dice(d, 0, n);
	m->open = true;
	while (n-- > 0)
		add_rcpt(d, m);
	if (drive_chance(d, 85))
		end_batch(d, m);
}

static void
new_message(struct drive *d)
{
	struct drive_message *m;
	uint32_t i, t;

	for (i = 0; i < DRIVE_MESSAGES && d->messages[i] != NULL; i++)
		;
	if (i == DRIVE_MESSAGES)
		return;
	m = d->messages[i] = calloc(1, sizeof(*m));
	cr_assert_not_null(m);
	m->unread = drive_chance(d, 50) ? drive_dice(d, 0, 5)
					: drive_dice(d, 0, DRIVE_RCPTS);
	cr_assert_eq(sched_message_new(d->sched, m, d->now, &m->m), 0);
	for (t = 0; t < d->ntransports; t++)
		if (drive_chance(d, 50))
			cr_assert_eq(sched_message_expect(
					 m->m, t, drive_dice(d, 0, m->unread)),
			    0);
	read_batch(d, m);
}

static void
read_more(struct drive *d)
{
	struct drive_message *m = any_message(d);
	struct sched_message *next;

	if (m != NULL && m->open)
		end_batch(d, m);
	next = sched_next_unread(d->sched, d->now);
	if (next == NULL)
		return;
	cr_assert_leq(sched_unread_at(d->sched), USEC_NEVER);
	m = sched_message_owner(next);
	cr_assert_eq(m->m, next);
	cr_assert_not(m->open, "asked for twice");
	cr_assert_not(m->all_read);
	read_batch(d, m);
}

static void
cancel(struct drive *d)
{
	struct drive_message *m = any_message(d);

	if (m == NULL)
		return;
	sched_message_cancel(m->m);
	count(d, -(int64_t)m->waiting);
	m->waiting = 0;
	m->unread = 0;
	m->open = false;
	m->all_read = true;
}

/* Mostly one that is over. */
static void
free_message(struct drive *d)
{
	uint32_t i = drive_dice(d, 0, DRIVE_MESSAGES - 1), k;
	struct drive_message *m = d->messages[i];

	if (m == NULL || m->taken > 0)
		return;
	if ((m->waiting > 0 || !m->all_read) && !drive_chance(d, 5))
		return;
	if (m->waiting == 0 && m->all_read)
		for (k = 0; k < m->next; k++)
			cr_assert(m->selected[k] || m->unread == 0);
	count(d, -(int64_t)m->waiting);
	sched_message_free(&m->m);
	cr_assert_null(m->m);
	free(m);
	d->messages[i] = NULL;
}

/* ---- entries ---- */

static bool
select_one(struct drive *d)
{
	struct sched_entry *e;

	if (d->ntaken == DRIVE_TAKEN)
		return false;
	e = sched_select(d->sched, d->now);
	if (e == NULL)
		return false;
	took(d, e, false);
	cr_assert_leq(sched_transport_running(d->sched, e->transport),
	    d->transports[e->transport].process_limit);
	return true;
}

static void
select_any(struct drive *d)
{
	(void)select_one(d);
}

static void
select_all(struct drive *d)
{
	while (select_one(d))
		;
}

static void
take_dead(struct drive *d)
{
	struct sched_entry *e;

	if (d->ntaken == DRIVE_TAKEN)
		return;
	e = sched_take_dead(d->sched, d->now);
	if (e == NULL)
		return;
	cr_assert_not_null(e->why);
	took(d, e, true);
}

void
drive_forget_taken(struct drive *d, uint32_t i)
{
	d->taken[i].of->taken--;
	d->taken[i] = d->taken[--d->ntaken];
}

static void
end_one(struct drive *d, uint32_t i, enum site_result result)
{
	if (d->taken[i].dead)
		result = SITE_UNTRIED;
	sched_done(d->sched, d->taken[i].entry, result,
	    drive_chance(d, 90) ? "no" : NULL, d->now);
	count(d, -(int64_t)d->taken[i].nrcpts);
	drive_forget_taken(d, i);
}

static void
end_entry(struct drive *d)
{
	static const enum site_result results[] = { SITE_DELIVERED,
		SITE_DELIVERED, SITE_FAILED, SITE_FAILED, SITE_AGENT_DIED };
	enum site_result result =
	    results[drive_dice(d, 0, ARRAY_LEN(results) - 1)];

	if (d->ntaken > 0)
		end_one(d, drive_dice(d, 0, d->ntaken - 1), result);
}

static void
put_back(struct drive *d)
{
	struct sched_entry *e;
	uint32_t i, k;

	if (d->ntaken == 0)
		return;
	i = drive_dice(d, 0, d->ntaken - 1);
	if (d->taken[i].dead)
		return;
	e = d->taken[i].entry;
	for (k = 0; k < e->nrcpts; k++)
		d->taken[i].of->selected[e->rcpts[k].index] = false;
	d->taken[i].of->waiting += e->nrcpts;
	sched_put_back(d->sched, e, d->now);
	drive_forget_taken(d, i);
}

/* ---- the drive ---- */

static void
flush(struct drive *d)
{
	sched_flush(d->sched, d->now);
}

static void
wait_some(struct drive *d)
{
	d->now += drive_chance(d, 10)
	    ? drive_dice(d, 0, 100) * USEC_PER_SEC
	    : drive_dice(d, 0, 3) * 500 * USEC_PER_MSEC;
}

/* Who looks is not told another thing than the mirror. */
static void
see_selected(void *ctx, const struct sched_decision *decision)
{
	struct drive *d = ctx;

	cr_assert_not_null(decision->entry);
	cr_assert_eq(decision->entry->selected_at, d->now);
	if (d->style->damaged)
		return;
	cr_assert_leq(decision->site.busy, decision->site.window);
	cr_assert_eq(decision->site.why, NULL);
}

static void
see_step(void *ctx, uint32_t transport UNUSED, const char *destination,
    const struct site_step *step)
{
	const struct drive *d = ctx;

	cr_assert_not_null(destination);
	if (d->style->damaged)
		return;
	cr_assert_eq(step->after.busy + 1, step->before.busy);
	cr_assert_gt(step->after.window, 0);
}

static struct shared *
sites_begin(struct drive *d)
{
	if (d->elsewhere != NULL)
		return d->elsewhere->begin(d);
	cr_assert_eq(
	    table_new(d->site_params, d->ntransports, &d->backoff, &d->sites),
	    0);
	return d->sites;
}

void
drive_begin(struct drive *d, const struct drive_style *style)
{
	const struct sched_watch watch = {
		.ctx = d, .selected = see_selected, .step = see_step
	};

	d->style = style;
	cr_assert_eq(sched_new(&d->params, d->transports, d->ntransports,
			 sites_begin(d), &d->sched),
	    0);
	/* In half of the drives labels run out and are spread. */
	if (d->dice % 2 != 0)
		d->sched->job_labels.gap = d->sched->ring_labels.gap = 2;
	sched_set_watch(d->sched, &watch);
}

static void
on_ready(void *ctx, void *destination)
{
	struct drive *d = ctx;

	sched_site_ready(d->sched, destination, d->now);
}

void
drive_step(struct drive *d)
{
	const struct drive_style *w = d->style;
	const struct {
		uint32_t weight;
		void (*act)(struct drive *d);
	} acts[] = {
		{ w->new, new_message },
		{ w->read, read_more },
		{ w->select, select_any },
		{ w->select_all, select_all },
		{ w->dead, take_dead },
		{ w->done, end_entry },
		{ w->put_back, put_back },
		{ w->move, drive_move },
		{ w->cancel, cancel },
		{ w->free, free_message },
		{ w->configure, configure },
		{ w->flush, flush },
		{ w->wait, wait_some },
	};
	uint32_t all = 0, n, i;

	for (i = 0; i < ARRAY_LEN(acts); i++)
		all += acts[i].weight;
	n = drive_dice(d, 0, all - 1);
	for (i = 0; n >= acts[i].weight; i++)
		n -= acts[i].weight;
	acts[i].act(d);
	if (d->sites != NULL)
		(void)shared_work(d->sites, d->now, on_ready, d);
	compare(d);
}

static bool
is_served(const struct drive *d)
{
	const struct drive_message *m;
	uint32_t i;

	for (i = 0; i < DRIVE_MESSAGES; i++) {
		m = d->messages[i];
		if (m != NULL && (m->waiting > 0 || !m->all_read))
			return false;
	}
	return true;
}

bool
drive_serve(struct drive *d)
{
	uint32_t i, before;

	for (i = 0; i < DRIVE_MESSAGES; i++)
		if (d->messages[i] != NULL && d->messages[i]->open)
			end_batch(d, d->messages[i]);
	read_more(d);
	do {
		before = d->ntaken;
		take_dead(d);
	} while (d->ntaken > before);
	select_all(d);
	compare(d);
	while (d->ntaken > 0)
		end_one(d, d->ntaken - 1, SITE_DELIVERED);
	compare(d);
	return is_served(d);
}

void
drive_end(struct drive *d)
{
	uint32_t i;

	while (d->ntaken > 0)
		end_entry(d);
	for (i = 0; i < DRIVE_MESSAGES; i++) {
		if (d->messages[i] == NULL)
			continue;
		count(d, -(int64_t)d->messages[i]->waiting);
		sched_message_free(&d->messages[i]->m);
		free(d->messages[i]);
		d->messages[i] = NULL;
	}
	compare(d);
	cr_assert_eq(sched_figures(d->sched).jobs, 0);
	cr_assert_eq(sched_figures(d->sched).destinations, 0);
	sched_free(&d->sched);
	if (d->elsewhere != NULL)
		d->elsewhere->end(d);
	shared_free(&d->sites);
}
