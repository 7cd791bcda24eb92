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
load_compare(const struct parking *a, const struct parking *b)
{
	if (a->load != b->load)
		return a->load < b->load ? -1 : 1;
	return (a->due.number > b->due.number) -
	    (a->due.number < b->due.number);
}

TREE_GENERATE(parking_loads, parking, by_load, load_compare)

static void
take_out(struct send *s, struct parking *p)
{
	if (p->state == PARKING_RANKED)
		RB_REMOVE(parking_loads, &s->share->ranks, p);
	else if (p->state == PARKING_RESTS)
		TAILQ_REMOVE(&s->share->resting, p, resting);
	p->state = PARKING_IDLE;
}

static void
rank(struct send *s, struct parking *p)
{
	take_out(s, p);
	p->load =
	    backlog_is_stale(s, p->backlog) ? 0 : backlog_load(p->backlog);
	p->state = PARKING_RANKED;
	RB_INSERT(parking_loads, &s->share->ranks, p);
}

static void
rest(struct send *s, struct parking *p)
{
	take_out(s, p);
	p->ask_at = s->now + DEAD_PACE;
	p->state = PARKING_RESTS;
	TAILQ_INSERT_TAIL(&s->share->resting, p, resting);
}

void
share_changed(struct send *s, struct backlog *b)
{
	struct parking *p = b == NULL ? NULL : b->parking;

	if (p != NULL && p->due.nwaiting == 0)
		take_out(s, p);
	else if (p != NULL && p->state != PARKING_RESTS)
		rank(s, p);
	if (b != NULL)
		backlog_put(s, b);
}

void
share_all_changed(struct send *s)
{
	backlog_each(s, share_changed);
}

struct backlog *
share_backlog_of(const struct send *s, const struct due *d)
{
	char *due = (char *)due_backlog_of(&s->due, d);
	struct parking *p;

	if (due == NULL)
		return NULL;
	p = (struct parking *)(void *)(due - offsetof(struct parking, due));
	return p->backlog;
}

/* ---- parked messages ---- */

static void
say_parked(struct send *s, const struct backlog *b)
{
	if (b->parking->due.nwaiting > 1 || backlog_is_stale(s, b) ||
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
	struct parking *p = d == NULL ? NULL : backlog_get_parking(s, b);

	if (p == NULL) { /* no memory: later, or when the walk finds it */
		if (d != NULL && d->asked)
			share_unask(s, d, s->now + s->retry.minimal);
		return;
	}
	due_set_backlog(&s->due, d, &p->due);
	due_park(&s->due, d);
	say_parked(s, b);
	share_changed(s, b);
	s->pub.changed = true;
}

bool
share_holds_back(struct send *s, struct due *d)
{
	struct backlog *b = share_backlog_of(s, d);

	if (b == NULL)
		return false;
	if (backlog_is_stale(s, b))
		due_set_backlog(&s->due, d, NULL);
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
	struct parking *p;

	while ((p = TAILQ_FIRST(&s->share->resting)) != NULL &&
	    p->ask_at <= s->now)
		rank(s, p);
}

struct due *
share_ask(struct send *s)
{
	struct parking *p;
	struct due *d;

	wake_resting(s);
	p = RB_MIN(parking_loads, &s->share->ranks);
	if (p == NULL || p->load >= backlog_limit(s))
		return NULL;
	d = due_ask_backlog(&s->due, &p->due);
	if (p->due.nwaiting > 0 && !backlog_is_stale(s, p->backlog) &&
	    backlog_is_dead(s, p->backlog))
		rest(s, p);
	else
		share_changed(s, p->backlog);
	return d;
}

void
share_unask(struct send *s, struct due *d, usec_t at)
{
	struct backlog *b = share_backlog_of(s, d);

	due_unask(&s->due, d, at);
	share_changed(s, b);
}

void
share_flush(struct send *s)
{
	struct parking *p;

	while ((p = TAILQ_FIRST(&s->share->resting)) != NULL)
		rank(s, p);
}

usec_t
share_next(const struct send *s)
{
	const struct parking *p = TAILQ_FIRST(&s->share->resting);

	return p == NULL ? USEC_NEVER : p->ask_at;
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
	struct backlog *b = d == NULL ? NULL : share_backlog_of(s, d);

	if (b == NULL ||
	    (m->list != LIST_OFFERED_DEFERRED &&
		m->list != LIST_ENTERING_DEFERRED))
		return NULL;
	if (!backlog_is_stale(s, b))
		return b;
	due_set_backlog(&s->due, d, NULL);
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
share_remember(struct send *s, const struct message *m, struct due *d)
{
	struct backlog *b = m->backlog;
	struct parking *p = NULL;

	if (m->sole && b != NULL &&
	    (b->parking != NULL || b->held >= REMEMBER_FROM))
		p = backlog_get_parking(s, b);
	if (p != NULL)
		due_set_backlog(&s->due, d, &p->due);
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
