#include "tests/unit/common/daemon_child.h"

#include <criterion/criterion.h>

#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

const struct daemon_ops *child_ops;
char child_dir[] = "/tmp/daemon-child-XXXXXX";
struct chan_frame child_frame;

static char conf_file[64];

void
child_write_conf(const char *more)
{
	FILE *f = fopen(conf_file, "w");

	cr_assert(f != NULL);
	fprintf(f,
	    "qmailq_user = uucp\nqmails_user = news\nqmailr_user = proxy\n"
	    "qmail_group = mail\nqdrop_group = irc\nstop_time_limit = 1s\n%s\n",
	    more);
	fclose(f);
	cr_assert_eq(chmod(conf_file, 0644), 0);
}

void
child_set_up(void)
{
	cr_assert(mkdtemp(child_dir) != NULL);
	cr_assert_eq(chmod(child_dir, 0755), 0);
	snprintf(conf_file, sizeof(conf_file), "%s/conf", child_dir);
	child_write_conf("queue_load = 50");
}

void
child_tear_down(void)
{
	unlink(conf_file);
	rmdir(child_dir);
}

int
child_run(int channel, char **argv)
{
	const int null = open("/dev/null", O_WRONLY);
	int argc = 0;

	dup2(null, 2);
	if (channel >= 0)
		dup2(channel, DAEMON_CHANNEL_FD);
	else
		close(DAEMON_CHANNEL_FD);
	closefrom(DAEMON_CHANNEL_FD + 1);
	while (argv[argc] != NULL)
		argc++;
	optind = 1;
	return daemon_main(argc, argv, child_ops, NULL);
}

pid_t
child_start(int *ret_sock)
{
	return child_start_by(child_run, ret_sock);
}

pid_t
child_start_by(int (*run)(int channel, char **argv), int *ret_sock)
{
	char *argv[] = { (char[]){ "test-daemon" }, (char[]){ "-c" }, conf_file,
		(char[]){ "3" }, NULL };
	int ends[2];
	pid_t pid;

	cr_assert_eq(chan_pair(ends), 0);
	pid = fork();
	cr_assert(pid >= 0);
	if (pid == 0)
		_exit(run(ends[1], argv));
	close(ends[1]);
	*ret_sock = ends[0];
	return pid;
}

int
child_finish(pid_t pid)
{
	int status;

	cr_assert_eq(waitpid(pid, &status, 0), pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

const char *
child_heard_all(int sock)
{
	static char text[200];
	struct pollfd look = { sock, POLLIN, 0 };
	int r;

	cr_assert_eq(poll(&look, 1, CHILD_LIMIT_MSEC), 1, "nothing is said");
	r = chan_recv(sock, &child_frame);
	if (r == 0)
		return "end";
	cr_assert_eq(r, 1);
	if (child_frame.msg.type != MSG_STATUS)
		return msg_name(child_frame.msg.type);
	snprintf(text, sizeof(text), "%.*s",
	    (int)child_frame.msg.u.STATUS.text.len,
	    child_frame.msg.u.STATUS.text.data);
	return text;
}

const char *
child_heard(int sock)
{
	const char *text;

	do
		text = child_heard_all(sock);
	while (strncmp(text, "warning: ", 9) == 0 ||
	    strncmp(text, "error: ", 7) == 0);
	return text;
}

void
child_tell(int sock, const struct msg *msg, int fd)
{
	cr_assert_eq(chan_send(sock, msg, fd), 0);
}
