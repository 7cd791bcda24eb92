#include "qscheduler/children/children.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/io.h"
#include "ipc/msg.h"
#include "log/log.h"

#define ASK_EVERY 5 /* ticks without a sign */
/* Ticks without an answer after which a process that sleeps in the kernel makes
 * its disk suspect. */
#define SLOW      2
/* Ticks without an answer after which people are told. */
#define SILENT    4

void
heartbeat_init(struct child *c)
{
	c->heartbeat = (struct heartbeat){ .serial = c->heartbeat.serial };
}

static unsigned
limit_ticks(const struct child *c)
{
	const struct conf *conf = c->group->all->instance->conf;

	return (unsigned)(conf->heartbeat_time_limit / EVERY_TICK) + 1;
}

static unsigned
ask_ticks(const struct child *c)
{
	const unsigned half = limit_ticks(c) / 2;

	return half > ASK_EVERY ? ASK_EVERY : half;
}

static void
is_alive(struct child *c)
{
	struct heartbeat *h = &c->heartbeat;

	if (h->roused || h->told)
		log_info("%s (pid %ld) answers again", c->name,
		    (long)c->process.pid);
	h->quiet = h->asked = 0;
	h->roused = h->told = false;
}

void
heartbeat_pong(struct child *c, uint32_t serial)
{
	if (c->heartbeat.asked > 0 && serial == c->heartbeat.serial)
		is_alive(c);
}

/* The answer is read with the next tick, so that it wakes nobody. */
static void
ask(struct child *c)
{
	struct heartbeat *h = &c->heartbeat;
	const struct msg ping = { .type = MSG_PING,
		.u.PING = { .serial = ++h->serial } };

	if (child_send(c, &ping, -1) < 0 || c->channel.wire == NULL)
		return;
	h->asked = 1;
	channel_hold(c);
}

/* `PID (name) S …`, where the name may have anything in it; '?' where processes
 * of other users are hidden. */
static char
shown_state(pid_t pid)
{
	char path[40], text[512];
	const char *end;
	int64_t n;
	int fd;

	snprintf(path, sizeof(path), "/proc/%ld/stat", (long)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return '?';
	n = io_read_all(fd, text, sizeof(text) - 1);
	io_close(&fd);
	text[n > 0 ? n : 0] = '\0';
	end = strrchr(text, ')');
	return end != NULL && end[1] == ' ' ? end[2] : '?';
}

static char
process_state(pid_t pid)
{
	siginfo_t info = { 0 };

	if (waitid(P_PID, (id_t)pid, &info, WSTOPPED | WNOHANG | WNOWAIT) ==
		0 &&
	    info.si_pid == pid)
		return 'T';
	return shown_state(pid);
}

static void
alert(const struct child *c, const char *what)
{
	log_error("ALERT: %s (pid %ld) has given no sign of life for %u s: %s",
	    c->name, (long)c->process.pid, c->heartbeat.quiet, what);
}

/* A process that sleeps in the kernel (a disk, a file system of another host)
 * cannot be ended, and goes on by itself when that answers. */
static enum heartbeat_verdict
deal_with(struct child *c)
{
	struct heartbeat *h = &c->heartbeat;
	const char state = process_state(c->process.pid);

	if (state == 'D') {
		if (!h->told)
			alert(c, "it waits for a disk; it is waited for");
		h->told = true;
	} else if ((state == 'T' || state == 't') && !h->roused) {
		alert(c, "it was stopped by a signal; it is told to go on");
		h->roused = true;
		(void)process_signal(&c->process, SIGCONT);
	} else {
		alert(c, "it hangs; it is killed and started again");
		return HEARTBEAT_SILENT;
	}
	h->asked = 1; /* once more the whole limit */
	return HEARTBEAT_FINE;
}

/* True also where the state of a process cannot be read. */
static bool
is_in_kernel(const struct child *c)
{
	const char state = shown_state(c->process.pid);

	return state == 'D' || state == '?';
}

unsigned
heartbeat_silence(const struct child *c)
{
	const struct heartbeat *h = &c->heartbeat;

	return c->proc.state == PROC_UP && h->asked > SILENT ? h->quiet : 0;
}

enum heartbeat_verdict
heartbeat_tick(struct child *c)
{
	struct heartbeat *h = &c->heartbeat;

	if (c->proc.state != PROC_UP)
		return HEARTBEAT_FINE;
	h->quiet++;
	if (h->asked == 0) {
		if (h->quiet >= ask_ticks(c) && c->channel.wire != NULL)
			ask(c);
		return HEARTBEAT_FINE;
	}
	if (++h->asked > limit_ticks(c))
		return deal_with(c);
	return h->asked > SLOW && is_in_kernel(c) ? HEARTBEAT_SLOW
						  : HEARTBEAT_FINE;
}
