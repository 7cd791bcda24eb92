#include "deliver-smtp/mime/mime_inside.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* ---- fields ---- */

static void
end_field(struct mime *m)
{
	struct head *h = &m->head;
	bool *has = h->field == FIELD_TYPE ? &h->has_type : &h->has_coding;

	if (h->field == FIELD_VERSION)
		h->has_version = true;
	if (h->field == FIELD_TYPE || h->field == FIELD_CODING) {
		h->malformed |= *has || h->len == VALUE_MAX;
		*has = true;
	}
	if (h->field == FIELD_TYPE) {
		mime_type_parse(h->value, h->len, &h->type);
		h->kind = h->type.kind;
	} else if (h->field == FIELD_CODING) {
		h->coding = mime_coding_parse(h->value, h->len);
	}
	if (h->field != FIELD_NONE)
		h->field = FIELD_OTHER;
}

static void
field_octet(struct mime *m, char c)
{
	struct head *h = &m->head;

	mime_note_header(m, (unsigned char)c);
	if (c != '\r' && c != '\n' && h->len < VALUE_MAX)
		h->value[h->len++] = c;
	if (!m->dropping)
		mime_put(m, &c, 1);
	m->line = c == '\n' ? LINE_HELD : LINE_FIELD;
}

static enum field
field_of(const char *name, size_t len)
{
	static const struct {
		const char *name;
		enum field field;
	} names[] = {
		{ "Content-Type", FIELD_TYPE },
		{ "Content-Transfer-Encoding", FIELD_CODING },
		{ "MIME-Version", FIELD_VERSION },
	};
	size_t i;

	for (i = 0; i < ARRAY_LEN(names); i++)
		if (len == strlen(names[i].name) &&
		    strncasecmp(name, names[i].name, len) == 0)
			return names[i].field;
	return FIELD_OTHER;
}

/* The length of a name in front of the colon that ends the held octets; 0: it
 * is none. RFC 5322 section 4.5 has blanks before the colon. */
static size_t
name_len(const struct mime *m)
{
	size_t len = m->held - 1, i;

	while (len > 0 && (m->hold[len - 1] == ' ' || m->hold[len - 1] == '\t'))
		len--;
	for (i = 0; i < len; i++)
		if ((unsigned char)m->hold[i] <= ' ' || m->hold[i] == 0x7f)
			return 0;
	return len;
}

static void
put_held(struct mime *m, void (*take)(struct mime *m, char c))
{
	const size_t held = m->held;
	size_t i;

	m->held = 0;
	for (i = 0; i < held; i++)
		take(m, m->hold[i]);
}

static void
begin_field(struct mime *m, size_t len)
{
	end_field(m);
	m->head.field = field_of(m->hold, len);
	m->dropping = m->change && m->head.field == FIELD_CODING;
	put_held(m, field_octet);
	m->head.len = 0;
}

/* ---- lines ---- */

static void
body_octet(struct mime *m, char c)
{
	const unsigned char u = (unsigned char)c;
	char out[QUOTED_MAX];

	m->line = c == '\n' ? LINE_HELD : LINE_BODY;
	if (m->plan == NULL) {
		if (u >= 0x80)
			mime_note_eight(m);
	} else if (m->where == IN_LEAF && m->change) {
		mime_put(m, out, quoted_put(&m->quoted, u, out));
	} else {
		/* No reader shows what is between parts. */
		mime_put(m, m->where == IN_MULTI && u >= 0x80 ? "?" : &c, 1);
	}
}

/* The line does not belong to the header: it is judged again, in the body. */
static void
leave_header(struct mime *m)
{
	end_field(m);
	mime_end_header(m, NULL, 0);
	/* A line that leaves a header leaves the next one with its last octet
	 * that was held, or later. */
	ASSERT(m->back_at == m->back_len);
	memcpy(m->back, m->hold, m->held);
	m->back_at = 0;
	m->back_len = m->held;
	m->held = 0;
}

static size_t
without_blanks(const char *line, size_t len)
{
	while (len > 0 && strchr(" \t\r\n", line[len - 1]) != NULL &&
	    line[len - 1] != '\0')
		len--;
	return len;
}

/* A line that may be a boundary is held to its end. */
static bool
may_be_boundary(const struct mime *m)
{
	return m->depth > 0 && m->hold[0] == '-' &&
	    (m->held == 1 || m->hold[1] == '-');
}

/* The level whose boundary the held line is, counted from 1; 0: it is none. */
static size_t
boundary_level(const struct mime *m, bool *ret_last)
{
	const bool whole = m->ended || m->hold[m->held - 1] == '\n';
	size_t len = without_blanks(m->hold, m->held), k;

	if (!whole || len < 3 || memcmp(m->hold, "--", 2) != 0)
		return 0;
	for (k = m->depth; k > 0; k--) {
		const char *b = m->levels[k - 1].type.boundary;
		const size_t n = strlen(b);

		if (n == 0 || m->levels[k - 1].closed || len < 2 + n ||
		    memcmp(m->hold + 2, b, n) != 0)
			continue;
		*ret_last =
		    len == n + 4 && memcmp(m->hold + 2 + n, "--", 2) == 0;
		if (*ret_last || len == n + 2)
			return k;
	}
	return 0;
}

/* The octets that wait in the encoder of a part belong before its end. */
static void
end_part(struct mime *m)
{
	char out[QUOTED_MAX];

	if (m->where == IN_LEAF && m->change)
		mime_put(m, out, quoted_end(&m->quoted, out));
}

static void
take_boundary(struct mime *m, size_t k, bool last)
{
	struct level *level = &m->levels[k - 1];

	end_part(m);
	mime_pop_to(m, k);
	mime_put(m, m->hold, m->held);
	m->held = 0;
	m->line = LINE_HELD;
	level->seen = true;
	level->closed = last;
	m->where = IN_MULTI;
	m->marked = false;
	if (!last)
		mime_begin_part(m, false,
		    level->type.kind == MIME_DIGEST ? MIME_MESSAGE : MIME_LEAF);
}

/* The held line is whole, or as long as any that means something. */
static void
take_line(struct mime *m)
{
	bool last = false;
	const size_t k = boundary_level(m, &last);
	const bool blank = m->hold[0] == '\n' ||
	    (m->held == 2 && m->hold[0] == '\r' && m->hold[1] == '\n');

	if (k > 0) {
		take_boundary(m, k, last);
	} else if (m->where != IN_HEADER) {
		put_held(m, body_octet);
	} else if (blank) {
		end_field(m);
		mime_end_header(m, m->hold, m->held);
		m->held = 0;
	} else {
		leave_header(m);
	}
}

static void
take_held(struct mime *m)
{
	const char c = m->hold[m->held - 1];
	const bool goes_on = m->hold[0] == ' ' || m->hold[0] == '\t';
	size_t len;

	if (c == '\n' || m->held == HOLD_MAX) {
		if (m->where != IN_HEADER || !goes_on ||
		    m->head.field == FIELD_NONE)
			take_line(m);
		else
			put_held(m, field_octet);
	} else if (may_be_boundary(m)) {
		return;
	} else if (m->where != IN_HEADER) {
		put_held(m, body_octet);
	} else if (goes_on && m->head.field != FIELD_NONE) {
		put_held(m, field_octet);
	} else if (c == ':') {
		len = name_len(m);
		if (len > 0)
			begin_field(m, len);
		else
			leave_header(m);
	}
}

static void
octet(struct mime *m, char c)
{
	if (m->line == LINE_BODY) {
		body_octet(m, c);
	} else if (m->line == LINE_FIELD) {
		field_octet(m, c);
	} else {
		m->hold[m->held++] = c;
		take_held(m);
	}
}

static void
drain(struct mime *m)
{
	while (m->back_at < m->back_len)
		octet(m, m->back[m->back_at++]);
}

/* Octets of a line of a body that need no look one by one, its end with them.
 */
static size_t
plain_run(struct mime *m, const char *data, size_t len)
{
	const char *end;
	size_t i;

	if (m->line != LINE_BODY || m->where != IN_LEAF || m->change)
		return 0;
	end = memchr(data, '\n', len);
	if (end != NULL)
		len = (size_t)(end - data) + 1;
	for (i = 0; m->plan == NULL && !m->marked && i < len; i++)
		if ((unsigned char)data[i] >= 0x80)
			mime_note_eight(m);
	mime_put(m, data, len);
	m->line = end != NULL ? LINE_HELD : LINE_BODY;
	return len;
}

/* ---- the whole ---- */

int
mime_new(const struct mime_plan *plan, struct mime **ret_mime)
{
	struct mime *m = calloc(1, sizeof(*m));

	if (m == NULL)
		return -ENOMEM;
	m->plan = plan;
	m->own.header_utf8 = true;
	mime_begin_part(m, true, MIME_LEAF);
	*ret_mime = m;
	return 0;
}

void
mime_free(struct mime **mime)
{
	free(*mime);
	*mime = NULL;
}

int
mime_feed(struct mime *m, const char *data, size_t len, struct buf *out)
{
	size_t i = 0, run;

	m->out = out;
	while (i < len && m->error == 0) {
		run = plain_run(m, data + i, len - i);
		i += run;
		if (run > 0)
			continue;
		octet(m, data[i++]);
		drain(m);
	}
	return m->error;
}

int
mime_end(struct mime *m, struct buf *out)
{
	m->out = out;
	m->ended = true;
	/* A last line without an end; what leaves a header is judged again. */
	while (m->held > 0 && m->error == 0) {
		take_line(m);
		drain(m);
	}
	end_part(m);
	mime_pop_to(m, 0);
	m->own.nparts = m->nparts;
	return m->error;
}

bool
mime_header_is_over(const struct mime *m)
{
	return m->part > 0 || m->where != IN_HEADER;
}

const struct mime_plan *
mime_plan(const struct mime *m)
{
	return &m->own;
}
