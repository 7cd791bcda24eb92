/* Queued mail of another MTA, for --check. */
#include "qscheduler/supervisor/supervisor.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/unit/files.h"

static char root[] = "/tmp/qsched-unit-XXXXXX";

static void
begin(void)
{
	cr_assert_not_null(mkdtemp(root));
}

static void
end(void)
{
	unit_remove_tree(root);
}

TestSuite(warn_host, .init = begin, .fini = end);

static void
put(const char *path)
{
	char full[512], *slash;
	FILE *f;

	snprintf(full, sizeof(full), "%s%s", root, path);
	for (slash = strchr(full + strlen(root) + 1, '/'); slash != NULL;
	     slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		(void)mkdir(full, 0700);
		*slash = '/';
	}
	f = fopen(full, "w");
	cr_assert_not_null(f, "%s", full);
	cr_assert_eq(fclose(f), 0);
}

/* mutation: qscheduler/supervisor/warn_host.c, counts() is always true;
 * warn_mta() looks at the queues of this instance. */
Test(warn_host, queued_mail_of_another_mta)
{
	static const char *const files[] = {
		"/var/spool/postfix/maildrop/ABC",
		"/var/spool/postfix/deferred/A/A123",
		"/var/spool/postfix/deferred/B/B123",
		"/var/spool/postfix/defer/B/B123",
		"/var/spool/exim4/input/1abc-D",
		"/var/spool/exim4/input/1abc-H",
		"/var/qmail/queue/mess/3/123",
		"/var/qmail/queue/info/3/123",
		"/var/indimail/queue/queue1/mess/3/123",
		"/var/indimail/queue/queue2/remote/3/123",
		"/var/spool/mqueue/dfx",
		"/var/spool/mqueue/qfx",
	};
	static const char *const want[] = {
		"/var/spool/postfix has 3 queued messages of Postfix, ",
		"/var/spool/exim4 has 1 queued message of Exim, ",
		"/var/qmail/queue has 1 queued message of qmail, ",
		"/var/indimail/queue has 1 queued message of indimail, ",
		"/var/spool/mqueue has 1 queued message of Sendmail, ",
	};
	struct buf out = { 0 };
	const char *at;
	size_t i;

	cr_expect_eq(files_warn_queued(root, "/var/spool/q", &out), 0);
	cr_expect_str_eq(buf_str(&out), "");
	for (i = 0; i < ARRAY_LEN(files); i++)
		put(files[i]);
	cr_expect_eq(files_warn_queued(root, "/var/spool/q", &out), 0);
	for (i = 0, at = buf_str(&out); i < ARRAY_LEN(want); i++) {
		cr_expect_eq(strncmp(at, root, strlen(root)), 0);
		at += strlen(root);
		cr_expect_eq(
		    strncmp(at, want[i], strlen(want[i])), 0, "%s", at);
		at = strchr(at, '\n') + 1;
	}
	cr_expect_str_eq(at, "");
	buf_reset(&out);
	cr_expect_eq(files_warn_queued(root, "/var/indimail/queue", &out), 0);
	cr_expect_null(strstr(buf_str(&out), "indimail"));
	buf_done(&out);
}
