/* Does a message fit a selection? Cheap keys first: attempts, then recipients
 * and reasons, are read for a message that fits the others. */
#include "qctl/select/select.h"

#include <string.h>
#include <strings.h>

#include "base/domain.h"
#include "base/text.h"
#include "base/verp.h"
#include "spool/hold_note.h"
#include "spool/reason.h"

#define KEYS_OF_RECIPIENTS                              \
	(1u << SELECT_RECIPIENT | 1u << SELECT_DOMAIN | \
	    1u << SELECT_DESTINATION | 1u << SELECT_REASON)

unsigned
select_states(const struct select *s)
{
	unsigned all = 0;
	size_t i;

	if ((s->keys & 1u << SELECT_STATE) != 0)
		return s->states;
	for (i = 0; i < MESSAGE_STATES; i++)
		all |= 1u << message_states[i];
	if (s->nids > 0)
		return all;
	all &= ~(1u << SPOOL_DELETED);
	return s->with_corrupt ? all : all & ~(1u << SPOOL_CORRUPT);
}

bool
select_queue(const struct select *s, uint32_t queue)
{
	return (s->keys & 1u << SELECT_QUEUE) == 0 || s->queues[queue];
}

bool
select_by_destination(const struct select *s)
{
	size_t i;

	for (i = 0; i < s->nterms; i++)
		if (s->terms[i].key == SELECT_DESTINATION)
			return true;
	return false;
}

/* ---- the comparison of each key ---- */

struct facts {
	const char *id, *sender, *recipient, *reason;
	uint64_t age, size;
	uint32_t attempts; /* for KEYS_OF_ATTEMPTS */
	const struct message *m;
};

/* On hold, and its note names the rule. */
static bool
fits_rule(const struct message *m, uint32_t number)
{
	struct hold_note note;
	struct queue_id id;

	return m->dir == SPOOL_HOLD && m->sp->dir[SPOOL_DEFER] >= 0 &&
	    queue_id_parse(m->id, &id) == 0 &&
	    hold_note_read(m->sp, &id, &note) == 0 && note.rule == number;
}

static bool
fits_term(const struct select_term *t, const struct facts *f)
{
	switch (t->key) {
	case SELECT_ID:
		return t->part ? strcasestr(f->id, t->text) != NULL
			       : text_matches(t->text, f->id);
	case SELECT_SENDER:
		return t->part ? sender_contains(t->text, f->sender)
			       : sender_matches(t->text, f->sender);
	case SELECT_RECIPIENT:
		return t->part ? address_contains(t->text, f->recipient)
			       : address_matches(t->text, f->recipient);
	case SELECT_DOMAIN:
		return domain_matches(t->text, address_domain(f->recipient));
	case SELECT_DESTINATION:
		return select_fits_destination(t->text, buf_str(&f->m->sender),
		    f->recipient,
		    (f->m->file.flags & QUEUE_FILE_EXPANDED) != 0);
	case SELECT_REASON:
		return f->reason != NULL &&
		    strcasestr(f->reason, t->text) != NULL;
	case SELECT_OLDER:
		return f->age > t->number;
	case SELECT_YOUNGER:
		return f->age < t->number;
	case SELECT_LARGER:
		return f->size > t->number;
	case SELECT_SMALLER:
		return f->size < t->number;
	case SELECT_ATTEMPTS:
		return f->attempts >= t->number;
	case SELECT_FEWER:
		return f->attempts < t->number;
	case SELECT_RULE:
		return fits_rule(f->m, (uint32_t)t->number);
	case SELECT_QUEUE: /* these have no terms */
	case SELECT_STATE:
	case SELECT_NKEYS:
		break;
	}
	return false;
}

/* Of each of these keys that is given one term fits. */
static bool
fits_keys(const struct select *s, unsigned wanted, const struct facts *f)
{
	unsigned fits = 0;
	size_t i;

	for (i = 0; i < s->nterms; i++) {
		const unsigned bit = 1u << s->terms[i].key;

		if ((wanted & bit) != 0 && (fits & bit) == 0 &&
		    !s->terms[i].leaves_out && fits_term(&s->terms[i], f))
			fits |= bit;
	}
	return fits == wanted;
}

struct looking {
	const struct select *s;
	const struct message *m;
	unsigned keys;
	const struct select_term *term; /* of what is left out; NULL */
};

/* 1: this recipient fits. */
static int
look_at(const struct recipient *r, void *arg)
{
	const struct looking *l = arg;
	const struct facts f = {
		.recipient = r->rcpt->address, .reason = r->reason, .m = l->m
	};

	return r->rcpt->mark != RCPT_DONE &&
	    (l->term != NULL ? fits_term(l->term, &f)
			     : fits_keys(l->s, l->keys, &f));
}

/* ---- exclusion ---- */

/* 1: some term leaves it out. */
static int
is_left_out(
    const struct select *s, const struct message *m, const struct facts *f)
{
	size_t i;
	int r = 0;

	if ((s->keys & 1u << SELECT_NOT) == 0)
		return 0;
	for (i = 0; r == 0 && i < s->nterms; i++) {
		const struct select_term *t = &s->terms[i];
		struct looking l = { .m = m, .term = t };

		if (!t->leaves_out)
			continue;
		r = (KEYS_OF_RECIPIENTS & 1u << t->key) == 0
		    ? fits_term(t, f)
		    : message_recipients(
			  m, t->key == SELECT_REASON, look_at, &l);
	}
	return r;
}

#define KEYS_OF_MESSAGES                                              \
	(1u << SELECT_ID | 1u << SELECT_SENDER | 1u << SELECT_OLDER | \
	    1u << SELECT_YOUNGER | 1u << SELECT_LARGER |              \
	    1u << SELECT_SMALLER | 1u << SELECT_RULE)

#define KEYS_OF_ATTEMPTS (1u << SELECT_ATTEMPTS | 1u << SELECT_FEWER)

/* The number stands in defer/. A drop has no inode of a message: no attempt. */
static int
fits_attempted(const struct select *s, const struct message *m, unsigned wanted)
{
	struct facts f = { .m = m };
	int r = 0;

	if (wanted == 0)
		return 1;
	if (m->inode != 0)
		r = reason_count_attempts(m->sp, m->inode, &f.attempts);
	return r < 0 ? r : fits_keys(s, wanted, &f);
}

/* A damaged file has a place and a size, and nothing else that is known. */
static int
fits_damaged(const struct select *s, const struct message *m)
{
	const struct facts f = { .size = m->file_size };
	const unsigned known = 1u << SELECT_QUEUE | 1u << SELECT_STATE |
	    1u << SELECT_LARGER | 1u << SELECT_SMALLER;

	return (s->keys & ~known) == 0 &&
	    fits_keys(s, s->keys & KEYS_OF_MESSAGES, &f);
}

int
select_fits(const struct select *s, const struct message *m, usec_t now_wall)
{
	const usec_t age = now_wall - m->file.arrival_wall;
	const struct facts f = {
		.id = m->id,
		.sender = buf_str(&m->sender),
		.age = age < 0 ? 0 : (uint64_t)age,
		.size = m->file.content_len,
		.m = m,
	};
	struct looking l = {
		.s = s, .m = m, .keys = s->keys & KEYS_OF_RECIPIENTS
	};
	int r;

	if ((select_states(s) & 1u << m->dir) == 0 ||
	    !select_queue(s, m->sp->queue))
		return 0;
	if (m->damage[0] != '\0')
		return fits_damaged(s, m);
	if ((s->no_reports && (m->file.flags & QUEUE_FILE_REPORT) != 0) ||
	    !fits_keys(s, s->keys & KEYS_OF_MESSAGES, &f))
		return 0;
	r = fits_attempted(s, m, s->keys & KEYS_OF_ATTEMPTS);
	if (r == 1 && (s->keys & KEYS_OF_RECIPIENTS) != 0)
		r = message_recipients(
		    m, (s->keys & 1u << SELECT_REASON) != 0, look_at, &l);
	if (r != 1)
		return r;
	r = is_left_out(s, m, &f);
	return r < 0 ? r : r == 0;
}
