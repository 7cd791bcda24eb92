#include "queue-send/state/pure.h"

#include <string.h>

#define FIRST_STEP 5 /* minutes; each further step is twice as long */

static uint32_t
second_of(usec_t wall)
{
	usec_t second = wall / USEC_PER_SEC;

	/* 0 is "none" elsewhere, and the clock may say anything. */
	return second < 1          ? 1
	    : second >= UINT32_MAX ? UINT32_MAX - 1
				   : (uint32_t)second;
}

struct ages_ring {
	uint32_t *slots, size;
	uint32_t unit; /* seconds of a slot */
};

/* A slot that leaves the last ring counts as older. */
#define RINGS 3

static struct ages_ring
ages_ring(struct ages *a, int i)
{
	const struct ages_ring rings[RINGS] = {
		{ a->seconds, AGES_SECONDS, 1 },
		{ a->minutes, AGES_MINUTES, 60 },
		{ a->hours, AGES_HOURS, 3600 },
	};

	return rings[i];
}

/* A slot is used again for a later time, and emptied before. */
static void
ages_ring_move(struct ages *a, int i, uint32_t to)
{
	const struct ages_ring r = ages_ring(a, i);
	uint32_t steps = to / r.unit - a->second / r.unit;

	for (steps = steps > r.size ? r.size : steps; steps > 0; steps--) {
		uint32_t *slot = &r.slots[(to / r.unit - steps + 1) % r.size];

		a->older += i == RINGS - 1 ? *slot : 0;
		*slot = 0;
	}
}

/* A clock that goes back changes nothing. */
static void
ages_move(struct ages *a, usec_t now_wall)
{
	const uint32_t to = second_of(now_wall);
	int i;

	if (to <= a->second)
		return;
	for (i = 0; i < RINGS; i++)
		ages_ring_move(a, i, to);
	a->second = to;
}

static void
count(struct ages *a, uint32_t second, int change)
{
	int i;

	a->count += (uint64_t)(int64_t)change;
	for (i = 0; i < RINGS; i++) {
		const struct ages_ring r = ages_ring(a, i);
		const uint32_t at = second / r.unit;

		if (a->second / r.unit - at < r.size)
			r.slots[at % r.size] += (uint32_t)change;
		else if (i == RINGS - 1)
			a->older += (uint64_t)(int64_t)change;
	}
}

uint32_t
ages_add(struct ages *a, usec_t arrival_wall, usec_t now_wall)
{
	uint32_t second = second_of(arrival_wall);

	ages_move(a, now_wall);
	if (second > a->second)
		second = a->second;
	count(a, second, 1);
	return second;
}

void
ages_remove(struct ages *a, uint32_t second, usec_t now_wall)
{
	ages_move(a, now_wall);
	count(a, second, -1);
}

static int
step_of(uint32_t age)
{
	uint32_t end = FIRST_STEP;
	int step = 0;

	while (step < PAGE_AGES - 1 && age >= end) {
		step++;
		end *= 2;
	}
	return step;
}

/* The first of the 60 slots from `from` on that counts something; `from` when
 * the ring no longer has all of them. */
static uint32_t
first_of(const uint32_t *ring, uint32_t size, uint32_t from, uint32_t now)
{
	uint32_t i;

	if (now - from >= size)
		return from;
	for (i = from; i < from + 60 && i <= now; i++)
		if (ring[i % size] > 0)
			return i;
	return from;
}

static usec_t
oldest(const struct ages *a)
{
	const uint32_t hour = a->second / 3600;
	uint32_t first = hour < AGES_HOURS ? 0 : hour - AGES_HOURS + 1;
	uint32_t minute, second;

	if (a->count == 0)
		return 0;
	while (
	    a->older == 0 && first < hour && a->hours[first % AGES_HOURS] == 0)
		first++;
	minute = first_of(a->minutes, AGES_MINUTES, first * 60, a->second / 60);
	second = first_of(a->seconds, AGES_SECONDS, minute * 60, a->second);
	return (usec_t)second * USEC_PER_SEC;
}

void
ages_read(struct ages *a, usec_t now_wall, uint64_t ret_age[PAGE_AGES],
    usec_t *ret_oldest_wall)
{
	uint32_t age, minute;
	uint64_t known = 0;

	ages_move(a, now_wall);
	minute = a->second / 60;
	memset(ret_age, 0, PAGE_AGES * sizeof(*ret_age));
	for (age = 0; age < AGES_MINUTES && age <= minute; age++) {
		const uint32_t n = a->minutes[(minute - age) % AGES_MINUTES];

		ret_age[step_of(age)] += n;
		known += n;
	}
	ret_age[PAGE_AGES - 1] += a->count - known;
	*ret_oldest_wall = oldest(a);
}
