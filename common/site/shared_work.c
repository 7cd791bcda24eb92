/* What is not done at once: looking again, telling what could not be told,
 * passing on a turn that is not used. */
#include "site/shared_parts.h"

static void
want(struct shared *s, usec_t *next, usec_t when)
{
	if (when < *next)
		*next = when;
	if (*next < s->told) {
		s->told = *next;
		waker_kick(&s->waker);
	}
}

void
work_at(struct shared *s, usec_t when)
{
	want(s, &s->next_look, when);
}

void
work_note_turn(struct handle *h, usec_t now)
{
	if (!h->lined || h->turn_at != 0)
		return;
	h->turn_at = now;
	want(h->shared, &h->shared->next_pass, now + SHARED_TURN);
}

/* False: it was not to be had. */
static bool
look_again(struct handle *h, usec_t now)
{
	enum site_state state;
	struct look l;

	if (!look_begin(&l, h, now))
		return false;
	state = look_state(&l);
	if (!h->waits)
		look_line_out(&l);
	else if (state == SITE_FULL)
		look_line_in(&l);
	else
		handle_set_ready(h, true);
	if (state == SITE_ROOM) {
		h->shared->found += h->lined && h->turn_at == 0;
		work_note_turn(h, now);
	}
	look_end(&l);
	handle_watch(h);
	handle_release(h);
	return true;
}

/* True: to all that are watched in the set. */
static bool
look_at_set(struct shared *s, uint32_t set, usec_t now)
{
	struct handle *h, *next;
	bool all = true;

	for (h = LIST_FIRST(&s->sets[set].watched); h != NULL; h = next) {
		next = LIST_NEXT(h, watch);
		all &= look_again(h, now);
	}
	return all;
}

/* What others have told. */
static void
look_where_told(struct shared *s, usec_t now)
{
	uint64_t *bits = segment_column(&s->seg, s->column)->bits;
	uint32_t i, set;

	for (i = 0; i < (s->seg.sets + 63) / 64; i++) {
		uint64_t left = __atomic_load_n(&bits[i], __ATOMIC_RELAXED);

		if (left != 0)
			left =
			    __atomic_exchange_n(&bits[i], 0, __ATOMIC_ACQUIRE);
		for (; left != 0; left &= left - 1) {
			set = i * 64 + (uint32_t)__builtin_ctzll(left);
			if (set < s->seg.sets)
				(void)look_at_set(s, set, now);
		}
	}
}

/* ---- what is left over ---- */

static bool
tidy_set(struct shared *s, uint32_t set, usec_t now)
{
	struct local_set *local = &s->sets[set];
	struct column_mask woken = { 0 };

	if (!local->unclean && !local->flush)
		return true;
	if (!set_lock(s, set, now))
		return false;
	set_tidy(s, set, &woken, now);
	set_unlock(s, set);
	wake_columns(s, &woken, set);
	return true;
}

static bool
tidy(struct shared *s, usec_t now)
{
	bool whole = true;
	uint32_t i;

	for (i = 0; i < s->seg.columns; i++)
		if (s->forgets[i] != 0)
			whole &= column_forget(s, i, now);
	for (i = 0; i < s->seg.sets; i++)
		whole &= tidy_set(s, i, now);
	return whole;
}

static void
look_at_all(struct shared *s, usec_t now)
{
	uint64_t before = s->found;
	bool all = true;
	uint32_t set;

	s->next_look = USEC_NEVER;
	if (s->untidy)
		s->untidy = !tidy(s, now);
	if (s->uncounted)
		s->uncounted = !handles_count(s, now);
	for (set = 0; s->watched > 0 && set < s->seg.sets; set++)
		all &= look_at_set(s, set, now);
	s->figures.wakes_lost += s->found - before;
	if (!all || s->untidy || s->uncounted)
		work_at(s, now + TELL_AGAIN);
	else if (s->watched > 0)
		work_at(s, now + LOOK_AGAIN);
}

/* ---- turns ---- */

/* Its agents are busy, or it has nothing to send there any more: others may
 * have the place, and this queue is the last in line. */
static void
pass(struct handle *h, usec_t now)
{
	struct look l;

	if (!look_begin(&l, h, now))
		return;
	if (h->turn_at != 0) {
		look_pass(&l);
		if (h->waits && look_state(&l) == SITE_FULL)
			look_line_in(&l);
	}
	look_end(&l);
	handle_watch(h);
	handle_release(h);
}

static void
pass_in_set(struct shared *s, uint32_t set, usec_t now)
{
	struct handle *h, *next;

	for (h = LIST_FIRST(&s->sets[set].watched); h != NULL; h = next) {
		next = LIST_NEXT(h, watch);
		if (h->turn_at != 0 && h->turn_at + SHARED_TURN <= now)
			pass(h, now);
		else if (h->turn_at != 0 &&
		    h->turn_at + SHARED_TURN < s->next_pass)
			s->next_pass = h->turn_at + SHARED_TURN;
	}
}

static void
pass_turns(struct shared *s, usec_t now)
{
	uint32_t set;

	s->next_pass = USEC_NEVER;
	for (set = 0; s->watched > 0 && set < s->seg.sets; set++)
		pass_in_set(s, set, now);
}

/* ---- all of it ---- */

/* Whoever is called may open and close sites. */
static void
give_ready(struct shared *s, void (*ready)(void *ctx, void *mine), void *ctx)
{
	struct handle *h;

	while ((h = TAILQ_FIRST(&s->ready)) != NULL) {
		handle_set_ready(h, false);
		if (h->mine != NULL)
			ready(ctx, h->mine);
	}
}

usec_t
shared_work(struct shared *s, usec_t now, void (*ready)(void *ctx, void *mine),
    void *ctx)
{
	if (s->alone != NULL)
		return USEC_NEVER;
	waker_clear(&s->waker);
	if (shared_is_lost(s)) {
		s->told = s->next_look = s->next_pass = USEC_NEVER;
		return USEC_NEVER;
	}
	look_where_told(s, now);
	if (now >= s->next_pass)
		pass_turns(s, now);
	if (now >= s->next_look)
		look_at_all(s, now);
	give_ready(s, ready, ctx);
	s->told = s->next_look < s->next_pass ? s->next_look : s->next_pass;
	return s->told;
}

void
shared_forget(
    struct shared *shared, uint32_t queue, uint32_t generation, usec_t now)
{
	uint64_t owner = column_owner(queue, generation);
	uint32_t i;

	if (shared->alone != NULL || owner >> 32 == 0 || owner == shared->owner)
		return;
	for (i = 0; i < shared->seg.columns; i++) {
		if (__atomic_load_n(&segment_column(&shared->seg, i)->owner,
			__ATOMIC_ACQUIRE) != owner)
			continue;
		shared->forgets[i] = owner;
		if (!column_forget(shared, i, now)) {
			shared->untidy = true;
			work_at(shared, now + TELL_AGAIN);
		}
	}
}
