#include "site/shared_parts.h"

#include <errno.h>

/* The owner of a member changes by compare-and-swap; its cells change under the
 * locks of their sets. The supervisor alone knows when all processes that used
 * a member are gone, agents included: then it says FORGET, and the member is
 * cleared and free; or it starts the next process of the same queue, to which
 * the member belongs. A process that clears a member for another checks in each
 * set, under the lock, that the owner is still the one to forget: a new owner
 * stands there before it clears the member itself and takes places.
 */

uint64_t
shared_member_owner(uint32_t queue, uint32_t generation)
{
	return ((uint64_t)queue + 1) << 32 | generation;
}

static uint64_t
owner_of(const struct shared *s, uint32_t member)
{
	return __atomic_load_n(
	    &shared_segment_member(&s->seg, member)->owner, __ATOMIC_ACQUIRE);
}

static bool
owner_change(struct shared *s, uint32_t member, uint64_t from, uint64_t to)
{
	return __atomic_compare_exchange_n(
	    &shared_segment_member(&s->seg, member)->owner, &from, to, false,
	    __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
}

/* own: the member that the queue had before; else one without an owner. False:
 * there is none, or another process was faster. */
static bool
claim(struct shared *s, uint64_t owner, bool own)
{
	uint32_t i;

	for (i = 0; i < s->seg.members; i++) {
		uint64_t old = owner_of(s, i);

		if (own ? old >> 32 != owner >> 32 : old != 0)
			continue;
		if (!owner_change(s, i, old, owner))
			continue;
		__atomic_store_n(&shared_segment_member(&s->seg, i)->tid,
		    shared_lock_thread(), __ATOMIC_RELAXED);
		s->member = i;
		return true;
	}
	return false;
}

int
shared_member_claim(struct shared *s, uint64_t owner)
{
	s->owner = 0;
	if (!claim(s, owner, true) && !claim(s, owner, false))
		return -ENOSPC;
	s->owner = owner;
	return 0;
}

void
shared_member_clear_locked(struct shared *s, uint32_t set, uint32_t member,
    struct shared_mask *woken, usec_t now)
{
	struct shared_set *shared = shared_segment_set(&s->seg, set);
	uint32_t left = shared->in_use;

	for (; left != 0; left &= left - 1) {
		uint32_t index = (uint32_t)__builtin_ctz(left);
		struct shared_slot *slot =
		    shared_set_slot(&s->seg, shared, index);

		shared_slot_clear_cell(&s->seg, slot, member);
		shared_slot_note_use(&s->seg, shared, index);
		shared_waiters_grant(
		    &s->seg, slot, SHARED_MEMBERS_MAX, now, woken);
	}
	shared_set_wake_refused(shared, woken);
}

bool
shared_member_clear(
    struct shared *s, uint32_t member, uint64_t owner, usec_t now)
{
	bool whole = true;
	uint32_t set;

	for (set = 0; set < s->seg.sets; set++) {
		struct shared_mask woken = { 0 };
		bool same;

		if (!shared_set_lock(s, set, now)) {
			s->sets[set].unclean |= member == s->member;
			whole = false;
			continue;
		}
		same = owner_of(s, member) == owner;
		if (same)
			shared_member_clear_locked(s, set, member, &woken, now);
		shared_set_unlock(s, set);
		shared_wake_members(s, &woken, set);
		if (!same)
			break;
	}
	return whole;
}

bool
shared_member_forget(struct shared *s, uint32_t member, usec_t now)
{
	uint64_t owner = s->forgets[member];

	if (!shared_member_clear(s, member, owner, now))
		return false;
	(void)owner_change(s, member, owner, 0);
	s->forgets[member] = 0;
	return true;
}

void
shared_member_give_up(struct shared *s, usec_t now)
{
	if (s->owner != 0 && shared_member_clear(s, s->member, s->owner, now))
		(void)owner_change(s, s->member, s->owner, 0);
	s->owner = 0;
}
