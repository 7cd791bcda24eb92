/* Verdicts: what a child of another user sends, and what a program says. */
#include "tests/fuzz/fuzz.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "deliver-local/child.h"

static void
check_verdict(const struct verdict *v)
{
	MUST(v->outcome < AGENT_NOUTCOMES);
	MUST(memchr(v->dsn, '\0', sizeof(v->dsn)) != NULL);
	MUST(memchr(v->text, '\0', sizeof(v->text)) != NULL);
}

/* Codes, exits and the outcome say the same. */
static void
check_ours(const struct verdict *v)
{
	static const char classes[] = { '2', '4', '5' };

	check_verdict(v);
	MUST(v->dsn[0] == classes[v->outcome] && v->dsn[1] == '.');
	MUST(strspn(v->dsn, "0123456789.") == strlen(v->dsn));
}

static void
check_read(const char *bytes, size_t len)
{
	const size_t head = offsetof(struct verdict, text);
	struct verdict v;
	int r;

	FUZZ_FILL(v);
	r = verdict_read(bytes, len, &v);
	if (r < 0) {
		MUST(r == -EBADMSG && FUZZ_UNTOUCHED(v));
		return;
	}
	check_verdict(&v);
	MUST(len == head + strlen(v.text) + 1);
	MUST(memcmp(&v, bytes, len) == 0);
}

static void
check_status(int status, const char *output, size_t len)
{
	struct verdict v;

	verdict_status(&v, status, "name", output, len);
	check_ours(&v);
	MUST(fuzz_is_shown(v.text, strlen(v.text)));
	check_read((const char *)&v,
	    offsetof(struct verdict, text) + strlen(v.text) + 1);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_in in = { data, size };
	int status = (int)fuzz_number(&in, 2);
	char dsn[AGENT_DSN_MAX], *bytes, *text;
	const char *rest = NULL;
	struct verdict v;
	size_t len;

	bytes = fuzz_rest(&in, &len);
	check_read(bytes, len);
	if ((status & 0xff) != 0x7f && (status & 0xff) != 0xff)
		check_status(status, bytes, len);
	in = (struct fuzz_in){ data, size };
	text = fuzz_string(&in);
	if (verdict_code(text, dsn, &rest) == 0) {
		MUST(strncmp(text, dsn, strlen(dsn)) == 0);
		MUST(rest > text && rest <= text + strlen(text));
	}
	verdict_refuse(&v, text);
	check_ours(&v);
	MUST(v.outcome != AGENT_SENT);
	free(bytes);
	free(text);
	return 0;
}
