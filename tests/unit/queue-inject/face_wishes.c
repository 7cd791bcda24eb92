/* What the sender asks of reports, on the command line. */
#include "scratch.h"

#include <criterion/criterion.h>
#include <string.h>

#define ARGS(...) ((const char *const[]){ __VA_ARGS__, NULL })

Test(wishes, are_stored)
{
	const struct {
		const char *const *argv;
		const char *wishes;
	} rows[] = {
		{ ARGS("sendmail", "a@b"), " | " },
		{ ARGS("sendmail", "-Nnever", "a@b", "c@d"),
		    " |never |never " },
		{ ARGS("sendmail", "-N", "Delay,SUCCESS", "-Rhdrs", "-V",
		      "QQ+2B1", "a@b"),
		    "hdrs QQ+2B1|success,delay " },
		{ ARGS("sendmail", "-R", "full", "-R", "HDRS", "a@b"),
		    "hdrs | " },
		{ ARGS("queue-inject", "--notify", "failure", "--return",
		      "full", "--envid=x", "--orcpt", "rfc822;q+40b", "a@b"),
		    "full x|failure rfc822;q+40b" },
		{ ARGS("queue-inject", "--notify=success", "a@b", "c@d"),
		    " |success |success " },
	};
	struct scratch s;
	size_t i;

	scratch_new(&s, 1, NULL);
	for (i = 0; i < ARRAY_LEN(rows); i++) {
		struct stored m = { 0 };
		struct run run;

		cr_expect_eq(
		    scratch_exit(&s, &run, rows[i].argv, "To: x@y\n\n"), 0,
		    "%zu: %s", i, run.err);
		cr_expect_eq(scratch_stored(&s, &m), 1);
		cr_expect_str_eq(buf_str(&m.wishes), rows[i].wishes, "%zu: %s",
		    i, buf_str(&m.wishes));
		cr_expect_eq(m.file.version, i == 0 ? 1 : 2);
		stored_done(&m);
		scratch_empty(&s);
	}
	scratch_done(&s);
}

Test(wishes, that_are_wrong_refuse_the_message)
{
	const struct {
		const char *name;
		const char *const *argv;
		const char *text; /* part of the reason */
	} rows[] = {
		{ "-N", ARGS("sendmail", "-N", "perhaps", "a@b"),
		    "-N takes never, or some of success,failure,delay, "
		    "not `perhaps'" },
		{ "-N with two", ARGS("sendmail", "-N", "never,failure", "a@b"),
		    "-N takes never" },
		{ "-R", ARGS("sendmail", "-Rhalf", "a@b"),
		    "-R takes full or hdrs, not `half'" },
		{ "-V with a blank", ARGS("sendmail", "-V", "a b", "a@b"),
		    "-V `a b' is not 1 to 100 characters" },
		{ "-V with a line end", ARGS("sendmail", "-V", "a\nb", "a@b"),
		    "xtext" },
		{ "-V with an encoded escape",
		    ARGS("sendmail", "-V", "a+1B[2J", "a@b"), "xtext" },
		{ "-V that is empty", ARGS("sendmail", "-V", "", "a@b"),
		    "xtext" },
		{ "--notify",
		    ARGS("queue-inject", "--notify", "x\033[2J", "a@b"),
		    "neither never nor some" },
		{ "--return", ARGS("queue-inject", "--return=", "a@b"),
		    "neither full nor hdrs" },
		{ "--envid", ARGS("queue-inject", "--envid", "a=b", "a@b"),
		    "xtext" },
		{ "--orcpt without a type",
		    ARGS("queue-inject", "--orcpt", "q@b", "a@b"),
		    "is not rfc822;" },
		{ "--orcpt of two",
		    ARGS("queue-inject", "--orcpt", "rfc822;q", "a@b", "c@d"),
		    "one RECIPIENT" },
		{ "--orcpt with -t",
		    ARGS("queue-inject", "-t", "--orcpt", "rfc822;q", "a@b"),
		    "one RECIPIENT" },
	};
	struct scratch s;
	struct run run;
	size_t i;

	scratch_new(&s, 1, NULL);
	for (i = 0; i < ARRAY_LEN(rows); i++) {
		cr_expect_eq(scratch_exit(&s, &run, rows[i].argv, "\n"), 64,
		    "%s", rows[i].name);
		cr_expect_not_null(strstr(run.err, rows[i].text), "%s: %s",
		    rows[i].name, run.err);
		cr_expect_null(strchr(run.err, '\033'), "%s", rows[i].name);
		cr_expect_eq(scratch_stored(&s, NULL), 0);
	}
	scratch_done(&s);
}
