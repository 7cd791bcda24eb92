/* Who may not write to incoming: through queue-drop, here a script. */
#include "scratch.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sysexits.h>
#include <unistd.h>

#define ARGS(...) ((const char *const[]){ __VA_ARGS__, NULL })
#define ID        "060BF7A5995B96C0001100001"

static struct scratch s;

static void
start(void)
{
	const struct spool_owner owner = { 10, 9, 8, 7, false };
	char settings[160];

	if (geteuid() != 0)
		cr_skip_test("needs root");
	scratch_new(&s, 0, NULL);
	snprintf(settings, sizeof(settings),
	    "program_dir = %s\nmessage_size_limit = 10m\n", s.dir);
	scratch_conf(&s, settings);
	cr_assert_eq(chmod(s.conf, 0644), 0);
	cr_assert_eq(
	    spool_create(s.base, 5, 3, &owner), 0, "%s", queue_file_reason());
}

static void
end(void)
{
	if (geteuid() == 0)
		scratch_done(&s);
}

TestSuite(door, .init = start, .fini = end, .timeout = 60);

static void
door(const char *script)
{
	char path[128];
	FILE *f;

	snprintf(path, sizeof(path), "%s/queue-drop", s.dir);
	f = fopen(path, "we");
	cr_assert_not_null(f);
	fprintf(f, "#!/bin/sh\n%s\n", script);
	cr_assert_eq(fclose(f), 0);
	cr_assert_eq(chmod(path, 0755), 0);
}

static void
check(
    const char *face, const char *input, size_t len, int want, const char *says)
{
	static const char envelope[] = "Fa@b\0Tc@d\0";
	const bool qmail = strcmp(face, "qmail-queue") == 0;
	const char *const queue[] = { "qmail-queue", NULL };
	const char *const mail[] = { face, "a@b", NULL };
	struct run run = { .argv = qmail ? queue : mail,
		.input = input,
		.len = len,
		.envelope = qmail ? envelope : NULL,
		.envelope_len = qmail ? sizeof(envelope) : 0,
		.as_nobody = true };

	scratch_run(&s, &run);
	cr_expect(WIFEXITED(run.status));
	cr_expect_eq(WEXITSTATUS(run.status), want, "%s: %d %s", face,
	    WEXITSTATUS(run.status), run.err);
	cr_expect_not_null(strstr(run.err, says), "%s: %s", face, run.err);
}

Test(door, S13_what_it_answers_is_passed_on)
{
	static const struct {
		const char *script;
		int mail, qmail;
		const char *says;
	} rows[] = {
		{ "cat >/dev/null; echo " ID, 0, 0, "" },
		{ "echo '4.7.1 7 wait (user_message_limit)' >&2; exit 75", 75,
		    71, "4.7.1 7 wait (user_message_limit)" },
		{ "echo '4.3.1 queue5: full' >&2; exit 75", 75, 53,
		    "4.3.1 queue5: full" },
		{ "echo '4.3.2 queue5: closed' >&2; exit 75", 75, 71,
		    "queue5: closed" },
		{ "echo '5.3.4 large' >&2; exit 65", 65, 31, "5.3.4" },
		{ "echo '5.5.3 many' >&2; exit 65", 65, 31, "5.5.3 many" },
		{ "echo '5.1.3 bad' >&2; exit 65", 65, 31, "5.1.3 bad" },
		/* what is not as agreed is never for good */
		{ "echo '5.1.3 bad' >&2; exit 75", 75, 53, "4.3.0 bad" },
		{ "echo '4.3.1 full' >&2; exit 65", 75, 53, "4.3.0 full" },
		{ "exit 0", 75, 53, "queue-drop" },
		{ "cat >/dev/null; echo rubbish", 75, 53, "tells no id" },
		{ "exit 1", 75, 53, "no reason" },
		{ "exit 65", 75, 53, "no reason" },
		{ "kill -9 $$", 75, 53, "killed" },
		{ "cat >/dev/null; kill -9 $$", 75, 53, "killed" },
		{ "cat >/dev/null; echo " ID "; kill -9 $$", 75, 53, "killed" },
	};
	static char large[4 << 20];
	size_t i;

	memset(large, 'x', sizeof(large));
	memcpy(large, "Subject: x\n\n", 12);
	for (i = 0; i < ARRAY_LEN(rows); i++) {
		door(rows[i].script);
		check("sendmail", large, 17, rows[i].mail, rows[i].says);
		check("qmail-queue", large, 17, rows[i].qmail, rows[i].says);
		/* It does not read all: no signal ends the caller. */
		check("sendmail", large, sizeof(large), rows[i].mail,
		    rows[i].says);
	}
}

Test(door, X10_without_one_nothing_is_taken)
{
	check("sendmail", "\n", 1, EX_TEMPFAIL, "no program queue-drop");
	check("qmail-queue", "\n", 1, 61, "");
	cr_expect_eq(scratch_stored(&s, NULL), 0);
}

/* An administrator's mistake, which is put right: never for good. */
Test(door, X10_a_closed_base_is_named_and_the_caller_tries_again)
{
	char says[160];

	door("cat >/dev/null; echo " ID);
	snprintf(
	    says, sizeof(says), "4.3.0 %s: this user may not enter", s.base);
	cr_assert_eq(chmod(s.base, 0700), 0);
	check("sendmail", "\n", 1, EX_TEMPFAIL, says);
	check("qmail-queue", "\n", 1, 61, s.base);
	cr_assert_eq(chmod(s.base, 0755), 0);
}

/* What the door got: its arguments, the records, its environment. */
static size_t
got(char *text, size_t size)
{
	char path[128];
	FILE *f;
	size_t n;

	snprintf(path, sizeof(path), "%s/got", s.dir);
	f = fopen(path, "re");
	cr_assert_not_null(f);
	n = fread(text, 1, size - 1, f);
	cr_assert_eq(fclose(f), 0);
	return n;
}

static void
recording_door(void)
{
	char path[128], text[512] = "";
	FILE *f;

	snprintf(path, sizeof(path), "%s/got", s.dir);
	f = fopen(path, "we");
	cr_assert_not_null(f);
	cr_assert_eq(fclose(f), 0);
	cr_assert_eq(chmod(path, 0666), 0);
	snprintf(text, sizeof(text),
	    "echo \"$@\" >%s; cat >>%s; env >>%s; echo " ID, path, path, path);
	door(text);
}

Test(door, what_the_sender_asks_of_reports)
{
	const char *const argv[] = { "sendmail", "-Nnever", "-Rhdrs", "-Vid",
		"-f", "s@x", "a@b", "c@d", NULL };
	struct run run = {
		.argv = argv, .input = "\nbody\n", .len = 6, .as_nobody = true
	};
	char text[2048];
	size_t n;

	recording_door();
	scratch_run(&s, &run);
	cr_expect_eq(WEXITSTATUS(run.status), 0, "%s", run.err);
	n = got(text, sizeof(text));
	cr_expect_not_null(memmem(text, n,
	    "F\3\0\0\0s@xM\3\0\0\0Hid"
	    "T\3\0\0\0a@bN\1\0\0\0\1"
	    "T\3\0\0\0c@dN\1\0\0\0\1"
	    "E\0\0\0\0",
	    8 + 8 + 8 + 6 + 8 + 6 + 5));
}

/* The records, and what the caller does not add. */
Test(door, S13_the_stream)
{
	char text[512];
	size_t n;

	recording_door();
	check("qmail-queue", "Subject: x\n\nbody\n", 17, 0, "");
	n = got(text, sizeof(text));
	cr_expect_eq(strncmp(text, s.base, strlen(s.base)), 0);
	cr_expect_not_null(memmem(text, n,
	    " 5\nC\x11\0\0\0Subject: x\n\nbody\n"
	    "F\3\0\0\0a@bT\3\0\0\0c@dE\0\0\0\0",
	    4 + 4 + 17 + 8 + 8 + 5));
	cr_expect_null(memmem(text, n, "QSCHED_CONF", 11));
}
