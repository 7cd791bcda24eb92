#include "site/shared_parts.h"

#include <errno.h>
#include <math.h>
#include <string.h>

/* ---- finding ---- */

static size_t
kept_len(size_t len)
{
	const size_t most = sizeof(((struct shared_slot *)NULL)->name);

	return len < most ? len : most;
}

static uint16_t
name_len(const char *name)
{
	size_t len = strlen(name);

	return len < UINT16_MAX ? (uint16_t)len : UINT16_MAX;
}

static bool
is_slot_of(const struct shared_slot *slot, const struct site *h)
{
	size_t i;

	for (i = 0; i < sizeof(slot->name) && h->name[i] != '\0'; i++)
		if (site_lower((unsigned char)slot->name[i]) !=
		    site_lower((unsigned char)h->name[i]))
			return false;
	return slot->name_len == name_len(h->name);
}

static int
index_of(const struct shared_set *set, const struct site *h)
{
	int index;

	if (set->hash[h->index] == h->hash)
		return h->index;
	for (index = 0; index < SHARED_SET_SLOTS; index++)
		if (set->hash[index] == h->hash)
			return index;
	return SHARED_SLOT_NONE;
}

/* Two names with one hash of 64 bits do not occur: it is damage. */
int
shared_slot_find(
    const struct shared *s, struct shared_set *set, const struct site *h)
{
	int index = index_of(set, h);
	struct shared_slot *slot;

	if (index == SHARED_SLOT_NONE)
		return index;
	slot = shared_set_slot(&s->seg, set, (uint32_t)index);
	return shared_slot_is_sealed(&s->seg, slot) && is_slot_of(slot, h)
	    ? index
	    : -EBADMSG;
}

/* ---- slots ---- */

bool
shared_set_has_spare(const struct shared_set *set)
{
	return set->in_use != UINT32_MAX;
}

static bool
is_dead(
    const struct shared *s, struct shared_set *set, uint32_t index, usec_t now)
{
	return (set->dead >> index & 1) != 0 &&
	    shared_set_slot(&s->seg, set, index)->dead_until > now;
}

/* A free slot, or the least recently used one, dead sites last. */
static int
choose(const struct shared *s, struct shared_set *set, usec_t now)
{
	bool best_dead = true;
	uint32_t index;
	int best = -1;

	for (index = 0; index < SHARED_SET_SLOTS; index++) {
		bool dead;

		if ((set->in_use >> index & 1) != 0)
			continue;
		if (set->hash[index] == 0)
			return (int)index;
		dead = is_dead(s, set, index, now);
		if (best < 0 || (best_dead && !dead) ||
		    (best_dead == dead && set->used[index] < set->used[best])) {
			best = (int)index;
			best_dead = dead;
		}
	}
	return best;
}

int
shared_slot_make(
    struct shared *s, struct shared_set *set, const struct site *h, usec_t now)
{
	int index = choose(s, set, now);
	struct shared_slot *slot;

	if (index < 0)
		return SHARED_SLOT_NONE;
	if (set->hash[index] != 0)
		s->figures.evicted++;
	/* Without its hash a slot that is half made is free. */
	set->hash[index] = 0;
	set->dead &= ~(UINT32_C(1) << index);
	slot = shared_set_slot(&s->seg, set, (uint32_t)index);
	memset(slot, 0, s->seg.slot_size);
	slot->name_len = name_len(h->name);
	memcpy(slot->name, h->name, kept_len(slot->name_len));
	window_init(&slot->window, &s->rules[h->transport]);
	*shared_slot_seal(&s->seg, slot) = shared_slot_seal_value(&s->seg);
	set->used[index] = now;
	set->hash[index] = h->hash;
	return index;
}

uint32_t
shared_slot_busy(const struct shared_segment *seg, struct shared_slot *slot)
{
	const uint32_t *busy = shared_slot_busy_cells(slot);
	uint64_t sum = 0;
	uint32_t i;

	for (i = 0; i < seg->members; i++)
		sum += busy[i];
	return sum > UINT32_MAX ? UINT32_MAX : (uint32_t)sum;
}

bool
shared_slot_note_use(
    const struct shared_segment *seg, struct shared_set *set, uint32_t index)
{
	const uint32_t *cells = shared_set_slot(seg, set, index)->cells;
	uint32_t i, any = 0, bit = UINT32_C(1) << index;

	for (i = 0; i < 2 * seg->members; i++)
		any |= cells[i];
	if (any != 0)
		set->in_use |= bit;
	else
		set->in_use &= ~bit;
	return any != 0;
}

void
shared_slot_clear_cell(
    const struct shared_segment *seg, struct shared_slot *slot, uint32_t member)
{
	shared_slot_busy_cells(slot)[member] = 0;
	shared_slot_tickets(seg, slot)[member] = 0;
	shared_slot_grants(seg, slot)[member] = 0;
}

/* ---- mending, after a death or damage ---- */

/* Counters are below one step, so loops over steps end. */
static double
within(double value, double max)
{
	return value >= 0 && value <= max ? value : 0;
}

void
shared_slot_mend(struct shared_slot *slot)
{
	struct window *w = &slot->window;

	if (slot->dead_until < 0)
		slot->dead_until = 0;
	if (slot->dead_since < 0)
		slot->dead_since = 0;
	if (w->window == 0)
		w->window = 1;
	w->success = within(w->success, 1);
	w->failure = within(w->failure, 1);
	w->fail_cohorts = within(w->fail_cohorts, 1e12);
	slot->why[SITE_WHY_MAX] = '\0';
}

void
shared_set_mend(const struct shared_segment *seg, struct shared_set *set)
{
	uint32_t index;

	for (index = 0; index < SHARED_SET_SLOTS; index++) {
		struct shared_slot *slot = shared_set_slot(seg, set, index);

		if (set->hash[index] == 0) {
			memset(slot, 0, seg->slot_size);
			set->dead &= ~(UINT32_C(1) << index);
		}
		shared_slot_mend(slot);
		shared_slot_scrub(seg, slot);
		shared_slot_note_use(seg, set, index);
	}
}

bool
shared_slot_scrub(const struct shared_segment *seg, struct shared_slot *slot)
{
	const uint32_t *tickets = shared_slot_tickets(seg, slot);
	uint32_t *busy = shared_slot_busy_cells(slot);
	bool changed = false;
	uint32_t i;

	for (i = 0; i < seg->members; i++) {
		if (busy[i] == 0 && tickets[i] == 0)
			continue;
		if (busy[i] < BUSY_MOST &&
		    __atomic_load_n(&shared_segment_member(seg, i)->owner,
			__ATOMIC_ACQUIRE) != 0)
			continue;
		shared_slot_clear_cell(seg, slot, i);
		changed = true;
	}
	return changed;
}

/* ---- all slots of a set ---- */

void
shared_set_flush(struct shared *s, struct shared_set *set)
{
	uint32_t left;

	for (left = set->dead; left != 0; left &= left - 1)
		shared_set_slot(&s->seg, set, (uint32_t)__builtin_ctz(left))
		    ->dead_until = 0;
}

void
shared_set_wake_refused(struct shared_set *set, struct shared_mask *woken)
{
	size_t i;

	if (!shared_set_has_spare(set))
		return;
	for (i = 0; i < ARRAY_LEN(woken->bits); i++) {
		woken->bits[i] |= set->refused[i];
		set->refused[i] = 0;
	}
}
