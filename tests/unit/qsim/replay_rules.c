/* Small scenarios whose selections follow from the rules by hand. */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "qsim/qsim.h"

struct seen {
	const struct scenario *sc;
	struct buf text, messages;
	uint32_t last, run, stop_after;
};

/* "1x3 2 1" */
static void
end_of_run(struct seen *s)
{
	if (s->run == 0)
		return;
	cr_assert_eq(buf_printf(&s->messages, "%s%u",
			 s->messages.len == 0 ? "" : " ", s->last),
	    0);
	if (s->run > 1)
		cr_assert_eq(buf_printf(&s->messages, "x%u", s->run), 0);
	s->run = 0;
}

static int
see(void *ctx, const struct simulate_selection *selection)
{
	struct seen *s = ctx;

	if (selection->message != s->last)
		end_of_run(s);
	s->last = selection->message;
	s->run++;
	if (s->stop_after > 0 && --s->stop_after == 0)
		return -EIO;
	return replay_add_line(s->sc, selection, &s->text);
}

static int
run(const char *text, struct seen *s, struct simulate_sums *sums)
{
	struct scenario sc;
	struct buf error = { 0 };
	const struct simulate_watch watch = { .ctx = s, .selected = see };
	int r;

	cr_assert_eq(scenario_parse("f", text, strlen(text), &sc, &error), 0,
	    "%s", buf_str(&error));
	s->sc = &sc;
	r = simulate(&sc, &sc.conf, sc.seed, &watch, sums);
	end_of_run(s);
	scenario_done(&sc);
	return r;
}

static void
seen_done(struct seen *s)
{
	buf_done(&s->text);
	buf_done(&s->messages);
}

#define COST(cost, discount, loan)                          \
	"agents smtp 1\n"                                   \
	"set default_delivery_slot_cost " cost "\n"         \
	"set default_delivery_slot_discount " discount "\n" \
	"set default_delivery_slot_loan " loan "\n"
#define TEN_TWO_TWO "at 0 msg a#0-9\nat 0 msg a#0-1\nat 0 msg a#0-1\n"

Test(replay, sequences_worked_by_hand)
{
	static const struct {
		const char *scenario, *want;
	} rows[] = {
		{ COST("2", "0", "0") TEN_TWO_TWO, "1x4 2x2 1x4 3x2 1x2" },
		{ COST("2", "50", "0") TEN_TWO_TWO, "1x2 2x2 1x4 3x2 1x4" },
		{ COST("2", "50", "3") TEN_TWO_TWO, "1 2x2 1x4 3x2 1x5" },
		{ COST("0", "50", "3") TEN_TWO_TWO, "1x10 2x2 3x2" },
		{ COST("1", "50", "3") TEN_TWO_TWO, "1x10 2x2 3x2" },
		{ "agents smtp 1\nat 0 msg a#0-13\nat 0 msg b", "1x14 2" },
		{ "agents smtp 1\nat 0 msg a#0-14\nrepeat 3 at 0 msg b",
		    "1 2 1x5 3 1x5 4 1x4" },
		{ "agents smtp 1\nat 0 msg a#0-39\nat 0 msg b#0-5",
		    "1 2x6 1x39" },
		{ "agents smtp 1\nat 0 msg a#0-39\nat 0 msg b#0-6",
		    "1x5 2x7 1x35" },
	};
	size_t i;

	for (i = 0; i < ARRAY_LEN(rows); i++) {
		struct seen s = { 0 };

		cr_expect_eq(run(rows[i].scenario, &s, NULL), 0);
		cr_expect_str_eq(buf_str(&s.messages), rows[i].want,
		    "\"%s\": %s, want %s", rows[i].scenario,
		    buf_str(&s.messages), rows[i].want);
		seen_done(&s);
	}
}

static const struct {
	const char *name, *scenario, *want;
	uint64_t deliveries, delivered, failed, untried;
} rows[] = {
	{ "the file is not in the order of time",
	    "at 2.5 msg b\nat 0.25 msg a\n",
	    "0.25 2 smtp/a 1\n2.5 1 smtp/b 1\n", 2, 2, 0, 0 },
	{ "arrivals of one instant by number, ends before selections",
	    "agents smtp 1\nat 1 msg c\nat 0 msg a\nat 1 msg b\n",
	    "0 2 smtp/a 1\n1 1 smtp/c 1\n2 3 smtp/b 1\n", 3, 3, 0, 0 },
	{ "transports take turns",
	    "agents smtp 1\nagents t2 1\nat 0 msg a*2 t2/a*2 b\n",
	    "0 1 smtp/a 2\n0 1 t2/a 2\n1 1 smtp/b 1\n", 3, 5, 0, 0 },
	{ "names compare without case",
	    "set default_destination_concurrency_limit 1\n"
	    "at 0 msg Host\nat 0 msg hOST\n",
	    "0 1 smtp/Host 1\n1 2 smtp/Host 1\n", 2, 2, 0, 0 },
	{ "the recipient is the destination",
	    "at 0 msg local/a*2\nat 0 msg local/a\nat 0 msg local/a\n",
	    "0 1 local/1@a 1\n0 1 local/2@a 1\n0 2 local/1@a 1\n"
	    "1 3 local/1@a 1\n",
	    4, 4, 0, 0 },
	{ "deliveries that take no time",
	    "agents smtp 1\ndur * 0\nat 1 msg a b\nat 1 msg c\n",
	    "1 1 smtp/a 1\n1 1 smtp/b 1\n1 2 smtp/c 1\n", 3, 3, 0, 0 },
	{ "a dead destination, and when it opens",
	    "set initial_destination_concurrency 1\nagents smtp 1\n"
	    "fail a 1\nat 0 msg a\nat 0 msg a*3\nat 300.9 msg a\n"
	    "at 301 msg a\n",
	    "0 1 smtp/a 1\n301 4 smtp/a 1\n", 2, 1, 1, 4 },
	{ "a window that shrinks by failures",
	    "set initial_destination_concurrency 2\n"
	    "set default_destination_concurrency_failed_cohort_limit 0\n"
	    "set default_destination_recipient_limit 2\n"
	    "fail a 2\nat 0 msg a*8\n",
	    "0 1 smtp/a 2\n0 1 smtp/a 2\n1 1 smtp/a 2\n2 1 smtp/a 2\n", 4, 4, 4,
	    0 },
	{ "a limiter refuses at once",
	    "set initial_destination_concurrency 3\nrefuse a 2\n"
	    "set default_destination_recipient_limit 2\n"
	    "at 0 msg a*8\n",
	    "0 1 smtp/a 2\n0 1 smtp/a 2\n0 1 smtp/a 2\n1 1 smtp/a 2\n", 4, 6, 2,
	    0 },
	{ "a host that serves one, lets one wait, lets one hang",
	    "set initial_destination_concurrency 3\nserve a 1 1 10\n"
	    "set default_destination_concurrency_failed_cohort_limit 0\n"
	    "set default_destination_concurrency_limit 3\n"
	    "set default_destination_recipient_limit 2\nat 0 msg a*10\n",
	    "0 1 smtp/a 2\n0 1 smtp/a 2\n0 1 smtp/a 2\n1 1 smtp/a 2\n"
	    "2 1 smtp/a 2\n",
	    5, 8, 2, 0 },
	{ "all fail at random", "bad a 100\nat 0 msg a b\n",
	    "0 1 smtp/a 1\n0 1 smtp/b 1\n", 2, 1, 1, 0 },
	{ "one message whose sessions are lost, and another one",
	    "set initial_destination_concurrency 1\nagents smtp 1\n"
	    "set default_destination_recipient_limit 2\n"
	    "lose a 100\nat 0 msg a*8\nat 10 msg a*8\n",
	    "0 1 smtp/a 2\n1 1 smtp/a 2\n2 1 smtp/a 2\n3 1 smtp/a 2\n"
	    "10 2 smtp/a 2\n",
	    5, 0, 10, 6 },
	{ "none fails at random", "bad a 0\nat 0 msg a\n", "0 1 smtp/a 1\n", 1,
	    1, 0, 0 },
};

Test(replay, scenarios_worked_by_hand)
{
	size_t i;

	for (i = 0; i < ARRAY_LEN(rows); i++) {
		struct seen s = { 0 };
		struct simulate_sums sums = { 0 };

		cr_expect_eq(run(rows[i].scenario, &s, &sums), 0);
		cr_expect_str_eq(buf_str(&s.text), rows[i].want,
		    "%s:\n%swant:\n%s", rows[i].name, buf_str(&s.text),
		    rows[i].want);
		cr_expect_eq(
		    sums.deliveries, rows[i].deliveries, "%s", rows[i].name);
		cr_expect_eq(
		    sums.delivered, rows[i].delivered, "%s", rows[i].name);
		cr_expect_eq(sums.failed, rows[i].failed, "%s", rows[i].name);
		cr_expect_eq(sums.untried, rows[i].untried, "%s", rows[i].name);
		seen_done(&s);
	}
}

Test(replay, chance_comes_out_the_same)
{
	struct seen s[3] = { { 0 } };
	static const int seeds[3] = { 5, 5, 6 };
	char scenario[200];
	size_t i;

	for (i = 0; i < 3; i++) {
		snprintf(scenario, sizeof(scenario),
		    "bad a 30\nspread 20\nagents smtp 3\nseed %d\n"
		    "repeat 50 every 0.3 at 0 msg a b\n",
		    seeds[i]);
		cr_expect_eq(run(scenario, &s[i], NULL), 0);
	}
	cr_expect_str_eq(buf_str(&s[0].text), buf_str(&s[1].text));
	cr_expect_str_neq(buf_str(&s[0].text), buf_str(&s[2].text));
	for (i = 0; i < 3; i++)
		seen_done(&s[i]);
}

Test(replay, chance_has_its_share)
{
	struct seen s = { 0 };
	struct simulate_sums sums = { 0 };

	cr_assert_eq(
	    run("set default_destination_concurrency_failed_cohort_limit 0\n"
		"seed 2\nbad a 30\n"
		"repeat 10000 every 1 at 0 msg a\n",
		&s, &sums),
	    0);
	cr_expect(sums.failed > 2900 && sums.failed < 3100, "%lu of 10000",
	    (unsigned long)sums.failed);
	seen_done(&s);
}

/* Deliveries run and messages wait when it ends: nothing is left behind. */
Test(replay, a_watcher_ends_the_run)
{
	uint32_t n;

	for (n = 1; n < 8; n++) {
		struct seen s = { .stop_after = n };

		cr_expect_eq(
		    run("fail a 2\nat 0 msg a*100 b*100\nat 0 msg c*200\n"
			"at 1 msg a b c\n",
			&s, NULL),
		    -EIO);
		seen_done(&s);
	}
}
