#include "qscheduler/supervisor/scale.h"

#include <string.h>

void
scale_init(struct scale *scale)
{
	memset(scale, 0, sizeof(*scale));
}

static usec_t
elapsed(usec_t now, usec_t then)
{
	usec_t length;

	if (now < then)
		return 0;
	return __builtin_sub_overflow(now, then, &length) ? USEC_NEVER : length;
}

static uint64_t
add(uint64_t a, uint64_t b)
{
	uint64_t sum;

	return __builtin_add_overflow(a, b, &sum) ? UINT64_MAX : sum;
}

/* ---- figures ---- */

static void
take_figures(const struct scale_input *in, struct scale_figures *f)
{
	uint64_t sum = 0;
	uint32_t i;

	memset(f, 0, sizeof(*f));
	for (i = 0; i < in->n; i++) {
		const struct scale_queue *q = &in->queues[i];

		f->wanted += q->wanted;
		f->usable += q->usable;
		if (!q->known)
			continue;
		f->known++;
		sum += q->load_pct;
		f->waiting = add(f->waiting, q->waiting);
		f->rate = add(f->rate, q->rate);
		f->by_hand |= q->by_hand;
	}
	if (f->known > 0)
		f->mean_pct = (uint32_t)(sum / f->known);
	/* Rounded up: a load that is only nearly low enough is not. */
	f->without_pct = f->known < 2
	    ? UINT32_MAX
	    : (uint32_t)((sum + f->known - 2) / (f->known - 1));
}

uint32_t
scale_mean_pct(const struct scale_input *in)
{
	struct scale_figures f;

	take_figures(in, &f);
	return f.mean_pct;
}

/* ---- conditions and their times ---- */

static bool
is_over(const struct scale_params *p, const struct scale_figures *f)
{
	return f->known > 0 && f->mean_pct >= p->threshold_pct &&
	    (f->waiting > 0 || f->by_hand) && f->wanted < p->max;
}

static bool
is_under(const struct scale_params *p, const struct scale_figures *f)
{
	return f->known > p->min && f->known > 1 &&
	    f->without_pct <= p->threshold_pct / 2;
}

static bool
is_low(const struct scale_params *p, const struct scale_figures *f)
{
	return f->known > 0 && f->mean_pct <= p->threshold_pct / 2;
}

static void
follow(bool holds, bool anew, usec_t now, bool *held, usec_t *since)
{
	if (holds && (!*held || anew))
		*since = now;
	*held = holds;
}

static void
follow_all(struct scale *s, const struct scale_params *p,
    const struct scale_figures *f, usec_t now)
{
	const bool anew = !s->decided || now < s->decided_at ||
	    elapsed(now, s->decided_at) > SCALE_GAP;

	/* A clock that went back must not hold changes off for ever. */
	if (s->changed && now < s->changed_at)
		s->changed_at = now;
	follow(is_over(p, f), anew, now, &s->over, &s->over_since);
	follow(is_under(p, f), anew, now, &s->under, &s->under_since);
	follow(is_low(p, f), anew, now, &s->low, &s->low_since);
	s->decided = true;
	s->decided_at = now;
}

static bool
has_held(bool holds, usec_t since, usec_t now, usec_t time)
{
	return holds && elapsed(now, since) >= time;
}

/* ---- the effect of the last queue that was added ---- */

/* Half of the share of one of so many. */
static uint64_t
half_share(uint64_t of, uint32_t n)
{
	return of / 2 / (n > 0 ? n : 1);
}

static bool
has_helped(const struct scale *s, const struct scale_figures *f)
{
	const uint64_t less =
	    s->base_pct - half_share(s->base_pct, s->base_known);
	const uint64_t more =
	    add(s->base_rate, half_share(s->base_rate, s->base_known));

	return f->mean_pct < less || f->rate > more;
}

static void
judge(struct scale *s, const struct scale_params *p,
    const struct scale_figures *f, usec_t now)
{
	if (has_held(s->low, s->low_since, now, p->grow_time)) {
		s->doubled = 0;
		s->judging = false;
	}
	if (!s->judging || elapsed(now, s->changed_at) < p->interval)
		return;
	s->judging = false;
	if (has_helped(s, f))
		s->doubled = 0;
	else if (s->doubled < SCALE_DOUBLED_MAX)
		s->doubled++;
}

usec_t
scale_interval(const struct scale *scale, const struct scale_params *params)
{
	usec_t t;

	return __builtin_mul_overflow(
		   params->interval, (usec_t)1 << scale->doubled, &t)
	    ? USEC_NEVER
	    : t;
}

/* ---- the decision ---- */

static bool
may_change(const struct scale *s, usec_t now, usec_t interval)
{
	return !s->changed || elapsed(now, s->changed_at) >= interval;
}

/* The highest that is usable; by load, the highest whose load is known. */
static bool
find_highest(const struct scale_input *in, bool known, uint32_t *ret_index)
{
	uint32_t i;

	for (i = in->n; i > 0; i--)
		if (known ? in->queues[i - 1].known
			  : in->queues[i - 1].usable) {
			*ret_index = i - 1;
			return true;
		}
	return false;
}

static enum scale_act
act_on_count(const struct scale_params *p, const struct scale_input *in,
    const struct scale_figures *f, uint32_t *ret_index)
{
	uint32_t held = in->held;

	if (held > p->max)
		held = p->max;
	if (held < p->min)
		held = p->min;
	if (f->usable < held)
		return f->wanted < p->max ? SCALE_GROW : SCALE_NOTHING;
	return f->usable > held && find_highest(in, false, ret_index)
	    ? SCALE_RETIRE
	    : SCALE_NOTHING;
}

static enum scale_act
act_on_load(const struct scale *s, const struct scale_params *p,
    const struct scale_input *in, struct scale_decision *d)
{
	const struct scale_figures *f = &d->figures;
	const usec_t interval = f->by_hand ? p->interval : scale_interval(s, p);

	if (has_held(s->over, s->over_since, in->now, p->grow_time) &&
	    may_change(s, in->now, interval)) {
		d->held_for = elapsed(in->now, s->over_since);
		return SCALE_GROW;
	}
	if (has_held(s->under, s->under_since, in->now, p->shrink_time) &&
	    may_change(s, in->now, p->interval) &&
	    find_highest(in, true, &d->index)) {
		d->held_for = elapsed(in->now, s->under_since);
		return SCALE_RETIRE;
	}
	return SCALE_NOTHING;
}

static void
decide(const struct scale *s, const struct scale_params *p,
    const struct scale_input *in, struct scale_decision *d)
{
	if (in->busy)
		return;
	if (in->held > 0) {
		d->act = act_on_count(p, in, &d->figures, &d->index);
	} else if (d->figures.wanted < p->min) {
		if (may_change(s, in->now, p->interval))
			d->act = SCALE_GROW;
	} else if (p->dynamic) {
		d->act = act_on_load(s, p, in, d);
		d->by_load = d->act != SCALE_NOTHING;
	}
}

static void
remember(struct scale *s, const struct scale_decision *d, usec_t now)
{
	s->changed = true;
	s->changed_at = now;
	s->over = s->under = false; /* held for what is no more */
	s->judging = d->by_load && d->act == SCALE_GROW && !d->figures.by_hand;
	s->base_pct = d->figures.mean_pct;
	s->base_known = d->figures.known;
	s->base_rate = d->figures.rate;
}

enum scale_act
scale_decide(struct scale *scale, const struct scale_params *params,
    const struct scale_input *in, struct scale_decision *ret_decision)
{
	struct scale_decision d = { .act = SCALE_NOTHING };

	take_figures(in, &d.figures);
	follow_all(scale, params, &d.figures, in->now);
	judge(scale, params, &d.figures, in->now);
	decide(scale, params, in, &d);
	if (d.act != SCALE_NOTHING)
		remember(scale, &d, in->now);
	*ret_decision = d;
	return d.act;
}

void
scale_undone(struct scale *scale)
{
	scale->judging = false;
}
