#include "qctl/routing/rules.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sysexits.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/date.h"
#include "base/io.h"
#include "base/text.h"
#include "log/log.h"
#include "qctl/read/peer.h"
#include "spool/hold_rule.h"

#define DENIED                                                            \
	"no permission to change rules; this is for root and members of " \
	"operator_group, and while the instance is stopped for root"
#define TRIES      50
#define PAUSE_MSEC 100
#define READ_LATER "it reads the rules within ten seconds"

/* ---- the rule of this command ---- */

#define KEYS_OF_RULES                                                         \
	(1u << SELECT_SENDER | 1u << SELECT_RECIPIENT | 1u << SELECT_DOMAIN | \
	    1u << SELECT_DESTINATION)

/* A rule is looked at when a message comes: its age is 0 then, and its queue is
 * any. */
int
rules_judge(struct options *o, struct buf *error)
{
	struct select *s = &o->select;
	const unsigned keys = (unsigned)__builtin_popcount(s->keys);

	if (!o->rule)
		return 0;
	s->no_reports = s->keys == 1u << SELECT_SENDER;
	if (o->act == ACT_RELEASE && o->rule_number == 0) {
		(void)buf_add_str(error,
		    "release --rule needs the number of a rule behind it");
		return -EINVAL;
	}
	if (o->act == ACT_RELEASE ||
	    (!s->all && !s->from_stdin && s->nids == 0 && keys > 0 &&
		keys == s->nterms && (s->keys & ~KEYS_OF_RULES) == 0))
		return 0;
	(void)buf_add_str(error,
	    "a rule takes sender=, recipient=, domain=, destination=, at "
	    "least one, each once; mail to come has no age, place or "
	    "attempts yet");
	return -EINVAL;
}

static const enum select_key key_of[RULE_NKEYS] = {
	[RULE_SENDER] = SELECT_SENDER,
	[RULE_RECIPIENT] = SELECT_RECIPIENT,
	[RULE_DOMAIN] = SELECT_DOMAIN,
	[RULE_DESTINATION] = SELECT_DESTINATION,
};

/* One term of each key, as options.c has made sure of. */
static const char *
pattern_of(const struct select *s, enum hold_rule_key key)
{
	size_t i;

	for (i = 0; i < s->nterms; i++)
		if (s->terms[i].key == key_of[key])
			return key == RULE_SENDER && s->terms[i].text[0] == '\0'
			    ? "<>"
			    : s->terms[i].text;
	return "";
}

static void
fill_rule(const struct task *t, struct buf *reason, struct hold_rule *rule)
{
	const struct options *o = &t->options;
	const char *why = o->hold_reason == NULL ? "" : o->hold_reason;
	size_t i;

	*rule = (struct hold_rule){ .uid = getuid(),
		.since_wall = t->view.now_wall,
		.until_wall =
		    o->hold_time == 0 ? 0 : t->view.now_wall + o->hold_time };
	for (i = 0; i < RULE_NKEYS; i++)
		rule->pattern[i] =
		    pattern_of(&o->select, (enum hold_rule_key)i);
	(void)text_clean(reason, why, strlen(why), HOLD_REASON_MAX);
	rule->reason = buf_str(reason);
}

/* ---- asked of a queue-send ---- */

/* A row of the process that asks. */
struct result {
	int error;
	uint32_t number;
};

static struct msg
request_of(const struct task *t, const struct hold_rule *rule)
{
	const char *const *p = rule->pattern;

	if (t->options.act == ACT_RELEASE)
		return (struct msg){ .type = MSG_RULE_DROP,
			.u.RULE_DROP = { 1, t->options.rule_number } };
	return (struct msg){ .type = MSG_RULE_ADD,
		.u.RULE_ADD = {
		    .serial = 1,
		    .until_wall = rule->until_wall,
		    .sender = MSG_S(p[RULE_SENDER]),
		    .recipient = MSG_S(p[RULE_RECIPIENT]),
		    .domain = MSG_S(p[RULE_DOMAIN]),
		    .destination = MSG_S(p[RULE_DESTINATION]),
		    .reason = MSG_S(rule->reason),
		} };
}

/* 1: the queue does not run. */
static int
ask(struct worker *w, const struct task *t, const struct msg *msg,
    struct result *ret)
{
	struct peer peer = { .fd = -1 };
	struct spool sp;
	int r = spool_open(&sp, &spool_sys_real, t->base, w->queue);

	if (r == 0)
		r = peer_connect(&peer, &sp, t->silence_limit);
	if (r == -ENOENT || r == -ECONNREFUSED)
		r = 1;
	if (r == 0)
		r = peer_put(&peer, msg);
	if (r == 0 || r == -EPIPE)
		r = peer_answer(&peer, &ret->error, &ret->number);
	peer_close(&peer);
	spool_close(&sp);
	return r;
}

static void
complain(struct worker *w, int error)
{
	if (error == -EPERM || error == -EACCES)
		worker_denied(w);
	else
		worker_note(w, "%s: " READ_LATER, spool_error(error));
}

/* In a process of its own: a disk that hangs stops no other queue. */
static int
run_change(struct worker *w, void *arg)
{
	const struct task *t = arg;
	struct buf reason = { 0 };
	struct hold_rule rule;
	struct result result = { 0 };
	struct msg msg;
	int r;

	fill_rule(t, &reason, &rule);
	msg = request_of(t, &rule);
	r = ask(w, t, &msg, &result);
	if (r == 0)
		worker_row(w, &result, sizeof(result));
	else if (r == -EPERM || r == -EACCES)
		worker_denied(w);
	else if (r < 0)
		worker_note(
		    w, "%s: `qctl rules' shows what is done", spool_error(r));
	buf_done(&reason);
	return 0;
}

static int
run_read(struct worker *w, void *arg)
{
	const struct msg msg = { .type = MSG_RULES_READ,
		.u.RULES_READ = { 1 } };
	struct result result = { 0 };
	int r = ask(w, arg, &msg, &result);

	if (r == 0)
		r = result.error;
	if (r < 0)
		complain(w, r);
	return 0;
}

struct asking {
	struct result result;
	bool answered;
};

/* Rows go to the parent; the worker has the task alone. */
static struct asking asking;

static void
take_result(
    uint32_t queue UNUSED, const void *data, size_t len, void *arg UNUSED)
{
	if (len != sizeof(asking.result))
		return;
	memcpy(&asking.result, data, len);
	asking.answered = true;
}

/* count: of the queues from the first-th one on. */
static int
run_on(struct task *t, size_t first, size_t count,
    int (*run)(struct worker *w, void *arg), struct worker_totals *totals)
{
	struct worker_job job =
	    task_job(t, run, "it does not answer: " READ_LATER);

	job.queues = &t->queues[first];
	job.nqueues = count;
	job.silence_limit *= 2;
	job.take_row = take_result;
	return worker_run_all(&job, totals);
}

/* ---- without one ---- */

/* For the log of a change that no queue-send has made. */
static void
log_offline(const struct task *t, uint32_t number)
{
	log_open("qctl", LOG_TARGET_SYSLOG, LOG_FORMAT_TEXT, LOG_INFO_L);
	log_info("operator uid=%u: rule %u (%s)", (unsigned)getuid(), number,
	    buf_str(&t->selection));
}

static void
change_offline(struct task *t, struct result *ret)
{
	struct buf reason = { 0 };
	struct hold_rule rule;
	struct hold_rules_change change = { .now_wall = t->view.now_wall };

	fill_rule(t, &reason, &rule);
	if (t->options.act == ACT_RELEASE)
		change.without = change.number = t->options.rule_number;
	else
		change.more = &rule;
	ret->error = hold_rules_change(&spool_sys_real, t->base, &change);
	ret->number = change.number;
	buf_done(&reason);
	if (change.aside)
		task_tell(&t->options,
		    "the file of rules was damaged: it was put aside, with "
		    "its rules");
	if (ret->error == 0)
		log_offline(t, ret->number);
}

/* ---- the change ---- */

static const struct failure failures[] = {
	{ -EACCES, EX_NOPERM, DENIED },
	{ -EPERM, EX_NOPERM, DENIED },
	{ -ENOSPC, EX_TEMPFAIL,
	    "there are 1000 rules, or the disk is full: nothing is done" },
	{ -EAGAIN, EX_TEMPFAIL,
	    "another rule is being written: nothing is done, try again" },
	{ -EINVAL, EX_USAGE, "not a rule: control characters, or too long" },
	{ -EBADMSG, EX_DATAERR,
	    "the file of rules is damaged: it holds no mail, and the next "
	    "`hold --rule' puts it aside" },
	{ -EEXIST, EX_UNAVAILABLE,
	    "too many damaged files of rules lie aside: remove "
	    "rules/hold.aside-* in queue_base" },
	{ -ENOENT, EX_UNAVAILABLE,
	    "no directory for rules: qscheduler makes it at its next start" },
};

static int
fail(const struct task *t, int error)
{
	size_t i;

	for (i = 0; i < ARRAY_LEN(failures); i++)
		if (failures[i].error == error)
			return task_complain(
			    &t->options, failures[i].code, failures[i].text);
	task_tell(&t->options,
	    "%s/" SPOOL_RULES "/" HOLD_RULES_NAME
	    ": %s: `%s rules' shows what is in force",
	    t->base, strerror(-error), t->options.program);
	return EX_TEMPFAIL;
}

static int
tell(struct task *t, int error)
{
	if (error == -ESRCH && t->options.act == ACT_RELEASE) {
		task_tell(&t->options,
		    "rule %" PRIu32 ": no such rule; messages that it "
		    "holds are released",
		    t->options.rule_number);
		return EX_OK;
	}
	if (error < 0)
		return fail(t, error);
	if (t->options.act == ACT_RELEASE || t->options.quiet)
		return EX_OK;
	return printf("rule %" PRIu32 "\n", t->options.rule_number) >= 0 &&
		fflush(stdout) == 0
	    ? EX_OK
	    : EX_IOERR;
}

/* One queue-send writes it for all; the first that answers. */
static int
try_change(struct task *t)
{
	struct worker_totals totals = { 0 };
	size_t i;

	asking = (struct asking){ 0 };
	for (i = 0; i < (size_t)t->nqueues && !asking.answered; i++) {
		if (run_on(t, i, 1, run_change, &totals) < 0)
			return EX_OSERR;
		if (totals.denied > 0)
			return fail(t, -EPERM);
		/* Whether it was written is not known. */
		if (totals.silent + totals.troubled > 0)
			return EX_TEMPFAIL;
	}
	if (!asking.answered)
		change_offline(t, &asking.result);
	return EX_OK;
}

/* Another process may be writing. */
static int
change(struct task *t)
{
	unsigned try;
	int code = EX_OK;

	asking.result.error = -EAGAIN;
	for (try = 0;
	     code == EX_OK && asking.result.error == -EAGAIN && try < TRIES;
	     try++) {
		if (try > 0)
			(void)poll(NULL, 0, PAUSE_MSEC);
		code = try_change(t);
	}
	if (code != EX_OK)
		return code;
	if (asking.result.error == 0)
		t->options.rule_number = asking.result.number;
	return tell(t, asking.result.error);
}

int
rules_change(struct task *t, bool *ret_troubled)
{
	struct worker_totals totals = { 0 };
	int code = change(t);

	if (code != EX_OK)
		return code;
	if (run_on(t, 0, (size_t)t->nqueues, run_read, &totals) < 0)
		return EX_OSERR;
	*ret_troubled = totals.silent + totals.troubled + totals.denied > 0;
	return EX_OK;
}

/* ---- the list ---- */

static void
add_text(struct buf *out, const struct hold_rule *rule, usec_t now_wall)
{
	char date[DATE_SIZE];
	size_t i;

	buf_printf(out, "%" PRIu32 ":", rule->number);
	for (i = 0; i < RULE_NKEYS; i++)
		if (rule->pattern[i][0] != '\0')
			buf_printf(
			    out, " %s=%s", hold_rule_keys[i], rule->pattern[i]);
	date_format(rule->since_wall, date);
	buf_printf(out, ", by uid %u since %s", (unsigned)rule->uid, date);
	date_format(rule->until_wall, date);
	if (rule->until_wall != 0)
		buf_printf(out, ", %s %s",
		    rule->until_wall <= now_wall ? "over since" : "until",
		    date);
	if (rule->reason[0] != '\0')
		buf_printf(out, ": %s", rule->reason);
	buf_add_str(out, "\n");
}

static void
add_json(struct buf *out, const struct hold_rule *rule)
{
	size_t i;

	buf_printf(out, "{\"rule\": %" PRIu32, rule->number);
	for (i = 0; i < RULE_NKEYS; i++)
		if (rule->pattern[i][0] != '\0')
			out_member(out, hold_rule_keys[i], rule->pattern[i]);
	buf_printf(out,
	    ", \"uid\": %u, \"since\": %" PRId64 ", \"until\": %" PRId64,
	    (unsigned)rule->uid, rule->since_wall / USEC_PER_SEC,
	    rule->until_wall / USEC_PER_SEC);
	out_member(out, "reason", rule->reason);
	buf_add_str(out, "}\n");
}

static void
add_all(const struct task *t, const struct hold_rules *rules, struct buf *out)
{
	uint32_t i;

	for (i = 0; i < rules->count; i++)
		if (t->options.json)
			add_json(out, &rules->rows[i]);
		else
			add_text(out, &rules->rows[i], t->view.now_wall);
	if (rules->count == 0 && !t->options.json)
		buf_add_str(out, "No rules\n");
}

int
rules_show(struct task *t)
{
	struct hold_rules rules = { 0 };
	struct buf out = { 0 };
	int code, r;

	if (t->base_silent)
		return EX_TEMPFAIL;
	r = hold_rules_read(&spool_sys_real, t->base, &rules);
	if (r == -EACCES || r == -EPERM)
		return task_complain(&t->options, EX_NOPERM,
		    "no permission to read rules; this is for root and members "
		    "of qmail_group");
	if (r < 0)
		return fail(t, r);
	add_all(t, &rules, &out);
	code = task_put(&t->options, 0, &out);
	hold_rules_done(&rules);
	return code;
}
