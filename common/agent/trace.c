/* Lines of dialogues for operators. */
#include "agent/parts.h"

#include "base/text.h"

/* Lines wait for queue-send up to here; answers have more room. */
#define TRACE_HIGH ((size_t)64 << 10)

void
agent_take_trace(struct agent *a, const struct msg_TRACE *f)
{
	struct buf destination = { 0 };

	if (f->destination.len > TRACE_PATTERN_MAX ||
	    f->seconds > TRACE_SECONDS_MAX)
		agent_say_bad(a, "TRACE: destination or time");
	else if (a->ops->trace != NULL &&
	    buf_add(&destination, f->destination.data, f->destination.len) == 0)
		a->ops->trace(
		    a->arg, f->trace, buf_str(&destination), f->seconds);
	buf_done(&destination);
}

bool
agent_trace(struct agent *a, uint64_t trace, usec_t at_wall,
    const struct agent_trace_line *line)
{
	struct buf relay = { 0 }, text = { 0 };
	struct msg msg = { .type = MSG_TRACE_LINE };

	if (agent_queued(a) > TRACE_HIGH ||
	    text_clean(&text, line->text, line->len, TRACE_LINE_MAX) < 0) {
		buf_done(&text);
		return false;
	}
	msg.u.TRACE_LINE = (struct msg_TRACE_LINE){
		.trace = trace,
		.at_wall = at_wall,
		.who = (uint8_t)line->who,
		.id = MSG_S(line->id),
		.relay = agent_clean(&relay, line->relay, AGENT_RELAY_MAX),
		.text = { buf_str(&text), text.len },
	};
	agent_answer(a, &msg);
	buf_done(&relay);
	buf_done(&text);
	return true;
}
