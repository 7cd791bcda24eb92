#include "queue-send/operators/rules.h"

#include <errno.h>
#include <stdio.h>

#include "log/log.h"
#include "queue-send/backlog/backlog.h"
#include "queue-send/road/road.h"
#include "spool/reason.h"

static struct queue_id
id_of(const struct message *m)
{
	return (struct queue_id){ m->file.arrival_wall, m->file.nonce,
		m->file.queue, m->inode };
}

/* Messages that an operator released, or gave up, are not held again. */
static bool
is_ruled(const struct send *s, const struct message *m)
{
	return s->rules.count > 0 && !m->released && !m->expires &&
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

static int
write_note(struct send *s, struct message *m, const struct queue_id *id,
    const struct hold_note *note)
{
	struct hold_note_before before;
	int r;

	reasons_flush(s, m);
	if (m->first && !m->reasons_begun)
		(void)reason_clear(&s->sp, SPOOL_DEFER, m->inode);
	r = hold_note_write(&s->sp, id, note, &before);
	if (r < 0)
		return r;
	m->reasons_begun = true;
	m->held_for = note->until_wall > 0;
	acts_hold_ends(s, note->until_wall);
	return 0;
}

/* The note comes before the move. While a thread writes that of an operator no
 * other is written: of two writers each could take back the other's. */
static int
hold(struct send *s, struct message *m, const struct hold_rule *rule)
{
	const struct queue_id id = id_of(m);
	struct hold_note note;
	char text[QUEUE_ID_SIZE];
	int r;

	fill_note(s, rule, &note);
	if (!act_takes_rule(s, m->inode, &note)) {
		r = write_note(s, m, &id, &note);
		if (r < 0)
			return r;
	}
	message_decide(m, FATE_HELD);
	message_id(m, text);
	log_message(LOG_INFO_L, "held-by-rule", text,
	    "held by rule %u of uid=%u%s%s", rule->number, (unsigned)rule->uid,
	    rule->reason[0] == '\0' ? "" : ": ", rule->reason);
	return 1;
}

int
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
	    ? hold_rules_find(&s->rules, &mail, s->now_wall)
	    : NULL;

	return rule == NULL ? 0 : hold(s, m, rule);
}

int
rules_note(struct send *s, uint32_t number, struct hold_note *ret_note)
{
	const struct hold_rule *rule =
	    hold_rules_number(&s->rules, number, s->now_wall);

	if (rule == NULL)
		return -ESRCH;
	fill_note(s, rule, ret_note);
	return 0;
}
