#include "queue-send/agents/own.h"

#include <stdlib.h>
#include <string.h>

#include "queue-send/backlog/backlog.h"
#include "queue-send/message/path.h"
#include "queue-send/schedule/schedule.h"

static int
delivery_compare(const struct delivery *a, const struct delivery *b)
{
	return (a->id > b->id) - (a->id < b->id);
}

TREE_GENERATE(delivery_tree, delivery, link, delivery_compare)

struct delivery *
delivery_find(struct send *s, uint64_t id)
{
	struct delivery key;

	key.id = id;
	return RB_FIND(delivery_tree, &s->links->deliveries, &key);
}

struct delivery *
delivery_of(struct send *s, const struct agent_link *agent, uint64_t id)
{
	struct delivery *d = delivery_find(s, id);

	return d == NULL || d->agent != agent || d->closing ? NULL : d;
}

bool
delivery_is_of(const struct send *s, const struct message *m)
{
	const struct agent_link *agent;
	const struct delivery *d;

	TAILQ_FOREACH (agent, &s->agents, link)
		TAILQ_FOREACH (d, &agent->deliveries, of_agent)
			if (d->message == m)
				return true;
	return false;
}

void
delivery_cancel(struct send *s, const struct message *m, uint8_t stage)
{
	struct agent_link *agent;
	struct delivery *d;

	TAILQ_FOREACH (agent, &s->agents, link)
		TAILQ_FOREACH (d, &agent->deliveries, of_agent)
			if (m == NULL || d->message == m)
				delivery_cancel_one(d, stage);
}

const char *
delivery_destination(struct send *s, uint32_t transport, const char *nexthop)
{
	const struct rolled *said = rollup_find(s, transport, nexthop);
	const struct agent_link *agent;
	const struct delivery *d;

	if (said != NULL)
		return said->site;
	TAILQ_FOREACH (agent, &s->agents, link)
		TAILQ_FOREACH (d, &agent->deliveries, of_agent)
			if (d->entry->transport == transport &&
			    strcasecmp(d->nexthop, nexthop) == 0)
				return d->entry->destination;
	return NULL;
}

struct delivery *
delivery_new(struct send *s, struct sched_entry *e, const char *nexthop,
    const struct buf *addresses)
{
	size_t list = e->nrcpts * sizeof(struct delivery_rcpt);
	size_t hop = strlen(nexthop) + 1;
	struct delivery *d =
	    calloc(1, sizeof(*d) + list + addresses->len + hop);
	char *string;
	uint32_t i;

	if (d == NULL)
		return NULL;
	string = (char *)d->rcpts + list;
	memcpy(string, addresses->data, addresses->len);
	for (i = 0; i < e->nrcpts; i++) {
		d->rcpts[i] = (struct delivery_rcpt){
			.offset = e->rcpts[i].offset,
			.index = e->rcpts[i].index,
			.address = string,
		};
		string += strlen(string) + 1;
	}
	d->nexthop = memcpy(string, nexthop, hop);
	d->id = ++s->links->last_delivery;
	d->message = e->owner;
	d->entry = e;
	d->selected_at = e->selected_at;
	d->nrcpts = e->nrcpts;
	return d;
}

void
delivery_begin(struct send *s, struct delivery *d, struct agent_link *agent)
{
	d->agent = agent;
	RB_INSERT(delivery_tree, &s->links->deliveries, d);
	TAILQ_INSERT_TAIL(&agent->deliveries, d, of_agent);
}

static void
leave(struct send *s, struct delivery *d)
{
	RB_REMOVE(delivery_tree, &s->links->deliveries, d);
	TAILQ_REMOVE(&d->agent->deliveries, d, of_agent);
}

void
delivery_move(struct send *s, struct delivery *d, const char *destination)
{
	leave(s, d);
	if (d->greeted)
		ungreeted_greeted_over(s, d->entry);
	entry_move(s, d->entry, destination);
	free(d);
	s->pub.changed = true;
	send_wake(s);
}

void
delivery_end(struct send *s, struct delivery *d, enum site_result result,
    const char *why)
{
	struct message *m = d->message;
	const struct site_report report = { result, message_hash(m), why };

	leave(s, d);
	if (d->greeted)
		ungreeted_greeted_over(s, d->entry);
	else if (result == SITE_FAILED)
		ungreeted_failed(s, d->entry);
	ungreeted_over(s, d->entry);
	claims_end(s, m, d->entry);
	sched_report(s->sched, d->entry, &report, s->now);
	free(d);
	settle_message(s, m);
	s->pub.changed = true;
	send_wake(s);
}
