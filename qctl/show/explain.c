/* Why one message waits, and what happens next: what the spool says of it, and
 * what the queue-send of its queue says. */
#include "qctl/show/explain.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/domain.h"
#include "base/text.h"
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
	int error;
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
	int r;

	p->known |= fact->situation >= SITUATION_LATER &&
	    fact->situation != SITUATION_UNKNOWN;
	/* The destinations decide what it says. */
	if (fact->situation == SITUATION_LATER) {
		p->later = *fact;
		return;
	}
	r = sentence_add(&p->facts, fact, p->v->now_wall);
	if (r < 0)
		p->error = r;
}

/* About one recipient; of those that can be tried only what is dead. */
static void
take_address_fact(void *arg, const struct msg_EXPLAINED *fact)
{
	struct page *p = arg;
	struct msg_EXPLAINED one = *fact;
	int r;

	if (one.situation == SITUATION_NO_ROUTE && p->out.len > 0 &&
	    memmem(p->out.data, p->out.len, one.why.data, one.why.len) != NULL)
		one.why = MSG_S("as in the last attempt");
	r = sentence_add(&p->out, &one, p->v->now_wall);
	p->dead += fact->situation == SITUATION_DEAD &&
	    fact->until_wall > p->later.until_wall;
	if (r < 0)
		p->error = r;
}

static int
add_later(struct page *p)
{
	const bool all = p->dead == p->asked && p->left_out == 0;

	if (p->later.situation == 0)
		return 0;
	return sentence_add_later(&p->facts, &p->later,
	    p->dead == 0 ? SENTENCE_DEAD_NONE
		: all    ? SENTENCE_DEAD_ALL
			 : SENTENCE_DEAD_SOME,
	    p->v->now_wall);
}

static int
ask(struct page *p)
{
	struct answer answer = { .fact = take_fact, .arg = p };
	struct queue_id id;
	int r;

	if (queue_id_parse(p->m->id, &id) < 0)
		return 0;
	r = asker_message(p->v->asker, &id, &answer);
	p->runs = p->v->asker->error == 0;
	if (!p->runs)
		return sentence_add_not_asked(&p->facts, r);
	return r < 0 ? 0 : sentence_add_more(&p->facts, answer.left_out);
}

/* ---- lines ---- */

static int
add_clean(struct page *p, const char *text)
{
	return text_clean(&p->out, text, strlen(text), TEXT_MAX);
}

static int
add_count(struct page *p, uint32_t count, const char *what)
{
	return count == 0 ? 0 : buf_printf(&p->out, ", %u %s", count, what);
}

/* "ID: deferred; 2 recipients to be delivered, 1 delivered" */
static int
add_head(struct page *p)
{
	int r = add_clean(p, p->m->id);

	if (r == 0)
		r = buf_printf(
		    &p->out, ": %s; ", message_state_name(p->m->dir));
	if (r == 0 && p->m->damage[0] != '\0')
		return buf_add_str(&p->out, "no whole message\n");
	if (r == 0)
		r = sentence_add_recipients(&p->out, p->marks[0]);
	if (r == 0)
		r = buf_add_str(&p->out, " to be delivered");
	if (r == 0)
		r = add_count(p, p->marks[1], "delivered");
	if (r == 0)
		r = add_count(p, p->marks[2], "failed");
	return r < 0 ? r : buf_add_char(&p->out, '\n');
}

/* "2 recipients at example.org" */
static int
add_members(struct page *p, const struct group *g)
{
	const char *domain = address_domain(g->address);
	int r = sentence_add_recipients(&p->out, g->count);

	if (r == 0 && domain[0] != '\0') {
		r = buf_add_str(&p->out, " at ");
		if (r == 0)
			r = add_clean(p, domain);
	}
	return r;
}

/* "Tried: 3 times; 2 recipients at …, last on …: 4.4.1 …" */
static int
add_tried(struct page *p, const struct group *g, uint32_t attempts)
{
	int r = buf_add_str(&p->out, "    Tried: ");

	if (r == 0 && attempts > 0)
		r = buf_printf(
		    &p->out, "%u time%s; ", attempts, attempts == 1 ? "" : "s");
	if (r == 0)
		r = add_members(p, g);
	if (r == 0)
		r = buf_add_str(&p->out, ", last on ");
	if (r == 0)
		r = sentence_add_time(&p->out, g->when_wall, p->v->now_wall);
	if (r == 0)
		r = buf_add_str(&p->out, ": ");
	if (r == 0)
		r = add_clean(p, g->reason);
	return r < 0 ? r : buf_add_char(&p->out, '\n');
}

static int
add_failed(struct page *p, const struct group *g)
{
	int r = buf_add_str(&p->out, "    Failed: ");

	if (r == 0)
		r = add_members(p, g);
	if (r == 0 && g->reason[0] != '\0') {
		r = buf_add_str(&p->out, ": ");
		if (r == 0)
			r = add_clean(p, g->reason);
	}
	return r < 0 ? r : buf_printf(&p->out, "; %s.\n", g->told);
}

/* The fate of a group so far, and the state of its destination. */
static int
add_group_lines(struct page *p, const struct group *g, uint32_t attempts)
{
	const bool expanded = (p->m->file.flags & QUEUE_FILE_EXPANDED) != 0;
	struct answer answer = { .fact = take_address_fact, .arg = p };
	int r = 0;

	if (g->mark == RCPT_FAILED)
		return add_failed(p, g);
	if (g->reason[0] != '\0')
		r = add_tried(p, g, attempts);
	if (r < 0 || !p->runs || p->m->dir != SPOOL_DEFERRED)
		return r;
	p->asked++;
	(void)asker_address(
	    p->v->asker, buf_str(&p->m->sender), g->address, expanded, &answer);
	return 0;
}

static int
add_groups(struct page *p)
{
	const uint32_t attempts = reason_attempts(p->m->sp, p->m->inode);
	size_t i;
	int r = 0;

	if (message_is_given_up(p->m))
		r = buf_add_str(&p->out,
		    "    Given up: by an operator. Next: what the next attempt "
		    "cannot deliver fails, and is reported.\n");
	for (i = 0; r == 0 && i < p->count; i++)
		r = add_group_lines(p, &p->groups[i], attempts);
	return r < 0 ? r : sentence_add_more(&p->out, p->left_out);
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

/* The time of the last change of the file's names or marks. */
static int
add_since(struct page *p)
{
	struct stat st;

	if (fstat(p->m->fd, &st) < 0)
		return 0;
	return sentence_add_time(
	    &p->out, (usec_t)st.st_ctim.tv_sec * USEC_PER_SEC, p->v->now_wall);
}

static int
say_held(struct page *p)
{
	char who[MESSAGE_WHO_SIZE];
	struct hold_note note = { 0 };
	int r = buf_add_str(&p->out, "    On hold: since ");

	if (r == 0)
		r = add_since(p);
	if (r == 0)
		r = buf_printf(&p->out, ", %s",
		    is_poisonous(p)
			? "since delivery agents died while they had it"
			: p->marks[0] == 0 ? "failed mail of an earlier version"
					   : "by an operator");
	if (r == 0 && message_hold(p->m, &note, who) == 0)
		r = sentence_add_hold(&p->out, &note, who);
	if (r == 0 && note.until_wall == 0)
		return buf_add_str(&p->out,
		    ". Next: nothing, until it is released (qctl release) or "
		    "deleted.\n");
	if (r == 0)
		r = buf_add_str(&p->out, ". Next: it is released on ");
	if (r == 0)
		r = sentence_add_time(&p->out, note.until_wall, p->v->now_wall);
	return r < 0 ? r : buf_add_str(&p->out, ".\n");
}

static int
say_deleted(struct page *p)
{
	return deleted_say(p->m, p->v->now_wall, &p->out);
}

static int
say_corrupt(struct page *p)
{
	return damaged_say(p->m, &p->out);
}

static int
say_damaged(struct page *p)
{
	int r;

	if (p->m->dir == SPOOL_CORRUPT)
		return damaged_say(p->m, &p->out);
	if (p->m->dir == SPOOL_DELETED)
		return say_deleted(p);
	r = buf_add_str(&p->out, "    Damaged: ");
	if (r == 0)
		r = add_clean(p, p->m->damage);
	return r < 0 ? r
		     : buf_add_str(&p->out,
			   ". Next: when its writer has not committed it, "
			   "that is waited for; else it goes to corrupt.\n");
}

static int
say_maildrop(struct page *p)
{
	return buf_add_str(&p->out,
	    p->runs ? "    Waiting: in gate/maildrop, for todo-proc. Next: it "
		      "is moved to incoming.\n"
		    : "    Waiting: in gate/maildrop, for todo-proc.\n");
}

static int
say_incoming(struct page *p)
{
	return buf_add_str(&p->out,
	    p->runs
		? "    Waiting: in incoming, to be checked by todo-proc. "
		  "Next: it is offered for the active queue.\n"
		: "    Waiting: in incoming, to be checked by todo-proc.\n");
}

static int
say_active(struct page *p)
{
	return buf_add_str(&p->out,
	    p->runs ? "    Left behind: in active, and no delivery of it runs. "
		      "Next: it goes back to incoming.\n"
		    : "    Left behind: in active. Next: it goes back to "
		      "incoming.\n");
}

static int
say_deferred(struct page *p)
{
	int r;

	if (p->runs)
		return buf_add_str(&p->out,
		    "    Waiting: in deferred, which is still being read. "
		    "Next: it waits until it is due.\n");
	r = buf_add_str(&p->out, "    Due: ");
	if (r == 0 && p->m->due_wall <= p->v->now_wall)
		r = buf_add_str(&p->out, "now");
	else if (r == 0)
		r = sentence_add_time(&p->out, p->m->due_wall, p->v->now_wall);
	return r < 0 ? r : buf_add_str(&p->out, ".\n");
}

/* A message that queue-send has not met, or could not be asked about. */
static int (*const places[SPOOL_NDIRS])(struct page *p) = {
	[SPOOL_MAILDROP] = say_maildrop,
	[SPOOL_INCOMING] = say_incoming,
	[SPOOL_ACTIVE] = say_active,
	[SPOOL_DEFERRED] = say_deferred,
	[SPOOL_HOLD] = say_held,
	[SPOOL_DELETED] = say_deleted,
	[SPOOL_CORRUPT] = say_corrupt,
};

/* ---- a message ---- */

static int
fill(struct page *p)
{
	const struct message *m = p->m;
	const bool whole = m->damage[0] == '\0';
	int r = whole ? message_recipients(m, true, take_recipient, p) : 0;

	if (r == 0)
		r = add_head(p);
	if (r == 0 && m->dir != SPOOL_CORRUPT)
		r = ask(p);
	if (r == 0 && whole)
		r = add_groups(p);
	if (r == 0 && !whole)
		r = say_damaged(p);
	else if (r == 0 && !p->known && places[m->dir] != NULL)
		r = places[m->dir](p);
	if (r == 0)
		r = add_later(p);
	if (r == 0)
		r = buf_add(&p->out, buf_str(&p->facts), p->facts.len);
	return r < 0 ? r : p->error;
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
		r = buf_add_char(&p->out, '\n');
	if (r == 0)
		r = worker_text(w, buf_str(&p->out), p->out.len);
	free_groups(p);
	buf_done(&p->out);
	buf_done(&p->facts);
	free(p);
	return r;
}
