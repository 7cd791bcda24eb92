#include "bench.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void *
bench_need(void *p)
{
	if (p == NULL) {
		fprintf(stderr, "sched: out of memory\n");
		exit(111);
	}
	return p;
}

void
bench_check(int r)
{
	if (r < 0) {
		fprintf(stderr, "sched: %s\n", strerror(-r));
		exit(111);
	}
}

/* So many for each destination with deliveries that no set of slots is full. */
static uint32_t
slots_for(uint32_t agents)
{
	return 4 * (agents < BENCH_SITES_MOST ? agents : BENCH_SITES_MOST);
}

void
bench_open(struct bench *b, const struct policy *p)
{
	const struct site_params site = {
		.initial_destination_concurrency = p->window,
		.destination_concurrency_limit = p->window,
		.positive = { 1, WINDOW_FIXED },
		.negative = { 1, WINDOW_FIXED },
		.failed_cohort_limit = 1,
	};
	const struct site_backoff backoff = { 300 * USEC_PER_SEC,
		4000 * USEC_PER_SEC, 10 };
	static const char *const name = "smtp";
	const struct shared_params table = { &site, &name, 1, backoff };
	const struct sched_params params = { UINT32_MAX, 10, 20000 };
	const struct sched_transport_params transport = {
		.process_limit = p->agents,
		.destination_recipient_limit = p->rcpts_per_entry,
		.delivery_slot_cost = p->cost,
		.delivery_slot_discount = 50,
		.delivery_slot_loan = 3,
		.minimum_delivery_slots = 3,
		.recipient_limit = 20000,
		.extra_recipient_limit = 1000,
		.recipient_refill_limit = 100,
		.recipient_refill_delay = 5 * USEC_PER_SEC,
	};

	*b = (struct bench){ .agents = p->agents };
	b->flying = bench_need(calloc(p->agents, sizeof(struct sched_entry *)));
	bench_check(
	    shared_new_alone(&table, slots_for(p->agents), 1, &b->sites));
	bench_check(sched_new(&params, &transport, 1, b->sites, &b->s));
}

/* From the end of one selection to that of the next, with one delivery that
 * ends between them. */
static void
lap(struct bench *b)
{
	uint64_t now = bench_clock(), took = now - b->lap_began;

	b->laps[b->nlaps++] = took > UINT32_MAX ? UINT32_MAX : (uint32_t)took;
	b->lap_began = bench_clock();
	b->finished = false;
}

bool
bench_start(struct bench *b)
{
	struct sched_entry *e = sched_select(b->s, b->now);

	if (e == NULL)
		return false;
	b->flying[(b->first + b->count++) % b->agents] = e;
	if (b->laps != NULL)
		lap(b);
	return true;
}

void
bench_finish(struct bench *b)
{
	struct sched_entry *e = b->flying[b->first];
	struct sched_message *m = e->message;

	if (b->laps != NULL && b->finished)
		b->lap_began = bench_clock();
	b->finished = true;
	b->first = (b->first + 1) % b->agents;
	b->count--;
	sched_done(b->s, e, SITE_DELIVERED, NULL, b->now);
	if (sched_message_waiting(m) == 0 && sched_message_running(m) == 0)
		sched_message_free(&m);
	b->now += 100;
}

void
bench_drain(struct bench *b)
{
	while (b->left > 0) {
		if (b->count < b->agents && bench_start(b))
			b->left--;
		else if (b->count > 0)
			bench_finish(b);
		else
			break;
	}
}

/* "mxN.", then what is in the buffer already: names are not to cost more than
 * what is measured. Where the name begins. */
static const char *
name_before(char *end, uint32_t n)
{
	*--end = '.';
	do {
		*--end = (char)('0' + n % 10);
		n /= 10;
	} while (n > 0);
	*--end = 'x';
	*--end = 'm';
	return end;
}

struct sched_message *
bench_message(struct bench *b)
{
	struct sched_message *m = NULL;

	b->next_id++;
	bench_check(sched_message_new(b->s, NULL, b->now, &m));
	return m;
}

void
bench_fill(struct bench *b, struct sched_message *m,
    const struct bench_rcpts *rcpts, uint32_t total)
{
	struct sched_rcpt rcpt = { 0 };
	char name[64], *after = name + 16; /* the number */
	uint32_t i;

	snprintf(after, sizeof(name) - 16, "%s.example", rcpts->prefix);
	if (total > 0)
		bench_check(sched_message_expect(m, 0, total));
	for (i = 0; i < rcpts->n; i++) {
		rcpt.index = i;
		bench_check(sched_rcpt_add(m, 0,
		    name_before(
			after, (rcpts->first + i) % rcpts->destinations),
		    "user@example.org", &rcpt));
	}
	sched_batch_end(m, total == 0, b->now);
	b->arrivals.rcpts += rcpts->n;
}

struct sched_message *
bench_mail(struct bench *b, const char *prefix, uint32_t rcpts, uint32_t first,
    uint32_t destinations, uint32_t total)
{
	struct sched_message *m = bench_message(b);

	bench_fill(b, m,
	    &(struct bench_rcpts){ prefix, rcpts, first, destinations }, total);
	return m;
}
