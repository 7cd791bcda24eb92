#include "queue-inject/message.h"

#include "base/address.h"
#include "base/domain.h"
#include "smtp/verp.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

void
envelope_done(struct envelope *e)
{
	buf_done(&e->sender);
	buf_done(&e->rcpts);
	buf_done(&e->wishes);
	texts_set_done(&e->known);
}

/* The form by which a recipient is known: the case of letters does not matter.
 * If memory is short, a domain is not folded, and two spellings of one address
 * count as two. */
static void
fold(const char *address, size_t len, char folded[ADDRESS_FOLDED_MAX + 1])
{
	char text[ADDRESS_MAX + 1];

	memcpy(text, address, len);
	text[len] = '\0';
	(void)address_fold(text, folded);
	for (; *folded != '\0'; folded++)
		*folded = (char)tolower((unsigned char)*folded);
}

static int
refuse_verp(struct refusal *why, const char *address, size_t len)
{
	return refuse(why, REFUSAL_ADDRESS,
	    "not a VERP sender (list-@host" VERP_SUFFIX "): <%.*s>",
	    (int)(len < 80 ? len : 80), address);
}

int
envelope_set_sender(
    struct envelope *e, const char *address, size_t len, struct refusal *why)
{
	int r = len == 0 ? 0 : address_check(address, len);

	if (r < 0)
		return refuse_address(why, r, address, len);
	if (verp_kind(address, len) == VERP_MALFORMED)
		return refuse_verp(why, address, len);
	buf_reset(&e->sender);
	if (buf_add(&e->sender, address, len) < 0)
		return refuse(why, REFUSAL_MEMORY, "out of memory");
	e->has_sender = true;
	return 0;
}

int
envelope_add_rcpt(
    struct envelope *e, const char *address, size_t len, struct refusal *why)
{
	char folded[ADDRESS_FOLDED_MAX + 1];
	int r = address_check(address, len);

	if (r < 0)
		return refuse_address(why, r, address, len);
	if (e->once) {
		fold(address, len, folded);
		if (texts_set_has(&e->known, folded))
			return 0;
	}
	if (e->rcpt_limit != 0 && e->rcpt_count >= e->rcpt_limit)
		return refuse(why, REFUSAL_TOO_MANY,
		    "more than %u recipients (message_recipient_limit)",
		    e->rcpt_limit);
	/* Room first: no recipient is known that is not there. */
	if (buf_reserve(&e->rcpts, len + 1) < 0 ||
	    (e->once && texts_set_add(&e->known, folded) < 0))
		return refuse(why, REFUSAL_MEMORY, "out of memory");
	(void)buf_add(&e->rcpts, address, len);
	(void)buf_add_char(&e->rcpts, '\0');
	e->rcpt_count++;
	return 0;
}

int
envelope_add_rcpt_dsn(struct envelope *e, const char *address, size_t len,
    const struct dsn_rcpt *dsn, struct refusal *why)
{
	const uint32_t before = e->rcpt_count;
	const size_t orcpt = strlen(dsn->orcpt) + 1;

	/* Room first: a recipient never stands without its wishes. */
	if (buf_reserve(&e->wishes, 1 + orcpt) < 0)
		return refuse(why, REFUSAL_MEMORY, "out of memory");
	if (envelope_add_rcpt(e, address, len, why) < 0)
		return -1;
	if (e->rcpt_count == before)
		return 0;
	(void)buf_add_char(&e->wishes, (char)dsn->notify);
	(void)buf_add(&e->wishes, dsn->orcpt, orcpt);
	return 0;
}

bool
envelope_next_wish(
    const struct envelope *e, size_t *pos, struct dsn_rcpt *ret_dsn)
{
	const char *wish;

	if (*pos >= e->wishes.len)
		return false;
	wish = e->wishes.data + *pos;
	ret_dsn->notify = (uint8_t)*wish++;
	snprintf(ret_dsn->orcpt, sizeof(ret_dsn->orcpt), "%s", wish);
	*pos += 2 + strlen(wish);
	return true;
}

const char *
envelope_next_rcpt(const struct envelope *e, size_t *pos, size_t *ret_len)
{
	const char *address;

	if (*pos >= e->rcpts.len)
		return NULL;
	address = e->rcpts.data + *pos;
	*ret_len = strlen(address);
	*pos += *ret_len + 1;
	return address;
}

/* ---- the envelope of qmail-queue ---- */

enum state {
	WANT_F,
	IN_SENDER,
	WANT_T, /* or the NUL that ends the envelope */
	IN_RCPT,
	AT_END,
};

/* The byte that announces an address or the end. */
static int
take_letter(struct envelope_reader *rd, char c, struct refusal *why)
{
	if (rd->state == WANT_F && c == 'F')
		rd->state = IN_SENDER;
	else if (rd->state == WANT_T && c == 'T')
		rd->state = IN_RCPT;
	else if (rd->state == WANT_T && c == '\0')
		rd->state = AT_END;
	else
		return refuse(why, REFUSAL_ENVELOPE,
		    rd->state == AT_END ? "something follows the envelope"
			: rd->state == WANT_F
			? "the envelope does not begin with F"
			: "a recipient does not begin with T");
	return 0;
}

static int
take_address(
    struct envelope_reader *rd, struct envelope *e, struct refusal *why)
{
	const struct buf *a = &rd->address;
	int r = rd->state == IN_SENDER
	    ? envelope_set_sender(e, buf_str(a), a->len, why)
	    : envelope_add_rcpt(e, buf_str(a), a->len, why);

	buf_reset(&rd->address);
	rd->state = WANT_T;
	return r;
}

/* Up to the NUL or the end of this piece. */
static int
take_bytes(struct envelope_reader *rd, struct envelope *e, const char *data,
    size_t len, size_t *ret_used, struct refusal *why)
{
	const char *nul = memchr(data, '\0', len);
	size_t n = nul == NULL ? len : (size_t)(nul - data);

	if (n > ADDRESS_MAX - rd->address.len)
		return refuse_address(why, -ENAMETOOLONG, data, n);
	if (buf_add(&rd->address, data, n) < 0)
		return refuse(why, REFUSAL_MEMORY, "out of memory");
	*ret_used = nul == NULL ? n : n + 1;
	return nul == NULL ? 0 : take_address(rd, e, why);
}

int
envelope_feed(struct envelope_reader *rd, struct envelope *e, const char *data,
    size_t len, struct refusal *why)
{
	size_t used = 0;
	int r = 0;

	while (used < len && r == 0) {
		size_t n = 1;

		if (rd->state == IN_SENDER || rd->state == IN_RCPT)
			r = take_bytes(rd, e, data + used, len - used, &n, why);
		else
			r = take_letter(rd, data[used], why);
		used += n;
	}
	return r;
}

int
envelope_finish(
    struct envelope_reader *rd, const struct envelope *e, struct refusal *why)
{
	bool whole = rd->state == AT_END;

	buf_done(&rd->address);
	if (!whole)
		return refuse(
		    why, REFUSAL_ENVELOPE, "the envelope ends too early");
	if (e->rcpt_count == 0)
		return refuse(why, REFUSAL_NO_RECIPIENT, "no recipient");
	return 0;
}
