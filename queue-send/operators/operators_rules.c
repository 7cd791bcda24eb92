#include "queue-send/operators/operators_door.h"
#include "queue-send/rules/rules.h"

/* An answer that counts no message. */
static void
reply(struct operator* o, uint64_t serial, int error, uint32_t number)
{
	const struct msg msg = { .type = MSG_ACTED,
		.u.ACTED = { serial, error, number } };

	(void)wire_send(o->wire, &msg, -1);
}

/* The connection may have ended meanwhile. */
static void
answer_rules(
    struct send *s, const struct rules_asker *by, int error, uint32_t number)
{
	struct operator* o = operators_find(s, by->operator);

	if (o != NULL)
		reply(o, by->serial, error, number);
}

static struct rules_asker
asker_of(const struct operator* o, uint64_t serial)
{
	return (struct rules_asker){ answer_rules, o->number, serial, o->uid };
}

void
operators_rule_add(struct operator* o, const struct msg *msg)
{
	const struct msg_RULE_ADD *f = &msg->u.RULE_ADD;
	const struct rules_asker by = asker_of(o, f->serial);
	int r = rules_add(o->send, &by, f);

	if (r < 0)
		reply(o, f->serial, r, 0);
}

void
operators_rule_drop(struct operator* o, const struct msg *msg)
{
	const struct msg_RULE_DROP *f = &msg->u.RULE_DROP;
	const struct rules_asker by = asker_of(o, f->serial);
	int r = rules_drop(o->send, &by, f->rule);

	if (r < 0)
		reply(o, f->serial, r, 0);
}

void
operators_rules_read(struct operator* o, const struct msg *msg)
{
	const struct rules_asker by = asker_of(o, msg->u.RULES_READ.serial);
	int r = rules_read(o->send, &by);

	if (r < 0)
		reply(o, by.serial, r, 0);
}
