/* Senders of VERP, and that of a double bounce, through each face. */
#include "scratch.h"

#include <criterion/criterion.h>
#include <string.h>
#include <sys/wait.h>

#define ARGS(...) ((const char *const[]){ __VA_ARGS__, NULL })
#define BYTES(s)  s, sizeof(s) - 1

Test(verp, mail_faces_store_the_form_of_qmail)
{
	const struct {
		const char *const *argv;
		const char *stored, *from;
	} rows[] = {
		{ ARGS("sendmail", "-f", "list-@site.test-@[]", "a@b"),
		    "list-@site.test-@[]", "From: list-@site.test\n" },
		{ ARGS("queue-inject", "-f", "list-@site.test-@[]", "a@b"),
		    "list-@site.test-@[]", "From: list-@site.test\n" },
		{ ARGS("sendmail", "-XV", "-f", "own@site.test", "a@b"),
		    "own+@site.test-@[]", "From: own@site.test\n" },
		{ ARGS("sendmail", "-XV-=", "-f", "own", "a@b"),
		    "own-@example.org-@[]", "From: own@example.org\n" },
		{ ARGS("sendmail", "-XV==", "-f", "\"o w\"@site.test", "a@b"),
		    "\"o w=\"@site.test-@[]", "From: \"o w\"@site.test\n" },
		{ ARGS("sendmail", "-V", "id", "-f", "own@site.test", "a@b"),
		    "own@site.test", "From: own@site.test\n" },
		{ ARGS("sendmail", "-f", "#@[]", "a@b"), "",
		    "From: MAILER-DAEMON@" },
	};
	struct scratch s;
	size_t i;

	scratch_new(&s, 1, NULL);
	for (i = 0; i < ARRAY_LEN(rows); i++) {
		struct stored m = { 0 };
		struct run run;

		cr_expect_eq(scratch_exit(&s, &run, rows[i].argv, "\nbody\n"),
		    0, "%zu: %s", i, run.err);
		cr_expect_eq(scratch_stored(&s, &m), 1, "%zu", i);
		cr_expect_str_eq(buf_str(&m.sender), rows[i].stored);
		cr_expect_not_null(strstr(buf_str(&m.content), rows[i].from),
		    "%zu: %s", i, buf_str(&m.content));
		cr_expect_eq((m.file.flags & QUEUE_FILE_FINAL) != 0,
		    rows[i].stored[0] == '\0');
		stored_done(&m);
		scratch_empty(&s);
	}
	scratch_done(&s);
}

Test(verp, senders_that_are_none_are_refused)
{
	const struct {
		const char *const *argv;
		int exit;
		const char *text;
	} rows[] = {
		{ ARGS("sendmail", "-f", "x-@[]", "a@b"), 65,
		    "not a VERP sender (list-@host-@[]): <x-@[]>" },
		{ ARGS("queue-inject", "-f", "x-@[]", "a@b"), 65,
		    "5.1.3 not a VERP sender" },
		{ ARGS("sendmail", "-f", "a b-@c-@[]", "a@b"), 65,
		    "not an address" },
		{ ARGS("sendmail", "-XV", "-f", "", "a@b"), 64,
		    "-XV needs a sender" },
		{ ARGS("sendmail", "-XV", "-f", "#@[]", "a@b"), 64,
		    "-XV needs a sender" },
		{ ARGS("sendmail", "-XV", "-f", "l-@s-@[]", "a@b"), 64,
		    "-XV needs a sender" },
		{ ARGS("sendmail", "-XV+", "-f", "l@s", "a@b"), 64,
		    "-XV takes the delimiters -=, += or ==, not `+'" },
		{ ARGS("sendmail", "-XV+-", "-f", "l@s", "a@b"), 64,
		    "not `+-'" },
		{ ARGS("sendmail", "-XVx=", "-f", "l@s", "a@b"), 64,
		    "not `x='" },
		{ ARGS("sendmail", "-XV+=x", "-f", "l@s", "a@b"), 64,
		    "not `+=x'" },
		/* VERP of Postfix before 2.3 */
		{ ARGS("sendmail", "-V", "-f", "l@s", "a@b"), 64,
		    "-V takes an envelope id, not `-f'; VERP is -XV" },
		{ ARGS("sendmail", "-V-=", "-f", "l@s", "a@b"), 64,
		    "-V takes an envelope id, not `-='; VERP is -XV" },
	};
	struct scratch s;
	size_t i;

	scratch_new(&s, 1, NULL);
	for (i = 0; i < ARRAY_LEN(rows); i++) {
		struct run run;

		cr_expect_eq(scratch_exit(&s, &run, rows[i].argv, "\nbody\n"),
		    rows[i].exit, "%zu: %s", i, run.err);
		cr_expect_not_null(
		    strstr(run.err, rows[i].text), "%zu: %s", i, run.err);
		cr_expect_eq(scratch_stored(&s, NULL), 0, "%zu", i);
	}
	scratch_done(&s);
}

Test(verp, qmail_queue_stores_it_as_it_is)
{
	const struct {
		const char *envelope;
		size_t len;
		int exit;
		const char *stored;
	} rows[] = {
		{ BYTES("Flist-@site.test-@[]\0Ta@b\0Tc@d\0\0"), 0,
		    "list-@site.test-@[]" },
		{ BYTES("F#@[]\0Ta@b\0\0"), 0, "" },
		{ BYTES("Fx-@[]\0Ta@b\0\0"), 31, NULL },
	};
	struct scratch s;
	size_t i;

	scratch_new(&s, 1, NULL);
	for (i = 0; i < ARRAY_LEN(rows); i++) {
		struct stored m = { 0 };
		struct run run = { .argv = ARGS("qmail-queue"),
			.input = "\nbody\n",
			.len = 6,
			.envelope = rows[i].envelope,
			.envelope_len = rows[i].len };

		scratch_run(&s, &run);
		cr_expect_eq(WEXITSTATUS(run.status), rows[i].exit, "%zu: %s",
		    i, run.err);
		cr_expect_eq(scratch_stored(&s, &m), rows[i].exit == 0);
		if (rows[i].exit == 0) {
			cr_expect_str_eq(buf_str(&m.sender), rows[i].stored);
			cr_expect_eq((m.file.flags & QUEUE_FILE_FINAL) != 0,
			    rows[i].stored[0] == '\0');
			stored_done(&m);
		}
		scratch_empty(&s);
	}
	scratch_done(&s);
}
