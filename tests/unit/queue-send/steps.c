/* The table of states and steps (queue-send/state/steps.c): the document has
 * the same rows, each step of it can be taken, and others are faults. */
#include "queue-send/state/steps.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

static struct messages ms;
static struct message *m;

static void
begin(void)
{
	const struct msg_MESSAGE frame = { .inode = 1,
		.dir = SPOOL_INCOMING,
		.sender = MSG_S("s@here.test") };

	messages_init(&ms, 3);
	m = messages_add(&ms, &frame);
	cr_assert_not_null(m);
	m->offer->uid = 1;
}

/* Sets a state without a step. */
static void
be(enum message_state state)
{
	TAILQ_REMOVE(&ms.list[m->state], m, on);
	ms.count[m->state]--;
	m->state = (uint8_t)state;
	TAILQ_INSERT_TAIL(&ms.list[state], m, on);
	ms.count[state]++;
}

static void
end(void)
{
	m->nunrecorded = 0;
	be(STATE_OFFERED_INCOMING);
	messages_drop(&ms, m);
}

TestSuite(steps, .init = begin, .fini = end, .timeout = 60);

/* mutation: queue-send/state/steps.c: the table has one row less. */
Test(steps, the_document_has_the_same_table)
{
	FILE *f = fopen("docs/QUEUE.md", "r");
	char line[4096], want[256];
	bool found = false;
	size_t n = 0;

	cr_assert_not_null(f);
	while (!found && fgets(line, sizeof(line), f) != NULL)
		found = strcmp(line, "| from | to | when |\n") == 0;
	cr_assert(found);
	cr_assert_not_null(fgets(line, sizeof(line), f)); /* the rule */
	while (fgets(line, sizeof(line), f) != NULL && line[0] == '|') {
		const struct message_step *s = &message_steps[n++];

		cr_assert_leq(n, message_nsteps, "%s", line);
		snprintf(want, sizeof(want), "| %s | %s | %s |\n",
		    message_state_names[s->from], message_state_names[s->to],
		    s->event);
		cr_expect_str_eq(line, want);
	}
	cr_expect_eq(n, message_nsteps);
	fclose(f);
}

/* mutation: queue-send/state/steps.c: message_may_step() is always true. */
Test(steps, each_of_the_table_and_no_other)
{
	bool is_step[NSTATES][NSTATES] = { { false } };
	enum message_state from, to;
	uint64_t faults = 0;
	size_t i;

	for (i = 0; i < message_nsteps; i++)
		is_step[message_steps[i].from][message_steps[i].to] = true;
	for (from = 0; from < NSTATES; from++)
		for (to = 0; to < NSTATES; to++) {
			be(from);
			messages_put(&ms, m, to);
			faults += from != to && !is_step[from][to];
			cr_expect_eq(ms.faults, faults, "%s to %s",
			    message_state_names[from], message_state_names[to]);
			cr_expect_eq(m->state, to, "it is taken");
			cr_expect_eq(messages_first(&ms, to), m);
			cr_expect_eq(ms.count[to], 1);
		}
	cr_expect_gt(faults, 100);
}

/* A mark comes before the sync, the report, the move and the removal.
 * mutation: queue-send/state/message.c: messages_put() does not ask for
 * results.
 */
Test(steps, nothing_is_finished_before_its_results_are_recorded)
{
	be(STATE_ACTIVE);
	m->nunrecorded = 1;
	messages_put(&ms, m, STATE_FINISHED);
	cr_expect_eq(ms.faults, 1);
	m->nunrecorded = 0;
	messages_put(&ms, m, STATE_LEAVING);
	cr_expect_eq(ms.faults, 1);
}

/* A sync and a report come before the move, and nothing behind it.
 * mutation: queue-send/state/steps.c: a message may leave from STATE_ACTIVE. */
Test(steps, a_message_leaves_from_one_state)
{
	enum message_state from;

	for (from = STATE_OFFERED_INCOMING; from < NSTATES; from++) {
		cr_expect_eq(message_may_step(from, STATE_LEAVING),
		    from == STATE_FINISHED || from == STATE_LEAVING, "%s",
		    message_state_names[from]);
		cr_expect_eq(message_may_step(STATE_LEAVING, from),
		    from == STATE_FINISHED || from == STATE_STUCK ||
			from == STATE_LEAVING,
		    "%s", message_state_names[from]);
	}
}

/* Each state has a name and a way in and out. */
Test(steps, no_state_is_an_island)
{
	bool in[NSTATES] = {
		[STATE_OFFERED_INCOMING] = true, [STATE_OFFERED_DEFERRED] = true
	};
	bool out[NSTATES] = { false };
	size_t i;

	for (i = 0; i < message_nsteps; i++) {
		out[message_steps[i].from] = true;
		in[message_steps[i].to] = true;
	}
	for (i = 0; i < NSTATES; i++) {
		cr_expect_not_null(message_state_names[i]);
		cr_expect(in[i] && out[i], "%s", message_state_names[i]);
	}
}
