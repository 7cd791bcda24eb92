#include "queue-send/agents/own.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "log/log.h"
#include "queue-send/message/path.h"
#include "queue-send/schedule/schedule.h"

/* ---- deaths ---- */

/* A suspect's attempt is over: the next one is without other suspects. */
static void
death_judge(struct message *m, bool alone)
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
	death_judge(m, alone);
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

/* The deliveries of an agent that is gone are deferred for a short time, and
 * nothing of that is held against the destination. Its messages are counted, so
 * that a message that agents die of is found (RETRY_SUSPECT_DEATHS): the
 * attempt of a suspect ends there (FATE_SUSPECT), and the one that is to blame
 * leaves as FATE_POISON with its reasons in bounce/. */
static void
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

/* ---- the link of an agent ---- */

/* ---- agents ---- */

static void
agent_end(struct agent_link *agent)
{
	deaths_of_agent(agent->send, agent);
	kept_agent_ended(agent->send, agent);
	TAILQ_REMOVE(&agent->send->agents, agent, link);
	free(agent);
}

static void
agent_drop(struct agent_link *agent)
{
	struct send *s = agent->send;

	wire_free(&agent->wire);
	agent->over_at = s->now + LINKS_LOST;
	if (s->agent[agent->program] == agent)
		s->agent[agent->program] = NULL;
	if (TAILQ_EMPTY(&agent->deliveries) && TAILQ_EMPTY(&agent->kept))
		agent_end(agent);
	schedule_limits(s);
}

/* A process is started when the one before it has ended. */
static void
agent_succeeded(struct send *s, enum agent_program program)
{
	struct agent_link *agent, *next;

	for (agent = TAILQ_FIRST(&s->agents); agent != NULL; agent = next) {
		next = TAILQ_NEXT(agent, link);
		if (agent->program == program && agent->wire == NULL)
			agent_end(agent);
	}
}

usec_t
links_work(struct send *s)
{
	struct agent_link *agent, *next;
	usec_t at = USEC_NEVER;

	if (s->hung_up) /* agents did not die, and the next start finds the mail
			 */
		return USEC_NEVER;
	for (agent = TAILQ_FIRST(&s->agents); agent != NULL; agent = next) {
		next = TAILQ_NEXT(agent, link);
		if (agent->wire != NULL)
			continue;
		if (agent->over_at <= s->now)
			agent_end(agent);
		else if (agent->over_at < at)
			at = agent->over_at;
	}
	return at;
}

void
links_hang_up(struct send *s)
{
	struct agent_link *agent, *next;

	for (agent = TAILQ_FIRST(&s->agents); agent != NULL; agent = next) {
		next = TAILQ_NEXT(agent, link);
		if (agent->wire != NULL)
			agent_drop(agent);
	}
}

static void
agent_misbehaves(struct agent_link *agent, const char *what)
{
	log_error("%s: %s: its link is closed",
	    agent_program_names[agent->program], what);
	agent_drop(agent);
}

static void
agent_frame(void *arg, struct wire *w UNUSED, struct chan_frame *frame)
{
	struct agent_link *agent = arg;
	struct send *s = agent->send;
	const struct msg *msg = &frame->msg;
	int r = -EBADMSG;

	send_read_clocks(s);
	if (msg->type == MSG_RESULT)
		r = replies_on_result(s, agent, &msg->u.RESULT);
	else if (msg->type == MSG_PASSED_ON)
		r = replies_on_passed_on(s, agent, &msg->u.PASSED_ON);
	else if (msg->type == MSG_GREETED)
		r = replies_on_greeted(s, agent, &msg->u.GREETED);
	else if (msg->type == MSG_DONE)
		r = replies_on_done(s, agent, &msg->u.DONE);
	else if (msg->type == MSG_ELSEWHERE)
		r = replies_on_elsewhere(s, agent, &msg->u.ELSEWHERE);
	else if (msg->type == MSG_KEPT)
		r = kept_on_kept(s, agent, &msg->u.KEPT);
	else if (msg->type == MSG_CLOSED)
		r = kept_on_closed(s, agent, &msg->u.CLOSED);
	else if (msg->type == MSG_TRACE_LINE)
		r = s->ops->traced(s, &msg->u.TRACE_LINE);
	else if (msg->type == MSG_AGENT) {
		agent->pid = msg->u.AGENT.pid;
		r = 0;
	}
	if (r < 0)
		agent_misbehaves(agent, msg_name(msg->type));
}

static void
agent_bad(void *arg, struct wire *w UNUSED)
{
	struct agent_link *agent = arg;

	send_read_clocks(agent->send);
	agent_misbehaves(agent, "a frame that cannot be read");
}

static void
agent_closed(void *arg, struct wire *w UNUSED)
{
	struct agent_link *agent = arg;

	send_read_clocks(agent->send);
	if (!agent->send->stopping)
		log_warning("%s is gone", agent_program_names[agent->program]);
	agent_drop(agent);
}

static void
agent_drained(void *arg, struct wire *w UNUSED)
{
	struct agent_link *agent = arg;

	if (!agent->full)
		return;
	send_read_clocks(agent->send);
	agent->full = false;
	schedule_limits(agent->send);
}

static const struct wire_ops agent_ops = {
	.manner = WIRE_BUNDLED,
	.frame = agent_frame,
	.bad = agent_bad,
	.closed = agent_closed,
	.drained = agent_drained,
};

static int
agent_linked(struct send *s, enum agent_program program, int fd)
{
	struct agent_link *agent = calloc(1, sizeof(*agent));
	int r;

	if (agent == NULL)
		return -ENOMEM;
	agent->send = s;
	agent->program = program;
	TAILQ_INIT(&agent->deliveries);
	TAILQ_INIT(&agent->kept);
	r = wire_new(s->base, fd, &agent_ops, agent, &agent->wire);
	if (r < 0) {
		free(agent);
		return r;
	}
	agent_succeeded(s, program);
	TAILQ_INSERT_TAIL(&s->agents, agent, link);
	s->agent[program] = agent;
	schedule_limits(s);
	if (program == AGENT_PROGRAM_SMTP)
		s->ops->smtp_linked(s);
	return 0;
}

int
links_local(void *send, int fd)
{
	return agent_linked(send, AGENT_PROGRAM_LOCAL, fd);
}

int
links_smtp(void *send, int fd)
{
	return agent_linked(send, AGENT_PROGRAM_SMTP, fd);
}

/* ---- todo-proc ---- */

static void
todo_drop(struct send *s)
{
	wire_free(&s->links->todo);
	offers_reset(s);
	send_wake(s);
}

static void
todo_frame(void *arg, struct wire *w UNUSED, struct chan_frame *frame)
{
	struct send *s = arg;
	const struct msg *msg = &frame->msg;
	int r = -EBADMSG;

	send_read_clocks(s);
	if (msg->type == MSG_MESSAGE)
		r = offers_on_message(s, &msg->u.MESSAGE, &frame->fd);
	else if (msg->type == MSG_GONE)
		r = offers_on_gone(s, &msg->u.GONE);
	else if (msg->type == MSG_COUNTS)
		r = offers_on_counts(s, &msg->u.COUNTS);
	if (r == 0)
		return;
	log_error("todo-proc: %s: its link is closed", msg_name(msg->type));
	todo_drop(s);
}

static void
todo_bad(void *arg, struct wire *w UNUSED)
{
	struct send *s = arg;

	send_read_clocks(s);
	log_error("todo-proc: a frame that cannot be read: its link is closed");
	todo_drop(s);
}

static void
todo_closed(void *arg, struct wire *w UNUSED)
{
	struct send *s = arg;

	send_read_clocks(s);
	/* The supervisor tells of a death; in a stop this may come first. */
	if (!s->stopping)
		log_info("todo-proc is gone");
	todo_drop(s);
}

static const struct wire_ops todo_ops = {
	.manner = WIRE_BUNDLED,
	.frame = todo_frame,
	.bad = todo_bad,
	.closed = todo_closed,
};

int
links_todo(void *send, int fd)
{
	struct send *s = send;
	struct wire *fresh;
	int r = wire_new(s->base, fd, &todo_ops, s, &fresh);

	if (r < 0)
		return r;
	todo_drop(s);
	s->links->todo = fresh;
	return 0;
}

bool
links_has_todo(const struct send *s)
{
	return s->links->todo != NULL;
}

int
links_init(struct send *s)
{
	TAILQ_INIT(&s->agents);
	s->links = calloc(1, sizeof(*s->links));
	if (s->links == NULL)
		return -ENOMEM;
	TAILQ_INIT(&s->links->kept.ages);
	TAILQ_INIT(&s->links->kept.promised);
	return 0;
}

void
links_done(struct send *s)
{
	struct agent_link *agent;

	if (s->links == NULL)
		return;
	links_hang_up(s);
	while ((agent = TAILQ_FIRST(&s->agents)) != NULL)
		agent_end(agent);
	wire_free(&s->links->todo);
	free(s->links);
	s->links = NULL;
}
