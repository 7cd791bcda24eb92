/* The scheduler at the table that queues share: one alone, and two that take
 * turns at the same destinations. After each step everything holds in both of
 * them; and whatever happened before, all mail goes at the end: nobody is left
 * at a destination that has room, and nobody in line without mail. */
#include <criterion/criterion.h>
#include <string.h>

#include "sched_check.h"
#include "sched_drive.h"
#include "site_shared_scratch.h"

#define DRIVES 120
#define STEPS  600
#define ROUNDS 3000

static const char *const names[] = { "x", "y", "z" };

struct queue {
	struct drive drive;
	struct drive_sites sites;
	struct shared *shared;
	usec_t next;
};

struct pair {
	struct scratch t;
	struct queue queues[2];
	uint32_t count;
};

static struct queue *
queue_of(struct drive *d)
{
	return d->elsewhere->of;
}

static struct shared_params
params_of(const struct drive *d)
{
	return (struct shared_params){
		.sites = d->site_params,
		.names = names,
		.count = d->ntransports,
		.backoff = d->backoff,
	};
}

static struct shared *
sites_begin(struct drive *d)
{
	const struct shared_params p = params_of(d);
	struct queue *q = queue_of(d);

	cr_assert_eq(shared_new(&p, d->dice, &q->shared), 0);
	return q->shared;
}

static void
sites_set(struct drive *d)
{
	const struct shared_params p = params_of(d);

	cr_assert_eq(shared_configure(queue_of(d)->shared, &p), 0);
}

static void
sites_end(struct drive *d)
{
	shared_free(&queue_of(d)->shared);
}

static void
on_ready(void *ctx, void *user)
{
	struct drive *d = ctx;

	sched_site_ready(d->sched, user, d->now);
	sched_check(d->sched);
}

static void
work(struct queue *q)
{
	q->next = shared_work(q->shared, q->drive.now, on_ready, &q->drive);
}

static void
queue_begin(
    struct pair *p, uint32_t i, uint64_t seed, const struct drive_style *style)
{
	struct queue *q = &p->queues[i];

	q->drive.dice = seed;
	q->drive.ntransports = (uint32_t)(seed % DRIVE_TRANSPORTS) + 1;
	q->drive.elsewhere = &q->sites;
	q->sites = (struct drive_sites){ sites_begin, sites_set, sites_end, q };
	drive_params(&q->drive);
	q->drive.dice += i;
	drive_begin(&q->drive, style);
}

static void
attach(struct pair *p, uint32_t i)
{
	struct queue *q = &p->queues[i];

	cr_assert_eq(
	    shared_attach(q->shared, p->t.fd, i + 1, 1, q->drive.now), 0);
}

/* One clock for both. */
static void
pass_time(struct pair *p, usec_t now)
{
	uint32_t i;

	for (i = 0; i < p->count; i++)
		p->queues[i].drive.now = now;
}

static void
expect_all_served(struct pair *p, uint64_t seed)
{
	uint32_t i, k, round;
	bool all = false;

	for (i = 0; i < p->count; i++) {
		struct drive *d = &p->queues[i].drive;

		for (k = 0; k < d->ntransports; k++)
			d->transports[k].process_limit = 3;
		drive_configure(d);
	}
	for (round = 0; !all && round < ROUNDS; round++) {
		all = true;
		for (i = 0; i < p->count; i++) {
			work(&p->queues[i]);
			all &= drive_serve(&p->queues[i].drive);
		}
		pass_time(p, p->queues[0].drive.now + 50 * USEC_PER_MSEC);
	}
	cr_assert(all, "seed %lu: mail is left behind", (unsigned long)seed);
}

/* Of all members: nobody holds a place or stands in line. */
static void
expect_all_free(struct pair *p)
{
	struct shared *s = p->queues[0].shared;
	uint32_t i;

	for (i = 0; i < p->count; i++) {
		work(&p->queues[i]);
		cr_expect_eq(p->queues[i].shared->watched, 0);
	}
	for (i = 0; i < s->seg.sets; i++)
		cr_expect_eq(shared_segment_set(&s->seg, i)->in_use, 0);
}

static void
drive(uint32_t count, uint32_t slots, uint64_t seed,
    const struct drive_style *style)
{
	struct pair p = { .count = count };
	struct queue *q;
	uint32_t i, n;

	scratch_begin(&p.t, slots, count);
	for (i = 0; i < count; i++) {
		queue_begin(&p, i, seed, style);
		attach(&p, i);
	}
	for (n = 0; n < STEPS; n++) {
		q = &p.queues[drive_dice(&p.queues[0].drive, 0, count - 1)];
		drive_step(&q->drive);
		pass_time(&p, q->drive.now);
		if (drive_dice(&q->drive, 0, 2) == 0)
			work(q);
	}
	expect_all_served(&p, seed);
	expect_all_free(&p);
	for (i = count; i-- > 0;)
		drive_end(&p.queues[i].drive);
	scratch_end(&p.t);
}

static const uint64_t extremes[] = { 0, 1, UINT64_MAX, INT64_MAX,
	(uint64_t)INT64_MIN, UINT32_MAX, INT32_MAX, UINT64_C(1) << 32,
	UINT64_C(0x7ff0000000000000), /* infinity, of a double */
	UINT64_C(0xfff8000000000000) /* not a number */ };

/* All that has a meaning; not what says that it was written over. */
static const struct {
	size_t at, size;
} set_fields[] = {
#define FIELD(s, f)                                                  \
	{                                                            \
		offsetof(struct s, f), sizeof(((struct s *)NULL)->f) \
	}
	FIELD(shared_set, in_use),
	FIELD(shared_set, dead),
	FIELD(shared_set, passed),
	FIELD(shared_set, used),
	FIELD(shared_set, refused),
};
static const struct {
	size_t at, size;
} slot_fields[] = {
	FIELD(shared_slot, window.window),
	FIELD(shared_slot, window.success),
	FIELD(shared_slot, window.failure),
	FIELD(shared_slot, window.fail_cohorts),
	FIELD(shared_slot, dead_until),
	FIELD(shared_slot, deaths),
	FIELD(shared_slot, ticket),
	FIELD(shared_slot, why),
};

static void
put(char *base, size_t at, size_t size, uint64_t value)
{
	for (; size >= sizeof(value); size -= sizeof(value)) {
		memcpy(base + at, &value, sizeof(value));
		at += sizeof(value);
	}
	memcpy(base + at, &value, size);
}

static uint64_t
any_extreme(struct drive *d)
{
	return extremes[drive_dice(d, 0, ARRAY_LEN(extremes) - 1)];
}

/* Any field of any set and slot becomes any extreme. */
static void
damage(struct pair *p)
{
	const struct shared_segment *seg = &p->queues[0].shared->seg;
	struct drive *d = &p->queues[0].drive;
	uint32_t i, n = drive_dice(d, 1, 100);

	for (i = 0; i < n; i++) {
		struct shared_set *set =
		    shared_segment_set(seg, drive_dice(d, 0, seg->sets - 1));
		struct shared_slot *slot = shared_set_slot(
		    seg, set, drive_dice(d, 0, SHARED_SET_SLOTS - 1));
		const size_t f = drive_dice(d, 0, ARRAY_LEN(set_fields) - 1);
		const size_t g = drive_dice(d, 0, ARRAY_LEN(slot_fields) - 1);
		const uint32_t cell = drive_dice(d, 0, 3 * seg->members - 1);

		put((char *)set, set_fields[f].at, set_fields[f].size,
		    any_extreme(d));
		put((char *)slot, slot_fields[g].at, slot_fields[g].size,
		    any_extreme(d));
		slot->cells[cell] = (uint32_t)any_extreme(d);
	}
}

static void
drive_damaged(uint64_t seed, const struct drive_style *style)
{
	struct pair p = { .count = 2 };
	struct queue *q;
	uint32_t i, n;

	scratch_begin(&p.t, 64, 2);
	for (i = 0; i < 2; i++) {
		queue_begin(&p, i, seed, style);
		attach(&p, i);
	}
	for (n = 0; n < STEPS; n++) {
		q = &p.queues[drive_dice(&p.queues[0].drive, 0, 1)];
		drive_step(&q->drive);
		pass_time(&p, q->drive.now);
		if (drive_dice(&q->drive, 0, 1) == 0)
			work(q);
		if (drive_dice(&q->drive, 0, 20) == 0)
			damage(&p);
	}
	for (i = 2; i-- > 0;)
		drive_end(&p.queues[i].drive);
	scratch_end(&p.t);
}

static const struct drive_style everything = { .new = 10,
	.read = 20,
	.select = 40,
	.select_all = 3,
	.dead = 10,
	.done = 35,
	.put_back = 3,
	.cancel = 1,
	.free = 10,
	.configure = 1,
	.flush = 1,
	.wait = 10,
	.check = true };
static const struct drive_style quiet = { .new = 5,
	.read = 10,
	.select = 40,
	.dead = 5,
	.done = 38,
	.free = 10,
	.wait = 10,
	.check = true };

Test(sched_shared, one)
{
	uint64_t seed;

	for (seed = 0; seed < DRIVES; seed++)
		drive(1, 32, seed, seed % 2 == 0 ? &everything : &quiet);
}

Test(sched_shared, two_take_turns)
{
	uint64_t seed;

	for (seed = 0; seed < DRIVES; seed++)
		drive(2, seed % 4 == 0 ? 32 : 256, 1000 + seed, &everything);
}

Test(sched_shared, two_take_turns_and_nothing_changes)
{
	uint64_t seed;

	for (seed = 0; seed < DRIVES; seed++)
		drive(2, 64, 2000 + seed, &quiet);
}

/* Whatever others write there: the scheduler stays whole.
 * mutation: slot_age() without its bounds (UBSan) */
Test(sched_shared, values_of_others)
{
	struct drive_style style = everything;
	uint64_t seed;

	style.damaged = true;
	for (seed = 0; seed < DRIVES; seed++)
		drive_damaged(3000 + seed, &style);
}
