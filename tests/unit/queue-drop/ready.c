/* The question whether the disk answers, and an input that ends behind it. */
#include "queue-drop/door.h"

#include "spool/door.h"
#include "tests/unit/files.h"

#include <criterion/criterion.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>
#include <unistd.h>

#define CONTENT "C\x02\0\0\0x\n"
#define SENDER  "F\0\0\0\0"
#define RCPT    "T\x03\0\0\0a@b"
#define READY   "R\0\0\0\0"
#define END     "E\0\0\0\0"

static char top[64];
static struct door d;
static int out[2], stdout_before;

static void
start(void)
{
	const struct spool_owner owner = { getuid(), getuid(), getgid(),
		getgid(), true };

	snprintf(top, sizeof(top), "/tmp/door-ready-XXXXXX");
	cr_assert_not_null(mkdtemp(top));
	cr_assert_eq(spool_create(top, 1, 3, &owner), 0);
	d = (struct door){ .queue = 1, .sys = &spool_sys_real };
	d.conf.message_recipient_limit = 100;
	cr_assert_eq(spool_open(&d.sp, d.sys, top, 1), 0);
	d.opened = true;
	d.share = (struct share){ .conf = &d.conf, .file = -1 };
	snprintf(d.host, sizeof(d.host), "mx.example");
	cr_assert_eq(pipe(out), 0);
	stdout_before = dup(STDOUT_FILENO);
}

static void
end(void)
{
	close(out[0]);
	unit_remove_tree(top);
}

TestSuite(ready, .init = start, .fini = end, .timeout = 60);

/* The door takes these records, and answers to our pipe. */
static int
take(const char *records, size_t len)
{
	struct queue_id id;
	int in[2], r;

	cr_assert_eq(pipe(in), 0);
	cr_assert_eq(write(in[1], records, len), (ssize_t)len);
	close(in[1]);
	stream_init(&d.in, in[0]);
	cr_assert_eq(dup2(out[1], STDOUT_FILENO), STDOUT_FILENO);
	r = door_take(&d, &id);
	cr_assert_eq(dup2(stdout_before, STDOUT_FILENO), STDOUT_FILENO);
	close(out[1]);
	close(in[0]);
	return r;
}

static const char *
answer(void)
{
	static char text[8];
	ssize_t n = read(out[0], text, sizeof(text) - 1);

	text[n < 0 ? 0 : n] = '\0';
	return text;
}

static unsigned
drops(void)
{
	int fd = openat(
	    d.sp.dir[SPOOL_MAILDROP], ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fdopendir(fd);
	const struct dirent *e;
	unsigned n = 0;

	cr_assert_not_null(dir);
	while ((e = readdir(dir)) != NULL)
		n += e->d_name[0] != '.';
	closedir(dir);
	return n;
}

#define TAKE(records) take(records, sizeof(records) - 1)

/* mutation: queue-drop/door.c: take_records() takes READY for the end. */
Test(ready, D52_without_the_end_nothing_is_accepted_and_nothing_stays)
{
	cr_expect_eq(TAKE(CONTENT SENDER RCPT READY), -1);
	cr_expect_str_eq(answer(), "+");
	cr_expect_eq(d.status, EX_DATAERR);
	door_done(&d);
	cr_assert_eq(spool_open(&d.sp, &spool_sys_real, top, 1), 0);
	cr_expect_eq(drops(), 0);
	spool_close(&d.sp);
}

Test(ready, D52_the_end_behind_the_answer_accepts)
{
	cr_expect_eq(TAKE(CONTENT SENDER RCPT READY END), 0, "%s", d.reason);
	cr_expect_str_eq(answer(), "+");
	cr_expect_eq(drops(), 1);
	door_done(&d);
}

Test(ready, D52_without_a_recipient_it_is_refused_as_before)
{
	cr_expect_eq(TAKE(CONTENT SENDER READY END), -1);
	cr_expect_str_eq(answer(), "");
	cr_expect_eq(strncmp(d.reason, DOOR_NO_RCPT, 5), 0, "%s", d.reason);
	door_done(&d);
}

Test(ready, D52_nothing_but_the_end_may_follow)
{
	cr_expect_eq(TAKE(CONTENT SENDER RCPT READY RCPT END), -1);
	cr_expect_eq(strncmp(d.reason, DOOR_STREAM, 5), 0, "%s", d.reason);
	door_done(&d);
}
