#include "route/credentials.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/io.h"

static char path[] = "/tmp/qsched-passwords-XXXXXX";

static int
load(const char *text, mode_t mode, struct credentials **ret, struct buf *error)
{
	int fd, r;

	memcpy(path + strlen(path) - 6, "XXXXXX", 6);
	fd = mkstemp(path);
	cr_assert_geq(fd, 0);
	cr_assert_eq(io_write_all(fd, text, strlen(text)), 0);
	cr_assert_eq(fchmod(fd, mode), 0);
	close(fd);
	r = credentials_load(path, ret, error);
	unlink(path);
	return r;
}

Test(credentials, the_row_of_a_next_hop)
{
	static const char text[] =
	    "# passwords\n"
	    "[smtp.example]:587 me secret\n"
	    "smtp.example  \"other me\" \"a \\\"b\\\" \\\\ #c\"\n"
	    "\n"
	    "oauth.example you ya29.token xoauth2\n"
	    "[::1]:25 six p#w\n"
	    "[b\xc3\xbc.example]:587 bue pw\n";
	static const struct {
		const char *nexthop, *user, *secret;
		bool token;
	} rows[] = {
		{ "[smtp.example]:587", "me", "secret", false },
		{ "[SMTP.example]:587", "me", "secret", false },
		{ "smtp.example", "other me", "a \"b\" \\ #c", false },
		{ "[smtp.example]:25", "other me", "a \"b\" \\ #c", false },
		{ "smtp.example:587", "other me", "a \"b\" \\ #c", false },
		{ "oauth.example", "you", "ya29.token", true },
		{ "[::1]:25", "six", "p#w", false },
		{ "[0:0::1]:25", "six", "p#w", false },
		{ "[smtp.example.]:587", "me", "secret", false },
		{ "[xn--b-eha.example]:587", "bue", "pw", false },
		{ "[B\xc3\x9c.example]:587", "bue", "pw", false },
		{ "mail.smtp.example", NULL, NULL, false },
		{ "example", NULL, NULL, false },
		{ "[::1]", NULL, NULL, false },
	};
	struct credentials *t = NULL;
	struct buf error = { 0 };
	size_t i;

	cr_assert_eq(load(text, 0600, &t, &error), 0, "%s", buf_str(&error));
	for (i = 0; i < ARRAY_LEN(rows); i++) {
		const struct credential *c =
		    credentials_find(t, rows[i].nexthop);

		cr_assert_eq(
		    c != NULL, rows[i].user != NULL, "%s", rows[i].nexthop);
		if (c == NULL)
			continue;
		cr_expect_str_eq(c->user, rows[i].user);
		cr_expect_str_eq(c->secret, rows[i].secret);
		cr_expect_eq(c->token, rows[i].token);
	}
	credentials_free(&t);
	buf_done(&error);
}

/* No word of a line is in the reason. */
Test(credentials, F4_wrong_lines)
{
	static const struct {
		const char *text, *why;
	} rows[] = {
		{ "SeCrEt\n", ":1: next hop, user and secret are needed" },
		{ "mx SeCrEt\n", ":1: next hop, user and secret are needed" },
		{ "mx: me SeCrEt\n", ":1: the first word is no next hop" },
		{ "mx me \"SeCrEt\n", ":1: a quote is not closed" },
		{ "mx me SeCrEt plain\n",
		    ":1: the fourth word must be oauthbearer or xoauth2" },
		{ "mx me SeCrEt xoauth2 x\n", ":1: too many words" },
		{ "mx \"\" SeCrEt\n", ":1: the user is empty" },
		{ "mx me \"\"\n", ":1: the secret is empty" },
		{ "mx a SeCrEt\nMX b SeCrEt\n",
		    ":2: the next hop has a row already" },
		{ "mx me SeCrEt\001\n", ":1: control character" },
	};
	struct credentials *t = NULL;
	size_t i;

	for (i = 0; i < ARRAY_LEN(rows); i++) {
		struct buf error = { 0 };

		cr_expect_eq(load(rows[i].text, 0600, &t, &error), -EINVAL,
		    "%s", rows[i].text);
		cr_expect_not_null(strstr(buf_str(&error), rows[i].why),
		    "%s: %s", rows[i].text, buf_str(&error));
		cr_expect_null(strstr(buf_str(&error), "SeCrEt"));
		cr_expect_null(t);
		buf_done(&error);
	}
}

/* mutation: common/route/credentials.c, check_rights() that is content with
 * every file. */
Test(credentials, X18_a_file_that_others_may_read)
{
	static const mode_t bad[] = { 0604, 0602, 0644, 0620, 0660, 0666, 0601,
		0610 };
	static const mode_t good[] = { 0600, 0400 };
	struct credentials *t = NULL;
	size_t i;

	for (i = 0; i < ARRAY_LEN(bad); i++) {
		struct buf error = { 0 };

		cr_expect_eq(load("mx me x\n", bad[i], &t, &error), -EACCES,
		    "%o", bad[i]);
		cr_expect_not_null(
		    strstr(buf_str(&error), "others than its owner"));
		buf_done(&error);
	}
	for (i = 0; i < ARRAY_LEN(good); i++) {
		struct buf error = { 0 };

		cr_expect_eq(
		    load("mx me x\n", good[i], &t, &error), 0, "%o", good[i]);
		credentials_free(&t);
		buf_done(&error);
	}
}

Test(credentials, F1_a_file_that_is_not_there)
{
	struct credentials *t = NULL;
	struct buf error = { 0 };

	cr_expect_eq(credentials_load("/nonexistent/p", &t, &error), -ENOENT);
	cr_expect_not_null(strstr(buf_str(&error), "/nonexistent/p: "));
	cr_assert_eq(credentials_load("", &t, &error), 0, "none is named");
	cr_expect_null(credentials_find(t, "mx"));
	credentials_free(&t);
	buf_done(&error);
}
