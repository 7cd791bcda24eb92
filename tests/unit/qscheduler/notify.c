#include "qscheduler/supervisor/supervisor.h"

#include <criterion/criterion.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int
listen_at(const char *name)
{
	struct sockaddr_un at = { .sun_family = AF_UNIX };
	const size_t len = strlen(name);
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0);

	memcpy(at.sun_path, name, len);
	if (name[0] == '@')
		at.sun_path[0] = '\0';
	cr_assert_eq(
	    bind(fd, (const struct sockaddr *)&at,
		(socklen_t)(offsetof(struct sockaddr_un, sun_path) + len)),
	    0);
	return fd;
}

static const char *
heard(int fd)
{
	static char text[300];
	ssize_t n = recv(fd, text, sizeof(text) - 1, 0);

	text[n < 0 ? 0 : n] = '\0';
	return text;
}

static void
talk_to(const char *name)
{
	int fd = listen_at(name);
	struct notify n;

	setenv("NOTIFY_SOCKET", name, 1);
	setenv("WATCHDOG_USEC", "30000000", 1);
	notify_init(&n, -1);
	notify_tell(&n, "EXTEND_TIMEOUT_USEC=%d", 50000000);
	cr_expect_str_eq(heard(fd), "EXTEND_TIMEOUT_USEC=50000000");
	notify_ready(&n, "2 queues");
	cr_expect(strstr(heard(fd), "READY=1\nSTATUS=2 queues\n") != NULL);
	notify_tell(&n, "STATUS=%s", "fine");
	cr_expect_str_eq(heard(fd), "STATUS=fine");
	notify_tell(&n, "RELOADING=1\nMONOTONIC_USEC=%d", 42);
	cr_expect_str_eq(heard(fd), "RELOADING=1\nMONOTONIC_USEC=42");
	notify_alive(&n, 1000);
	cr_expect_str_eq(heard(fd), "WATCHDOG=1");
	notify_alive(&n, 1000 + 6499999);
	cr_expect_str_eq(heard(fd), "", "a call in a second is early enough");
	notify_alive(&n, 1000 + 6500000);
	cr_expect_str_eq(heard(fd), "WATCHDOG=1", "it would be too late");
	notify_tell(&n, "STOPPING=1\nEXTEND_TIMEOUT_USEC=%d", 35000000);
	cr_expect_str_eq(heard(fd), "STOPPING=1\nEXTEND_TIMEOUT_USEC=35000000");
	notify_done(&n);
	close(fd);
}

Test(notify, systemd_by_path)
{
	char dir[] = "/tmp/notify-XXXXXX", name[64];

	cr_assert(mkdtemp(dir) != NULL);
	snprintf(name, sizeof(name), "%s/sock", dir);
	talk_to(name);
	unlink(name);
	rmdir(dir);
}

Test(notify, systemd_by_abstract_name)
{
	char name[64];

	snprintf(name, sizeof(name), "@qsched-notify-%d", (int)getpid());
	talk_to(name);
}

Test(notify, a_watchdog_that_is_not_ours)
{
	static const struct {
		const char *usec, *pid;
	} rows[] = { { "1000000", "1" }, { "1000000", "self" },
		{ "soon", NULL }, { "0", NULL }, { "-1", NULL } };
	char name[64];
	size_t i;
	int fd;

	snprintf(name, sizeof(name), "@qsched-watch-%d", (int)getpid());
	fd = listen_at(name);
	setenv("NOTIFY_SOCKET", name, 1);
	for (i = 0; i < ARRAY_LEN(rows); i++) {
		struct notify n;

		setenv("WATCHDOG_USEC", rows[i].usec, 1);
		if (rows[i].pid != NULL)
			setenv("WATCHDOG_PID", rows[i].pid, 1);
		else
			unsetenv("WATCHDOG_PID");
		notify_init(&n, -1);
		notify_alive(&n, 1000);
		cr_expect_str_eq(heard(fd), "", "row %zu", i);
		notify_done(&n);
	}
	close(fd);
}

Test(notify, names_that_cannot_be)
{
	static char longest[200];
	const char *const rows[] = { "", "@", "/", "relative", "vsock:2:1",
		longest, "/no/such/socket" };
	struct notify n;
	size_t i;

	memset(longest, '/', sizeof(longest) - 1);
	for (i = 0; i < ARRAY_LEN(rows); i++) {
		setenv("NOTIFY_SOCKET", rows[i], 1);
		notify_init(&n, -1);
		notify_ready(&n, "x");
		notify_done(&n);
	}
}

/* A manager that does not read is not waited for. */
Test(notify, a_full_socket_does_not_block)
{
	char name[64];
	struct notify n;
	int fd, i;

	snprintf(name, sizeof(name), "@qsched-notify-full-%d", (int)getpid());
	fd = listen_at(name);
	setenv("NOTIFY_SOCKET", name, 1);
	notify_init(&n, -1);
	for (i = 0; i < 100000; i++)
		notify_tell(&n, "STATUS=%s", "again");
	notify_done(&n);
	close(fd);
}

Test(notify, s6_newline_once)
{
	struct notify n;
	char text[8];
	int ends[2];

	unsetenv("NOTIFY_SOCKET");
	cr_assert_eq(pipe(ends), 0);
	notify_init(&n, ends[1]);
	notify_ready(&n, "x");
	notify_ready(&n, "x"); /* after a reload */
	cr_expect_eq(read(ends[0], text, sizeof(text)), 1);
	cr_expect_eq(text[0], '\n');
	cr_expect_eq(read(ends[0], text, sizeof(text)), 0);
	notify_done(&n);
}
