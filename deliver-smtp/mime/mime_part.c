#include "deliver-smtp/mime/mime_inside.h"

#include <errno.h>
#include <string.h>

/* ---- out ---- */

void
mime_put(struct mime *m, const char *data, size_t len)
{
	if (m->plan != NULL && m->error == 0)
		m->error = buf_add(m->out, data, len);
}

void
mime_put_text(struct mime *m, const char *text)
{
	mime_put(m, text, strlen(text));
}

/* ---- notes of a survey ---- */

static void
fault(struct mime *m, enum mime_fault what)
{
	if (m->own.fault == MIME_FINE)
		m->own.fault = what;
}

static void
mark(struct mime *m, uint32_t part)
{
	if (part >= MIME_PARTS_MAX)
		fault(m, MIME_FAULT_MALFORMED);
	else
		m->own.change[part / 8] |= (unsigned char)(1 << part % 8);
}

/* An octet above 127 in the current part, or between parts. */
void
mime_note_eight(struct mime *m)
{
	size_t i;

	if (m->marked)
		return;
	m->marked = m->own.eight = true;
	for (i = 0; i < m->depth; i++) {
		if (m->levels[i].type.kind == MIME_SIGNED)
			fault(m, MIME_FAULT_SIGNED);
		mark(m, m->levels[i].part);
	}
	if (m->where == IN_MULTI)
		m->levels[m->depth - 1].eight = true;
	else if (m->encodable)
		mark(m, m->part);
	else
		fault(m, MIME_FAULT_MALFORMED);
}

/* The length of a character from its first octet on, less one. */
static unsigned
utf8_rest(unsigned char c)
{
	return c >= 0xc2 && c < 0xe0 ? 1
	    : c >= 0xe0 && c < 0xf0  ? 2
	    : c >= 0xf0 && c < 0xf5  ? 3
				     : 0;
}

void
mime_note_header(struct mime *m, unsigned char c)
{
	const bool rest = (c & 0xc0) == 0x80;

	if (m->plan != NULL || (c < 0x80 && m->utf8_due == 0))
		return;
	if (m->part > 0) {
		if (c >= 0x80)
			fault(m, MIME_FAULT_HEADER);
		return;
	}
	m->own.header = true;
	if (rest != (m->utf8_due > 0) || (!rest && utf8_rest(c) == 0))
		m->own.header_utf8 = false;
	m->utf8_due = rest && m->utf8_due > 0 ? m->utf8_due - 1 : utf8_rest(c);
}

/* ---- parts ---- */

void
mime_begin_part(struct mime *m, bool message, enum mime_kind kind)
{
	m->part = m->nparts++;
	m->change = m->plan != NULL && m->part < MIME_PARTS_MAX &&
	    (m->plan->change[m->part / 8] & 1 << m->part % 8) != 0;
	m->head = (struct head){ .message = message, .kind = kind };
	m->where = IN_HEADER;
	m->marked = false;
	m->quoted = (struct quoted){ 0 };
}

/* Octets between parts that never came are all of the content: to leave them
 * out would lose it. */
void
mime_pop_to(struct mime *m, size_t depth)
{
	for (; m->depth > depth; m->depth--)
		if (m->levels[m->depth - 1].eight &&
		    !m->levels[m->depth - 1].seen)
			fault(m, MIME_FAULT_MALFORMED);
}

static void
push(struct mime *m, enum mime_kind kind)
{
	struct level *level = &m->levels[m->depth++];

	*level = (struct level){ .part = m->part, .type = m->head.type };
	level->type.kind = kind;
	if (kind == MIME_MESSAGE)
		level->type.boundary[0] = '\0';
}

/* The kind that the header makes the part. */
static enum mime_kind
judge(const struct mime *m)
{
	const struct head *h = &m->head;
	const bool declared = !h->malformed && h->coding != MIME_CODING_DONE &&
	    h->coding != MIME_CODING_UNKNOWN;

	if (!declared)
		return MIME_OPAQUE;
	if (h->kind == MIME_LEAF || h->kind == MIME_OPAQUE)
		return h->kind;
	if (m->depth == MIME_DEPTH_MAX ||
	    (h->kind != MIME_MESSAGE && h->type.boundary[0] == '\0'))
		return MIME_OPAQUE;
	return h->kind;
}

static void
put_fields(struct mime *m, enum mime_kind kind)
{
	const struct head *h = &m->head;

	if (h->message && !h->has_version) {
		mime_put_text(m, "MIME-Version: 1.0\n");
		/* RFC 1428: nobody knows the character set. */
		if (!h->has_type)
			mime_put_text(m,
			    "Content-Type: text/plain; charset=unknown-8bit\n");
	}
	if (kind == MIME_LEAF)
		mime_put_text(
		    m, "Content-Transfer-Encoding: quoted-printable\n");
	else if (h->has_coding)
		mime_put_text(m, "Content-Transfer-Encoding: 7bit\n");
}

/* blank: the line that ends it, or NULL when another line does. */
void
mime_end_header(struct mime *m, const char *blank, size_t len)
{
	const enum mime_kind kind = judge(m);

	if (m->change)
		put_fields(m, kind);
	if (blank != NULL)
		mime_put(m, blank, len);
	else if (m->change)
		mime_put_text(m, "\n");
	m->encodable = kind == MIME_LEAF;
	m->where = IN_LEAF;
	if (kind == MIME_LEAF || kind == MIME_OPAQUE)
		return;
	push(m, kind);
	m->where = IN_MULTI;
	if (kind == MIME_MESSAGE)
		mime_begin_part(m, true, MIME_LEAF);
}
