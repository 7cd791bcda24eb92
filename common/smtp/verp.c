#include "smtp/verp.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "smtp/smtp.h"

/* Appends the local part without its quotes. */
static int
add_unquoted(struct buf *out, const char *local, size_t len)
{
	char text[ADDRESS_MAX + 1];

	if (len > ADDRESS_MAX)
		return -ENAMETOOLONG;
	memcpy(text, local, len);
	text[len] = '\0';
	return buf_add(out, text, address_unquote(text, len));
}

/* The domain becomes a part of the sender's local part. A local part in UTF-8
 * needs SMTPUTF8, even if A-labels can name the domain. */
static int
add_domain(struct buf *out, const char *domain)
{
	char ascii[DOMAIN_MAX + 1];
	const char *why;
	int r = domain_is_utf8(domain) ? domain_normalize(domain, ascii, &why)
				       : -EINVAL;

	if (r == -ENOMEM)
		return r;
	return buf_add_str(out, r == 0 ? ascii : domain);
}

/* Of the recipient user@host: user=host. `domain` stands for a missing host. */
static int
add_variable_part(struct buf *out, const char *recipient, const char *domain)
{
	const size_t len = address_local_len(recipient);
	int r = add_unquoted(out, recipient, len);

	if (r == 0)
		r = buf_add_char(out, '=');
	return r < 0
	    ? r
	    : add_domain(
		  out, recipient[len] == '\0' ? domain : recipient + len + 1);
}

static int
expand(const char *base, const char *recipient, const char *domain,
    char out[ADDRESS_MAX + 1])
{
	struct buf local = { 0 }, all = { 0 };
	int r = add_unquoted(&local, base, address_local_len(base));

	if (r == 0)
		r = add_variable_part(&local, recipient, domain);
	if (r == 0)
		r = smtp_local_add(&all, buf_str(&local), local.len);
	if (r == 0)
		r = buf_add_str(&all, base + address_local_len(base));
	if (r == 0 && all.len > ADDRESS_MAX)
		r = -ENAMETOOLONG;
	if (r == 0)
		memcpy(out, buf_str(&all), all.len + 1);
	buf_done(&local);
	buf_done(&all);
	return r;
}

int
verp_expand(const char *sender, const char *recipient, const char *domain,
    char out[ADDRESS_MAX + 1])
{
	const size_t len = strlen(sender),
		     base_len = verp_base_len(sender, len);
	char base[ADDRESS_MAX + 1];

	if (len > ADDRESS_MAX)
		return -ENAMETOOLONG;
	memcpy(base, sender, base_len);
	base[base_len] = '\0';
	if (base_len < len)
		return expand(base, recipient, domain, out);
	memcpy(out, base, len + 1);
	return 0;
}

/* Write the stored form of the sender. local: the unquoted local part in front
 * of the variable part. 1; 0: the form is too long; -ENOMEM. */
static int
restore(const char *sender, const char *local, size_t len,
    char out[ADDRESS_MAX + 1])
{
	const size_t quoted = address_local_len(sender);
	struct buf all = { 0 };
	int r = sender[0] == '"' ? smtp_local_add(&all, local, len)
				 : buf_add(&all, local, len);

	if (r == 0)
		r = buf_printf(&all, "%s" VERP_SUFFIX, sender + quoted);
	if (r == 0 && all.len <= ADDRESS_MAX) {
		memcpy(out, buf_str(&all), all.len + 1);
		r = 1;
	}
	buf_done(&all);
	return r;
}

/* The local part ends with a delimiter and the variable part. Without a
 * delimiter, "bob=site" may be an account. */
static bool
is_variable_part(const struct buf *local, const struct buf *part)
{
	const size_t first = local->len - part->len;

	return local->len > part->len &&
	    memchr("-+=", local->data[first - 1], 3) != NULL &&
	    memcmp(local->data + first, part->data, part->len) == 0;
}

int
verp_restore(
    const char *sender, const char *recipient, char out[ADDRESS_MAX + 1])
{
	struct buf local = { 0 }, part = { 0 };
	int r = add_unquoted(&local, sender, address_local_len(sender));

	if (r == 0)
		r = add_variable_part(&part, recipient, "");
	if (r == 0 && strchr(sender, '@') != NULL &&
	    is_variable_part(&local, &part))
		r = restore(sender, local.data, local.len - part.len, out);
	buf_done(&local);
	buf_done(&part);
	return r;
}

int
verp_report_to(const char *sender, const char *recipient, const char *domain,
    char out[ADDRESS_MAX + 1])
{
	const size_t len = verp_base_len(sender, strlen(sender));
	int r = verp_expand(sender, recipient, domain, out);

	if (r != -ENAMETOOLONG || len > ADDRESS_MAX)
		return r;
	memcpy(out, sender, len);
	out[len] = '\0';
	return 0;
}

int
verp_compose(const char *address, char first, char out[ADDRESS_MAX + 1])
{
	const size_t local = address_local_len(address);
	/* The delimiter stands within the quotes. */
	const size_t head =
	    local - (local > 1 && address[local - 1] == '"' ? 1 : 0);
	int n;

	if (local == 0 || address[local] == '\0' || address[local + 1] == '\0')
		return -EINVAL;
	n = snprintf(out, ADDRESS_MAX + 1, "%.*s%c%s" VERP_SUFFIX, (int)head,
	    address, first, address + head);
	return n < 0 || n > ADDRESS_MAX ? -ENAMETOOLONG : 0;
}
