#include "deliver-local/local.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <event2/event.h>

#include "base/clock.h"
#include "base/io.h"
#include "log/log.h"

#define CHECK_EVERY USEC_PER_SEC
#define WHICH_SIZE  32

struct stray {
	LIST_ENTRY(stray) entry;
	pid_t pid; /* 0: it is not a child of this process */
	int fd;    /* then: the pipe whose other end that process has; or -1 */
	usec_t since;
	char name[];
};

static void
check_later(struct strays *s)
{
	const struct timeval tv = clock_timeval(CHECK_EVERY);

	if (!LIST_EMPTY(&s->list))
		(void)event_add(s->timer, &tv);
}

static bool
has_ended(const struct stray *t)
{
	char rest[64];
	ssize_t n;

	if (t->fd < 0)
		return waitpid(t->pid, NULL, WNOHANG) != 0;
	do
		n = read(t->fd, rest, sizeof(rest));
	while (n > 0 || (n < 0 && errno == EINTR));
	return n == 0 || errno != EAGAIN;
}

static void
remove_one(struct stray *t)
{
	LIST_REMOVE(t, entry);
	io_close(&t->fd);
	free(t);
}

/* "process 17"; of a process that is no child of this one: whose it is. */
static const char *
which(pid_t pid, char text[WHICH_SIZE])
{
	if (pid == 0)
		return "the process that it started";
	snprintf(text, WHICH_SIZE, "process %ld", (long)pid);
	return text;
}

static void
tell_end(const struct strays *s, const struct stray *t, usec_t now)
{
	const long long seconds = (long long)((now - t->since) / USEC_PER_SEC);
	char text[WHICH_SIZE];

	log_info("delivery to %s: %s has ended after all, after %lld s: %u "
		 "such processes",
	    t->name, which(t->pid, text), seconds, s->count);
}

static void
on_timer(evutil_socket_t fd UNUSED, short what UNUSED, void *arg)
{
	struct strays *s = arg;
	usec_t now = clock_mono();
	struct stray *t, *next;

	for (t = LIST_FIRST(&s->list); t != NULL; t = next) {
		next = LIST_NEXT(t, entry);
		if (!has_ended(t))
			continue;
		s->count--;
		tell_end(s, t, now);
		remove_one(t);
	}
	check_later(s);
}

int
strays_init(struct strays *s, struct event_base *base)
{
	LIST_INIT(&s->list);
	s->count = 0;
	s->timer = event_new(base, -1, 0, on_timer, s);
	return s->timer == NULL ? -ENOMEM : 0;
}

void
strays_done(struct strays *s)
{
	struct stray *t;

	while ((t = LIST_FIRST(&s->list)) != NULL)
		remove_one(t);
	if (s->timer != NULL)
		event_free(s->timer);
	s->timer = NULL;
}

static bool
add(struct strays *s, const char *name, pid_t pid, int fd, usec_t now)
{
	size_t size = strlen(name) + 1;
	struct stray *t = malloc(sizeof(*t) + size);
	char text[WHICH_SIZE];

	if (t == NULL) {
		log_error("delivery to %s: %s cannot be ended, and there is no "
			  "memory to remember it",
		    name, which(pid, text));
		return false;
	}
	t->pid = pid;
	t->fd = fd;
	t->since = now;
	memcpy(t->name, name, size);
	LIST_INSERT_HEAD(&s->list, t, entry);
	s->count++;
	check_later(s);
	log_warning("delivery to %s: %s cannot be ended, its slot is given "
		    "back: %u such processes",
	    name, which(pid, text), s->count);
	return true;
}

void
strays_add(struct strays *s, const char *name, pid_t pid, usec_t now)
{
	(void)add(s, name, pid, -1, now);
}

void
strays_add_behind(struct strays *s, const char *name, int *fd, usec_t now)
{
	if (add(s, name, 0, *fd, now))
		*fd = -1;
}

bool
strays_allow(const struct strays *s, const char *name)
{
	uint32_t max = s->count < STRAYS_MANY ? STRAYS_EACH : 1, n = 0;
	const struct stray *t;

	LIST_FOREACH (t, &s->list, entry)
		n += strcmp(t->name, name) == 0;
	return n < max;
}
