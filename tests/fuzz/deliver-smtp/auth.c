/* Challenges of a server that does not know the password, for each mechanism:
 * the exchange ends within a few answers, SCRAM is never proven, and only the
 * words of PLAIN, LOGIN and the tokens have the secret. */
#include "tests/fuzz/fuzz.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <openssl/evp.h>

#include "deliver-smtp/protection/auth.h"

#define SECRET      "Gr4ss-green"
#define ANSWERS_MAX 3

/* A challenge of SCRAM that begins with the client's nonce, or the octets as
 * they are. */
static void
make_challenge(const struct auth *a, bool nonce, const char *said,
    struct smtp_reply *reply)
{
	const char *ours = a->scram == NULL
	    ? NULL
	    : strstr(buf_str(scram_answer(a->scram)), ",r=");
	struct buf raw = { 0 };

	buf_reset(&reply->text);
	if (!nonce || ours == NULL) {
		MUST(buf_printf(&reply->text, "%s\n", said) == 0);
		return;
	}
	MUST(buf_printf(&raw, "%s%s", ours + 1, said) == 0);
	MUST(buf_reserve(&reply->text, 4 * ((raw.len + 2) / 3) + 2) == 0);
	reply->text.len =
	    (size_t)EVP_EncodeBlock((unsigned char *)reply->text.data,
		(const unsigned char *)raw.data, (int)raw.len);
	MUST(buf_add_char(&reply->text, '\n') == 0);
	buf_done(&raw);
}

static void
converse(struct auth *a, struct fuzz_in *in)
{
	struct smtp_reply reply = { .code = 334 };
	struct buf out = { 0 };
	unsigned answers = 0;
	int r = 0;

	while (r == 0 && in->left > 0) {
		const bool nonce = fuzz_number(in, 1) & 1;
		char *said = fuzz_string(in);

		make_challenge(a, nonce, said, &reply);
		free(said);
		buf_reset(&out);
		r = auth_answer(a, &out, &reply);
		MUST(r == 0 || r == -EPROTO || r == -E2BIG ||
		    r == -EKEYREJECTED);
		MUST(r < 0 || ++answers <= ANSWERS_MAX);
		MUST(a->scram == NULL ||
		    (!auth_is_proven(a) &&
			strstr(buf_str(&out), SECRET) == NULL));
	}
	buf_done(&out);
	buf_done(&reply.text);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static char key[] = "mx", user[] = "me", secret[] = SECRET;
	struct fuzz_in in = { data, size };
	const unsigned mechanism = 1u << fuzz_number(&in, 1) % 5;
	const struct credential c = { key, user, secret,
		mechanism == SMTP_AUTH_OAUTHBEARER ||
		    mechanism == SMTP_AUTH_XOAUTH2,
		1 };
	struct auth a = { 0 };
	struct buf out = { 0 };

	MUST(auth_choose(SMTP_AUTH_ALL & mechanism, &c) == mechanism);
	MUST(auth_begin(&a, &out, mechanism, &c) == 0);
	converse(&a, &in);
	auth_done(&a);
	buf_done(&out);
	return 0;
}
