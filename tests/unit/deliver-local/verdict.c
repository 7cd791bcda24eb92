#include "base/text.h"
#include "deliver-local/child.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <signal.h>
#include <unistd.h>

#include "base/io.h"
#include "log/parts.h"

Test(verdict, errors)
{
	static const struct {
		int error;
		const char *dsn;
	} rows[] = {
		{ ENOSPC, "4.3.1" },
		{ EDQUOT, "4.2.2" },
		{ EFBIG, "4.2.2" },
		{ EACCES, "4.2.0" },
		{ ENOENT, "4.2.0" },
		{ ENOTDIR, "4.2.0" },
		{ ELOOP, "4.2.0" },
		{ EIO, "4.3.0" },
		{ EROFS, "4.3.0" },
		{ EMFILE, "4.3.0" },
		{ ENOMEM, "4.3.0" },
		{ 9999, "4.3.0" },
	};
	size_t i;

	for (i = 0; i < ARRAY_LEN(rows); i++) {
		struct verdict v;

		verdict_error(&v, -rows[i].error, "write");
		cr_expect_eq(v.outcome, AGENT_DEFERRED, "%d", rows[i].error);
		cr_expect_str_eq(v.dsn, rows[i].dsn, "%d", rows[i].error);
		cr_expect_eq(strncmp(v.text, "write: ", 7), 0);
		cr_expect_eq(strstr(v.text, "ReadWritePaths = PATH") != NULL,
		    rows[i].error == EROFS, "%d", rows[i].error);
	}
}

/* A program that says why it failed gets the remedy as well. */
Test(verdict, a_program_on_a_read_only_path)
{
	static const char output[] = "touch: /usr/x: Read-only file system\n";
	const struct log_field fields[] = { LOG_STR("status", "deferred") };
	const struct log_style style = { .program = "p" };
	struct log_event event = { .fields = fields, .nfields = 1 };
	struct buf line = { 0 };
	struct verdict v;

	verdict_status(&v, 75 << 8, "p", output, strlen(output));
	cr_expect_eq(v.outcome, AGENT_DEFERRED);
	cr_expect_not_null(
	    strstr(v.text, "Read-only file system; if the unit"), "%s", v.text);
	/* An operator can copy the remedy from the log: nothing is escaped. */
	event.text = v.text;
	cr_assert_eq(log_line_text(&line, &event, &style), 0);
	cr_expect_not_null(
	    strstr(buf_str(&line), v.text), "%s", buf_str(&line));
	buf_done(&line);
}

/* Wait statuses as wait(2) gives them. */
#define EXITED(code) ((code) << 8)

static const struct {
	int status;
	enum agent_outcome outcome;
	const char *dsn;
	const char *output;
	const char *text;
} statuses[] = {
	{ EXITED(0), AGENT_SENT, "2.0.0", "chatter", "delivered to program x" },
	{ EXITED(99), AGENT_SENT, "2.0.0", "", "delivered to program x" },
	{ EXITED(64), AGENT_FAILED, "5.3.0", "",
	    "program x: command line usage error" },
	{ EXITED(65), AGENT_FAILED, "5.6.0", "",
	    "program x: data format error" },
	{ EXITED(66), AGENT_FAILED, "5.3.0", "",
	    "program x: cannot open input" },
	{ EXITED(67), AGENT_FAILED, "5.1.1", "", "program x: user unknown" },
	{ EXITED(68), AGENT_FAILED, "5.1.2", "",
	    "program x: host name unknown" },
	{ EXITED(69), AGENT_FAILED, "5.3.0", "",
	    "program x: service unavailable" },
	{ EXITED(70), AGENT_FAILED, "5.3.0", "",
	    "program x: internal software error" },
	{ EXITED(71), AGENT_DEFERRED, "4.3.0", "",
	    "program x: system resource problem" },
	{ EXITED(72), AGENT_FAILED, "5.3.0", "",
	    "program x: critical system file missing" },
	{ EXITED(73), AGENT_FAILED, "5.2.0", "",
	    "program x: cannot create output file" },
	{ EXITED(74), AGENT_DEFERRED, "4.3.0", "",
	    "program x: input/output error" },
	{ EXITED(75), AGENT_DEFERRED, "4.3.0", "",
	    "program x: temporary failure" },
	{ EXITED(76), AGENT_FAILED, "5.5.0", "",
	    "program x: remote error in protocol" },
	{ EXITED(77), AGENT_FAILED, "5.7.0", "",
	    "program x: permission denied" },
	{ EXITED(78), AGENT_FAILED, "5.3.5", "",
	    "program x: configuration error" },
	{ EXITED(100), AGENT_FAILED, "5.3.0", "",
	    "program x: permanent failure" },
	{ EXITED(111), AGENT_DEFERRED, "4.3.0", "",
	    "program x: temporary failure" },
	{ EXITED(1), AGENT_DEFERRED, "4.3.0", "",
	    "program x ended with unknown status 1" },
	{ EXITED(127), AGENT_DEFERRED, "4.3.0", "",
	    "program x ended with unknown status 127" },
	{ EXITED(255), AGENT_DEFERRED, "4.3.0", "",
	    "program x ended with unknown status 255" },
	{ SIGKILL, AGENT_DEFERRED, "4.3.0", "",
	    "program x was ended by signal 9" },
	{ SIGSEGV | 0x80, AGENT_DEFERRED, "4.3.0", "",
	    "program x was ended by signal 11" },
	/* its own words */
	{ EXITED(75), AGENT_DEFERRED, "4.3.0", " \n disk\tis\r\nfull \r\n\n",
	    "program x: temporary failure: disk is full" },
	{ EXITED(67), AGENT_FAILED, "5.1.6", "5.1.6 moved away",
	    "program x: user unknown: moved away" },
	{ EXITED(67), AGENT_FAILED, "5.1.1", "4.1.6 later",
	    "program x: user unknown: later" },
	{ EXITED(69), AGENT_FAILED, "5.3.0", "\x1b[2J\x80",
	    "program x: service unavailable: ?[2J?" },
	{ EXITED(69), AGENT_FAILED, "5.3.0", "%s%n",
	    "program x: service unavailable: %s%n" },
};

Test(verdict, exit_codes_of_programs)
{
	size_t i;

	for (i = 0; i < ARRAY_LEN(statuses); i++) {
		struct verdict v;

		verdict_status(&v, statuses[i].status, "x", statuses[i].output,
		    strlen(statuses[i].output));
		cr_expect_eq(v.outcome, statuses[i].outcome, "status %#x",
		    (unsigned)statuses[i].status);
		cr_expect_str_eq(v.dsn, statuses[i].dsn, "status %#x: %s",
		    (unsigned)statuses[i].status, v.dsn);
		cr_expect_str_eq(v.text, statuses[i].text, "%s", v.text);
	}
}

Test(verdict, C4_output_of_any_length_fits)
{
	static char output[3 * VERDICT_TEXT_MAX];
	struct verdict v;

	memset(output, 'x', sizeof(output));
	verdict_status(&v, EXITED(75), "x", output, sizeof(output));
	cr_expect_eq(strlen(v.text), VERDICT_TEXT_MAX - 1);
}

Test(verdict, C4_no_character_is_cut_in_two)
{
	static char output[3 * VERDICT_TEXT_MAX];
	struct verdict v;
	size_t i, shift;

	for (shift = 0; shift < 3; shift++) {
		memset(output, 'x', shift);
		for (i = shift; i + 3 <= sizeof(output); i += 3)
			memcpy(output + i, "\xe2\x82\xac", 3);
		verdict_status(&v, EXITED(75), "x", output, i);
		cr_expect(text_is_utf8(v.text, strlen(v.text)), "%zu", shift);
	}
}

Test(verdict, codes)
{
	static const struct {
		const char *text;
		int want;
		const char *dsn, *rest;
	} rows[] = {
		{ "4.2.1 busy", 0, "4.2.1", "busy" },
		{ "5.123.999 \t x", 0, "5.123.999", "x" },
		{ "2.0.0", 0, "2.0.0", "" },
		{ "", -EINVAL, "", "" },
		{ "4", -EINVAL, "", "" },
		{ "4.", -EINVAL, "", "" },
		{ "4.2", -EINVAL, "", "" },
		{ "4.2.", -EINVAL, "", "" },
		{ "4..1 x", -EINVAL, "", "" },
		{ "4.2.1x", -EINVAL, "", "" },
		{ "4.2.1234 x", -EINVAL, "", "" },
		{ "3.2.1 x", -EINVAL, "", "" },
		{ "no", -EINVAL, "", "" },
	};
	size_t i;

	for (i = 0; i < ARRAY_LEN(rows); i++) {
		char dsn[AGENT_DSN_MAX] = "";
		const char *rest = "";

		cr_expect_eq(verdict_code(rows[i].text, dsn, &rest),
		    rows[i].want, "%s", rows[i].text);
		cr_expect_str_eq(dsn, rows[i].dsn, "%s", rows[i].text);
		cr_expect_str_eq(rest, rows[i].rest, "%s", rows[i].text);
	}
}

Test(verdict, transport_error)
{
	static const struct {
		const char *nexthop;
		enum agent_outcome outcome;
		const char *dsn, *text;
	} rows[] = {
		{ "no mail here", AGENT_FAILED, "5.0.0", "no mail here" },
		{ "5.7.1 no", AGENT_FAILED, "5.7.1", "no" },
		{ "4.7.1 later", AGENT_DEFERRED, "4.7.1", "later" },
		{ "2.0.0 fine", AGENT_FAILED, "5.0.0", "2.0.0 fine" },
		{ "5.7.1", AGENT_FAILED, "5.7.1",
		    "mail for this address is refused" },
		{ "", AGENT_FAILED, "5.0.0",
		    "mail for this address is refused" },
	};
	size_t i;

	for (i = 0; i < ARRAY_LEN(rows); i++) {
		struct verdict v;

		verdict_refuse(&v, rows[i].nexthop);
		cr_expect_eq(v.outcome, rows[i].outcome, "%s", rows[i].nexthop);
		cr_expect_str_eq(v.dsn, rows[i].dsn, "%s", rows[i].nexthop);
		cr_expect_str_eq(v.text, rows[i].text, "%s", rows[i].nexthop);
	}
}

Test(verdict, travels_whole)
{
	struct verdict v, back = { 0 };
	char data[sizeof(v) + 1];
	int fds[2];
	int64_t n;

	verdict_set(&v, AGENT_FAILED, "5.1.1", "%s", "no such user");
	cr_assert(pipe(fds) == 0);
	cr_assert_eq(verdict_write(&v, fds[1]), 0);
	close(fds[1]);
	n = io_read_all(fds[0], data, sizeof(data));
	close(fds[0]);
	cr_assert_gt(n, 0);
	cr_assert_eq(verdict_read(data, (size_t)n, &back), 0);
	cr_expect_eq(back.outcome, AGENT_FAILED);
	cr_expect_str_eq(back.dsn, "5.1.1");
	cr_expect_str_eq(back.text, "no such user");
}

Test(verdict, X15_what_a_child_sends_is_judged)
{
	struct verdict v = { .outcome = AGENT_SENT, .dsn = "2.0.0" };
	struct verdict back = { .outcome = 77 };
	const size_t head = offsetof(struct verdict, text);
	char data[sizeof(v) + 1];
	struct {
		const char *name;
		size_t len;
		int want;
	} rows[] = {
		{ "nothing", 0, -EBADMSG },
		{ "head only", head, -EBADMSG },
		{ "empty text", head + 1, 0 },
		{ "NUL before the end", head + 2, -EBADMSG },
		{ "more than there is", sizeof(v) + 1, -EBADMSG },
	};
	size_t i;

	memset(data, 0, sizeof(data));
	memcpy(data, &v, sizeof(v));
	for (i = 0; i < ARRAY_LEN(rows); i++)
		cr_expect_eq(verdict_read(data, rows[i].len, &back),
		    rows[i].want, "%s", rows[i].name);
	data[head] = 'x';
	cr_expect_eq(verdict_read(data, head + 1, &back), -EBADMSG);
	data[head] = '\0';
	v.outcome = AGENT_NOUTCOMES;
	memcpy(data, &v, head);
	cr_expect_eq(verdict_read(data, head + 1, &back), -EBADMSG);
	v.outcome = AGENT_SENT;
	memset(v.dsn, '2', sizeof(v.dsn));
	memcpy(data, &v, head);
	cr_expect_eq(verdict_read(data, head + 1, &back), -EBADMSG);
}
