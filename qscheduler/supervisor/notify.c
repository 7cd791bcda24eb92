#include "qscheduler/supervisor/supervisor.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/io.h"
#include "base/num.h"

/* A path, or `@name` for the abstract name space. */
static bool
set_address(struct notify *n, const char *name)
{
	size_t len = strlen(name);

	if ((name[0] != '/' && name[0] != '@') || len < 2 ||
	    len >= sizeof(n->to.sun_path))
		return false;
	n->to = (struct sockaddr_un){ .sun_family = AF_UNIX };
	memcpy(n->to.sun_path, name, len);
	n->to_len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len);
	if (name[0] == '@')
		n->to.sun_path[0] = '\0';
	else
		n->to_len++; /* with its NUL */
	return true;
}

/* How often the watchdog has to hear of us; USEC_NEVER: it watches another. */
static usec_t
watchdog_period(void)
{
	const char *usec = getenv("WATCHDOG_USEC"),
		   *pid = getenv("WATCHDOG_PID");
	uint64_t number;

	if (pid != NULL &&
	    (num_u64(pid, 1, INT32_MAX, &number) < 0 ||
		number != (uint64_t)getpid()))
		return USEC_NEVER;
	if (usec == NULL || num_u64(usec, 1, INT64_MAX, &number) < 0)
		return USEC_NEVER;
	return (usec_t)number / 4;
}

void
notify_init(struct notify *n, int ready_fd)
{
	const char *name = getenv("NOTIFY_SOCKET");

	*n = (struct notify){
		.sock = -1, .ready_fd = ready_fd, .alive_every = USEC_NEVER
	};
	if (name == NULL || !set_address(n, name))
		return;
	n->sock = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	n->alive_every = watchdog_period();
}

void
notify_done(struct notify *n)
{
	io_close(&n->sock);
	io_close(&n->ready_fd);
}

void
notify_tell(const struct notify *n, const char *format, ...)
{
	char text[640];
	va_list args;

	if (n->sock < 0)
		return;
	va_start(args, format);
	(void)vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	(void)sendto(n->sock, text, strlen(text), MSG_NOSIGNAL | MSG_DONTWAIT,
	    (const struct sockaddr *)&n->to, n->to_len);
}

void
notify_ready(struct notify *n, const char *status)
{
	notify_tell(
	    n, "READY=1\nSTATUS=%s\nMAINPID=%ld", status, (long)getpid());
	if (n->ready_fd >= 0)
		(void)io_write_all(n->ready_fd, "\n", 1);
	io_close(&n->ready_fd);
}

void
notify_alive(struct notify *n, usec_t now)
{
	if (n->alive_every == USEC_NEVER || now + EVERY_TICK < n->alive_at)
		return; /* the next call is early enough */
	n->alive_at = now + n->alive_every;
	notify_tell(n, "WATCHDOG=1");
}
