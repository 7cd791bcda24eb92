#include "deliver-local/child.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/io.h"

#define PROGRAM_FILES 1024

enum stage {
	STAGE_RUNS,
	STAGE_ASKED,  /* SIGTERM */
	STAGE_KILLED, /* SIGKILL */
};

struct run {
	const struct command *c;
	struct message *m;
	struct verdict *verdict;
	pid_t pid; /* of the program, and of its process group */
	int in;    /* standard input of the program */
	int out;   /* standard output and error of the program */
	int sig;   /* signalfd */
	enum stage stage;
	usec_t deadline;
	const char *cut; /* why it was ended, NULL: by itself */
	char *chunk;
	size_t from, to; /* the part of chunk to be written */
	char output[COMMAND_OUTPUT_MAX];
	size_t output_len;
};

/* ---- the program's side of the fork ---- */

struct ends {
	int in, out, error;
};

static void
reset_process(void)
{
	struct rlimit files, memory;
	sigset_t none;

	io_default_signals();
	sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
	if (getrlimit(RLIMIT_NOFILE, &files) == 0 &&
	    files.rlim_cur > PROGRAM_FILES) {
		files.rlim_cur = PROGRAM_FILES;
		(void)setrlimit(RLIMIT_NOFILE, &files);
	}
	/* process_memory_limit is ours. */
	if (getrlimit(RLIMIT_AS, &memory) == 0) {
		memory.rlim_cur = memory.rlim_max;
		(void)setrlimit(RLIMIT_AS, &memory);
	}
}

/* Standard descriptors and, above them, only the one for the error, which an
 * exec that succeeds closes. */
static int
place_descriptors(const struct ends *e)
{
	int error = fcntl(e->error, F_DUPFD_CLOEXEC, 10);

	if (error < 0 || dup2(e->in, 0) < 0 || dup2(e->out, 1) < 0 ||
	    dup2(e->out, 2) < 0 || dup3(error, 3, O_CLOEXEC) < 0 ||
	    close_range(4, ~0u, 0) < 0)
		return -errno;
	return 3;
}

static _Noreturn void
become_program(const struct command *c, const struct ends *e, pid_t parent)
{
	int fd = place_descriptors(e), error;

	if (fd < 0)
		_exit(EXIT_TEMPORARY);
	(void)setsid();
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(EXIT_TEMPORARY);
	if (chdir(c->home) < 0 && chdir("/") < 0)
		_exit(EXIT_TEMPORARY);
	reset_process();
	execve(c->argv[0], c->argv, c->envp);
	error = errno;
	(void)io_write_all(fd, &error, sizeof(error));
	_exit(EXIT_TEMPORARY);
}

/* ---- start ---- */

/* Waits until exec has happened, so that its group exists from here on. */
static int
start_failed(struct run *r, int fd)
{
	int error = 0;

	if (io_read_all(fd, &error, sizeof(error)) != sizeof(error))
		return 0;
	(void)waitpid(r->pid, NULL, 0);
	verdict_set(r->verdict, AGENT_DEFERRED, "4.3.5",
	    "program %s: cannot execute %s: %s", r->c->name, r->c->argv[0],
	    strerror(error));
	return -error;
}

static int
open_pipes(int in[2], int out[2], int error[2])
{
	if (pipe2(in, O_CLOEXEC) < 0 || pipe2(out, O_CLOEXEC) < 0 ||
	    pipe2(error, O_CLOEXEC) < 0)
		return -errno;
	return io_nonblock(in[1]) < 0 || io_nonblock(out[0]) < 0 ? -errno : 0;
}

static int
start(struct run *r)
{
	int in[2] = { -1, -1 }, out[2] = { -1, -1 }, error[2] = { -1, -1 };
	pid_t self = getpid();
	int ret = open_pipes(in, out, error);

	if (ret == 0) {
		r->pid = fork();
		if (r->pid == 0)
			become_program(r->c,
			    &(struct ends){ in[0], out[1], error[1] }, self);
		ret = r->pid < 0 ? -errno : 0;
	}
	if (ret < 0)
		verdict_error(r->verdict, ret, "start the program");
	io_close(&in[0]);
	io_close(&out[1]);
	io_close(&error[1]);
	if (ret == 0)
		ret = start_failed(r, error[0]);
	io_close(&error[0]);
	r->in = in[1];
	r->out = out[0];
	return ret;
}

/* ---- while it runs ---- */

static void
kill_group(struct run *r, enum stage stage, usec_t now)
{
	(void)kill(-r->pid, stage == STAGE_ASKED ? SIGTERM : SIGKILL);
	r->stage = stage;
	r->deadline = stage == STAGE_ASKED ? now + COMMAND_GRACE : USEC_NEVER;
}

static void
end_early(struct run *r, const char *why, enum stage stage)
{
	if (r->stage >= stage)
		return;
	if (r->cut == NULL)
		r->cut = why;
	kill_group(r, stage, clock_mono());
}

/* A message that cannot be read to its end must not look whole: the program
 * is killed before its standard input ends. */
static int
fill_chunk(struct run *r)
{
	int64_t n = message_read(r->m, r->chunk, MESSAGE_CHUNK);

	if (n < 0) {
		end_early(r, "the message cannot be read", STAGE_KILLED);
		return -1;
	}
	r->from = 0;
	r->to = (size_t)n;
	if (n == 0)
		io_close(&r->in);
	return n == 0 ? -1 : 0;
}

static void
feed(struct run *r)
{
	ssize_t n;

	if (r->stage == STAGE_KILLED || (r->from == r->to && fill_chunk(r) < 0))
		return;
	n = write(r->in, r->chunk + r->from, r->to - r->from);
	if (n > 0)
		r->from += (size_t)n;
	else if (n < 0 && errno != EAGAIN && errno != EINTR)
		io_close(&r->in); /* the program does not read all */
}

/* false: nothing more at the moment. */
static bool
listen_once(struct run *r)
{
	char bytes[COMMAND_OUTPUT_MAX];
	size_t room = sizeof(r->output) - r->output_len;
	ssize_t n = read(r->out, bytes, sizeof(bytes));

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return false;
	if (n <= 0) {
		io_close(&r->out);
		return false;
	}
	room = room < (size_t)n ? room : (size_t)n;
	memcpy(r->output + r->output_len, bytes, room);
	r->output_len += room;
	return true;
}

static bool
has_ended(struct run *r)
{
	siginfo_t si = { 0 };

	/* Not reaped: its number keeps naming the group. */
	return waitid(P_PID, (id_t)r->pid, &si, WEXITED | WNOHANG | WNOWAIT) <
	    0 ||
	    si.si_pid == r->pid;
}

/* Orphans of the program that have ended count in the limits of processes until
 * they are reaped. */
static void
reap_orphans(const struct run *r)
{
	siginfo_t si = { 0 };

	while (clock_mono() < r->deadline &&
	    waitid(P_ALL, 0, &si, WEXITED | WNOHANG | WNOWAIT) == 0 &&
	    si.si_pid != 0 && si.si_pid != r->pid) {
		(void)waitpid(si.si_pid, NULL, WNOHANG);
		si.si_pid = 0;
	}
}

static void
take_signal(struct run *r)
{
	struct signalfd_siginfo si;

	if (read(r->sig, &si, sizeof(si)) != (ssize_t)sizeof(si))
		return;
	if (si.ssi_signo == SIGTERM)
		end_early(r, "the mail system stops", STAGE_ASKED);
	else
		reap_orphans(r);
}

static void
check_deadline(struct run *r)
{
	usec_t now = clock_mono();

	if (now < r->deadline)
		return;
	if (r->cut == NULL)
		r->cut = "the time limit is over";
	kill_group(r, r->stage == STAGE_RUNS ? STAGE_ASKED : STAGE_KILLED, now);
}

static int
poll_timeout(const struct run *r)
{
	usec_t left = r->deadline - clock_mono();

	if (r->deadline == USEC_NEVER)
		return -1;
	if (left < 0)
		return 0;
	left = left / USEC_PER_MSEC + 1;
	return left > INT_MAX ? INT_MAX : (int)left;
}

static void
wait_for_end(struct run *r)
{
	while (!has_ended(r)) {
		struct pollfd fds[] = {
			{ .fd = r->sig, .events = POLLIN },
			{ .fd = r->stage == STAGE_KILLED ? -1 : r->in,
			    .events = POLLOUT },
			{ .fd = r->out, .events = POLLIN },
		};

		if (poll(fds, ARRAY_LEN(fds), poll_timeout(r)) < 0)
			continue;
		if (fds[0].revents != 0)
			take_signal(r);
		if (fds[1].revents != 0)
			feed(r);
		if (fds[2].revents != 0)
			(void)listen_once(r);
		check_deadline(r);
	}
}

/* ---- processes that are left ---- */

/* The number of children that got SIGKILL; others belong to another user. */
static unsigned
kill_children(void)
{
	FILE *f = fopen("/proc/thread-self/children", "re");
	unsigned killed = 0;
	int pid;

	/* Processes that may not be killed can be any number, at the head. */
	while (f != NULL && fscanf(f, "%9d", &pid) == 1)
		killed += kill((pid_t)pid, SIGKILL) == 0;
	if (f != NULL)
		(void)fclose(f);
	return killed;
}

/* Ends processes of the program that have left its group. They are children of
 * this process, or become children when the process between them ends. */
static void
end_left(struct run *r)
{
	const usec_t until = clock_mono() + COMMAND_GRACE;
	pid_t pid;

	r->deadline = until;
	for (;;) {
		const unsigned killed = kill_children();
		struct pollfd fd = { .fd = r->sig, .events = POLLIN };
		struct signalfd_siginfo si;

		while ((pid = waitpid(-1, NULL, WNOHANG)) > 0)
			continue;
		if (pid < 0 || killed == 0 || clock_mono() >= until)
			return;
		/* SIGTERM changes no result any more. */
		if (poll(&fd, 1, poll_timeout(r)) > 0)
			(void)!read(r->sig, &si, sizeof(si));
	}
}

static void
finish(struct run *r)
{
	int status = 0, reads = 0;

	(void)kill(-r->pid, SIGKILL);
	/* The last output of the program, not the output of a process that has
	 * left the group. */
	while (r->out >= 0 && reads++ < 32 && listen_once(r))
		continue;
	while (waitpid(r->pid, &status, 0) < 0 && errno == EINTR)
		continue;
	end_left(r);
	if (r->cut != NULL)
		verdict_set(r->verdict, AGENT_DEFERRED, "4.3.0",
		    "program %s was ended: %s", r->c->name, r->cut);
	else
		verdict_status(
		    r->verdict, status, r->c->name, r->output, r->output_len);
}

static int
watch_signals(struct run *r)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGCHLD);
	r->sig = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	return r->sig < 0 ? -errno : 0;
}

void
command_run(
    const struct command *c, struct message *m, struct verdict *ret_verdict)
{
	struct run r = { .c = c,
		.m = m,
		.verdict = ret_verdict,
		.in = -1,
		.out = -1,
		.sig = -1,
		.deadline = clock_mono() + c->limit };
	int ret = message_begin(m);

	r.chunk = malloc(MESSAGE_CHUNK);
	if (r.chunk == NULL)
		ret = -ENOMEM;
	if (ret == 0)
		ret = watch_signals(&r);
	(void)prctl(PR_SET_CHILD_SUBREAPER, 1);
	if (ret < 0)
		verdict_error(ret_verdict, ret, "prepare the program");
	else if (start(&r) == 0) {
		wait_for_end(&r);
		finish(&r);
	}
	free(r.chunk);
	io_close(&r.in);
	io_close(&r.out);
	io_close(&r.sig);
}
