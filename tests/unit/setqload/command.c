#include "command.h"

#include <criterion/criterion.h>
#include <poll.h>
#include <grp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/clock.h"
#include "setqload/setqload.h"

#define NOBODY 65534

char instance[32], name[IPC_NAME_MAX];
struct sched_page *page;
struct ask_socket requests = { .fd = -1, .base = -1 };

void
command_setup(void)
{
	snprintf(instance, sizeof(instance), "t%ld", (long)getpid());
	ipc_name_scheduler(instance, name);
	unsetenv("QSCHED_INSTANCE");
	unsetenv("QSCHED_CONF");
}

void
command_teardown(void)
{
	shm_unlink(name);
	ask_socket_close(instance, &requests);
}

void
start_supervisor(void)
{
	const struct page_owner owner = { (uid_t)-1, (gid_t)-1, 0644 };
	uint32_t pid;
	void *p = NULL;
	int fd;

	cr_assert_eq(page_create(name, sizeof(*page), SCHED_PAGE_MAGIC, &owner,
			 &p, &fd, &pid),
	    0);
	page = p;
	page_write_begin(&page->head);
	page_write_end(&page->head, clock_mono(), clock_wall());
	cr_assert_eq(ask_socket_open(instance, -1, (gid_t)-1, &requests), 0);
}

bool
is_asked(void)
{
	struct pollfd p = { .fd = requests.fd, .events = POLLIN };

	return poll(&p, 1, 0) == 1;
}

void
take_request(struct ask *ret_ask)
{
	struct pollfd p = { .fd = requests.fd, .events = POLLIN };

	cr_assert_eq(poll(&p, 1, 120000), 1);
	cr_assert_eq(ask_socket_take(requests.fd, ret_ask), 1);
}

void
answer_request(const struct ask *ask, int code, const char *text)
{
	struct sched_answer answer = { ask->msg.u.ENABLE.pid,
		ask->msg.u.ENABLE.nonce, code, "" };

	snprintf(answer.text, sizeof(answer.text), "%s", text);
	ask_socket_answer(requests.fd, &ask->from.address, &answer);
}

void
read_back(int fd, char *text, size_t size)
{
	ssize_t n = pread(fd, text, size - 1, 0);

	text[n < 0 ? 0 : n] = '\0';
	close(fd);
}

char **
copy_words(int argc, const char *const *words)
{
	char **argv = calloc((size_t)argc + 1, sizeof(*argv));
	int i;

	cr_assert_not_null(argv);
	for (i = 0; i < argc; i++) {
		argv[i] = strdup(words[i]);
		cr_assert_not_null(argv[i]);
	}
	return argv;
}

void
free_words(char **argv)
{
	size_t i;

	for (i = 0; argv[i] != NULL; i++)
		free(argv[i]);
	free(argv);
}

pid_t
start(int argc, char **argv, const int fds[2], bool nobody)
{
	pid_t pid = fork();

	cr_assert_geq(pid, 0);
	if (pid > 0)
		return pid;
	dup2(fds[0], STDOUT_FILENO);
	dup2(fds[1], STDERR_FILENO);
	if (nobody &&
	    (setgroups(0, NULL) < 0 || setgid(NOBODY) < 0 ||
		setuid(NOBODY) < 0))
		_exit(126);
	_exit(setqload_main(argc, argv));
}
