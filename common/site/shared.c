/* The functions of site/site.h, and places that are kept. */
#include <string.h>

#include "site/shared_parts.h"

struct site *
site_open(
    struct shared *shared, uint32_t transport, const char *name, usec_t now)
{
	struct shared_handle *h;

	ASSERT(transport < shared->count);
	h = shared_handle_get(shared, transport, name);
	if (h == NULL)
		return NULL;
	if (h->opens++ == 0) {
		h->user = NULL;
		h->opened_at = now;
	}
	return shared_handle_site(h);
}

void **
site_user(struct site *site)
{
	return &shared_handle_of(site)->user;
}

const char *
site_name(const struct site *site)
{
	const struct shared_handle *h = (const void *)site;

	return h->name + h->nexthop_at;
}

void
site_view(const struct site *site, struct site_view *ret_view)
{
	*ret_view = ((const struct shared_handle *)(const void *)site)->seen;
}

/* The view while the site cannot be read: full. */
static enum site_state
unseen(struct shared_handle *h)
{
	h->seen = (struct site_view){
		.state = SITE_FULL,
		.window = h->seen.window > 0 ? h->seen.window : 1,
		.busy = h->held - h->kept,
		.deaths = h->seen.deaths,
	};
	return SITE_FULL;
}

static bool
is_barred(const struct shared *s, struct site *site)
{
	return s->barred != NULL && s->barred(s->barred_ctx, site);
}

enum site_state
site_state(struct site *site, usec_t now)
{
	struct shared_handle *h = shared_handle_of(site);
	enum site_state state;
	struct shared_access a;

	if (!shared_access_begin(&a, h, now))
		return unseen(h);
	state = shared_access_state(&a);
	shared_access_end(&a);
	return state == SITE_ROOM && is_barred(h->shared, site) ? SITE_FULL
								: state;
}

static enum site_state
wait_in(struct shared_handle *h, bool waits, usec_t now)
{
	enum site_state state;
	struct shared_access a;

	if (!shared_access_begin(&a, h, now)) {
		h->waits = waits;
		return unseen(h);
	}
	state = shared_access_state(&a);
	if (!waits)
		shared_access_leave(&a);
	else if (state == SITE_FULL)
		shared_access_wait(&a);
	h->waits =
	    waits && (state == SITE_FULL || (state == SITE_ROOM && h->waits));
	shared_access_end(&a);
	return state;
}

void
site_close(struct site *site, usec_t now)
{
	struct shared_handle *h = shared_handle_of(site);

	ASSERT(h->opens > 0);
	if (--h->opens > 0)
		return;
	shared_handle_set_ready(h, false);
	if (h->has_ticket)
		(void)wait_in(h, false, now);
	h->waits = false;
	shared_handle_watch(h);
	if (h->held > 0 || h->has_ticket)
		return;
	shared_handle_release(h);
}

enum site_state
site_wait(struct site *site, bool waits, usec_t now)
{
	struct shared_handle *h = shared_handle_of(site);
	enum site_state state;

	state = wait_in(h, waits, now);
	if (waits && state == SITE_ROOM && is_barred(h->shared, site)) {
		(void)wait_in(h, false, now);
		state = SITE_FULL;
	}
	shared_handle_watch(h);
	if (h->watched)
		shared_work_at(h->shared, now + CHECK_AGAIN);
	return state;
}

/* The place counts when the set and slot are sound after it was taken: they may
 * be written over at any moment. */
static enum site_state
take_in(struct shared_access *a)
{
	enum site_state state = shared_access_state(a);
	const uint32_t kept = a->h->kept;

	if (state != SITE_ROOM)
		return state;
	if (is_barred(a->s, shared_handle_site(a->h)) || !shared_access_take(a))
		return SITE_FULL;
	if (shared_access_is_sound(a))
		return SITE_ROOM;
	if (a->h->kept == kept)
		shared_access_give_back(a);
	a->h->kept = kept;
	shared_lose(a->s, "it was written over while a place was taken");
	return SITE_FULL;
}

enum site_state
site_take(struct site *site, usec_t now)
{
	struct shared_handle *h = shared_handle_of(site);
	struct shared *s = h->shared;
	enum site_state state;
	struct shared_access a;

	if (!shared_access_begin(&a, h, now))
		return unseen(h);
	state = take_in(&a);
	if (state == SITE_ROOM) {
		h->waits = false;
		s->figures.takes++;
	}
	s->figures.full += state == SITE_FULL;
	shared_access_end(&a);
	shared_handle_watch(h);
	return state;
}

static void
copy_view(struct shared_access *a, struct site_view *ret_view, char *why)
{
	shared_access_view(a, ret_view);
	if (ret_view->why != NULL) {
		memcpy(why, ret_view->why, SITE_WHY_MAX + 1);
		ret_view->why = why;
	}
}

/* The result is written later; until then the place stays taken. A doubted end
 * of a second message is the failure that window_doubt() would make of it. */
static void
owe(struct shared_handle *h, const struct site_report *report, usec_t now)
{
	enum site_result result = report->result;

	if (result == SITE_UNTRIED)
		return;
	if (result == SITE_DOUBTED && h->owed[result] > 0 &&
	    h->doubted != report->message)
		result = SITE_FAILED;
	else if (result == SITE_DOUBTED)
		h->doubted = report->message;
	h->owed[result]++;
	if (result == SITE_FAILED || result == SITE_DOUBTED)
		(void)shared_handle_keep_why(h, report->why);
	shared_handle_watch(h);
	shared_work_at(h->shared, now + TELL_AGAIN);
}

static void
report_in(struct shared_handle *h, const struct site_report *report, usec_t now,
    struct site_step *step)
{
	struct shared *s = h->shared;
	struct shared_access a;

	if (!shared_access_begin(&a, h, now)) {
		(void)unseen(h);
		step->before = step->after = h->seen;
		owe(h, report, now);
		return;
	}
	copy_view(&a, &step->before, s->why_before);
	if (report->result != SITE_UNTRIED) {
		ASSERT(h->held > 0);
		shared_access_report(&a, report);
		shared_access_give_back(&a);
	}
	copy_view(&a, &step->after, s->why_after);
	shared_access_end(&a);
	shared_handle_watch(h);
}

void
site_done(struct site *site, const struct site_report *report, usec_t now,
    struct site_step *ret_step)
{
	struct site_step step = { .result = report->result };
	struct shared_handle *h = shared_handle_of(site);

	report_in(h, report, now, &step);
	if (ret_step != NULL)
		*ret_step = step;
	shared_handle_release(h);
}

uint32_t
site_transport(const struct site *site)
{
	return ((const struct shared_handle *)(const void *)site)->transport;
}

/* ---- places that are kept ---- */

/* The cell follows at the next access, which is that of done(). */
void
shared_keep(struct site *site)
{
	struct shared_handle *h = shared_handle_of(site);

	h->held++;
	h->shared->held++;
	h->kept++;
}

void
shared_keep_not(struct site *site)
{
	struct shared_handle *h = shared_handle_of(site);

	ASSERT(h->kept > 0);
	h->kept--;
}

enum shared_want
shared_want(struct site *site, uint32_t given_up, usec_t turn, usec_t now)
{
	enum shared_want want;
	struct shared_access a;

	if (!shared_access_begin(&a, shared_handle_of(site), now))
		return SHARED_WANT_NONE;
	want = shared_access_want(&a, given_up, turn);
	shared_access_end(&a);
	return want;
}

void
shared_yield(struct site *site, usec_t now)
{
	struct shared_handle *h = shared_handle_of(site);
	struct shared_access a;

	if (!h->has_ticket || !shared_access_begin(&a, h, now))
		return;
	shared_access_pass_on(&a);
	if (h->waits && shared_access_state(&a) == SITE_FULL)
		shared_access_wait(&a);
	shared_access_end(&a);
	shared_handle_watch(h);
}

/* ---- all ---- */

static void
flush_set(struct shared *s, uint32_t set, usec_t now)
{
	if (!shared_set_lock(s, set, now)) {
		s->sets[set].flush = s->untidy = true;
		shared_work_at(s, now + TELL_AGAIN);
		return;
	}
	shared_set_flush(s, shared_segment_set(&s->seg, set));
	shared_set_unlock(s, set);
}

void
site_flush(struct shared *shared, usec_t now)
{
	uint32_t set;

	for (set = 0; set < shared->seg.sets; set++)
		flush_set(shared, set, now);
}
