/* What sched_select() owes whatever its parameters are: limits are held, every
 * recipient is selected exactly once, in order. */

#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "sched_check.h"
#include "sched_table.h"

/* Without preemption, with windows as wide as their limits that no failure
 * makes smaller. */
struct limits {
	uint32_t process, site, rcpts;
};
static const struct limits two[] = {
	{ 4, 2, 3 }, /* smtp */
	{ 3, 1, 1 }, /* local */
};

static const struct sched_params params = { 1000000, 1, 1000 };
static const struct site_backoff backoff = { 1, 1, 0 };
static struct shared *sites;

static void
fill(const struct limits *l, uint32_t count,
    struct sched_transport_params transport[2], struct site_params site[2])
{
	uint32_t i;

	cr_assert_leq(count, 2);
	for (i = 0; i < count; i++) {
		transport[i] = (struct sched_transport_params){
			.process_limit = l[i].process,
			.destination_recipient_limit = l[i].rcpts,
			.recipient_limit = 1000000,
			.recipient_refill_limit = 1,
		};
		site[i] = (struct site_params){
			.initial_destination_concurrency =
			    l[i].site == 0 ? 1000 : l[i].site,
			.destination_concurrency_limit = l[i].site,
			.positive = { 1, WINDOW_FIXED },
		};
	}
}

static struct sched *
make(const struct limits *l, uint32_t count)
{
	struct sched_transport_params transport[2];
	struct site_params site[2];
	struct sched *s = NULL;

	fill(l, count, transport, site);
	cr_assert_eq(table_new(site, count, &backoff, &sites), 0);
	cr_assert_eq(sched_new(&params, transport, count, sites, &s), 0);
	return s;
}

static int
configure(struct sched *s, const struct limits *l, uint32_t count)
{
	struct sched_transport_params transport[2];
	struct site_params site[2];
	int r;

	fill(l, count, transport, site);
	r = table_configure(sites, site, count, &backoff);
	return r < 0 ? r : sched_configure(s, &params, transport, count, 0);
}

static void
unmake(struct sched **s)
{
	sched_check(*s);
	sched_free(s);
	shared_free(&sites);
}

static struct sched_message *
message(struct sched *s, const char *owner)
{
	struct sched_message *m = NULL;

	cr_assert_eq(sched_message_new(s, (void *)(uintptr_t)owner, 0, &m), 0);
	return m;
}

static void
add(struct sched_message *m, uint32_t transport, const char *nexthop,
    const char *address, uint32_t index)
{
	struct sched_rcpt rcpt = { .offset = 100u + index, .index = index };

	cr_assert_eq(sched_rcpt_add(m, transport, nexthop, address, &rcpt), 0);
}

static void
read_to_the_end(struct sched_message *m)
{
	sched_batch_end(m, true, 0);
}

/* All entries of all, ended one by one, as letters of the messages. */
static void
order(struct sched *s, char *out)
{
	struct sched_entry *e;

	while ((e = sched_select(s, 0)) != NULL) {
		*out++ = *(const char *)e->owner;
		sched_done(s, e, SITE_DELIVERED, NULL, 0);
	}
	*out = '\0';
}

Test(sched, a_later_batch_fills_the_open_entry)
{
	struct sched *s = make(two, 2);
	struct sched_message *a = message(s, "a"), *b = message(s, "b");
	struct sched_entry *e;

	add(a, 0, "x", "1@x", 0);
	add(b, 0, "x", "2@x", 0);
	cr_assert_null(sched_select(s, 0), "a batch is whole, or not there");
	sched_batch_end(a, false, 0);
	read_to_the_end(b);
	add(a, 0, "x", "3@x", 7);
	sched_batch_end(a, false, 0);
	e = sched_select(s, 5);
	cr_assert_str_eq(e->owner, "a");
	cr_assert_eq(e->nrcpts, 2);
	cr_assert_eq(e->rcpts[1].index, 7);
	cr_assert_eq(e->rcpts[1].offset, 107);
	cr_assert_eq(e->selected_at, 5);
	/* A selected entry is closed. */
	add(a, 0, "x", "4@x", 8);
	cr_assert_eq(e->nrcpts, 2);
	read_to_the_end(a);
	cr_assert_eq(sched_message_waiting(a), 1);
	cr_assert_eq(sched_message_running(a), 1);
	sched_done(s, e, SITE_DELIVERED, NULL, 0);
	sched_message_free(&a);
	sched_message_free(&b);
	unmake(&s);
}

Test(sched, recipient_limit_1_makes_the_recipient_the_destination)
{
	struct sched *s = make(two, 2);
	struct sched_message *a = message(s, "a");
	struct sched_entry *e[3];

	add(a, 1, "here", "joe@here", 0);
	add(a, 1, "here", "joe@here", 1);
	add(a, 1, "here", "ann@here", 2);
	read_to_the_end(a);
	cr_assert_eq(sched_figures(s).destinations, 2);
	e[0] = sched_select(s, 0);
	e[1] = sched_select(s, 0);
	cr_assert_eq(e[0]->rcpts[0].index, 2, "in the order of the alphabet");
	cr_assert_eq(e[1]->rcpts[0].index, 0);
	cr_assert_str_eq(e[0]->nexthop, "here");
	cr_assert_str_eq(e[0]->destination, "ann@here");
	cr_assert_null(sched_select(s, 0), "joe has one delivery at once");
	sched_done(s, e[1], SITE_AGENT_DIED, NULL, 0);
	e[2] = sched_select(s, 0);
	cr_assert_eq(e[2]->rcpts[0].index, 1);
	sched_done(s, e[0], SITE_DELIVERED, NULL, 0);
	sched_done(s, e[2], SITE_DELIVERED, NULL, 0);
	cr_assert_eq(sched_figures(s).destinations, 0);
	sched_message_free(&a);
	unmake(&s);
}

Test(sched, transports_take_turns)
{
	struct sched *s = make(two, 2);
	struct sched_message *a = message(s, "a");
	struct sched_entry *e[6];
	char nexthop[8], got[8] = "";
	uint32_t i;

	for (i = 0; i < 4; i++) {
		snprintf(nexthop, sizeof(nexthop), "h%u", i);
		add(a, 0, nexthop, "u@h", i);
		add(a, 1, nexthop, "u@h", 10 + i);
	}
	read_to_the_end(a);
	for (i = 0; i < 6; i++) {
		e[i] = sched_select(s, 0);
		got[i] = e[i]->transport == 0 ? 's' : 'l';
	}
	cr_assert_str_eq(got, "slslsl", "%s", got);
	for (i = 0; i < 6; i++)
		sched_done(s, e[i], SITE_DELIVERED, NULL, 0);
	sched_message_free(&a);
	unmake(&s);
}

Test(sched, put_back_is_as_if_not_selected)
{
	struct sched *s = make(two, 2);
	struct sched_message *a = message(s, "a"), *b = message(s, "b");
	struct sched_entry *e;
	char got[32];
	uint32_t i;

	for (i = 0; i < 4; i++)
		add(a, 0, "x", "u@x", i);
	add(b, 0, "x", "u@x", 0);
	read_to_the_end(a);
	read_to_the_end(b);
	e = sched_select(s, 0);
	sched_put_back(s, e, 0);
	cr_assert_eq(sched_message_waiting(a), 4);
	cr_assert_eq(sched_message_running(a), 0);
	cr_assert_eq(sched_figures(s).running, 0);
	order(s, got);
	cr_assert_str_eq(got, "aab", "%s", got);
	sched_message_free(&a);
	sched_message_free(&b);
	unmake(&s);
}

Test(sched, new_limits_apply_at_once)
{
	struct limits p = { 8, 1, 1000000 };
	struct sched *s = make(&p, 1);
	struct sched_message *a = message(s, "a");
	struct sched_entry *e[3];
	uint32_t i;

	for (i = 0; i < 5 * SCHED_ENTRY_RCPTS_MAX; i++)
		add(a, 0, "x", "u@x", i);
	read_to_the_end(a);
	e[0] = sched_select(s, 0);
	cr_assert_eq(e[0]->nrcpts, SCHED_ENTRY_RCPTS_MAX);
	cr_assert_null(sched_select(s, 0));
	p.site = 5;
	cr_assert_eq(configure(s, &p, 1), 0);
	sched_done(s, e[0], SITE_DELIVERED, NULL, 0);
	e[0] = sched_select(s, 0);
	cr_assert_not_null(e[0]);
	e[1] = sched_select(s, 0);
	cr_assert_not_null(e[1]);
	p.process = 0; /* less than runs: nothing more, nothing ends */
	cr_assert_eq(configure(s, &p, 1), 0);
	cr_assert_null(sched_select(s, 0));
	cr_assert_eq(sched_transport_running(s, 0), 2);
	p.process = 3;
	cr_assert_eq(configure(s, &p, 1), 0);
	sched_done(s, e[0], SITE_DELIVERED, NULL, 0);
	e[0] = sched_select(s, 0);
	cr_assert_not_null(e[0]);
	e[2] = sched_select(s, 0);
	cr_assert_not_null(e[2]);
	cr_assert_eq(configure(s, two, 2), -EINVAL);
	for (i = 0; i < 3; i++)
		sched_done(s, e[i], SITE_DELIVERED, NULL, 0);
	sched_message_free(&a);
	unmake(&s);
}

Test(sched, a_message_leaves_with_what_waits)
{
	struct sched *s = make(two, 2);
	struct sched_message *a = message(s, "a"), *b = message(s, "b");
	struct sched_figures f;
	char got[8];

	add(a, 0, "x", "u@x", 0);
	add(a, 1, "x", "u@x", 1);
	add(b, 0, "x", "u@x", 0);
	cr_assert_eq(sched_message_expect(a, 1, 1), 0);
	cr_assert_eq(sched_message_expect(a, 2, 1), -EINVAL);
	read_to_the_end(a);
	read_to_the_end(b);
	sched_message_free(&a);
	f = sched_figures(s);
	cr_assert_eq(f.waiting, 1);
	cr_assert_eq(f.messages, 1);
	cr_assert_eq(f.destinations, 1);
	order(s, got);
	cr_assert_str_eq(got, "b");
	sched_message_free(&b);
	unmake(&s);
}

/* ---- any sequence of events ---- */

#define NMESSAGES 40
#define NHOPS     7
#define NRCPTS    60

struct world {
	struct sched *s;
	struct sched_message *m[NMESSAGES];
	uint32_t added[NMESSAGES];
	uint32_t seen[NMESSAGES][NRCPTS];
	struct sched_entry *running[16];
	uint32_t nrunning, transport_busy[2];
	struct {
		uint32_t busy;
	} site[2][NRCPTS * NHOPS];
};

/* smtp: the nexthop; local: the recipient, which is local part and nexthop. */
static uint32_t
site_of(uint32_t transport, uint32_t number)
{
	return transport == 0 ? number % NHOPS : number % (NHOPS * 3);
}

static void
world_add(struct world *w, uint32_t n)
{
	uint32_t number = (uint32_t)rand() % (NRCPTS * NHOPS),
		 transport = (uint32_t)rand() % 2;
	char nexthop[32], address[64];

	/* The offset carries what the test wants to know again. */
	struct sched_rcpt rcpt = { .index = w->added[n]++,
		.offset = transport * 1000000u + number };

	snprintf(nexthop, sizeof(nexthop), "%c%u", rand() % 2 ? 'h' : 'H',
	    number % NHOPS);
	snprintf(address, sizeof(address), "u%u@%s",
	    number % (NHOPS * 3) / NHOPS, nexthop);
	cr_assert_eq(
	    sched_rcpt_add(w->m[n], transport, nexthop, address, &rcpt), 0);
	if (rand() % 2)
		sched_batch_end(w->m[n], false, 0);
}

static void
world_select(struct world *w)
{
	struct sched_entry *e = sched_select(w->s, 0);
	uint32_t i, t, site, n;

	if (e == NULL)
		return;
	t = e->transport;
	n = (uint32_t)(uintptr_t)e->owner - 1;
	site = site_of(t, (uint32_t)(e->rcpts[0].offset % 1000000));
	cr_assert_lt(w->transport_busy[t], two[t].process);
	cr_assert_lt(w->site[t][site].busy, two[t].site);
	cr_assert_leq(e->nrcpts, two[t].rcpts);
	for (i = 0; i < e->nrcpts; i++) {
		cr_assert_eq(w->seen[n][e->rcpts[i].index]++, 0);
		cr_assert_eq(e->rcpts[i].offset / 1000000, t);
		cr_assert_eq(
		    site_of(t, (uint32_t)(e->rcpts[i].offset % 1000000)), site);
	}
	w->transport_busy[t]++;
	w->site[t][site].busy++;
	w->running[w->nrunning++] = e;
}

static void
world_done(struct world *w)
{
	struct sched_entry *e;
	uint32_t i, t;

	if (w->nrunning == 0)
		return;
	i = (uint32_t)rand() % w->nrunning;
	e = w->running[i];
	w->running[i] = w->running[--w->nrunning];
	t = e->transport;
	w->transport_busy[t]--;
	w->site[t][site_of(t, (uint32_t)(e->rcpts[0].offset % 1000000))].busy--;
	sched_done(w->s, e, (enum site_result)(rand() % 3), "x", 0);
}

static uint32_t
world_waiting(const struct world *w)
{
	uint32_t sum = 0, n;

	for (n = 0; n < NMESSAGES; n++)
		sum += sched_message_waiting(w->m[n]);
	return sum;
}

Test(sched, limits_hold_and_each_recipient_is_selected_once)
{
	struct world *w = calloc(1, sizeof(*w));
	uint32_t seed, step, n, i;

	for (seed = 1; seed <= 20; seed++) {
		srand(seed);
		*w = (struct world){ .s = make(two, 2) };
		for (n = 0; n < NMESSAGES; n++)
			w->m[n] =
			    message(w->s, (const char *)(uintptr_t)(n + 1));
		for (step = 0; step < 8000; step++) {
			n = (uint32_t)rand() % NMESSAGES;
			if (rand() % 3 == 0 && w->added[n] < NRCPTS)
				world_add(w, n);
			else if (rand() % 2 == 0)
				world_select(w);
			else
				world_done(w);
			cr_assert_eq(sched_figures(w->s).running, w->nrunning);
		}
		for (n = 0; n < NMESSAGES; n++)
			sched_batch_end(w->m[n], true, 0);
		while (world_waiting(w) > 0 || w->nrunning > 0) {
			world_select(w);
			world_done(w);
		}
		for (n = 0; n < NMESSAGES; n++) {
			for (i = 0; i < w->added[n]; i++)
				cr_assert_eq(w->seen[n][i], 1);
			sched_message_free(&w->m[n]);
		}
		cr_assert_eq(sched_figures(w->s).destinations, 0);
		unmake(&w->s);
	}
	free(w);
}

/* Within a destination: by arrival of the message, then in file order; and
 * whatever can start does start. */
Test(sched, first_in_first_out_per_destination)
{
	const struct limits one[] = { { 3, 1, 2 } };
	struct sched *s = make(one, 1);
	struct sched_message *m[10];
	int64_t last[5] = { -1, -1, -1, -1, -1 };
	struct sched_entry *e[3];
	char nexthop[4] = "h0";
	uint32_t n, i, k, left = 0, site;

	for (n = 0; n < 10; n++)
		m[n] = message(s, (const char *)(uintptr_t)(n + 1));
	for (i = 0; i < 10; i++)
		for (n = 10; n-- > 0;
		     left++) { /* younger ones are read first */
			nexthop[1] = (char)('0' + (n * i) % 5);
			add(m[n], 0, nexthop, "u@h", i);
		}
	for (n = 0; n < 10; n++)
		read_to_the_end(m[n]);
	while (left > 0) {
		for (k = 0; k < 3 && (e[k] = sched_select(s, 0)) != NULL; k++) {
			site = (uint32_t)(e[k]->nexthop[1] - '0');
			for (i = 0; i < e[k]->nrcpts; i++, left--) {
				int64_t at =
				    (int64_t)(uintptr_t)e[k]->owner * 100 +
				    e[k]->rcpts[i].index;
				cr_assert_gt(at, last[site]);
				last[site] = at;
			}
		}
		while (k-- > 0)
			sched_done(s, e[k], SITE_DELIVERED, NULL, 0);
	}
	for (n = 0; n < 10; n++)
		sched_message_free(&m[n]);
	unmake(&s);
}

/* A destination at its limit costs nothing: with 20 000 entries waiting for
 * it, those of another one come at once (and the test ends). */
Test(sched, N15_a_full_destination_holds_nobody_up, .timeout = 20)
{
	const struct limits one[] = { { 100, 1, 1 } };
	struct sched *s = make(one, 1);
	struct sched_message *dead = message(s, "d"), *m = message(s, "m");
	struct sched_entry *stuck, *e;
	uint32_t i;
	char to[16];

	for (i = 0; i < 20000; i++)
		add(dead, 0, "dead", "u@dead", i);
	read_to_the_end(dead);
	stuck = sched_select(s, 0);
	for (i = 0; i < 20000; i++) {
		snprintf(to, sizeof(to), "u%05u@ok", i);
		add(m, 0, "ok", to, i);
	}
	read_to_the_end(m);
	for (i = 0; i < 20000; i++) {
		e = sched_select(s, 0);
		cr_assert_str_eq(e->owner, "m");
		cr_assert_eq(e->rcpts[0].index, i);
		sched_done(s, e, SITE_DELIVERED, NULL, 0);
	}
	cr_assert_null(sched_select(s, 0));
	sched_done(s, stuck, SITE_FAILED, "x", 0);
	sched_message_free(&dead);
	sched_message_free(&m);
	unmake(&s);
}
