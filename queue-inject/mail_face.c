/* The faces that take a message with its header: queue-inject, sendmail. */
#include "queue-inject/inject.h"

#include "queue-inject/message.h"

#include "base/address.h"
#include "base/clock.h"
#include "base/domain.h"
#include "smtp/verp.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* An address of the command line, given a domain where it has none. */
struct argument {
	struct inject *inject;
	int (*put)(struct envelope *e, const char *address, size_t len,
	    struct refusal *why);
	size_t count;
};

static int
put_address(void *arg, const char *address, size_t len)
{
	struct argument *a = arg;

	a->count++;
	return a->put(&a->inject->envelope, address, len, &a->inject->why) < 0
	    ? -ECANCELED
	    : 0;
}

/* As it stands: nothing is unquoted or split. */
static int
put_literal(struct argument *a, const char *text, size_t len)
{
	const char *domain = a->inject->identity.domain;
	struct buf b = { 0 };
	int r = address_check(text, len);

	if (r == 0)
		r = buf_add(&b, text, len);
	if (r == 0 && strchr(text, '@') == NULL)
		r = buf_printf(&b, "@%s", domain);
	if (r == 0)
		r = put_address(a, b.data, b.len);
	buf_done(&b);
	return r;
}

static int
put_argument(struct argument *a, const char *text)
{
	size_t i, len = strlen(text);
	int r;

	/* A line end is no fold here. */
	for (i = 0; i < len; i++)
		if ((unsigned char)text[i] < 0x20 || text[i] == 0x7f)
			return refuse_address(
			    &a->inject->why, -EILSEQ, text, len);
	if (a->inject->options.literal)
		r = put_literal(a, text, len);
	else
		r = address_list_parse(
		    text, len, a->inject->identity.domain, put_address, a);
	if (r == -ECANCELED)
		return -1;
	return r < 0 ? refuse_address(&a->inject->why, r, text, len) : 0;
}

/* A sender of VERP: an address that is given a domain, and the suffix. */
static int
put_verp_sender(
    struct envelope *e, const char *address, size_t len, struct refusal *why)
{
	struct buf sender = { 0 };
	int r = buf_add(&sender, address, len);

	if (r == 0)
		r = buf_add_str(&sender, VERP_SUFFIX);
	r = r < 0 ? refuse(why, REFUSAL_MEMORY, "out of memory")
		  : envelope_set_sender(e, sender.data, sender.len, why);
	buf_done(&sender);
	return r;
}

static int
put_sender_as_it_is(struct argument *a, const char *text, size_t len)
{
	a->count++;
	return envelope_set_sender(
	    &a->inject->envelope, text, len, &a->inject->why);
}

static int
put_sender(struct argument *a, const char *text)
{
	const size_t len = strlen(text);
	const enum verp_kind kind = verp_kind(text, len);
	char *base;
	int r;

	if (kind == VERP_MALFORMED || strcmp(text, ADDRESS_DOUBLE_BOUNCE) == 0)
		return put_sender_as_it_is(a, text, len);
	if (kind == VERP_NONE)
		return put_argument(a, text);
	base = strndup(text, verp_base_len(text, len));
	if (base == NULL)
		return refuse(&a->inject->why, REFUSAL_MEMORY, "out of memory");
	a->put = put_verp_sender;
	r = put_argument(a, base);
	free(base);
	return r;
}

/* -XV: the sender is kept in the form of qmail, which has the first delimiter
 * in front of its at sign. */
static int
compose_verp(struct inject *inject)
{
	const struct buf *sender = &inject->envelope.sender;
	char stored[ADDRESS_MAX + 1];
	int r;

	if (inject->options.verp == '\0')
		return 0;
	if (sender->len == 0 ||
	    strcmp(buf_str(sender), ADDRESS_DOUBLE_BOUNCE) == 0 ||
	    verp_kind(sender->data, sender->len) != VERP_NONE)
		return refuse(&inject->why, REFUSAL_USAGE,
		    "-XV needs a sender that is an address: neither the null "
		    "sender nor one that ends in " VERP_SUFFIX);
	r = verp_compose(buf_str(sender), inject->options.verp, stored);
	if (r < 0)
		return refuse_address(
		    &inject->why, r, sender->data, sender->len);
	return envelope_set_sender(
	    &inject->envelope, stored, strlen(stored), &inject->why);
}

static int
set_sender(struct inject *inject)
{
	const char *text = inject->options.sender;
	struct argument a = { inject, envelope_set_sender, 0 };
	struct identity *id = &inject->identity;
	struct buf own = { 0 };
	int r;

	if (text == NULL) {
		identity_look_up(id);
		r = buf_printf(&own, "%s@%s", id->login, id->domain);
		if (r < 0)
			return refuse(
			    &inject->why, REFUSAL_MEMORY, "out of memory");
		r = envelope_set_sender(
		    &inject->envelope, own.data, own.len, &inject->why);
		buf_done(&own);
		return r;
	}
	if (text[0] == '\0' || strcmp(text, "<>") == 0)
		return envelope_set_sender(
		    &inject->envelope, "", 0, &inject->why);
	r = put_sender(&a, text);
	if (r == 0 && a.count != 1)
		return refuse_address(
		    &inject->why, -EINVAL, text, strlen(text));
	return r;
}

static int
add_recipients(struct inject *inject)
{
	const struct options *o = &inject->options;
	struct argument a = { inject, envelope_add_rcpt, 0 };
	size_t i;
	int r = 0;

	for (i = 0; i < o->nrcpts && r == 0; i++)
		r = put_argument(&a, o->rcpts[i]);
	if (r == 0 && o->from_header)
		r = message_recipients(&inject->message,
		    inject->identity.domain, &inject->envelope, &inject->why);
	if (r < 0)
		return r;
	if (inject->envelope.rcpt_count == 0)
		return refuse(&inject->why, REFUSAL_NO_RECIPIENT,
		    o->from_header
			? "no recipient in the header"
			: "no recipient; name one, or use -t to take them "
			  "from the header");
	return 0;
}

/* The author's address for an added From. The domain is in A-labels, so that
 * the header is in ASCII and the message needs no SMTPUTF8. The suffix of a
 * VERP sender is left out. */
static void
find_author(const struct buf *stored, char out[ADDRESS_FOLDED_MAX + 1])
{
	char sender[ADDRESS_MAX + 1] = "";

	if (stored->len > 0)
		memcpy(sender, stored->data,
		    verp_base_len(stored->data, stored->len));
	if (domain_is_utf8(address_domain(sender)))
		(void)address_fold(sender, out);
	else
		memcpy(out, sender, sizeof(sender));
}

static int
complete_header(struct inject *inject)
{
	struct identity *id = &inject->identity;
	char sender[ADDRESS_FOLDED_MAX + 1];
	struct message_author author = { .host = id->host,
		.address = sender,
		.full_name = inject->options.full_name,
		.wall = clock_wall() };
	char daemon_address[sizeof(id->domain) + sizeof("MAILER-DAEMON@")];

	find_author(&inject->envelope.sender, sender);
	snprintf(daemon_address, sizeof(daemon_address), "MAILER-DAEMON@%s",
	    id->domain);
	arc4random_buf(&author.random, sizeof(author.random));
	/* The user's name belongs to the user's address only. */
	if (author.full_name == NULL)
		author.full_name =
		    inject->options.sender == NULL ? id->full_name : "";
	if (*sender == '\0' || strcmp(sender, ADDRESS_DOUBLE_BOUNCE) == 0)
		author.address = daemon_address;
	return message_complete(&inject->message, &author, &inject->why);
}

int
mail_prepare(struct inject *inject)
{
	/* In a dialogue the envelope comes before the message. */
	const bool has_envelope = inject->envelope.rcpt_count > 0;

	inject->envelope.once = true;
	/* Without a header to look into, recipients are known at once. */
	if (!has_envelope && !inject->options.from_header &&
	    inject->options.nrcpts == 0)
		return add_recipients(inject);
	if ((!has_envelope && set_sender(inject) < 0) ||
	    message_read(&inject->message, &inject->source, &inject->why) < 0)
		return -1;
	inject->eol = inject->message.eol;
	if (inject->options.qualify &&
	    message_qualify(
		&inject->message, inject->identity.domain, &inject->why) < 0)
		return -1;
	if (!has_envelope && add_recipients(inject) < 0)
		return -1;
	return complete_header(inject) < 0 ? -1 : compose_verp(inject);
}

int
mail_content(struct inject *inject)
{
	int r = message_write(&inject->message, inject->submission);

	return r < 0 ? r : inject_copy(inject);
}
