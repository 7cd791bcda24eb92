#include "queue-send/agents/own.h"

#include <stdio.h>

#include "queue-send/message/path.h"

/* A suspect's attempt is over: the next one is without other suspects. */
static void
judge(struct message *m, bool alone)
{
	if (m->fate > FATE_SUSPECT)
		return;
	if (retry_is_poison(m->deaths, alone))
		m->fate = FATE_POISON;
	else if (m->deaths >= RETRY_SUSPECT_DEATHS)
		m->fate = FATE_SUSPECT;
}

/* The death of an agent that was asked to stop is not counted. */
static void
count_death(struct send *s, struct message *m, bool alone)
{
	m->agent_died = true;
	if (m->death == s->links->agent_deaths || s->stopping)
		return;
	m->death = s->links->agent_deaths;
	if (m->deaths < UINT8_MAX)
		m->deaths++;
	judge(m, alone);
}

/* Write the reasons in bounce/ of a message that is put aside. */
static void
add_poison_reasons(struct send *s, const struct delivery *d)
{
	char text[64];
	uint32_t i;

	snprintf(text, sizeof(text), "%u agents died while delivering it",
	    d->message->deaths);
	for (i = 0; i < d->nrcpts; i++) {
		const struct report report = {
			.index = d->rcpts[i].index,
			.address = d->rcpts[i].address,
			.dsn = "5.3.0",
			.relay = "none",
			.text = text,
		};

		if (d->rcpts[i].reported)
			continue;
		results_add_reason(s, d->message, &report);
	}
}

static bool
has_one_message(const struct agent_link *agent)
{
	const struct delivery *first = TAILQ_FIRST(&agent->deliveries), *d;

	TAILQ_FOREACH (d, &agent->deliveries, of_agent)
		if (d->message != first->message)
			return false;
	return true;
}

void
deaths_of_agent(struct send *s, struct agent_link *agent)
{
	bool alone = has_one_message(agent);
	struct delivery *d;

	s->links->agent_deaths++;
	while ((d = TAILQ_FIRST(&agent->deliveries)) != NULL) {
		if (!d->closing)
			count_death(s, d->message, alone);
		if (d->message->fate == FATE_POISON)
			add_poison_reasons(s, d);
		if (s->stopping)
			replies_defer_rest(
			    s, d, AGENT_CANCELLED_DSN, AGENT_STOPPED, true);
		else
			replies_defer_rest(
			    s, d, "4.3.0", "the delivery agent died", true);
		delivery_end(s, d, SITE_AGENT_DIED, NULL);
	}
}
