/* Why one message waits, and what happens next: what the spool says of it, and
 * what the queue-send of its queue says. */
#include "qctl/show/explain.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/domain.h"
#include "ipc/situation.h"
#include "spool/reason.h"

#define GROUPS_MAX 32 /* of recipients; more are counted */
#define TEXT_MAX   2100
#define POISON     "5.3.0 " /* of a recipient that is pending */

/* Recipients with equal domain, mark, last reason and state of the report. */
struct group {
	enum rcpt_mark mark;
	const char *told; /* state of the report; "": not failed */
	char *address;    /* the first */
	char *reason;     /* "" : none */
	usec_t when_wall;
	uint32_t count;
};

struct page {
	const struct message *m;
	const struct view *v;
	struct buf out, facts;
	struct group groups[GROUPS_MAX];
	size_t count;
	uint32_t marks[3];          /* enum order of mark_index() */
	uint32_t left_out;          /* recipients without a group */
	struct msg_EXPLAINED later; /* SITUATION_LATER, or nothing */
	uint32_t asked, dead;       /* groups; dead beyond that time */
	bool known;                 /* queue-send has met the message */
	bool runs;                  /* queue-send was asked */
};

static unsigned
mark_index(enum rcpt_mark mark)
{
	return mark == RCPT_DONE ? 1 : mark == RCPT_FAILED ? 2 : 0;
}

/* ---- groups ---- */

/* The state of the report about a failed recipient. "": not failed. */
static const char *
told_of(const struct recipient *one)
{
	if (one->rcpt->mark != RCPT_FAILED)
		return "";
	if (!dsn_wants(one->rcpt->dsn.notify, DSN_FAILURE))
		return "the sender asked for no report";
	return one->told ? "reported to the sender" : "not reported yet";
}

static bool
belongs(const struct group *g, const struct recipient *one, const char *reason)
{
	return g->mark == one->rcpt->mark && strcmp(g->reason, reason) == 0 &&
	    strcmp(g->told, told_of(one)) == 0 &&
	    domain_is_same(
		address_domain(g->address), address_domain(one->rcpt->address));
}

static int
add_group(struct page *p, const struct recipient *one, const char *reason)
{
	struct group *g = &p->groups[p->count];

	*g = (struct group){
		.mark = one->rcpt->mark,
		.told = told_of(one),
		.address = strdup(one->rcpt->address),
		.reason = strdup(reason),
		.when_wall = one->when_wall,
		.count = 1,
	};
	p->count++;
	return g->address == NULL || g->reason == NULL ? -ENOMEM : 0;
}

static int
take_recipient(const struct recipient *one, void *arg)
{
	struct page *p = arg;
	const char *reason = one->reason == NULL ? "" : one->reason;
	size_t i;

	p->marks[mark_index(one->rcpt->mark)]++;
	if (one->rcpt->mark == RCPT_DONE)
		return 0;
	for (i = 0; i < p->count; i++)
		if (belongs(&p->groups[i], one, reason)) {
			p->groups[i].count++;
			return 0;
		}
	if (p->count < GROUPS_MAX)
		return add_group(p, one, reason);
	p->left_out++;
	return 0;
}

static void
free_groups(struct page *p)
{
	size_t i;

	for (i = 0; i < p->count; i++) {
		free(p->groups[i].address);
		free(p->groups[i].reason);
	}
}

/* ---- questions ---- */

static void
take_fact(void *arg, const struct msg_EXPLAINED *fact)
{
	struct page *p = arg;

	p->known |= fact->situation >= SITUATION_LATER &&
	    fact->situation != SITUATION_UNKNOWN;
	/* The destinations decide what it says. */
	if (fact->situation == SITUATION_LATER) {
		p->later = *fact;
		return;
	}
	sentence_add(&p->facts, fact, p->v->now_wall);
}

/* About one recipient; of those that can be tried only what is dead. */
static void
take_address_fact(void *arg, const struct msg_EXPLAINED *fact)
{
	struct page *p = arg;
	const struct buf *text = &p->out;
	struct msg_EXPLAINED one = *fact;

	if (one.situation == SITUATION_NO_ROUTE && text->len > 0 &&
	    memmem(text->data, text->len, one.why.data, one.why.len) != NULL)
		one.why = MSG_S("as in the last attempt");
	sentence_add(&p->out, &one, p->v->now_wall);
	p->dead += fact->situation == SITUATION_DEAD &&
	    fact->until_wall > p->later.until_wall;
}

static void
add_later(struct page *p)
{
	const bool all = p->dead == p->asked && p->left_out == 0;

	if (p->later.situation != 0)
		sentence_add_later(&p->facts, &p->later,
		    p->dead == 0 ? SENTENCE_DEAD_NONE
			: all    ? SENTENCE_DEAD_ALL
				 : SENTENCE_DEAD_SOME,
		    p->v->now_wall);
}

static void
ask(struct page *p)
{
	struct answer answer = { .fact = take_fact, .arg = p };
	struct queue_id id;
	int r;

	if (queue_id_parse(p->m->id, &id) < 0)
		return;
	r = asker_message(p->v->asker, &id, &answer);
	p->runs = p->v->asker->error == 0;
	if (!p->runs)
		sentence_add_not_asked(&p->facts, r);
	else if (r == 0)
		sentence_add_more(&p->facts, answer.left_out);
}

/* ---- lines ---- */

static void
add_count(struct page *p, uint32_t count, const char *what)
{
	if (count > 0)
		buf_printf(&p->out, ", %u %s", count, what);
}

/* "ID: deferred; 2 recipients to be delivered, 1 delivered" */
static void
add_head(struct page *p)
{
	out_clean(&p->out, p->m->id, TEXT_MAX);
	buf_printf(&p->out, ": %s; ", message_state_name(p->m->dir));
	if (p->m->damage[0] != '\0') {
		buf_add_str(&p->out, "no whole message\n");
		return;
	}
	sentence_add_recipients(&p->out, p->marks[0]);
	buf_add_str(&p->out, " to be delivered");
	add_count(p, p->marks[1], "delivered");
	add_count(p, p->marks[2], "failed");
	buf_add_str(&p->out, "\n");
}

/* "2 recipients at example.org" */
static void
add_members(struct page *p, const struct group *g)
{
	const char *domain = address_domain(g->address);

	sentence_add_recipients(&p->out, g->count);
	if (domain[0] != '\0') {
		buf_add_str(&p->out, " at ");
		out_clean(&p->out, domain, TEXT_MAX);
	}
}

/* "Tried: 3 times; 2 recipients at …, last on …: 4.4.1 …" */
static void
add_tried(struct page *p, const struct group *g, uint32_t attempts)
{
	buf_add_str(&p->out, "    Tried: ");
	if (attempts > 0)
		buf_printf(
		    &p->out, "%u time%s; ", attempts, attempts == 1 ? "" : "s");
	add_members(p, g);
	buf_add_str(&p->out, ", last on ");
	sentence_add_time(&p->out, g->when_wall, p->v->now_wall);
	buf_add_str(&p->out, ": ");
	out_clean(&p->out, g->reason, TEXT_MAX);
	buf_add_str(&p->out, "\n");
}

static void
add_failed(struct page *p, const struct group *g)
{
	buf_add_str(&p->out, "    Failed: ");
	add_members(p, g);
	if (g->reason[0] != '\0') {
		buf_add_str(&p->out, ": ");
		out_clean(&p->out, g->reason, TEXT_MAX);
	}
	buf_printf(&p->out, "; %s.\n", g->told);
}

/* The fate of a group so far, and the state of its destination. */
static void
add_group_lines(struct page *p, const struct group *g, uint32_t attempts)
{
	const bool expanded = (p->m->file.flags & QUEUE_FILE_EXPANDED) != 0;
	struct answer answer = { .fact = take_address_fact, .arg = p };

	if (g->mark == RCPT_FAILED) {
		add_failed(p, g);
		return;
	}
	if (g->reason[0] != '\0')
		add_tried(p, g, attempts);
	if (!p->runs || p->m->dir != SPOOL_DEFERRED)
		return;
	p->asked++;
	(void)asker_address(
	    p->v->asker, buf_str(&p->m->sender), g->address, expanded, &answer);
}

static void
add_groups(struct page *p)
{
	const uint32_t attempts = reason_attempts(p->m->sp, p->m->inode);
	size_t i;

	if (message_is_given_up(p->m))
		buf_add_str(&p->out,
		    "    Given up: by an operator. Next: what the next attempt "
		    "cannot deliver fails, and is reported.\n");
	for (i = 0; i < p->count; i++)
		add_group_lines(p, &p->groups[i], attempts);
	sentence_add_more(&p->out, p->left_out);
}

/* ---- places ---- */

static bool
is_poisonous(const struct page *p)
{
	size_t i;

	for (i = 0; i < p->count; i++)
		if (p->groups[i].mark == RCPT_PENDING &&
		    strncmp(p->groups[i].reason, POISON, strlen(POISON)) == 0)
			return true;
	return false;
}

static void
say_held(struct page *p)
{
	char who[MESSAGE_WHO_SIZE];
	struct hold_note note = { 0 };
	struct stat st;

	buf_add_str(&p->out, "    On hold: since ");
	/* The last change of the file's names or marks. */
	if (fstat(p->m->fd, &st) == 0)
		sentence_add_time(&p->out,
		    (usec_t)st.st_ctim.tv_sec * USEC_PER_SEC, p->v->now_wall);
	buf_printf(&p->out, ", %s",
	    is_poisonous(p) ? "since delivery agents died while they had it"
			    : "by an operator");
	if (message_hold(p->m, &note, who) == 0)
		sentence_add_hold(&p->out, &note, who);
	if (note.until_wall == 0) {
		buf_add_str(&p->out,
		    ". Next: nothing, until it is released (qctl release) or "
		    "deleted.\n");
		return;
	}
	buf_add_str(&p->out, ". Next: it is released on ");
	sentence_add_time(&p->out, note.until_wall, p->v->now_wall);
	buf_add_str(&p->out, ".\n");
}

static void
say_deferred(struct page *p)
{
	buf_add_str(&p->out, "    Due: ");
	if (p->m->due_wall <= p->v->now_wall)
		buf_add_str(&p->out, "now");
	else
		sentence_add_time(&p->out, p->m->due_wall, p->v->now_wall);
	buf_add_str(&p->out, ".\n");
}

/* The check that a file in corrupt/ fails, and the ways out. */
static int
damaged_say(const struct message *m, struct buf *out)
{
	struct corrupt_parts parts;
	int r = corrupt_check(m->sp, m->fd, m->name, &parts);

	if (r < 0)
		return r;
	buf_add_str(out, "    Damaged: ");
	out_clean(out,
	    parts.why[0] != '\0'
		? parts.why
		: "each check passes now; the log says which one failed",
	    CORRUPT_WHY_MAX);
	buf_printf(out,
	    ". It is not delivered. `qctl show --content %s` prints it; ",
	    m->id);
	if (parts.readable && (parts.content || parts.envelope))
		buf_printf(out, "`qctl release --force %s` delivers it%s; ",
		    m->id, parts.content && parts.envelope ? "" : " as it is");
	buf_printf(out, "`qctl delete %s` removes it.\n", m->id);
	return 0;
}

/* The end of a file in deleted/. */
static void
deleted_say(const struct message *m, usec_t now_wall, struct buf *out)
{
	buf_add_str(out,
	    "    Deleted: by an operator; qctl undelete puts it on hold. Next: "
	    "it is removed at ");
	sentence_add_time(out, m->due_wall, now_wall);
	buf_add_str(out, ".\n");
}

/* The place of a message that queue-send has not met, or could not be asked
 * about: while it runs, and while not. */
static const struct {
	const char *running, *stopped;
} places[SPOOL_NDIRS] = {
	[SPOOL_MAILDROP] = { "    Waiting: in gate/maildrop, for todo-proc. "
			     "Next: it is moved to incoming.\n",
	    "    Waiting: in gate/maildrop, for todo-proc.\n" },
	[SPOOL_INCOMING] = { "    Waiting: in incoming, to be checked by "
			     "todo-proc. Next: it is offered for the active "
			     "queue.\n",
	    "    Waiting: in incoming, to be checked by todo-proc.\n" },
	[SPOOL_ACTIVE] = { "    Left behind: in active, and no delivery of it "
			   "runs. Next: it goes back to incoming.\n",
	    "    Left behind: in active. Next: it goes back to incoming.\n" },
	[SPOOL_DEFERRED] = { "    Waiting: in deferred, which is still being "
			     "read. Next: it waits until it is due.\n",
	    NULL },
};

static int
say_place(struct page *p)
{
	const struct message *m = p->m;
	const char *text =
	    p->runs ? places[m->dir].running : places[m->dir].stopped;

	if (m->dir == SPOOL_CORRUPT)
		return damaged_say(m, &p->out);
	if (m->dir == SPOOL_DELETED)
		deleted_say(m, p->v->now_wall, &p->out);
	else if (m->damage[0] != '\0') {
		buf_add_str(&p->out, "    Damaged: ");
		out_clean(&p->out, m->damage, TEXT_MAX);
		buf_add_str(&p->out,
		    ". Next: when its writer has not committed it, that is "
		    "waited for; else it goes to corrupt.\n");
	} else if (m->dir == SPOOL_HOLD)
		say_held(p);
	else if (text != NULL)
		buf_add_str(&p->out, text);
	else if (m->dir == SPOOL_DEFERRED)
		say_deferred(p);
	return 0;
}

/* ---- a message ---- */

static int
fill(struct page *p)
{
	const struct message *m = p->m;
	const bool whole = m->damage[0] == '\0';
	int r = whole ? message_recipients(m, true, take_recipient, p) : 0;

	if (r < 0)
		return r;
	add_head(p);
	if (m->dir != SPOOL_CORRUPT)
		ask(p);
	if (whole)
		add_groups(p);
	if (!whole || !p->known)
		r = say_place(p);
	add_later(p);
	buf_add_str(&p->facts, "\n");
	buf_add_str(&p->out, buf_str(&p->facts));
	return r < 0 ? r : p->facts.error;
}

int
explain_text(struct worker *w, const struct message *m, const struct view *v)
{
	struct page *p = calloc(1, sizeof(*p));
	int r;

	if (p == NULL)
		return -ENOMEM;
	p->m = m;
	p->v = v;
	r = fill(p);
	if (r == 0)
		r = out_send(&p->out, w);
	free_groups(p);
	buf_done(&p->out);
	buf_done(&p->facts);
	free(p);
	return r;
}
