#include "queue-send/pure.h"

#include <string.h>

#define USEC_PER_MINUTE (60 * USEC_PER_SEC)
#define FIRST_STEP      5 /* minutes; each further step is twice as long */

static uint32_t
minute_of(usec_t wall)
{
	usec_t minute = wall / USEC_PER_MINUTE;

	/* 0 is "none" elsewhere, and the clock may say anything. */
	return minute < 1          ? 1
	    : minute >= UINT32_MAX ? UINT32_MAX - 1
				   : (uint32_t)minute;
}

static void
move_minutes(struct ages *a, uint32_t to)
{
	if (to - a->minute >= AGES_MINUTES) {
		memset(a->minutes, 0, sizeof(a->minutes));
		return;
	}
	while (a->minute < to)
		a->minutes[++a->minute % AGES_MINUTES] = 0;
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

/* A slot is used again for a later time, and emptied before. A clock that goes
 * back changes nothing. */
static void
move_on(struct ages *a, usec_t now_wall)
{
	uint32_t to = minute_of(now_wall);

	if (to <= a->minute)
		return;
	move_hours(a, a->minute / 60, to / 60);
	move_minutes(a, to);
	a->minute = to;
}

static void
count(struct ages *a, uint32_t minute, int change)
{
	uint32_t hour = minute / 60;

	a->count += (uint64_t)(int64_t)change;
	if (a->minute / 60 - hour >= AGES_HOURS)
		a->older += (uint64_t)(int64_t)change;
	else
		a->hours[hour % AGES_HOURS] += (uint32_t)change;
	if (a->minute - minute < AGES_MINUTES)
		a->minutes[minute % AGES_MINUTES] += (uint32_t)change;
}

uint32_t
ages_add(struct ages *a, usec_t arrival_wall, usec_t now_wall)
{
	uint32_t minute = minute_of(arrival_wall);

	move_on(a, now_wall);
	if (minute > a->minute)
		minute = a->minute;
	count(a, minute, 1);
	return minute;
}

void
ages_remove(struct ages *a, uint32_t minute, usec_t now_wall)
{
	move_on(a, now_wall);
	count(a, minute, -1);
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

static usec_t
oldest(const struct ages *a)
{
	uint32_t hour = a->minute / 60, minute;
	uint32_t first = hour < AGES_HOURS ? 0 : hour - AGES_HOURS + 1;

	if (a->count == 0)
		return 0;
	while (
	    a->older == 0 && first < hour && a->hours[first % AGES_HOURS] == 0)
		first++;
	for (minute = first * 60; minute < first * 60 + 60; minute++)
		if (minute <= a->minute && a->minute - minute < AGES_MINUTES &&
		    a->minutes[minute % AGES_MINUTES] > 0)
			return (usec_t)minute * USEC_PER_MINUTE;
	return (usec_t)first * 60 * USEC_PER_MINUTE;
}

void
ages_read(struct ages *a, usec_t now_wall, uint64_t ret_age[PAGE_AGES],
    usec_t *ret_oldest_wall)
{
	uint64_t known = 0;
	uint32_t age;

	move_on(a, now_wall);
	memset(ret_age, 0, PAGE_AGES * sizeof(*ret_age));
	for (age = 0; age < AGES_MINUTES && age <= a->minute; age++) {
		uint32_t n = a->minutes[(a->minute - age) % AGES_MINUTES];

		ret_age[step_of(age)] += n;
		known += n;
	}
	ret_age[PAGE_AGES - 1] += a->count - known;
	*ret_oldest_wall = oldest(a);
}
