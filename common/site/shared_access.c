#include <stdlib.h>
#include <string.h>

#include "site/shared_parts.h"

/* ---- deaths and age of a slot ---- */

static bool
slot_is_dead(const struct shared_access *a)
{
	return (a->set->dead >> a->index & 1) != 0;
}

static void
slot_revive(struct shared_access *a)
{
	a->set->dead &= ~(UINT32_C(1) << a->index);
	a->slot->dead_until = 0;
}

static void
slot_reopen(struct shared_access *a)
{
	slot_revive(a);
	window_init(&a->slot->window, a->rules);
}

/* A death that lasts longer than any can is damage, and ends sooner. */
static void
slot_reopen_due(struct shared_access *a)
{
	usec_t longest = site_remembered(&a->s->backoff);

	if (a->slot->dead_until > a->now &&
	    a->slot->dead_until - a->now > longest)
		a->slot->dead_until = a->now + longest;
	if (a->slot->dead_until <= a->now)
		slot_reopen(a);
}

/* The time for which the slot was not used before the site was opened here:
 * mail of an open site may wait for an agent. An impossible one is 0. */
static usec_t
slot_age(const struct shared_access *a)
{
	const usec_t used = a->set->used[a->index];
	const usec_t until = a->h->opens > 0 ? a->h->opened_at : a->now;

	return used < 0 || used > until ? 0 : until - used;
}

static void
slot_forget_aged(struct shared_access *a)
{
	if ((a->set->in_use >> a->index & 1) != 0 || slot_is_dead(a) ||
	    slot_age(a) <= site_remembered(&a->s->backoff))
		return;
	window_init(&a->slot->window, a->rules);
	a->slot->deaths = 0;
}

static void
keep_why(struct shared_slot *slot, const char *why)
{
	size_t len = site_why_len(why);

	if (len == 0) {
		why = SITE_WHY_UNKNOWN;
		len = strlen(why);
	}
	memcpy(slot->why, why, len);
	slot->why[len] = '\0';
}

static void
slot_kill(struct shared_access *a, const char *why)
{
	struct shared_slot *slot = a->slot;

	if (slot->deaths < UINT32_MAX)
		slot->deaths++;
	slot->dead_until = site_dead_until(
	    &a->s->backoff, slot->deaths, &a->s->random, a->now);
	slot->dead_since = a->now;
	slot->window.success = slot->window.failure = 0;
	keep_why(slot, why);
	a->set->dead |= UINT32_C(1) << a->index;
	shared_waiters_clear(&a->s->seg, slot, &a->woken);
	/* This process reports the death, so it need not be woken. */
	shared_mask_remove(&a->woken, a->s->member);
	a->h->has_ticket = false;
}

/* Places with a delivery; of the other queues all places are taken for such. */
static uint32_t
deliveries(const struct shared_access *a)
{
	uint32_t busy = shared_slot_busy(&a->s->seg, a->slot);

	return busy > a->h->kept ? busy - a->h->kept : 0;
}

static void
slot_success(struct shared_access *a)
{
	uint32_t busy = deliveries(a);

	a->slot->deaths = 0;
	if (slot_is_dead(a)) {
		slot_revive(a);
		window_revive(&a->slot->window, a->rules, busy);
	} else {
		window_success(&a->slot->window, a->rules, busy);
	}
}

/* ---- begin and end of an access ---- */

static void
note_in_use(struct shared_access *a)
{
	a->set->in_use |= UINT32_C(1) << a->index;
}

/* The handle knows how many places this process holds; the cell follows. */
static void
set_cell(struct shared_access *a)
{
	uint32_t *cell = &shared_slot_busy_cells(a->slot)[a->s->member];

	if (*cell == a->h->held)
		return;
	if (a->h->held > 0)
		note_in_use(a);
	__atomic_store_n(cell, a->h->held, __ATOMIC_RELAXED);
}

static void
settle(struct shared_access *a)
{
	shared_waiters_grant(
	    &a->s->seg, a->slot, a->s->member, a->now, &a->woken);
}

static void
enter(struct shared_access *a, int index)
{
	struct site *h = a->h;

	a->index = (uint32_t)index;
	a->slot = shared_set_slot(&a->s->seg, a->set, a->index);
	h->index = (uint8_t)index;
	shared_slot_mend(a->slot);
	if (slot_is_dead(a))
		slot_reopen_due(a);
	slot_forget_aged(a);
	window_fit(&a->slot->window, a->rules);
	set_cell(a);
	settle(a);
	h->has_ticket =
	    shared_slot_tickets(&a->s->seg, a->slot)[a->s->member] != 0;
	if (!h->has_ticket)
		h->granted_at = 0;
}

static bool
make(struct shared_access *a)
{
	int index = shared_slot_make(a->s, a->set, a->h, a->now);

	if (index < 0)
		return false;
	enter(a, index);
	return true;
}

void
shared_set_tidy(
    struct shared *s, uint32_t set, struct shared_mask *woken, usec_t now)
{
	struct shared_set_state *local = &s->sets[set];

	if (local->unclean)
		shared_member_clear_locked(s, set, s->member, woken, now);
	if (local->flush)
		shared_set_flush(s, shared_segment_set(&s->seg, set));
	local->unclean = local->flush = false;
}

static void
pay(struct shared_access *a)
{
	static const enum site_result order[] = { SITE_DOUBTED, SITE_FAILED,
		SITE_DELIVERED, SITE_AGENT_DIED };
	struct site *h = a->h;
	size_t i;

	for (i = 0; i < ARRAY_LEN(order); i++)
		for (; h->owed[order[i]] > 0; h->owed[order[i]]--) {
			const struct site_report report = { order[i],
				h->doubted, h->why };

			shared_access_report(a, &report);
			shared_access_give_back(a);
		}
}

static void
find(struct shared_access *a, int index)
{
	if (index >= 0)
		enter(a, index);
	else if (a->h->held > 0)
		(void)make(a);
	if (a->slot == NULL)
		a->h->has_ticket = false;
}

const char *
shared_handle_keep_why(struct site *h, const char *why)
{
	size_t len = site_why_len(why);

	if (h->why == NULL)
		h->why = malloc(SITE_WHY_MAX + 1);
	if (h->why == NULL || len == 0)
		return SITE_WHY_UNKNOWN;
	memmove(h->why, why, len);
	h->why[len] = '\0';
	return h->why;
}

bool
shared_access_begin(struct shared_access *a, struct site *h, usec_t now)
{
	struct shared *s = h->shared;
	int index;

	*a = (struct shared_access){
		.s = s, .h = h, .rules = &s->rules[h->transport], .now = now
	};
	if (shared_is_lost(s)) /* until there is another one */
		return false;
	if (!shared_set_lock(s, h->set, now)) {
		shared_work_at(s, now + TELL_AGAIN);
		return false;
	}
	a->set = shared_segment_set(&s->seg, h->set);
	index = shared_slot_find(s, a->set, h);
	if (index < SHARED_SLOT_NONE) {
		shared_lose(s, "a destination was written over");
		shared_set_unlock(s, h->set);
		return false;
	}
	shared_set_tidy(s, h->set, &a->woken, now);
	find(a, index);
	pay(a);
	return true;
}

bool
shared_access_is_sound(const struct shared_access *a)
{
	const struct shared_segment *seg = &a->s->seg;

	return shared_segment_is_sound(seg) &&
	    shared_set_is_sealed(seg, a->h->set) &&
	    (a->slot == NULL || shared_slot_is_sealed(seg, a->slot));
}

void
shared_access_view(struct shared_access *a, struct site_view *ret_view)
{
	struct site_view view = { .busy = a->h->held - a->h->kept };
	struct window w;

	if (a->slot != NULL) {
		w = a->slot->window;
		view.busy = deliveries(a);
		view.deaths = a->slot->deaths;
	} else {
		window_init(&w, a->rules);
	}
	view.window = w.window;
	view.success = w.success;
	view.failure = w.failure;
	view.fail_cohorts = w.fail_cohorts;
	view.state = view.busy + a->h->kept < w.window ||
		(a->slot != NULL && shared_access_has_kept(a))
	    ? SITE_ROOM
	    : SITE_FULL;
	if (a->slot != NULL && slot_is_dead(a)) {
		view.state = SITE_DEAD;
		view.dead_since = a->slot->dead_since;
		view.dead_until = a->slot->dead_until;
		view.why = a->slot->why;
	}
	*ret_view = view;
}

/* A slot that is not in use and has learned nothing is free at once. */
static void
leave(struct shared_access *a)
{
	settle(a);
	a->set->used[a->index] = a->now;
	if (shared_slot_note_use(&a->s->seg, a->set, a->index))
		return;
	if (a->slot->deaths == 0 && !slot_is_dead(a) &&
	    window_is_fresh(&a->slot->window, a->rules))
		a->set->hash[a->index] = 0;
	shared_set_wake_refused(a->set, &a->woken);
}

void
shared_access_end(struct shared_access *a)
{
	struct site *h = a->h;

	shared_access_view(a, &h->seen);
	if (h->seen.why != NULL)
		h->seen.why = shared_handle_keep_why(h, h->seen.why);
	if (a->slot != NULL)
		leave(a);
	shared_set_unlock(a->s, h->set);
	shared_wake_members(a->s, &a->woken, h->set);
	shared_handle_watch(h);
}

/* ---- within an access ---- */

bool
shared_access_has_kept(const struct shared_access *a)
{
	return a->h->kept > 0 && a->slot != NULL && !slot_is_dead(a) &&
	    shared_slot_busy(&a->s->seg, a->slot) <= a->slot->window.window;
}

enum shared_want
shared_access_want(
    const struct shared_access *a, uint32_t given_up, usec_t turn)
{
	uint32_t window, queues, others;

	if (a->slot == NULL || slot_is_dead(a))
		return SHARED_WANT_NOW;
	window = a->slot->window.window;
	if (shared_slot_busy(&a->s->seg, a->slot) > window)
		return SHARED_WANT_NOW;
	others =
	    shared_waiters_count(&a->s->seg, a->slot, a->s->member, &queues);
	if (others <= given_up)
		return SHARED_WANT_NONE;
	return a->h->held - given_up > window / queues &&
		a->now - a->h->gained_at >= turn
	    ? SHARED_WANT_NOW
	    : SHARED_WANT_IDLE;
}

static bool
has_room(const struct shared_access *a)
{
	return shared_waiters_has_room(&a->s->seg, a->slot, a->s->member);
}

enum site_state
shared_access_state(struct shared_access *a)
{
	uint32_t member = a->s->member;

	if (!shared_segment_is_open(&a->s->seg)) {
		shared_work_at(a->s, a->now + TELL_AGAIN);
		return SITE_FULL;
	}
	if (a->slot == NULL) {
		if (shared_set_has_spare(a->set))
			return SITE_ROOM;
		a->set->refused[member / 64] |= UINT64_C(1) << member % 64;
		a->s->figures.crowded++;
		return SITE_FULL;
	}
	if (slot_is_dead(a))
		return SITE_DEAD;
	if (shared_access_has_kept(a) || has_room(a))
		return SITE_ROOM;
	if (!shared_slot_scrub(&a->s->seg, a->slot))
		return SITE_FULL;
	settle(a);
	return has_room(a) ? SITE_ROOM : SITE_FULL;
}

static void
wait_in_line(struct shared_access *a)
{
	if (a->slot == NULL || a->h->has_ticket)
		return;
	note_in_use(a);
	shared_waiters_add(&a->s->seg, a->slot, a->s->member);
	a->h->has_ticket = true;
	a->h->granted_at = 0;
	a->s->figures.waits++;
}

static void
leave_line(struct shared_access *a)
{
	if (a->slot != NULL)
		shared_waiters_remove(&a->s->seg, a->slot, a->s->member);
	a->h->has_ticket = false;
	a->h->granted_at = 0;
}

enum site_state
shared_access_look(struct shared_access *a, bool waits)
{
	enum site_state state = shared_access_state(a);

	if (!waits)
		leave_line(a);
	else if (state == SITE_FULL)
		wait_in_line(a);
	return state;
}

bool
shared_access_take(struct shared_access *a)
{
	if (a->slot == NULL && !make(a))
		return false;
	if (shared_access_has_kept(a)) {
		a->h->kept--;
	} else {
		a->h->held++;
		a->s->held++;
		a->h->gained_at = a->now;
		set_cell(a);
	}
	leave_line(a);
	return true;
}

void
shared_access_report(struct shared_access *a, const struct site_report *report)
{
	struct window *w;
	bool dies = false;

	if (a->slot == NULL)
		return;
	w = &a->slot->window;
	if (report->result == SITE_DELIVERED)
		slot_success(a);
	else if (slot_is_dead(a))
		return;
	else if (report->result == SITE_FAILED)
		dies = window_failure(w, a->rules);
	else if (report->result == SITE_DOUBTED)
		dies = window_doubt(w, a->rules, report->message);
	if (dies)
		slot_kill(a, report->why);
}

void
shared_access_give_back(struct shared_access *a)
{
	a->h->held--;
	a->s->held--;
	if (a->slot != NULL)
		set_cell(a);
}

void
shared_access_pass_on(struct shared_access *a)
{
	leave_line(a);
	if (a->slot != NULL)
		settle(a);
	if (a->h->waits)
		(void)shared_access_look(a, true);
}
