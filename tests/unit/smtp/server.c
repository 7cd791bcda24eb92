#include "server_owner.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

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

	smtp_server_init(s, &owner_strict);
	smtp_server_written(s, s->out_len);
	owner_feed(s, to_state[state], strlen(to_state[state]), &log);
	cr_assert_eq(s->state, state);
	buf_reset(&log);
	buf_printf(&command, "%s\r\n", line);
	owner_feed(s, command.data, command.len, &log);
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

struct session {
	const char *name;
	const struct smtp_server_rules *rules;
	const char *input;
	size_t len;
	const char *want;
};

static const struct session sessions[] = {
	{ "pipelined, two messages", &owner_strict,
	    BYTES(OPEN "S: x\r\n\r\none\r\n.\r\nMAIL FROM:<a@b>\r\n"
		       "RCPT TO:<c@d>\r\nDATA\r\ntwo\r\n.\r\nQUIT\r\nNOOP\r\n"),
	    OPENED "S: x\n\none\n" END_OK MAIL_AB RCPT_CD DATA_OK "two\n" END_OK
		   "221 2.0.0 Bye\r\n{close}" },
	{ "dots", &owner_strict, BYTES(OPEN "..\r\n...\r\n.a\r\na.\r\n.\r\n"),
	    OPENED ".\n..\na\na.\n" END_OK },
	{ "empty message", &owner_strict, BYTES(OPEN ".\r\nNOOP\r\n"),
	    OPENED END_OK "250 2.0.0 Ok\r\n" },
	{ "refused at the end", &owner_strict,
	    BYTES("EHLO me\r\nMAIL FROM:<noend@b>\r\nRCPT TO:<c@d>\r\n"
		  "DATA\r\nx\r\n.\r\nDATA\r\n"),
	    EHLO_REPLY "{mail noend@b 0  }" OK RCPT_CD DATA_OK
		       "x\n{end}452 4.3.1 full\r\n"
		       "503 5.5.1 MAIL and RCPT come first\r\n" },
	{ "refused at DATA: what follows is a command", &owner_strict,
	    BYTES("EHLO me\r\nMAIL FROM:<nodata@b>\r\nRCPT TO:<c@d>\r\n"
		  "DATA\r\nx\r\n"),
	    EHLO_REPLY "{mail nodata@b 0  }" OK RCPT_CD
		       "{data}451 4.3.0 not now\r\n"
		       "500 5.5.2 the command is not known\r\n" },
	{ "all recipients refused", &owner_strict,
	    BYTES("EHLO me\r\nMAIL FROM:<a@b>\r\nRCPT TO:<refused@d>\r\n"
		  "RCPT TO:<c\r\nDATA\r\n"),
	    EHLO_REPLY MAIL_AB
	    "{rcpt refused@d  }550 5.1.1 nobody: refused@d\r\n"
	    "501 5.1.3 the recipient is no address; RCPT TO:<address> is "
	    "right\r\n554 5.5.1 no valid recipients\r\n" },
	{ "too many recipients", &owner_strict,
	    BYTES("EHLO me\r\nMAIL FROM:<a@b>\r\nRCPT TO:<c@d>\r\n"
		  "RCPT TO:<c@d>\r\nRCPT TO:<c@d>\r\nRCPT TO:<c@d>\r\n"
		  "DATA\r\n"),
	    EHLO_REPLY MAIL_AB RCPT_CD RCPT_CD RCPT_CD
	    "452 4.5.3 3 recipients are the limit of a message\r\n" DATA_OK },
	{ "EHLO and RSET end a transaction", &owner_strict,
	    BYTES("EHLO me\r\nMAIL FROM:<a@b>\r\nRSET\r\nMAIL FROM:<a@b>\r\n"
		  "EHLO me\r\nRCPT TO:<c@d>\r\n"),
	    EHLO_REPLY MAIL_AB "250 2.0.0 Ok\r\n" MAIL_AB EHLO_REPLY
			       "503 5.5.1 MAIL comes first\r\n" },
	{ "an address needs SMTPUTF8", &owner_strict,
	    BYTES(
		"EHLO me\r\nMAIL FROM:<\xc3\xa4@b>\r\n"
		"MAIL FROM:<\xc3\xa4@b> SMTPUTF8\r\nRCPT TO:<\xc3\xa4@b>\r\n"),
	    EHLO_REPLY "553 5.6.7 the address needs SMTPUTF8 in MAIL\r\n"
		       "{mail \xc3\xa4@b 0 utf8  }" OK
		       "{rcpt \xc3\xa4@b  }" OK },
	{ "here it does not", &owner_local, BYTES("MAIL FROM:<\xc3\xa4@b>\r\n"),
	    "{mail \xc3\xa4@b 0  }" OK },
	{ "a NUL", &owner_strict,
	    BYTES("EHLO me\r\nMAIL FROM:<a\0@b>\r\nNOOP\0\r\n"),
	    EHLO_REPLY "500 5.5.2 control character in the command\r\n"
		       "500 5.5.2 control character in the command\r\n" },
	{ "a NUL in the content", &owner_strict,
	    BYTES(OPEN "a\0b\r\n\0\r\n.\r\n"), OPENED "a" },
	{ "a bare LF ends no command", &owner_strict,
	    BYTES("EHLO me\nNOOP\r\nRSET\n"),
	    "500 5.5.2 the command does not end with CR and LF\r\n"
	    "250 2.0.0 Ok\r\n"
	    "500 5.5.2 the command does not end with CR and LF\r\n" },
	{ "here it does, and in the content", &owner_local,
	    BYTES("MAIL FROM:<a@b>\nRCPT TO:<c@d>\nDATA\none\n..\n.a\r\n.\n"
		  "QUIT\n"),
	    MAIL_AB RCPT_CD DATA_OK "one\n.\na\n" END_OK
				    "221 2.0.0 Bye\r\n{close}" },
	{ "here EHLO may be left out, and brackets, and blanks put",
	    &owner_local,
	    BYTES("MAIL FROM: a@b\r\nRCPT TO: <c@d>  \r\nRCPT TO:joe\r\n"),
	    MAIL_AB RCPT_CD "{rcpt joe?  }" OK },
	{ "not by the network", &owner_strict,
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

	owner_converse(c->rules, c->input, c->len, slice, &log);
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
		smtp_server_written(s, s->out_len);
		if (owner_feed(s, c->input, cut, &log))
			(void)owner_feed(s, c->input + cut, c->len - cut, &log);
		buf_add_str(&log, "{close}");
		cr_expect_str_eq(buf_str(&log), c->want, "%zu", cut);
		buf_done(&log);
		free(s);
	}
}
