#include "queue-send/backlog/own.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "log/log.h"
#include "queue-send/schedule/schedule.h"

#define DEAD_PACE     (USEC_PER_SEC / 20) /* between two of a dead backlog */
#define REMEMBER_FROM 16 /* messages; below there is nothing to hold back */
#define SAY_EVERY     (60 * USEC_PER_SEC)

/* ---- ranks ---- */

static int
load_compare(const struct backlog *a, const struct backlog *b)
{
	if (a->load != b->load)
		return a->load < b->load ? -1 : 1;
	return ((uintptr_t)a > (uintptr_t)b) - ((uintptr_t)a < (uintptr_t)b);
}

TREE_GENERATE(backlog_loads, backlog, by_load, load_compare)

static void
take_out(struct send *s, struct backlog *b)
{
	if (b->state == BACKLOG_RANKED)
		RB_REMOVE(backlog_loads, &s->share->ranks, b);
	else if (b->state == BACKLOG_RESTS)
		TAILQ_REMOVE(&s->share->resting, b, resting);
	b->state = BACKLOG_IDLE;
}

static void
rank(struct send *s, struct backlog *b)
{
	take_out(s, b);
	b->load = backlog_is_stale(s, b) ? 0 : backlog_load(b);
	b->state = BACKLOG_RANKED;
	RB_INSERT(backlog_loads, &s->share->ranks, b);
}

static void
rest(struct send *s, struct backlog *b)
{
	take_out(s, b);
	b->ask_at = s->now + DEAD_PACE;
	b->state = BACKLOG_RESTS;
	TAILQ_INSERT_TAIL(&s->share->resting, b, resting);
}

void
share_changed(struct send *s, struct backlog *b)
{
	if (b == NULL)
		return;
	if (b->due.nwaiting == 0)
		take_out(s, b);
	else if (b->state != BACKLOG_RESTS)
		rank(s, b);
	backlog_put(s, b);
}

void
share_all_changed(struct send *s)
{
	backlog_each(s, share_changed);
}

struct backlog *
share_backlog_of(const struct due *d)
{
	char *due = (char *)d->backlog;

	return due == NULL
	    ? NULL
	    : (struct backlog *)(void *)(due - offsetof(struct backlog, due));
}

/* ---- parked messages ---- */

static void
say_parked(struct send *s, const struct backlog *b)
{
	if (b->due.nwaiting > 1 || backlog_is_stale(s, b) ||
	    !log_due(s->now, SAY_EVERY, &s->share->said))
		return;
	log_info("destination=%s/%s has its share of the active queue, %u "
		 "messages: further mail for it waits in deferred/",
	    s->conf->transports[b->transport].name, b->name, b->held);
}

void
share_park(struct send *s, struct backlog *b, uint64_t inode)
{
	struct due *d = due_find(&s->due, inode);

	if (d == NULL) /* no memory: the walk finds it */
		return;
	due_set_backlog(d, &b->due);
	due_park(&s->due, d);
	say_parked(s, b);
	share_changed(s, b);
	s->pub.changed = true;
}

bool
share_holds_back(struct send *s, struct due *d)
{
	struct backlog *b = share_backlog_of(d);

	if (b == NULL)
		return false;
	if (backlog_is_stale(s, b))
		due_set_backlog(d, NULL);
	else if (backlog_is_beyond(s, b) || backlog_is_dead(s, b)) {
		share_park(s, b, d->inode);
		return true;
	}
	share_changed(s, b);
	return false;
}

static void
wake_resting(struct send *s)
{
	struct backlog *b;

	while ((b = TAILQ_FIRST(&s->share->resting)) != NULL &&
	    b->ask_at <= s->now)
		rank(s, b);
}

struct due *
share_ask(struct send *s)
{
	struct backlog *b;
	struct due *d;

	wake_resting(s);
	b = RB_MIN(backlog_loads, &s->share->ranks);
	if (b == NULL || b->load >= backlog_limit(s))
		return NULL;
	d = due_ask_backlog(&s->due, &b->due);
	if (b->due.nwaiting > 0 && !backlog_is_stale(s, b) &&
	    backlog_is_dead(s, b))
		rest(s, b);
	else
		share_changed(s, b);
	return d;
}

void
share_unask(struct send *s, struct due *d, usec_t at)
{
	struct backlog *b = share_backlog_of(d);

	due_unask(&s->due, d, at);
	share_changed(s, b);
}

void
share_flush(struct send *s)
{
	struct backlog *b;

	while ((b = TAILQ_FIRST(&s->share->resting)) != NULL)
		rank(s, b);
}

usec_t
share_next(const struct send *s)
{
	const struct backlog *b = TAILQ_FIRST(&s->share->resting);

	return b == NULL ? USEC_NEVER : b->ask_at;
}

/* ---- messages ---- */

struct name {
	uint32_t transport;
	char text[ROUTE_DESTINATION_MAX + 1];
};

/* Take the first name off the list; false: it is empty, or no list of names. */
static bool
next_name(const char **list, size_t *left, struct name *ret)
{
	size_t len;

	if (*left < MSG_DESTINATION_HEAD)
		return false;
	ret->transport = bytes_get_u32(*list);
	len = bytes_get_u32(*list + 4);
	if (len > ROUTE_DESTINATION_MAX || len > *left - MSG_DESTINATION_HEAD)
		return false;
	memcpy(ret->text, *list + MSG_DESTINATION_HEAD, len);
	ret->text[len] = '\0';
	*list += MSG_DESTINATION_HEAD + len;
	*left -= MSG_DESTINATION_HEAD + len;
	return true;
}

/* The same as next_name(), by the destinations that are shared. */
static bool
next_site(struct send *s, const char **list, size_t *left, struct name *ret)
{
	const struct rolled *shared;

	if (!next_name(list, left, ret))
		return false;
	shared = rollup_find(s, ret->transport, ret->text);
	if (shared != NULL)
		snprintf(ret->text, sizeof(ret->text), "%s", shared->site);
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

/* The backlog from which the message was asked for; NULL: from none. */
static struct backlog *
backlog_of_turn(struct send *s, const struct message *m)
{
	struct due *d = due_find(&s->due, m->inode);
	struct backlog *b = d == NULL ? NULL : share_backlog_of(d);

	if (b == NULL ||
	    (m->state != STATE_OFFERED_DEFERRED &&
		m->state != STATE_ENTERING_DEFERRED))
		return NULL;
	if (!backlog_is_stale(s, b))
		return b;
	due_set_backlog(d, NULL);
	share_changed(s, b);
	return NULL;
}

bool
share_is_turn(struct send *s, const struct message *m)
{
	return backlog_of_turn(s, m) != NULL;
}

struct backlog *
share_judge(struct send *s, const struct message *m)
{
	const char *list = m->offer->bytes + m->offer->census_len;
	size_t left = m->offer->names_len;
	struct backlog *b, *found = NULL;
	struct name name;

	if (backlog_of_turn(s, m) != NULL)
		return NULL;
	while (next_site(s, &list, &left, &name)) {
		b = backlog_find(s, name.transport, name.text);
		if (b == NULL || !backlog_is_beyond(s, b))
			return NULL;
		/* A destination that is not dead comes to the message first. */
		if (found == NULL || backlog_is_dead(s, found))
			found = b;
	}
	return found;
}

void
share_hold(struct send *s, struct message *m, struct backlog *b)
{
	struct backlog *old = m->backlog;

	m->backlog = b;
	if (b != NULL) {
		b->held++;
		share_changed(s, b);
	}
	if (old != NULL) {
		old->held--;
		share_changed(s, old);
	}
}

/* The first named destination that has room, and the number of all. */
static struct backlog *
choose(struct send *s, const struct message *m, uint32_t *ret_count)
{
	const char *list = m->offer->bytes + m->offer->census_len;
	size_t left = m->offer->names_len;
	struct backlog *b, *chosen = NULL;
	struct name name;

	for (*ret_count = 0; next_site(s, &list, &left, &name); ++*ret_count) {
		if (chosen != NULL && !backlog_is_beyond(s, chosen))
			continue;
		b = backlog_get(s, name.transport, name.text);
		if (b == NULL)
			continue;
		/* A name that comes twice is the same backlog. */
		if (chosen != NULL && chosen != b)
			backlog_put(s, chosen);
		chosen = b;
	}
	return chosen;
}

void
share_admit(struct send *s, struct message *m)
{
	struct backlog *turn = backlog_of_turn(s, m);
	uint32_t count;
	struct backlog *b = choose(s, m, &count);

	m->named = count > 0;
	m->sole = count == 1;
	share_hold(s, m, m->sole || turn == NULL ? b : turn);
	if (b != NULL)
		backlog_put(s, b);
}

void
share_remember(const struct message *m, struct due *d)
{
	struct backlog *b = m->backlog;

	if (m->sole && b != NULL &&
	    (b->due.nodes > 0 || b->held >= REMEMBER_FROM))
		due_set_backlog(d, &b->due);
}

/* ---- begin, end ---- */

int
share_init(struct send *s)
{
	s->share = calloc(1, sizeof(*s->share));
	if (s->share == NULL)
		return -ENOMEM;
	TAILQ_INIT(&s->share->resting);
	return 0;
}

void
share_done(struct send *s)
{
	if (s->share != NULL)
		backlog_each(s, backlog_free);
	free(s->share);
	s->share = NULL;
}

void
share_reroute(struct send *s)
{
	s->share->generation++;
	share_all_changed(s);
}
