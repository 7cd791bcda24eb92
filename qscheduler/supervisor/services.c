#include "qscheduler/supervisor/supervisor.h"

#include <stdio.h>
#include <string.h>

#include "log/log.h"

static void
on_started(struct child *c)
{
	const struct super *s = c->group->owner;

	if ((c->role->objects & OBJECT(REPORTS)) != 0)
		child_give(c, "qscheduler", s->queues.reports);
}

static void
on_changed(struct group *g)
{
	struct super *s = g->owner;

	s->queues.events->progress(s);
}

static const struct child_events events = {
	.started = on_started,
	.changed = on_changed,
};

int
services_open(struct super *s)
{
	return group_init(&s->services.group, &s->children, 0, &events, s);
}

/* The same as the quarantine of a queue, but for the service alone. */
static void
tell_quarantine(struct child *c, uint32_t *told, usec_t now)
{
	const bool looping = proc_is_looping(&c->proc, now);
	char why[160];

	if (looping && *told == 0) {
		child_describe_failures(c, why, sizeof(why));
		log_error("ALERT: %s is quarantined: %s; tried again with "
			  "growing delay",
		    c->name, why);
	} else if (!looping && *told > 0) {
		log_info("%s is out of quarantine", c->name);
	}
	*told = looping ? c->proc.failures : 0;
}

void
services_tick(struct super *s, usec_t now)
{
	struct group *g = &s->services.group;
	unsigned i;

	group_tick(g);
	for (i = 0; i < g->n; i++)
		tell_quarantine(&g->child[i], &s->services.told[i], now);
}

bool
services_are_ready(const struct super *s)
{
	const struct group *g = &s->services.group;
	unsigned i;

	for (i = 0; i < g->n; i++)
		if (g->child[i].proc.state != PROC_UP &&
		    !child_is_failing(&g->child[i]))
			return false;
	return true;
}

void
services_describe(const struct super *s, char *out, size_t size)
{
	const struct group *g = &s->services.group;
	size_t len = strlen(out);
	unsigned i;
	int n;

	for (i = 0; i < g->n && len < size; i++) {
		const struct child *c = &g->child[i];

		if (c->proc.state == PROC_UP)
			continue;
		n = snprintf(out + len, size - len, ", %s %s", c->name,
		    proc_state_name(c->proc.state));
		len += n > 0 ? (size_t)n : 0;
	}
}

void
services_link_reports(struct super *s)
{
	struct group *g = &s->services.group;
	unsigned i;

	for (i = 0; i < g->n; i++)
		if ((g->child[i].role->objects & OBJECT(REPORTS)) != 0)
			child_give(
			    &g->child[i], "qscheduler", s->queues.reports);
}
