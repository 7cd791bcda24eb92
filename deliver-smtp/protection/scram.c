#include "deliver-smtp/protection/scram.h"

#include <errno.h>
#include <gsasl.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/num.h"

#define KEY_SIZE 32 /* of SHA-256 */

struct scram {
	const struct credential *credential;
	Gsasl *library;
	Gsasl_session *session;
	struct buf answer; /* the latest that was not empty */
	int error;         /* of the callback, or 0 */
	bool proven;
};

/* ---- the key ---- */

/* The password in the form of SASLprep (RFC 4013). A password that has no such
 * form, as one that is no UTF-8, is taken as it is. */
static char *
prepared_secret(const char *secret)
{
	char *ready = NULL;

	if (gsasl_saslprep(secret, GSASL_ALLOW_UNASSIGNED, &ready, NULL) ==
	    GSASL_OK)
		return ready;
	return strdup(secret);
}

static int
derive_key(const char *secret, const char *salt, size_t salt_len, int rounds,
    unsigned char key[KEY_SIZE])
{
	char *ready = prepared_secret(secret);
	bool done = ready != NULL &&
	    PKCS5_PBKDF2_HMAC(ready, (int)strlen(ready),
		(const unsigned char *)salt, (int)salt_len, rounds,
		EVP_sha256(), KEY_SIZE, key) == 1;

	if (ready != NULL)
		explicit_bzero(ready, strlen(ready));
	gsasl_free(ready);
	return done ? 0 : -ENOMEM;
}

static int
set_key(Gsasl_session *session, const unsigned char key[KEY_SIZE])
{
	char hex[2 * KEY_SIZE + 1];
	size_t i;
	int r;

	for (i = 0; i < KEY_SIZE; i++)
		snprintf(hex + 2 * i, 3, "%02x", key[i]);
	r = gsasl_property_set(session, GSASL_SCRAM_SALTED_PASSWORD, hex);
	explicit_bzero(hex, sizeof(hex));
	return r == GSASL_OK ? 0 : -ENOMEM;
}

/* libgsasl asks for the key when it has read salt and rounds. It does not get
 * the password: libgsasl would not wipe the password, and takes longer for the
 * key. */
static int
give_key(struct scram *s)
{
	const char *salt64 = gsasl_property_fast(s->session, GSASL_SCRAM_SALT);
	const char *text = gsasl_property_fast(s->session, GSASL_SCRAM_ITER);
	unsigned char key[KEY_SIZE];
	uint64_t rounds;
	char *salt = NULL;
	size_t len = 0;
	int r;

	if (salt64 == NULL || text == NULL ||
	    gsasl_base64_from(salt64, strlen(salt64), &salt, &len) != GSASL_OK)
		return -EPROTO;
	if (num_u64(text, 1, SCRAM_ROUNDS_MAX, &rounds) < 0)
		r = -E2BIG;
	else
		r = derive_key(
		    s->credential->secret, salt, len, (int)rounds, key);
	if (r == 0)
		r = set_key(s->session, key);
	explicit_bzero(key, sizeof(key));
	gsasl_free(salt);
	return r;
}

static void
wipe_key(Gsasl_session *session)
{
	const char *key =
	    gsasl_property_fast(session, GSASL_SCRAM_SALTED_PASSWORD);

	/* libgsasl copies a property into memory of its own. */
	if (key != NULL)
		explicit_bzero((void *)(uintptr_t)key, strlen(key));
}

static int
on_property(Gsasl *library, Gsasl_session *session, Gsasl_property property)
{
	struct scram *s = gsasl_callback_hook_get(library);

	if (property == GSASL_AUTHID)
		return gsasl_property_set(
		    session, property, s->credential->user);
	if (property != GSASL_SCRAM_SALTED_PASSWORD || s->error < 0)
		return GSASL_NO_CALLBACK;
	s->error = give_key(s);
	return s->error < 0 ? GSASL_NO_CALLBACK : GSASL_OK;
}

/* ---- the exchange ---- */

int
scram_new(const struct credential *c, struct scram **ret_scram)
{
	struct scram *s = calloc(1, sizeof(*s));

	if (s == NULL)
		return -ENOMEM;
	s->credential = c;
	if (gsasl_init(&s->library) != GSASL_OK) {
		free(s);
		return -ENOMEM;
	}
	gsasl_callback_set(s->library, on_property);
	gsasl_callback_hook_set(s->library, s);
	if (gsasl_client_start(s->library, "SCRAM-SHA-256", &s->session) !=
	    GSASL_OK) {
		scram_free(&s);
		return -ENOMEM;
	}
	*ret_scram = s;
	return 0;
}

void
scram_free(struct scram **scram)
{
	struct scram *s = *scram;

	*scram = NULL;
	if (s == NULL)
		return;
	if (s->session != NULL) {
		wipe_key(s->session);
		gsasl_finish(s->session);
	}
	gsasl_done(s->library);
	buf_wipe(&s->answer);
	free(s);
}

static int
error_of(const struct scram *s, int result)
{
	if (s->error < 0)
		return s->error;
	if (result == GSASL_MALLOC_ERROR)
		return -ENOMEM;
	return result == GSASL_AUTHENTICATION_ERROR ? -EKEYREJECTED : -EPROTO;
}

static int
keep_answer(struct scram *s, const char *answer, size_t len, struct buf *out)
{
	int r = buf_add(out, answer, len);

	if (r < 0 || len == 0)
		return r;
	buf_reset(&s->answer);
	return buf_add(&s->answer, answer, len);
}

int
scram_step(struct scram *s, const char *challenge, struct buf *out)
{
	char *said = NULL, *answer = NULL;
	size_t said_len = 0, len = 0;
	int result, r;

	if (s->proven)
		return -EPROTO;
	result =
	    gsasl_base64_from(challenge, strlen(challenge), &said, &said_len);
	if (result == GSASL_OK)
		result = gsasl_step(s->session, said, said_len, &answer, &len);
	gsasl_free(said);
	if (result != GSASL_NEEDS_MORE && result != GSASL_OK)
		return error_of(s, result);
	s->proven = result == GSASL_OK;
	r = keep_answer(s, answer, len, out);
	gsasl_free(answer);
	return r;
}

bool
scram_is_proven(const struct scram *s)
{
	return s->proven;
}

const struct buf *
scram_answer(const struct scram *s)
{
	return &s->answer;
}
