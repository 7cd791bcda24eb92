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

static uint32_t
minute_of(uint32_t second)
{
	return second / 60;
}

static uint32_t
hour_of(uint32_t second)
{
	return second / 3600;
}

/* A slot is used again for a later time, and emptied before. */
static void
move_ring(uint32_t *ring, uint32_t size, uint32_t from, uint32_t to)
{
	if (to - from >= size) {
		memset(ring, 0, size * sizeof(*ring));
		return;
	}
	while (from < to)
		ring[++from % size] = 0;
}

static void
move_hours(struct ages *a, uint32_t hour, uint32_t to)
{
	uint32_t steps = to - hour > AGES_HOURS ? AGES_HOURS : to - hour;

	while (steps-- > 0) {
		uint32_t *slot = &a->hours[(to - steps) % AGES_HOURS];

		a->older += *slot;
		*slot = 0;
	}
}

/* A clock that goes back changes nothing. */
static void
move_on(struct ages *a, usec_t now_wall)
{
	uint32_t to = second_of(now_wall);

	if (to <= a->second)
		return;
	move_hours(a, hour_of(a->second), hour_of(to));
	move_ring(
	    a->minutes, AGES_MINUTES, minute_of(a->second), minute_of(to));
	move_ring(a->seconds, AGES_SECONDS, a->second, to);
	a->second = to;
}

static void
count(struct ages *a, uint32_t second, int change)
{
	const uint32_t minute = minute_of(second), hour = hour_of(second);

	a->count += (uint64_t)(int64_t)change;
	if (hour_of(a->second) - hour >= AGES_HOURS)
		a->older += (uint64_t)(int64_t)change;
	else
		a->hours[hour % AGES_HOURS] += (uint32_t)change;
	if (minute_of(a->second) - minute < AGES_MINUTES)
		a->minutes[minute % AGES_MINUTES] += (uint32_t)change;
	if (a->second - second < AGES_SECONDS)
		a->seconds[second % AGES_SECONDS] += (uint32_t)change;
}

uint32_t
ages_add(struct ages *a, usec_t arrival_wall, usec_t now_wall)
{
	uint32_t second = second_of(arrival_wall);

	move_on(a, now_wall);
	if (second > a->second)
		second = a->second;
	count(a, second, 1);
	return second;
}

void
ages_remove(struct ages *a, uint32_t second, usec_t now_wall)
{
	move_on(a, now_wall);
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
	const uint32_t hour = hour_of(a->second);
	uint32_t first = hour < AGES_HOURS ? 0 : hour - AGES_HOURS + 1;
	uint32_t minute, second;

	if (a->count == 0)
		return 0;
	while (
	    a->older == 0 && first < hour && a->hours[first % AGES_HOURS] == 0)
		first++;
	minute = first_of(
	    a->minutes, AGES_MINUTES, first * 60, minute_of(a->second));
	second = first_of(a->seconds, AGES_SECONDS, minute * 60, a->second);
	return (usec_t)second * USEC_PER_SEC;
}

void
ages_read(struct ages *a, usec_t now_wall, uint64_t ret_age[PAGE_AGES],
    usec_t *ret_oldest_wall)
{
	uint32_t age, minute;
	uint64_t known = 0;

	move_on(a, now_wall);
	minute = minute_of(a->second);
	memset(ret_age, 0, PAGE_AGES * sizeof(*ret_age));
	for (age = 0; age < AGES_MINUTES && age <= minute; age++) {
		const uint32_t n = a->minutes[(minute - age) % AGES_MINUTES];

		ret_age[step_of(age)] += n;
		known += n;
	}
	ret_age[PAGE_AGES - 1] += a->count - known;
	*ret_oldest_wall = oldest(a);
}
