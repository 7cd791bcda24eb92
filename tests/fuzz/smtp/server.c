/* A whole session at the server: how the input is cut changes nothing, what is
 * said is replies and nothing else, memory is bounded, a message ends where a
 * slow reader says it ends, and no event comes out of its order. */
#include "tests/fuzz/fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "smtp/server.h"

#define ALL                                                              \
	(SMTP_OFFER_PIPELINING | SMTP_OFFER_SIZE | SMTP_OFFER_8BITMIME | \
	    SMTP_OFFER_SMTPUTF8 | SMTP_OFFER_DSN |                       \
	    SMTP_OFFER_ENHANCEDSTATUSCODES)

/* One run over the input. */
struct session {
	struct smtp_server server;
	struct buf said;    /* replies, in order */
	struct buf asked;   /* a letter for each question, with its address */
	struct buf content; /* of all messages */
	size_t content_at;  /* where this message begins in the input */
	size_t at;          /* octets that were fed */
	unsigned refuse;    /* bits: the next questions that are refused */
	uint32_t rcpts;
};

/* ---- what must hold ---- */

/* Lines of three digits, a blank or `-`, and printable ASCII. */
static void
check_replies(const struct buf *said)
{
	const char *p = buf_str(said), *end = p + said->len;

	while (p < end) {
		const char *eol = memmem(p, (size_t)(end - p), "\r\n", 2);
		size_t i, len;

		MUST(eol != NULL);
		len = (size_t)(eol - p);
		MUST(len >= 4 && len <= 510);
		MUST(p[0] >= '2' && p[0] <= '5');
		MUST(p[3] == ' ' || p[3] == '-');
		for (i = 0; i < len; i++)
			MUST(p[i] >= 0x20 && p[i] < 0x7f);
		p = eol + 2;
	}
}

static void
check_address(const struct smtp_server_address *a, bool may_be_null)
{
	struct buf path = { 0 };
	char again[ADDRESS_MAX + 1];
	bool domain;

	if (a->text[0] == '\0') {
		MUST(may_be_null && !a->has_domain);
		return;
	}
	MUST(address_check(a->text, strlen(a->text)) == 0);
	/* What one server reads it sends on, and the next one reads the same;
	 * dots where none may stand gain quotes on the way. */
	if (!a->has_domain)
		return;
	MUST(smtp_path_add(&path, a->text) == 0);
	if (path.len > ADDRESS_MAX) { /* the quotes made it too long */
		buf_done(&path);
		return;
	}
	MUST(smtp_path_parse(buf_str(&path), false, again, &domain) ==
	    (ssize_t)path.len);
	MUST(domain);
	MUST(strcmp(again, a->text) == 0 || again[0] == '"');
	buf_done(&path);
}

/* ---- the owner ---- */

static bool
refuses(struct session *s)
{
	const bool r = (s->refuse & 1) != 0;

	s->refuse >>= 1;
	return r;
}

static void
answer(struct session *s, unsigned code, const char *dsn)
{
	if (refuses(s))
		smtp_server_answer(&s->server, 550, "5.0.0", "no \x01\xff");
	else
		smtp_server_answer(&s->server, code, dsn, "yes");
}

static void
take_mail(struct session *s)
{
	MUST(buf_printf(&s->asked, "M%s\n", s->server.mail.address.text) == 0);
	check_address(&s->server.mail.address, true);
	MUST(dsn_ret_is_valid(s->server.mail.dsn.ret));
	answer(s, 250, "2.1.0");
	s->rcpts = 0;
	MUST(s->server.state == SMTP_AT_MAIL ||
	    s->server.state == SMTP_AT_READY);
}

static void
take_rcpt(struct session *s)
{
	MUST(buf_printf(&s->asked, "R%s\n", s->server.rcpt.address.text) == 0);
	check_address(&s->server.rcpt.address, false);
	MUST(dsn_notify_is_valid(s->server.rcpt.dsn.notify));
	s->rcpts += (s->refuse & 1) == 0;
	MUST(s->rcpts <= 4);
	answer(s, 250, "2.1.5");
	MUST(s->server.state == (s->rcpts > 0 ? SMTP_AT_RCPT : SMTP_AT_MAIL));
}

static void
take_data(struct session *s)
{
	MUST(buf_add_str(&s->asked, "D\n") == 0);
	MUST(s->rcpts > 0);
	answer(s, 354, NULL);
	s->content_at = s->at;
	buf_reset(&s->content);
}

static void
take_content(struct session *s)
{
	MUST(s->server.content_len > 0);
	MUST(s->server.content_len <= SMTP_SERVER_CONTENT_MAX);
	MUST(buf_add(&s->content, s->server.content, s->server.content_len) ==
	    0);
}

/* ---- where a message ends, written again ---- */

/* The end of the line at p: behind its CRLF, or LF where that is enough. */
static const char *
line_end(const char *p, const char *end, bool strict)
{
	for (; p < end; p++)
		if (*p == '\n' && (!strict || p[-1] == '\r'))
			return p + 1;
	return NULL;
}

/* The input from here to there is this content and its end. */
static void
check_content(const struct session *s, const char *p, const char *end)
{
	const bool strict = s->server.rules.strict;
	const char *got = buf_str(&s->content), *stop = got + s->content.len;

	for (;;) {
		const char *next = line_end(p, end, strict);
		size_t len, eol;

		MUST(next != NULL);
		eol = next - p >= 2 && next[-2] == '\r' ? 2 : 1;
		len = (size_t)(next - p) - eol;
		if (len == 1 && *p == '.') {
			MUST(next == end && got == stop);
			return;
		}
		if (len > 0 && *p == '.') {
			p++;
			len--;
		}
		MUST((size_t)(stop - got) >= len + 1);
		MUST(memcmp(got, p, len) == 0 && got[len] == '\n');
		got += len + 1;
		p = next;
	}
}

static void
take_end(struct session *s, const char *input)
{
	MUST(buf_add_str(&s->asked, "E\n") == 0);
	check_content(s, input + s->content_at, input + s->at);
	MUST(buf_add(&s->asked, buf_str(&s->content), s->content.len) == 0);
	answer(s, 250, "2.0.0");
	MUST(s->server.state == SMTP_AT_READY);
}

/* ---- a run ---- */

static void
take_replies(struct session *s)
{
	MUST(s->server.out_len <= sizeof(s->server.out));
	MUST(buf_add(&s->said, s->server.out, s->server.out_len) == 0);
	smtp_server_written(&s->server, s->server.out_len);
}

/* False: the session has ended. */
static bool
take_event(struct session *s, enum smtp_server_event event, const char *input)
{
	switch (event) {
	case SMTP_SERVER_MAIL:
		take_mail(s);
		return true;
	case SMTP_SERVER_RCPT:
		take_rcpt(s);
		return true;
	case SMTP_SERVER_DATA:
		take_data(s);
		return true;
	case SMTP_SERVER_CONTENT:
		take_content(s);
		return true;
	case SMTP_SERVER_END:
		take_end(s, input);
		return true;
	case SMTP_SERVER_WANT:
	case SMTP_SERVER_WRITE:
		take_replies(s);
		return true;
	case SMTP_SERVER_CLOSE:
	default:
		take_replies(s);
		return false;
	}
}

static bool
feed(struct session *s, const char *input, size_t len)
{
	enum smtp_server_event event;
	size_t left = len, used;
	bool open;

	do {
		event =
		    smtp_server_feed(&s->server, input + s->at, left, &used);
		MUST(used <= left);
		left -= used;
		s->at += used;
		open = take_event(s, event, input);
	} while (open && event != SMTP_SERVER_WANT);
	MUST(!open || left == 0);
	return open;
}

static void
converse(struct session *s, const struct smtp_server_rules *rules,
    unsigned refuse, const char *input, size_t len, size_t piece)
{
	bool open = true;

	s->at = 0;
	s->rcpts = 0;
	s->refuse = refuse;
	buf_reset(&s->said);
	buf_reset(&s->asked);
	buf_reset(&s->content);
	smtp_server_init(&s->server, rules);
	while (open && s->at < len)
		open =
		    feed(s, input, len - s->at < piece ? len - s->at : piece);
	take_replies(s);
}

static void
must_equal(const struct buf *a, const struct buf *b)
{
	MUST(a->len == b->len);
	MUST(memcmp(buf_str(a), buf_str(b), a->len) == 0);
}

/* Words that a fuzzer would not find soon, for one octet each. */
static const char *const words[] = { "EHLO x\r\n", "MAIL FROM:<a@b>\r\n",
	"RCPT TO:<c@d>\r\n", "DATA\r\n", "\r\n.\r\n", "\n.\n",
	"MAIL FROM:", "RCPT TO:", " NOTIFY=NEVER", " ORCPT=rfc822;x",
	" ENVID=x", " RET=FULL", " SIZE=1", " SMTPUTF8", "RSET\r\n", "\r\n" };

static void
spell(struct fuzz_in *in, struct buf *out)
{
	static char filler[SMTP_SERVER_LINE_MAX + 100];

	memset(filler, 'x', sizeof(filler));
	while (in->left > 0 && out->len < 5000) {
		const unsigned c = (unsigned)fuzz_number(in, 1);

		if (c >= 0xe0 && c < 0xe0 + ARRAY_LEN(words))
			MUST(buf_add_str(out, words[c - 0xe0]) == 0);
		else if (c == 0xf0)
			MUST(buf_add(out, filler,
				 sizeof(filler) - out->len % sizeof(filler)) ==
			    0);
		else
			MUST(buf_add_char(out, (char)c) == 0);
	}
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct session whole, cut;
	struct fuzz_in in = { data, size };
	const unsigned flags = (unsigned)fuzz_number(&in, 1);
	const unsigned refuse = (unsigned)fuzz_number(&in, 1);
	size_t piece = 1 + fuzz_number(&in, 1);
	const struct smtp_server_rules rules = { .host = "mx.example",
		.offer = flags & 1 ? ALL : ALL & ~(unsigned)SMTP_OFFER_DSN,
		.size_max = 1000,
		.rcpt_max = 4,
		.error_max = flags & 2 ? 5 : 0,
		.strict = (flags & 4) != 0 };
	static struct buf input;
	char *exact;

	buf_reset(&input);
	spell(&in, &input);
	/* A long input is cut into fewer pieces: speed. */
	if (input.len / piece > 200)
		piece = 1 + input.len / 200;
	/* In memory of its size, so that a read beyond it is seen. */
	exact = malloc(input.len + 1);
	MUST(exact != NULL);
	memcpy(exact, buf_str(&input), input.len + 1);
	converse(&whole, &rules, refuse, exact, input.len, SIZE_MAX);
	converse(&cut, &rules, refuse, exact, input.len, piece);
	check_replies(&whole.said);
	must_equal(&whole.said, &cut.said);
	must_equal(&whole.asked, &cut.asked);
	MUST(whole.server.state == cut.server.state);
	free(exact);
	return 0;
}
