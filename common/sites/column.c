#include "sites/parts.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

/* A column changes its owner by compare-and-swap, and its cells under the
 * locks of their sets. First it is marked with the pid of whoever takes it, and
 * gets its owner when its pid is right: who sees an owner sees its own pid. Who
 * clears for somebody else looks in each set, under its lock, whether the
 * column is still of that one: a new owner has put its name there before it
 * clears all of it itself, and takes nothing before that.
 */

#define TAKEN_BY (UINT64_C(1) << 63) /* no owner has it */

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

/* Of a column that has one. */
static bool
is_gone(const struct shared *s, uint32_t column, uint64_t owner)
{
	uint32_t pid = (owner & TAKEN_BY) != 0
	    ? (uint32_t)owner
	    : __atomic_load_n(
		  &segment_column(&s->seg, column)->pid, __ATOMIC_RELAXED);

	return pid == 0 || pid > INT32_MAX ||
	    (kill((pid_t)pid, 0) < 0 && errno == ESRCH);
}

enum claim {
	CLAIM_OWN,  /* what the queue had before */
	CLAIM_FREE, /* nobody's */
	CLAIM_GONE, /* of a process that is gone */
	CLAIMS
};

static bool
may_claim(const struct shared *s, uint32_t column, uint64_t old, uint64_t owner,
    enum claim way)
{
	if (way == CLAIM_OWN)
		return old >> 32 == owner >> 32;
	return way == CLAIM_FREE ? old == 0 : is_gone(s, column, old);
}

/* False: somebody else was faster. */
static bool
take_over(struct shared *s, uint32_t column, uint64_t old, uint64_t owner)
{
	const uint32_t pid = (uint32_t)getpid();

	if (!owner_change(s, column, old, TAKEN_BY | pid))
		return false;
	__atomic_store_n(
	    &segment_column(&s->seg, column)->pid, pid, __ATOMIC_RELAXED);
	return owner_change(s, column, TAKEN_BY | pid, owner);
}

static bool
claim(struct shared *s, uint64_t owner, enum claim way)
{
	uint32_t i;

	for (i = 0; i < s->seg.columns; i++) {
		uint64_t old = owner_of(s, i);

		if (may_claim(s, i, old, owner, way) &&
		    take_over(s, i, old, owner)) {
			s->column = i;
			return true;
		}
	}
	return false;
}

int
column_claim(struct shared *s, uint64_t owner)
{
	enum claim way;

	for (way = CLAIM_OWN; way < CLAIMS; way++) {
		if (!claim(s, owner, way))
			continue;
		s->owner = owner;
		return 0;
	}
	s->owner = 0;
	return -ENOSPC;
}

/* Their agents are gone with them, sooner or later: the second time that a
 * process is missed, its places are free. */
void
column_roll(struct shared *s, usec_t now)
{
	uint32_t i;

	if (now < s->next_roll)
		return;
	s->next_roll = now + GONE_LIMIT;
	for (i = 0; i < s->seg.columns; i++) {
		uint64_t owner = owner_of(s, i);

		if (owner == 0 || i == s->column || !is_gone(s, i, owner)) {
			s->gone[i] = 0;
		} else if (s->gone[i] != owner) {
			s->gone[i] = owner;
		} else {
			s->forgets[i] = owner;
			s->untidy |= !column_forget(s, i, now);
		}
	}
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
