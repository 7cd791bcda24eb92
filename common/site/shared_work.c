/* Work that is left for later: checks of sites that are waited at, results that
 * could not be written, grants that were not used. */
#include "site/shared_parts.h"

/* False: the site could not be read. */
static bool
check(struct site *h, usec_t now)
{
	enum site_state state;
	struct shared_access a;

	if (!shared_access_begin(&a, h, now))
		return false;
	state = shared_access_look(&a, h->waits);
	if (h->waits && state != SITE_FULL)
		shared_handle_set_ready(h, true);
	if (state == SITE_ROOM) {
		h->shared->found += h->has_ticket && h->granted_at == 0;
		shared_work_note_grant(h, now);
	}
	shared_access_end(&a);
	shared_handle_release(h);
	return true;
}

/* False: a site that is watched could not be read. */
static bool
check_set(struct shared *s, uint32_t set, usec_t now)
{
	struct site *h, *next;
	bool all = true;

	for (h = LIST_FIRST(&s->sets[set].watched); h != NULL; h = next) {
		next = LIST_NEXT(h, watch);
		all &= check(h, now);
	}
	return all;
}

/* Check the sets that others have told of. */
static void
check_where_told(struct shared *s, usec_t now)
{
	uint64_t *bits = shared_segment_member(&s->seg, s->member)->bits;
	uint32_t i, set;

	for (i = 0; i < (s->seg.sets + 63) / 64; i++) {
		uint64_t left = __atomic_load_n(&bits[i], __ATOMIC_RELAXED);

		if (left != 0)
			left =
			    __atomic_exchange_n(&bits[i], 0, __ATOMIC_ACQUIRE);
		for (; left != 0; left &= left - 1) {
			set = i * 64 + (uint32_t)__builtin_ctzll(left);
			if (set < s->seg.sets)
				(void)check_set(s, set, now);
		}
	}
}

/* ---- sets that could not be cleared or flushed ---- */

static bool
tidy_set(struct shared *s, uint32_t set, usec_t now)
{
	struct shared_set_state *local = &s->sets[set];
	struct shared_mask woken = { 0 };

	if (!local->unclean && !local->flush)
		return true;
	if (!shared_set_lock(s, set, now))
		return false;
	shared_set_tidy(s, set, &woken, now);
	shared_set_unlock(s, set);
	shared_wake_members(s, &woken, set);
	return true;
}

static bool
tidy(struct shared *s, usec_t now)
{
	bool whole = true;
	uint32_t i;

	for (i = 0; i < s->seg.members; i++)
		if (s->forgets[i] != 0)
			whole &= shared_member_forget(s, i, now);
	for (i = 0; i < s->seg.sets; i++)
		whole &= tidy_set(s, i, now);
	return whole;
}

static void
check_all(struct shared *s, usec_t now)
{
	uint64_t before = s->found;
	bool all = true;
	uint32_t set;

	s->next_check = USEC_NEVER;
	if (s->untidy)
		s->untidy = !tidy(s, now);
	if (s->uncounted)
		s->uncounted = !shared_handles_count(s, now);
	for (set = 0; s->watched > 0 && set < s->seg.sets; set++)
		all &= check_set(s, set, now);
	s->figures.wakes_lost += s->found - before;
	if (!all || s->untidy || s->uncounted)
		shared_work_at(s, now + TELL_AGAIN);
	else if (s->watched > 0)
		shared_work_at(s, now + CHECK_AGAIN);
}

/* ---- grants ---- */

/* The agents of this queue are busy, or it has nothing to send there any more:
 * the grant goes to others, and this queue becomes the last waiter. */
static void
pass(struct site *h, usec_t now)
{
	struct shared_access a;

	if (!shared_access_begin(&a, h, now))
		return;
	if (h->granted_at != 0)
		shared_access_pass_on(&a);
	shared_access_end(&a);
	shared_handle_release(h);
}

static void
pass_in_set(struct shared *s, uint32_t set, usec_t now)
{
	struct site *h, *next;

	for (h = LIST_FIRST(&s->sets[set].watched); h != NULL; h = next) {
		next = LIST_NEXT(h, watch);
		if (h->granted_at != 0 &&
		    h->granted_at + SHARED_GRANT_TIME <= now)
			pass(h, now);
		else if (h->granted_at != 0 &&
		    h->granted_at + SHARED_GRANT_TIME < s->next_pass_on)
			s->next_pass_on = h->granted_at + SHARED_GRANT_TIME;
	}
}

static void
pass_on_grants(struct shared *s, usec_t now)
{
	uint32_t set;

	s->next_pass_on = USEC_NEVER;
	for (set = 0; s->watched > 0 && set < s->seg.sets; set++)
		pass_in_set(s, set, now);
}

/* ---- all of it ---- */

/* ready() may open and close sites. */
static void
give_ready(struct shared *s, void (*ready)(void *ctx, void *user), void *ctx)
{
	struct site *h;

	while ((h = TAILQ_FIRST(&s->ready)) != NULL) {
		shared_handle_set_ready(h, false);
		if (h->user != NULL)
			ready(ctx, h->user);
	}
}

usec_t
shared_work(struct shared *s, usec_t now, void (*ready)(void *ctx, void *user),
    void *ctx)
{
	shared_waker_clear(&s->waker);
	if (shared_is_lost(s)) {
		s->told = s->next_check = s->next_pass_on = USEC_NEVER;
		return USEC_NEVER;
	}
	check_where_told(s, now);
	if (now >= s->next_pass_on)
		pass_on_grants(s, now);
	if (now >= s->next_check)
		check_all(s, now);
	give_ready(s, ready, ctx);
	s->told =
	    s->next_check < s->next_pass_on ? s->next_check : s->next_pass_on;
	return s->told;
}

void
shared_forget(
    struct shared *shared, uint32_t queue, uint32_t generation, usec_t now)
{
	uint64_t owner = shared_member_owner(queue, generation);
	uint32_t i;

	if (owner >> 32 == 0 || owner == shared->owner)
		return;
	for (i = 0; i < shared->seg.members; i++) {
		if (__atomic_load_n(
			&shared_segment_member(&shared->seg, i)->owner,
			__ATOMIC_ACQUIRE) != owner)
			continue;
		shared->forgets[i] = owner;
		if (!shared_member_forget(shared, i, now)) {
			shared->untidy = true;
			shared_work_at(shared, now + TELL_AGAIN);
		}
	}
}
