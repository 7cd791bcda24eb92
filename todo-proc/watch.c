#include "todo-proc/todo.h"

#include <errno.h>
#include <event2/event.h>
#include <stdio.h>
#include <string.h>
#include <sys/inotify.h>
#include <unistd.h>

#include "base/io.h"
#include "log/log.h"

/* Any event asks for a scan; its content does not matter. A drop is ready when
 * its writer closes it. */
static void
on_event(evutil_socket_t fd, short what UNUSED, void *arg)
{
	struct todo *t = arg;
	char events[4096];
	ssize_t n;
	int i;

	todo_tick(t);
	for (i = 0; i < 16; i++) {
		n = read(fd, events, sizeof(events));
		if (n <= 0)
			break;
	}
	t->maildrop.wanted = true;
	t->drop_wait = 100 * USEC_PER_MSEC;
	todo_kick(t);
}

/* The directory is open: no disk is waited for. */
static int
watch(struct todo *t)
{
	char path[32];
	int fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC), r = 0;

	if (fd < 0)
		return -errno;
	snprintf(
	    path, sizeof(path), "/proc/self/fd/%d", t->sp.dir[SPOOL_MAILDROP]);
	if (inotify_add_watch(fd, path, IN_CLOSE_WRITE | IN_ONLYDIR) < 0)
		r = -errno;
	if (r == 0)
		t->watch =
		    event_new(t->base, fd, EV_READ | EV_PERSIST, on_event, t);
	if (r == 0 && (t->watch == NULL || event_add(t->watch, NULL) < 0))
		r = -ENOMEM;
	if (r < 0) {
		if (t->watch != NULL)
			event_free(t->watch);
		t->watch = NULL;
		io_close(&fd);
	}
	return r;
}

void
watch_init(struct todo *t)
{
	int r;

	if (t->watch != NULL || t->sp.dir[SPOOL_MAILDROP] < 0)
		return;
	r = watch(t);
	if (r < 0 && !t->unwatched)
		log_warning("maildrop: no notification: %s: drops are found "
			    "by scanning; tried again behind each scan",
		    strerror(-r));
	else if (r == 0 && t->unwatched)
		log_info("maildrop: notification works again");
	t->unwatched = r < 0;
}

void
watch_done(struct todo *t)
{
	int fd;

	if (t->watch == NULL)
		return;
	fd = event_get_fd(t->watch);
	event_free(t->watch);
	t->watch = NULL;
	io_close(&fd);
}
