/* mydestination and relayhost: their values, and the domains of this host. */
#include "config/param.h"

#include <errno.h>
#include <string.h>

#include "route/nexthop.h"

#define BETWEEN " \t,"

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
	size_t len = strlen(s);

	if (strcmp(s, "*") == 0)
		return true;
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
	const char *word = value + strspn(value, BETWEEN);
	size_t len;
	int r = 0;

	for (; r == 0 && *word != '\0'; word += strspn(word, BETWEEN)) {
		len = strcspn(word, BETWEEN);
		buf_reset(&domain);
		r = add_word(NULL, word, len, &domain);
		if (r == -EINVAL)
			r = complain(why, word, len,
			    "names neither $myhostname nor $mydomain");
		else if (r == 0 && !is_domain(buf_str(&domain)))
			r = complain(why, word, len, "is not a domain");
		word += len;
	}
	buf_done(&domain);
	return r < 0 ? r : param_set_text(p, field, value, why);
}

int
relay_parse(
    const struct param *p, void *field, const char *value, struct buf *why)
{
	struct nexthop hop;
	int r;

	/* A socket is a next hop of LMTP, and this one is of SMTP. */
	if (*value == '\0' ||
	    (nexthop_parse(value, 1, &hop) == 0 && hop.kind != NEXTHOP_UNIX))
		return param_set_text(p, field, value, why);
	r = buf_add_str(why,
	    "not a next hop: it must be domain, domain:port, [host]:port or "
	    "[address]:port");
	return r < 0 ? r : -EINVAL;
}

int
conf_destinations(const struct conf *conf, struct buf *out)
{
	const char *word = conf->mydestination;
	size_t len;
	int r = 0;

	for (word += strspn(word, BETWEEN); r == 0 && *word != '\0';
	     word += strspn(word, BETWEEN)) {
		len = strcspn(word, BETWEEN);
		if (out->len > 0)
			r = buf_add_char(out, ' ');
		if (r == 0)
			r = add_word(conf, word, len, out);
		word += len;
	}
	return r;
}
