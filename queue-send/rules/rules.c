#include "queue-send/rules/own.h"

#include <errno.h>
#include <stdio.h>

#include "log/log.h"
#include "queue-send/backlog/backlog.h"

bool
rules_exist(const struct send *s)
{
	return s->rules->force.count > 0;
}

/* Messages that an operator released, or gave up, are not held again. */
static bool
is_ruled(const struct send *s, const struct message *m)
{
	return rules_exist(s) && !m->released && !m->expires &&
	    (m->file.flags & QUEUE_FILE_RELEASED) == 0;
}

static void
fill_note(
    const struct send *s, const struct hold_rule *rule, struct hold_note *note)
{
	*note = (struct hold_note){
		.uid = rule->uid,
		.since_wall = s->now_wall,
		.until_wall = rule->until_wall,
		.rule = rule->number,
	};
	snprintf(note->reason, sizeof(note->reason), "%s", rule->reason);
}

bool
rules_hold(struct send *s, struct message *m, const struct queue_rcpt *rcpt,
    const char *transport, const char *nexthop)
{
	const struct hold_mail mail = {
		.sender = m->sender,
		.recipient = rcpt->address,
		.transport = transport,
		.nexthop = nexthop,
		.report = (m->file.flags & QUEUE_FILE_REPORT) != 0,
	};
	const struct hold_rule *rule = is_ruled(s, m)
	    ? hold_rules_find(&s->rules->force, &mail, s->now_wall)
	    : NULL;

	if (rule == NULL)
		return false;
	m->rule = rule->number;
	message_decide(m, FATE_HELD);
	return true;
}

bool
rules_are_over(const struct send *s, uint32_t number)
{
	return hold_rules_number(&s->rules->force, number, s->now_wall) == NULL;
}

void
rules_noted(struct send *s, struct message *m, const struct hold_note *note)
{
	char id[QUEUE_ID_SIZE];

	m->reasons_begun = true;
	m->held_for = note->until_wall > 0;
	acts_hold_ends(s, note->until_wall);
	message_id(m, id);
	log_message(LOG_INFO_L, "held-by-rule", id,
	    "held by rule %u of uid=%u%s%s", note->rule, (unsigned)note->uid,
	    note->reason[0] == '\0' ? "" : ": ", note->reason);
}

int
rules_note(struct send *s, uint32_t number, struct hold_note *ret_note)
{
	const struct hold_rule *rule =
	    hold_rules_number(&s->rules->force, number, s->now_wall);

	if (rule == NULL)
		return -ESRCH;
	fill_note(s, rule, ret_note);
	return 0;
}
