#include "queue-send/rules/own.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "log/log.h"
#include "queue-send/backlog/backlog.h"
#include "queue-send/disk/work.h"

#define LOOK_EVERY   (10 * USEC_PER_SEC)
#define ALERT_EVERY  (60 * USEC_PER_SEC)
#define START_LIMIT  (10 * USEC_PER_SEC)
#define SILENCE      (10 * USEC_PER_SEC)
#define TASKS_MAX    32 /* of operators */
#define SHORTAGE     USEC_PER_SEC
#define SILENT       (-ETIMEDOUT)
#define NEXT_WRITING "the next `qctl hold --rule' puts the file aside"

enum rules_job {
	JOB_READ, /* if it is another file, or an operator asks */
	JOB_ADD,  /* then read */
	JOB_DROP,
};

/* All that the thread needs is copied: the queue may end meanwhile. */
struct rules_task {
	struct sync_task task; /* first; its error is that of the reading */
	enum rules_job job;
	struct rules_asker by;
	const struct spool_sys *sys;
	char base[PATH_MAX];
	struct stat seen;
	bool again; /* read it also if it is the same file */
	/* Of a change. */
	struct hold_rule rule; /* with these strings: */
	char pattern[RULE_NKEYS][HOLD_RULE_TEXT_MAX + 1];
	char reason[HOLD_REASON_MAX + 1];
	struct hold_rules_change change;
	int changed; /* 0, -errno */
	/* Done. */
	bool read;
	struct hold_rules rules;
};

/* ---- in the thread ---- */

static int
rules_task_work(struct sync_task *task)
{
	struct rules_task *t = (struct rules_task *)task;

	if (t->job != JOB_READ)
		t->changed = hold_rules_change(t->sys, t->base, &t->change);
	t->read = t->again || hold_rules_changed(t->base, &t->seen);
	return t->read ? hold_rules_read(t->sys, t->base, &t->rules) : 0;
}

static void
drop_rules(struct sync_task *task)
{
	hold_rules_done(&((struct rules_task *)task)->rules);
}

/* ---- in force ---- */

/* Mail goes on by the rules that were read before: a queue that stops because
 * of a damaged file would stop all mail, for a rule that concerns some. */
static void
alert(struct send *s, const char *what, const char *next)
{
	if (log_due(s->now, ALERT_EVERY, &s->rules->said))
		log_error("ALERT: %s/" SPOOL_RULES "/" HOLD_RULES_NAME
			  ": %s: %u rules of hold that were read before are in "
			  "force%s%s",
		    s->conf->queue_base, what, s->rules->force.count,
		    next[0] == '\0' ? "" : "; ", next);
}

static void
alert_error(struct send *s, int error)
{
	if (error == -EBADMSG)
		alert(s, "damaged, or not ours", NEXT_WRITING);
	else
		alert(s, strerror(-error), "");
}

static void
put_in_force(struct send *s, struct rules_task *t)
{
	struct rules *f = s->rules;

	f->known = true;
	if (t->task.error < 0) {
		s->rules->force.seen = t->rules.seen;
		f->wrong = t->task.error;
		alert_error(s, f->wrong);
		return;
	}
	if (!t->read && f->wrong != SILENT)
		return;
	if (t->read) {
		hold_rules_done(&s->rules->force);
		s->rules->force = t->rules;
		t->rules = (struct hold_rules){ 0 };
	}
	if (f->wrong < 0)
		log_info("%s/" SPOOL_RULES "/" HOLD_RULES_NAME
			 ": %u rules of hold are read, and in force",
		    s->conf->queue_base, s->rules->force.count);
	f->wrong = 0;
}

/* ---- the log of a change ---- */

static int
describe(struct buf *out, const struct hold_rule *rule)
{
	size_t i;
	int r = 0;

	for (i = 0; r == 0 && i < RULE_NKEYS; i++)
		if (rule->pattern[i][0] != '\0')
			r = buf_printf(
			    out, " %s=%s", hold_rule_keys[i], rule->pattern[i]);
	if (r == 0 && rule->reason[0] != '\0')
		r = buf_printf(out, ": %s", rule->reason);
	return r;
}

static void
say_added(const struct rules_task *t)
{
	struct buf text = { 0 };

	if (describe(&text, &t->rule) == 0)
		log_info("operator uid=%u: rule %u holds mail:%s%s",
		    (unsigned)t->by.uid, t->change.number, buf_str(&text),
		    t->change.aside
			? " (the file was damaged, and was put aside with its "
			  "rules)"
			: "");
	buf_done(&text);
}

static void
say_changed(const struct send *s, const struct rules_task *t)
{
	const char *what = t->job == JOB_ADD ? "add" : "remove";

	if (t->changed == -ESRCH)
		log_warning("operator uid=%u: there is no rule %u of hold",
		    (unsigned)t->by.uid, t->change.number);
	else if (t->changed < 0)
		log_warning("operator uid=%u: cannot %s a rule of hold: "
			    "%s/" SPOOL_RULES "/" HOLD_RULES_NAME ": %s",
		    (unsigned)t->by.uid, what, s->conf->queue_base,
		    t->changed == -EBADMSG ? "damaged, or not ours"
					   : strerror(-t->changed));
	else if (t->job == JOB_ADD)
		say_added(t);
	else
		log_info("operator uid=%u: rule %u holds no mail any more",
		    (unsigned)t->by.uid, t->change.number);
}

/* ---- tasks ---- */

static void
finish(struct send *s, struct rules_task *t)
{
	struct rules *f = s->rules;
	int r = t->task.error;

	put_in_force(s, t);
	if (t->job != JOB_READ) {
		r = t->changed;
		say_changed(s, t);
	}
	if (t->by.answer == NULL) {
		f->looks_since = 0;
		return;
	}
	f->tasks--;
	t->by.answer(s, &t->by, r, t->change.number);
}

static void
ended(void *send, struct sync_task *task)
{
	finish(send, (struct rules_task *)task);
	sync_task_free(task);
}

static struct rules_task *
task_new(const struct send *s, enum rules_job job, const struct rules_asker *by)
{
	struct rules_task *t = calloc(1, sizeof(*t));

	if (t == NULL)
		return NULL;
	sync_task_init(&t->task, rules_task_work, drop_rules, ended);
	t->job = job;
	t->sys = s->sp.sys;
	t->seen = s->rules->force.seen;
	t->again = by != NULL || s->rules->wrong < 0;
	t->change.now_wall = s->now_wall;
	if (by != NULL)
		t->by = *by;
	(void)snprintf(t->base, sizeof(t->base), "%s", s->conf->queue_base);
	return t;
}

/* NULL: no memory. The asker hears of a task that does not begin. */
static void
rules_task_put(struct send *s, const struct rules_asker *by,
    struct rules_task *t, int error)
{
	struct rules *f = s->rules;

	if (t == NULL)
		error = -ENOMEM;
	else if (error == 0 && f->tasks >= TASKS_MAX)
		error = -EAGAIN;
	if (error == 0) {
		f->tasks++;
		disk_do(s, DISK_RULES, &t->task);
		return;
	}
	if (t != NULL)
		sync_task_free(&t->task);
	by->answer(s, by, error, 0);
}

/* ---- looking ---- */

static int
rules_look(struct send *s)
{
	struct rules_task *t = task_new(s, JOB_READ, NULL);

	if (t == NULL)
		return -ENOMEM;
	s->rules->looks_since = s->now;
	disk_do(s, DISK_RULES, &t->task);
	return 0;
}

/* A thread is reading the rules. The rules count as known when the disk of
 * QUEUE_BASE takes longer than the limit. */
static usec_t
await(struct send *s)
{
	struct rules *f = s->rules;
	const usec_t limit = f->known ? SILENCE : START_LIMIT;

	if (s->now < f->looks_since + limit)
		return f->looks_since + limit;
	f->known = true;
	f->wrong = SILENT;
	alert(s, "its disk does not answer", "mail goes on");
	return s->now + LOOK_EVERY;
}

usec_t
rules_work(struct send *s)
{
	struct rules *f = s->rules;

	if (s->now < f->look_at)
		return f->look_at;
	if (f->looks_since > 0) {
		f->look_at = await(s);
		return f->look_at;
	}
	f->look_at = s->now + LOOK_EVERY;
	if (rules_look(s) < 0)
		f->look_at = s->now + SHORTAGE;
	else if (f->looks_since > 0)
		f->look_at = await(s);
	else if (f->wrong < 0)
		alert_error(s, f->wrong);
	return f->look_at;
}

void
rules_try_again(struct send *s)
{
	s->rules->look_at = 0;
}

usec_t
rules_wait(const struct send *s)
{
	const struct rules *f = s->rules;

	return f->known ? 0 : f->began + START_LIMIT;
}

/* ---- operators ---- */

static int
copy(char *out, size_t size, msg_str text)
{
	if (text.len >= size || memchr(text.data, '\0', text.len) != NULL)
		return -EINVAL;
	memcpy(out, text.data, text.len);
	out[text.len] = '\0';
	return 0;
}

/* A reason is cleaned, as in any note; a pattern has to be clean. */
static int
copy_rule(struct rules_task *t, const struct msg_RULE_ADD *f)
{
	const msg_str from[RULE_NKEYS] = { f->sender, f->recipient, f->domain,
		f->destination };
	struct buf reason = { 0 };
	size_t i;
	int r =
	    text_clean(&reason, f->reason.data, f->reason.len, HOLD_REASON_MAX);

	for (i = 0; r == 0 && i < RULE_NKEYS; i++) {
		r = copy(t->pattern[i], sizeof(t->pattern[i]), from[i]);
		t->rule.pattern[i] = t->pattern[i];
	}
	(void)snprintf(t->reason, sizeof(t->reason), "%s", buf_str(&reason));
	buf_done(&reason);
	t->rule.reason = t->reason;
	return r == 0 && !hold_rule_is_right(&t->rule) ? -EINVAL : r;
}

void
rules_add(
    struct send *s, const struct rules_asker *by, const struct msg_RULE_ADD *f)
{
	struct rules_task *t = task_new(s, JOB_ADD, by);
	int r = 0;

	if (t != NULL) {
		t->rule.uid = by->uid;
		t->rule.since_wall = s->now_wall;
		t->rule.until_wall = f->until_wall;
		t->change.more = &t->rule;
		r = copy_rule(t, f);
	}
	rules_task_put(s, by, t, r);
}

void
rules_drop(struct send *s, const struct rules_asker *by, uint32_t number)
{
	struct rules_task *t = task_new(s, JOB_DROP, by);

	if (t != NULL)
		t->change.without = t->change.number = number;
	rules_task_put(s, by, t, 0);
}

void
rules_read(struct send *s, const struct rules_asker *by)
{
	rules_task_put(s, by, task_new(s, JOB_READ, by), 0);
}

/* ---- start and end ---- */

int
rules_init(struct send *s)
{
	s->rules = calloc(1, sizeof(*s->rules));
	if (s->rules == NULL)
		return -ENOMEM;
	s->rules->began = s->now;
	(void)rules_work(s);
	return 0;
}

void
rules_done(struct send *s)
{
	if (s->rules != NULL)
		hold_rules_done(&s->rules->force);
	free(s->rules);
	s->rules = NULL;
}

/* ---- which message is held ---- */

bool
rules_exist(const struct send *s)
{
	return s->rules->force.count > 0;
}

/* Messages that an operator released, or gave up, are not held again. */
static bool
is_ruled(const struct send *s, const struct message *m)
{
	return rules_exist(s) && !m->released && !m->expires &&
	    (m->file.flags & QUEUE_FILE_RELEASED) == 0;
}

static void
fill_note(
    const struct send *s, const struct hold_rule *rule, struct hold_note *note)
{
	*note = (struct hold_note){
		.uid = rule->uid,
		.since_wall = s->now_wall,
		.until_wall = rule->until_wall,
		.rule = rule->number,
	};
	snprintf(note->reason, sizeof(note->reason), "%s", rule->reason);
}

bool
rules_hold(struct send *s, struct message *m, const struct queue_rcpt *rcpt,
    const char *transport, const char *nexthop)
{
	const struct hold_mail mail = {
		.sender = m->sender,
		.recipient = rcpt->address,
		.transport = transport,
		.nexthop = nexthop,
		.report = (m->file.flags & QUEUE_FILE_REPORT) != 0,
	};
	const struct hold_rule *rule = is_ruled(s, m)
	    ? hold_rules_find(&s->rules->force, &mail, s->now_wall)
	    : NULL;

	if (rule == NULL)
		return false;
	m->rule = rule->number;
	message_decide(m, FATE_HELD);
	return true;
}

bool
rules_are_over(const struct send *s, uint32_t number)
{
	return hold_rules_number(&s->rules->force, number, s->now_wall) == NULL;
}

void
rules_noted(struct send *s, struct message *m, const struct hold_note *note)
{
	char id[QUEUE_ID_SIZE];

	m->reasons_begun = true;
	m->held_for = note->until_wall > 0;
	acts_hold_ends(s, note->until_wall);
	message_id(m, id);
	log_message(LOG_INFO_L, "held-by-rule", id,
	    "held by rule %u of uid=%u%s%s", note->rule, (unsigned)note->uid,
	    note->reason[0] == '\0' ? "" : ": ", note->reason);
}

int
rules_note(struct send *s, uint32_t number, struct hold_note *ret_note)
{
	const struct hold_rule *rule =
	    hold_rules_number(&s->rules->force, number, s->now_wall);

	if (rule == NULL)
		return -ESRCH;
	fill_note(s, rule, ret_note);
	return 0;
}
