#include "smtp/server_parts.h"

#include <errno.h>
#include <string.h>
#include <strings.h>

#include "base/num.h"

/* ---- parameters ---- */

static int
take_size(struct smtp_server *s, const char *value)
{
	const uint64_t max = s->rules.size_max;
	int r = num_u64(value, 0, UINT64_MAX, &s->mail.size);

	if (r == 0 && max != 0 && s->mail.size > max)
		return -EFBIG;
	return r;
}

/* Content is taken in eight bits in any case. */
static int
take_body(struct smtp_server *s UNUSED, const char *value)
{
	return strcasecmp(value, "7BIT") == 0 ||
		strcasecmp(value, "8BITMIME") == 0
	    ? 0
	    : -EINVAL;
}

static int
take_utf8(struct smtp_server *s, const char *value UNUSED)
{
	s->mail.utf8 = true;
	return 0;
}

static int
take_ret(struct smtp_server *s, const char *value)
{
	return dsn_ret_parse(value, &s->mail.dsn.ret);
}

static int
take_envid(struct smtp_server *s, const char *value)
{
	return dsn_envid_set(&s->mail.dsn, value, strlen(value));
}

static int
take_notify(struct smtp_server *s, const char *value)
{
	return dsn_notify_parse(value, &s->rcpt.dsn.notify);
}

static int
take_orcpt(struct smtp_server *s, const char *value)
{
	return dsn_orcpt_set(&s->rcpt.dsn, value, strlen(value));
}

struct param {
	const char *name;
	bool has_value;
	enum smtp_server_offer offer; /* the extension that it belongs to */
	/* -EINVAL, -ERANGE, -ENAMETOOLONG: the value is wrong; -EFBIG. */
	int (*take)(struct smtp_server *s, const char *value);
};

struct params {
	const struct param *rows;
	size_t count;
};

static const struct param mail_rows[] = {
	{ "SIZE", true, SMTP_OFFER_SIZE, take_size },
	{ "BODY", true, SMTP_OFFER_8BITMIME, take_body },
	{ "SMTPUTF8", false, SMTP_OFFER_SMTPUTF8, take_utf8 },
	{ "RET", true, SMTP_OFFER_DSN, take_ret },
	{ "ENVID", true, SMTP_OFFER_DSN, take_envid },
};
static const struct param rcpt_rows[] = {
	{ "NOTIFY", true, SMTP_OFFER_DSN, take_notify },
	{ "ORCPT", true, SMTP_OFFER_DSN, take_orcpt },
};
static const struct params mail_params = { mail_rows, ARRAY_LEN(mail_rows) };
static const struct params rcpt_params = { rcpt_rows, ARRAY_LEN(rcpt_rows) };

static int
refuse_twice(struct smtp_server *s, const char *name)
{
	smtp_server_reply(
	    s, 501, "5.5.4", "parameter %.40s is given twice", name);
	return -1;
}

static int
refuse_param(struct smtp_server *s, const char *name, int error)
{
	if (error == -EFBIG)
		smtp_server_reply(s, 552, "5.3.4",
		    "the message is larger than %llu octets",
		    (unsigned long long)s->rules.size_max);
	else if (error == -ENOTSUP)
		smtp_server_reply(
		    s, 555, "5.5.4", "parameter %.40s is not known", name);
	else
		smtp_server_reply(
		    s, 501, "5.5.4", "wrong value of parameter %.40s", name);
	return -1;
}

/* One `NAME` or `NAME=VALUE`; *seen has a bit for each row that was met. */
static int
take_param(struct smtp_server *s, const struct params *params, char *word,
    unsigned *seen)
{
	char *value = strchr(word, '=');
	const struct param *row = NULL;
	size_t i;
	int r = -ENOTSUP;

	if (value != NULL)
		*value++ = '\0';
	for (i = 0; i < params->count && row == NULL; i++)
		if (strcasecmp(word, params->rows[i].name) == 0 &&
		    s->rules.offer & params->rows[i].offer)
			row = &params->rows[i];
	if (row != NULL) {
		const unsigned bit = 1u << (row - params->rows);

		if ((*seen & bit) != 0)
			return refuse_twice(s, word);
		r = (value != NULL) != row->has_value ? -EINVAL
						      : row->take(s, value);
		*seen |= bit;
	}
	return r < 0 ? refuse_param(s, word, r) : 0;
}

static int
take_params(struct smtp_server *s, const struct params *params, char *text)
{
	unsigned seen = 0;
	char *save = NULL, *word;
	int r = 0;

	for (word = strtok_r(text, " ", &save); word != NULL && r == 0;
	     word = strtok_r(NULL, " ", &save))
		r = take_param(s, params, word, &seen);
	return r;
}

/* ---- the path ---- */

struct path_kind {
	const char *prefix;
	bool null; /* `<>` is allowed */
	const char *dsn, *wrong, *who;
};

static const struct path_kind sender_path = { "FROM:", true, "5.1.7",
	"the sender is no address; MAIL FROM:<address> is right", "sender" };
static const struct path_kind rcpt_path = { "TO:", false, "5.1.3",
	"the recipient is no address; RCPT TO:<address> is right",
	"recipient" };

/* *ret_params is what follows the path. */
static int
read_path(struct smtp_server *s, const struct path_kind *kind, char *args,
    struct smtp_server_address *ret_address, char **ret_params)
{
	const size_t len = strlen(kind->prefix);
	ssize_t n;

	if (strncasecmp(args, kind->prefix, len) != 0) {
		smtp_server_reply(s, 501, "5.5.4", "%s", kind->wrong);
		return -1;
	}
	args += len;
	args += strspn(args, " ");
	n = smtp_path_parse(args, !s->rules.strict, ret_address->text,
	    &ret_address->has_domain);
	if (n == -ENAMETOOLONG) {
		smtp_server_reply(s, 501, kind->dsn,
		    "the %s is longer than %d octets", kind->who, ADDRESS_MAX);
		return -1;
	}
	if (n < 0 || (args[n] != ' ' && args[n] != '\0') ||
	    (ret_address->text[0] == '\0' && !kind->null)) {
		smtp_server_reply(s, 501, kind->dsn, "%s", kind->wrong);
		return -1;
	}
	*ret_params = args + n;
	return 0;
}

/* RFC 6531 section 3.4. */
static int
check_utf8(struct smtp_server *s, const struct smtp_server_address *address)
{
	if (!s->rules.strict || s->mail.utf8 ||
	    !smtp_path_is_utf8(address->text))
		return 0;
	smtp_server_reply(
	    s, 553, "5.6.7", "the address needs SMTPUTF8 in MAIL");
	return -1;
}

int
smtp_server_read_mail(struct smtp_server *s, char *args)
{
	char *params;

	memset(&s->mail, 0, sizeof(s->mail));
	if (read_path(s, &sender_path, args, &s->mail.address, &params) < 0 ||
	    take_params(s, &mail_params, params) < 0)
		return -1;
	return check_utf8(s, &s->mail.address);
}

int
smtp_server_read_rcpt(struct smtp_server *s, char *args)
{
	char *params;

	memset(&s->rcpt, 0, sizeof(s->rcpt));
	if (read_path(s, &rcpt_path, args, &s->rcpt.address, &params) < 0 ||
	    take_params(s, &rcpt_params, params) < 0)
		return -1;
	return check_utf8(s, &s->rcpt.address);
}
