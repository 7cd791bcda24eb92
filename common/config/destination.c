/* mydestination and relayhost: their values, and the domains of this host. */
#include "config/param.h"

#include <errno.h>
#include <string.h>

#include "base/domain.h"
#include "base/text.h"
#include "route/nexthop.h"

static const struct {
	const char *name;
	void (*value)(const struct conf *conf, char out[CONF_HOST_SIZE]);
} variables[] = {
	{ "myhostname", conf_host },
	{ "mydomain", conf_domain },
};

/* The value of the variable that *word begins with, behind the dollar sign;
 * *word is moved behind its name. -EINVAL: there is no such variable. conf
 * NULL: any value. */
static int
add_variable(const struct conf *conf, const char **word, struct buf *out)
{
	size_t len = strspn(*word, "abcdefghijklmnopqrstuvwxyz"), i;
	char value[CONF_HOST_SIZE] = "x";

	for (i = 0; i < ARRAY_LEN(variables); i++)
		if (strlen(variables[i].name) == len &&
		    memcmp(variables[i].name, *word, len) == 0)
			break;
	if (i == ARRAY_LEN(variables))
		return -EINVAL;
	if (conf != NULL)
		variables[i].value(conf, value);
	*word += len;
	return buf_add_str(out, value);
}

static int
add_word(const struct conf *conf, const char *word, size_t len, struct buf *out)
{
	const char *end = word + len;
	int r = 0;

	while (r == 0 && word < end)
		if (*word == '$') {
			word++;
			r = add_variable(conf, &word, out);
		} else {
			r = buf_add_char(out, *word++);
		}
	return r;
}

static bool
is_domain(const char *s)
{
	static const char chars[] =
	    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
	    "0123456789.-_:[]";
	char ascii[DOMAIN_MAX + 1];
	const char *why;
	size_t len;

	if (strcmp(s, "*") == 0)
		return true;
	if (domain_is_utf8(s)) {
		if (domain_normalize(s, ascii, &why) < 0)
			return false;
		s = ascii;
	}
	len = strlen(s);
	return len < CONF_HOST_SIZE && s[0] != '.' && s[0] != '-' &&
	    s[len - 1] != '.' && strstr(s, "..") == NULL &&
	    s[strspn(s, chars)] == '\0';
}

static int
complain(struct buf *why, const char *word, size_t len, const char *text)
{
	int r = buf_printf(why, "\"%.*s\" %s", (int)len, word, text);

	return r < 0 ? r : -EINVAL;
}

int
domains_parse(
    const struct param *p, void *field, const char *value, struct buf *why)
{
	struct buf domain = { 0 };
	const char *rest = value, *word;
	size_t len;
	int r = 0;

	while (r == 0 && (word = text_next_word(&rest, &len)) != NULL) {
		buf_reset(&domain);
		r = add_word(NULL, word, len, &domain);
		if (r == -EINVAL)
			r = complain(why, word, len,
			    "names neither $myhostname nor $mydomain");
		else if (r == 0 && !is_domain(buf_str(&domain)))
			r = complain(why, word, len, "is not a domain");
	}
	buf_done(&domain);
	return r < 0 ? r : param_set_text(p, field, value, why);
}

int
relay_parse(
    const struct param *p, void *field, const char *value, struct buf *why)
{
	char text[NEXTHOP_TEXT_MAX + 1];
	struct nexthop hop;
	int r;

	/* A socket is a next hop of LMTP, and this one is of SMTP. */
	if (*value == '\0' ||
	    (nexthop_parse(value, 1, &hop) == 0 && hop.kind != NEXTHOP_UNIX &&
		nexthop_to_ascii(value, text) == 0))
		return param_set_text(
		    p, field, *value == '\0' ? value : text, why);
	r = text_complain(why, value, nexthop_complaint(value));
	return r < 0 ? r : -EINVAL;
}

/* ---- the next hops after one ---- */

/* -EINVAL with the complaint: the word is not a next hop, or is a socket. */
static int
check_hop(const char *word, size_t len, struct buf *why)
{
	char text[CONF_FALLBACK_SIZE];
	struct nexthop hop;
	int r;

	memcpy(text, word, len);
	text[len] = '\0';
	if (nexthop_parse(text, 1, &hop) == 0 && hop.kind != NEXTHOP_UNIX)
		return 0;
	r = text_complain(why, text, nexthop_complaint(text));
	return r < 0 ? r : -EINVAL;
}

int
fallback_parse(const struct param *p UNUSED, void *field, const char *value,
    struct buf *why)
{
	struct conf_fallback *fallback = field;
	const char *rest = value, *word;
	size_t len = strlen(value);
	int r;

	if (len >= sizeof(fallback->text)) {
		r = buf_printf(why, "is longer than %zu octets",
		    sizeof(fallback->text) - 1);
		return r < 0 ? r : -EINVAL;
	}
	while ((word = text_next_word(&rest, &len)) != NULL) {
		r = check_hop(word, len, why);
		if (r < 0)
			return r;
	}
	memcpy(fallback->text, value, strlen(value) + 1);
	return 0;
}

int
conf_destinations(const struct conf *conf, struct buf *out)
{
	char folded[DOMAIN_FOLDED_MAX + 1];
	const char *rest = conf->mydestination, *word;
	struct buf domain = { 0 };
	size_t len;
	int r = 0;

	while (r == 0 && (word = text_next_word(&rest, &len)) != NULL) {
		buf_reset(&domain);
		r = add_word(conf, word, len, &domain);
		if (r == 0)
			r = domain_fold(buf_str(&domain), folded);
		if (r == 0)
			r = buf_printf(
			    out, "%s%s", out->len > 0 ? " " : "", folded);
	}
	buf_done(&domain);
	return r;
}
