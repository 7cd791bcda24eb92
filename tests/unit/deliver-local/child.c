#include "deliver-local/child.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/io.h"
#include "config/conf.h"
#include "scratch.h"

#define TEXT(s) (s), sizeof(s) - 1

static struct agent_delivery delivery;
static struct child_plan plan;
static struct message message;
static struct programs *programs;
static char id[] = "05F3A", sender[] = "s@x", empty[] = "";
static char maildir_path[256];
static char cat_name[] = "cat";

static void
setup_with(const char *content, size_t len)
{
	scratch_message(&message, "", "", content, len);
	snprintf(
	    maildir_path, sizeof(maildir_path), "%s", scratch_path("mail/%%u"));
	delivery = (struct agent_delivery){ .id = id,
		.kind = AGENT_LOCAL,
		.transport = empty,
		.nexthop = cat_name,
		.sender = sender,
		.fd = message.fd,
		.content_off = message.off,
		.content_len = message.len };
	plan = (struct child_plan){ .delivery = &delivery,
		.recipient = "bob@x.org",
		.parent = getpid(),
		.private = geteuid() != 0,
		.users = { .qmailq = 99990, .qmails = 99991, .qmailr = 99992 },
		.maildir_path = maildir_path,
		.maildir_user = geteuid() == 0 ? SCRATCH_USER : "",
		.host = "host",
		.command_time_limit = 60 * USEC_PER_SEC };
	cr_assert(mkdir(scratch_path("mail"), 0777) == 0);
	cr_assert(chmod(scratch_path("mail"), 0777) == 0);
}

static void
setup(void)
{
	setup_with(TEXT("Received: a\nSubject: x\n\nbody\n"));
}

static void
teardown(void)
{
	programs_free(&programs);
	scratch_message_done(&message);
	scratch_done();
}

static pid_t
start(const struct child_plan *p, int *ret_fd)
{
	int fds[2];
	pid_t pid;

	cr_assert(pipe2(fds, O_CLOEXEC) == 0);
	pid = fork();
	if (pid == 0)
		child_main(p, fds[1]);
	close(fds[1]);
	*ret_fd = fds[0];
	return pid;
}

/* -EBADMSG: it ended without a verdict. */
static int
deliver(struct verdict *v)
{
	char data[sizeof(*v) + 1];
	int fd, status;
	pid_t pid = start(&plan, &fd);
	int64_t n = io_read_all(fd, data, sizeof(data));

	close(fd);
	cr_assert_eq(waitpid(pid, &status, 0), pid);
	*v = (struct verdict){ .outcome = AGENT_NOUTCOMES };
	return verdict_read(data, (size_t)n, v);
}

static void
expect(enum agent_outcome outcome, const char *dsn, const char *text)
{
	struct verdict v;

	cr_assert_eq(deliver(&v), 0, "%s", text);
	cr_expect_eq(v.outcome, outcome, "%s", v.text);
	cr_expect_str_eq(v.dsn, dsn, "%s %s", v.dsn, v.text);
	cr_expect_eq(
	    strncmp(v.text, text, strlen(text)), 0, "%s: %s", text, v.text);
}

static void
load_programs(const char *text)
{
	struct buf error = { 0 };

	programs_free(&programs);
	cr_assert_eq(programs_load(scratch_file("programs", text, strlen(text)),
			 &programs, &error),
	    0, "%s", buf_str(&error));
	plan.programs = programs;
	buf_done(&error);
	delivery.kind = AGENT_PIPE;
}

static struct passwd *
user_of(const char *path)
{
	struct stat st;

	cr_assert(lstat(path, &st) == 0, "%s", path);
	return getpwuid(st.st_uid);
}

/* ---- maildir ---- */

Test(child, maildir_of_a_service_user, .init = setup, .fini = teardown)
{
	struct buf got = { 0 };
	char name[256];

	plan.recipient = "Bob+list@X.org";
	expect(AGENT_SENT, "2.0.0", "delivered to maildir");
	cr_assert_eq(scratch_count(scratch_path("mail/bob/new"), name), 1);
	scratch_read(scratch_path("mail/bob/new/%s", name), &got);
	cr_expect_str_eq(buf_str(&got),
	    "Return-Path: <s@x>\nDelivered-To: Bob+list@X.org\n"
	    "Received: a\nSubject: x\n\nbody\n");
	if (!plan.private)
		cr_expect_str_eq(
		    user_of(scratch_path("mail/bob/new/%s", name))->pw_name,
		    SCRATCH_USER);
	buf_done(&got);
}

Test(child, addresses_that_have_no_mailbox, .init = setup, .fini = teardown)
{
	static const char *const rows[] = { "../../etc@x", "a/b@x", ".@x",
		"..@x", "@x", ".ssh@x", "b@../x" };
	size_t i;

	for (i = 0; i < ARRAY_LEN(rows); i++) {
		plan.recipient = rows[i];
		expect(AGENT_FAILED, "5.1.3", "bad mailbox address: it ");
	}
	cr_expect_eq(scratch_count(scratch_path("mail"), NULL), 0);
	plan.maildir_path = "/mail/%d/%u";
	plan.recipient = "bob";
	expect(AGENT_FAILED, "5.1.3", "the address has not all that");
}

Test(child, C3_loops_are_returned, .init = setup, .fini = teardown)
{
	static const char content[] =
	    "Delivered-To: bob@X.ORG\nReceived: a\n\n";

	scratch_message_done(&message);
	scratch_message(&message, "", "", TEXT(content));
	delivery.fd = message.fd;
	delivery.content_len = message.len;
	expect(AGENT_FAILED, "5.4.6", "mail forwarding loop for bob@x.org");
	plan.recipient = "other@x.org";
	expect(AGENT_SENT, "2.0.0", "delivered");
	plan.recipient = "bob@x.org";
	load_programs("cat " SCRATCH_USER " /bin/cat\n");
	expect(AGENT_FAILED, "5.4.6", "mail forwarding loop for bob@x.org");
}

Test(child, a_maildir_that_cannot_be, .init = setup, .fini = teardown)
{
	plan.maildir_path = "/proc/none/%u";
	expect(AGENT_DEFERRED, "4.2.0", "maildir /proc/none/bob: open or make");
	plan.maildir_path = "relative/%u";
	expect(AGENT_DEFERRED, "4.3.5", "maildir_path relative/%u makes no");
}

Test(
    child, the_home_of_an_account_is_looked_up, .init = setup, .fini = teardown)
{
	plan.maildir_path = "%h/none/Maildir";
	plan.recipient = "no-such-account-here@x";
	expect(AGENT_FAILED, "5.1.1", "unknown user: \"no-such-account-here\"");
	plan.recipient = SCRATCH_USER "+ext@x";
	expect(AGENT_DEFERRED, "4.2.0", "maildir /");
}

/* ---- as root: whose mailbox, as whom ---- */

static void
only_root(void)
{
	if (geteuid() != 0) {
		teardown(); /* which a test that is skipped has not */
		cr_skip("only for root");
	}
	plan.maildir_user = "";
}

Test(child, X10_delivered_as_the_recipient, .init = setup, .fini = teardown)
{
	char name[256];
	int i;

	only_root();
	plan.recipient = "NoBody+x@x";
	expect(AGENT_SENT, "2.0.0", "delivered to maildir");
	cr_assert_eq(scratch_count(scratch_path("mail/nobody/new"), name), 1);
	cr_expect_str_eq(
	    user_of(scratch_path("mail/nobody/new/%s", name))->pw_name,
	    "nobody");
	for (i = 0; i < 3; i++)
		cr_expect_str_eq(user_of(scratch_path("mail/nobody/%s",
					     &"tmp\0new\0cur"[4 * i]))
				     ->pw_name,
		    "nobody");
}

Test(child, X10_a_link_to_what_is_not_the_recipients, .init = setup,
    .fini = teardown)
{
	only_root();
	cr_assert(mkdir(scratch_path("secret"), 0700) == 0);
	cr_assert(
	    symlink(scratch_path("secret"), scratch_path("mail/nobody")) == 0);
	plan.recipient = "nobody@x";
	expect(AGENT_DEFERRED, "4.2.0", "maildir /");
	cr_expect_eq(scratch_count(scratch_path("secret"), NULL), 0);
	/* one that may be entered, but not written */
	cr_assert(chmod(scratch_path("secret"), 0755) == 0);
	expect(AGENT_DEFERRED, "4.2.0", "maildir /");
	cr_expect_eq(scratch_count(scratch_path("secret"), NULL), 0);
}

Test(child, accounts_that_get_no_mail, .init = setup, .fini = teardown)
{
	only_root();
	plan.maildir_user = "";
	plan.recipient = "nobody@x";
	plan.users.qmails = getpwnam("nobody")->pw_uid;
	expect(AGENT_FAILED, "5.2.1", "\"nobody\" is an account of the system");
	plan.recipient = "no-such-account-here@x";
	expect(AGENT_FAILED, "5.1.1", "unknown user");
	plan.maildir_user = "nobody";
	expect(AGENT_DEFERRED, "4.3.5", "user nobody of this transport must");
	plan.maildir_user = "root";
	expect(AGENT_DEFERRED, "4.3.5", "user root of this transport must");
	plan.maildir_user = "no-such-account-here";
	expect(AGENT_DEFERRED, "4.3.5",
	    "user no-such-account-here of this transport does not exist");
	cr_expect_eq(scratch_count(scratch_path("mail"), NULL), 0);
}

Test(child, X12_a_program_has_no_way_back, .init = setup, .fini = teardown)
{
	const gid_t groups[] = { 0, 42 };

	only_root();
	cr_assert(setgroups(ARRAY_LEN(groups), groups) == 0);
	load_programs("cat nobody /bin/sh -c \"id -u; id -G; "
		      "grep Cap /proc/self/status; umask; exit 75\"\n"
		      "evil 0 /bin/sh\n");
	expect(AGENT_DEFERRED, "4.3.0",
	    "program cat: temporary failure: 65534 65534 "
	    "CapInh: 0000000000000000 CapPrm: 0000000000000000 "
	    "CapEff: 0000000000000000 ");
	delivery.nexthop = strdup("evil");
	expect(AGENT_DEFERRED, "4.3.5", "user 0 of this transport does not");
	free(delivery.nexthop);
}

/* ---- programs ---- */

Test(child, X9_arguments_and_environment, .init = setup, .fini = teardown)
{
	struct buf got = { 0 }, text = { 0 };

	buf_printf(&text,
	    "cat " SCRATCH_USER " /bin/sh -c \"cat >/dev/null; "
	    "printf '<%%s>' \\\"$@\\\" \\\"$SENDER\\\" \\\"$RECIPIENT\\\""
	    " \\\"$LOCAL\\\" \\\"$DOMAIN\\\" \\\"$QUEUE_ID\\\" > %s\" sh "
	    "-- ${sender} ${recipient} ${user} ${domain} ${nexthop}\n",
	    scratch_path("mail/got"));
	load_programs(buf_str(&text));
	plan.recipient = "-o Proxy;$(id)`id`|x@y.org";
	expect(AGENT_SENT, "2.0.0", "delivered to program cat");
	scratch_read(scratch_path("mail/got"), &got);
	cr_expect_str_eq(buf_str(&got),
	    "<--><s@x><-o Proxy;$(id)`id`|x@y.org><-o Proxy;$(id)`id`|x><y.org>"
	    "<cat>"
	    "<s@x><-o Proxy;$(id)`id`|x@y.org><-o Proxy;$(id)`id`|x><y.org>"
	    "<05F3A>",
	    "%s", buf_str(&got));
	delivery.sender = empty;
	plan.recipient = "@y";
	expect(AGENT_SENT, "2.0.0", "delivered to program cat");
	scratch_read(scratch_path("mail/got"), &got);
	cr_expect_str_eq(
	    buf_str(&got), "<--><><@y><><y><cat><><@y><><y><05F3A>");
	buf_done(&got);
	buf_done(&text);
}

Test(child, X9_an_address_that_would_be_an_option, .init = setup,
    .fini = teardown)
{
	load_programs("cat " SCRATCH_USER " /bin/cat ${recipient}\n");
	plan.recipient = "--help@x";
	expect(AGENT_FAILED, "5.1.3", "an address that begins with -");
}

Test(child, programs_that_are_not_there, .init = setup, .fini = teardown)
{
	load_programs("cat " SCRATCH_USER " /bin/cat\n");
	delivery.nexthop = empty;
	expect(AGENT_DEFERRED, "4.3.5", "there is no program \"\"");
	delivery.nexthop = strdup("cat ");
	expect(AGENT_DEFERRED, "4.3.5", "there is no program \"cat \"");
	free(delivery.nexthop);
}

/* ---- life and death ---- */

Test(child, P1_a_child_of_somebody_else_does_nothing, .init = setup,
    .fini = teardown)
{
	struct verdict v;

	plan.parent = getppid();
	cr_expect_eq(deliver(&v), -EBADMSG);
	cr_expect_eq(scratch_count(scratch_path("mail"), NULL), 0);
}

/* Kill -9 of the agent: program and grandchildren go too, whose end of the
 * pipe says so. */
Test(child, P1_programs_end_with_the_agent, .init = setup, .fini = teardown)
{
	struct buf text = { 0 };
	const char *fifo = scratch_path("mail/fence");
	struct pollfd p;
	char byte;
	pid_t agent;
	int fd;

	cr_assert(mkfifo(fifo, 0666) == 0 && chmod(fifo, 0666) == 0);
	buf_printf(&text,
	    "cat " SCRATCH_USER " /bin/sh -c \"exec 9>%s; echo >&9; "
	    "sleep 1000 & sleep 1000\"\n",
	    fifo);
	load_programs(buf_str(&text));
	/* Longer than this test waits: only the signal ends the program. */
	plan.command_time_limit = 600 * USEC_PER_SEC;
	fd = open(fifo, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	agent = fork();
	if (agent == 0) {
		plan.parent = getpid();
		start(&plan, &fd);
		for (;;)
			pause();
	}
	p = (struct pollfd){ .fd = fd, .events = POLLIN };
	cr_assert_eq(poll(&p, 1, 120000), 1, "the program runs");
	cr_assert_eq(read(fd, &byte, 1), 1);
	cr_assert(kill(agent, SIGKILL) == 0);
	cr_assert_eq(waitpid(agent, NULL, 0), agent);
	p.events = 0;
	cr_expect_eq(poll(&p, 1, 120000), 1, "its end");
	cr_expect(p.revents & POLLHUP);
	close(fd);
	buf_done(&text);
}
