#include "queue-send/agents/own.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "queue-send/backlog/backlog.h"
#include "queue-send/message/path.h"
#include "queue-send/schedule/schedule.h"
#include "route/mx_site.h"

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

/* ---- replies of an agent ---- */

#define PHASE_MAX (86400 * USEC_PER_SEC)

static bool
copy_string(char *out, size_t size, const struct msg_str *from)
{
	if (from->len >= size)
		return false;
	memcpy(out, from->data, from->len);
	out[from->len] = '\0';
	return true;
}

/* "4.4.1": the class fits the outcome, the rest are numbers. */
static bool
dsn_fits(const char *dsn, char class)
{
	size_t subject, detail;

	if (dsn[0] != class || dsn[1] != '.')
		return false;
	subject = strspn(dsn + 2, "0123456789");
	if (subject < 1 || subject > 3 || dsn[2 + subject] != '.')
		return false;
	detail = strspn(dsn + 3 + subject, "0123456789");
	return detail >= 1 && detail <= 3 && dsn[3 + subject + detail] == '\0';
}

static const struct {
	char class;
	const char *dsn;
} outcomes[AGENT_NOUTCOMES] = {
	[AGENT_SENT] = { '2', "2.0.0" },
	[AGENT_DEFERRED] = { '4', "4.0.0" },
	[AGENT_FAILED] = { '5', "5.0.0" },
};

static const char *
dsn_for(const char *dsn, enum agent_outcome outcome)
{
	return dsn_fits(dsn, outcomes[outcome].class) ? dsn
						      : outcomes[outcome].dsn;
}

static usec_t
phase(usec_t t)
{
	return t < 0 ? 0 : t > PHASE_MAX ? PHASE_MAX : t;
}

static int
compare_rcpt(const void *key, const void *element)
{
	const uint32_t *index = key;
	const struct delivery_rcpt *rcpt = element;

	return (*index > rcpt->index) - (*index < rcpt->index);
}

static struct delivery_rcpt *
find_rcpt(struct delivery *d, uint32_t index)
{
	return bsearch(
	    &index, d->rcpts, d->nrcpts, sizeof(d->rcpts[0]), compare_rcpt);
}

/* The recipient has its result, of which the rest is the caller's. */
static struct report
begin_report(
    const struct send *s, const struct delivery *d, struct delivery_rcpt *rcpt)
{
	rcpt->reported = true;
	return (struct report){
		.index = rcpt->index,
		.offset = rcpt->offset,
		.address = rcpt->address,
		.relay = "none",
		.selected_at = d->selected_at,
		.kind = (uint8_t)s->conf->transports[d->entry->transport].kind,
		.passed_on = rcpt->passed_on,
	};
}

int
replies_on_passed_on(
    struct send *s, struct agent_link *agent, const struct msg_PASSED_ON *f)
{
	struct delivery *d = delivery_of(s, agent, f->job);
	struct delivery_rcpt *rcpt;

	rcpt = d == NULL ? NULL : find_rcpt(d, f->rcpt);
	if (rcpt == NULL || rcpt->reported)
		return -EBADMSG;
	rcpt->passed_on = true;
	return 0;
}

int
replies_on_greeted(
    struct send *s, struct agent_link *agent, const struct msg_GREETED *f)
{
	struct delivery *d = delivery_of(s, agent, f->job);

	if (d == NULL || d->greeted)
		return -EBADMSG;
	d->greeted = true;
	ungreeted_greeted(s, d->entry);
	return 0;
}

int
replies_on_result(
    struct send *s, struct agent_link *agent, const struct msg_RESULT *f)
{
	char dsn[AGENT_DSN_MAX + 1], relay[AGENT_RELAY_MAX + 1],
	    text[AGENT_TEXT_MAX + 1];
	struct delivery *d = delivery_of(s, agent, f->job);
	struct delivery_rcpt *rcpt;
	struct report report;

	if (d == NULL || f->outcome >= AGENT_NOUTCOMES)
		return -EBADMSG;
	rcpt = find_rcpt(d, f->rcpt);
	if (rcpt == NULL || rcpt->reported ||
	    !copy_string(dsn, sizeof(dsn), &f->dsn) ||
	    !copy_string(relay, sizeof(relay), &f->relay) ||
	    !copy_string(text, sizeof(text), &f->text))
		return -EBADMSG;
	report = begin_report(s, d, rcpt);
	report.outcome = (enum agent_outcome)f->outcome;
	report.dsn = dsn_for(dsn, report.outcome);
	report.text = text;
	report.conn = phase(f->conn_usec);
	report.xfer = phase(f->xfer_usec);
	if (relay[0] != '\0')
		report.relay = relay;
	/* New messages of an expansion lie in incoming/: no bell rang. */
	s->want_scan |= report.kind == AGENT_ALIAS;
	results_apply(s, d->message, &report);
	return 0;
}

void
replies_defer_rest(struct send *s, struct delivery *d, const char *dsn,
    const char *text, bool ours)
{
	struct delivery_rcpt *rcpt;
	struct report report;

	for (rcpt = d->rcpts; rcpt < d->rcpts + d->nrcpts; rcpt++) {
		if (rcpt->reported)
			continue;
		report = begin_report(s, d, rcpt);
		report.outcome = AGENT_DEFERRED;
		report.dsn = dsn;
		report.text = text;
		report.ours = ours;
		results_apply(s, d->message, &report);
	}
}

static enum site_result
site_result(const struct msg_DONE *f)
{
	if (f->site == AGENT_SITE_FAILED)
		return SITE_FAILED;
	if (f->site == AGENT_SITE_DOUBTED)
		return SITE_DOUBTED;
	/* With a reason: trouble of the agent itself. */
	return f->dsn.len > 0 ? SITE_AGENT_DIED : SITE_DELIVERED;
}

int
replies_on_done(
    struct send *s, struct agent_link *agent, const struct msg_DONE *f)
{
	char dsn[AGENT_DSN_MAX + 1], text[AGENT_TEXT_MAX + 1];
	char why[sizeof(dsn) + sizeof(text)];
	struct delivery *d = delivery_of(s, agent, f->job);

	if (d == NULL || f->site >= AGENT_SITE_NENDS ||
	    !copy_string(dsn, sizeof(dsn), &f->dsn) ||
	    !copy_string(text, sizeof(text), &f->text))
		return -EBADMSG;
	replies_defer_rest(s, d, dsn_for(dsn, AGENT_DEFERRED),
	    text[0] == '\0' ? "the agent gave no result" : text, false);
	snprintf(why, sizeof(why), "%s %s", dsn_for(dsn, AGENT_DEFERRED), text);
	delivery_end(s, d, site_result(f), why);
	return 0;
}

/* Only of a delivery that was asked for it, and of which nothing was told. */
static bool
may_move(const struct delivery *d)
{
	uint32_t i;

	if (d == NULL || !d->placed)
		return false;
	for (i = 0; i < d->nrcpts; i++)
		if (d->rcpts[i].reported)
			return false;
	return true;
}

int
replies_on_elsewhere(
    struct send *s, struct agent_link *agent, const struct msg_ELSEWHERE *f)
{
	struct delivery *d = delivery_of(s, agent, f->job);
	char site[MX_SITE_MAX + 1];
	const char *to;

	if (!may_move(d) || !copy_string(site, sizeof(site), &f->site) ||
	    (site[0] != '\0' && !mx_site_fits(f->site.data, f->site.len)))
		return -EBADMSG;
	to = site[0] == '\0' ? d->nexthop : site;
	if (strcasecmp(to, d->entry->destination) == 0)
		return -EBADMSG;
	rollup_note(s, d->entry->transport, d->nexthop, site, f->seconds);
	if (rollup_is_last_move(d->entry))
		to = d->nexthop;
	delivery_move(s, d, to);
	return 0;
}
