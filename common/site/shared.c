/* The functions of struct site_table. */
#include <string.h>

#include "site/shared_parts.h"

void
shared_lose(struct shared *s, const char *why)
{
	if (s->lost != NULL)
		return;
	s->lost = why;
	waker_kick(&s->waker); /* the caller asks for another one */
}

/* Of the table of this process, while there is no segment. */
static const struct site_table *
alone_of(const struct handle *h)
{
	return h->alone == NULL ? NULL : sites_table(h->shared->alone);
}

static struct site *
shared_open(void *table, uint32_t transport, const char *name, usec_t now)
{
	struct shared *s = table;
	const struct site_table *alone;
	struct handle *h;

	ASSERT(transport < s->count);
	h = handle_get(s, transport, name);
	if (h == NULL)
		return NULL;
	if (s->alone != NULL && h->alone == NULL) {
		alone = sites_table(s->alone);
		h->alone = alone->open(alone->table, transport, name, now);
		if (h->alone == NULL) {
			handle_release(h);
			return NULL;
		}
	}
	if (h->opens++ == 0)
		h->mine = NULL;
	return handle_site(h);
}

static void **
shared_mine(struct site *site)
{
	return &handle_of(site)->mine;
}

static const char *
shared_name(const struct site *site)
{
	const struct handle *h = (const void *)site;

	return h->name + h->nexthop_at;
}

static void
shared_view(const struct site *site, struct site_view *ret_view)
{
	const struct handle *h = (const void *)site;
	const struct site_table *alone = alone_of(h);

	if (alone != NULL)
		alone->view(h->alone, ret_view);
	else
		*ret_view = h->seen;
}

/* Nothing is known of it for now. */
static enum site_state
unseen(struct handle *h)
{
	h->seen = (struct site_view){
		.state = SITE_FULL,
		.window = h->seen.window > 0 ? h->seen.window : 1,
		.busy = h->held,
		.deaths = h->seen.deaths,
	};
	return SITE_FULL;
}

static enum site_state
shared_state(void *table UNUSED, struct site *site, usec_t now)
{
	struct handle *h = handle_of(site);
	const struct site_table *alone = alone_of(h);
	enum site_state state;
	struct look l;

	if (alone != NULL)
		return alone->state(alone->table, h->alone, now);
	if (!look_begin(&l, h, now))
		return unseen(h);
	state = look_state(&l);
	look_end(&l);
	return state;
}

static enum site_state
wait_in(struct handle *h, bool waits, usec_t now)
{
	enum site_state state;
	struct look l;

	if (!look_begin(&l, h, now)) {
		h->waits = waits;
		return unseen(h);
	}
	state = look_state(&l);
	if (!waits)
		look_line_out(&l);
	else if (state == SITE_FULL)
		look_line_in(&l);
	h->waits =
	    waits && (state == SITE_FULL || (state == SITE_ROOM && h->waits));
	look_end(&l);
	return state;
}

static void
shared_close(void *table UNUSED, struct site *site, usec_t now)
{
	struct handle *h = handle_of(site);
	const struct site_table *alone = alone_of(h);

	ASSERT(h->opens > 0);
	if (--h->opens > 0)
		return;
	handle_set_ready(h, false);
	if (h->lined)
		(void)wait_in(h, false, now);
	h->waits = false;
	handle_watch(h);
	if (h->held > 0 || h->lined)
		return;
	if (alone != NULL)
		alone->close(alone->table, h->alone, now);
	handle_release(h);
}

static enum site_state
shared_wait(void *table, struct site *site, bool waits, usec_t now)
{
	struct handle *h = handle_of(site);
	const struct site_table *alone = alone_of(h);
	enum site_state state;

	if (alone != NULL)
		return alone->state(alone->table, h->alone, now);
	state = wait_in(h, waits, now);
	handle_watch(h);
	if (h->watched)
		work_at(table, now + LOOK_AGAIN);
	return state;
}

static enum site_state
alone_take(struct handle *h, usec_t now)
{
	const struct site_table *alone = alone_of(h);
	enum site_state state = alone->take(alone->table, h->alone, now);

	if (state == SITE_ROOM) {
		h->held++;
		h->shared->held++;
	}
	return state;
}

/* What was seen before the place was taken may have been written over while it
 * was looked at. */
static enum site_state
take_in(struct look *l)
{
	enum site_state state = look_state(l);

	if (state != SITE_ROOM)
		return state;
	if (!look_take(l))
		return SITE_FULL;
	if (look_is_sound(l))
		return SITE_ROOM;
	look_give_back(l);
	shared_lose(l->s, "it was written over while a place was taken");
	return SITE_FULL;
}

static enum site_state
shared_take(void *table, struct site *site, usec_t now)
{
	struct handle *h = handle_of(site);
	struct shared *s = table;
	enum site_state state;
	struct look l;

	if (h->alone != NULL)
		return alone_take(h, now);
	if (!look_begin(&l, h, now))
		return unseen(h);
	state = take_in(&l);
	if (state == SITE_ROOM) {
		h->waits = false;
		s->figures.takes++;
	}
	s->figures.full += state == SITE_FULL;
	look_end(&l);
	handle_watch(h);
	return state;
}

static void
copy_view(struct look *l, struct site_view *ret_view, char *why)
{
	look_view(l, ret_view);
	if (ret_view->why != NULL) {
		memcpy(why, ret_view->why, SITE_WHY_MAX + 1);
		ret_view->why = why;
	}
}

/* The place stays taken until it can be told. */
static void
owe(struct handle *h, const struct site_step *step, const char *why, usec_t now)
{
	if (step->result == SITE_UNTRIED)
		return;
	h->owed[step->result]++;
	if (step->result == SITE_FAILED)
		(void)handle_keep_why(h, why);
	handle_watch(h);
	work_at(h->shared, now + TELL_AGAIN);
}

static void
report_in(struct handle *h, struct site_step *step, const char *why, usec_t now)
{
	struct shared *s = h->shared;
	struct look l;

	if (!look_begin(&l, h, now)) {
		(void)unseen(h);
		step->before = step->after = h->seen;
		owe(h, step, why, now);
		return;
	}
	copy_view(&l, &step->before, s->why_before);
	if (step->result != SITE_UNTRIED) {
		ASSERT(h->held > 0);
		look_report(&l, step->result, why);
		look_give_back(&l);
	}
	copy_view(&l, &step->after, s->why_after);
	look_end(&l);
	handle_watch(h);
}

static void
alone_done(struct handle *h, enum site_result result, const char *why,
    usec_t now, struct site_step *ret_step)
{
	const struct site_table *alone = alone_of(h);

	alone->done(alone->table, h->alone, result, why, now, ret_step);
	if (result != SITE_UNTRIED) {
		h->held--;
		h->shared->held--;
	}
	if (h->opens == 0 && h->held == 0)
		alone->close(alone->table, h->alone, now);
}

static void
shared_done(void *table UNUSED, struct site *site, enum site_result result,
    const char *why, usec_t now, struct site_step *ret_step)
{
	struct site_step step = { .result = result };
	struct handle *h = handle_of(site);

	if (h->alone != NULL) {
		alone_done(h, result, why, now, ret_step);
	} else {
		report_in(h, &step, why, now);
		if (ret_step != NULL)
			*ret_step = step;
	}
	handle_release(h);
}

static void
flush_set(struct shared *s, uint32_t set, usec_t now)
{
	if (!set_lock(s, set, now)) {
		s->sets[set].flush = s->untidy = true;
		work_at(s, now + TELL_AGAIN);
		return;
	}
	set_flush(s, segment_set(&s->seg, set));
	set_unlock(s, set);
}

static void
shared_flush(void *table, usec_t now)
{
	struct shared *s = table;
	uint32_t set;

	if (s->alone != NULL) {
		const struct site_table *alone = sites_table(s->alone);

		alone->flush(alone->table, now);
		return;
	}
	for (set = 0; set < s->seg.sets; set++)
		flush_set(s, set, now);
}

const struct site_table shared_functions = {
	.open = shared_open,
	.close = shared_close,
	.mine = shared_mine,
	.name = shared_name,
	.state = shared_state,
	.wait = shared_wait,
	.take = shared_take,
	.done = shared_done,
	.view = shared_view,
	.flush = shared_flush,
};
