/* One line of an alias file: its key and its members, cut in place. */
#include "route/alias.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/address.h"
#include "base/domain.h"
#include "route/nexthop.h"

/* Characters that an address without quotes cannot have. */
#define SPECIALS " \t\"\\()<>,;:[]@"

static const char no_quote[] = "a quote is not closed";
static const char tab[] = "a tab within quotes: no address has one";

static bool
is_blank(char c)
{
	return c == ' ' || c == '\t';
}

/* The first `stop` that is not within quotes, or the end; NULL: a quote is not
 * closed. */
static char *
find_outside(char *s, char stop)
{
	bool quoted = false;

	for (; *s != '\0' && (quoted || *s != stop); s++) {
		if (*s == '"')
			quoted = !quoted;
		else if (quoted && *s == '\\' && s[1] != '\0')
			s++;
	}
	return quoted ? NULL : s;
}

void
alias_line_uncomment(char *s)
{
	char *p = s, *hash;

	while ((hash = find_outside(p, '#')) != NULL && *hash == '#') {
		if (hash == s || is_blank(hash[-1])) {
			*hash = '\0';
			return;
		}
		p = hash + 1;
	}
}

static void
cut_blanks(char *begin, char *end)
{
	while (end > begin && is_blank(end[-1]))
		end--;
	*end = '\0';
}

/* The end of a quoted string that begins here, behind its quote. */
static const char *
quoted_end(const char *s)
{
	for (s++; *s != '"' && *s != '\0'; s++)
		if (*s == '\\' && s[1] != '\0')
			s++;
	return *s == '"' ? s + 1 : s;
}

/* Takes away the quotes, and each backslash within them. */
static void
unquote(char *s)
{
	bool quoted = false;
	char *to = s;

	for (; *s != '\0'; s++) {
		if (*s == '"') {
			quoted = !quoted;
			continue;
		}
		if (quoted && *s == '\\' && s[1] != '\0')
			s++;
		*to++ = *s;
	}
	*to = '\0';
}

/* All of it stands within one pair of quotes, which it loses. */
static bool
take_quotes(char *s)
{
	if (*s != '"' || *quoted_end(s) != '\0')
		return false;
	unquote(s);
	return true;
}

/* ---- members ---- */

/* A local part as an envelope has it; len is its length. */
static const char *
judge_local(const char *address, size_t len)
{
	size_t fit = strcspn(address, SPECIALS);

	if (len == 0)
		return "no user in front of the @";
	if (*address == '"')
		return quoted_end(address) == address + len
		    ? NULL
		    : "a quote within an address";
	if (fit >= len)
		return NULL;
	return is_blank(address[fit])
	    ? "a blank within an address: members stand between commas, names "
	      "with blanks in quotes"
	    : "this is no plain address";
}

static const char *
judge_address(const char *address)
{
	const char *domain = address_domain(address), *why;
	size_t local = address_local_len(address);
	char folded[DOMAIN_MAX + 1];

	if (strlen(address) > ADDRESS_MAX)
		return "the address is too long";
	why = judge_local(address, local);
	if (why != NULL || address[local] == '\0')
		return why;
	if (domain_normalize(domain, folded, &why) < 0)
		return domain_is_utf8(domain) ? why : "not a domain";
	return nexthop_fits_domain(folded) ? NULL : "not a domain";
}

/* Puts a local part that needs quotes into quotes again. The text had them, so
 * there is room. */
static void
requote(char *text)
{
	char local[ADDRESS_MAX + 1], *to = text;
	size_t len = address_local_len(text), i;
	size_t rest = strlen(text + len) + 1;

	if (len == 0 || strcspn(text, SPECIALS) >= len)
		return;
	memcpy(local, text, len);
	for (i = 0; i < len; i++)
		to += 1 + (local[i] == '"' || local[i] == '\\');
	memmove(to + 2, text + len, rest);
	to = text;
	*to++ = '"';
	for (i = 0; i < len; i++) {
		if (local[i] == '"' || local[i] == '\\')
			*to++ = '\\';
		*to++ = local[i];
	}
	*to = '"';
}

/* `Name <address>` and `address (comment)` have an address as in a header; what
 * is in neither form stays. */
static char *
plain_address(char *text)
{
	char *open = find_outside(text, '<'), *end = text + strlen(text);

	if (open != NULL && *open == '<' && end[-1] == '>') {
		end[-1] = '\0';
		open += 1 + strspn(open + 1, " \t");
		cut_blanks(open, end - 1);
		return open;
	}
	open = find_outside(text, '(');
	if (open != NULL && *open == '(' && open > text && end[-1] == ')')
		cut_blanks(text, open);
	return text;
}

static const char *
take_address(char *text, bool quoted, struct alias_member *ret)
{
	if (!quoted)
		text = plain_address(text);
	if (*text == '\0')
		return "an empty name";
	if (strchr("|:/", *text) != NULL)
		return "this is no plain address";
	if (strlen(text) > ADDRESS_MAX)
		return "the address is too long";
	if (quoted)
		requote(text);
	else if (*text == '\\' && strchr("\"\\|:/", text[1]) == NULL)
		text++; /* \name: the name, and never an instruction */
	ret->text = text;
	return judge_address(text);
}

static const char *
take_program(char *text, bool quoted, struct alias_member *ret)
{
	ret->kind = ALIAS_PROGRAM;
	text += 1 + strspn(text + 1, " \t");
	if (!quoted)
		(void)take_quotes(text); /* |"command word" */
	text += strspn(text, " \t");
	ret->text = text;
	if (*text == '\0')
		return "no command behind the |";
	return strlen(text) < ADDRESS_MAX ? NULL : "the command is too long";
}

/* The path of an include file or of a mailbox. An instruction of an include
 * file joins the path of that file and its own by a colon (alias.h). */
static const char *
judge_path(const char *path, bool quoted, size_t room)
{
	if (!quoted && strpbrk(path, " \t\"") != NULL)
		return "a path with blanks stands in quotes: \"/a path\", "
		       "\":include:/a path\"";
	return strlen(path) <= room ? NULL : "the path is too long";
}

static const char *
take_include(char *text, bool quoted, struct alias_member *ret)
{
	ret->kind = ALIAS_INCLUDE;
	ret->text = text;
	if (*text != '/')
		return "the path of an include file is not absolute";
	if (strstr(text, ":|") != NULL || strstr(text, ":/") != NULL)
		return "the path of an include file has :| or :/ in it";
	return judge_path(
	    text, quoted, ADDRESS_MAX - strlen(ALIAS_INCLUDE_PREFIX));
}

static const char *
take_refusal(char *text, bool quoted UNUSED, struct alias_member *ret)
{
	ret->kind = ALIAS_REFUSAL;
	ret->text = *text != '\0' ? text : "mail for this address is refused";
	return NULL;
}

static const char *
take_blackhole(char *text UNUSED, bool quoted UNUSED, struct alias_member *ret)
{
	ret->kind = ALIAS_NOTHING;
	ret->text = "/dev/null";
	return NULL;
}

/* Members that begin with a colon. */
static const struct colon_word {
	const char *name;
	const char *(*take)(char *text, bool quoted, struct alias_member *ret);
	bool whole; /* the text is the rest of the line, commas as well */
} colon_words[] = {
	{ ALIAS_INCLUDE_PREFIX, take_include, false },
	{ ":fail:", take_refusal, true },
	{ ":error:", take_refusal, true },
	{ ":blackhole:", take_blackhole, false },
};

static const struct colon_word *
find_colon_word(const char *text)
{
	size_t i;

	for (i = 0; i < ARRAY_LEN(colon_words); i++)
		if (strncasecmp(text, colon_words[i].name,
			strlen(colon_words[i].name)) == 0)
			return &colon_words[i];
	return NULL;
}

static const char *
take_colon(char *text, bool quoted, struct alias_member *ret)
{
	const struct colon_word *word = find_colon_word(text);

	if (word == NULL)
		return "a member that begins with a colon is :include:/path, "
		       ":fail: text, :error: text or :blackhole:";
	text += strlen(word->name);
	return word->take(text + strspn(text, " \t"), quoted, ret);
}

static const char *
take_path(char *text, bool quoted, struct alias_member *ret)
{
	const bool nothing = strcmp(text, "/dev/null") == 0;

	ret->kind = nothing ? ALIAS_NOTHING : ALIAS_FILE;
	ret->text = text;
	return judge_path(text, quoted, ADDRESS_MAX);
}

static const char *
take_text(char *text, struct alias_member *ret)
{
	bool quoted = take_quotes(text);

	ret->kind = ALIAS_ADDRESS;
	switch (*text) {
	case '\0':
		return "an empty name";
	case '|':
		return take_program(text, quoted, ret);
	case ':':
		return take_colon(text, quoted, ret);
	case '/':
		return take_path(text, quoted, ret);
	default:
		return take_address(text, quoted, ret);
	}
}

int
alias_line_member(char **at, struct alias_member *ret, const char **ret_why)
{
	char *text = *at + strspn(*at, " \t,"), *end;
	const struct colon_word *word;
	const char *why = no_quote;
	struct alias_member member;

	if (*text == '\0')
		return 0;
	word = find_colon_word(text);
	end = word != NULL && word->whole ? text + strlen(text)
					  : find_outside(text, ',');
	if (end != NULL) {
		*at = *end == '\0' ? end : end + 1;
		cut_blanks(text, end);
		why = take_text(text, &member);
		if (why == NULL && strchr(member.text, '\t') != NULL)
			why = tab;
	}
	if (why != NULL) {
		*ret_why = why;
		return -EINVAL;
	}
	*ret = member;
	return 1;
}

/* ---- keys ---- */

/* The colon that ends the key, which may be user@[IPv6:2001:db8::1]. */
static char *
find_colon(char *line)
{
	char *colon = find_outside(line, ':');
	char *literal = find_outside(line, '@');

	if (colon == NULL || literal == NULL || *literal == '\0' ||
	    literal > colon || literal[1] != '[')
		return colon;
	literal = strchr(literal, ']');
	return literal == NULL ? colon : find_outside(literal, ':');
}

/* Of a key as it is written. */
static const char *
judge_local_key(const char *key)
{
	const char *rest = *key == '"' ? quoted_end(key) : key;
	size_t fit = strcspn(rest, SPECIALS);

	if ((rest[fit] == '\0' || rest[fit] == '@') &&
	    (rest == key || fit == 0))
		return NULL;
	return is_blank(rest[fit]) ? "a blank within a name that is not quoted"
				   : "this is no name";
}

static const char *
judge_key(char *key)
{
	const char *why = judge_local_key(key);
	char *at;

	if (why != NULL)
		return why;
	unquote(key);
	at = strchr(key, '@');
	if (*key == '\0')
		return "an empty name";
	if (strchr(key, '\t') != NULL)
		return tab;
	if (strlen(key) > ALIAS_KEY_MAX)
		return "the name is too long";
	nexthop_lower_case(key);
	if (at != NULL && strchr(at + 1, '@') != NULL)
		return "more than one @";
	return at == NULL || nexthop_fits_domain(at + 1) ? NULL
							 : "not a domain";
}

const char *
alias_line_key(char **at, const char **ret_key)
{
	char *key = *at, *colon = find_colon(key);
	const char *why;

	if (colon == NULL)
		return no_quote;
	if (*colon == '\0')
		return "no colon behind the name";
	*at = colon + 1;
	cut_blanks(key, colon);
	why = judge_key(key);
	*ret_key = key;
	return why;
}

/* ---- a line of an include file ---- */

static bool
is_text(const char *line, size_t len)
{
	size_t i;

	for (i = 0; i < len; i++)
		if (((unsigned char)line[i] < 0x20 && line[i] != '\t') ||
		    line[i] == 0x7f)
			return false;
	return true;
}

int
alias_parse_members(const char *line, size_t len,
    int (*each)(void *arg, const struct alias_member *member), void *arg,
    const char **ret_why)
{
	struct alias_member member;
	char *copy, *at;
	int r = 1;

	if (len > 0 && line[len - 1] == '\r')
		len--;
	if (!is_text(line, len)) {
		*ret_why = "control character";
		return -EINVAL;
	}
	at = copy = strndup(line, len);
	if (copy == NULL) {
		*ret_why = "out of memory";
		return -ENOMEM;
	}
	alias_line_uncomment(at);
	while (r > 0 && (r = alias_line_member(&at, &member, ret_why)) > 0) {
		r = each(arg, &member);
		r = r < 0 ? r : 1;
	}
	free(copy);
	return r;
}
