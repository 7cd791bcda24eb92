#include "scratch.h"

#include <criterion/criterion.h>
#include <fcntl.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define ARGS(...) ((const char *const[]){ __VA_ARGS__, NULL })
#define BYTES(s)  s, sizeof(s) - 1

static const struct {
	const char *name, *input;
	size_t len;
	const char *eol;
} contents[] = {
	{ "empty", BYTES(""), "\n" },
	{ "headers only", BYTES("Subject: x\nTo: a@b\n"), "\n" },
	{ "no header", BYTES("hello world\n"), "\n" },
	{ "first line continues", BYTES(" Subject: x\n\nbody\n"), "\n" },
	{ "NULs", BYTES("Subject: \0\n\n\0\0body\0\n\0"), "\n" },
	{ "bare CR", BYTES("Subject: x\ry\n\na\rb\r\r\nc\r"), "\n" },
	{ "CRLF", BYTES("Subject: x\r\n\r\nbody\r\n"), "\r\n" },
	{ "8-bit", BYTES("Subject: \xff\xfe\n\n\x80\x9f\xff"), "\n" },
	{ "no final newline", BYTES("Subject: x\n\nbody"), "\n" },
	{ "dots", BYTES("Subject: x\n\n.\n..\n.a\n."), "\n" },
	{ "Bcc and mailbox line", BYTES("From x\nBcc: a@b\n\n"), "\n" },
	{ "format characters", BYTES("Subject: %n%s `id`\n\n%n\n"), "\n" },
};

static void
run_qmail(const struct scratch *s, struct run *run, const char *input,
    size_t len, const char *envelope, size_t envelope_len)
{
	*run = (struct run){ .argv = ARGS("/var/qmail/bin/qmail-queue"),
		.input = input,
		.len = len,
		.envelope = envelope,
		.envelope_len = envelope_len };
	scratch_run(s, run);
}

/* Received, in two lines, is all that is put in front. */
static size_t
received_len(const struct stored *m, const char *eol)
{
	const char *data = m->content.data;
	const char *first = strstr(data, eol), *second;

	cr_assert_not_null(first);
	second = strstr(first + strlen(eol), eol);
	cr_assert_not_null(second);
	cr_expect_eq(strncmp(data, "Received: by mx.example (", 25), 0);
	cr_expect_eq(strncmp(first + strlen(eol), "\tid 0", 5), 0);
	return (size_t)(second - data) + strlen(eol);
}

Test(qmail_face, C1_C4_content_is_stored_byte_exact)
{
	struct scratch s;
	size_t i;

	scratch_new(&s, 1, NULL);
	for (i = 0; i < ARRAY_LEN(contents); i++) {
		struct stored m = { 0 };
		struct run run;
		size_t front;

		run_qmail(&s, &run, contents[i].input, contents[i].len,
		    BYTES("F\0Tc@d\0Tc@d\0Tplain\0\0"));
		cr_assert_eq(
		    run.status, 0, "%s: %s", contents[i].name, run.err);
		cr_assert_eq(scratch_stored(&s, &m), 1);
		front = received_len(&m, contents[i].eol);
		cr_expect_eq(m.content.len, front + contents[i].len, "%s",
		    contents[i].name);
		cr_expect_eq(memcmp(m.content.data + front, contents[i].input,
				 contents[i].len),
		    0, "%s", contents[i].name);
		cr_expect_str_eq(buf_str(&m.sender), "");
		cr_expect_str_eq(buf_str(&m.rcpts), "c@d|c@d|plain");
		stored_done(&m);
		scratch_empty(&s);
	}
	scratch_done(&s);
}

Test(qmail_face, S10_S13_refusals_leave_nothing)
{
	static char too_long[1024] = "Fa@b\0T";
	static const struct {
		const char *name, *envelope;
		size_t len;
		int want;
	} cases[] = {
		{ "nothing", BYTES(""), 91 },
		{ "cut", BYTES("Fa@b\0Tc@d\0"), 91 },
		{ "no sender", BYTES("Tc@d\0\0"), 91 },
		{ "no recipient", BYTES("Fa@b\0\0"), 91 },
		{ "more behind", BYTES("Fa@b\0Tc@d\0\0x"), 91 },
		{ "LF in an address", BYTES("Fa@b\0Tc\n@d\0\0"), 31 },
		{ "empty recipient", BYTES("Fa@b\0T\0\0"), 31 },
		{ "too many", BYTES("Fa@b\0T1\0T2\0T3\0\0"), 31 },
		{ "address too long", too_long, sizeof(too_long), 11 },
	};
	struct scratch s;
	struct run run;
	size_t i;

	memset(too_long + 6, 'x', 600);
	scratch_new(&s, 1, "message_recipient_limit = 2\n");
	for (i = 0; i < ARRAY_LEN(cases); i++) {
		run_qmail(&s, &run, BYTES("Subject: x\n\n"), cases[i].envelope,
		    cases[i].len);
		cr_expect_eq(WEXITSTATUS(run.status), cases[i].want,
		    "%s: %d %s", cases[i].name, WEXITSTATUS(run.status),
		    run.err);
		cr_expect_eq(scratch_stored(&s, NULL), 0, "%s", cases[i].name);
	}
	scratch_done(&s);
}

Test(qmail_face, its_exit_codes)
{
	static const char good[] = "Fa@b\0Tc@d\0";
	struct scratch s;
	struct run run = { .argv = ARGS("qmail-queue"),
		.envelope = good,
		.envelope_len = sizeof(good) };

	scratch_new(&s, 1, "message_size_limit = 20\n");
	run.input_fd = open("/", O_RDONLY | O_CLOEXEC);
	scratch_run(&s, &run);
	cr_expect_eq(WEXITSTATUS(run.status), 54, "read: %s", run.err);
	close(run.input_fd);
	run_qmail(&s, &run, BYTES("123456789012345678901"), good, sizeof(good));
	cr_expect_eq(WEXITSTATUS(run.status), 31, "size: %s", run.err);
	run_qmail(&s, &run, BYTES("12345678901234567890"), good, sizeof(good));
	cr_expect_eq(WEXITSTATUS(run.status), 0, "%s", run.err);
	scratch_empty(&s);
	scratch_pages(&s, QUEUE_STATE_DISABLED, 0);
	run_qmail(&s, &run, BYTES("x"), good, sizeof(good));
	cr_expect_eq(WEXITSTATUS(run.status), 71, "disabled: %s", run.err);
	scratch_no_pages(&s);
	setenv("QUEUE_BASE", "/nowhere/at/all", 1);
	run_qmail(&s, &run, BYTES("x"), good, sizeof(good));
	cr_expect_eq(WEXITSTATUS(run.status), 61, "spool: %s", run.err);
	unsetenv("QUEUE_BASE");
	setenv("QSCHED_CONF", "/nowhere", 1);
	run_qmail(&s, &run, BYTES("x"), good, sizeof(good));
	cr_expect_eq(WEXITSTATUS(run.status), 55, "conf: %s", run.err);
	cr_expect_eq(scratch_stored(&s, NULL), 0);
	scratch_done(&s);
}

/* A shell's `qmail-queue <message | cat`: nothing ever comes from there. */
Test(qmail_face, S13_envelope_from_the_far_end_of_a_pipe)
{
	struct scratch s;
	struct run run = { .argv = ARGS("qmail-queue"), .input = "" };
	int fds[2];

	scratch_new(&s, 1, NULL);
	cr_assert_eq(pipe2(fds, O_CLOEXEC), 0);
	run.envelope_fd = fds[1];
	scratch_run(&s, &run);
	cr_expect_eq(WEXITSTATUS(run.status), 54, "read: %s", run.err);
	cr_expect_eq(scratch_stored(&s, NULL), 0);
	close(fds[0]);
	close(fds[1]);
	scratch_done(&s);
}

/* An envelope can end behind what was said, in any piece: by a pipe. */
Test(qmail_face, S13_envelope_through_a_pipe)
{
	static const char envelope[] = "Fa@b\0Tc@d\0";
	struct scratch s;
	struct run run = { .argv = ARGS("qmail-queue"), .input = "" };
	struct stored m = { 0 };
	size_t i;
	int fds[2];
	pid_t pid;

	scratch_new(&s, 1, NULL);
	cr_assert_eq(pipe2(fds, O_CLOEXEC), 0);
	run.envelope_fd = fds[0];
	run.close_fd = fds[1];
	pid = scratch_start(&run);
	for (i = 0; i < sizeof(envelope); i++)
		cr_assert_eq(write(fds[1], envelope + i, 1), 1);
	close(fds[1]);
	scratch_wait(pid, &run);
	close(fds[0]);
	cr_expect_eq(run.status, 0, "%s", run.err);
	cr_expect_eq(scratch_stored(&s, &m), 1);
	cr_expect_str_eq(buf_str(&m.rcpts), "c@d");
	stored_done(&m);
	scratch_done(&s);
}
