#include "deliver-smtp/protection/auth.h"

#include <errno.h>
#include <openssl/evp.h>
#include <string.h>

#define LINE_MAX_OCTETS 512 /* of a command: RFC 5321 section 4.5.3.1.4 */
#define HIDDEN          "(left out: it has the credentials)"

/* Words of a mechanism in their order, not yet encoded. */
typedef int words_fn(struct buf *out, const struct credential *c);

static int
plain(struct buf *out, const struct credential *c)
{
	int r = buf_add_char(out, '\0');

	if (r == 0)
		r = buf_add_str(out, c->user);
	if (r == 0)
		r = buf_add_char(out, '\0');
	return r < 0 ? r : buf_add_str(out, c->secret);
}

static int
user(struct buf *out, const struct credential *c)
{
	return buf_add_str(out, c->user);
}

static int
secret(struct buf *out, const struct credential *c)
{
	return buf_add_str(out, c->secret);
}

static int
xoauth2(struct buf *out, const struct credential *c)
{
	return buf_printf(
	    out, "user=%s\001auth=Bearer %s\001\001", c->user, c->secret);
}

/* The answer to an error, which makes the server refuse. */
static int
nothing(struct buf *out UNUSED, const struct credential *c UNUSED)
{
	return 0;
}

#define WORDS_MAX 2

static const struct mechanism {
	unsigned bit;
	const char *name;
	bool initial; /* the first words may stand in the command */
	words_fn *words[WORDS_MAX];
} mechanisms[] = {
	{ SMTP_AUTH_PLAIN, "PLAIN", true, { plain } },
	{ SMTP_AUTH_LOGIN, "LOGIN", false, { user, secret } },
	{ SMTP_AUTH_XOAUTH2, "XOAUTH2", true, { xoauth2, nothing } },
};

static const struct mechanism *
find(unsigned bit)
{
	size_t i;

	for (i = 0; i < ARRAY_LEN(mechanisms) - 1; i++)
		if (mechanisms[i].bit == bit)
			break;
	return &mechanisms[i];
}

unsigned
auth_choose(unsigned offered, const struct credential *c)
{
	if (c->token)
		return offered & SMTP_AUTH_XOAUTH2;
	return (offered & SMTP_AUTH_PLAIN) != 0 ? SMTP_AUTH_PLAIN
						: offered & SMTP_AUTH_LOGIN;
}

/* Words in base64, appended to out. */
static int
add_words(struct buf *out, words_fn *words, const struct credential *c)
{
	struct buf raw = { 0 };
	int r = words(&raw, c);

	if (r == 0)
		r = buf_reserve(out, 4 * ((raw.len + 2) / 3) + 1);
	if (r == 0 && raw.len > 0)
		out->len += (size_t)EVP_EncodeBlock(
		    (unsigned char *)out->data + out->len,
		    (const unsigned char *)raw.data, (int)raw.len);
	buf_wipe(&raw);
	return r;
}

int
auth_begin(struct buf *out, unsigned mechanism, const struct credential *c,
    unsigned *ret_said)
{
	const struct mechanism *m = find(mechanism);
	struct buf words = { 0 };
	size_t len = strlen("AUTH ") + strlen(m->name) + strlen(" \r\n");
	int r = m->initial ? add_words(&words, m->words[0], c) : 0;
	bool fits = m->initial && len + words.len <= LINE_MAX_OCTETS;

	if (r == 0)
		r = buf_printf(out, "AUTH %s%s%s\r\n", m->name, fits ? " " : "",
		    fits ? buf_str(&words) : "");
	buf_wipe(&words);
	*ret_said = fits;
	return r;
}

int
auth_answer(struct buf *out, unsigned mechanism, const struct credential *c,
    unsigned said)
{
	const struct mechanism *m = find(mechanism);
	int r;

	if (said >= WORDS_MAX || m->words[said] == NULL)
		return -EPROTO;
	r = add_words(out, m->words[said], c);
	return r < 0 ? r : buf_add_str(out, "\r\n");
}

/* ---- hiding ---- */

static bool
has(const struct buf *text, const struct buf *what)
{
	return what->len > 0 &&
	    memmem(buf_str(text), text->len, what->data, what->len) != NULL;
}

/* In any of the forms in which it was sent. Short of memory the answer is yes.
 */
static bool
has_secret(const struct buf *text, const struct credential *c)
{
	words_fn *const forms[] = { secret, plain, xoauth2 };
	struct buf form = { 0 };
	bool found = memmem(buf_str(text), text->len, c->secret,
			 strlen(c->secret)) != NULL;
	size_t i;

	for (i = 0; !found && i < ARRAY_LEN(forms); i++) {
		buf_reset(&form);
		found = add_words(&form, forms[i], c) < 0 || has(text, &form);
	}
	buf_wipe(&form);
	return found;
}

void
auth_hide(struct buf *text, const struct credential *c)
{
	if (!has_secret(text, c))
		return;
	explicit_bzero(text->data, text->len);
	buf_reset(text);
	(void)buf_add_str(text, HIDDEN "\n");
}
