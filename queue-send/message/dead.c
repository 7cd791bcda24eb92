#include "queue-send/message/path.h"

#include <stdio.h>
#include <string.h>

#include "queue-send/backlog/backlog.h"
#include "queue-send/message/fetch.h"

#define DEFERRED_PER_TURN 20 /* recipients: each is a write */
#define SUSPENDED         "delivery temporarily suspended: "

/* delivery_end() was given the reason: the code, a blank, the text. */
static const char *
split_reason(const char *why, char dsn[AGENT_DSN_MAX + 1])
{
	size_t len = strcspn(why, " ");

	if (why[0] != '4' || why[len] == '\0' || len > AGENT_DSN_MAX) {
		snprintf(dsn, AGENT_DSN_MAX + 1, "4.4.0");
		return why;
	}
	snprintf(dsn, AGENT_DSN_MAX + 1, "%.*s", (int)len, why);
	return why + len + 1;
}

static int
defer_rcpts(struct send *s, struct message *m, const struct sched_entry *e,
    const char *why)
{
	char dsn[AGENT_DSN_MAX + 1], text[sizeof(SUSPENDED) + SITE_WHY_MAX];
	struct queue_rcpt rcpt;
	uint32_t i;
	int r;

	snprintf(text, sizeof(text), SUSPENDED "%s", split_reason(why, dsn));
	for (i = 0; i < e->nrcpts; i++) {
		r = recipients_read(s, m, e, i, &rcpt);
		if (r < 0)
			return r;
		results_apply(s, m,
		    &(struct report){
			.index = rcpt.index,
			.offset = rcpt.offset,
			.address = rcpt.address,
			.outcome = AGENT_DEFERRED,
			.dsn = dsn,
			.relay = "none",
			.text = text,
			.selected_at = s->now,
			.untried = true,
		    });
	}
	return 0;
}

/* Nothing of the file is read then. */
static bool
has_recipients(const struct sched_entry *e)
{
	const struct message *m = e->owner;

	return m->rcpts != NULL;
}

static void
put_off(struct send *s, struct sched_entry *e, const char *why)
{
	struct message *m = e->owner;
	bool open = m->fate == FATE_OPEN;
	int r = open && !has_recipients(e) ? disk_use(s, m) : m->error;

	if (open && r == 0)
		r = defer_rcpts(s, m, e, why);
	if (!open || r < 0) {
		entry_give_up(s, e, SITE_UNTRIED, r);
	} else {
		claims_end(s, m, e);
		sched_done(s->sched, e, SITE_UNTRIED, NULL, s->now);
		settle_message(s, m);
	}
	send_wake(s); /* there is room for unread recipients */
}

usec_t
dead_work(struct send *s)
{
	struct sched_entry *e;
	uint32_t n = 0;

	if (s->stopping || s->health.read_only || reasons_are_full(s))
		return USEC_NEVER;
	while (n < DEFERRED_PER_TURN && !s->health.read_only) {
		if (s->now < s->dispatch_at)
			return s->dispatch_at;
		if (fetches_are_full(s))
			return USEC_NEVER;
		e = sched_take_dead(s->sched, s->now);
		if (e == NULL)
			return USEC_NEVER;
		n += e->nrcpts;
		s->pub.changed = true;
		if (has_recipients(e) || !fetch_entry(s, e, e->why, put_off))
			put_off(s, e, e->why);
	}
	return s->now;
}
