#include "smtp/server.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BYTES(s) s, sizeof(s) - 1
#define ALL                                                              \
	(SMTP_OFFER_PIPELINING | SMTP_OFFER_SIZE | SMTP_OFFER_8BITMIME | \
	    SMTP_OFFER_SMTPUTF8 | SMTP_OFFER_DSN |                       \
	    SMTP_OFFER_ENHANCEDSTATUSCODES)

static const struct smtp_server_rules strict = { .host = "mx.example",
	.offer = ALL,
	.size_max = 1000,
	.rcpt_max = 3,
	.strict = true };
static const struct smtp_server_rules local = {
	.host = "mx.example", .offer = ALL, .size_max = 1000, .rcpt_max = 3
};

/* ---- an owner that writes everything down ---- */

/* Recipients and senders with this word are refused. */
#define REFUSED "refused"

static void
answer_address(struct smtp_server *s, const struct smtp_server_address *a)
{
	if (strstr(a->text, REFUSED) != NULL)
		smtp_server_answer(s, 550, "5.1.1", "nobody: %s", a->text);
	else
		smtp_server_answer(s, 250, "2.1.0", "Ok");
}

static void
take_mail(struct smtp_server *s, struct buf *log)
{
	const struct smtp_server_mail *m = &s->mail;

	buf_printf(log, "{mail %s%s %llu%s %s %s}", m->address.text,
	    m->address.has_domain ? "" : "?", (unsigned long long)m->size,
	    m->utf8 ? " utf8" : "", dsn_ret_name(m->dsn.ret), m->dsn.envid);
	answer_address(s, &m->address);
}

static void
take_rcpt(struct smtp_server *s, struct buf *log)
{
	char notify[DSN_NOTIFY_MAX];

	dsn_notify_format(s->rcpt.dsn.notify, notify);
	buf_printf(log, "{rcpt %s%s %s %s}", s->rcpt.address.text,
	    s->rcpt.address.has_domain ? "" : "?", notify, s->rcpt.dsn.orcpt);
	answer_address(s, &s->rcpt.address);
}

static void
take_data(struct smtp_server *s, struct buf *log)
{
	buf_add_str(log, "{data}");
	if (strstr(s->mail.address.text, "nodata") != NULL)
		smtp_server_answer(s, 451, "4.3.0", "not now");
	else
		smtp_server_answer(s, 354, NULL, "go on");
}

static void
take_content(struct smtp_server *s, struct buf *log)
{
	cr_assert_gt(s->content_len, 0);
	cr_assert_leq(s->content_len, sizeof(s->content));
	buf_add(log, s->content, s->content_len);
}

static void
take_end(struct smtp_server *s, struct buf *log)
{
	buf_add_str(log, "{end}");
	if (strstr(s->mail.address.text, "noend") != NULL)
		smtp_server_answer(s, 452, "4.3.1", "full");
	else
		smtp_server_answer(s, 250, "2.0.0", "Ok: queued");
}

static void
take_write(struct smtp_server *s, struct buf *log)
{
	cr_assert_leq(s->out_len, sizeof(s->out));
	buf_add(log, s->out, s->out_len);
	smtp_server_written(s);
}

static void (*const takers[])(struct smtp_server *s, struct buf *log) = {
	[SMTP_SERVER_WANT] = take_write,
	[SMTP_SERVER_WRITE] = take_write,
	[SMTP_SERVER_MAIL] = take_mail,
	[SMTP_SERVER_RCPT] = take_rcpt,
	[SMTP_SERVER_DATA] = take_data,
	[SMTP_SERVER_CONTENT] = take_content,
	[SMTP_SERVER_END] = take_end,
	[SMTP_SERVER_CLOSE] = take_write,
};

/* One slice, in memory of its own. False: the session has ended. */
static bool
feed(struct smtp_server *s, const char *data, size_t len, struct buf *log)
{
	char *slice = malloc(len + 1);
	enum smtp_server_event event;
	size_t at = 0, used;

	memcpy(slice, data, len);
	do {
		event = smtp_server_feed(s, slice + at, len - at, &used);
		cr_assert_leq(used, len - at);
		at += used;
		/* Replies first, as a client sees these. */
		take_write(s, log);
		takers[event](s, log);
		take_write(s, log);
	} while (event != SMTP_SERVER_WANT && event != SMTP_SERVER_CLOSE);
	cr_assert(event == SMTP_SERVER_CLOSE || at == len);
	free(slice);
	return event != SMTP_SERVER_CLOSE;
}

/* Everything that is said and asked, without the greeting. */
static void
converse(const struct smtp_server_rules *rules, const char *data, size_t len,
    size_t slice, struct buf *log)
{
	struct smtp_server *s = malloc(sizeof(*s));
	size_t at, n;

	smtp_server_init(s, rules);
	smtp_server_written(s);
	buf_reset(log);
	for (at = 0; at < len; at += n) {
		n = len - at < slice ? len - at : slice;
		if (!feed(s, data + at, n, log)) {
			buf_add_str(log, "{close}");
			break;
		}
	}
	free(s);
}

/* ---- each command in each state ---- */

static const char *const to_state[SMTP_SERVER_NSTATES] = {
	[SMTP_AT_START] = "",
	[SMTP_AT_READY] = "EHLO me\r\n",
	[SMTP_AT_MAIL] = "EHLO me\r\nMAIL FROM:<a@b>\r\n",
	[SMTP_AT_RCPT] = "EHLO me\r\nMAIL FROM:<a@b>\r\nRCPT TO:<c@d>\r\n",
	[SMTP_AT_CONTENT] =
	    "EHLO me\r\nMAIL FROM:<a@b>\r\nRCPT TO:<c@d>\r\nDATA\r\n",
	[SMTP_AT_CLOSED] = "QUIT\r\n",
};

#define S SMTP_AT_START
#define R SMTP_AT_READY
#define M SMTP_AT_MAIL
#define T SMTP_AT_RCPT
#define C SMTP_AT_CONTENT
#define X SMTP_AT_CLOSED

/* The code of the reply, 0 for none, and the state after it. */
struct cell {
	unsigned code;
	enum smtp_server_state state;
};

/* clang-format off */
static const struct {
	const char *line;
	struct cell in[SMTP_SERVER_NSTATES]; /* START READY MAIL RCPT CONTENT CLOSED */
} grid[] = {
	{ "EHLO me",         {{250,R},{250,R},{250,R},{250,R},{0,C},{0,X}} },
	{ "ehlo me",         {{250,R},{250,R},{250,R},{250,R},{0,C},{0,X}} },
	{ "EHLO",            {{501,S},{501,R},{501,M},{501,T},{0,C},{0,X}} },
	{ "HELO me",         {{250,R},{250,R},{250,R},{250,R},{0,C},{0,X}} },
	{ "HELO",            {{501,S},{501,R},{501,M},{501,T},{0,C},{0,X}} },
	{ "MAIL FROM:<a@b>", {{503,S},{250,M},{503,M},{503,T},{0,C},{0,X}} },
	{ "MAIL FROM:<>",    {{503,S},{250,M},{503,M},{503,T},{0,C},{0,X}} },
	{ "MAIL FROM:<refused@b>", {{503,S},{550,R},{503,M},{503,T},{0,C},{0,X}} },
	{ "MAIL FROM:<a",    {{503,S},{501,R},{503,M},{503,T},{0,C},{0,X}} },
	{ "MAIL",            {{503,S},{501,R},{503,M},{503,T},{0,C},{0,X}} },
	{ "RCPT TO:<c@d>",   {{503,S},{503,R},{250,T},{250,T},{0,C},{0,X}} },
	{ "RCPT TO:<refused@d>", {{503,S},{503,R},{550,M},{550,T},{0,C},{0,X}} },
	{ "RCPT TO:<>",      {{503,S},{503,R},{501,M},{501,T},{0,C},{0,X}} },
	{ "RCPT FROM:<c@d>", {{503,S},{503,R},{501,M},{501,T},{0,C},{0,X}} },
	{ "DATA",            {{503,S},{503,R},{503,M},{354,C},{0,C},{0,X}} },
	{ "DATA now",        {{503,S},{503,R},{503,M},{501,T},{0,C},{0,X}} },
	{ "RSET",            {{250,S},{250,R},{250,R},{250,R},{0,C},{0,X}} },
	{ "NOOP",            {{250,S},{250,R},{250,M},{250,T},{0,C},{0,X}} },
	{ "NOOP a b",        {{250,S},{250,R},{250,M},{250,T},{0,C},{0,X}} },
	{ "VRFY a",          {{252,S},{252,R},{252,M},{252,T},{0,C},{0,X}} },
	{ "VRFY",            {{501,S},{501,R},{501,M},{501,T},{0,C},{0,X}} },
	{ "EXPN a",          {{502,S},{502,R},{502,M},{502,T},{0,C},{0,X}} },
	{ "HELP",            {{214,S},{214,R},{214,M},{214,T},{0,C},{0,X}} },
	{ "AUTH PLAIN",      {{502,S},{502,R},{502,M},{502,T},{0,C},{0,X}} },
	{ "STARTTLS",        {{502,S},{502,R},{502,M},{502,T},{0,C},{0,X}} },
	{ "BDAT 1 LAST",     {{502,S},{502,R},{502,M},{502,T},{0,C},{0,X}} },
	{ "QUIT",            {{221,X},{221,X},{221,X},{221,X},{0,C},{0,X}} },
	{ "QUIT  ",          {{221,X},{221,X},{221,X},{221,X},{0,C},{0,X}} },
	{ "SEND FROM:<a@b>", {{500,S},{500,R},{500,M},{500,T},{0,C},{0,X}} },
	{ "MAI",             {{500,S},{500,R},{500,M},{500,T},{0,C},{0,X}} },
	{ "MAILFROM:<a@b>",  {{500,S},{500,R},{500,M},{500,T},{0,C},{0,X}} },
	{ "",                {{500,S},{500,R},{500,M},{500,T},{0,C},{0,X}} },
	{ " NOOP",           {{500,S},{500,R},{500,M},{500,T},{0,C},{0,X}} },
	{ "NOOP\ta",         {{500,S},{500,R},{500,M},{500,T},{0,C},{0,X}} },
	{ ".",               {{500,S},{500,R},{500,M},{500,T},{250,R},{0,X}} },
};
/* clang-format on */

static void
check_cell(const char *line, unsigned state, const struct cell *want)
{
	struct smtp_server *s = malloc(sizeof(*s));
	struct buf log = { 0 }, command = { 0 };
	const char *reply;

	smtp_server_init(s, &strict);
	smtp_server_written(s);
	feed(s, to_state[state], strlen(to_state[state]), &log);
	cr_assert_eq(s->state, state);
	buf_reset(&log);
	buf_printf(&command, "%s\r\n", line);
	feed(s, command.data, command.len, &log);
	cr_expect_eq(s->state, want->state, "%u `%s': %u", state, line,
	    (unsigned)s->state);
	reply = strrchr(buf_str(&log), '}');
	reply = reply == NULL ? buf_str(&log) : reply + 1;
	cr_expect_eq((unsigned)strtoul(reply, NULL, 10), want->code,
	    "%u `%s': %s", state, line, reply);
	buf_done(&log);
	buf_done(&command);
	free(s);
}

Test(server, S14_each_command_in_each_state)
{
	unsigned state;
	size_t i;

	for (i = 0; i < ARRAY_LEN(grid); i++)
		for (state = 0; state < SMTP_SERVER_NSTATES; state++)
			check_cell(grid[i].line, state, &grid[i].in[state]);
}

/* ---- whole sessions ---- */

#define EHLO_REPLY                                              \
	"250-mx.example\r\n250-PIPELINING\r\n250-SIZE 1000\r\n" \
	"250-8BITMIME\r\n250-SMTPUTF8\r\n250-DSN\r\n"           \
	"250 ENHANCEDSTATUSCODES\r\n"
#define OK      "250 2.1.0 Ok\r\n"
#define MAIL_AB "{mail a@b 0  }" OK
#define RCPT_CD "{rcpt c@d  }" OK
#define DATA_OK "{data}354 go on\r\n"
#define END_OK  "{end}250 2.0.0 Ok: queued\r\n"
#define OPEN    "EHLO me\r\nMAIL FROM:<a@b>\r\nRCPT TO:<c@d>\r\nDATA\r\n"
#define OPENED  EHLO_REPLY MAIL_AB RCPT_CD DATA_OK

struct session {
	const char *name;
	const struct smtp_server_rules *rules;
	const char *input;
	size_t len;
	const char *want;
};

static const struct session sessions[] = {
	{ "pipelined, two messages", &strict,
	    BYTES(OPEN "S: x\r\n\r\none\r\n.\r\nMAIL FROM:<a@b>\r\n"
		       "RCPT TO:<c@d>\r\nDATA\r\ntwo\r\n.\r\nQUIT\r\nNOOP\r\n"),
	    OPENED "S: x\n\none\n" END_OK MAIL_AB RCPT_CD DATA_OK "two\n" END_OK
		   "221 2.0.0 Bye\r\n{close}" },
	{ "dots", &strict, BYTES(OPEN "..\r\n...\r\n.a\r\na.\r\n.\r\n"),
	    OPENED ".\n..\na\na.\n" END_OK },
	{ "empty message", &strict, BYTES(OPEN ".\r\nNOOP\r\n"),
	    OPENED END_OK "250 2.0.0 Ok\r\n" },
	{ "refused at the end", &strict,
	    BYTES("EHLO me\r\nMAIL FROM:<noend@b>\r\nRCPT TO:<c@d>\r\n"
		  "DATA\r\nx\r\n.\r\nDATA\r\n"),
	    EHLO_REPLY "{mail noend@b 0  }" OK RCPT_CD DATA_OK
		       "x\n{end}452 4.3.1 full\r\n"
		       "503 5.5.1 MAIL and RCPT come first\r\n" },
	{ "refused at DATA: what follows is a command", &strict,
	    BYTES("EHLO me\r\nMAIL FROM:<nodata@b>\r\nRCPT TO:<c@d>\r\n"
		  "DATA\r\nx\r\n"),
	    EHLO_REPLY "{mail nodata@b 0  }" OK RCPT_CD
		       "{data}451 4.3.0 not now\r\n"
		       "500 5.5.2 the command is not known\r\n" },
	{ "all recipients refused", &strict,
	    BYTES("EHLO me\r\nMAIL FROM:<a@b>\r\nRCPT TO:<refused@d>\r\n"
		  "RCPT TO:<c\r\nDATA\r\n"),
	    EHLO_REPLY MAIL_AB
	    "{rcpt refused@d  }550 5.1.1 nobody: refused@d\r\n"
	    "501 5.1.3 the recipient is no address; RCPT TO:<address> is "
	    "right\r\n554 5.5.1 no valid recipients\r\n" },
	{ "too many recipients", &strict,
	    BYTES("EHLO me\r\nMAIL FROM:<a@b>\r\nRCPT TO:<c@d>\r\n"
		  "RCPT TO:<c@d>\r\nRCPT TO:<c@d>\r\nRCPT TO:<c@d>\r\n"
		  "DATA\r\n"),
	    EHLO_REPLY MAIL_AB RCPT_CD RCPT_CD RCPT_CD
	    "452 4.5.3 3 recipients are the limit of a message\r\n" DATA_OK },
	{ "EHLO and RSET end a transaction", &strict,
	    BYTES("EHLO me\r\nMAIL FROM:<a@b>\r\nRSET\r\nMAIL FROM:<a@b>\r\n"
		  "EHLO me\r\nRCPT TO:<c@d>\r\n"),
	    EHLO_REPLY MAIL_AB "250 2.0.0 Ok\r\n" MAIL_AB EHLO_REPLY
			       "503 5.5.1 MAIL comes first\r\n" },
	{ "an address needs SMTPUTF8", &strict,
	    BYTES(
		"EHLO me\r\nMAIL FROM:<\xc3\xa4@b>\r\n"
		"MAIL FROM:<\xc3\xa4@b> SMTPUTF8\r\nRCPT TO:<\xc3\xa4@b>\r\n"),
	    EHLO_REPLY "553 5.6.7 the address needs SMTPUTF8 in MAIL\r\n"
		       "{mail \xc3\xa4@b 0 utf8  }" OK
		       "{rcpt \xc3\xa4@b  }" OK },
	{ "here it does not", &local, BYTES("MAIL FROM:<\xc3\xa4@b>\r\n"),
	    "{mail \xc3\xa4@b 0  }" OK },
	{ "a NUL", &strict, BYTES("EHLO me\r\nMAIL FROM:<a\0@b>\r\nNOOP\0\r\n"),
	    EHLO_REPLY "500 5.5.2 control character in the command\r\n"
		       "500 5.5.2 control character in the command\r\n" },
	{ "a NUL in the content", &strict, BYTES(OPEN "a\0b\r\n\0\r\n.\r\n"),
	    OPENED "a" },
	{ "a bare LF ends no command", &strict,
	    BYTES("EHLO me\nNOOP\r\nRSET\n"),
	    "500 5.5.2 the command does not end with CR and LF\r\n"
	    "250 2.0.0 Ok\r\n"
	    "500 5.5.2 the command does not end with CR and LF\r\n" },
	{ "here it does, and in the content", &local,
	    BYTES("MAIL FROM:<a@b>\nRCPT TO:<c@d>\nDATA\none\n..\n.a\r\n.\n"
		  "QUIT\n"),
	    MAIL_AB RCPT_CD DATA_OK "one\n.\na\n" END_OK
				    "221 2.0.0 Bye\r\n{close}" },
	{ "here EHLO may be left out, and brackets, and blanks put", &local,
	    BYTES("MAIL FROM: a@b\r\nRCPT TO: <c@d>  \r\nRCPT TO:joe\r\n"),
	    MAIL_AB RCPT_CD "{rcpt joe?  }" OK },
	{ "not by the network", &strict,
	    BYTES("MAIL FROM:<a@b>\r\nEHLO me\r\nMAIL FROM:a@b\r\n"
		  "MAIL FROM: <a@b>\r\n"),
	    "503 5.5.1 EHLO or HELO comes first\r\n" EHLO_REPLY
	    "501 5.1.7 the sender is no address; MAIL FROM:<address> is "
	    "right\r\n" MAIL_AB },
};

static void
check_session(const struct session *c, size_t slice)
{
	struct buf log = { 0 };

	converse(c->rules, c->input, c->len, slice, &log);
	cr_expect_str_eq(
	    buf_str(&log), c->want, "%s: %s", c->name, buf_str(&log));
	buf_done(&log);
}

Test(server, S14_sessions_cut_at_every_octet)
{
	size_t i, slice;

	for (i = 0; i < ARRAY_LEN(sessions); i++)
		for (slice = 1; slice <= sessions[i].len; slice++)
			check_session(&sessions[i], slice);
}

/* A machine that is in the middle of a session goes on as it was. */
Test(server, S14_a_cut_at_each_place_changes_nothing)
{
	const struct session *c = &sessions[0];
	size_t cut;

	for (cut = 0; cut <= c->len; cut++) {
		struct smtp_server *s = malloc(sizeof(*s));
		struct buf log = { 0 };

		smtp_server_init(s, c->rules);
		smtp_server_written(s);
		if (feed(s, c->input, cut, &log))
			(void)feed(s, c->input + cut, c->len - cut, &log);
		buf_add_str(&log, "{close}");
		cr_expect_str_eq(buf_str(&log), c->want, "%zu", cut);
		buf_done(&log);
		free(s);
	}
}

/* ---- where a message ends ---- */

struct ending {
	const char *content;
	size_t len;
	const char *strict, *local; /* what is stored; NULL: no end yet */
};

static const struct ending endings[] = {
	{ BYTES("a\r\n.\r\n"), "a\n", "a\n" },
	{ BYTES("a\n.\n"), NULL, "a\n" },
	{ BYTES("a\n.\r\n"), NULL, "a\n" },
	{ BYTES("a\r\n.\n"), NULL, "a\n" },
	{ BYTES("a\r.\r\r\n"), NULL, NULL },
	{ BYTES("a\r\n.\r"), NULL, NULL },
	{ BYTES("a\r.\r"), NULL, NULL },
	{ BYTES("a\r\r\n.\r\r\n"), NULL, NULL },
	{ BYTES("a\n.\n\r\n.\r\n"), "a\n.\n\n", "a\n" },
	{ BYTES("a\n.\r\n\r\n.\r\n"), "a\n.\n\n", "a\n" },
	{ BYTES("a\r\n.\n\r\n.\r\n"), "a\n\n\n", "a\n" },
	{ BYTES("a\r\n.\r\r\n.\r\n"), "a\n\r\n", "a\n\r\n" },
	{ BYTES("a\r.\r\n.\r\n"), "a\r.\n", "a\r.\n" },
	{ BYTES("a\n..\r\n.\r\n"), "a\n..\n", "a\n.\n" },
	{ BYTES(".\r\n"), "", "" },
	{ BYTES("\r\n.\r\n"), "\n", "\n" },
	{ BYTES("\r.\r\n.\r\n"), "\r.\n", "\r.\n" },
};

static void
check_ending(const struct ending *e, bool bare_lf, const char *want)
{
	struct smtp_decode d = { .bare_lf = bare_lf };
	struct buf got = { 0 };
	size_t at, used;

	/* Nothing else in the input can be its end. */
	for (at = 0; at < e->len && !d.end; at += used) {
		char out[2];
		size_t n =
		    smtp_decode_feed(&d, e->content + at, 1, out, 2, &used);

		cr_assert_eq(used, 1);
		buf_add(&got, out, n);
	}
	cr_expect_eq(d.end, want != NULL, "`%s' %d", e->content, bare_lf);
	if (want != NULL)
		cr_expect_str_eq(buf_str(&got), want, "`%s' %d: `%s'",
		    e->content, bare_lf, buf_str(&got));
	buf_done(&got);
}

Test(server, S15_only_one_end_of_a_message)
{
	size_t i;

	for (i = 0; i < ARRAY_LEN(endings); i++) {
		check_ending(&endings[i], false, endings[i].strict);
		check_ending(&endings[i], true, endings[i].local);
	}
}

/* What one system sends is what the next one stores. */
Test(server, S15_content_goes_round)
{
	static const char text[] =
	    ".\n..\na\n\n.b\nlonger text, with. dots.\n.\nend\n";
	char wire[SMTP_ENCODE_MAX(sizeof(text)) + SMTP_ENCODE_MAX(0)];
	char out[sizeof(text) + 2];
	struct smtp_encode e = { 0 };
	size_t len = smtp_encode_feed(&e, text, sizeof(text) - 1, wire), used;
	struct smtp_decode d = { 0 };
	size_t n;

	len += smtp_encode_end(&e, wire + len);
	n = smtp_decode_feed(&d, wire, len, out, sizeof(out), &used);
	cr_expect(d.end);
	cr_expect_eq(used, len);
	cr_expect_eq(n, sizeof(text) - 1);
	cr_expect_arr_eq(out, text, sizeof(text) - 1);
}

/* ---- parameters ---- */

struct param_case {
	const char *line, *want; /* of the log */
};

#define XT10 "+41+41+41aaa"

static const struct param_case params[] = {
	{ "MAIL FROM:<a@b> SIZE=10", "{mail a@b 10  }" OK },
	{ "MAIL FROM:<a@b> size=1000", "{mail a@b 1000  }" OK },
	{ "MAIL FROM:<a@b> SIZE=1001",
	    "552 5.3.4 the message is larger than 1000 octets\r\n" },
	{ "MAIL FROM:<a@b> SIZE=99999999999999999999",
	    "501 5.5.4 wrong value of parameter SIZE\r\n" },
	{ "MAIL FROM:<a@b> SIZE=-1",
	    "501 5.5.4 wrong value of parameter SIZE\r\n" },
	{ "MAIL FROM:<a@b> SIZE=",
	    "501 5.5.4 wrong value of parameter SIZE\r\n" },
	{ "MAIL FROM:<a@b> SIZE",
	    "501 5.5.4 wrong value of parameter SIZE\r\n" },
	{ "MAIL FROM:<a@b> SIZE=1 SIZE=1",
	    "501 5.5.4 wrong value of parameter SIZE\r\n" },
	{ "MAIL FROM:<a@b> BODY=8bitmime", "{mail a@b 0  }" OK },
	{ "MAIL FROM:<a@b> BODY=7BIT", "{mail a@b 0  }" OK },
	{ "MAIL FROM:<a@b> BODY=BINARYMIME",
	    "501 5.5.4 wrong value of parameter BODY\r\n" },
	{ "MAIL FROM:<a@b> SMTPUTF8", "{mail a@b 0 utf8  }" OK },
	{ "MAIL FROM:<a@b> SMTPUTF8=1",
	    "501 5.5.4 wrong value of parameter SMTPUTF8\r\n" },
	{ "MAIL FROM:<a@b> RET=HDRS ENVID=" XT10,
	    "{mail a@b 0 hdrs " XT10 "}" OK },
	{ "MAIL FROM:<a@b> RET=NONE",
	    "501 5.5.4 wrong value of parameter RET\r\n" },
	{ "MAIL FROM:<a@b> ENVID=a+b",
	    "501 5.5.4 wrong value of parameter ENVID\r\n" },
	{ "MAIL FROM:<a@b> AUTH=<>",
	    "555 5.5.4 parameter AUTH is not known\r\n" },
	{ "MAIL FROM:<a@b> NOTIFY=NEVER",
	    "555 5.5.4 parameter NOTIFY is not known\r\n" },
	{ "MAIL FROM:<a@b>SIZE=1",
	    "501 5.1.7 the sender is no address; MAIL FROM:<address> is "
	    "right\r\n" },
	{ "MAIL FROM:<a@b> > SIZE=1",
	    "555 5.5.4 parameter > is not known\r\n" },
	{ "RCPT TO:<c@d> NOTIFY=SUCCESS,DELAY ORCPT=rfc822;x@y",
	    "{rcpt c@d success,delay rfc822;x@y}" OK },
	{ "RCPT TO:<c@d> NOTIFY=NEVER", "{rcpt c@d never }" OK },
	{ "RCPT TO:<c@d> NOTIFY=NEVER,DELAY",
	    "501 5.5.4 wrong value of parameter NOTIFY\r\n" },
	{ "RCPT TO:<c@d> ORCPT=x@y",
	    "501 5.5.4 wrong value of parameter ORCPT\r\n" },
	{ "RCPT TO:<c@d> SIZE=1", "555 5.5.4 parameter SIZE is not known\r\n" },
};

Test(server, S14_parameters)
{
	size_t i;

	for (i = 0; i < ARRAY_LEN(params); i++) {
		const bool rcpt = params[i].line[0] == 'R';
		struct buf input = { 0 }, log = { 0 };
		const char *got;

		buf_printf(&input, "%s%s\r\n",
		    rcpt ? "MAIL FROM:<a@b>\r\n" : "", params[i].line);
		converse(&local, input.data, input.len, SIZE_MAX, &log);
		got = buf_str(&log) + (rcpt ? strlen(MAIL_AB) : 0);
		cr_expect_str_eq(
		    got, params[i].want, "%s: %s", params[i].line, got);
		buf_done(&input);
		buf_done(&log);
	}
}

/* Nothing of an extension that is not offered. */
Test(server, S14_no_extension)
{
	static const char input[] = "EHLO me\r\nMAIL FROM:<a@b> SIZE=1\r\n"
				    "MAIL FROM:<a@b> SMTPUTF8\r\nNOOP\r\n";
	static const struct smtp_server_rules bare = { .host = "mx.example" };
	struct buf log = { 0 };

	converse(&bare, input, sizeof(input) - 1, SIZE_MAX, &log);
	cr_expect_str_eq(buf_str(&log),
	    "250 mx.example\r\n555 parameter SIZE is not known\r\n"
	    "555 parameter SMTPUTF8 is not known\r\n250 Ok\r\n");
	buf_done(&log);
}

/* ---- bounds ---- */

static void
check_line(size_t len, const char *want)
{
	struct buf input = { 0 }, log = { 0 };

	buf_add_str(&input, "NOOP ");
	while (input.len < len - 2)
		buf_add_char(&input, 'x');
	buf_add_str(&input, "\r\nNOOP\r\n");
	converse(&strict, input.data, input.len, 100, &log);
	cr_expect_str_eq(buf_str(&log), want, "%zu: %s", len, buf_str(&log));
	buf_done(&input);
	buf_done(&log);
}

Test(server, S14_long_lines)
{
	static const char too_long[] =
	    "500 5.5.2 the command is longer than 2048 octets\r\n"
	    "250 2.0.0 Ok\r\n";

	check_line(SMTP_SERVER_LINE_MAX, "250 2.0.0 Ok\r\n250 2.0.0 Ok\r\n");
	check_line(SMTP_SERVER_LINE_MAX + 1, too_long);
	check_line(100 * SMTP_SERVER_LINE_MAX, too_long);
}

/* As many commands as a slice has: replies never outgrow their memory. */
Test(server, S14_replies_are_bounded)
{
	struct smtp_server *s = malloc(sizeof(*s));
	struct buf input = { 0 }, log = { 0 };
	size_t i, at, used, writes = 0;
	enum smtp_server_event event;

	for (i = 0; i < 1000; i++)
		buf_add_str(&input, "EHLO me\r\n");
	smtp_server_init(s, &strict);
	for (at = 0;; at += used) {
		event =
		    smtp_server_feed(s, input.data + at, input.len - at, &used);
		if (event == SMTP_SERVER_WANT)
			break;
		cr_assert_eq(event, SMTP_SERVER_WRITE);
		cr_assert_leq(s->out_len, sizeof(s->out));
		writes++;
		take_write(s, &log);
	}
	take_write(s, &log);
	cr_expect_gt(writes, 10);
	cr_expect_eq(at + used, input.len);
	cr_expect_eq(log.len,
	    strlen("220 mx.example ESMTP qscheduler\r\n") +
		1000 * strlen(EHLO_REPLY));
	buf_done(&input);
	buf_done(&log);
	free(s);
}

Test(server, S14_too_many_errors_end_the_session)
{
	struct smtp_server_rules rules = strict;
	static const char input[] =
	    "EHLO me\r\nX\r\nX\r\nMAIL FROM:<a@b>\r\nRCPT TO:<c@d>\r\nDATA\r\n"
	    ".\r\nX\r\nX\r\nX\r\nNOOP\r\n";
	static const char unknown[] = "500 5.5.2 the command is not known\r\n";
	struct buf log = { 0 }, want = { 0 };

	rules.error_max = 2;
	converse(&rules, input, sizeof(input) - 1, SIZE_MAX, &log);
	buf_printf(&want, "%s%s%s%s%s%s%s%s%s", EHLO_REPLY, unknown, unknown,
	    MAIL_AB RCPT_CD DATA_OK, END_OK, unknown, unknown, unknown,
	    "421 4.7.0 too many errors\r\n{close}");
	cr_expect_str_eq(buf_str(&log), buf_str(&want), "%s", buf_str(&log));
	buf_done(&log);
	buf_done(&want);
}

/* The owner's words: whatever is in these, a reply is one line. */
Test(server, S14_words_of_the_owner)
{
	struct smtp_server *s = malloc(sizeof(*s));
	char text[2000];
	size_t used;

	memset(text, 'x', sizeof(text) - 1);
	memcpy(text, "a\r\nb\x80\x7f\0", 6);
	text[sizeof(text) - 1] = '\0';
	smtp_server_init(s, &local);
	smtp_server_written(s);
	cr_assert_eq(smtp_server_feed(s, BYTES("MAIL FROM:<>\r\n"), &used),
	    SMTP_SERVER_MAIL);
	smtp_server_answer(s, 550, "5.0.0", "%s", text);
	cr_expect_leq(s->out_len, 512);
	cr_expect_eq(memcmp(s->out, "550 5.0.0 a??b??xxx", 19), 0);
	cr_expect_eq(
	    (char *)memchr(s->out, '\n', s->out_len), s->out + s->out_len - 1);
	smtp_server_shut(s, "4.3.2", "the end");
	smtp_server_shut(s, "4.3.2", "once");
	cr_expect_eq(smtp_server_feed(s, "x", 1, &used), SMTP_SERVER_CLOSE);
	cr_expect_not_null(strstr(s->out, "\r\n421 4.3.2 the end\r\n"));
	cr_expect_null(memmem(s->out, s->out_len, "once", 4));
	free(s);
}
