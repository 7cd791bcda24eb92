#include "base/address_list.h"

#include "base/address.h"
#include "base/buf.h"
#include "base/text.h"

#include <errno.h>
#include <string.h>

enum token {
	T_END,
	/* None of these four follows a closed angle bracket. */
	T_WORD,    /* atom, quoted string or domain literal, in text */
	T_LITERAL, /* [1.2.3.4] */
	T_DOT,
	T_AT,
	T_COMMA,
	T_SEMICOLON,
	T_COLON,
	T_OPEN,  /* < */
	T_CLOSE, /* > */
	T_NTOKENS,
};

/* Where an address may be in: the part before the first at sign, the part
 * behind it, and behind a closed angle bracket. */
struct parser {
	const char *p, *end;
	struct buf text; /* of the token: without quotes and folds */
	bool quoted;     /* the word was a quoted string */

	struct buf local, domain;
	bool any; /* of the address was seen */
	bool has_local;
	bool has_at;   /* an at sign was seen */
	bool adjacent; /* the last token was a word: another one makes both a
			  display name */
	bool phrase;   /* can only be a display name so far */
	bool in_angle, had_angle, in_group;
	bool bad_dots; /* a dot of the local part is not between two words */
	struct address_place place; /* of its parts, in the list */

	const char *default_domain;
	address_list_each *each;
	address_list_each_place *each_place;
	void *arg;
	const char *list, *token; /* the token begins here */
};

/* ---- tokens ---- */

static bool
is_control(char c)
{
	return (unsigned char)c < 0x20 || c == 0x7f;
}

/* A line end at p that is a fold, or the end of the field: its length. */
static size_t
fold_len(const char *p, const char *end)
{
	size_t n = *p == '\n'                           ? 1
	    : *p == '\r' && p + 1 < end && p[1] == '\n' ? 2
							: 0;

	if (n == 0 || p + n == end || text_is_blank(p[n]))
		return n;
	return 0;
}

/* Nested comments, by counting. */
static int
skip_comment(struct parser *ps)
{
	size_t depth = 0;

	for (; ps->p < ps->end; ps->p++) {
		if (*ps->p == '\\' && ps->p + 1 < ps->end)
			ps->p++;
		else if (*ps->p == '(')
			depth++;
		else if (*ps->p == ')' && --depth == 0) {
			ps->p++;
			return 0;
		}
	}
	return -EINVAL;
}

static int
skip_blanks(struct parser *ps)
{
	while (ps->p < ps->end) {
		size_t n = fold_len(ps->p, ps->end);

		if (*ps->p == '(') {
			int r = skip_comment(ps);

			if (r < 0)
				return r;
		} else if (n > 0 || text_is_blank(*ps->p))
			ps->p += n > 0 ? n : 1;
		else
			break;
	}
	return 0;
}

/* Until the closing character; both are left away, escapes are undone. */
static int
take_enclosed(struct parser *ps, char close)
{
	for (ps->p++; ps->p < ps->end; ps->p++) {
		size_t n = fold_len(ps->p, ps->end);
		int r;

		if (*ps->p == close) {
			ps->p++;
			return 0;
		}
		if (n > 0) {
			ps->p += n - 1;
			continue;
		}
		if (*ps->p == '\\' && ps->p + 1 < ps->end)
			ps->p++;
		if (is_control(*ps->p) && *ps->p != '\t')
			return -EILSEQ;
		r = buf_add_char(&ps->text, *ps->p);
		if (r < 0)
			return r;
	}
	return -EINVAL;
}

static bool
is_atom_char(char c)
{
	return !text_is_blank(c) && !is_control(c) &&
	    strchr("()<>[]:;@\\,.\"", c) == NULL;
}

static int
take_atom(struct parser *ps)
{
	const char *start = ps->p;

	while (ps->p < ps->end && is_atom_char(*ps->p))
		ps->p++;
	if (ps->p == start)
		return is_control(*ps->p) ? -EILSEQ : -EINVAL;
	return buf_add(&ps->text, start, (size_t)(ps->p - start));
}

static int
take_word(struct parser *ps, enum token *ret_token)
{
	ps->quoted = *ps->p == '"';
	*ret_token = *ps->p == '[' ? T_LITERAL : T_WORD;
	if (ps->quoted)
		return take_enclosed(ps, '"');
	return *ps->p == '[' ? take_enclosed(ps, ']') : take_atom(ps);
}

static int
next_token(struct parser *ps, enum token *ret_token)
{
	static const char specials[] = ".@,;:<>";
	static const enum token tokens[] = { T_DOT, T_AT, T_COMMA, T_SEMICOLON,
		T_COLON, T_OPEN, T_CLOSE };
	const char *found;
	int r = skip_blanks(ps);

	if (r < 0)
		return r;
	ps->token = ps->p;
	buf_reset(&ps->text);
	*ret_token = T_END;
	if (ps->p == ps->end)
		return 0;
	found = *ps->p == '\0' ? NULL : strchr(specials, *ps->p);
	if (found == NULL)
		return take_word(ps, ret_token);
	*ret_token = tokens[found - specials];
	ps->p++;
	return 0;
}

/* ---- one address ---- */

static void
forget_address(struct parser *ps)
{
	buf_reset(&ps->local);
	buf_reset(&ps->domain);
	ps->any = ps->has_local = ps->has_at = false;
	ps->adjacent = ps->phrase = ps->bad_dots = false;
	ps->place = (struct address_place){ 0 };
}

/* Atoms and single dots between them (RFC 5322 dot-atom). */
static bool
is_dot_atom(const struct buf *b)
{
	size_t i;
	bool dot = true;

	for (i = 0; i < b->len; i++) {
		char c = b->data[i];

		if (c == '.' ? dot : !is_atom_char(c))
			return false;
		dot = c == '.';
	}
	return !dot;
}

/* A dot-atom, maybe with the dot of the root behind. */
static bool
is_domain(const struct buf *b)
{
	struct buf name = *b;

	if (name.len > 1 && name.data[name.len - 1] == '.')
		name.len--;
	return is_dot_atom(&name);
}

static int
add_local(const struct parser *ps, struct buf *out)
{
	const struct buf *local = &ps->local;

	if (is_dot_atom(local))
		return buf_add(out, local->data, local->len);
	return buf_add_quoted(out, local->data, local->len);
}

/* "[…]" without brackets, escapes or blanks in it. */
static bool
is_literal(const struct buf *b)
{
	return b->len > 2 && b->data[0] == '[' &&
	    strcspn(b->data + 1, "[]\\ \t") == b->len - 2 &&
	    b->data[b->len - 1] == ']';
}

static int
add_domain(const struct parser *ps, struct buf *out)
{
	int r = buf_add_char(out, '@');

	if (r < 0)
		return r;
	if (ps->has_at)
		return buf_add(out, ps->domain.data, ps->domain.len);
	return buf_add_str(out, ps->default_domain);
}

/* An address that is checked, as its caller wants it. */
static int
pass_address(struct parser *ps, const struct buf *address)
{
	if (ps->each != NULL)
		return ps->each(ps->arg, address->data, address->len);
	ps->place.address = ps->has_at ? address->data : NULL;
	/* Dots in wrong places were given quotes, which the list lacks. */
	ps->place.plain = !ps->bad_dots && (ps->has_at || ps->adjacent);
	return ps->each_place(ps->arg, &ps->place);
}

static int
emit_address(struct parser *ps)
{
	struct buf out = { 0 };
	int r;

	if (ps->phrase || !ps->has_local)
		return -EINVAL;
	if (ps->has_at && !is_literal(&ps->domain) && !is_domain(&ps->domain))
		return -EINVAL;
	if (ps->local.len > ADDRESS_MAX || ps->domain.len > ADDRESS_MAX)
		return -ENAMETOOLONG;
	r = add_local(ps, &out);
	if (r == 0)
		r = add_domain(ps, &out);
	if (r == 0)
		r = address_check(out.data, out.len);
	if (r == 0)
		r = pass_address(ps, &out);
	buf_done(&out);
	return r;
}

/* The end of an element: `,`, `;` or the end of the list, outside of angle
 * brackets. */
static int
end_element(struct parser *ps)
{
	int r = 0;

	if (ps->in_angle)
		return -EINVAL;
	if (!ps->had_angle && ps->any)
		r = emit_address(ps);
	ps->had_angle = false;
	forget_address(ps);
	return r;
}

/* ---- actions, one for each token ---- */

/* The token that was read belongs to the local part or, behind the at sign, to
 * the domain. */
static void
note_part(struct parser *ps)
{
	struct address_place *place = &ps->place;
	size_t *at = ps->has_at ? &place->domain : &place->local;
	size_t *end = ps->has_at ? &place->domain_end : &place->local_end;

	if (*end == 0)
		*at = (size_t)(ps->token - ps->list);
	*end = (size_t)(ps->p - ps->list);
	ps->has_local |= !ps->has_at;
}

static int
on_word(struct parser *ps)
{
	if (ps->adjacent || (ps->has_at && ps->quoted))
		ps->phrase = true;
	ps->any = ps->adjacent = true;
	note_part(ps);
	return buf_add(
	    ps->has_at ? &ps->domain : &ps->local, ps->text.data, ps->text.len);
}

/* Only ever the whole of a domain. */
static int
on_literal(struct parser *ps)
{
	int r;

	if (!ps->has_at || ps->domain.len > 0)
		ps->phrase = true;
	ps->any = ps->adjacent = true;
	if (ps->has_at)
		note_part(ps);
	r = buf_add_char(&ps->domain, '[');
	if (r == 0)
		r = buf_add(&ps->domain, ps->text.data, ps->text.len);
	return r < 0 ? r : buf_add_char(&ps->domain, ']');
}

static int
on_dot(struct parser *ps)
{
	ps->any = true;
	note_part(ps);
	ps->bad_dots |= !ps->has_at && !ps->adjacent;
	ps->adjacent = false;
	return buf_add_char(ps->has_at ? &ps->domain : &ps->local, '.');
}

static int
on_at(struct parser *ps)
{
	/* `@a,@b:` is a route, and goes at its colon; a second at sign can
	 * only be part of a display name. */
	if (ps->has_at || (!ps->in_angle && !ps->has_local))
		ps->phrase = true;
	ps->bad_dots |= !ps->has_at && !ps->adjacent;
	ps->any = ps->has_at = true;
	ps->adjacent = false;
	return 0;
}

static int
on_comma(struct parser *ps)
{
	if (!ps->in_angle)
		return end_element(ps);
	/* In angle brackets only a route has commas. */
	if (ps->has_local)
		return -EINVAL;
	ps->phrase = true;
	ps->adjacent = false;
	return 0;
}

static int
on_colon(struct parser *ps)
{
	if (ps->in_angle) {
		if (!ps->has_at || ps->has_local)
			return -EINVAL;
		forget_address(ps);
		return 0;
	}
	if (ps->in_group || ps->had_angle)
		return -EINVAL;
	ps->in_group = true;
	forget_address(ps);
	return 0;
}

static int
on_semicolon(struct parser *ps)
{
	int r = end_element(ps);

	ps->in_group = false;
	return r;
}

static int
on_open(struct parser *ps)
{
	if (ps->in_angle || ps->had_angle)
		return -EINVAL;
	forget_address(ps);
	ps->in_angle = true;
	return 0;
}

static int
on_close(struct parser *ps)
{
	if (!ps->in_angle)
		return -EINVAL;
	ps->in_angle = false;
	ps->had_angle = true;
	if (!ps->any)
		return ps->each == NULL ? 0 : ps->each(ps->arg, "", 0);
	return emit_address(ps);
}

static int (*const actions[T_NTOKENS])(struct parser *ps) = {
	[T_END] = end_element,
	[T_WORD] = on_word,
	[T_LITERAL] = on_literal,
	[T_DOT] = on_dot,
	[T_AT] = on_at,
	[T_COMMA] = on_comma,
	[T_SEMICOLON] = on_semicolon,
	[T_COLON] = on_colon,
	[T_OPEN] = on_open,
	[T_CLOSE] = on_close,
};

static int
list_parse(struct parser *ps, const char *list, size_t len, void *arg)
{
	enum token token = T_END;
	int r;

	ps->arg = arg;
	ps->list = ps->p = list;
	ps->end = list + len;
	do {
		r = next_token(ps, &token);
		if (r == 0 && ps->had_angle && token >= T_WORD && token <= T_AT)
			r = -EINVAL;
		if (r == 0)
			r = actions[token](ps);
	} while (r == 0 && token != T_END);
	buf_done(&ps->text);
	buf_done(&ps->local);
	buf_done(&ps->domain);
	return r;
}

int
address_list_parse(const char *list, size_t len, const char *domain,
    address_list_each *each, void *arg)
{
	struct parser ps = { .default_domain = domain, .each = each };

	return list_parse(&ps, list, len, arg);
}

int
address_list_places(
    const char *list, size_t len, address_list_each_place *each, void *arg)
{
	/* A domain of one octet is put behind no address that is passed on. */
	struct parser ps = { .default_domain = "x", .each_place = each };

	return list_parse(&ps, list, len, arg);
}
