/* The statements of a scenario, and the errors of a broken one. */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "qsim/scenario.h"

static int
parse(const char *text, size_t len, struct scenario *ret_sc, struct buf *error)
{
	*ret_sc = (struct scenario){ 0 };
	return scenario_parse("f", text, len, ret_sc, error);
}

static void
good(const char *text, struct scenario *ret_sc)
{
	struct buf error = { 0 };

	cr_assert_eq(parse(text, strlen(text), ret_sc, &error), 0, "\"%s\": %s",
	    text, buf_str(&error));
	cr_expect_eq(error.len, 0);
	buf_done(&error);
}

static void
bad(const char *text, size_t len, const char *want)
{
	struct scenario sc;
	struct buf error = { 0 };
	int r = parse(text, len, &sc, &error);

	cr_expect_eq(r, -EINVAL, "\"%s\" was taken, want \"%s\"", text, want);
	cr_expect_str_eq(buf_str(&error), want, "\"%s\": \"%s\", want \"%s\"",
	    text, buf_str(&error), want);
	if (r == 0)
		scenario_done(&sc);
	buf_done(&error);
}

Test(scenario_input, broken)
{
	static const struct {
		const char *text, *want;
	} rows[] = {
		{ "",
		    "f: expected a message (at T msg SPEC), but the file "
		    "ends" },
		{ "# nothing\n\n",
		    "f: expected a message (at T msg SPEC), "
		    "but the file ends" },
		{ "at 0 msg a\nfoo\n",
		    "f:2: expected set, agents, dur, fail, "
		    "refuse, serve, bad, lose, spread, seed, at or "
		    "repeat, not `foo'" },
		{ "set\n",
		    "f:1: expected a parameter and its value, but the "
		    "line ends" },
		{ "set x\n", "f:1: expected a value, but the line ends" },
		{ "\nset x 1\nat 0 msg a",
		    "f:2: x: unknown parameter; correct or remove the line" },
		{ "set default_delivery_slot_cost -1\nat 0 msg a",
		    "f:1: default_delivery_slot_cost: must be 0 to 100000" },
		{ "set default_delivery_slot_cost 99999999999999999999\n"
		  "at 0 msg a",
		    "f:1: default_delivery_slot_cost: must be 0 to 100000" },
		{ "set default_destination_concurrency_positive_feedback 2\n"
		  "at 0 msg a",
		    "f:1: default_destination_concurrency_positive_feedback: "
		    "must be 0 to 1" },
		{ "set no_such 1\nset no_such 2\nat 0 msg a",
		    "f:2: no_such: unknown parameter; correct or remove the "
		    "line" },
		{ "at 0 msg a\nset t2_delivery_slot_cost 1",
		    "f:2: t2_delivery_slot_cost: there is no transport "
		    "\"t2\"" },
		{ "set transports bad:kind\nat 0 msg a",
		    "f:1: transports: \"bad:kind\": the kind must be smtp, "
		    "lmtp, local, pipe, discard or error" },
		{ "set minimal_backoff_time 5000s\nat 0 msg a",
		    "f:1: minimal_backoff_time: minimal_backoff_time is above "
		    "maximal_backoff_time" },
		{ "agents\n",
		    "f:1: expected a transport and a number, but "
		    "the line ends" },
		{ "agents smtp\n",
		    "f:1: expected a number of agents (1 to "
		    "10000), but the line ends" },
		{ "agents smtp 0\n",
		    "f:1: expected a number of agents (1 to "
		    "10000), not `0'" },
		{ "agents smtp 1 2\n",
		    "f:1: expected the end of the line, "
		    "not `2'" },
		{ "agents T2 1\n",
		    "f:1: transports: \"T2:smtp\": a name is "
		    "lower-case letters, digits and hyphens" },
		{ "agents default 1\n",
		    "f:1: transports: \"default:smtp\": its parameters would "
		    "have names that others have" },
		{ "dur\n", "f:1: expected a destination, but the line ends" },
		{ "dur a\n",
		    "f:1: expected milliseconds (0 to 1000000000), "
		    "but the line ends" },
		{ "dur a x\n",
		    "f:1: expected milliseconds (0 to 1000000000), "
		    "not `x'" },
		{ "dur * -1\n",
		    "f:1: expected milliseconds (0 to "
		    "1000000000), not `-1'" },
		{ "dur a 1 2\n",
		    "f:1: expected the end of the line, not "
		    "`2'" },
		{ "dur a*2 1\n",
		    "f:1: expected a destination (no blank, `*', "
		    "`#' or second `/'), not `a*2'" },
		{ "fail a 4294967296\n",
		    "f:1: expected a number of deliveries (0 to 4294967295), "
		    "not `4294967296'" },
		{ "refuse a b\n",
		    "f:1: expected a number of connections (0 "
		    "to 4294967294), not `b'" },
		{ "bad a 101\n",
		    "f:1: expected a percentage (0 to 100), not "
		    "`101'" },
		{ "spread 91\n",
		    "f:1: expected a percentage (0 to 90), not "
		    "`91'" },
		{ "seed -1\n", "f:1: expected a number, not `-1'" },
		{ "at\n",
		    "f:1: expected a time in seconds (0 to 1000000000), "
		    "but the line ends" },
		{ "at -1 msg a\n",
		    "f:1: expected a time in seconds (0 to "
		    "1000000000), not `-1'" },
		{ "at 1e3 msg a\n",
		    "f:1: expected a time in seconds (0 to "
		    "1000000000), not `1e3'" },
		{ "at 1000000001 msg a\n",
		    "f:1: expected a time in seconds (0 to 1000000000), not "
		    "`1000000001'" },
		{ "at 0\n", "f:1: expected msg, but the line ends" },
		{ "at 0 mail a\n", "f:1: expected msg, not `mail'" },
		{ "at 0 msg\n",
		    "f:1: expected recipients (a, a*4, a#0-9), "
		    "but the line ends" },
		{ "at 0 msg # a\n",
		    "f:1: expected recipients (a, a*4, "
		    "a#0-9), but the line ends" },
		{ "at 0 msg a*0\n",
		    "f:1: expected a count of recipients (1 "
		    "to 20000000), not `0'" },
		{ "at 0 msg a*\n",
		    "f:1: expected a count of recipients (1 to "
		    "20000000), not `'" },
		{ "at 0 msg a*20000001\n",
		    "f:1: expected a count of recipients (1 to 20000000), not "
		    "`20000001'" },
		{ "at 0 msg *4\n",
		    "f:1: expected a destination (no blank, "
		    "`*', `#' or second `/'), not `'" },
		{ "at 0 msg a#9-0\n",
		    "f:1: expected #LOW-HIGH (0 to 9999999, "
		    "LOW <= HIGH), not `a#9-0'" },
		{ "at 0 msg a#9\n",
		    "f:1: expected #LOW-HIGH (0 to 9999999, "
		    "LOW <= HIGH), not `a#9'" },
		{ "at 0 msg a#0-\n",
		    "f:1: expected #LOW-HIGH (0 to 9999999, "
		    "LOW <= HIGH), not `a#0-'" },
		{ "at 0 msg t2/a#0-10000000\n",
		    "f:1: expected #LOW-HIGH (0 to 9999999, LOW <= HIGH), not "
		    "`t2/a#0-10000000'" },
		{ "at 0 msg t2/#0-1\n",
		    "f:1: expected a destination before `#', "
		    "not `t2/#0-1'" },
		{ "at 0 msg a#0-1*2\n",
		    "f:1: expected #LOW-HIGH (0 to "
		    "9999999, LOW <= HIGH), not "
		    "`a#0-1*2'" },
		{ "at 0 msg /a\n",
		    "f:1: expected a transport before `/', not `/a'" },
		{ "at 0 msg t2/\n",
		    "f:1: expected a destination (no blank, "
		    "`*', `#' or second `/'), not `'" },
		{ "at 0 msg t2/a/b\n",
		    "f:1: expected a destination (no "
		    "blank, `*', `#' or second `/'), not "
		    "`a/b'" },
		{ "at 0 msg a\xff\n",
		    "f:1: expected a destination (no blank, "
		    "`*', `#' or second `/'), not `a?'" },
		{ "repeat 0 at 0 msg a\n",
		    "f:1: expected a number of "
		    "messages (1 to 5000000), not "
		    "`0'" },
		{ "repeat 5000001 at 0 msg a\n",
		    "f:1: expected a number of messages (1 to 5000000), not "
		    "`5000001'" },
		{ "repeat 2 msg a\n",
		    "f:1: expected every or at, not "
		    "`msg'" },
		{ "repeat 2 every at 0 msg a\n",
		    "f:1: expected a time in seconds (0 to 1000000000), not "
		    "`at'" },
		{ "repeat 5000000 every 201 at 0 msg a\n",
		    "f:1: expected less than 1000000000 seconds in all, not "
		    "`201'" },
		{ "repeat 5000000 at 0 msg a\nat 0 msg a\n",
		    "f:2: expected at most 5000000 messages in all" },
		{ "repeat 5000000 at 0 msg a*5\n",
		    "f:1: expected at most 20000000 recipients in all "
		    "messages together" },
		{ "at 0 msg a*20000000 b\n",
		    "f:1: expected at most 20000000 recipients in all "
		    "messages together" },
		{ "\xef\xbb\xbf"
		  "at 0 msg a\n",
		    "f:1: expected lines of text, not a byte-order mark" },
		{ "at 0 msg a\x01\n",
		    "f:1: expected lines of text, not a control character" },
	};
	size_t i;

	for (i = 0; i < ARRAY_LEN(rows); i++)
		bad(rows[i].text, strlen(rows[i].text), rows[i].want);
}

Test(scenario_input, bytes_and_lengths)
{
	struct buf text = { 0 };
	size_t i;

	bad("at 0 msg a\0\n", 12, "f:1: expected lines of text, not a NUL");
	cr_assert_eq(buf_add_str(&text, "at 0 msg a\n"), 0);
	for (i = 0; i <= SCENARIO_LINE_MAX; i++)
		cr_assert_eq(buf_add_char(&text, '#'), 0);
	bad(text.data, text.len,
	    "f:2: expected lines of text, not a line too long");
	buf_reset(&text);
	cr_assert_eq(buf_add_str(&text, "at 0 msg "), 0);
	for (i = 0; i <= SCENARIO_NAME_MAX; i++)
		cr_assert_eq(buf_add_char(&text, 'a'), 0);
	bad(text.data, text.len,
	    "f:1: expected a destination of at most 255 bytes, not "
	    "`aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa...'");
	buf_done(&text);
}

Test(scenario_input, too_many_transports)
{
	struct scenario sc;
	struct buf text = { 0 };
	int i;

	for (i = 1; i < CONF_TRANSPORTS_LISTED_MAX; i++)
		cr_assert_eq(buf_printf(&text, "at 0 msg t%d/a\n", i), 0);
	good(buf_str(&text), &sc);
	scenario_done(&sc);
	cr_assert_eq(buf_printf(&text, "at 0 msg too/a\n"), 0);
	bad(text.data, text.len,
	    "f:32: expected at most 32 transports, not `too'");
	buf_done(&text);
}

Test(scenario_input, messages_in_order_of_lines)
{
	struct scenario sc;

	good("at 2.5 msg b*2 a\r\nrepeat 2 every 0.5 at 1 msg t2/A#8-10\n"
	     "dur A 250 # of this one\nfail a 3\nrefuse t2/a00009 4\n"
	     "bad b 25\ndur * 2000\nspread 5\nseed 7\nagents t2 3\nat 0 msg B",
	    &sc);
	cr_assert_eq(sc.nmessages, 4);
	cr_expect_eq(sc.messages[0].at, 2500000);
	cr_expect_eq(sc.messages[0].nrcpts, 3);
	cr_expect_eq(sc.messages[1].at, 1000000);
	cr_expect_eq(sc.messages[1].nrcpts, 3);
	cr_expect_eq(sc.messages[2].at, 1500000);
	cr_expect_eq(sc.messages[2].first, sc.messages[1].first);
	cr_expect_eq(sc.messages[2].line, 2);
	cr_expect_eq(sc.messages[3].line, 11);
	cr_assert_eq(sc.ndestinations, 5, "b, a, and three of t2");
	cr_expect_str_eq(sc.destinations[0].name, "b");
	cr_expect_eq(sc.destinations[0].bad_pct, 25);
	cr_expect_eq(sc.destinations[0].duration, 2000000);
	cr_expect_eq(sc.destinations[1].duration, 250000, "without case");
	cr_expect_eq(sc.destinations[1].fail, 3);
	cr_expect_eq(sc.destinations[1].refuse, UINT32_MAX);
	cr_expect_str_eq(sc.destinations[3].name, "A00009");
	cr_expect_eq(sc.destinations[3].refuse, 4);
	cr_expect_eq(sc.rcpts[sc.messages[3].first].destination, 0);
	cr_expect_eq(sc.spread_pct, 5);
	cr_expect_eq(sc.seed, 7);
	cr_expect_eq(sc.conf.ntransports, 2 + 1);
	cr_expect_str_eq(sc.conf.transports[1].name, "t2");
	cr_expect_eq(sc.conf.transports[1].sched.process_limit, 3);
	scenario_done(&sc);
}

Test(scenario_input, order_of_transports)
{
	static const struct {
		const char *text, *want;
	} rows[] = {
		{ "at 0 msg a", "smtp" },
		{ "at 0 msg t2/a", "t2 smtp" },
		{ "at 0 msg a t2/a", "smtp t2" },
		{ "at 0 msg t2/a a", "t2 smtp" },
		{ "agents t3 1\nat 1 msg t2/a\nat 0 msg a", "smtp t2 t3" },
		{ "at 1 msg a\nat 1 msg t2/a", "smtp t2" },
		{ "set transports t3:smtp\nat 0 msg t2/a t3/b a",
		    "t3 t2 smtp" },
		{ "dur t3/x 1\nrepeat 3 every 1 at 0 msg t2/a\nat 0 msg a",
		    "t2 smtp t3" },
	};
	size_t i;
	uint32_t k;

	for (i = 0; i < ARRAY_LEN(rows); i++) {
		struct scenario sc;
		struct buf names = { 0 };

		good(rows[i].text, &sc);
		for (k = 0; k + 1 < sc.conf.ntransports; k++)
			cr_assert_eq(
			    buf_printf(&names, "%s%s", k == 0 ? "" : " ",
				sc.conf.transports[k].name),
			    0);
		cr_expect_str_eq(
		    buf_str(&names), rows[i].want, "%s", rows[i].text);
		buf_done(&names);
		scenario_done(&sc);
	}
}

Test(scenario_input, defaults)
{
	struct scenario sc;
	const struct conf_transport *t;

	setenv("QUEUE_LOAD", "nonsense", 1);
	good("at 0 msg a local/b", &sc);
	cr_assert_eq(sc.conf.ntransports, 2 + 1);
	t = &sc.conf.transports[0];
	cr_expect_str_eq(t->name, "smtp");
	cr_expect_eq(t->site.initial_destination_concurrency, 5);
	cr_expect_eq(t->site.destination_concurrency_limit, 20);
	cr_expect_eq(t->sched.destination_recipient_limit, 50);
	cr_expect_eq(t->sched.delivery_slot_cost, 5);
	cr_expect_eq(t->sched.delivery_slot_discount, 50);
	cr_expect_eq(t->sched.delivery_slot_loan, 3);
	cr_expect_eq(t->sched.minimum_delivery_slots, 3);
	cr_expect_eq(t->sched.process_limit, 100);
	cr_expect_eq(t[1].site.destination_concurrency_limit, 2);
	cr_expect_eq(t[1].sched.destination_recipient_limit, 1);
	cr_expect_not(sc.jitter_set);
	cr_expect_eq(sc.destinations[0].duration, 1000000);
	scenario_done(&sc);
}

Test(scenario_input, settings)
{
	struct scenario sc;

	good("set default_delivery_slot_cost 7\nset backoff_jitter 20%\n"
	     "set default_delivery_slot_cost 8\n"
	     "set t2_delivery_slot_cost 9\n"
	     "set transports slow:lmtp t2:local\nat 0 msg a t2/b t3/c",
	    &sc);
	cr_assert_eq(sc.conf.ntransports, 4 + 1);
	cr_expect_str_eq(sc.conf.transports[0].name, "slow");
	cr_expect_str_eq(sc.conf.transports[1].name, "t2");
	cr_expect_eq(sc.conf.transports[1].kind, AGENT_LOCAL);
	cr_expect_str_eq(sc.conf.transports[2].name, "smtp");
	cr_expect_eq(sc.conf.transports[2].sched.delivery_slot_cost, 8);
	cr_expect_eq(sc.conf.transports[1].sched.delivery_slot_cost, 9);
	cr_expect(sc.jitter_set);
	cr_expect_eq(sc.conf.backoff.jitter_pct, 20);
	cr_expect_eq(sc.rcpts[0].transport, 2);
	cr_expect_eq(sc.rcpts[1].transport, 1);
	cr_expect_eq(sc.rcpts[2].transport, 3);
	cr_expect_eq(sc.destinations[1].transport, 1);
	scenario_done(&sc);
}

Test(scenario_input, other_settings_on_top)
{
	static const struct {
		struct conf_setting more;
		const char *want;
	} rows[] = {
		{ { "default_delivery_slot_cost", "0", 1 }, NULL },
		{ { "t2_delivery_slot_cost", "0", 1 }, NULL },
		{ { "t3_delivery_slot_cost", "0", 2 },
		    "--set:2: t3_delivery_slot_cost: there is no transport "
		    "\"t3\"" },
		{ { "nonsense", "0", 1 },
		    "--set:1: nonsense: unknown parameter; "
		    "correct or remove the line" },
		{ { "default_delivery_slot_cost", "x", 1 },
		    "--set:1: default_delivery_slot_cost: must be a whole "
		    "number" },
		{ { "transports", "x:smtp", 1 },
		    "--set:1: transports: are those of the scenario" },
	};
	struct scenario sc;
	size_t i;

	good("set default_delivery_slot_loan 1\nset backoff_jitter 1\n"
	     "set default_delivery_slot_cost 7\nat 0 msg t2/a",
	    &sc);
	for (i = 0; i < ARRAY_LEN(rows); i++) {
		struct conf conf = { 0 };
		struct buf error = { 0 };
		int r = scenario_configure(
		    &sc, "--set", &rows[i].more, 1, &conf, &error);

		cr_expect_eq(r, rows[i].want == NULL ? 0 : -EINVAL);
		cr_expect_str_eq(
		    buf_str(&error), rows[i].want == NULL ? "" : rows[i].want);
		if (r == 0) {
			int t2 = conf_transport_find(&conf, "t2");

			cr_expect_eq(
			    conf.transports[0].sched.delivery_slot_loan, 1);
			cr_expect_eq(
			    conf.transports[t2].sched.delivery_slot_cost, 0);
			conf_done(&conf);
		}
		buf_done(&error);
	}
	scenario_done(&sc);
}

Test(scenario_input, files)
{
	char dir[PATH_MAX], path[PATH_MAX + 8];
	struct buf error = { 0 }, want = { 0 };
	struct scenario sc;
	int fd;

	snprintf(dir, sizeof(dir), "%s/scenario.XXXXXX", getenv("TMPDIR"));
	cr_assert_not_null(mkdtemp(dir));
	cr_expect_eq(scenario_read(dir, &sc, &error), -EISDIR);
	cr_assert_eq(buf_printf(&want, "%s: Is a directory", dir), 0);
	cr_expect_str_eq(buf_str(&error), buf_str(&want));
	buf_reset(&error);
	snprintf(path, sizeof(path), "%s/f", dir);
	cr_expect_eq(scenario_read(path, &sc, &error), -ENOENT);
	buf_reset(&error);
	fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
	cr_assert_geq(fd, 0);
	cr_assert_eq(write(fd, "at 0 msg a", 10), 10);
	close(fd);
	cr_assert_eq(chmod(path, 0666), 0);
	cr_expect_eq(scenario_read(path, &sc, &error), 0,
	    "others may write to it, and it is read");
	cr_expect_str_eq(sc.path, path);
	scenario_done(&sc);
	unlink(path);
	rmdir(dir);
	buf_done(&error);
	buf_done(&want);
}
