/* Addresses that `qctl route' is asked about: recipients and --sender. */
#include "qctl/routing/rules.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sysexits.h>

#include "base/address.h"
#include "base/domain.h"
#include "base/option.h"
#include "base/text.h"
#include "config/conf.h"
#include "route/nexthop.h"
#include "route/sender_rewrite.h"

/* Refuse a domain that DNS cannot have, as `sendmail' does. */
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

/* ---- other addresses of senders ---- */

int
address_load_rewrites(const struct options *o, const struct conf *conf,
    struct sender_map **ret_map)
{
	struct buf error = { 0 };
	int r = conf->sender_rewrite[0] == '\0'
	    ? 0
	    : sender_map_load(
		  conf->sender_rewrite, &sender_rewrite_kind, ret_map, &error);

	if (r < 0)
		task_complain(o, EX_CONFIG,
		    error.len > 0 ? buf_str(&error) : strerror(-r));
	buf_done(&error);
	return r < 0 ? EX_CONFIG : EX_OK;
}

int
address_add_rewrite(const struct conf *conf, const struct sender_map *map,
    const char *sender, bool json, struct buf *out)
{
	char other[ADDRESS_MAX + 1];
	struct sender_row row = { 0 };
	int r = sender_rewrite(map, sender, other);

	if (r == 1)
		r = sender_map_find(map, sender, &row);
	if (r <= 0)
		return r;
	buf_add_str(out, json ? "{\"sender\": " : "sender ");
	if (json) {
		out_json(out, sender, strlen(sender));
		out_member(out, "sent_as", other);
		out_member(out, "file", conf->sender_rewrite);
		buf_printf(out, ", \"line\": %" PRIu32 "}\n", row.line);
		return 0;
	}
	out_clean(out, sender, ADDRESS_MAX);
	buf_add_str(out, " is sent as ");
	out_clean(out, other, ADDRESS_MAX);
	buf_add_str(out, " (");
	out_clean(out, conf->sender_rewrite, SIZE_MAX);
	buf_printf(out, ":%" PRIu32 ")\n", row.line);
	return 0;
}
