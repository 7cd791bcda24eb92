#include "limits/limits.h"

static const enum window_form forms[] = {
	[FEEDBACK_FIXED] = WINDOW_FIXED,
	[FEEDBACK_PER_CONCURRENCY] = WINDOW_PER_N,
	[FEEDBACK_PER_SQRT_CONCURRENCY] = WINDOW_PER_ROOT_N,
};

static struct window_feedback
feedback_of(const struct conf_feedback *f)
{
	return (struct window_feedback){ .amount = f->amount,
		.form = forms[f->form] };
}

void
limits_sched(const struct conf *conf, struct sched_params *ret_params)
{
	*ret_params = (struct sched_params){
		.message_recipient_limit = conf->message_recipient_limit_mem,
		.message_recipient_minimum = conf->message_recipient_minimum,
		.message_active_limit = conf->message_active_limit,
	};
}

void
limits_transport(const struct conf *conf, uint32_t transport,
    struct sched_transport_params *ret_params)
{
	const struct conf_transport *t = &conf->transports[transport];

	*ret_params = (struct sched_transport_params){
		.name = t->name,
		.process_limit = t->process_limit,
		.destination_recipient_limit = t->destination_recipient_limit,
		.delivery_slot_cost = t->delivery_slot_cost,
		.delivery_slot_discount = t->delivery_slot_discount,
		.delivery_slot_loan = t->delivery_slot_loan,
		.minimum_delivery_slots = t->minimum_delivery_slots,
		.recipient_limit = t->recipient_limit,
		.extra_recipient_limit = t->extra_recipient_limit,
		.recipient_refill_limit = t->recipient_refill_limit,
		.recipient_refill_delay = t->recipient_refill_delay,
	};
}

/* An account is one user's: what its children or its mailbox hold is never more
 * than a share of the slots, whatever windows are allowed. */
static uint32_t
account_limit(const struct conf *conf, const struct conf_transport *t)
{
	uint64_t share =
	    (uint64_t)t->process_limit * conf->local_account_share / 100;
	uint32_t limit = t->destination_concurrency_limit;

	if (share == 0)
		share = 1;
	return limit == 0 || limit > share ? (uint32_t)share : limit;
}

void
limits_site(
    const struct conf *conf, uint32_t transport, struct site_params *ret_params)
{
	const struct conf_transport *t = &conf->transports[transport];

	*ret_params = (struct site_params){
		.initial_destination_concurrency =
		    t->initial_destination_concurrency,
		.destination_concurrency_limit =
		    t->destination_concurrency_limit,
		.positive = feedback_of(&t->positive_feedback),
		.negative = feedback_of(&t->negative_feedback),
		.failed_cohort_limit = t->failed_cohort_limit,
	};
	if (t->kind != AGENT_LOCAL)
		return;
	ret_params->destination_concurrency_limit = account_limit(conf, t);
	if (ret_params->initial_destination_concurrency >
	    ret_params->destination_concurrency_limit)
		ret_params->initial_destination_concurrency =
		    ret_params->destination_concurrency_limit;
}

void
limits_backoff(const struct conf *conf, struct site_backoff *ret_backoff)
{
	*ret_backoff = (struct site_backoff){
		.minimal_backoff_time = conf->minimal_backoff_time,
		.maximal_backoff_time = conf->maximal_backoff_time,
		.jitter_pct = conf->backoff_jitter_pct,
	};
}
