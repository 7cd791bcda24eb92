/* Settings that stand in no configuration file. */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/io.h"
#include "config/conf.h"

Test(config_settings, on_top_of_the_defaults)
{
	static const struct conf_setting settings[] = {
		{ "transports", "smtp slow:smtp", 3 },
		{ "default_delivery_slot_cost", "7", 1 },
		{ "slow_delivery_slot_cost", "9", 2 },
	};
	struct conf conf;
	struct buf error = { 0 };

	/* Neither environment nor files. */
	setenv("QSCHED_CONF", "/dev/null/absent", 1);
	setenv("QUEUE_COUNT", "nonsense", 1);
	cr_assert_eq(conf_from_settings(
			 "where", settings, ARRAY_LEN(settings), &conf, &error),
	    0, "%s", buf_str(&error));
	cr_assert_eq(conf.ntransports, 2 + 1);
	cr_expect_eq(conf.transports[0].sched.delivery_slot_cost, 7);
	cr_expect_eq(conf.transports[1].sched.delivery_slot_cost, 9);
	cr_expect_eq(conf.transports[1].sched.delivery_slot_loan, 3);
	cr_expect_neq(conf.queue_count, 0);
	conf_done(&conf);
	cr_assert_eq(conf_from_settings("where", NULL, 0, &conf, &error), 0);
	cr_expect_eq(conf.ntransports, AGENT_NKINDS);
	conf_done(&conf);
	cr_expect_eq(error.len, 0);
	buf_done(&error);
}

Test(config_settings, errors_name_the_place)
{
	static const struct {
		struct conf_setting settings[2];
		const char *want;
	} rows[] = {
		{ { { "no_such", "1", 4 } },
		    "where:4: no_such: unknown parameter; "
		    "correct or remove the line" },
		{ { { "queue_count", "x", 5 } },
		    "where:5: queue_count: must be a whole number" },
		{ { { "slow_delivery_slot_cost", "1", 6 } },
		    "where:6: slow_delivery_slot_cost: there is no transport "
		    "\"slow\"" },
		{ { { "queue_count", "1", 7 }, { "queue_count", "1", 8 } },
		    "where:8: queue_count: already set in line 7" },
		{ { { "queue_count", "9", 1 }, { "queue_max", "8", 2 } },
		    "where:1: queue_count: queue_count 9 is above queue_max "
		    "8" },
	};
	size_t i;

	for (i = 0; i < ARRAY_LEN(rows); i++) {
		struct conf conf;
		struct buf error = { 0 };
		size_t n = rows[i].settings[1].name == NULL ? 1 : 2;

		cr_expect_eq(conf_from_settings(
				 "where", rows[i].settings, n, &conf, &error),
		    -EINVAL);
		cr_expect_str_eq(buf_str(&error), rows[i].want);
		buf_done(&error);
	}
}

/* A path is that of a file with the name. */
Test(config_settings, F4_name_of_a_host_from_a_file)
{
	static const struct {
		const char *text, *want; /* the name, or the error */
		bool good;
	} rows[] = {
		{ "\nmail.example.org \n", "mail.example.org", true },
		{ "a\nb\n", "name:2: more than one line", false },
		{ "", "name: is empty", false },
		{ "a b\n",
		    "has ` ' as character 2: only letters, digits and `.-_:[]' "
		    "are allowed",
		    false },
		{ NULL, "is a file that is not there", false },
	};
	char dir[] = "/tmp/config_settings.XXXXXX", path[64];
	size_t i;

	cr_assert_not_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/name", dir);
	for (i = 0; i < ARRAY_LEN(rows); i++) {
		const struct conf_setting setting = { "mydomain", path, 1 };
		struct conf conf;
		struct buf error = { 0 };
		int fd =
		    rows[i].text == NULL ? unlink(path) : creat(path, 0644);

		cr_assert_geq(fd, 0);
		if (rows[i].text != NULL) {
			cr_assert_eq(io_write_all(fd, rows[i].text,
					 strlen(rows[i].text)),
			    0);
			io_close(&fd);
		}
		cr_assert_eq(
		    conf_from_settings("where", &setting, 1, &conf, &error),
		    rows[i].good ? 0 : -EINVAL, "%s", buf_str(&error));
		if (rows[i].good) {
			cr_expect_str_eq(conf.mydomain, rows[i].want);
			conf_done(&conf);
		} else
			cr_expect_not_null(
			    strstr(buf_str(&error), rows[i].want), "%s",
			    buf_str(&error));
		buf_done(&error);
	}
	cr_expect_eq(rmdir(dir), 0);
}

/* A word is kept as its place in the list of words. */
Test(config_settings, levels_of_tls)
{
	static const char *const words[] = { "none", "may", "encrypt",
		"verify" };
	struct conf_setting setting = { "lmtp_tls_security_level", NULL, 1 };
	struct buf error = { 0 };
	struct conf conf;
	uint32_t i;
	int k;

	for (i = 0; i < ARRAY_LEN(words); i++) {
		setting.value = words[i];
		cr_assert_eq(
		    conf_from_settings("c", &setting, 1, &conf, &error), 0);
		k = conf_transport_find(&conf, "lmtp");
		cr_expect_eq(conf.transports[k].tls_level, i);
		k = conf_transport_find(&conf, "smtp");
		cr_expect_eq(conf.transports[k].tls_level, 1);
		conf_done(&conf);
	}
	setting.value = "secure";
	cr_expect_eq(
	    conf_from_settings("c", &setting, 1, &conf, &error), -EINVAL);
	cr_expect_str_eq(buf_str(&error),
	    "c:1: lmtp_tls_security_level: must be one of: none may encrypt "
	    "verify");
	buf_done(&error);
}
