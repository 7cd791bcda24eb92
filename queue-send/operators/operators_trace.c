/* Dialogues of deliver-smtp that operators follow. A line that an operator does
 * not read in time is left out and counted: a trace never delays mail. */
#include "queue-send/operators/own.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ipc/trace.h"
#include "log/log.h"
#include "queue-send/agents/agents.h"

/* Octets that wait for one operator. */
#define TRACE_QUEUED_MAX ((size_t)256 << 10)

static void
trace_tell_agent(struct operator* o, usec_t left)
{
	const struct agent_link *smtp = o->send->agent[AGENT_PROGRAM_SMTP];
	const struct msg msg = { .type = MSG_TRACE,
		.u.TRACE = {
		    .trace = o->number,
		    .seconds = (uint32_t)(left / USEC_PER_SEC),
		    .destination = MSG_S(o->trace.destination),
		} };

	if (smtp != NULL && smtp->wire != NULL)
		(void)wire_send(smtp->wire, &msg, -1);
}

static bool
trace_is_under_way(const struct operator* o)
{
	return o->trace.destination != NULL && o->trace.until > o->send->now;
}

static unsigned
traces_under_way(const struct send *s)
{
	const struct operator* o;
	unsigned count = 0;

	TAILQ_FOREACH (o, &s->operators->list, link)
		count += trace_is_under_way(o);
	return count;
}

static int
trace_begin(struct operator* o, const struct msg_TRACE_BEGIN *f)
{
	struct operator_trace *t = &o->trace;

	if (f->destination.len == 0 || f->destination.len > TRACE_PATTERN_MAX ||
	    memchr(f->destination.data, '\0', f->destination.len) != NULL ||
	    f->seconds == 0 || f->seconds > TRACE_SECONDS_MAX)
		return -EINVAL;
	if (!trace_is_under_way(o) && traces_under_way(o->send) >= TRACES_MAX)
		return -EUSERS;
	free(t->destination);
	t->destination = strndup(f->destination.data, f->destination.len);
	if (t->destination == NULL)
		return -ENOMEM;
	t->serial = f->serial;
	t->until = o->send->now + f->seconds * USEC_PER_SEC;
	log_info("operator uid=%u: trace of %s for %us", o->uid, t->destination,
	    f->seconds);
	trace_tell_agent(o, f->seconds * USEC_PER_SEC);
	return 0;
}

void
operators_trace(struct operator* o, const struct msg *msg)
{
	const struct msg_TRACE_BEGIN *f = &msg->u.TRACE_BEGIN;
	const struct msg answer = { .type = MSG_ACTED,
		.u.ACTED = { f->serial, trace_begin(o, f), 0 } };

	(void)wire_send(o->wire, &answer, -1);
}

void operators_trace_end(struct operator* o)
{
	if (trace_is_under_way(o))
		trace_tell_agent(o, 0);
	free(o->trace.destination);
	o->trace.destination = NULL;
}

void
operators_trace_again(struct send *s)
{
	struct operator* o;

	if (s->operators == NULL)
		return;
	TAILQ_FOREACH (o, &s->operators->list, link)
		if (trace_is_under_way(o))
			trace_tell_agent(o, o->trace.until - s->now);
}

static void
trace_send(struct operator* o, const struct msg_TRACE_LINE *line)
{
	const struct msg msg = { .type = MSG_TRACED,
		.u.TRACED = {
		    .serial = o->trace.serial,
		    .at_wall = line->at_wall,
		    .who = line->who,
		    .id = line->id,
		    .relay = line->relay,
		    .text = line->text,
		} };

	(void)wire_send(o->wire, &msg, -1);
}

/* The operator reads again, and is told how much is missing. */
static void
trace_send_gap(struct operator* o, const struct msg_TRACE_LINE *line)
{
	char text[64];
	struct msg_TRACE_LINE gap = *line;

	snprintf(text, sizeof(text), "%llu lines left out",
	    (unsigned long long)o->trace.left_out);
	o->trace.left_out = 0;
	gap.who = TRACE_EVENT;
	gap.text = MSG_S(text);
	trace_send(o, &gap);
}

int
operators_traced(struct send *s, const struct msg_TRACE_LINE *line)
{
	struct operator* o;

	if (line->who >= TRACE_NWHO)
		return -EBADMSG;
	if (s->operators == NULL)
		return 0;
	o = operators_find(s, line->trace);
	if (o == NULL || !trace_is_under_way(o))
		return 0;
	if (wire_queued(o->wire) > TRACE_QUEUED_MAX) {
		o->trace.left_out++;
		return 0;
	}
	if (o->trace.left_out > 0)
		trace_send_gap(o, line);
	trace_send(o, line);
	return 0;
}
