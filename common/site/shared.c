/* The functions of site/site.h, and places that are kept. */
#include <string.h>

#include "site/shared_parts.h"

struct site *
site_open(
    struct shared *shared, uint32_t transport, const char *name, usec_t now)
{
	struct site *site;

	ASSERT(transport < shared->count);
	site = shared_handle_get(shared, transport, name);
	if (site == NULL)
		return NULL;
	if (site->opens++ == 0) {
		site->user = NULL;
		site->opened_at = now;
	}
	return site;
}

void **
site_user(struct site *site)
{
	return &site->user;
}

const char *
site_name(const struct site *site)
{
	return site->name + site->nexthop_at;
}

void
site_view(const struct site *site, struct site_view *ret_view)
{
	*ret_view = site->seen;
}

/* The view while the site cannot be read: full. */
static enum site_state
unseen(struct site *site)
{
	site->seen = (struct site_view){
		.state = SITE_FULL,
		.window = site->seen.window > 0 ? site->seen.window : 1,
		.busy = site->held - site->kept,
		.deaths = site->seen.deaths,
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
	enum site_state state;
	struct shared_access a;

	if (!shared_access_begin(&a, site, now))
		return unseen(site);
	state = shared_access_state(&a);
	shared_access_end(&a);
	return state == SITE_ROOM && is_barred(site->shared, site) ? SITE_FULL
								   : state;
}

static enum site_state
wait_in(struct site *site, bool waits, usec_t now)
{
	enum site_state state;
	struct shared_access a;

	if (!shared_access_begin(&a, site, now)) {
		site->waits = waits;
		return unseen(site);
	}
	state = shared_access_look(&a, waits);
	site->waits = waits &&
	    (state == SITE_FULL || (state == SITE_ROOM && site->waits));
	shared_access_end(&a);
	return state;
}

void
site_close(struct site *site, usec_t now)
{
	ASSERT(site->opens > 0);
	if (--site->opens > 0)
		return;
	shared_handle_set_ready(site, false);
	if (site->has_ticket)
		(void)wait_in(site, false, now);
	site->waits = false;
	shared_handle_watch(site);
	if (site->held > 0 || site->has_ticket)
		return;
	shared_handle_release(site);
}

enum site_state
site_wait(struct site *site, bool waits, usec_t now)
{
	enum site_state state;

	state = wait_in(site, waits, now);
	if (waits && state == SITE_ROOM && is_barred(site->shared, site)) {
		(void)wait_in(site, false, now);
		state = SITE_FULL;
	}
	shared_handle_watch(site);
	if (site->watched)
		shared_work_at(site->shared, now + CHECK_AGAIN);
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
	if (is_barred(a->s, a->h) || !shared_access_take(a))
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
	struct shared *s = site->shared;
	enum site_state state;
	struct shared_access a;

	if (!shared_access_begin(&a, site, now))
		return unseen(site);
	state = take_in(&a);
	if (state == SITE_ROOM) {
		site->waits = false;
		s->figures.takes++;
	}
	s->figures.full += state == SITE_FULL;
	shared_access_end(&a);
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
owe(struct site *site, const struct site_report *report, usec_t now)
{
	enum site_result result = report->result;

	if (result == SITE_UNTRIED)
		return;
	if (result == SITE_DOUBTED && site->owed[result] > 0 &&
	    site->doubted != report->message)
		result = SITE_FAILED;
	else if (result == SITE_DOUBTED)
		site->doubted = report->message;
	site->owed[result]++;
	if (result == SITE_FAILED || result == SITE_DOUBTED)
		(void)shared_handle_keep_why(site, report->why);
	shared_handle_watch(site);
	shared_work_at(site->shared, now + TELL_AGAIN);
}

static void
report_in(struct site *site, const struct site_report *report, usec_t now,
    struct site_step *step)
{
	struct shared *s = site->shared;
	struct shared_access a;

	if (!shared_access_begin(&a, site, now)) {
		(void)unseen(site);
		step->before = step->after = site->seen;
		owe(site, report, now);
		return;
	}
	copy_view(&a, &step->before, s->why_before);
	if (report->result != SITE_UNTRIED) {
		ASSERT(site->held > 0);
		shared_access_report(&a, report);
		shared_access_give_back(&a);
	}
	copy_view(&a, &step->after, s->why_after);
	shared_access_end(&a);
}

void
site_done(struct site *site, const struct site_report *report, usec_t now,
    struct site_step *ret_step)
{
	struct site_step step = { .result = report->result };

	report_in(site, report, now, &step);
	if (ret_step != NULL)
		*ret_step = step;
	shared_handle_release(site);
}

uint32_t
site_transport(const struct site *site)
{
	return site->transport;
}

/* ---- places that are kept ---- */

/* The cell follows at the next access, which is that of done(). */
void
shared_keep(struct site *site)
{
	site->held++;
	site->shared->held++;
	site->kept++;
}

void
shared_keep_not(struct site *site)
{
	ASSERT(site->kept > 0);
	site->kept--;
}

enum shared_want
shared_want(struct site *site, uint32_t given_up, usec_t turn, usec_t now)
{
	enum shared_want want;
	struct shared_access a;

	if (!shared_access_begin(&a, site, now))
		return SHARED_WANT_NONE;
	want = shared_access_want(&a, given_up, turn);
	shared_access_end(&a);
	return want;
}

void
shared_yield(struct site *site, usec_t now)
{
	struct shared_access a;

	if (!site->has_ticket || !shared_access_begin(&a, site, now))
		return;
	shared_access_pass_on(&a);
	shared_access_end(&a);
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
