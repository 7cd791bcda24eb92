#include "queue-send/share.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "log/log.h"
#include "queue-send/claims.h"
#include "queue-send/offers.h"
#include "queue-send/send.h"

#define DEAD_PACE      (USEC_PER_SEC / 20) /* between two of a dead line */
#define LINE_REMEMBERS 16 /* messages; below there is nothing to hold back */
#define SAY_EVERY      (60 * USEC_PER_SEC)

/* ---- ranks ---- */

static int
load_compare(const struct line_tail *a, const struct line_tail *b)
{
	if (a->load != b->load)
		return a->load < b->load ? -1 : 1;
	return (a->due.number > b->due.number) -
	    (a->due.number < b->due.number);
}

TREE_GENERATE(line_loads, line_tail, by_load, load_compare)

static void
take_out(struct send *s, struct line_tail *t)
{
	if (t->place == LINE_RANKED)
		RB_REMOVE(line_loads, &s->share.ranks, t);
	else if (t->place == LINE_RESTS)
		TAILQ_REMOVE(&s->share.resting, t, resting);
	t->place = LINE_IDLE;
}

static void
rank(struct send *s, struct line_tail *t)
{
	take_out(s, t);
	t->load = line_is_stale(s, t->line) ? 0 : line_load(t->line);
	t->place = LINE_RANKED;
	RB_INSERT(line_loads, &s->share.ranks, t);
}

static void
rest(struct send *s, struct line_tail *t)
{
	take_out(s, t);
	t->ask_at = s->now + DEAD_PACE;
	t->place = LINE_RESTS;
	TAILQ_INSERT_TAIL(&s->share.resting, t, resting);
}

void
share_changed(struct send *s, struct line *line)
{
	struct line_tail *t = line == NULL ? NULL : line->tail;

	if (t != NULL && t->due.nwaiting == 0)
		take_out(s, t);
	else if (t != NULL && t->place != LINE_RESTS)
		rank(s, t);
	if (line != NULL)
		line_put(s, line);
}

void
share_all_changed(struct send *s)
{
	line_each(s, share_changed);
}

struct line *
share_line_of(const struct send *s, const struct due *d)
{
	char *due = (char *)due_line_of(&s->due, d);
	struct line_tail *t;

	if (due == NULL)
		return NULL;
	t = (struct line_tail *)(void *)(due - offsetof(struct line_tail, due));
	return t->line;
}

/* ---- what is parked ---- */

static void
say_parked(struct send *s, const struct line *line)
{
	if (line->tail->due.nwaiting > 1 || line_is_stale(s, line) ||
	    !log_due(s->now, SAY_EVERY, &s->share.said))
		return;
	log_info("destination=%s/%s has its share of the active queue, %u "
		 "messages: what comes for it waits in deferred/",
	    s->conf->transports[line->transport].name, line->name, line->held);
}

void
share_park(struct send *s, struct line *line, uint64_t inode)
{
	struct due *d = due_find(&s->due, inode);
	struct line_tail *t = d == NULL ? NULL : line_tail(s, line);

	if (t == NULL) { /* no memory: later, or when the walk finds it */
		if (d != NULL && d->asked)
			offers_unask(s, d, s->now + s->retry.minimal);
		return;
	}
	due_set_line(&s->due, d, &t->due);
	due_park(&s->due, d);
	say_parked(s, line);
	share_changed(s, line);
	s->pub.changed = true;
}

bool
share_holds_back(struct send *s, struct due *d)
{
	struct line *line = share_line_of(s, d);

	if (line == NULL)
		return false;
	if (line_is_stale(s, line))
		due_set_line(&s->due, d, NULL);
	else if (line_is_beyond(s, line) || line_is_dead(s, line)) {
		share_park(s, line, d->inode);
		return true;
	}
	share_changed(s, line);
	return false;
}

static void
wake_resting(struct send *s)
{
	struct line_tail *t;

	while (
	    (t = TAILQ_FIRST(&s->share.resting)) != NULL && t->ask_at <= s->now)
		rank(s, t);
}

struct due *
share_ask(struct send *s)
{
	struct line_tail *t;
	struct due *d;

	wake_resting(s);
	t = RB_MIN(line_loads, &s->share.ranks);
	if (t == NULL || t->load >= line_places(s))
		return NULL;
	d = due_ask_line(&s->due, &t->due);
	if (t->due.nwaiting > 0 && !line_is_stale(s, t->line) &&
	    line_is_dead(s, t->line))
		rest(s, t);
	else
		share_changed(s, t->line);
	return d;
}

void
share_flush(struct send *s)
{
	struct line_tail *t;

	while ((t = TAILQ_FIRST(&s->share.resting)) != NULL)
		rank(s, t);
}

usec_t
share_next(const struct send *s)
{
	const struct line_tail *t = TAILQ_FIRST(&s->share.resting);

	return t == NULL ? USEC_NEVER : t->ask_at;
}

/* ---- messages ---- */

static uint32_t
get_u32(const char *data)
{
	const unsigned char *p = (const unsigned char *)data;

	return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 |
	    (uint32_t)p[3] << 24;
}

struct name {
	uint32_t transport;
	char text[ROUTE_DESTINATION_MAX + 1];
};

/* The first of the list, which begins behind it then; false: no more, or no
 * list. */
static bool
next_name(const char **list, size_t *left, struct name *ret)
{
	size_t len;

	if (*left < MSG_DESTINATION_HEAD)
		return false;
	ret->transport = get_u32(*list);
	len = get_u32(*list + 4);
	if (len > ROUTE_DESTINATION_MAX || len > *left - MSG_DESTINATION_HEAD)
		return false;
	memcpy(ret->text, *list + MSG_DESTINATION_HEAD, len);
	ret->text[len] = '\0';
	*list += MSG_DESTINATION_HEAD + len;
	*left -= MSG_DESTINATION_HEAD + len;
	return true;
}

bool
share_names_are_right(const msg_blob *names)
{
	const char *list = names->data;
	size_t left = names->len;
	struct name name;
	int n = 0;

	while (next_name(&list, &left, &name))
		if (++n > MSG_DESTINATIONS_MAX ||
		    name.transport >= CONF_TRANSPORTS_MAX)
			return false;
	return left == 0;
}

/* The line that it was asked for as the next of; NULL: of none. */
static struct line *
line_of_turn(struct send *s, const struct message *m)
{
	struct due *d = due_find(&s->due, m->inode);
	struct line *line = d == NULL ? NULL : share_line_of(s, d);

	if (line == NULL || m->list != LIST_OFFERED_DEFERRED)
		return NULL;
	if (!line_is_stale(s, line))
		return line;
	due_set_line(&s->due, d, NULL);
	share_changed(s, line);
	return NULL;
}

struct line *
share_judge(struct send *s, const struct message *m)
{
	const char *list = m->census + m->census_len;
	size_t left = m->names_len;
	struct line *line, *found = NULL;
	struct name name;

	if (line_of_turn(s, m) != NULL)
		return NULL;
	while (next_name(&list, &left, &name)) {
		line = line_find(s, name.transport, name.text);
		if (line == NULL || !line_is_beyond(s, line))
			return NULL;
		/* One that lives comes to the message first. */
		if (found == NULL || line_is_dead(s, found))
			found = line;
	}
	return found;
}

void
share_hold(struct send *s, struct message *m, struct line *line)
{
	struct line *old = m->line;

	m->line = line;
	if (line != NULL) {
		line->held++;
		share_changed(s, line);
	}
	if (old != NULL) {
		old->held--;
		share_changed(s, old);
	}
}

/* Of those that it names the first that has room, and how many they are. */
static struct line *
choose(struct send *s, const struct message *m, uint32_t *ret_count)
{
	const char *list = m->census + m->census_len;
	size_t left = m->names_len;
	struct line *line, *chosen = NULL;
	struct name name;

	for (*ret_count = 0; next_name(&list, &left, &name); ++*ret_count) {
		if (chosen != NULL && !line_is_beyond(s, chosen))
			continue;
		line = line_get(s, name.transport, name.text);
		if (line == NULL)
			continue;
		/* A name that comes twice is the same line. */
		if (chosen != NULL && chosen != line)
			line_put(s, chosen);
		chosen = line;
	}
	return chosen;
}

void
share_admit(struct send *s, struct message *m)
{
	struct line *turn = line_of_turn(s, m);
	uint32_t count;
	struct line *line = choose(s, m, &count);

	m->named = count > 0;
	m->sole = count == 1;
	share_hold(s, m, m->sole || turn == NULL ? line : turn);
	if (line != NULL)
		line_put(s, line);
}

void
share_leave(struct send *s, struct message *m)
{
	claims_drop(s, m);
	share_hold(s, m, NULL);
}

void
share_remember(struct send *s, const struct message *m, struct due *d)
{
	struct line *line = m->line;
	struct line_tail *t = NULL;

	if (m->sole && line != NULL &&
	    (line->tail != NULL || line->held >= LINE_REMEMBERS))
		t = line_tail(s, line);
	if (t != NULL)
		due_set_line(&s->due, d, &t->due);
}

/* ---- begin, end ---- */

void
share_init(struct send *s)
{
	RB_INIT(&s->share.names);
	RB_INIT(&s->share.ranks);
	TAILQ_INIT(&s->share.resting);
}

void
share_done(struct send *s)
{
	line_each(s, line_free);
}

void
share_reroute(struct send *s)
{
	s->share.generation++;
	share_all_changed(s);
}
