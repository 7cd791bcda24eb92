/* Each wrong line of a configuration, for --check. */
#include "config/conf.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/io.h"
#include "config/param.h"

static char dir[] = "/tmp/config_judge.XXXXXX";

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

TestSuite(config_judge, .init = setup, .fini = teardown);

static void
put(const char *name, const char *text)
{
	int fd = open(name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

	cr_assert_geq(fd, 0);
	cr_assert_eq(io_write_all(fd, text, strlen(text)), 0);
	io_close(&fd);
}

static void
expect_judged(const char *text, const char *want)
{
	struct buf errors = { 0 };
	struct conf conf;
	int r;

	put("c", text);
	r = conf_judge("c", &conf, &errors);
	cr_expect_eq(r, *want == '\0' ? 0 : -EINVAL, "%d", r);
	cr_expect_str_eq(buf_str(&errors), want);
	if (r == 0)
		conf_done(&conf);
	buf_done(&errors);
}

/* mutation: common/config/load.c, resolve_settings() does not go on;
 * apply_transports() does not note no_list; apply() compares always. */
Test(config_judge, each_wrong_line_is_judged)
{
	expect_judged("queue_count = 2\n", "");
	expect_judged("queue_count = x\n"
		      "nonsense = 1\n"
		      "no value\n"
		      "\n"
		      "queue_count = 2\n"
		      "nowhere_site_limit\n"
		      "\001\n"
		      "default_smtp_bind_address = here\n"
		      "hopcount_limit = 50\n",
	    "c:1: queue_count: must be a whole number\n"
	    "c:2: nonsense: unknown parameter; correct or remove the line\n"
	    "c:3: not `name = value`\n"
	    "c:5: queue_count: already set in line 1\n"
	    "c:6: not `name = value`\n"
	    "c:7: control character\n"
	    "c:8: default_smtp_bind_address: must be an IPv4 address that a "
	    "host can "
	    "have");
	/* What depends on a wrong line is not judged. */
	expect_judged("transports = mine:nosuch\n"
		      "mine_mx_lookup = no\n"
		      "mine_mx_lookup = no\n",
	    "c:1: transports: \"mine:nosuch\": the kind must be smtp, lmtp, "
	    "local, "
	    "pipe, discard or error");
	expect_judged("queue_count = 21\nqueue_max = x\n",
	    "c:2: queue_max: must be a whole number");
	expect_judged("queue_count = 21\nqueue_max = 20\n",
	    "c:1: queue_count: queue_count 21 is above queue_max 20");
}

/* mutation: common/config/check.c, check_mailbox_size() is 0. */
Test(config_judge, X25_a_mailbox_holds_each_message_that_is_accepted)
{
	expect_judged("mailbox_size_limit = 1m\nmessage_size_limit = 2m\n",
	    "c:1: mailbox_size_limit: mailbox_size_limit 1048576 is below "
	    "message_size_limit 2097152: raise mailbox_size_limit, or lower "
	    "message_size_limit");
	expect_judged("mailbox_size_limit = 1m\nmessage_size_limit = 0\n",
	    "c:1: mailbox_size_limit: mailbox_size_limit 1048576 is below "
	    "message_size_limit 0, which is no limit: raise "
	    "mailbox_size_limit, or lower message_size_limit");
	expect_judged("mailbox_size_limit = 1m\nmessage_size_limit = 1m\n", "");
	expect_judged("mailbox_size_limit = 0\nmessage_size_limit = 2m\n", "");
}

/* mutation: common/config/check.c, check_mailbox_size() raises no default. */
Test(config_judge, X25_the_default_of_a_mailbox_rises_with_that_of_a_message)
{
	static const struct {
		const char *text;
		uint64_t want;
	} rows[] = {
		{ "message_size_limit = 10m\n", 100u << 20 },
		{ "message_size_limit = 200m\n", 200u << 20 },
		{ "message_size_limit = 0\n", 0 },
		{ "mailbox_size_limit = 0\n", 0 },
		{ "mailbox_size_limit = 1g\n", 1u << 30 },
	};
	struct buf errors = { 0 };
	struct conf conf;
	size_t i;

	for (i = 0; i < ARRAY_LEN(rows); i++) {
		put("c", rows[i].text);
		cr_assert_eq(conf_judge("c", &conf, &errors), 0);
		cr_expect_eq(
		    conf.mailbox_size_limit, rows[i].want, "%s", rows[i].text);
		conf_done(&conf);
	}
}

/* mutation: common/config/value.c, wrong_number() with the error alone. */
Test(config_judge, a_number_below_zero_is_told_the_range)
{
	expect_judged("smtp_mx_session_limit = -1\n"
		      "scan_interval = -5s\n"
		      "message_size_limit = -1k\n"
		      "backoff_jitter = -5%\n"
		      "queue_count = -\n",
	    "c:1: smtp_mx_session_limit: must be 0 to 1000\n"
	    "c:2: scan_interval: must be 1s to 1h\n"
	    "c:3: message_size_limit: must be 0 to 1024g\n"
	    "c:4: backoff_jitter: must be 0 to 90\n"
	    "c:5: queue_count: must be a whole number");
}

/* mutation: common/config/word.c, join_words() joins words for each list. */
Test(config_judge, a_comma_is_no_part_of_a_single_word)
{
	expect_judged("log_format = json,\n"
		      "log_level = ,debug\n"
		      "queue_mode = dynamic,\n",
	    "c:1: log_format: must be one of: text json\n"
	    "c:2: log_level: must be one of: debug info warning error\n"
	    "c:3: queue_mode: must be one of: static dynamic");
}

/* mutation: common/config/load.c, fail_unknown() without param_of_postfix(). */
Test(config_judge, a_parameter_of_main_cf_names_ours)
{
	static const char *const names[] = { "sender_dependent_relayhost_maps",
		"smtp_generic_maps", "transport_maps", "fallback_relay" };
	size_t i;

	expect_judged("sender_dependent_relayhost_maps = /x\n"
		      "smtpd_banner = x\n",
	    "c:1: sender_dependent_relayhost_maps: unknown parameter; see "
	    "sender_dependent_relayhost\n"
	    "c:2: smtpd_banner: unknown parameter; correct or remove the line");
	for (i = 0; i < ARRAY_LEN(names); i++) {
		cr_expect_null(param_find(names[i]));
		cr_expect_not_null(param_find(param_of_postfix(names[i])));
	}
}

/* mutation: common/base/wrong_lines.c, insert() appends. */
Test(config_judge, wrong_lines_are_told_up_to_twenty)
{
	struct buf text = { 0 }, want = { 0 };
	int i;

	for (i = 1; i <= 30; i++)
		cr_assert_eq(i % 2 ? buf_add_str(&text, "x\n")
				   : buf_printf(&text, "y%d = 1\n", i),
		    0);
	for (i = 1; i <= 20; i++)
		cr_assert_eq(i % 2
			? buf_printf(&want, "c:%d: not `name = value`\n", i)
			: buf_printf(&want,
			      "c:%d: y%d: unknown parameter; correct or remove "
			      "the line\n",
			      i, i),
		    0);
	cr_assert_eq(buf_add_str(&want, "10 more wrong lines"), 0);
	expect_judged(buf_str(&text), buf_str(&want));
	buf_done(&text);
	buf_done(&want);
}

/* mutation: common/config/conf.c, param_of_path() does not compare what stands
 * behind the path. */
Test(config_judge, an_error_of_a_file_names_its_parameter)
{
	static const struct {
		const char *error, *want;
	} rows[] = {
		{ "/d/senders: No such file or directory",
		    "c:2: sender_rewrite: /d/senders: No such file or "
		    "directory; create the file (it may be empty) or remove "
		    "the parameter" },
		{ "/d/senders: is a directory",
		    "c:2: sender_rewrite: /d/senders: is a directory" },
		{ "/etc/aliases: is a directory",
		    "alias_file: /etc/aliases: is a directory" },
		{ "/d/senders:3: not a domain", "/d/senders:3: not a domain" },
		{ "/d/sender: is a directory", "/d/sender: is a directory" },
		{ "", "" },
	};
	struct conf conf;
	struct buf error = { 0 };
	size_t i;

	put("c", "queue_count = 2\nsender_rewrite = /d/senders\n");
	cr_assert_eq(conf_load("c", &conf, &error), 0);
	for (i = 0; i < ARRAY_LEN(rows); i++) {
		buf_reset(&error);
		cr_assert_eq(buf_add_str(&error, rows[i].error), 0);
		cr_expect_eq(conf_name_file(&conf, &error), 0);
		cr_expect_str_eq(buf_str(&error), rows[i].want);
	}
	conf_done(&conf);
	buf_done(&error);
}
