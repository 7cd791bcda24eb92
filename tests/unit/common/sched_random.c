/* Any calls in any order: what must hold between the structures holds after
 * each of them, and the counts agree. */
#include "sched_drive.h"

#include <criterion/criterion.h>

#define DRIVES 600
#define STEPS  1000

static void
drive(uint64_t seed, const struct drive_style *style)
{
	struct drive d = { .dice = seed };
	uint32_t i;

	d.ntransports = drive_dice(&d, 1, DRIVE_TRANSPORTS);
	drive_params(&d);
	drive_begin(&d, style);
	for (i = 0; i < STEPS; i++)
		drive_step(&d);
	drive_end(&d);
}

Test(sched_random, everything)
{
	static const struct drive_style style = { .new = 10,
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
	uint64_t seed;

	for (seed = 0; seed < DRIVES; seed++)
		drive(seed, &style);
}

/* Next hops come to share a destination, and leave it. */
Test(sched_random, moved)
{
	static const struct drive_style style = { .new = 10,
		.read = 20,
		.select = 40,
		.select_all = 3,
		.dead = 10,
		.done = 30,
		.put_back = 2,
		.move = 10,
		.cancel = 1,
		.free = 10,
		.configure = 1,
		.flush = 1,
		.wait = 10,
		.check = true };
	uint64_t seed;

	for (seed = 0; seed < DRIVES; seed++)
		drive(seed, &style);
}

/* Nothing is cancelled or changed: large structures stand for long. */
Test(sched_random, quiet)
{
	static const struct drive_style style = { .new = 5,
		.read = 10,
		.select = 40,
		.dead = 5,
		.done = 38,
		.free = 10,
		.wait = 10,
		.check = true };
	uint64_t seed;

	for (seed = 0; seed < DRIVES; seed++)
		drive(1000 + seed, &style);
}
