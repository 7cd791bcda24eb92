#include "queue-inject/message.h"

#include <errno.h>
#include <string.h>
#include <strings.h>

int
message_refuse_source(struct refusal *why, int error)
{
	if (error == -ETIMEDOUT)
		return refuse(why, REFUSAL_TIMEOUT, "the input takes too long");
	if (error == -ECANCELED)
		return refuse(why, REFUSAL_STOPPED, "stopped by a signal");
	return refuse(
	    why, REFUSAL_READ, "reading the input: %s", strerror(-error));
}

/* ---- reading ---- */

static int
feed_header(struct message *m, struct source *src, struct refusal *why)
{
	const char *data;
	size_t len, used;
	int r = source_peek(src, &data, &len);

	if (r < 0)
		return message_refuse_source(why, r);
	if (r == 0) {
		header_finish(&m->header);
		return 0;
	}
	r = header_feed(&m->header, data, len, &used);
	source_take(src, used);
	if (r == -EFBIG)
		return refuse(why, REFUSAL_HEADER,
		    "the header is larger than %zu bytes", HEADER_MAX);
	if (r < 0)
		return refuse(why, REFUSAL_MEMORY, "out of memory");
	return 0;
}

/* How lines end in this message, by the first one. */
static const char *
find_eol(const struct message *m, struct source *src)
{
	const char *data = buf_str(&m->header.data);
	size_t len = m->header.data.len;

	if (memchr(data, '\n', len) == NULL &&
	    source_peek(src, &data, &len) <= 0)
		len = 0;
	return header_line_end(data, len);
}

static bool
is_one_of(const struct header_field *field, const char *const *names, size_t n)
{
	size_t i;

	for (i = 0; i < n; i++)
		if (header_field_is(field, names[i]))
			return true;
	return false;
}

static const char *const resent_rcpt_fields[] = { "Resent-To", "Resent-Cc",
	"Resent-Bcc" };

static bool
has_prefix(const struct header_field *field, const char *prefix)
{
	size_t len = strlen(prefix);

	return field->name_len > len &&
	    strncasecmp(field->name, prefix, len) == 0;
}

int
message_read(struct message *m, struct source *src, struct refusal *why)
{
	struct header_field field;
	size_t pos = 0;

	while (!m->header.complete) {
		int r = feed_header(m, src, why);

		if (r < 0)
			return r;
	}
	m->eol = find_eol(m, src);
	while (header_next(&m->header, &pos, &field)) {
		m->resent |= has_prefix(&field, "Resent-");
		m->resent_rcpts |= is_one_of(
		    &field, resent_rcpt_fields, ARRAY_LEN(resent_rcpt_fields));
	}
	return 0;
}

/* ---- addresses without a domain ---- */

/* Of a field whose value begins at this place of the header. */
struct bare {
	struct buf *places;
	size_t value;
};

static int
note_bare(void *arg, const struct address_place *place)
{
	const struct bare *bare = arg;
	const size_t at = bare->value + place->local_end;

	if (place->address != NULL)
		return 0;
	return place->plain ? buf_add(bare->places, &at, sizeof(at)) : -EINVAL;
}

int
message_qualify(struct message *m, const char *domain, struct refusal *why)
{
	/* Bcc and Resent-Bcc are not written. */
	static const char *const names[] = { "From", "Sender", "Reply-To", "To",
		"Cc", "Resent-From", "Resent-Sender", "Resent-Reply-To",
		"Resent-To", "Resent-Cc" };
	struct header_field field;
	size_t pos = 0;

	m->domain = domain;
	while (header_next(&m->header, &pos, &field)) {
		const size_t before = m->places.len;
		struct bare bare = { &m->places,
			(size_t)(field.value - m->header.data.data) };
		int r;

		if (!is_one_of(&field, names, ARRAY_LEN(names)))
			continue;
		r = address_list_places(
		    field.value, field.value_len, note_bare, &bare);
		if (r == -ENOMEM)
			return refuse(why, REFUSAL_MEMORY, "out of memory");
		if (r < 0)
			m->places.len = before;
	}
	return 0;
}

/* ---- recipients ---- */

struct gather {
	struct envelope *envelope;
	struct refusal *why;
};

static int
gather_rcpt(void *arg, const char *address, size_t len)
{
	struct gather *g = arg;

	return envelope_add_rcpt(g->envelope, address, len, g->why) < 0
	    ? -ECANCELED
	    : 0;
}

static bool
is_recipient_field(const struct message *m, const struct header_field *field)
{
	static const char *const names[] = { "To", "Cc", "Bcc" };

	return m->resent_rcpts ? is_one_of(field, resent_rcpt_fields,
				     ARRAY_LEN(resent_rcpt_fields))
			       : is_one_of(field, names, ARRAY_LEN(names));
}

int
message_recipients(const struct message *m, const char *domain,
    struct envelope *e, struct refusal *why)
{
	struct gather g = { e, why };
	struct header_field field;
	size_t pos = 0;

	while (header_next(&m->header, &pos, &field)) {
		int r;

		if (!is_recipient_field(m, &field))
			continue;
		r = address_list_parse(
		    field.value, field.value_len, domain, gather_rcpt, &g);
		/* -ECANCELED: the reason is there already. */
		if (r == -ECANCELED)
			return -1;
		if (r < 0)
			return refuse_error(why, r,
			    r == -EILSEQ ? "control character in an address of "
					   "the header"
				: r == -ENAMETOOLONG
				? "address too long in the header"
				: "malformed address in the header");
	}
	return 0;
}

/* ---- completing ---- */

static bool
has_field(const struct message *m, const char *prefix, const char *name)
{
	size_t len = strlen(prefix), pos = 0;
	struct header_field field;

	while (header_next(&m->header, &pos, &field))
		if (field.name_len == len + strlen(name) &&
		    strncasecmp(field.name, prefix, len) == 0 &&
		    strncasecmp(field.name + len, name, strlen(name)) == 0)
			return true;
	return false;
}

int
message_complete(
    struct message *m, const struct message_author *author, struct refusal *why)
{
	const struct compose c = { &m->added, m->resent ? "Resent-" : "",
		m->eol };
	int r = 0;

	if (!has_field(m, c.prefix, "From"))
		r = compose_from(&c, author->full_name, author->address);
	if (r == 0 && !has_field(m, c.prefix, "Date"))
		r = compose_date(&c, author->wall);
	if (r == 0 && !has_field(m, c.prefix, "Message-ID"))
		r = compose_message_id(
		    &c, author->wall, author->random, author->host);
	return r < 0 ? refuse(why, REFUSAL_MEMORY, "out of memory") : 0;
}

/* ---- writing ---- */

static bool
is_left_away(const struct header_field *field)
{
	static const char *const names[] = { "Bcc", "Resent-Bcc", "Return-Path",
		"Content-Length" };

	return is_one_of(field, names, ARRAY_LEN(names));
}

/* The place of this number, if it is not behind the end of a field. A field
 * that the message ends with may end in an address. */
static bool
place_within(
    const struct message *m, size_t number, size_t end, size_t *ret_place)
{
	if (number >= m->places.len / sizeof(*ret_place))
		return false;
	memcpy(ret_place, m->places.data + number * sizeof(*ret_place),
	    sizeof(*ret_place));
	return *ret_place <= end;
}

/* A field with the domains that it lacks; *number: of the next place. Domains
 * count against message_size_limit, since there may be many. */
static int
write_field(const struct message *m, const struct header_field *field,
    size_t *number, struct submission *s)
{
	const char *const data = m->header.data.data;
	size_t at = (size_t)(field->raw - data), end = at + field->raw_len;
	size_t place = 0;
	int r = 0;

	for (; r == 0 && place_within(m, *number, end, &place); (*number)++) {
		r = submission_content(s, data + at, place - at);
		if (r == 0)
			r = submission_content(s, "@", 1);
		if (r == 0)
			r = submission_content(s, m->domain, strlen(m->domain));
		at = place;
	}
	return r < 0 ? r : submission_content(s, data + at, end - at);
}

static int
write_fields(const struct message *m, struct submission *s)
{
	const struct header *h = &m->header;
	struct header_field field;
	size_t pos = 0, number = 0;
	int r = 0;

	while (r == 0 && header_next(h, &pos, &field))
		if (!is_left_away(&field))
			r = write_field(m, &field, &number, s);
	return r;
}

int
message_write(const struct message *m, struct submission *s)
{
	const struct header *h = &m->header;
	int r = submission_added(s, buf_str(&m->added), m->added.len);

	if (r == 0)
		r = write_fields(m, s);
	/* An empty line that is there comes with the part of the body that was
	 * read. */
	if (r == 0 && !h->separated &&
	    (h->data.len > h->end || h->end == h->begin))
		r = submission_added(s, m->eol, strlen(m->eol));
	if (r == 0 && h->data.len > h->end)
		r = submission_content(
		    s, h->data.data + h->end, h->data.len - h->end);
	return r;
}

void
message_done(struct message *m)
{
	header_done(&m->header);
	buf_done(&m->added);
	buf_done(&m->places);
}
