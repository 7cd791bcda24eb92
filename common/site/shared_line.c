#include "site/shared_parts.h"

uint32_t
line_busy(const struct segment *seg, struct slot *slot)
{
	const uint32_t *busy = slot_busy_cells(slot);
	uint64_t sum = 0;
	uint32_t i;

	for (i = 0; i < seg->columns; i++)
		sum += busy[i];
	return sum > UINT32_MAX ? UINT32_MAX : (uint32_t)sum;
}

static uint32_t
free_places(const struct segment *seg, struct slot *slot)
{
	uint32_t busy = line_busy(seg, slot);

	return slot->window.window > busy ? slot->window.window - busy : 0;
}

/* Tickets go round; the older one is further behind the next. */
static uint32_t
age_of(const struct slot *slot, uint32_t ticket)
{
	return slot->ticket - ticket;
}

/* Those in line before the column; all, if it is not in line. */
static uint32_t
before(const struct segment *seg, struct slot *slot, uint32_t column)
{
	const uint32_t *tickets = slot_tickets(seg, slot);
	uint32_t own = tickets[column], count = 0, i;

	for (i = 0; i < seg->columns; i++)
		if (tickets[i] != 0 && i != column &&
		    (own == 0 || age_of(slot, tickets[i]) > age_of(slot, own)))
			count++;
	return count;
}

bool
line_has_room(const struct segment *seg, struct slot *slot, uint32_t column)
{
	return free_places(seg, slot) > before(seg, slot, column);
}

void
line_in(const struct segment *seg, struct slot *slot, uint32_t column)
{
	uint32_t *ticket = &slot_tickets(seg, slot)[column];

	if (*ticket != 0)
		return;
	slot_turns(seg, slot)[column] = 0;
	if (++slot->ticket == 0)
		slot->ticket = 1;
	*ticket = slot->ticket;
}

void
line_out(const struct segment *seg, struct slot *slot, uint32_t column)
{
	slot_tickets(seg, slot)[column] = 0;
	slot_turns(seg, slot)[column] = 0;
}

void
line_clear(
    const struct segment *seg, struct slot *slot, struct column_mask *woken)
{
	const uint32_t *tickets = slot_tickets(seg, slot);
	uint32_t i;

	for (i = 0; i < seg->columns; i++)
		if (tickets[i] != 0) {
			line_out(seg, slot, i);
			mask_add(woken, i);
		}
}

/* ---- whose turn it is ---- */

struct line {
	uint32_t count;
	uint16_t columns[COLUMNS_MAX]; /* those in line, the oldest first */
};

static void
line_gather(const struct segment *seg, struct slot *slot, struct line *ret)
{
	const uint32_t *tickets = slot_tickets(seg, slot);
	uint32_t i, n, count = 0;

	for (i = 0; i < seg->columns; i++) {
		if (tickets[i] == 0)
			continue;
		for (n = count++; n > 0 &&
		     age_of(slot, tickets[ret->columns[n - 1]]) <
			 age_of(slot, tickets[i]);
		     n--)
			ret->columns[n] = ret->columns[n - 1];
		ret->columns[n] = (uint16_t)i;
	}
	ret->count = count;
}

static uint32_t
stamp_of(usec_t now)
{
	uint32_t stamp = (uint32_t)(now / USEC_PER_MSEC);

	return stamp == 0 ? 1 : stamp;
}

/* Clocks are read at the beginning of a turn of the loop: one that is behind
 * is no reason to take a turn away, one that is far behind is damage. */
static bool
is_over(uint32_t turn, usec_t now)
{
	int32_t passed = (int32_t)(stamp_of(now) - turn);

	return passed >= SHARED_TURN / USEC_PER_MSEC || passed < -60000;
}

void
line_settle(const struct segment *seg, struct slot *slot, uint32_t self,
    usec_t now, struct column_mask *woken)
{
	uint32_t *turns = slot_turns(seg, slot);
	uint32_t i, given = 0, places;
	struct line line;

	line_gather(seg, slot, &line);
	places = line.count == 0 ? 0 : free_places(seg, slot);
	for (i = 0; i < line.count; i++) {
		uint32_t column = line.columns[i];

		if (given >= places) {
			turns[column] = 0;
			continue;
		}
		if (turns[column] != 0 && column != self &&
		    is_over(turns[column], now)) {
			line_out(seg, slot, column);
			continue;
		}
		if (turns[column] == 0) {
			turns[column] = stamp_of(now);
			mask_add(woken, column);
		}
		given++;
	}
}
