#include "scratch.h"

#include <criterion/criterion.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define ARGS(...) ((const char *const[]){ __VA_ARGS__, NULL })
#define BS        ARGS("sendmail", "-bs")
#define EHLO      "EHLO me\r\n"
#define FROM_ME   "MAIL FROM:<me@x>\r\n"
#define TO_AB     "RCPT TO:<a@b>\r\nDATA\r\n"
#define MESSAGE   FROM_ME TO_AB "Subject: x\r\n\r\ntext\r\n.\r\n"
#define QUEUED    "250 2.0.0 Ok: queued as "

static size_t
count(const char *text, const char *word)
{
	size_t n = 0;

	while ((text = strstr(text, word)) != NULL) {
		text += strlen(word);
		n++;
	}
	return n;
}

/* ---- what is stored ---- */

struct stored_case {
	const char *name;
	const char *const *argv;
	const char *input;
	const char *sender, *rcpts, *wishes;
	const char *has, *has_not; /* in the content, or NULL */
};

static const struct stored_case stored_cases[] = {
	{ "as the client says", BS, EHLO MESSAGE, "me@x", "a@b", " | ",
	    "From: me@x\nDate: ", "\r" },
	{ "the header is not asked", BS,
	    FROM_ME TO_AB "To: c@d\r\nBcc: secret@x\r\n\r\nx\r\n.\r\n", "me@x",
	    "a@b", " | ", "To: c@d\n\nx\n", "secret" },
	{ "LF alone, as scripts write", BS,
	    "EHLO me\nMAIL FROM:<me@x>\nRCPT TO:<a@b>\nDATA\nS: x\n\n..\n.\n",
	    "me@x", "a@b", " | ", "S: x\n\n.\n", NULL },
	{ "addresses without a domain", BS,
	    "MAIL FROM:<me>\r\nRCPT TO:<joe>\r\nRCPT TO:<\"a b\">\r\n"
	    "DATA\r\n\r\n.\r\n",
	    "me@example.org", "joe@example.org|\"a b\"@example.org", " | | ",
	    "From: me@example.org\n", NULL },
	{ "the dot of the root", BS,
	    "MAIL FROM:<me@x.>\r\nRCPT TO:<a@b.c.>\r\nDATA\r\n.\r\n", "me@x",
	    "a@b.c", " | ", NULL, NULL },
	{ "the null sender", BS, "MAIL FROM:<>\r\n" TO_AB "Subject: x\r\n.\r\n",
	    "", "a@b", " | ", "From: MAILER-DAEMON@example.org\n", NULL },
	{ "a recipient comes once", BS,
	    FROM_ME "RCPT TO:<a@b>\r\nRCPT TO:<c@d>\r\nRCPT TO:<A@b>\r\n"
		    "DATA\r\n.\r\n",
	    "me@x", "a@b|c@d", " | | ", NULL, NULL },
	{ "RSET begins anew", BS,
	    "MAIL FROM:<no@x> RET=FULL\r\nRCPT TO:<no@b> NOTIFY=NEVER\r\n"
	    "RSET\r\n" MESSAGE,
	    "me@x", "a@b", " | ", NULL, NULL },
	{ "so does the next message, and a refused recipient is none", BS,
	    FROM_ME "RCPT TO:<no@b\r\nRCPT TO:<a@b>\r\nDATA\r\nx\r\n.\r\n",
	    "me@x", "a@b", " | ", NULL, NULL },
	{ "wishes", BS,
	    "MAIL FROM:<me@x> RET=HDRS ENVID=id1\r\n"
	    "RCPT TO:<a@b> NOTIFY=SUCCESS,DELAY ORCPT=rfc822;o@b\r\n"
	    "RCPT TO:<c@d>\r\nRCPT TO:<e@f> NOTIFY=NEVER\r\nDATA\r\n.\r\n",
	    "me@x", "a@b|c@d|e@f", "hdrs id1|success,delay rfc822;o@b| |never ",
	    NULL, NULL },
	{ "wishes of arguments hold where the client has none",
	    ARGS("sendmail", "-N", "failure", "-R", "full", "-V", "v", "-bs"),
	    FROM_ME "RCPT TO:<a@b>\r\nRCPT TO:<c@d> NOTIFY=NEVER\r\n"
		    "DATA\r\n.\r\n",
	    "me@x", "a@b|c@d", "full v|failure |never ", NULL, NULL },
	{ "also where it has other ones",
	    ARGS("sendmail", "-N", "never", "-V", "v", "-bs"),
	    "MAIL FROM:<me@x> RET=HDRS\r\nRCPT TO:<a@b> ORCPT=rfc822;o@b\r\n"
	    "DATA\r\n.\r\n",
	    "me@x", "a@b", "hdrs v|never rfc822;o@b", NULL, NULL },
	{ "ENVID of the client, RET of the arguments",
	    ARGS("sendmail", "-R", "hdrs", "-V", "v", "-bs"),
	    "MAIL FROM:<me@x> ENVID=id1\r\n" TO_AB ".\r\n", "me@x", "a@b",
	    "hdrs id1| ", NULL, NULL },
	{ "-f and -F say nothing",
	    ARGS("sendmail", "-bs", "-f", "no@x", "-F", "No One"), MESSAGE,
	    "me@x", "a@b", " | ", "From: me@x\n", "One" },
	{ "a mailbox line goes", BS,
	    FROM_ME TO_AB "From joe\r\nSubject: x\r\n\r\nb\r\n.\r\n", "me@x",
	    "a@b", " | ", "Subject: x\n\nb\n", "From joe" },
	{ "8-bit addresses and text", BS,
	    "MAIL FROM:<\xc3\xa4@x> SMTPUTF8 BODY=8BITMIME\r\n"
	    "RCPT TO:<\xc3\xb6@b>\r\nDATA\r\nS: x\r\n\r\n\xff\r\n.\r\n",
	    "\xc3\xa4@x", "\xc3\xb6@b", " | ", "\n\xff\n", NULL },
};

static void
check_stored(const struct scratch *s, const struct stored_case *c)
{
	struct stored m = { 0 };
	struct run run;
	const char *text;

	cr_expect_eq(scratch_exit(s, &run, c->argv, c->input), 0, "%s: %s",
	    c->name, run.err);
	cr_assert_eq(scratch_stored(s, &m), 1, "%s: %s", c->name, run.out);
	cr_expect_eq(count(run.out, QUEUED), 1, "%s: %s", c->name, run.out);
	cr_expect_str_eq(buf_str(&m.sender), c->sender, "%s: %s", c->name,
	    buf_str(&m.sender));
	cr_expect_str_eq(
	    buf_str(&m.rcpts), c->rcpts, "%s: %s", c->name, buf_str(&m.rcpts));
	cr_expect_str_eq(buf_str(&m.wishes), c->wishes, "%s: %s", c->name,
	    buf_str(&m.wishes));
	text = buf_str(&m.content);
	cr_expect_eq(memcmp(text, "Received: by mx.example (", 25), 0);
	cr_expect(c->has == NULL || strstr(text, c->has) != NULL, "%s: %s",
	    c->name, text);
	cr_expect(c->has_not == NULL || strstr(text, c->has_not) == NULL,
	    "%s: %s", c->name, text);
	stored_done(&m);
	scratch_empty(s);
}

Test(dialogue, S16_what_is_stored)
{
	struct scratch s;
	size_t i;

	scratch_new(&s, 1, NULL);
	for (i = 0; i < ARRAY_LEN(stored_cases); i++)
		check_stored(&s, &stored_cases[i]);
	scratch_done(&s);
}

/* ---- a session ---- */

struct session_case {
	const char *name, *settings;
	const char *input;
	int status;
	size_t stored;   /* messages, each with its 250 */
	const char *has; /* in what the client hears, or NULL */
};

#define BIG_LINE "0123456789012345678901234567890123456789\r\n"
#define BIG      BIG_LINE BIG_LINE BIG_LINE BIG_LINE BIG_LINE BIG_LINE

static const struct session_case session_cases[] = {
	{ "nothing", NULL, "", 0, 0, "220 mx.example ESMTP qscheduler\r\n" },
	{ "the size that is offered", "message_size_limit = 100\n", EHLO, 0, 0,
	    "250-SIZE 100\r\n" },
	{ "QUIT", NULL, "QUIT\r\nNOOP\r\n", 0, 0,
	    "qscheduler\r\n221 2.0.0 Bye\r\n" },
	{ "three messages, then the end of the input", NULL,
	    EHLO MESSAGE MESSAGE MESSAGE, 0, 3, NULL },
	{ "the end of the input inside of the second one", NULL,
	    EHLO MESSAGE FROM_ME TO_AB "Subject: x\r\n\r\ntext\r\n", 74, 1,
	    "421 4.3.0 the input ends inside of a message" },
	{ "in its header", NULL, EHLO MESSAGE FROM_ME TO_AB "Subj", 74, 1,
	    "421 4.3.0 " },
	{ "behind its dot", NULL, EHLO MESSAGE FROM_ME TO_AB "text\r\n.", 74, 1,
	    "421 4.3.0 " },
	{ "before any of it", NULL, EHLO MESSAGE FROM_ME TO_AB, 74, 1,
	    "421 4.3.0 " },
	{ "the end of the input inside of a command", NULL,
	    EHLO MESSAGE "MAIL FROM:<me@", 0, 1, NULL },
	{ "SIZE is above the limit", "message_size_limit = 100\n",
	    EHLO "MAIL FROM:<me@x> SIZE=101\r\n" MESSAGE, 0, 1,
	    "552 5.3.4 the message is larger than 100 octets\r\n" },
	{ "the message is, and the next one is taken",
	    "message_size_limit = 100\n",
	    EHLO FROM_ME TO_AB "S: x\r\n\r\n" BIG ".\r\n" MESSAGE, 0, 1,
	    "552 5.3.4 the message is larger than 100 bytes "
	    "(message_size_limit)\r\n" },
	{ "too many recipients", "message_recipient_limit = 1\n",
	    EHLO FROM_ME "RCPT TO:<c@d>\r\n" TO_AB "x\r\n.\r\n", 0, 1,
	    "452 4.5.3 1 recipients are the limit of a message\r\n" },
	{ "no space, and the dialogue goes on",
	    "queue_minfree_bytes = 1024g\nqueue_minfree_inodes = 0\n",
	    EHLO MESSAGE "NOOP\r\n", 0, 0, "452 4.3.1 " },
	{ "an answer of the disk is no end", "queue_minfree_bytes = 1024g\n",
	    EHLO MESSAGE MESSAGE "QUIT\r\n", 0, 0, "221 2.0.0 Bye\r\n" },
};

Test(dialogue, S16_sessions)
{
	struct scratch s;
	struct run run;
	size_t i;

	scratch_new(&s, 1, NULL);
	for (i = 0; i < ARRAY_LEN(session_cases); i++) {
		const struct session_case *c = &session_cases[i];

		scratch_conf(&s, c->settings);
		cr_expect_eq(scratch_exit(&s, &run, BS, c->input), c->status,
		    "%s: %d %s", c->name, WEXITSTATUS(run.status), run.err);
		cr_expect_eq(scratch_stored(&s, NULL), c->stored, "%s: %s",
		    c->name, run.out);
		cr_expect_eq(count(run.out, QUEUED), c->stored, "%s: %s",
		    c->name, run.out);
		cr_expect(c->has == NULL || strstr(run.out, c->has) != NULL,
		    "%s: %s", c->name, run.out);
		scratch_empty(&s);
	}
	scratch_done(&s);
}

/* The header is larger than the program keeps: all of it is read, nothing is
 * stored, and the next message is. */
Test(dialogue, S16_a_header_without_end)
{
	struct buf input = { 0 };
	struct scratch s;
	struct run run = { .argv = BS };
	size_t i;

	buf_add_str(&input, EHLO FROM_ME TO_AB "Subject: x\r\n");
	for (i = 0; i < 30000; i++)
		buf_add_str(&input, " " BIG_LINE);
	buf_add_str(&input, ".\r\n" MESSAGE "QUIT\r\n");
	run.input = input.data;
	run.len = input.len;
	scratch_new(&s, 1, NULL);
	scratch_run(&s, &run);
	cr_expect_eq(run.status, 0, "%s", run.err);
	cr_expect_not_null(
	    strstr(run.out, "554 5.6.0 the header"), "%s", run.out);
	cr_expect_eq(count(run.out, QUEUED), 1, "%s", run.out);
	cr_expect_eq(scratch_stored(&s, NULL), 1);
	buf_done(&input);
	scratch_done(&s);
}

Test(dialogue, S16_no_queue)
{
	struct scratch s;
	struct run run;

	scratch_new(&s, 0, NULL);
	cr_expect_eq(scratch_exit(&s, &run, BS, EHLO MESSAGE "QUIT\r\n"), 0);
	cr_expect_not_null(
	    strstr(run.out, "451 4.3.0 no queue in "), "%s", run.out);
	cr_expect_not_null(strstr(run.out, "221 "), "%s", run.out);
	cr_expect_eq(scratch_exit(&s, &run,
			 ARGS("sendmail", "-bs", "-C", "/nowhere"), "QUIT\r\n"),
	    75);
	cr_expect_eq(
	    strncmp(run.out, "421 4.3.5 /nowhere: ", 20), 0, "%s", run.out);
	cr_expect_eq(count(run.out, "\n"), 1, "%s", run.out);
	scratch_done(&s);
}

/* ---- a client that is there while it talks ---- */

struct client {
	struct run run;
	pid_t pid;
	int in[2], out[2];
};

static void
client_start(struct client *c)
{
	*c = (struct client){ .run.argv = BS };
	cr_assert_eq(pipe2(c->in, O_CLOEXEC), 0);
	cr_assert_eq(pipe2(c->out, O_CLOEXEC), 0);
	c->run.input_fd = c->in[0];
	c->run.close_fd = c->out[0]; /* else the child would listen to itself */
	c->run.envelope_fd = c->out[1];
	c->pid = scratch_start(&c->run);
	close(c->in[0]);
	close(c->out[1]);
	/* The child has the only end that is written to. */
	close(c->run.out_fd);
	c->run.out_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
}

static void
client_say(const struct client *c, const char *text)
{
	cr_assert_eq(
	    write(c->in[1], text, strlen(text)), (ssize_t)strlen(text));
}

/* Read until the last line begins with this code. */
static void
client_hear(const struct client *c, const char *code)
{
	char text[4096];
	size_t len = 0;

	for (;;) {
		ssize_t n = read(c->out[0], text + len, sizeof(text) - 1 - len);
		const char *line;

		cr_assert_gt(n, 0, "%s: %s", code, text);
		len += (size_t)n;
		text[len] = '\0';
		if (text[len - 1] != '\n')
			continue;
		line = memrchr(text, '\n', len - 1);
		if (strncmp(line == NULL ? text : line + 1, code,
			strlen(code)) == 0)
			return;
	}
}

static int
client_end(struct client *c)
{
	close(c->in[1]);
	close(c->out[0]);
	scratch_wait(c->pid, &c->run);
	return WIFEXITED(c->run.status) ? WEXITSTATUS(c->run.status) : -1;
}

Test(dialogue, S16_each_command_waits_for_its_reply)
{
	struct scratch s;
	struct client c;

	scratch_new(&s, 1, NULL);
	client_start(&c);
	client_hear(&c, "220 ");
	client_say(&c, "EHLO me\r\n");
	client_hear(&c, "250 ");
	client_say(&c, "MAIL FROM:<me@x>\r\n");
	client_hear(&c, "250 ");
	client_say(&c, "RCPT TO:<a@b>\r\n");
	client_hear(&c, "250 ");
	client_say(&c, "DATA\r\n");
	client_hear(&c, "354 ");
	cr_expect_eq(scratch_stored(&s, NULL), 0);
	client_say(&c, "Subject: x\r\n\r\ntext\r\n.\r\n");
	client_hear(&c, QUEUED);
	cr_expect_eq(scratch_stored(&s, NULL), 1);
	client_say(&c, "QUIT\r\n");
	client_hear(&c, "221 ");
	cr_expect_eq(client_end(&c), 0, "%s", c.run.err);
	scratch_done(&s);
}

/* One message is taken, a second one is under way. */
static void
client_half(struct client *c)
{
	client_start(c);
	client_say(c, EHLO MESSAGE);
	client_hear(c, QUEUED);
	client_say(c, FROM_ME TO_AB "Subject: x\r\n\r\nhalf\r\n");
	client_hear(c, "354 ");
}

Test(dialogue, S16_a_signal_keeps_what_was_taken)
{
	static const int signals[] = { SIGTERM, SIGINT, SIGHUP };
	struct scratch s;
	struct client c;
	size_t i;

	scratch_new(&s, 1, NULL);
	for (i = 0; i < ARRAY_LEN(signals); i++) {
		client_half(&c);
		kill(c.pid, signals[i]);
		client_hear(&c, "421 4.3.2 stopped by a signal\r\n");
		cr_expect_eq(client_end(&c), 75, "%s", c.run.err);
		cr_expect_eq(scratch_stored(&s, NULL), 1);
		scratch_empty(&s);
	}
	client_half(&c);
	kill(c.pid, SIGKILL);
	cr_expect_eq(client_end(&c), -1);
	cr_expect_eq(scratch_stored(&s, NULL), 1);
	scratch_done(&s);
}

/* The client goes before it has heard that its second message is taken. */
Test(dialogue, S16_nobody_listens)
{
	struct scratch s;
	struct client c;

	scratch_new(&s, 1, NULL);
	client_half(&c);
	close(c.out[0]);
	c.out[0] = -1;
	client_say(&c, ".\r\n" MESSAGE MESSAGE);
	cr_expect_eq(client_end(&c), 74, "%s", c.run.err);
	cr_expect_not_null(
	    strstr(c.run.err, "standard output"), "%s", c.run.err);
	/* The one whose reply could not be written is on disk; none after. */
	cr_expect_eq(scratch_stored(&s, NULL), 2);
	scratch_done(&s);
}

/* A client that does not read cannot keep the program from a signal. */
Test(dialogue, S16_a_client_that_reads_nothing, .timeout = 60)
{
	struct scratch s;
	struct client c;
	int left = 0, before = -1;

	scratch_new(&s, 1, NULL);
	client_start(&c);
	cr_assert_eq(fcntl(c.in[1], F_SETFL, O_NONBLOCK), 0);
	/* Until neither pipe takes any more. */
	while (left != before || left == 0) {
		while (write(c.in[1], "NOOP\r\n", 6) == 6)
			;
		before = left;
		(void)poll(NULL, 0, 20);
		cr_assert_eq(ioctl(c.in[1], FIONREAD, &left), 0);
	}
	kill(c.pid, SIGTERM);
	scratch_wait(c.pid, &c.run);
	cr_expect(WIFEXITED(c.run.status));
	cr_expect_eq(WEXITSTATUS(c.run.status), 75, "%s", c.run.err);
	close(c.in[1]);
	close(c.out[0]);
	scratch_done(&s);
}
