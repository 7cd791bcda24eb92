#include "deliver-smtp/protection/auth.h"

#include <errno.h>
#include <openssl/evp.h>
#include <stdlib.h>
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

/* In the user `=` and `,` would end the name: RFC 5801 section 4. */
static int
oauthbearer(struct buf *out, const struct credential *c)
{
	const char *u = c->user;
	int r = buf_add_str(out, "n,a=");

	for (; r == 0 && *u != '\0'; u++)
		if (*u == '=' || *u == ',')
			r = buf_add_str(out, *u == '=' ? "=3D" : "=2C");
		else
			r = buf_add_char(out, *u);
	return r < 0
	    ? r
	    : buf_printf(out, ",\001auth=Bearer %s\001\001", c->secret);
}

/* Answers to an error, which make the server refuse. */
static int
nothing(struct buf *out UNUSED, const struct credential *c UNUSED)
{
	return 0;
}

static int
dummy(struct buf *out, const struct credential *c UNUSED)
{
	return buf_add_char(out, '\001');
}

#define WORDS_MAX 2

/* The best one first. SCRAM has no words of its own here: they come from
 * scram.h. */
static const struct mechanism {
	unsigned bit;
	const char *name;
	bool token;   /* for a token, else for a password */
	bool initial; /* the first words may stand in the command */
	words_fn *words[WORDS_MAX];
} mechanisms[] = {
	{ SMTP_AUTH_SCRAM, "SCRAM-SHA-256", false, true, { NULL } },
	{ SMTP_AUTH_OAUTHBEARER, "OAUTHBEARER", true, true,
	    { oauthbearer, dummy } },
	{ SMTP_AUTH_XOAUTH2, "XOAUTH2", true, true, { xoauth2, nothing } },
	{ SMTP_AUTH_PLAIN, "PLAIN", false, true, { plain } },
	{ SMTP_AUTH_LOGIN, "LOGIN", false, false, { user, secret } },
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
	size_t i;

	for (i = 0; i < ARRAY_LEN(mechanisms); i++)
		if ((offered & mechanisms[i].bit) != 0 &&
		    mechanisms[i].token == c->token)
			return mechanisms[i].bit;
	return 0;
}

static int
add_base64(struct buf *out, const struct buf *raw)
{
	int r = buf_reserve(out, 4 * ((raw->len + 2) / 3) + 1);

	if (r == 0 && raw->len > 0)
		out->len += (size_t)EVP_EncodeBlock(
		    (unsigned char *)out->data + out->len,
		    (const unsigned char *)raw->data, (int)raw->len);
	return r;
}

/* Words in base64, appended to out. */
static int
add_words(struct buf *out, words_fn *words, const struct credential *c)
{
	struct buf raw = { 0 };
	int r = words(&raw, c);

	if (r == 0)
		r = add_base64(out, &raw);
	buf_wipe(&raw);
	return r;
}

static int
add_scram(struct buf *out, struct scram *scram, const char *challenge)
{
	struct buf raw = { 0 };
	int r = scram_step(scram, challenge, &raw);

	if (r == 0)
		r = add_base64(out, &raw);
	buf_wipe(&raw);
	return r;
}

static int
add_next(struct auth *a, struct buf *out, const char *challenge)
{
	const struct mechanism *m = a->mechanism;

	if (a->scram != NULL)
		return add_scram(out, a->scram, challenge);
	if (a->said >= WORDS_MAX || m->words[a->said] == NULL)
		return -EPROTO;
	return add_words(out, m->words[a->said++], a->credential);
}

int
auth_begin(struct auth *a, struct buf *out, unsigned mechanism,
    const struct credential *c)
{
	const struct mechanism *m = find(mechanism);
	const size_t len = strlen("AUTH ") + strlen(m->name) + strlen(" \r\n");
	bool fits;
	int r = 0;

	auth_done(a);
	*a = (struct auth){ .credential = c, .mechanism = m };
	if (m->bit == SMTP_AUTH_SCRAM)
		r = scram_new(c, &a->scram);
	if (r == 0 && m->initial)
		r = add_next(a, &a->held, "");
	if (r < 0)
		return r;
	fits = a->held.len > 0 && len + a->held.len <= LINE_MAX_OCTETS;
	r = buf_printf(out, "AUTH %s%s%s\r\n", m->name, fits ? " " : "",
	    fits ? buf_str(&a->held) : "");
	if (fits)
		buf_wipe(&a->held);
	return r;
}

int
auth_answer(struct auth *a, struct buf *out, const struct smtp_reply *reply)
{
	/* One line, without its line end; another line is no base64. */
	const size_t len = reply->text.len - (reply->text.len > 0);
	char *challenge = strndup(buf_str(&reply->text), len);
	int r = -ENOMEM;

	if (challenge != NULL && a->held.len > 0) {
		r = buf_add(out, a->held.data, a->held.len);
		buf_wipe(&a->held);
	} else if (challenge != NULL) {
		r = add_next(a, out, challenge);
	}
	free(challenge);
	return r < 0 ? r : buf_add_str(out, "\r\n");
}

bool
auth_is_proven(const struct auth *a)
{
	return a->scram == NULL || scram_is_proven(a->scram);
}

const char *
auth_name(const struct auth *a)
{
	return a->mechanism == NULL ? "" : a->mechanism->name;
}

void
auth_done(struct auth *a)
{
	buf_wipe(&a->held);
	scram_free(&a->scram);
	*a = (struct auth){ 0 };
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
	words_fn *const forms[] = { secret, plain, xoauth2, oauthbearer };
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

/* The proof has been computed with the secret. */
static bool
has_proof(const struct buf *text, const struct scram *scram)
{
	static const char mark[] = ",p=";
	const struct buf *answer = scram_answer(scram);
	const char *proof = strstr(buf_str(answer), mark);
	struct buf form = { 0 };
	bool found;

	if (proof == NULL)
		return false;
	proof += strlen(mark);
	found =
	    memmem(buf_str(text), text->len, proof, strlen(proof)) != NULL ||
	    add_base64(&form, answer) < 0 || has(text, &form);
	buf_wipe(&form);
	return found;
}

void
auth_hide(const struct auth *a, const struct credential *c, struct buf *text)
{
	if (!has_secret(text, c) &&
	    (a->scram == NULL || !has_proof(text, a->scram)))
		return;
	explicit_bzero(text->data, text->len);
	buf_reset(text);
	(void)buf_add_str(text, HIDDEN "\n");
}
