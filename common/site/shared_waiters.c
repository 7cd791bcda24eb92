#include "site/shared_parts.h"

static uint32_t
free_places(const struct shared_segment *seg, struct shared_slot *slot)
{
	uint32_t busy = shared_slot_busy(seg, slot);

	return slot->window.window > busy ? slot->window.window - busy : 0;
}

/* Tickets wrap around; an older one is further behind the next. */
static uint32_t
age_of(const struct shared_slot *slot, uint32_t ticket)
{
	return slot->ticket - ticket;
}

/* Waiters before the member; all, if it does not wait itself. */
static uint32_t
before(
    const struct shared_segment *seg, struct shared_slot *slot, uint32_t member)
{
	const uint32_t *tickets = shared_slot_tickets(seg, slot);
	uint32_t own = tickets[member], count = 0, i;

	for (i = 0; i < seg->members; i++)
		if (tickets[i] != 0 && i != member &&
		    (own == 0 || age_of(slot, tickets[i]) > age_of(slot, own)))
			count++;
	return count;
}

bool
shared_waiters_has_room(
    const struct shared_segment *seg, struct shared_slot *slot, uint32_t member)
{
	return free_places(seg, slot) > before(seg, slot, member);
}

uint32_t
shared_waiters_count(const struct shared_segment *seg, struct shared_slot *slot,
    uint32_t member, uint32_t *ret_queues)
{
	const uint32_t *tickets = shared_slot_tickets(seg, slot);
	const uint32_t *busy = shared_slot_busy_cells(slot);
	uint32_t i, others = 0, queues = 0;

	for (i = 0; i < seg->members; i++) {
		others += tickets[i] != 0 && i != member;
		queues += tickets[i] != 0 || busy[i] != 0;
	}
	*ret_queues = queues;
	return others;
}

void
shared_waiters_add(
    const struct shared_segment *seg, struct shared_slot *slot, uint32_t member)
{
	uint32_t *ticket = &shared_slot_tickets(seg, slot)[member];

	if (*ticket != 0)
		return;
	shared_slot_grants(seg, slot)[member] = 0;
	if (++slot->ticket == 0)
		slot->ticket = 1;
	*ticket = slot->ticket;
}

void
shared_waiters_remove(
    const struct shared_segment *seg, struct shared_slot *slot, uint32_t member)
{
	shared_slot_tickets(seg, slot)[member] = 0;
	shared_slot_grants(seg, slot)[member] = 0;
}

void
shared_waiters_clear(const struct shared_segment *seg, struct shared_slot *slot,
    struct shared_mask *woken)
{
	const uint32_t *tickets = shared_slot_tickets(seg, slot);
	uint32_t i;

	for (i = 0; i < seg->members; i++)
		if (tickets[i] != 0) {
			shared_waiters_remove(seg, slot, i);
			shared_mask_add(woken, i);
		}
}

/* ---- grants ---- */

struct waiters {
	uint32_t count;
	uint16_t members[SHARED_MEMBERS_MAX]; /* the oldest first */
};

static void
gather(const struct shared_segment *seg, struct shared_slot *slot,
    struct waiters *ret)
{
	const uint32_t *tickets = shared_slot_tickets(seg, slot);
	uint32_t i, n, count = 0;

	for (i = 0; i < seg->members; i++) {
		if (tickets[i] == 0)
			continue;
		for (n = count++; n > 0 &&
		     age_of(slot, tickets[ret->members[n - 1]]) <
			 age_of(slot, tickets[i]);
		     n--)
			ret->members[n] = ret->members[n - 1];
		ret->members[n] = (uint16_t)i;
	}
	ret->count = count;
}

static uint32_t
stamp_of(usec_t now)
{
	uint32_t stamp = (uint32_t)(now / USEC_PER_MSEC);

	return stamp == 0 ? 1 : stamp;
}

/* Each process reads its clock once in a turn of its loop: a grant slightly in
 * the future is right, one far in the future is damage. */
static bool
is_over(uint32_t turn, usec_t now)
{
	int32_t passed = (int32_t)(stamp_of(now) - turn);

	return passed >= SHARED_GRANT_TIME / USEC_PER_MSEC || passed < -60000;
}

void
shared_waiters_grant(const struct shared_segment *seg, struct shared_slot *slot,
    uint32_t self, usec_t now, struct shared_mask *woken)
{
	uint32_t *grants = shared_slot_grants(seg, slot);
	uint32_t i, given = 0, places;
	struct waiters line;

	gather(seg, slot, &line);
	places = line.count == 0 ? 0 : free_places(seg, slot);
	for (i = 0; i < line.count; i++) {
		uint32_t member = line.members[i];

		if (given >= places) {
			grants[member] = 0;
			continue;
		}
		if (grants[member] != 0 && member != self &&
		    is_over(grants[member], now)) {
			shared_waiters_remove(seg, slot, member);
			continue;
		}
		if (grants[member] == 0) {
			grants[member] = stamp_of(now);
			shared_mask_add(woken, member);
		}
		given++;
	}
}
