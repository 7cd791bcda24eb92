#include "site/shared_parts.h"

#include <errno.h>

/* A column changes its owner by compare-and-swap, and its cells under the
 * locks of their sets. The supervisor alone knows when the processes that used
 * a column are gone, agents among them: a column is free when it has said so
 * (FORGET), or belongs to the next process of the same queue, which it starts
 * only then. Who clears for somebody else looks in each set, under its lock,
 * whether the column is still of that one: a new owner has put its name there
 * before it clears all of it itself, and takes nothing before that.
 */

uint64_t
column_owner(uint32_t queue, uint32_t generation)
{
	return ((uint64_t)queue + 1) << 32 | generation;
}

static uint64_t
owner_of(const struct shared *s, uint32_t column)
{
	return __atomic_load_n(
	    &segment_column(&s->seg, column)->owner, __ATOMIC_ACQUIRE);
}

static bool
owner_change(struct shared *s, uint32_t column, uint64_t from, uint64_t to)
{
	return __atomic_compare_exchange_n(
	    &segment_column(&s->seg, column)->owner, &from, to, false,
	    __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
}

bool
column_is_ours(const struct shared *s)
{
	return owner_of(s, s->column) == s->owner;
}

/* The column that the queue had before, or one that is nobody's. False: there
 * is none, or somebody else was faster. */
static bool
claim(struct shared *s, uint64_t owner, bool own)
{
	uint32_t i;

	for (i = 0; i < s->seg.columns; i++) {
		uint64_t old = owner_of(s, i);

		if (own ? old >> 32 != owner >> 32 : old != 0)
			continue;
		if (!owner_change(s, i, old, owner))
			continue;
		__atomic_store_n(&segment_column(&s->seg, i)->tid,
		    lock_thread(), __ATOMIC_RELAXED);
		s->column = i;
		return true;
	}
	return false;
}

int
column_claim(struct shared *s, uint64_t owner)
{
	s->owner = 0;
	if (!claim(s, owner, true) && !claim(s, owner, false))
		return -ENOSPC;
	s->owner = owner;
	return 0;
}

void
column_clear_locked(struct shared *s, uint32_t set, uint32_t column,
    struct column_mask *woken, usec_t now)
{
	struct set *shared = segment_set(&s->seg, set);
	uint32_t left = shared->in_use;

	for (; left != 0; left &= left - 1) {
		uint32_t way = (uint32_t)__builtin_ctz(left);
		struct slot *slot = set_slot(&s->seg, shared, way);

		table_clear_cell(&s->seg, slot, column);
		table_note_use(&s->seg, shared, way);
		line_settle(&s->seg, slot, COLUMNS_MAX, now, woken);
	}
	set_wake_refused(shared, woken);
}

bool
column_clear(struct shared *s, uint32_t column, uint64_t owner, usec_t now)
{
	bool whole = true;
	uint32_t set;

	for (set = 0; set < s->seg.sets; set++) {
		struct column_mask woken = { 0 };
		bool same;

		if (!set_lock(s, set, now)) {
			s->sets[set].unclean |= column == s->column;
			whole = false;
			continue;
		}
		same = owner_of(s, column) == owner;
		if (same)
			column_clear_locked(s, set, column, &woken, now);
		set_unlock(s, set);
		wake_columns(s, &woken, set);
		if (!same)
			break;
	}
	return whole;
}

bool
column_forget(struct shared *s, uint32_t column, usec_t now)
{
	uint64_t owner = s->forgets[column];

	if (!column_clear(s, column, owner, now))
		return false;
	(void)owner_change(s, column, owner, 0);
	s->forgets[column] = 0;
	return true;
}

void
column_give_up(struct shared *s, usec_t now)
{
	if (s->owner != 0 && column_clear(s, s->column, s->owner, now))
		(void)owner_change(s, s->column, s->owner, 0);
	s->owner = 0;
}
