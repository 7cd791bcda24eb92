#include "site/shared_parts.h"

#include <errno.h>
#include <math.h>
#include <string.h>

/* ---- finding ---- */

static size_t
kept_len(size_t len)
{
	const size_t most = sizeof(((struct slot *)NULL)->name);

	return len < most ? len : most;
}

static uint16_t
name_len(const char *name)
{
	size_t len = strlen(name);

	return len < UINT16_MAX ? (uint16_t)len : UINT16_MAX;
}

static bool
is_slot_of(const struct slot *slot, const struct handle *h)
{
	size_t i;

	for (i = 0; i < sizeof(slot->name) && h->name[i] != '\0'; i++)
		if (site_lower((unsigned char)slot->name[i]) !=
		    site_lower((unsigned char)h->name[i]))
			return false;
	return slot->name_len == name_len(h->name);
}

static int
way_of(const struct set *set, const struct handle *h)
{
	int way;

	if (set->hash[h->way] == h->hash)
		return h->way;
	for (way = 0; way < SHARED_WAYS; way++)
		if (set->hash[way] == h->hash)
			return way;
	return TABLE_NONE;
}

/* Two names do not have one hash of 64 bits. */
int
table_find(const struct shared *s, struct set *set, const struct handle *h)
{
	int way = way_of(set, h);
	struct slot *slot;

	if (way == TABLE_NONE)
		return way;
	slot = set_slot(&s->seg, set, (uint32_t)way);
	return slot_is_sealed(&s->seg, slot) && is_slot_of(slot, h) ? way
								    : -EBADMSG;
}

/* ---- slots ---- */

bool
table_has_spare(const struct set *set)
{
	return set->in_use != UINT32_MAX;
}

static bool
is_dead(const struct shared *s, struct set *set, uint32_t way, usec_t now)
{
	return (set->dead >> way & 1) != 0 &&
	    set_slot(&s->seg, set, way)->dead_until > now;
}

/* A free one, or the least recently used, the dead last. */
static int
choose(const struct shared *s, struct set *set, usec_t now)
{
	bool best_dead = true;
	uint32_t way;
	int best = -1;

	for (way = 0; way < SHARED_WAYS; way++) {
		bool dead;

		if ((set->in_use >> way & 1) != 0)
			continue;
		if (set->hash[way] == 0)
			return (int)way;
		dead = is_dead(s, set, way, now);
		if (best < 0 || (best_dead && !dead) ||
		    (best_dead == dead && set->used[way] < set->used[best])) {
			best = (int)way;
			best_dead = dead;
		}
	}
	return best;
}

int
table_make(
    struct shared *s, struct set *set, const struct handle *h, usec_t now)
{
	int way = choose(s, set, now);
	struct slot *slot;

	if (way < 0)
		return TABLE_NONE;
	if (set->hash[way] != 0)
		s->figures.evicted++;
	/* Who finds it half made has no use for it. */
	set->hash[way] = 0;
	set->dead &= ~(UINT32_C(1) << way);
	slot = set_slot(&s->seg, set, (uint32_t)way);
	memset(slot, 0, s->seg.slot_size);
	slot->name_len = name_len(h->name);
	memcpy(slot->name, h->name, kept_len(slot->name_len));
	window_init(&slot->window, &s->rules[h->transport]);
	*slot_seal(&s->seg, slot) = slot_seal_value(&s->seg);
	set->used[way] = now;
	set->hash[way] = h->hash;
	return way;
}

bool
table_note_use(const struct segment *seg, struct set *set, uint32_t way)
{
	const uint32_t *cells = set_slot(seg, set, way)->cells;
	uint32_t i, any = 0, bit = UINT32_C(1) << way;

	for (i = 0; i < 2 * seg->columns; i++)
		any |= cells[i];
	if (any != 0)
		set->in_use |= bit;
	else
		set->in_use &= ~bit;
	return any != 0;
}

void
table_clear_cell(const struct segment *seg, struct slot *slot, uint32_t column)
{
	slot_busy_cells(slot)[column] = 0;
	line_out(seg, slot, column);
}

/* ---- what the dead leave, and damage ---- */

/* Loops over steps end because counters are below one step. */
static double
within(double value, double max)
{
	return value >= 0 && value <= max ? value : 0;
}

void
table_mend_slot(struct slot *slot)
{
	struct window *w = &slot->window;

	if (slot->dead_until < 0)
		slot->dead_until = 0;

	if (w->window == 0)
		w->window = 1;
	w->success = within(w->success, 1);
	w->failure = within(w->failure, 1);
	w->fail_cohorts = within(w->fail_cohorts, 1e12);
	slot->why[SITE_WHY_MAX] = '\0';
}

void
table_mend(const struct segment *seg, struct set *set)
{
	uint32_t way;

	for (way = 0; way < SHARED_WAYS; way++) {
		struct slot *slot = set_slot(seg, set, way);

		if (set->hash[way] == 0) {
			memset(slot, 0, seg->slot_size);
			set->dead &= ~(UINT32_C(1) << way);
		}
		table_mend_slot(slot);
		table_scrub(seg, slot);
		table_note_use(seg, set, way);
	}
}

bool
table_scrub(const struct segment *seg, struct slot *slot)
{
	const uint32_t *tickets = slot_tickets(seg, slot);
	uint32_t *busy = slot_busy_cells(slot);
	bool changed = false;
	uint32_t i;

	for (i = 0; i < seg->columns; i++) {
		if (busy[i] == 0 && tickets[i] == 0)
			continue;
		if (busy[i] < BUSY_MOST &&
		    __atomic_load_n(
			&segment_column(seg, i)->owner, __ATOMIC_ACQUIRE) != 0)
			continue;
		table_clear_cell(seg, slot, i);
		changed = true;
	}
	return changed;
}
