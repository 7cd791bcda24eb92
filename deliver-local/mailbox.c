#include "deliver-local/child.h"

#include <errno.h>
#include <limits.h>
#include <string.h>

#include "base/domain.h"
#include "config/conf.h"

/* All spellings of a domain have one mailbox. */
static int
set_domain(struct mailbox *m, const char *domain)
{
	char folded[DOMAIN_FOLDED_MAX + 1];
	int r = domain_fold(domain, folded);

	if (r == 0 && strlen(folded) > MAILBOX_PART_MAX)
		r = -ENAMETOOLONG;
	if (r == 0)
		memcpy(m->domain, folded, strlen(folded) + 1);
	return r;
}

static const char *
judge_part(const char *s)
{
	const char *p;

	if (s[0] == '.')
		return "begins with a dot";
	for (p = s; *p != '\0'; p++) {
		if (*p == '/')
			return "has a slash";
		if ((unsigned char)*p < 0x20 || *p == 0x7f)
			return "has a control character";
	}
	return NULL;
}

int
mailbox_parse(
    const char *recipient, struct mailbox *ret_mailbox, const char **ret_why)
{
	struct mailbox m = { 0 };
	const char *domain = address_domain(recipient), *why;
	char user[ADDRESS_MAX + 1];
	size_t len = address_user(recipient, user);
	int r = set_domain(&m, domain);

	if (r == -ENOMEM) {
		*ret_why = "needs more memory than there is";
		return r;
	}
	if (r < 0 || strlen(domain) > MAILBOX_PART_MAX ||
	    address_local_len(recipient) > MAILBOX_PART_MAX) {
		*ret_why = "is too long";
		return -EINVAL;
	}
	memcpy(m.user, user, len + 1);
	why = m.user[0] == '\0' ? "has no local part" : judge_part(m.user);
	if (why == NULL)
		why = judge_part(m.domain);
	if (why != NULL) {
		*ret_why = why;
		return -EINVAL;
	}
	memcpy(m.base, m.user, address_account_len(m.user));
	*ret_mailbox = m;
	return 0;
}

static int
add_escape(char escape, const struct mailbox_values *values, struct buf *out)
{
	const char *value = escape == '%' ? "%"
	    : escape == 'u'               ? values->user
	    : escape == 'd'               ? values->domain
	    : escape == 'h'               ? values->home
					  : NULL;

	if (escape == '\0' || strchr("%udh", escape) == NULL)
		return -EINVAL;
	if (value == NULL || value[0] == '\0')
		return escape == 'h' ? -ENOENT : -EDESTADDRREQ;
	return buf_add_str(out, value);
}

int
mailbox_path(
    const char *template, const struct mailbox_values *values, struct buf *out)
{
	const char *p;
	int r = 0;

	buf_reset(out);
	if (mailbox_is_mbox(template))
		template += strlen(CONF_MBOX_PREFIX);
	for (p = template; r == 0 && *p != '\0'; p++)
		r = *p == '%' ? add_escape(*++p, values, out)
			      : buf_add_char(out, *p);
	if (r < 0)
		return r;
	while (out->len > 1 && out->data[out->len - 1] == '/')
		out->data[--out->len] = '\0';
	if (out->len == 0 || out->data[0] != '/')
		return -EINVAL;
	return out->len >= PATH_MAX - NAME_MAX - 8 ? -ENAMETOOLONG : 0;
}

bool
mailbox_is_mbox(const char *template)
{
	return strncmp(template, CONF_MBOX_PREFIX, strlen(CONF_MBOX_PREFIX)) ==
	    0;
}

bool
mailbox_path_uses(const char *template, char escape)
{
	const char *p;

	for (p = template; (p = strchr(p, '%')) != NULL && p[1] != '\0'; p += 2)
		if (p[1] == escape)
			return true;
	return false;
}
