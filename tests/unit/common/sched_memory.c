/* Rule 6: recipients in memory are never more than its bound. */
#include "sched_drive.h"

#include <criterion/criterion.h>

#define DRIVES 1000
#define STEPS  1000

/* max(minimum * active_limit + sum over transports(recipient_limit +
 * extra_recipient_limit), recipient_limit); the drive has DRIVE_MESSAGES. */
static uint32_t
bound_of(const struct drive *d)
{
	uint32_t minimum = d->params.message_recipient_minimum, sum, t;

	sum = (minimum > 1 ? minimum : 1) * DRIVE_MESSAGES;
	for (t = 0; t < d->ntransports; t++)
		sum += d->transports[t].recipient_limit +
		    d->transports[t].extra_recipient_limit;
	return sum > d->params.message_recipient_limit
	    ? sum
	    : d->params.message_recipient_limit;
}

/* With the given message_recipient_limit, or any. */
static struct drive
drive(uint64_t seed, uint32_t message_limit)
{
	static const struct drive_style style = { .new = 10,
		.read = 30,
		.select = 30,
		.dead = 5,
		.done = 30,
		.put_back = 1,
		.free = 10,
		.wait = 10 };
	struct drive d = { .dice = seed };
	uint32_t i;

	d.ntransports = drive_dice(&d, 1, DRIVE_TRANSPORTS);
	drive_params(&d);
	if (message_limit > 0)
		d.params.message_recipient_limit = message_limit;
	drive_begin(&d, &style);
	for (i = 0; i < STEPS; i++)
		drive_step(&d);
	drive_end(&d);
	return d;
}

static void
must_hold(uint32_t message_limit)
{
	struct drive d;
	uint64_t seed;

	for (seed = 0; seed < DRIVES; seed++) {
		d = drive(seed, message_limit);
		cr_assert_leq(d.most, bound_of(&d), "seed %lu: %u > %u",
		    (unsigned long)seed, d.most, bound_of(&d));
	}
}

/* A first batch is never more than the minimum: slots only. */
Test(sched_memory, slots_are_lent_once)
{
	must_hold(1);
}

Test(sched_memory, first_batches_too)
{
	must_hold(0);
}
