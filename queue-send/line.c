#include "queue-send/line.h"

#include <stdlib.h>
#include <string.h>

#include "queue-send/send.h"
#include "site/shared.h"

_Static_assert(ROUTE_DESTINATION_MAX == SITE_NAME_MAX, "a name fits both");

int
line_compare(const struct line *line, uint32_t transport, const char *name)
{
	if (line->transport != transport)
		return line->transport < transport ? -1 : 1;
	return strcmp(line->name, name);
}

/* The key of a search; names are only compared. */
struct line_key {
	uint32_t generation, transport;
	const char *name;
};

static int
key_compare(const struct line_key *key, const struct line *line)
{
	if (key->generation != line->generation)
		return key->generation < line->generation ? -1 : 1;
	return -line_compare(line, key->transport, key->name);
}

static int
name_compare(const struct line *a, const struct line *b)
{
	const struct line_key key = { a->generation, a->transport, a->name };

	return key_compare(&key, b);
}

TREE_GENERATE(line_names, line, by_name, name_compare)

struct line *
line_find(const struct send *s, uint32_t transport, const char *name)
{
	const struct line_key key = { s->share.generation, transport, name };
	struct line *line = s->share.names.rbh_root;
	int r;

	while (line != NULL && (r = key_compare(&key, line)) != 0)
		line = r < 0 ? RB_LEFT(line, by_name) : RB_RIGHT(line, by_name);
	return line;
}

struct line *
line_get(struct send *s, uint32_t transport, const char *name)
{
	struct line *line = line_find(s, transport, name);
	size_t size = strlen(name) + 1;

	if (line != NULL)
		return line;
	line = calloc(1, offsetof(struct line, name) + size);
	if (line == NULL)
		return NULL;
	line->transport = transport;
	line->generation = s->share.generation;
	memcpy(line->name, name, size);
	RB_INSERT(line_names, &s->share.names, line);
	return line;
}

struct line_tail *
line_tail(struct send *s, struct line *line)
{
	struct line_tail *t = line->tail;

	if (t != NULL)
		return t;
	t = calloc(1, sizeof(*t));
	if (t == NULL || due_line_add(&s->due, &t->due) < 0) {
		free(t);
		return NULL;
	}
	t->line = line;
	line->tail = t;
	return t;
}

void
line_put(struct send *s, struct line *line)
{
	struct line_tail *t = line->tail;

	if (t != NULL && t->due.nodes == 0) {
		due_line_drop(&s->due, &t->due);
		free(t);
		line->tail = NULL;
	}
	if (line->held > 0 || line->claims > 0 || line->tail != NULL)
		return;
	line_free(s, line);
}

void
line_free(struct send *s, struct line *line)
{
	RB_REMOVE(line_names, &s->share.names, line);
	free(line->tail);
	free(line);
}

void
line_each(struct send *s, void (*visit)(struct send *s, struct line *line))
{
	struct line *line, *next;

	RB_FOREACH_SAFE (line, line_names, &s->share.names, next)
		visit(s, line);
}

bool
line_is_stale(const struct send *s, const struct line *line)
{
	return line->generation != s->share.generation;
}

uint32_t
line_places(const struct send *s)
{
	uint64_t limit = s->conf->message_active_limit,
		 pct = s->conf->destination_active_share_pct,
		 used = s->active + s->due.asked, n;

	if (pct >= 100)
		return UINT32_MAX;
	n = limit < used ? 0 : (limit - used) * pct / (100 - pct);
	return n < 1 ? 1 : (uint32_t)n;
}

uint32_t
line_load(const struct line *line)
{
	return line->held + (line->tail == NULL ? 0 : line->tail->due.nasked);
}

bool
line_is_beyond(const struct send *s, const struct line *line)
{
	return (line->tail != NULL && line->tail->due.nwaiting > 0) ||
	    line_load(line) >= line_places(s);
}

bool
line_is_dead(const struct send *s, const struct line *line)
{
	const struct site_table *t = shared_table(s->places.shared);
	struct site *site =
	    t->open(t->table, line->transport, line->name, s->now);
	bool dead;

	if (site == NULL)
		return false;
	dead = t->state(t->table, site, s->now) == SITE_DEAD;
	t->close(t->table, site, s->now);
	return dead;
}
