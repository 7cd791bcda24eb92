/* The addresses on the command line of `qctl route'. */
#include "qctl/routing/rules.h"

#include <errno.h>
#include <string.h>
#include <sysexits.h>

#include "base/address.h"
#include "base/domain.h"
#include "base/option.h"
#include "route/nexthop.h"

/* A domain that DNS cannot have, `sendmail' and most servers refuse. */
static int
judge_domain(const char *domain, const char **ret_why)
{
	char ascii[DOMAIN_MAX + 1];
	int r = domain_normalize(domain, ascii, ret_why);

	if (r < 0 || nexthop_fits_domain(ascii))
		return r;
	*ret_why = "the domain has an empty label, or a character that no "
		   "domain has";
	return -EINVAL;
}

int
address_complete(const char *domain, const char *written, struct buf *out,
    const char **ret_why)
{
	const bool whole = *address_domain(written) != '\0';
	int r = buf_printf(
	    out, "%s%s%s", written, whole ? "" : "@", whole ? "" : domain);

	if (r == 0)
		r = address_check(buf_str(out), out->len);
	*ret_why = r == -ENAMETOOLONG ? "with its domain it is too long"
				      : "mail cannot have it as a recipient";
	return r < 0 ? r : judge_domain(address_domain(buf_str(out)), ret_why);
}

int
address_take_sender(
    const struct options *o, const char *domain, struct buf *out)
{
	struct buf error = { 0 };
	const char *why;
	int code, r;

	if (o->sender == NULL || o->sender[0] == '\0')
		return EX_OK;
	r = address_complete(domain, o->sender, out, &why);
	if (r == 0)
		return EX_OK;
	if (r == -ENOMEM)
		return task_complain(o, EX_OSERR, strerror(ENOMEM));
	(void)option_wrong(&error, "--sender ", o->sender, ": ");
	(void)buf_add_str(&error, why);
	code = task_complain(o, EX_USAGE, buf_str(&error));
	buf_done(&error);
	return code;
}
