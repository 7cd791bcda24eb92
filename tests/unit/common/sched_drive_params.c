#include "sched_drive.h"

uint32_t
drive_dice(struct drive *d, uint32_t low, uint32_t high)
{
	uint64_t z = d->dice += 0x9e3779b97f4a7c15u;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
	z ^= z >> 31;
	return low + (uint32_t)(z % (high - low + 1));
}

bool
drive_chance(struct drive *d, uint32_t pct)
{
	return drive_dice(d, 1, 100) <= pct;
}

static struct window_feedback
feedback(struct drive *d)
{
	return (struct window_feedback){
		.amount = drive_dice(d, 0, 4) / 4.0,
		.form = (enum window_form)drive_dice(d, 0, 2),
	};
}

static void
transport_params(struct drive *d, uint32_t t)
{
	d->transports[t] = (struct sched_transport_params){
		.process_limit = drive_chance(d, 10) ? 0 : drive_dice(d, 1, 10),
		.destination_recipient_limit = drive_dice(d, 0, 5),
		.delivery_slot_cost = drive_dice(d, 0, 5),
		.delivery_slot_discount = drive_dice(d, 0, 4) * 25,
		.delivery_slot_loan = drive_dice(d, 0, 4),
		.minimum_delivery_slots = drive_dice(d, 0, 3),
		.recipient_limit = drive_dice(d, 1, 200),
		.extra_recipient_limit = drive_dice(d, 0, 60),
		.recipient_refill_limit = drive_dice(d, 1, 40),
		.recipient_refill_delay = drive_dice(d, 0, 10) * USEC_PER_SEC,
	};
	d->site_params[t] = (struct site_params){
		.initial_destination_concurrency = drive_dice(d, 0, 6),
		.destination_concurrency_limit = drive_dice(d, 0, 8),
		.positive = feedback(d),
		.negative = feedback(d),
		.failed_cohort_limit = drive_dice(d, 0, 4) / 2.0,
	};
}

void
drive_params(struct drive *d)
{
	uint32_t t;

	d->params = (struct sched_params){
		.message_recipient_limit = drive_dice(d, 1, 300),
		.message_recipient_minimum = drive_dice(d, 0, 10),
		.message_active_limit = DRIVE_MESSAGES,
	};
	d->backoff = (struct site_backoff){
		.minimal_backoff_time = drive_dice(d, 0, 5) * USEC_PER_SEC,
		.maximal_backoff_time = drive_dice(d, 5, 60) * USEC_PER_SEC,
		.jitter_pct = drive_dice(d, 0, 90),
	};
	for (t = 0; t < d->ntransports; t++)
		transport_params(d, t);
}
