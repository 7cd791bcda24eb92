#include <string.h>

#include "site/shared_parts.h"

/* ---- what befalls a slot ---- */

static bool
slot_is_dead(const struct look *l)
{
	return (l->set->dead >> l->way & 1) != 0;
}

static void
slot_revive(struct look *l)
{
	l->set->dead &= ~(UINT32_C(1) << l->way);
	l->slot->dead_until = 0;
}

static void
slot_reopen(struct look *l)
{
	slot_revive(l);
	window_init(&l->slot->window, l->rules);
}

/* A time that nobody can have meant ends sooner. */
static void
slot_reopen_due(struct look *l)
{
	usec_t longest = site_remembered(&l->s->backoff);

	if (l->slot->dead_until > l->now &&
	    l->slot->dead_until - l->now > longest)
		l->slot->dead_until = l->now + longest;
	if (l->slot->dead_until <= l->now)
		slot_reopen(l);
}

/* Since it was used; a time that nobody can have written is now. */
static usec_t
slot_age(const struct look *l)
{
	const usec_t used = l->set->used[l->way];

	return used < 0 || used > l->now ? 0 : l->now - used;
}

static void
slot_forget_aged(struct look *l)
{
	if ((l->set->in_use >> l->way & 1) != 0 || slot_is_dead(l) ||
	    slot_age(l) <= site_remembered(&l->s->backoff))
		return;
	window_init(&l->slot->window, l->rules);
	l->slot->deaths = 0;
}

static void
keep_why(struct slot *slot, const char *why)
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
slot_kill(struct look *l, const char *why)
{
	struct slot *slot = l->slot;

	if (slot->deaths < UINT32_MAX)
		slot->deaths++;
	slot->dead_until = site_dead_until(
	    &l->s->backoff, slot->deaths, &l->s->random, l->now);
	slot->window.success = slot->window.failure = 0;
	keep_why(slot, why);
	l->set->dead |= UINT32_C(1) << l->way;
	line_clear(&l->s->seg, slot, &l->woken);
	/* Whoever has reported it knows. */
	mask_remove(&l->woken, l->s->column);
	l->h->lined = false;
}

static void
slot_success(struct look *l)
{
	uint32_t busy = line_busy(&l->s->seg, l->slot);

	l->slot->deaths = 0;
	if (slot_is_dead(l)) {
		slot_revive(l);
		window_revive(&l->slot->window, l->rules, busy);
	} else {
		window_success(&l->slot->window, l->rules, busy);
	}
}

/* ---- a look ---- */

static void
note_in_use(struct look *l)
{
	l->set->in_use |= UINT32_C(1) << l->way;
}

/* Who knows how many places are held here is this process. */
static void
set_cell(struct look *l)
{
	uint32_t *cell = &slot_busy_cells(l->slot)[l->s->column];

	if (*cell == l->h->held)
		return;
	if (l->h->held > 0)
		note_in_use(l);
	__atomic_store_n(cell, l->h->held, __ATOMIC_RELAXED);
}

static void
settle(struct look *l)
{
	line_settle(&l->s->seg, l->slot, l->s->column, l->now, &l->woken);
}

static void
enter(struct look *l, int way)
{
	struct handle *h = l->h;

	l->way = (uint32_t)way;
	l->slot = set_slot(&l->s->seg, l->set, l->way);
	h->way = (uint8_t)way;
	table_mend_slot(l->slot);
	if (slot_is_dead(l))
		slot_reopen_due(l);
	slot_forget_aged(l);
	window_fit(&l->slot->window, l->rules);
	set_cell(l);
	settle(l);
	h->lined = slot_tickets(&l->s->seg, l->slot)[l->s->column] != 0;
	if (!h->lined)
		h->turn_at = 0;
}

static bool
make(struct look *l)
{
	int way = table_make(l->s, l->set, l->h, l->now);

	if (way < 0)
		return false;
	enter(l, way);
	return true;
}

void
set_tidy(struct shared *s, uint32_t set, struct column_mask *woken, usec_t now)
{
	struct local_set *local = &s->sets[set];

	if (local->unclean)
		column_clear_locked(s, set, s->column, woken, now);
	if (local->flush)
		set_flush(s, segment_set(&s->seg, set));
	local->unclean = local->flush = false;
}

static void
pay(struct look *l)
{
	static const enum site_result order[] = { SITE_FAILED, SITE_DELIVERED,
		SITE_AGENT_DIED };
	struct handle *h = l->h;
	size_t i;

	for (i = 0; i < ARRAY_LEN(order); i++)
		for (; h->owed[order[i]] > 0; h->owed[order[i]]--) {
			look_report(l, order[i], h->why);
			look_give_back(l);
		}
}

static void
find(struct look *l, int way)
{
	if (way >= 0)
		enter(l, way);
	else if (l->h->held > 0)
		(void)make(l);
	if (l->slot == NULL)
		l->h->lined = false;
}

bool
look_begin(struct look *l, struct handle *h, usec_t now)
{
	struct shared *s = h->shared;
	int way;

	*l = (struct look){
		.s = s, .h = h, .rules = &s->rules[h->transport], .now = now
	};
	if (shared_is_lost(s)) /* until it is moved to another one */
		return false;
	if (!set_lock(s, h->set, now)) {
		work_at(s, now + TELL_AGAIN);
		return false;
	}
	l->set = segment_set(&s->seg, h->set);
	way = table_find(s, l->set, h);
	if (way < TABLE_NONE) {
		shared_lose(s, "a destination was written over");
		set_unlock(s, h->set);
		return false;
	}
	set_tidy(s, h->set, &l->woken, now);
	find(l, way);
	pay(l);
	return true;
}

bool
look_is_sound(const struct look *l)
{
	const struct segment *seg = &l->s->seg;

	return segment_is_sound(seg) && set_is_sealed(seg, l->h->set) &&
	    (l->slot == NULL || slot_is_sealed(seg, l->slot));
}

void
look_view(struct look *l, struct site_view *ret_view)
{
	struct site_view view = { .busy = l->h->held };
	struct window w;

	if (l->slot != NULL) {
		w = l->slot->window;
		view.busy = line_busy(&l->s->seg, l->slot);
		view.deaths = l->slot->deaths;
	} else {
		window_init(&w, l->rules);
	}
	view.window = w.window;
	view.success = w.success;
	view.failure = w.failure;
	view.fail_cohorts = w.fail_cohorts;
	view.state = view.busy < w.window ? SITE_ROOM : SITE_FULL;
	if (l->slot != NULL && slot_is_dead(l)) {
		view.state = SITE_DEAD;
		view.dead_until = l->slot->dead_until;
		view.why = l->slot->why;
	}
	*ret_view = view;
}

/* A slot that nobody needs and that has learned nothing is free at once. */
static void
leave(struct look *l)
{
	settle(l);
	l->set->used[l->way] = l->now;
	if (table_note_use(&l->s->seg, l->set, l->way))
		return;
	if (l->slot->deaths == 0 && !slot_is_dead(l) &&
	    window_is_fresh(&l->slot->window, l->rules))
		l->set->hash[l->way] = 0;
	set_wake_refused(l->set, &l->woken);
}

void
look_end(struct look *l)
{
	struct handle *h = l->h;

	look_view(l, &h->seen);
	if (h->seen.why != NULL)
		h->seen.why = handle_keep_why(h, h->seen.why);
	if (l->slot != NULL)
		leave(l);
	set_unlock(l->s, h->set);
	wake_columns(l->s, &l->woken, h->set);
}

/* ---- what is done in it ---- */

static bool
has_room(const struct look *l)
{
	return line_has_room(&l->s->seg, l->slot, l->s->column);
}

enum site_state
look_state(struct look *l)
{
	uint32_t column = l->s->column;

	if (!segment_is_open(&l->s->seg)) {
		work_at(l->s, l->now + TELL_AGAIN);
		return SITE_FULL;
	}
	if (l->slot == NULL) {
		if (table_has_spare(l->set))
			return SITE_ROOM;
		l->set->refused[column / 64] |= UINT64_C(1) << column % 64;
		l->s->figures.crowded++;
		return SITE_FULL;
	}
	if (slot_is_dead(l))
		return SITE_DEAD;
	if (has_room(l))
		return SITE_ROOM;
	if (!table_scrub(&l->s->seg, l->slot))
		return SITE_FULL;
	settle(l);
	return has_room(l) ? SITE_ROOM : SITE_FULL;
}

void
look_line_in(struct look *l)
{
	if (l->slot == NULL || l->h->lined)
		return;
	note_in_use(l);
	line_in(&l->s->seg, l->slot, l->s->column);
	l->h->lined = true;
	l->h->turn_at = 0;
	l->s->figures.waits++;
}

void
look_line_out(struct look *l)
{
	if (l->slot != NULL)
		line_out(&l->s->seg, l->slot, l->s->column);
	l->h->lined = false;
	l->h->turn_at = 0;
}

bool
look_take(struct look *l)
{
	if (l->slot == NULL && !make(l))
		return false;
	l->h->held++;
	l->s->held++;
	set_cell(l);
	look_line_out(l);
	return true;
}

void
look_report(struct look *l, enum site_result result, const char *why)
{
	if (l->slot == NULL)
		return;
	if (result == SITE_DELIVERED)
		slot_success(l);
	else if (result == SITE_FAILED && !slot_is_dead(l) &&
	    window_failure(&l->slot->window, l->rules))
		slot_kill(l, why);
}

void
look_give_back(struct look *l)
{
	l->h->held--;
	l->s->held--;
	if (l->slot != NULL)
		set_cell(l);
}

void
look_pass(struct look *l)
{
	look_line_out(l);
	if (l->slot != NULL)
		settle(l);
}

void
set_flush(struct shared *s, struct set *set)
{
	uint32_t left;

	for (left = set->dead; left != 0; left &= left - 1)
		set_slot(&s->seg, set, (uint32_t)__builtin_ctz(left))
		    ->dead_until = 0;
}

void
set_wake_refused(struct set *set, struct column_mask *woken)
{
	size_t i;

	if (!table_has_spare(set))
		return;
	for (i = 0; i < ARRAY_LEN(woken->bits); i++) {
		woken->bits[i] |= set->refused[i];
		set->refused[i] = 0;
	}
}
