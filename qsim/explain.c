/* qsim explain: why each selection was made, in words. */
#include <errno.h>
#include <inttypes.h>

#include "qsim/qsim.h"

struct explain {
	const struct scenario *sc;
	struct buf text;
};

static const struct conf_transport *
transport_of(const struct explain *x, const struct sched_entry *e)
{
	return &x->sc->conf.transports[e->transport];
}

/* Slots in words: whole ones and what is over, in parts of the cost. */
static int
add_slots(struct buf *out, int64_t slots, uint32_t cost)
{
	if (cost < 2)
		return buf_printf(out, "%" PRId64 " slots", slots);
	return buf_printf(out, "%" PRId64 "/%" PRIu32 " slots", slots, cost);
}

static int
add_job(const struct explain *x, const struct sched_job_view *job,
    uint32_t cost, struct buf *out)
{
	int r = buf_printf(out,
	    "message %" PRIu32 " (%" PRIu32 " of %" PRIu32
	    " entries selected, ",
	    simulate_number(x->sc, job->owner), job->selected, job->total);

	if (r == 0)
		r = add_slots(out, job->slots, cost);
	return r < 0 ? r : buf_add_str(out, ")");
}

/* ---- preempted, or why not (rule 5) ---- */

static int
say_off(
    const struct explain *x, const struct sched_decision *d, struct buf *out)
{
	return buf_printf(out, "not preempted: delivery_slot_cost is %" PRIu32,
	    transport_of(x, d->entry)->sched.delivery_slot_cost);
}

static int
say_no_slots(const struct explain *x UNUSED,
    const struct sched_decision *d UNUSED, struct buf *out)
{
	return buf_add_str(out, "not preempted: it has no slots to pay with");
}

static int
say_small(
    const struct explain *x, const struct sched_decision *d, struct buf *out)
{
	const struct conf_transport *t = transport_of(x, d->entry);

	return buf_printf(out,
	    "not preempted: its %" PRIu32 " entries are fewer than %" PRIu32
	    " minimum slots at a cost of %" PRIu32,
	    d->current.total, t->sched.minimum_delivery_slots,
	    t->sched.delivery_slot_cost);
}

/* Rule 5.2: the most that it can pay for to its end. */
static int64_t
affordable(const struct explain *x, const struct sched_decision *d)
{
	return ((int64_t)d->current.total - d->current.selected +
		   d->current.slots) /
	    transport_of(x, d->entry)->sched.delivery_slot_cost;
}

static int
say_nobody(
    const struct explain *x, const struct sched_decision *d, struct buf *out)
{
	return buf_printf(out,
	    "not preempted: no candidate needs at most %" PRId64 " entries",
	    affordable(x, d));
}

/* Rule 5.3, both sides of it. */
static int
add_price(
    const struct explain *x, const struct sched_decision *d, struct buf *out)
{
	const struct conf_transport *t = transport_of(x, d->entry);
	uint32_t needed = d->candidate.total - d->candidate.selected;
	uint32_t after = needed * (100 - t->sched.delivery_slot_discount);
	int r = buf_printf(out,
	    "message %" PRIu32 " is the best candidate (score %.3f s per "
	    "entry, needs %" PRIu32 "): ",
	    simulate_number(x->sc, d->candidate.owner), d->score, needed);

	if (r < 0)
		return r;
	return buf_printf(out,
	    "%" PRId64 " whole slots + loan %" PRIu32 " are %s %" PRIu32
	    ".%02" PRIu32 " (%" PRIu32 " less %" PRIu32 " %%)",
	    d->current.slots / t->sched.delivery_slot_cost,
	    t->sched.delivery_slot_loan,
	    d->preemption == SCHED_PREEMPT_DONE ? "at least" : "less than",
	    after / 100, after % 100, needed, t->sched.delivery_slot_discount);
}

static int
say_unpaid(
    const struct explain *x, const struct sched_decision *d, struct buf *out)
{
	int r = buf_add_str(out, "not preempted yet: ");

	return r < 0 ? r : add_price(x, d, out);
}

static int
say_done(
    const struct explain *x, const struct sched_decision *d, struct buf *out)
{
	int r = buf_add_str(out, "preempted: ");

	return r < 0 ? r : add_price(x, d, out);
}

static int (*const say[])(const struct explain *x,
    const struct sched_decision *d, struct buf *out) = {
	[SCHED_PREEMPT_OFF] = say_off,
	[SCHED_PREEMPT_NO_SLOTS] = say_no_slots,
	[SCHED_PREEMPT_SMALL] = say_small,
	[SCHED_PREEMPT_NOBODY] = say_nobody,
	[SCHED_PREEMPT_UNPAID] = say_unpaid,
	[SCHED_PREEMPT_DONE] = say_done,
};

/* ---- lines ---- */

/* The job that would have given an entry had no room for it. */
static int
add_gone_by(
    const struct explain *x, const struct sched_decision *d, struct buf *out)
{
	void *first = d->preemption == SCHED_PREEMPT_DONE ? d->candidate.owner
							  : d->current.owner;

	if (first == d->entry->owner)
		return 0;
	return buf_printf(out,
	    "; message %" PRIu32 " is full, message %" PRIu32
	    " is the next that is not",
	    simulate_number(x->sc, first),
	    simulate_number(x->sc, d->entry->owner));
}

static int
add_current(
    const struct explain *x, const struct sched_decision *d, struct buf *out)
{
	int r = buf_add_str(out, "    current: ");

	if (r == 0)
		r = add_job(x, &d->current,
		    transport_of(x, d->entry)->sched.delivery_slot_cost, out);
	if (r == 0)
		r = buf_add_str(out, "; ");
	if (r == 0)
		r = say[d->preemption](x, d, out);
	if (r == 0)
		r = add_gone_by(x, d, out);
	return r < 0 ? r : buf_add_char(out, '\n');
}

static int
add_window(const struct sched_decision *d, struct buf *out)
{
	return buf_printf(out,
	    "    %s: %" PRIu32 " of a window of %" PRIu32 " in use%s\n",
	    d->entry->destination, d->site.busy, d->site.window,
	    d->last ? "; this is the last entry of its job" : "");
}

static int
explain_selection(void *ctx, const struct simulate_selection *selection)
{
	struct explain *x = ctx;
	const struct sched_decision *d = selection->decision;
	int r;

	buf_reset(&x->text);
	r = replay_add_line(x->sc, selection, &x->text);
	if (r == 0)
		r = add_current(x, d, &x->text);
	if (r == 0)
		r = add_window(d, &x->text);
	return r < 0 ? r : qsim_print(&x->text);
}

static int
add_outcome(const struct simulate_report *report, struct buf *out)
{
	const struct sched_entry *e = report->entry;

	if (report->result == SITE_DELIVERED)
		return buf_printf(
		    out, "message %" PRIu32 " was delivered", report->message);
	return buf_printf(out,
	    "message %" PRIu32 ": %" PRIu32 " recipients deferred%s: %s",
	    report->message, e->nrcpts,
	    report->result == SITE_UNTRIED ? " without an attempt" : "",
	    report->why);
}

static int
add_change(const struct site_step *step, struct buf *out)
{
	char time[QSIM_TIME_MAX];

	if (step == NULL)
		return 0;
	if (step->after.state == SITE_DEAD && step->before.state != SITE_DEAD)
		return buf_printf(out, "; it is dead until %s",
		    qsim_time(step->after.dead_until, time));
	if (step->before.window == step->after.window)
		return buf_printf(
		    out, "; its window stays %" PRIu32, step->after.window);
	return buf_printf(out, "; its window was %" PRIu32 " and is %" PRIu32,
	    step->before.window, step->after.window);
}

/* Deliveries that change nothing are not worth a line. */
static int
explain_report(void *ctx, const struct simulate_report *report)
{
	struct explain *x = ctx;
	const struct site_step *step = report->step;
	const struct scenario_destination *d =
	    &x->sc->destinations[report->destination];
	char time[QSIM_TIME_MAX];
	int r;

	if (report->result == SITE_DELIVERED &&
	    step->before.window == step->after.window &&
	    step->before.state != SITE_DEAD)
		return 0;
	buf_reset(&x->text);
	r = buf_printf(&x->text, "%s at %s/%s: ", qsim_time(report->now, time),
	    x->sc->conf.transports[d->transport].name, d->name);
	if (r == 0)
		r = add_outcome(report, &x->text);
	if (r == 0)
		r = add_change(step, &x->text);
	if (r == 0)
		r = buf_add_char(&x->text, '\n');
	return r < 0 ? r : qsim_print(&x->text);
}

int
explain_main(const struct options *o)
{
	struct scenario sc;
	struct explain x = { .sc = &sc };
	const struct simulate_watch watch = {
		.ctx = &x,
		.selected = explain_selection,
		.reported = explain_report,
	};
	int code = qsim_run(o, "explain", &watch, &sc);

	buf_done(&x.text);
	return code;
}
