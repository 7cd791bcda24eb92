/* A door that hangs is left behind, and accepts nothing. */
#include "submit/parts.h"

#include "base/io.h"
#include "tests/unit/descriptors.h"
#include "tests/unit/files.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define ID "060BF7A5995B96C0001100001"

static char dir[64], path[96];
static struct conf conf;
static struct through_door door;
static unsigned asked;

static void
start(void)
{
	snprintf(dir, sizeof(dir), "/tmp/submit-door-XXXXXX");
	cr_assert_not_null(mkdtemp(dir));
	conf = (struct conf){ .program_dir = dir, .queue_base = dir };
	(void)signal(SIGPIPE, SIG_IGN);
	asked = 0;
}

static void
end(void)
{
	unit_remove_tree(dir);
}

TestSuite(through_door, .init = start, .fini = end, .timeout = 60);

/* The second answer is yes. */
static bool
give_up(void *arg UNUSED)
{
	return ++asked == 2;
}

static bool
never(void *arg UNUSED)
{
	asked++;
	return false;
}

static void
put_program(const char *interpreter, const char *script)
{
	FILE *f;

	snprintf(path, sizeof(path), "%s/queue-drop", dir);
	f = fopen(path, "we");
	cr_assert_not_null(f);
	fprintf(f, "%s\ncd %s\n%s\n", interpreter, dir, script);
	cr_assert_eq(fclose(f), 0);
	cr_assert_eq(chmod(path, 0755), 0);
}

/* A message to queue-drop, which is this script, as far as the commit. */
static void
begin(const char *script, bool (*answer)(void *arg))
{
	put_program("#!/bin/sh", script);
	door = (struct through_door){ .give_up = answer };
	cr_assert_eq(through_door_begin(&door, &conf, 1), 0);
	cr_assert_eq(through_door_content(&door, "x\n", 2), 0);
	cr_assert_eq(through_door_sender(&door, "", 0), 0);
	cr_assert_eq(through_door_rcpt(&door, "a@b", 3), 0);
}

/* What the script put into a file, when it is there. */
static const char *
wait_for_file(const char *name)
{
	static char text[64];
	char file[128];
	int64_t n = 0;
	int fd;

	snprintf(file, sizeof(file), "%s/%s", dir, name);
	while ((fd = open(file, O_RDONLY | O_CLOEXEC)) < 0)
		(void)usleep(5000);
	n = io_read_all(fd, text, sizeof(text) - 1);
	close(fd);
	text[n < 0 ? 0 : n] = '\0';
	return text;
}

/* The door hangs until its disk lets go of it: a fifo.
 * mutation: common/submit/door.c: through_door_commit() tells the end first;
 * abandon() waits for the process. */
Test(through_door, D52_one_that_hangs_is_left_without_the_end)
{
	const unsigned before = unit_descriptors();
	struct queue_id id;
	char fifo[96];
	pid_t pid;
	int fd;

	snprintf(fifo, sizeof(fifo), "%s/disk", dir);
	cr_assert_eq(mkfifo(fifo, 0600), 0);
	begin("read line <disk\ncat >got.new; mv got.new got", give_up);
	pid = door.pid;
	cr_expect_eq(through_door_commit(&door, &id), -ETIMEDOUT);
	cr_expect_eq(asked, 2);
	cr_expect_eq(waitpid(pid, NULL, WNOHANG), 0, "it is left behind");
	through_door_end(&door);
	cr_expect_eq(unit_descriptors(), before);
	fd = open(fifo, O_WRONLY | O_CLOEXEC);
	cr_assert_geq(fd, 0);
	cr_assert_eq(write(fd, "\n", 1), 1);
	close(fd);
	cr_expect_null(strchr(wait_for_file("got"), 'E'));
	cr_expect_eq(waitpid(pid, NULL, 0), pid);
}

/* mutation: common/submit/door.c: await() gives up by itself. */
Test(through_door, D52_one_whose_disk_is_not_late_is_waited_for)
{
	struct queue_id id;

	begin("sleep 2.5; printf +; cat >/dev/null; echo " ID, never);
	cr_expect_eq(through_door_commit(&door, &id), 0, "%s", door.reason);
	cr_expect_geq(asked, 2);
	through_door_end(&door);
}

/* Told the end, it may have accepted the message.
 * mutation: common/submit/door.c: through_door_commit() keeps give_up. */
Test(through_door, D52_one_that_was_told_the_end_is_waited_for)
{
	struct queue_id id;

	begin("printf +; cat >/dev/null; sleep 2.5; echo " ID, give_up);
	cr_expect_eq(through_door_commit(&door, &id), 0, "%s", door.reason);
	cr_expect_eq(asked, 0);
	through_door_end(&door);
}

/* The pipe is broken before the question is written, and behind the recipient.
 */
Test(through_door, D52_a_refusal_before_the_question_is_passed_on)
{
	struct queue_id id;
	char gate[96];
	siginfo_t si;
	int fd;

	snprintf(gate, sizeof(gate), "%s/gate", dir);
	cr_assert_eq(mkfifo(gate, 0600), 0);
	begin(
	    "read x <gate; exec <&-; echo '4.3.1 full' >&2; exit 75", give_up);
	fd = open(gate, O_WRONLY | O_CLOEXEC);
	cr_assert_geq(fd, 0);
	close(fd);
	cr_assert_eq(waitid(P_ALL, 0, &si, WEXITED | WNOWAIT), 0);
	cr_expect_eq(through_door_commit(&door, &id), -ENOSPC);
	cr_expect_str_eq(door.reason, "full");
	through_door_end(&door);
}

Test(through_door, D52_a_refusal_in_place_of_the_answer_is_passed_on)
{
	struct queue_id id;

	begin("cat >/dev/null & echo '4.3.1 full' >&2; exit 75", give_up);
	cr_expect_eq(through_door_commit(&door, &id), -ENOSPC);
	cr_expect_str_eq(door.reason, "full");
	through_door_end(&door);
}

/* An error of exec says nothing of the message: EINVAL and E2BIG would refuse
 * it for good. */
Test(through_door, a_program_that_cannot_run_is_a_soft_error)
{
	static const struct {
		const char *interpreter;
		int error;
	} rows[] = { { "#!/nosuch/sh", ENOENT }, { "no program", ENOEXEC } };
	char want[ROOM_TEXT_SIZE];
	size_t i;

	for (i = 0; i < ARRAY_LEN(rows); i++) {
		put_program(rows[i].interpreter, "");
		door = (struct through_door){ .give_up = never };
		cr_expect_eq(through_door_begin(&door, &conf, 1), -EIO);
		snprintf(want, sizeof(want), "%s: %s", path,
		    strerror(rows[i].error));
		cr_expect_str_eq(door.reason, want, "%s", door.reason);
		through_door_end(&door);
	}
}
