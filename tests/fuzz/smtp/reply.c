/* Replies of a server: bounded memory, the same in pieces of any size, texts
 * and codes that are fit for logs and bounces; EHLO keywords. */
#include "tests/fuzz/fuzz.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "smtp/smtp.h"

static void
check_dsn(const struct smtp_reply *reply)
{
	char dsn[SMTP_DSN_SIZE];

	FUZZ_FILL(dsn);
	smtp_reply_dsn(reply, dsn);
	MUST(memchr(dsn, '\0', sizeof(dsn)) != NULL);
	MUST(dsn[0] == (char)('0' + reply->code / 100) && dsn[1] == '.');
	MUST(strspn(dsn, "0123456789.") == strlen(dsn) && strlen(dsn) >= 5);
}

/* A keyword counts on a line of its own, behind the first. */
static void
check_ehlo(const struct smtp_reply *reply)
{
	const char *text = buf_str(&reply->text);
	struct smtp_ehlo ehlo;

	FUZZ_FILL(ehlo);
	smtp_ehlo_parse(reply, 0, &ehlo);
	if (reply->lines < 2 || strcasestr(text, "\nPIPELINING") == NULL)
		MUST(!ehlo.pipelining || strlen(text) != reply->text.len);
	if (reply->lines < 2)
		MUST(!ehlo.pipelining && !ehlo.eight_bit && !ehlo.utf8 &&
		    !ehlo.size);
	MUST(ehlo.size || ehlo.size_max == 0);
}

static void
check_reply(const struct smtp_reply *reply, size_t max)
{
	struct buf text = { 0 };

	MUST(reply->code >= 200 && reply->code < 600);
	MUST(reply->lines >= 1 && reply->lines <= SMTP_REPLY_LINES_MAX);
	MUST(reply->text.len <= SMTP_REPLY_TEXT_MAX);
	check_dsn(reply);
	MUST(smtp_reply_text(reply, max, &text) == 0);
	MUST(fuzz_is_shown(buf_str(&text), text.len));
	MUST(text.len <= (max < 3 ? 3 : max + 1));
	check_ehlo(reply);
	buf_done(&text);
}

/* Every reply of the input, joined, and how it ended. */
static int
feed(const char *s, size_t len, size_t piece, size_t max, struct buf *out)
{
	struct smtp_reply_parser p;
	size_t at = 0, used = 0;
	int r = 0;

	smtp_reply_init(&p);
	while (at < len && r >= 0) {
		size_t n = len - at < piece ? len - at : piece;
		char *copy = malloc(n);

		MUST(copy != NULL);
		memcpy(copy, s + at, n);
		r = smtp_reply_feed(&p, copy, n, &used);
		free(copy);
		if (r < 0)
			break;
		MUST(used > 0 && used <= n && (r == 1 || used == n));
		at += used;
		if (r == 1) {
			check_reply(&p.reply, max);
			MUST(buf_printf(out, "%u:", p.reply.code) == 0);
			MUST(buf_add(out, p.reply.text.data,
				 p.reply.text.len) == 0);
		}
	}
	MUST(r >= 0 || (r == -EPROTO && p.error != NULL));
	MUST(p.reply.text.cap <= (size_t)4 * SMTP_REPLY_TEXT_MAX);
	smtp_reply_done(&p);
	return r < 0 ? r : 0;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_in in = { data, size };
	size_t piece = 1 + fuzz_number(&in, 1), max = fuzz_number(&in, 2), len;
	struct buf whole = { 0 }, cut = { 0 };
	char *s = fuzz_rest(&in, &len);
	int r;

	r = feed(s, len, len == 0 ? 1 : len, max, &whole);
	MUST(feed(s, len, piece, max, &cut) == r);
	MUST(whole.len == cut.len);
	MUST(whole.len == 0 || memcmp(whole.data, cut.data, cut.len) == 0);
	buf_done(&whole);
	buf_done(&cut);
	free(s);
	return 0;
}
