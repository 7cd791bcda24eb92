/* The whole door: a message with a name is answered for. */
#include "tests/unit/files.h"

#include "queue-drop/door.h"
#include "spool/door.h"

#include <criterion/criterion.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static char top[64], base[96];

static void
start(void)
{
	const struct spool_owner owner = { getuid(), getuid(), getgid(),
		getgid(), true };
	char text[256];

	snprintf(top, sizeof(top), "/tmp/door-unit-XXXXXX");
	cr_assert_not_null(mkdtemp(top));
	snprintf(base, sizeof(base), "%s/q", top);
	cr_assert_eq(spool_create(base, 1, 3, &owner), 0);
	snprintf(text, sizeof(text), "queue_base = %s\ninstance = door%ld\n",
	    base, (long)getpid());
	(void)unit_put_file(base, CONF_IN_FORCE_NAME, text);
}

static void
end(void)
{
	unit_remove_tree(top);
}

TestSuite(door, .init = start, .fini = end, .timeout = 60);

/* The records of a message, on a descriptor. */
static int
records(void)
{
	static const char data[] = "C\x06\0\0\0hello\nF\x03\0\0\0a@b"
				   "T\x03\0\0\0c@dE\0\0\0\0";
	int ends[2];

	cr_assert_eq(pipe(ends), 0);
	cr_assert_eq(
	    write(ends[1], data, sizeof(data) - 1), (ssize_t)sizeof(data) - 1);
	close(ends[1]);
	return ends[0];
}

static int
linkat_ended(
    int olddir, const char *old, int newdir, const char *name, int flags)
{
	const int r = spool_sys_real.linkat(olddir, old, newdir, name, flags);

	(void)raise(SIGTERM);
	return r;
}

/* Other doors of the user have taken the rate since the share was looked at. */
static void
use_up_rate(struct door *d)
{
	d->conf.user_message_rate = 1;
	d->share.counted = true;
	d->share.file = -1;
}

/* In a process of its own, which a signal ends where it can. */
static int
submit(bool late)
{
	static char program[] = "queue-drop", queue[] = "1";
	char *const argv[] = { program, base, queue, NULL };
	static struct door d = { .status = 0 };
	struct spool_sys sys = spool_sys_real;
	struct queue_id id;
	pid_t pid = fork();
	int r, status;

	cr_assert_geq(pid, 0);
	if (pid == 0) {
		if (door_open(&d, 3, argv, false) < 0)
			_exit(2);
		sys.linkat = linkat_ended;
		d.sp.sys = &sys;
		stream_init(&d.in, records());
		if (late)
			use_up_rate(&d);
		r = door_take(&d, &id);
		door_done(&d);
		_exit(r == 0 ? 0 : 1);
	}
	cr_assert_eq(waitpid(pid, &status, 0), pid);
	return status;
}

static unsigned
drops(void)
{
	struct spool_scan scan;
	struct spool_item item;
	struct spool sp;
	unsigned n = 0;

	cr_assert_eq(spool_open(&sp, &spool_sys_real, base, 1), 0);
	spool_scan_begin(&scan, &sp, SPOOL_MAILDROP);
	while (spool_scan_next(&scan, false, &item) > 0)
		n++;
	spool_scan_done(&scan);
	spool_close(&sp);
	return n;
}

/* A message whose caller hears nothing is sent again.
 * mutation: queue-drop/door.c: commit() blocks no signals. */
Test(door, X11_no_signal_comes_between_the_name_and_the_answer)
{
	const int status = submit(false);

	cr_assert(WIFEXITED(status), "signal %d", WTERMSIG(status));
	cr_expect_eq(WEXITSTATUS(status), 0);
	cr_expect_eq(drops(), 1);
}

/* mutation: queue-drop/door.c: commit() asks for the share behind
 * accept_commit(). */
Test(door, X6_what_is_refused_for_its_rate_is_not_there)
{
	const int status = submit(true);

	cr_assert(WIFEXITED(status), "signal %d", WTERMSIG(status));
	cr_expect_eq(WEXITSTATUS(status), 1);
	cr_expect_eq(drops(), 0);
}
