#include "deliver-local/child.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "scratch.h"

#define TEXT(s) (s), sizeof(s) - 1

static const struct {
	const char *name;
	const char *content;
	size_t len;
	int want;
} loops[] = {
	{ "none", TEXT("Subject: x\n\nbody\n"), MESSAGE_NO_LOOP },
	{ "was here", TEXT("Delivered-To: Bob@x.org\n\n"), MESSAGE_WAS_HERE },
	{ "other case of the name", TEXT("delivered-TO: Bob@x.org\n\n"),
	    MESSAGE_WAS_HERE },
	{ "other case of the domain", TEXT("Delivered-To: Bob@X.ORG\n\n"),
	    MESSAGE_WAS_HERE },
	{ "other case of the local part", TEXT("Delivered-To: bob@x.org\n\n"),
	    MESSAGE_NO_LOOP },
	{ "blanks around", TEXT("Delivered-To \t:\t Bob@x.org \t\n\n"),
	    MESSAGE_WAS_HERE },
	{ "CRLF", TEXT("A: b\r\nDelivered-To: Bob@x.org\r\n\r\n"),
	    MESSAGE_WAS_HERE },
	{ "folded", TEXT("Delivered-To:\n \n\tBob@x.org\n\n"),
	    MESSAGE_WAS_HERE },
	{ "folded, then something else",
	    TEXT("Delivered-To:\nBob@x.org: x\n\n"), MESSAGE_NO_LOOP },
	{ "last of many",
	    TEXT("Delivered-To: a@x\nReceived: y\nDelivered-To: Bob@x.org"),
	    MESSAGE_WAS_HERE },
	{ "in a continuation", TEXT("X: y\n Delivered-To: Bob@x.org\n\n"),
	    MESSAGE_NO_LOOP },
	{ "in the body", TEXT("X: y\n\nDelivered-To: Bob@x.org\n"),
	    MESSAGE_NO_LOOP },
	{ "in the body after CRLF", TEXT("X: y\r\n\r\nDelivered-To: Bob@x.org"),
	    MESSAGE_NO_LOOP },
	{ "longer", TEXT("Delivered-To: Bob@x.orga\n\n"), MESSAGE_NO_LOOP },
	{ "shorter", TEXT("Delivered-To: Bob@x.or\n\n"), MESSAGE_NO_LOOP },
	{ "name longer", TEXT("Delivered-To-X: Bob@x.org\n\n"),
	    MESSAGE_NO_LOOP },
	{ "name only", TEXT("Delivered-To"), MESSAGE_NO_LOOP },
	{ "empty", TEXT(""), MESSAGE_NO_LOOP },
	{ "another spelling", TEXT("Delivered-To: Bob@X.Org.\n\n"),
	    MESSAGE_WAS_HERE },
	{ "NULs", TEXT("\0\0\nDelivered-To: Bob@x.org\0\n\n"),
	    MESSAGE_NO_LOOP },
	{ "colon first", TEXT(": x\n\n"), MESSAGE_NO_LOOP },
};

Test(message, C3_loops_are_found)
{
	size_t i;

	for (i = 0; i < ARRAY_LEN(loops); i++) {
		struct message m;

		scratch_message(
		    &m, "", "Bob@x.org", loops[i].content, loops[i].len);
		cr_expect_eq(
		    message_find_loop(&m), loops[i].want, "%s", loops[i].name);
		scratch_message_done(&m);
	}
}

/* What lies behind the part that is looked at costs nothing and says
 * nothing. */
Test(message, the_look_at_the_header_is_bounded)
{
	size_t len = MESSAGE_HEADER_MAX + 100;
	char *content = malloc(len);
	static const char field[] = "\nDelivered-To: bob@x\n\n";
	struct message m;

	memset(content, 'x', len);
	memcpy(content + MESSAGE_HEADER_MAX, field, sizeof(field) - 1);
	scratch_message(&m, "", "bob@x", content, len);
	cr_expect_eq(message_find_loop(&m), MESSAGE_NO_LOOP);
	scratch_message_done(&m);
	memcpy(content + 1000, field, sizeof(field) - 1);
	scratch_message(&m, "", "bob@x", content, len);
	cr_expect_eq(message_find_loop(&m), MESSAGE_WAS_HERE);
	scratch_message_done(&m);
	free(content);
}

Test(message, C1_read_in_any_steps_is_byte_exact)
{
	static const char content[] = "\0\r\n\xff no header\r at all";
	struct buf want = { 0 }, got = { 0 };
	struct message m;
	size_t step;

	scratch_message(&m, "s@x", "bob@x", content, sizeof(content));
	scratch_whole(&m, content, sizeof(content), &want);
	for (step = 1; step < 100; step++) {
		char chunk[100];
		int64_t n;

		buf_reset(&got);
		cr_assert_eq(message_begin(&m), 0);
		while ((n = message_read(&m, chunk, step)) > 0)
			buf_add(&got, chunk, (size_t)n);
		cr_expect_eq(n, 0);
		cr_assert_eq(got.len, want.len, "step %zu", step);
		cr_expect_eq(memcmp(got.data, want.data, want.len), 0);
	}
	scratch_message_done(&m);
	buf_done(&want);
	buf_done(&got);
}

Test(message, D8_a_file_that_ends_early_is_an_error)
{
	struct message m;
	char chunk[100];

	scratch_message(&m, "", "bob@x", TEXT("Subject: x\n"));
	m.len = 100;
	cr_expect_eq(message_find_loop(&m), -EIO);
	cr_assert_eq(message_begin(&m), 0);
	cr_expect_gt(message_read(&m, chunk, sizeof(chunk)), 0);
	cr_expect_eq(message_read(&m, chunk, sizeof(chunk)), -EIO);
	scratch_message_done(&m);
}
