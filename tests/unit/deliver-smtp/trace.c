/* Lines of dialogues for operators: which deliveries fit, and how many lines.
 */
#include "deliver-smtp/session/trace.h"

#include <criterion/criterion.h>
#include <event2/event.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "ipc/msg.h"

#define NOW (1000 * USEC_PER_SEC)

static struct event_base *base;
static struct agent *agent;
static int other;
static struct traces traces;
static struct agent_delivery delivery;
static char id[] = "0A", transport[] = "smtp", nexthop[] = "example.net";

static void
ignore(void *arg UNUSED)
{
}

static void
ignore_delivery(void *arg UNUSED, struct agent_delivery *d UNUSED)
{
}

static const struct agent_ops ops = {
	.deliver = ignore_delivery,
	.orphaned = ignore,
};

static void
begin(void)
{
	int ends[2];

	base = event_base_new();
	cr_assert_eq(
	    socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0, ends), 0);
	cr_assert_eq(agent_new(base, ends[0], &ops, NULL, &agent), 0);
	other = ends[1];
	traces = (struct traces){ 0 };
	delivery = (struct agent_delivery){ .agent = agent,
		.id = id,
		.transport = transport,
		.nexthop = nexthop };
}

static void
end(void)
{
	agent_free(&agent);
	close(other);
	event_base_free(base);
}

/* Texts of the lines that were sent, each behind its speaker. */
static const char *
sent(void)
{
	static char all[1 << 20];
	static struct chan_frame frame;
	size_t len = 0;

	event_base_loop(base, EVLOOP_NONBLOCK);
	while (chan_recv(other, &frame) == 1) {
		cr_assert_eq(frame.msg.type, MSG_TRACE_LINE);
		len += (size_t)snprintf(all + len, sizeof(all) - len, "%u%.*s|",
		    frame.msg.u.TRACE_LINE.who,
		    (int)frame.msg.u.TRACE_LINE.text.len,
		    frame.msg.u.TRACE_LINE.text.data);
		event_base_loop(base, EVLOOP_NONBLOCK);
	}
	all[len] = '\0';
	return all;
}

static void
say(usec_t now, const char *text)
{
	traces_tell_at(&traces, now, &delivery, "mx1.example.net[192.0.2.1]:25",
	    TRACE_WE, text, strlen(text));
}

Test(trace, names_that_fit, .init = begin, .fini = end)
{
	static const struct {
		const char *pattern;
		bool fits;
	} cases[] = {
		{ "example.net", true },
		{ "smtp/example.net", true },
		{ "EXAMPLE.net", true },
		{ "*.example.net", true },
		{ "mx1.example.net", true },
		{ "192.0.2.1", true },
		{ "smtp/*", true },
		{ "*", true },
		{ "lmtp/example.net", false },
		{ "example.org", false },
		{ "192.0.2.2", false },
		{ "", false },
	};
	size_t i;

	for (i = 0; i < ARRAY_LEN(cases); i++) {
		traces = (struct traces){ 0 };
		traces_set(&traces, 7, cases[i].pattern, 60, NOW);
		say(NOW, "QUIT\r\n");
		cr_expect_str_eq(sent(), cases[i].fits ? "0QUIT|" : "", "%s",
		    cases[i].pattern);
	}
}

/* mutation: trace_fits() compares by text_matches(). */
Test(trace, names_in_U_labels, .init = begin, .fini = end)
{
	static const struct {
		const char *pattern, *nexthop, *relay;
		bool fits;
	} cases[] = {
		{ "bücher.example", "xn--bcher-kva.example", "", true },
		{ "smtp/BÜCHER.example.", "xn--bcher-kva.example", "", true },
		{ "lmtp/bücher.example", "xn--bcher-kva.example", "", false },
		{ "smtp/mx:mx.bücher.example", "mx:mx.xn--bcher-kva.example",
		    "", true },
		{ "mx.bücher.example", "example.net",
		    "mx.xn--bcher-kva.example[192.0.2.1]:25", true },
		{ "bucher.example", "xn--bcher-kva.example", "", false },
	};
	char name[64];
	size_t i;

	delivery.nexthop = name;
	for (i = 0; i < ARRAY_LEN(cases); i++) {
		traces = (struct traces){ 0 };
		traces_set(&traces, 7, cases[i].pattern, 60, NOW);
		snprintf(name, sizeof(name), "%s", cases[i].nexthop);
		traces_tell_at(&traces, NOW, &delivery, cases[i].relay,
		    TRACE_WE, "QUIT", 4);
		cr_expect_str_eq(sent(), cases[i].fits ? "0QUIT|" : "", "%s",
		    cases[i].pattern);
	}
}

Test(trace, lines_and_times, .init = begin, .fini = end)
{
	traces_set(&traces, 7, "*", 60, NOW);
	say(NOW, "RCPT TO:<a>\r\nRCPT TO:<b>\r\nDATA\r\n");
	cr_expect_str_eq(sent(), "0RCPT TO:<a>|0RCPT TO:<b>|0DATA|");
	say(NOW + 60 * USEC_PER_SEC, "late\r\n");
	cr_expect_str_eq(sent(), "");
	traces_set(&traces, 7, "*", 60, NOW + 60 * USEC_PER_SEC);
	say(NOW + 61 * USEC_PER_SEC, "again\r\n");
	cr_expect_str_eq(sent(), "0again|");
	traces_set(&traces, 7, "*", 0, NOW + 61 * USEC_PER_SEC);
	say(NOW + 62 * USEC_PER_SEC, "ended\r\n");
	cr_expect_str_eq(sent(), "");
	cr_expect_eq(traces.count, 0);
}

Test(trace, A11_a_bound_for_each_second, .init = begin, .fini = end)
{
	const char *got;
	size_t i, lines = 0;

	traces_set(&traces, 7, "*", 60, NOW);
	for (i = 0; i < TRACE_RATE + 12; i++) {
		say(NOW, "x\r\n");
		for (got = sent(); *got != '\0'; got++)
			lines += *got == '|';
	}
	cr_expect_eq(lines, TRACE_RATE);
	say(NOW + USEC_PER_SEC, "next\r\n");
	cr_expect_str_eq(sent(), "212 lines left out|0next|");
}

/* queue-send does not read: results come first. */
Test(trace, A11_an_agent_with_results_to_send, .init = begin, .fini = end)
{
	char text[TRACE_LINE_MAX];
	usec_t i;

	memset(text, 'x', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	traces_set(&traces, 7, "*", 60, NOW);
	for (i = 0; i < 10000; i++) {
		say(NOW + (i / TRACE_RATE) * USEC_PER_SEC, text);
		event_base_loop(base, EVLOOP_NONBLOCK);
	}
	cr_expect_lt(agent_queued(agent), 128 << 10);
	cr_expect_gt(traces.list[0].left_out, 0);
}
