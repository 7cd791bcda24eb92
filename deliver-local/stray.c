#include "deliver-local/local.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include <event2/event.h>

#include "base/clock.h"
#include "log/log.h"

#define CHECK_EVERY USEC_PER_SEC

struct stray {
	LIST_ENTRY(stray) entry;
	pid_t pid;
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

static void
on_timer(evutil_socket_t fd UNUSED, short what UNUSED, void *arg)
{
	struct strays *s = arg;
	usec_t now = clock_mono();
	struct stray *t, *next;

	for (t = LIST_FIRST(&s->list); t != NULL; t = next) {
		next = LIST_NEXT(t, entry);
		if (waitpid(t->pid, NULL, WNOHANG) == 0)
			continue;
		s->count--;
		log_info("delivery to %s: process %ld has ended after all, "
			 "after %lld s: %u such processes",
		    t->name, (long)t->pid,
		    (long long)((now - t->since) / USEC_PER_SEC), s->count);
		LIST_REMOVE(t, entry);
		free(t);
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

	while ((t = LIST_FIRST(&s->list)) != NULL) {
		LIST_REMOVE(t, entry);
		free(t);
	}
	if (s->timer != NULL)
		event_free(s->timer);
	s->timer = NULL;
}

void
strays_add(struct strays *s, const char *name, pid_t pid, usec_t now)
{
	size_t size = strlen(name) + 1;
	struct stray *t = malloc(sizeof(*t) + size);

	if (t == NULL) {
		log_error("delivery to %s: process %ld cannot be ended, and "
			  "there is no memory to remember it",
		    name, (long)pid);
		return;
	}
	t->pid = pid;
	t->since = now;
	memcpy(t->name, name, size);
	LIST_INSERT_HEAD(&s->list, t, entry);
	s->count++;
	log_warning("delivery to %s: process %ld cannot be ended, its slot is "
		    "given back: %u such processes",
	    name, (long)pid, s->count);
	check_later(s);
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
