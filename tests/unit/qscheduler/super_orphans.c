/* Processes of a supervisor that was killed. */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/io.h"
#include "fake.h"

TestSuite(
    super_orphans, .init = stage_init, .fini = stage_done, .timeout = 100);

#define SMTP ROLE_DELIVER_SMTP

static int
open_locks(void)
{
	int base = open(stage()->base, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int fd = -1;

	cr_assert_eq(child_locks_open(base, &fd), 0);
	io_close(&base);
	return fd;
}

static void
kill_supervisor(void)
{
	kill(stage()->pid, SIGKILL);
	cr_assert_eq(stage_finish(), -SIGKILL);
}

/* True if queue-send of queue 1 has started while the process of stubborn()
 * lives. That process writes the value, so the memory is shared. */
static bool *queue_started;

static bool
queue_send_runs(int locks)
{
	pid_t holder;

	return child_lock_holder(
		   locks, child_lock_at(1, ROLE_QUEUE_SEND), &holder) == 1;
}

/* Note whether queue-send of queue 1 starts. The queue-send of the killed
 * supervisor holds the lock until that process ends: wait for that end first.
 */
static _Noreturn void
watch_queue_send(int locks)
{
	while (queue_send_runs(locks))
		usleep(1000);
	for (;; usleep(1000))
		if (queue_send_runs(locks))
			*queue_started = true;
}

/* A process that does not hear SIGTERM, in a process group of its own. It has
 * the locks of the processes first to last of queue 1, as if a supervisor that
 * was killed had left it. */
static pid_t
stubborn(int first, int last)
{
	int gate[2], place;
	pid_t pid;
	char c;

	queue_started = mmap(NULL, sizeof(*queue_started),
	    PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	cr_assert_neq(queue_started, MAP_FAILED);
	cr_assert_eq(pipe(gate), 0);
	pid = fork();
	cr_assert_geq(pid, 0);
	if (pid == 0) {
		const int fd = open_locks();

		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		(void)setpgid(0, 0);
		(void)signal(SIGTERM, SIG_IGN);
		for (place = first; place <= last; place++)
			(void)child_lock_take(
			    fd, child_lock_at(1, (uint32_t)place));
		(void)!write(gate[1], "x", 1);
		watch_queue_send(fd);
	}
	cr_assert_eq(read(gate[0], &c, 1), 1);
	close(gate[0]);
	close(gate[1]);
	return pid;
}

Test(super_orphans, I21_children_are_locked_until_their_end)
{
	pid_t pid, holder = 0;
	int fd;

	stage_start("-s");
	pid = stage_pid(stage_hear("queue-send start"));
	fd = open_locks();
	cr_expect_eq(
	    child_lock_holder(fd, child_lock_at(1, ROLE_QUEUE_SEND), &holder),
	    1);
	cr_expect_eq(holder, pid);
	stage_wait_ready();
	cr_expect_eq(stage_stop(), 0);
	cr_expect_eq(child_locks_any(fd, 1), 0);
	io_close(&fd);
}

static void
wait_for_the_end_of(pid_t pid)
{
	int status;

	stage()->nkept = 0;
	stage_start("-s");
	stage_wait_log("of an earlier supervisor is still there");
	stage_wait_log("of an earlier supervisor does not end: killed");
	cr_assert_eq(waitpid(pid, &status, 0), pid);
	cr_expect(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	cr_expect_not(*queue_started);
	stage_wait_ready();
	stage_wait_log("queue 1: the processes of an earlier supervisor have "
		       "ended");
	cr_expect_eq(stage_stop(), 0);
}

/* mutation: group_is_clear() does not call orphans_of(). */
Test(super_orphans, P1_P2_I21_nothing_of_a_queue_starts_before_they_are_gone)
{
	stage_conf("queue_count = 2");
	stage_start("-s");
	stage_wait_ready();
	kill_supervisor();
	wait_for_the_end_of(stubborn(SMTP, SMTP));
}

/* An agent could lock all that it likes: one descriptor is enough for it.
 * mutation: find_orphan() does not call is_known(). */
Test(super_orphans, I21_a_process_with_the_locks_of_others_is_one_orphan)
{
	const char *line;
	char words[64];
	pid_t pid;
	int n = 0;

	stage_start("-s");
	stage_wait_ready();
	kill_supervisor();
	pid = stubborn(0, SMTP);
	wait_for_the_end_of(pid);
	snprintf(words, sizeof(words),
	    "(pid %ld) of an earlier supervisor is still there", (long)pid);
	for (line = stage()->logged; (line = strstr(line, words)) != NULL;
	     line++)
		n++;
	cr_expect_eq(n, 1);
}
