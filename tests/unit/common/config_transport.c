/* Transports, their limits, and feedback amounts. */
#include "config/conf.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/io.h"
#include "config/param.h"

static char dir[] = "/tmp/config_transport.XXXXXX";

static void
setup(void)
{
	const struct param *p;

	cr_assert_not_null(mkdtemp(dir));
	cr_assert_eq(chdir(dir), 0);
	for (p = params; p < params + nparams; p++)
		if (p->env != NULL)
			unsetenv(p->env);
}

static void
teardown(void)
{
	(void)unlink("c");
	cr_assert_eq(chdir("/"), 0);
	cr_assert_eq(rmdir(dir), 0, "%s is not empty", dir);
}

TestSuite(config_transport, .init = setup, .fini = teardown);

static int
try_text(const char *text, struct conf *ret_conf, struct buf *error)
{
	int fd = open("c", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

	cr_assert_geq(fd, 0);
	cr_assert_eq(io_write_all(fd, text, strlen(text)), 0);
	io_close(&fd);
	return conf_load("c", ret_conf, error);
}

static void
load_text(const char *text, struct conf *ret_conf)
{
	struct buf error = { 0 };

	cr_assert_eq(try_text(text, ret_conf, &error), 0, "\"%s\": %s", text,
	    buf_str(&error));
	buf_done(&error);
}

static const struct conf_transport *
transport(const struct conf *conf, const char *name)
{
	int i = conf_transport_find(conf, name);

	cr_assert_geq(i, 0, "no transport %s", name);
	return &conf->transports[i];
}

Test(config_transport, the_list_that_is_there_by_default)
{
	struct conf conf;
	uint32_t i;

	load_text("", &conf);
	cr_expect_eq(conf.ntransports, AGENT_NKINDS);
	for (i = 0; i < AGENT_NKINDS; i++) {
		cr_expect_eq(conf.transports[i].kind, i);
		cr_expect_str_eq(conf.transports[i].name, agent_kinds[i].name);
	}
	cr_expect_null(conf.transports[AGENT_NKINDS].name);
	cr_expect_eq(conf_transport_find(&conf, "uucp"), -1);
	conf_done(&conf);
}

Test(config_transport, defaults_of_the_scheduler_documents)
{
	struct conf conf;
	const struct conf_transport *t;

	load_text("", &conf);
	t = transport(&conf, "smtp");
	cr_expect_eq(t->site.initial_destination_concurrency, 5);
	cr_expect_eq(t->site.destination_concurrency_limit, 20);
	cr_expect(t->site.positive.amount == 1);
	cr_expect_eq(t->site.positive.form, WINDOW_FIXED);
	cr_expect(t->site.negative.amount == 1);
	cr_expect(t->site.failed_cohort_limit == 1);
	cr_expect_eq(t->sched.destination_recipient_limit, 50);
	cr_expect_eq(t->sched.delivery_slot_cost, 5);
	cr_expect_eq(t->sched.delivery_slot_discount, 50);
	cr_expect_eq(t->sched.delivery_slot_loan, 3);
	cr_expect_eq(t->sched.minimum_delivery_slots, 3);
	cr_expect_eq(t->sched.recipient_limit, 20000);
	cr_expect_eq(t->sched.extra_recipient_limit, 1000);
	cr_expect_eq(t->sched.recipient_refill_limit, 100);
	cr_expect_eq(t->sched.recipient_refill_delay, 5 * USEC_PER_SEC);
	cr_expect_eq(t->sched.process_limit, 100);
	t = transport(&conf, "local");
	cr_expect_eq(t->site.destination_concurrency_limit, 2);
	cr_expect_eq(t->sched.destination_recipient_limit, 1);
	cr_expect_eq(
	    t->site.initial_destination_concurrency, 2, "capped at the limit");
	conf_done(&conf);
}

Test(config_transport, a_name_of_its_own_has_limits_of_its_own)
{
	struct conf conf;

	load_text("slow_destination_recipient_limit = 7\n"
		  "slow-2_destination_concurrency_limit = 1\n"
		  "default_destination_concurrency_limit = 9\n"
		  "transports = smtp slow:smtp, slow-2:lmtp box:local\n"
		  "smtp_initial_destination_concurrency = 30\n"
		  "box_destination_recipient_limit = 3\n",
	    &conf);
	cr_expect_eq(conf.ntransports, 4 + 1);
	cr_expect_eq(transport(&conf, "slow")->kind, AGENT_SMTP);
	cr_expect_eq(transport(&conf, "slow-2")->kind, AGENT_LMTP);
	cr_expect_eq(
	    transport(&conf, "slow")->sched.destination_recipient_limit, 7);
	cr_expect_eq(
	    transport(&conf, "smtp")->sched.destination_recipient_limit, 50);
	cr_expect_eq(
	    transport(&conf, "slow")->site.destination_concurrency_limit, 9);
	cr_expect_eq(
	    transport(&conf, "slow-2")->site.destination_concurrency_limit, 1);
	cr_expect_eq(
	    transport(&conf, "smtp")->site.initial_destination_concurrency, 9,
	    "capped at the limit");
	/* What kind local has by default stands above default_…. */
	cr_expect_eq(
	    transport(&conf, "box")->site.destination_concurrency_limit, 2);
	cr_expect_eq(
	    transport(&conf, "box")->sched.destination_recipient_limit, 3);
	conf_done(&conf);
}

/* Under its own name, whether for all or for one. */
Test(config_transport, F2_wrong_feedback_is_named)
{
	static const struct {
		const char *line, *want;
	} rows[] = {
		{ "default_destination_concurrency_positive_feedback = 1/n",
		    "must be x, x/y, x/concurrency or x/sqrt_concurrency" },
		{ "smtp_destination_concurrency_negative_feedback = 1/0",
		    "must be x, x/y, x/concurrency or x/sqrt_concurrency" },
		{ "lmtp_destination_concurrency_positive_feedback = 5/4",
		    "must be 0 to 1" },
		{ "default_destination_concurrency_negative_feedback = "
		  "2/sqrt_concurrency",
		    "must be 0 to 1" },
		{ "smtp_destination_concurrency_failed_cohort_limit = -1",
		    "must be 0 to 1000000" },
		{ "smtp_destination_concurrency_failed_cohort_limit = 1e",
		    "must be a decimal number" },
	};
	size_t i;

	for (i = 0; i < ARRAY_LEN(rows); i++) {
		struct buf want = { 0 }, error = { 0 };
		struct conf conf;

		buf_printf(&want, "c:1: %.*s: %s",
		    (int)strcspn(rows[i].line, " "), rows[i].line,
		    rows[i].want);
		cr_expect_eq(try_text(rows[i].line, &conf, &error), -EINVAL);
		cr_expect_str_eq(
		    buf_str(&error), buf_str(&want), "\"%s\"", buf_str(&error));
		buf_done(&want);
		buf_done(&error);
	}
}

/* Every parameter of the scheduler, for one transport and for the others. */
Test(config_transport, every_limit_can_be_one_transports_own)
{
	static const char *const suffixes[] = {
		"initial_destination_concurrency",
		"destination_concurrency_limit",
		"destination_concurrency_positive_feedback",
		"destination_concurrency_negative_feedback",
		"destination_concurrency_failed_cohort_limit",
		"destination_recipient_limit", "delivery_slot_cost",
		"delivery_slot_discount", "delivery_slot_loan",
		"minimum_delivery_slots", "recipient_limit",
		"extra_recipient_limit", "recipient_refill_limit",
		"recipient_refill_delay", "process_limit",
		/* No numbers, and not in the loop below: */
		"domain_literals", "mx_lookup", "destination_mx_rollup",
		"smtp_bind_address", "smtp_bind_address6", "smtp_helo_name",
		"tls_security_level", "tls_wrappermode", "8bit_conversion",
		"chunking", "discard_ehlo_keywords", "host_lookup",
		"fallback_relay"
	};
	const size_t limits = ARRAY_LEN(suffixes) - 13;
	const struct param *p;
	size_t i, len, count = 0;

	for (p = params; p < params + nparams; p++)
		count += p->per_transport;
	cr_expect_eq(count, ARRAY_LEN(suffixes));
	for (i = 0; i < limits; i++) {
		struct conf_transport one, fresh;
		struct buf text = { 0 }, value = { 0 };
		struct conf conf;

		buf_printf(&text, "slow_%s = 1\ntransports = slow:smtp smtp\n",
		    suffixes[i]);
		load_text(buf_str(&text), &conf);
		one = *transport(&conf, "slow");
		fresh = *transport(&conf, "smtp");
		buf_done(&text);
		buf_printf(&text, "slow_%s", suffixes[i]);
		p = param_find_override(buf_str(&text), &len);
		cr_assert_not_null(p, "%s", suffixes[i]);
		cr_expect_eq(len, 4);
		cr_expect_eq(param_format(p, &one, &value), 0);
		cr_expect(strncmp(buf_str(&value), "1", 1) == 0, "%s: %s",
		    suffixes[i], buf_str(&value));
		buf_done(&value);
		cr_expect_eq(param_format(p, &fresh, &value), 0);
		cr_expect_str_eq(buf_str(&value),
		    strcmp(p->fallback, "50") == 0 && p->type == PARAM_PERCENT
			? "50%"
			: p->fallback,
		    "%s: %s", suffixes[i], buf_str(&value));
		buf_done(&value);
		buf_done(&text);
		conf_done(&conf);
	}
}

Test(config_transport, no_limit_caps_nothing)
{
	struct conf conf;

	load_text("default_destination_concurrency_limit = 0\n"
		  "initial_destination_concurrency = 500\n",
	    &conf);
	cr_expect_eq(
	    transport(&conf, "smtp")->site.initial_destination_concurrency,
	    500);
	conf_done(&conf);
}

Test(config_transport, F4_wrong_lists)
{
	static const struct {
		const char *list, *want;
	} rows[] = {
		{ "", "must name one" },
		{ ", ,", "must name one" },
		{ "uucp",
		    "\"uucp\": the kind must be smtp, lmtp, local, pipe, "
		    "discard or error" },
		{ "a:b",
		    "\"a:b\": the kind must be smtp, lmtp, local, pipe, "
		    "discard or error" },
		{ "a:",
		    "\"a:\": the kind must be smtp, lmtp, local, pipe, "
		    "discard or error" },
		{ ":smtp",
		    "\":smtp\": a name is lower-case letters, digits and "
		    "hyphens" },
		{ "A:smtp",
		    "\"A:smtp\": a name is lower-case letters, digits and "
		    "hyphens" },
		{ "a_b:smtp",
		    "\"a_b:smtp\": a name is lower-case letters, digits and "
		    "hyphens" },
		{ "2a:smtp",
		    "\"2a:smtp\": a name is lower-case letters, digits and "
		    "hyphens" },
		{ "a23456789012345678901234567890123:smtp",
		    "\"a23456789012345678901234567890123:smtp\": a name is "
		    "lower-case letters, digits and hyphens" },
		{ "smtp local smtp", "\"smtp\": is there twice" },
		{ "smtp alias:local",
		    "\"alias:local\": the transport of this name is of the "
		    "kind alias" },
		{ "smtp list:alias",
		    "\"list:alias\": the kind alias has one transport, which "
		    "is always there" },
		{ "smtp smtp:lmtp", "\"smtp:lmtp\": is there twice" },
		{ "default:smtp",
		    "\"default:smtp\": its parameters would have names that "
		    "others have" },
		{ "message:smtp",
		    "\"message:smtp\": its parameters would have names that "
		    "others have" },
	};
	size_t i;

	for (i = 0; i < ARRAY_LEN(rows); i++) {
		struct buf text = { 0 }, want = { 0 }, error = { 0 };
		struct conf conf;

		buf_printf(&text, "transports = %s\n", rows[i].list);
		buf_printf(&want, "c:1: transports: %s", rows[i].want);
		cr_expect_eq(try_text(buf_str(&text), &conf, &error), -EINVAL,
		    "%s", rows[i].list);
		cr_expect_str_eq(
		    buf_str(&error), buf_str(&want), "\"%s\"", buf_str(&error));
		buf_done(&text);
		buf_done(&want);
		buf_done(&error);
	}
}

/* Its place is the last, and the parameter shows the others alone. */
Test(config_transport, the_transport_of_aliases_is_always_there)
{
	static const char *const lists[] = {
		"smtp local",
		"alias smtp local",
		"smtp alias:alias local alias",
	};
	const struct param *p = param_find("transports");
	struct conf conf;
	size_t i;

	for (i = 0; i < ARRAY_LEN(lists); i++) {
		const struct conf_transport *t;
		struct buf text = { 0 };

		buf_printf(&text, "transports = %s\nalias_process_limit = 7\n",
		    lists[i]);
		load_text(buf_str(&text), &conf);
		cr_assert_eq(conf.ntransports, 3);
		t = &conf.transports[2];
		cr_expect_str_eq(t->name, "alias");
		cr_expect_eq(t->kind, AGENT_ALIAS);
		cr_expect_eq(t->sched.process_limit, 7);
		cr_expect_eq(t->sched.destination_recipient_limit, 1);
		cr_expect_eq(t->site.destination_concurrency_limit, 2);
		buf_reset(&text);
		cr_expect_eq(param_format(p, &conf, &text), 0);
		cr_expect_str_eq(buf_str(&text), "smtp local");
		buf_done(&text);
		conf_done(&conf);
	}
}

Test(config_transport, as_many_as_there_is_room_for)
{
	struct buf text = { 0 }, error = { 0 };
	struct conf conf;
	int i;

	buf_add_str(&text, "transports =");
	for (i = 0; i < CONF_TRANSPORTS_LISTED_MAX; i++)
		buf_printf(&text, " t%d:smtp", i);
	load_text(buf_str(&text), &conf);
	cr_expect_eq(conf.ntransports, CONF_TRANSPORTS_MAX);
	cr_expect_str_eq(
	    conf.transports[CONF_TRANSPORTS_MAX - 1].name, "alias");
	conf_done(&conf);
	buf_add_str(&text, " one-more:smtp");
	cr_expect_eq(try_text(buf_str(&text), &conf, &error), -EINVAL);
	cr_expect_str_eq(buf_str(&error),
	    "c:1: transports: \"one-more:smtp\": too many transports");
	buf_done(&text);
	buf_done(&error);
}

Test(config_transport, feedback_amounts)
{
	static const struct {
		const char *text;
		int want;
		double amount;
		enum window_form form;
	} rows[] = {
		{ "1", 0, 1, WINDOW_FIXED },
		{ "0", 0, 0, WINDOW_FIXED },
		{ "0.25", 0, 0.25, WINDOW_FIXED },
		{ "1/4", 0, 0.25, WINDOW_FIXED },
		{ "3/4", 0, 0.75, WINDOW_FIXED },
		{ "0.5/2", 0, 0.25, WINDOW_FIXED },
		{ "5/5", 0, 1, WINDOW_FIXED },
		{ "1/concurrency", 0, 1, WINDOW_PER_N },
		{ "0.5/concurrency", 0, 0.5, WINDOW_PER_N },
		{ "1/sqrt_concurrency", 0, 1, WINDOW_PER_ROOT_N },
		{ "", -EINVAL, 0, 0 },
		{ "2", -EINVAL, 0, 0 },
		{ "5/4", -EINVAL, 0, 0 },
		{ "1/0", -EINVAL, 0, 0 },
		{ "2/concurrency", -EINVAL, 0, 0 },
		{ "-1/concurrency", -EINVAL, 0, 0 },
		{ "1/", -EINVAL, 0, 0 },
		{ "/2", -EINVAL, 0, 0 },
		{ "1/2/3", -EINVAL, 0, 0 },
		{ "1/8", 0, 0.125, WINDOW_FIXED },
		{ "8/8", 0, 1, WINDOW_FIXED },
		{ "0/concurrency", 0, 0, WINDOW_PER_N },
		{ "1.0/1.5", 0, 1 / 1.5, WINDOW_FIXED },
		{ "1/0.5", -EINVAL, 0, 0 },
		{ "9/8", -EINVAL, 0, 0 },
		{ "1.1/sqrt_concurrency", -EINVAL, 0, 0 },
		{ "1/2/concurrency", -EINVAL, 0, 0 },
		{ "1/concurrency/2", -EINVAL, 0, 0 },
		{ "1/concurrencyx", -EINVAL, 0, 0 },
		{ "/concurrency", -EINVAL, 0, 0 },
		{ "1//concurrency", -EINVAL, 0, 0 },
		{ "1/-2", -EINVAL, 0, 0 },
		{ "1/2x", -EINVAL, 0, 0 },
		{ "1e-1", -EINVAL, 0, 0 },
		{ "0x1", -EINVAL, 0, 0 },
		{ "nan", -EINVAL, 0, 0 },
		{ "1 / 2", -EINVAL, 0, 0 },
		{ "1/cube_concurrency", -EINVAL, 0, 0 },
		{ "1/CONCURRENCY", -EINVAL, 0, 0 },
		{ "concurrency", -EINVAL, 0, 0 },
		{ "0.0000000000000000000000000000000000001", -EINVAL, 0, 0 },
	};
	const struct param *p =
	    param_find("default_destination_concurrency_positive_feedback");
	size_t i;

	for (i = 0; i < ARRAY_LEN(rows); i++) {
		struct conf_transport t = { .site.positive.amount = 7 };
		struct buf why = { 0 };

		cr_expect_eq(param_set(p, &t, rows[i].text, &why), rows[i].want,
		    "\"%s\"", rows[i].text);
		if (rows[i].want == 0) {
			cr_expect(t.site.positive.amount == rows[i].amount,
			    "\"%s\"", rows[i].text);
			cr_expect_eq(t.site.positive.form, rows[i].form);
		} else {
			cr_expect(t.site.positive.amount == 7);
			cr_expect_gt(why.len, 0);
		}
		buf_done(&why);
	}
}

/* mutation: account_limit() gives the limit of the transport, or
 * conf_site_params() asks it for no kind. */
Test(config_transport, X12_an_account_has_a_share_of_the_slots)
{
	static const struct {
		uint32_t process_limit, share, limit, want;
	} rows[] = {
		{ 100, 10, 2, 2 },
		{ 100, 10, 0, 10 },
		{ 100, 10, 100000, 10 },
		{ 100, 10, 11, 10 },
		{ 5, 10, 2, 1 },
		{ 1, 1, 0, 1 },
		{ 10000, 100, 0, 10000 },
	};
	struct conf conf = { .ntransports = 2 };
	struct site_params p;
	size_t i;

	for (i = 0; i < ARRAY_LEN(rows); i++) {
		conf.local_account_share = rows[i].share;
		conf.transports[1].kind = AGENT_LOCAL;
		conf.transports[1].sched.process_limit = rows[i].process_limit;
		conf.transports[1].site.destination_concurrency_limit =
		    rows[i].limit;
		conf_site_params(&conf, 1, &p);
		cr_expect_eq(p.destination_concurrency_limit, rows[i].want,
		    "row %zu: %u", i, p.destination_concurrency_limit);
		cr_expect_leq(p.initial_destination_concurrency,
		    p.destination_concurrency_limit);
		conf.transports[1].kind = AGENT_PIPE;
		conf_site_params(&conf, 1, &p);
		cr_expect_eq(p.destination_concurrency_limit, rows[i].limit);
	}
}
