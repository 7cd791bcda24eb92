#include "queue-send/message/path.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>

#include "base/address.h"
#include "base/io.h"
#include "log/log.h"
#include "queue-send/backlog/backlog.h"
#include "queue-send/reports/reports.h"
#include "queue-send/message/fetch.h"
#include "queue-send/rules/rules.h"
#include "queue-send/schedule/schedule.h"

#define READ_PER_TURN 500
#define ALERT_EVERY   (60 * USEC_PER_SEC) /* of all domains together */

static const char no_rule[] =
    "no route: no rule of the routing fits, the domain is not in "
    "mydestination, and relayhost is empty";

static const char no_sender[] =
    "the sender for this recipient (VERP) would be longer than 512 octets";
_Static_assert(ADDRESS_MAX == 512, "no_sender names the limit");

/* No agent gets this recipient: its outcome is known as it is read. */
static void
settle_unrouted(struct send *s, struct message *m,
    const struct queue_rcpt *rcpt, const char *dsn, const char *text)
{
	const struct report report = {
		.index = rcpt->index,
		.offset = rcpt->offset,
		.address = rcpt->address,
		.outcome = dsn[0] == '5' ? AGENT_FAILED : AGENT_DEFERRED,
		.dsn = dsn,
		.relay = "none",
		.text = text,
		.selected_at = s->now,
	};

	results_apply(s, m, &report);
}

static void
no_route(struct send *s, struct message *m, const struct queue_rcpt *rcpt,
    const char *text)
{
	settle_unrouted(s, m, rcpt, "4.3.5", text);
}

static void
alert_unrouted(struct send *s, const char *address)
{
	if (log_due(s->now, ALERT_EVERY, &s->said_route))
		log_error("ALERT: mail for domain %s is deferred: %s",
		    address_domain(address), no_rule);
}

int
recipients_route(const struct send *s, const char *sender, const char *address,
    bool expanded, struct recipient_route *ret)
{
	struct route route;
	int transport, r;

	ret->why = no_rule;
	r = route_lookup_from(s->routes, sender, address, expanded, &route);
	if (r == -ENOMEM)
		ret->why = "no memory to look up the route";
	if (r < 0)
		return -ENOENT;
	transport = conf_transport_find(s->conf, route.transport);
	ret->why = "no such transport";
	if (transport < 0)
		return -ENOENT;
	ret->transport = (uint32_t)transport;
	ret->mailbox = route_is_mailbox(&route);
	ret->by_itself = !ret->mailbox &&
	    sched_recipient_limit(s->conf->transports[transport]
				      .sched.destination_recipient_limit) == 1;
	ret->why = "";
	return route_nexthop(&route, address, ret->nexthop, &ret->why);
}

/* True: a rule holds the message. */
static bool
hold_one(struct send *s, struct message *m, const struct queue_rcpt *rcpt,
    const struct recipient_route *to)
{
	return rules_hold(s, m, rcpt,
	    to == NULL ? NULL : s->conf->transports[to->transport].name,
	    to == NULL ? NULL : to->nexthop);
}

/* At a destination that its next hop shares with others. */
static int
add_shared(struct send *s, struct message *m, const struct sched_rcpt *handle,
    const struct rolled *at)
{
	const int r = sched_rcpt_add_shared(
	    m->sched, at->transport, at->site, at->number, handle);

	if (r < 0)
		return r;
	m->room--;
	return claims_add(s, m, at->transport, at->site, NULL);
}

static int
schedule_one(struct send *s, struct message *m, const struct queue_rcpt *rcpt,
    const struct recipient_route *to)
{
	const struct sched_rcpt handle = { rcpt->offset, rcpt->index };
	const struct rolled *shared = to->mailbox || to->by_itself
	    ? NULL
	    : rollup_find(s, to->transport, to->nexthop);
	int r;

	if (shared != NULL)
		return add_shared(s, m, &handle, shared);
	r = sched_rcpt_add(m->sched, to->transport, to->nexthop,
	    to->mailbox ? NULL : rcpt->address, &handle);
	if (r == -EINVAL) {
		no_route(
		    s, m, rcpt, "the transport is new: it needs a restart");
		return 0;
	}
	if (r < 0)
		return r;
	m->room--;
	return claims_add(s, m, to->transport, to->nexthop,
	    to->by_itself ? rcpt->address : NULL);
}

/* A message that has passed through so many systems goes round in a circle,
 * whichever way it would leave this one. */
static void
settle_looping(struct send *s, struct message *m, const struct queue_rcpt *rcpt)
{
	char text[128];

	snprintf(text, sizeof(text),
	    "too many hops: %u Received fields, and hopcount_limit is %u",
	    m->hops, s->conf->hopcount_limit);
	settle_unrouted(s, m, rcpt, "5.4.6", text);
}

/* Is there a sender for this recipient? Without memory dispatch.c asks again.
 */
static bool
has_sender(const struct send *s, const struct message *m,
    const struct queue_rcpt *rcpt)
{
	char sender[ADDRESS_MAX + 1];

	return !m->verp ||
	    sender_for(s, m, rcpt->address, sender) != -ENAMETOOLONG;
}

static int
route_one(struct send *s, struct message *m, const struct queue_rcpt *rcpt)
{
	struct recipient_route to;
	int r = recipients_route(s, m->sender, rcpt->address,
	    (m->file.flags & QUEUE_FILE_EXPANDED) != 0, &to);

	if (hold_one(s, m, rcpt, r == 0 ? &to : NULL))
		return 0;
	if (m->hops > s->conf->hopcount_limit) {
		settle_looping(s, m, rcpt);
		return 0;
	}
	if (!has_sender(s, m, rcpt)) {
		settle_unrouted(s, m, rcpt, "5.1.7", no_sender);
		return 0;
	}
	if (r == -EDESTADDRREQ) {
		settle_unrouted(s, m, rcpt, "5.1.2", to.why);
		return 0;
	}
	if (r < 0) {
		if (to.why == no_rule)
			alert_unrouted(s, rcpt->address);
		no_route(s, m, rcpt, to.why);
		return 0;
	}
	return schedule_one(s, m, rcpt, &to);
}

static int
read_one(struct send *s, struct message *m, int fd)
{
	struct queue_rcpt rcpt;
	int r = queue_rcpt_next(&s->cursor, fd, &rcpt);

	if (r <= 0)
		return r == 0 ? -EBADMSG : r;
	if (rcpt.mark == RCPT_FAILED)
		m->failed++;
	else if (rcpt.mark == RCPT_PENDING)
		r = route_one(s, m, &rcpt);
	else
		m->succeeded |= success_is_wanted(m->sender[0] != '\0', &rcpt);
	if (r < 0)
		return r;
	m->next = s->cursor.next;
	m->next_index = s->cursor.index;
	return 0;
}

static void
seek(struct send *s, const struct message *m, uint64_t offset, uint32_t index)
{
	queue_rcpt_seek(&s->cursor, &m->file, offset, index);
	if (m->rcpts != NULL)
		queue_rcpt_give(&s->cursor, m->file.rcpt_off, m->rcpts,
		    (size_t)m->file.rcpt_len);
}

/* Read up to the end of the batch or of the turn: the number of recipients. */
static int
read_some(struct send *s, struct message *m, int left)
{
	const bool reads = m->rcpts == NULL;
	int fd = reads ? disk_open_to_read(s, m) : m->fd, n = 0;

	if (reads && fd < 0) {
		message_fail(m, fd);
		return 0;
	}
	seek(s, m, m->next, m->next_index);
	while (n < left && m->room > 0 && message_has_unread(m)) {
		message_fail(m, read_one(s, m, fd));
		n++;
	}
	if (fd != m->fd)
		io_close(&fd);
	return n;
}

/* The message whose batch goes on, or the next whose batch begins. */
static struct message *
next_to_read(struct send *s)
{
	struct message *m = messages_first(&s->messages, STATE_READING);
	struct sched_message *unread;
	uint32_t room;

	if (m == NULL) {
		unread = sched_next_unread(s->sched, s->now);
		if (unread == NULL)
			return NULL;
		m = sched_message_owner(unread);
		messages_put(&s->messages, m, STATE_READING);
	}
	room = sched_message_room(m->sched);
	/* Others were read while this one was fetched. */
	if (m->room == 0 || (m->fetched && room < m->room))
		m->room = room;
	if (m->room == 0) /* reading must go on, without room as well */
		m->room = 1;
	return m;
}

static void
end_batch(struct send *s, struct message *m)
{
	m->room = 0;
	sched_batch_end(m->sched, !message_has_unread(m), s->now);
	messages_put(&s->messages, m, STATE_ACTIVE);
	settle_message(s, m);
}

void
recipients_read_few(struct send *s, struct message *m)
{
	if (m->file.rcpt_count > MSG_FEW_RCPTS)
		return;
	m->room = sched_message_room(m->sched);
	if (m->room < m->file.rcpt_count)
		return;
	(void)read_some(s, m, MSG_FEW_RCPTS);
	if (!message_has_unread(m))
		end_batch(s, m);
}

usec_t
recipients_work(struct send *s)
{
	int left = READ_PER_TURN;
	struct message *m;

	while (left > 0) {
		if (results_are_full(s))
			return USEC_NEVER;
		m = next_to_read(s);
		if (m == NULL)
			return sched_unread_at(s->sched);
		left--;
		if (message_has_unread(m) && fetch_batch(s, m)) {
			if (m->state == STATE_READING)
				return USEC_NEVER;
			continue;
		}
		left -= read_some(s, m, left);
		if (m->room == 0 || !message_has_unread(m))
			end_batch(s, m);
	}
	return s->now;
}

int
recipients_read(struct send *s, const struct message *m,
    const struct sched_entry *e, uint32_t place, struct queue_rcpt *ret_rcpt)
{
	const struct sched_rcpt *at = &e->rcpts[place];
	int r;

	/* The cursor is shared by all messages: it goes on only within an
	 * entry. */
	if (place == 0 || s->cursor.index != at->index) {
		seek(s, m, at->offset, at->index);
		s->cursor.ahead = queue_rcpt_ahead(e->nrcpts - place);
	}
	r = queue_rcpt_next(&s->cursor, m->fd, ret_rcpt);
	return r == 0 ? -EBADMSG : r < 0 ? r : 0;
}
