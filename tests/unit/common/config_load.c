/* Reading configurations, good and bad. Every test has a directory and an
 * environment of its own. */
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
#include "spool/id.h"
#include "spool/spool.h"

#define UNKNOWN "unknown parameter; correct or remove the line"
static char dir[] = "/tmp/config_load.XXXXXX";

static void
setup(void)
{
	const struct param *p;

	cr_assert_not_null(mkdtemp(dir));
	cr_assert_eq(chdir(dir), 0);
	for (p = params; p < params + nparams; p++)
		if (p->env != NULL)
			unsetenv(p->env);
	unsetenv("QSCHED_CONF");
}

static void
teardown(void)
{
	(void)unlink("c");
	(void)unlink("queue_base");
	cr_assert_eq(chdir("/"), 0);
	cr_assert_eq(rmdir(dir), 0, "%s is not empty", dir);
}

TestSuite(config_load, .init = setup, .fini = teardown);

static void
put_bytes(const char *name, const char *text, size_t len)
{
	int fd = open(name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

	cr_assert_geq(fd, 0);
	cr_assert_eq(io_write_all(fd, text, len), 0);
	io_close(&fd);
}

static void
put(const char *name, const char *text)
{
	put_bytes(name, text, strlen(text));
}

/* Loads `c` with this text; it has to be right. */
static void
load_text(const char *text, struct conf *ret_conf)
{
	struct buf error = { 0 };

	put("c", text);
	cr_assert_eq(conf_load("c", ret_conf, &error), 0, "\"%s\": %s", text,
	    buf_str(&error));
	cr_expect_eq(error.len, 0);
	buf_done(&error);
}

/* It has to be wrong, and say so; *ret_conf may not be touched. */
static void
expect_error(const char *path, int error, const char *want)
{
	struct conf conf = { .queue_count = 4711 };
	struct buf said = { 0 };

	cr_expect_eq(conf_load(path, &conf, &said), error, "want \"%s\"", want);
	cr_expect_str_eq(
	    buf_str(&said), want, "\"%s\", not \"%s\"", buf_str(&said), want);
	cr_expect_eq(conf.queue_count, 4711);
	cr_expect_null(conf.queue_base);
	buf_done(&said);
}

Test(config_load, without_a_file_everything_has_its_default)
{
	struct conf conf;

	load_text("", &conf);
	cr_expect_str_eq(conf.queue_base, "/var/qscheduler/queue");
	cr_expect_eq(conf.queue_start, 1);
	cr_expect_geq(conf.queue_count, 2);
	cr_expect_eq(conf.queue_max, 20);
	cr_expect_eq(conf.queue_load_pct, 90);
	cr_expect_eq(conf.queue_split, SPOOL_SPLIT_DEFAULT);
	cr_expect_eq(conf.error_interval, 5 * USEC_PER_SEC);
	cr_expect_str_eq(conf.instance, "");
	cr_expect_eq(conf.message_size_limit, 100u << 20);
	cr_expect_eq(conf.backoff.minimal_backoff_time, 300 * USEC_PER_SEC);
	cr_expect_eq(conf.backoff.maximal_backoff_time, 4000 * USEC_PER_SEC);
	cr_expect_eq(conf.backoff.jitter_pct, 10);
	cr_expect_eq(conf.maximal_queue_lifetime, 5 * 86400 * USEC_PER_SEC);
	cr_expect_eq(conf.sched.message_active_limit, 20000);
	cr_expect_eq(conf.sched.message_recipient_limit, 20000);
	cr_expect_eq(conf.sched.message_recipient_minimum, 10);
	cr_expect_str_eq(conf.maildir_path, "%h/Maildir/");
	cr_expect_str_eq(conf_path(&conf), "c");
	conf_done(&conf);
	cr_expect_null(conf.queue_base);
}

Test(config_load, limits_that_others_have_too_are_the_same)
{
	struct conf conf;

	cr_expect_eq(CONF_QUEUE_NUM_MAX, QUEUE_NUM_MAX);
	load_text("queue_split = 1024\nqueue_max = 256\n", &conf);
	cr_expect_eq(conf.queue_split, SPOOL_SPLIT_MAX);
	cr_expect_eq(conf.queue_max, CONF_QUEUES_MAX);
	conf_done(&conf);
}

Test(config_load, every_row_of_the_table_is_whole)
{
	const struct param *p, *q;

	for (p = params; p < params + nparams; p++) {
		cr_expect_not_null(p->help);
		if (p->type == PARAM_SECTION)
			continue;
		cr_expect(p->name[0] != '\0' && p->fallback != NULL);
		cr_expect_eq(param_find(p->name), p, "%s", p->name);
		cr_expect_eq(p->help[strlen(p->help) - 1], '.', "%s", p->name);
		for (q = p + 1; q < params + nparams; q++)
			cr_expect(
			    q->name == NULL || strcmp(p->name, q->name) != 0,
			    "%s is there twice", p->name);
	}
}

/* The ends of each range are inside of it: as the table writes them. */
Test(config_load, F3_ends_of_every_range)
{
	const struct param *p;

	for (p = params; p < params + nparams; p++) {
		struct conf conf = { 0 };
		struct conf_transport transport = { 0 };
		struct buf why = { 0 }, past = { 0 };
		void *base = p->per_transport ? (void *)&transport : &conf;

		if (p->type == PARAM_SECTION || p->type > PARAM_DECIMAL)
			continue;
		cr_expect_eq(param_set(p, base, p->min, &why), 0, "%s: %s",
		    p->name, buf_str(&why));
		cr_expect_eq(param_set(p, base, p->max, &why), 0, "%s: %s",
		    p->name, buf_str(&why));
		cr_assert_eq(buf_printf(&past, "9%s", p->max), 0);
		cr_expect_eq(param_set(p, base, buf_str(&past), &why), -EINVAL,
		    "%s", p->name);
		if (strcmp(p->min, "1") == 0)
			cr_expect_eq(param_set(p, base, "0", &why), -EINVAL);
		buf_done(&why);
		buf_done(&past);
	}
}

Test(config_load, F4_forms_of_a_line)
{
	struct conf conf;

	load_text("# a comment\r\n\r\n  queue_count\t=  7  # seven\r\n"
		  "queue_max=8\n\t# another\nmydomain =\n"
		  "queue_base = /a b/c#d",
	    &conf);
	cr_expect_eq(conf.queue_count, 7);
	cr_expect_eq(conf.queue_max, 8);
	cr_expect_str_eq(conf.mydomain, "");
	cr_expect_str_eq(conf.queue_base, "/a b/c#d");
	conf_done(&conf);
}

#define NO_UTF8 "\"?\" is no name of a host: the domain is not valid UTF-8"
Test(config_load, F2_F3_F4_what_is_wrong_is_said_with_file_and_line)
{
	static const struct {
		const char *text, *want;
	} rows[] = {
		/* F2 */
		{ "queue_count =", "c:1: queue_count: must be a whole number" },
		{ "queue_count = -1", "c:1: queue_count: must be 1 to 256" },
		{ "queue_count = 10x",
		    "c:1: queue_count: must be a whole number" },
		{ "queue_count = 0x5",
		    "c:1: queue_count: must be a whole number" },
		{ "queue_count = 5.0",
		    "c:1: queue_count: must be a whole number" },
		{ "queue_count = 5 5",
		    "c:1: queue_count: must be a whole number" },
		{ "\nqueue_max = 2147483648",
		    "c:2: queue_max: must be 1 to 256" },
		{ "queue_max = 9223372036854775808",
		    "c:1: queue_max: must be 1 to 256" },
		{ "queue_max = 99999999999999999999999",
		    "c:1: queue_max: must be 1 to 256" },
		{ "scan_interval = 5 s",
		    "c:1: scan_interval: must be a time (250ms, 30s, 5m, 2h, "
		    "5d, 1w)" },
		{ "scan_interval = 10ms",
		    "c:1: scan_interval: must be 1s to 1h" },
		{ "message_size_limit = 1t",
		    "c:1: message_size_limit: must be a size (64k, 10m, 2g)" },
		{ "message_size_limit = 1025g",
		    "c:1: message_size_limit: must be 0 to 1024g" },
		{ "backoff_jitter = 10%%",
		    "c:1: backoff_jitter: must be a whole number of percent" },
		{ "backoff_jitter = 91%",
		    "c:1: backoff_jitter: must be 0 to 90" },
		{ "backoff_jitter = %",
		    "c:1: backoff_jitter: must be a whole number of percent" },
		{ "strict_sync = maybe",
		    "c:1: strict_sync: must be yes or no" },
		/* F3 */
		{ "queue_count = 0", "c:1: queue_count: must be 1 to 256" },
		{ "queue_count = 21",
		    "c:1: queue_count: queue_count 21 is above queue_max 20" },
		{ "queue_start = 4080",
		    "c:1: queue_start: the last queue would be number 4099, "
		    "above 4095" },
		{ "queue_start = 4096", "c:1: queue_start: must be 1 to 4095" },
		{ "minimal_backoff_time = 2h",
		    "c:1: minimal_backoff_time: minimal_backoff_time is above "
		    "maximal_backoff_time" },
		{ "maximal_backoff_time = 1m",
		    "c:1: maximal_backoff_time: minimal_backoff_time is above "
		    "maximal_backoff_time" },
		{ "default_destination_recipient_limit = 101",
		    "c:1: default_destination_recipient_limit: must be 1 to "
		    "100" },
		{ "smtp_destination_recipient_limit = 0",
		    "c:1: smtp_destination_recipient_limit: must be 1 to "
		    "100" },
		/* F4 */
		{ "queue_cuont = 5", "c:1: queue_cuont: " UNKNOWN },
		{ "Queue_Count = 5", "c:1: Queue_Count: " UNKNOWN },
		{ " = 5", "c:1: : " UNKNOWN },
		{ "queue_count = 5\n\nqueue_count = 5",
		    "c:3: queue_count: already set in line 1" },
		{ "smtp_process_limit = 5\nsmtp_process_limit = 5",
		    "c:2: smtp_process_limit: already set in line 1" },
		{ "transports = smtp local\ntransports = smtp",
		    "c:2: transports: already set in line 1" },
		{ "queue_count 5", "c:1: not `name = value`" },
		{ "queue_count = 5\n\xef\xbb\xbf", "c:2: not `name = value`" },
		{ "\xef\xbb\xbfqueue_count = 5", "c:1: byte-order mark" },
		{ "queue_count = 5\x01", "c:1: control character" },
		{ "uucp_process_limit = 5",
		    "c:1: uucp_process_limit: there is no transport "
		    "\"uucp\"" },
		{ "smtp_queue_count = 5", "c:1: smtp_queue_count: " UNKNOWN },
		/* F5 and other texts */
		{ "queue_base = queue",
		    "c:1: queue_base: must be an absolute path" },
		{ "queue_base =", "c:1: queue_base: must not be empty" },
		{ "program_dir = bin",
		    "c:1: program_dir: must be an absolute path" },
		{ "instance = a/b",
		    "c:1: instance: has `/' as character 2: only letters, "
		    "digits and `_-' are allowed" },
		{ "qmailq_user = -u",
		    "c:1: qmailq_user: must not begin with `-'" },
		{ "qmailq_user = "
		  "a23456789012345678901234567890123",
		    "c:1: qmailq_user: longer than 32 bytes" },
		{ "qmailq_user = m\303\244il",
		    "c:1: qmailq_user: has `\303\244' as character 2: only "
		    "letters, digits and `._-' are allowed" },
		{ "myhostname = \344", "c:1: myhostname: " NO_UTF8 },
		{ "myhostname = a b",
		    "c:1: myhostname: has ` ' as character 2: only letters, "
		    "digits and `.-_:[]' are allowed" },
		{ "maildir_path = Maildir",
		    "c:1: maildir_path: must begin with / or %h, or mbox:/ "
		    "or mbox:%h" },
		{ "forward_path = /f/%d",
		    "c:1: forward_path: behind % must stand u, h or %" },
		{ "maildir_path = mbox:/mail/%u/",
		    "c:1: maildir_path: an mbox is a file: its path must not "
		    "end in /" },
		{ "maildir_path = /mail/%x",
		    "c:1: maildir_path: behind % must stand u, d, h or %" },
		{ "maildir_path = /mail/%",
		    "c:1: maildir_path: behind % must stand u, d, h or %" },
		{ "log_format = xml",
		    "c:1: log_format: must be one of: text json" },
		{ "log_format = text json",
		    "c:1: log_format: must be one of: text json" },
		{ "log_level =",
		    "c:1: log_level: must be one of: debug info warning "
		    "error" },
	};
	size_t i;

	for (i = 0; i < ARRAY_LEN(rows); i++) {
		put("c", rows[i].text);
		expect_error("c", -EINVAL, rows[i].want);
	}
}

Test(config_load, F4_nul_and_very_long_lines)
{
	static char line[1000001];

	put_bytes("c", "queue_count = 5\nqueue\0_max = 5\n", 31);
	expect_error("c", -EINVAL, "c:2: NUL");
	memset(line, 'x', sizeof(line) - 1);
	put("c", line);
	expect_error("c", -EINVAL, "c:1: line too long");
	memset(line, '#', sizeof(line) - 1);
	put("c", line);
	expect_error("c", -EINVAL, "c:1: line too long");
}

Test(config_load, F1_what_is_no_configuration_file)
{
	struct conf conf;
	static char big[CONF_FILE_MAX + 2];

	expect_error("absent", -ENOENT, "absent: No such file or directory");
	expect_error("/", -EISDIR, "/: is a directory");
	cr_assert_eq(mkfifo("c", 0600), 0);
	expect_error("c", -EINVAL, "c: is not a regular file");
	cr_assert_eq(unlink("c"), 0);
	memset(big, '\n', sizeof(big) - 1);
	put("c", big);
	expect_error("c", -EFBIG, "c: is too large");
	if (geteuid() != 0) {
		cr_assert_eq(chmod("c", 0), 0);
		expect_error("c", -EACCES, "c: Permission denied");
		cr_assert_eq(unlink("c"), 0);
	}
	/* Empty is fine. */
	load_text("", &conf);
	conf_done(&conf);
}

Test(config_load, F1_the_file_that_is_named_must_be_there)
{
	struct conf conf = { 0 };
	struct buf error = { 0 };

	setenv("QSCHED_CONF", "absent", 1);
	expect_error(NULL, -ENOENT, "absent: No such file or directory");
	setenv("QSCHED_CONF", "", 1);
	expect_error(NULL, -EINVAL, "QSCHED_CONF: must not be empty");
	put("c", "queue_count = 3\n");
	setenv("QSCHED_CONF", "c", 1);
	cr_assert_eq(conf_load(NULL, &conf, &error), 0);
	cr_expect_eq(conf.queue_count, 3);
	conf_done(&conf);
	/* -c outranks it. */
	setenv("QSCHED_CONF", "absent", 1);
	cr_assert_eq(conf_load("c", &conf, &error), 0);
	conf_done(&conf);
	buf_done(&error);
}

Test(config_load, F8_root_refuses_a_file_that_others_may_change)
{
	if (geteuid() != 0)
		cr_skip("needs root");
	put("c", "");
	cr_assert_eq(chmod("c", 0666), 0);
	expect_error("c", -EPERM,
	    "c: not trusted: others than root may write (chmod go-w)");
}

Test(config_load, environment_above_file)
{
	struct conf conf;

	setenv("QUEUE_BASE", "/env", 1);
	setenv("QUEUE_START", "2", 1);
	setenv("QUEUE_COUNT", "3", 1);
	setenv("QUEUE_MAX", "4", 1);
	setenv("QUEUE_LOAD", "50", 1);
	setenv("ERROR_INTERVAL", "7", 1);
	setenv("QSCHED_INSTANCE", "t-1_x", 1);
	load_text("queue_base = /file\nqueue_count = 9\ninstance = f\n", &conf);
	cr_expect_str_eq(conf.queue_base, "/env");
	cr_expect_eq(conf.queue_start, 2);
	cr_expect_eq(conf.queue_count, 3);
	cr_expect_eq(conf.queue_max, 4);
	cr_expect_eq(conf.queue_load_pct, 50);
	cr_expect_eq(conf.error_interval, 7 * USEC_PER_SEC);
	cr_expect_str_eq(conf.instance, "t-1_x");
	conf_done(&conf);
}

Test(config_load, F2_F3_wrong_environment_names_the_variable)
{
	static const struct {
		const char *variable, *value, *want;
	} rows[] = {
		{ "QUEUE_COUNT", "",
		    "environment QUEUE_COUNT: must be a whole "
		    "number" },
		{ "QUEUE_COUNT", "0",
		    "environment QUEUE_COUNT: must be 1 to 256" },
		{ "QUEUE_COUNT", "21",
		    "environment QUEUE_COUNT: queue_count 21 is "
		    "above queue_max 20" },
		{ "QUEUE_COUNT", " 5",
		    "environment QUEUE_COUNT: must be a whole "
		    "number" },
		{ "QUEUE_BASE", "queue",
		    "environment QUEUE_BASE: must be an absolute "
		    "path" },
		{ "QUEUE_BASE", "",
		    "environment QUEUE_BASE: must not be empty" },
		{ "QSCHED_INSTANCE", "../x",
		    "environment QSCHED_INSTANCE: must not begin with `.'" },
		{ "ERROR_INTERVAL", "5x",
		    "environment ERROR_INTERVAL: must be a "
		    "time (250ms, 30s, 5m, 2h, 5d, 1w)" },
	};
	size_t i;

	put("c", "");
	for (i = 0; i < ARRAY_LEN(rows); i++) {
		setenv(rows[i].variable, rows[i].value, 1);
		expect_error("c", -EINVAL, rows[i].want);
		unsetenv(rows[i].variable);
	}
}

Test(config_load, control_file_above_default_below_the_rest)
{
	struct conf conf;

	put("queue_base", "/control\n");
	load_text("", &conf);
	cr_expect_str_eq(conf.queue_base, "/control");
	conf_done(&conf);
	load_text("queue_base = /file", &conf);
	cr_expect_str_eq(conf.queue_base, "/file");
	conf_done(&conf);
	put("queue_base", "\r\n /control2 \r\n\r\n");
	load_text("", &conf);
	cr_expect_str_eq(conf.queue_base, "/control2");
	conf_done(&conf);
	setenv("QUEUE_BASE", "/env", 1);
	load_text("", &conf);
	cr_expect_str_eq(conf.queue_base, "/env");
	conf_done(&conf);
}

Test(config_load, F1_F5_wrong_control_file)
{
	put("c", "");
	put("queue_base", "");
	expect_error("c", -EINVAL, "./queue_base: is empty");
	put("queue_base", "/a\n/b\n");
	expect_error("c", -EINVAL, "./queue_base:2: more than one line");
	put("queue_base", "relative\n");
	expect_error(
	    "c", -EINVAL, "./queue_base: queue_base: must be an absolute path");
	cr_assert_eq(unlink("queue_base"), 0);
	cr_assert_eq(mkdir("queue_base", 0755), 0);
	expect_error("c", -EISDIR, "./queue_base: is a directory");
	cr_assert_eq(rmdir("queue_base"), 0);
}

/* A reader sees the old file or the new one, whole: here the new one is put
 * in place after every load, and both differ in first and last line. */
Test(config_load, F7_a_file_that_is_replaced_is_old_or_new)
{
	static const char *const texts[] = {
		"queue_count = 3\nqueue_max = 3\n",
		"queue_count = 4\nqueue_max = 4\n",
	};
	struct buf error = { 0 };
	size_t i;

	for (i = 0; i < 20; i++) {
		struct conf conf = { 0 };

		put("new", texts[i % 2]);
		cr_assert_eq(rename("new", "c"), 0);
		cr_assert_eq(conf_load("c", &conf, &error), 0);
		cr_expect_eq(conf.queue_count, 3 + i % 2);
		cr_expect_eq(conf.queue_max, conf.queue_count);
		conf_done(&conf);
	}
	buf_done(&error);
}
