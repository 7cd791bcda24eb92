/* What is made from the table, and what a reload keeps. */
#include "config/conf.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/io.h"
#include "config/param.h"

static char dir[] = "/tmp/config_show.XXXXXX";

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
	(void)unlink("queue_base");
	cr_assert_eq(chdir("/"), 0);
	cr_assert_eq(rmdir(dir), 0, "%s is not empty", dir);
}

TestSuite(config_show, .init = setup, .fini = teardown);

static void
put(const char *name, const char *text)
{
	int fd = open(name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

	cr_assert_geq(fd, 0);
	cr_assert_eq(io_write_all(fd, text, strlen(text)), 0);
	io_close(&fd);
}

static void
load_text(const char *text, struct conf *ret_conf)
{
	struct buf error = { 0 };

	put("c", text);
	cr_assert_eq(conf_load("c", ret_conf, &error), 0, "\"%s\": %s", text,
	    buf_str(&error));
	buf_done(&error);
}

static char *
dump(const struct conf *conf)
{
	char *text = NULL;
	size_t len = 0;
	FILE *out = open_memstream(&text, &len);

	cr_assert_not_null(out);
	cr_assert_eq(conf_dump(conf, out), 0);
	cr_assert_eq(fclose(out), 0);
	return text;
}

static char *
make(int (*what)(FILE *out))
{
	char *text = NULL;
	size_t len = 0;
	FILE *out = open_memstream(&text, &len);

	cr_assert_not_null(out);
	cr_assert_eq(what(out), 0);
	cr_assert_eq(fclose(out), 0);
	return text;
}

/* The values of a dump, without where they came from. */
static void
cut_origins(char *text)
{
	char *to = text, *from = text;

	while (*from != '\0') {
		char *end = strchr(from, '\n'), *mark = strstr(from, "  # ");

		cr_assert(end != NULL && mark != NULL && mark < end);
		memmove(to, from, (size_t)(mark - from));
		to += mark - from;
		*to++ = '\n';
		from = end + 1;
	}
	*to = '\0';
}

Test(config_show, dump_says_where_every_value_came_from)
{
	struct conf conf;
	char *text;

	put("queue_base", "/control\n");
	setenv("QUEUE_COUNT", "3", 1);
	load_text("\nqueue_max = 9\nsmtp_process_limit = 7\n", &conf);
	text = dump(&conf);
	cr_expect_not_null(strstr(
	    text, "queue_base = /control  # control file ./queue_base\n"));
	cr_expect_not_null(strstr(text, "queue_start = 1  # default\n"));
	cr_expect_not_null(
	    strstr(text, "queue_count = 3  # environment QUEUE_COUNT\n"));
	cr_expect_not_null(strstr(text, "queue_max = 9  # file c:2\n"));
	cr_expect_not_null(
	    strstr(text, "\ndefault_process_limit = 100  # default\n"));
	cr_expect_not_null(
	    strstr(text, "\nsmtp_process_limit = 7  # file c:3\n"));
	cr_expect_not_null(strstr(
	    text, "\nlocal_destination_concurrency_limit = 2  # default\n"));
	cr_expect_null(strstr(text, "\nlmtp_process_limit"));
	free(text);
	conf_done(&conf);
}

Test(config_show, a_dump_reads_back_as_the_same_configuration)
{
	static const char *const texts[] = {
		"",
		"queue_base = /a b/c\nqueue_count = 2\nqueue_load = 33\n"
		"transports = smtp slow:smtp box:local\n"
		"slow_destination_concurrency_positive_feedback = 1/3\n"
		"box_destination_recipient_limit = 9\n"
		"default_destination_concurrency_negative_feedback = "
		"0.5/sqrt_concurrency\n"
		"default_destination_concurrency_failed_cohort_limit = 2.5\n"
		"minimal_backoff_time = 90s\nbackoff_jitter = 0\n"
		"message_size_limit = 1000000\nmaildir_path = /m/%d/%u\n"
		"strict_sync = yes\nlog_format = json\nmyhostname = a.b\n",
	};
	size_t i;

	for (i = 0; i < ARRAY_LEN(texts); i++) {
		struct conf first, second;
		char *a, *b;

		load_text(texts[i], &first);
		a = dump(&first);
		load_text(a, &second);
		b = dump(&second);
		cut_origins(a);
		cut_origins(b);
		cr_expect_str_eq(a, b);
		free(a);
		free(b);
		conf_done(&first);
		conf_done(&second);
	}
}

/* `#name = value` of the sample become settings. */
static void
uncomment(char *text)
{
	char *p = text;

	for (; p != NULL && *p != '\0'; p = strchr(p, '\n')) {
		p += *p == '\n';
		if (p[0] == '#' && p[1] >= 'a' && p[1] <= 'z')
			p[0] = ' ';
	}
}

Test(config_show, the_sample_is_the_defaults)
{
	struct conf plain, sample, active;
	char *text = make(conf_sample), *want, *got;
	cpu_set_t one;

	/* With more than four cores the default of queue_count is another. */
	CPU_ZERO(&one);
	CPU_SET((size_t)sched_getcpu(), &one);
	cr_assert_eq(sched_setaffinity(0, sizeof(one), &one), 0);
	load_text("", &plain);
	want = dump(&plain);
	cut_origins(want);
	load_text(text, &sample);
	got = dump(&sample);
	cut_origins(got);
	cr_expect_str_eq(got, want);
	free(got);
	uncomment(text);
	load_text(text, &active);
	got = dump(&active);
	cr_expect_null(strstr(got, "queue_count = 2  # default"));
	cut_origins(got);
	cr_expect_str_eq(got, want);
	free(got);
	free(want);
	free(text);
	conf_done(&plain);
	conf_done(&sample);
	conf_done(&active);
}

Test(config_show, the_manual_has_every_parameter)
{
	char *text = make(conf_manual);
	const struct param *p;
	struct buf row = { 0 };

	for (p = params; p < params + nparams; p++) {
		if (p->type == PARAM_SECTION)
			continue;
		buf_reset(&row);
		cr_assert_eq(buf_printf(&row, "\n.It Sy %s ", p->name), 0);
		cr_expect_not_null(strstr(text, buf_str(&row)), "%s", p->name);
	}
	buf_done(&row);
	free(text);
}

Test(config_show, A6_output_that_cannot_be_written_is_an_error)
{
	struct conf conf;
	FILE *out;

	load_text("", &conf);
	out = fopen("/dev/full", "we");
	cr_assert_not_null(out);
	cr_expect_eq(conf_dump(&conf, out), -EIO);
	fclose(out);
	out = fopen("/dev/full", "we");
	cr_assert_not_null(out);
	cr_expect_eq(conf_sample(out), -EIO);
	fclose(out);
	conf_done(&conf);
}

Test(config_show, a_reload_names_what_needs_a_restart)
{
	struct conf old, fresh;
	struct buf names = { 0 };

	load_text("queue_count = 2\nminimal_backoff_time = 300s\n", &old);
	load_text("queue_count = 2\nminimal_backoff_time = 1m\n", &fresh);
	cr_expect_eq(conf_frozen_changes(&old, &fresh, &names), 0);
	cr_expect_str_eq(buf_str(&names), "");
	conf_done(&fresh);
	load_text(
	    "queue_base = /x\nqueue_count = 3\ntransports = smtp\n", &fresh);
	cr_expect_eq(conf_frozen_changes(&old, &fresh, &names), 0);
	cr_expect_str_eq(buf_str(&names), "queue_base queue_count transports");
	buf_done(&names);
	conf_done(&fresh);
	conf_done(&old);
}

Test(config_show, what_needs_a_restart_can_be_kept)
{
	struct conf old, fresh;
	struct buf names = { 0 };

	load_text("queue_count = 2\ntransports = smtp slow:smtp local\n"
		  "slow_process_limit = 3\nlocal_process_limit = 4\n",
	    &old);
	load_text("queue_count = 3\nhopcount_limit = 9\n"
		  "transports = box:local slow:smtp local:lmtp\n"
		  "slow_process_limit = 5\nlocal_process_limit = 6\n"
		  "alias_process_limit = 7\n",
	    &fresh);
	cr_assert_eq(conf_keep_frozen(&old, &fresh), 0);
	cr_expect_eq(fresh.queue_count, 2);
	cr_expect_eq(fresh.hopcount_limit, 9);
	cr_assert_eq(fresh.ntransports, 3 + 1);
	cr_expect_eq(conf_transport_find(&fresh, "smtp"), 0);
	cr_expect_eq(conf_transport_find(&fresh, "slow"), 1);
	cr_expect_eq(conf_transport_find(&fresh, "local"), 2);
	cr_expect_eq(fresh.transports[0].sched.process_limit, 100);
	cr_expect_eq(fresh.transports[1].sched.process_limit, 5);
	cr_expect_eq(fresh.transports[2].kind, AGENT_LOCAL);
	cr_expect_eq(fresh.transports[2].sched.process_limit, 4);
	cr_expect_eq(conf_transport_find(&fresh, "alias"), 3);
	cr_expect_eq(fresh.transports[3].kind, AGENT_ALIAS);
	cr_expect_eq(fresh.transports[3].sched.process_limit, 7);
	cr_expect_eq(conf_frozen_changes(&old, &fresh, &names), 0);
	cr_expect_str_eq(buf_str(&names), "");
	buf_done(&names);
	conf_done(&old);
	conf_done(&fresh);
}
