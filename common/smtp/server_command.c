#include "smtp/server_parts.h"

#include <string.h>
#include <strings.h>

/* ---- commands without an event ---- */

static enum smtp_server_event
do_ehlo(struct smtp_server *s, char *args)
{
	if (*args == '\0')
		return smtp_server_reply(
		    s, 501, "5.5.4", "the name of the client is missing");
	s->state = SMTP_AT_READY;
	return smtp_server_reply_ehlo(s);
}

static enum smtp_server_event
do_helo(struct smtp_server *s, char *args)
{
	if (*args == '\0')
		return smtp_server_reply(
		    s, 501, "5.5.4", "the name of the client is missing");
	s->state = SMTP_AT_READY;
	return smtp_server_reply(s, 250, NULL, "%.255s", s->rules.host);
}

static enum smtp_server_event
do_rset(struct smtp_server *s, char *args UNUSED)
{
	if (s->state != SMTP_AT_START)
		s->state = SMTP_AT_READY;
	return smtp_server_reply(s, 250, "2.0.0", "Ok");
}

static enum smtp_server_event
do_noop(struct smtp_server *s, char *args UNUSED)
{
	return smtp_server_reply(s, 250, "2.0.0", "Ok");
}

/* RFC 5321 section 7.3. */
static enum smtp_server_event
do_vrfy(struct smtp_server *s, char *args)
{
	if (*args == '\0')
		return smtp_server_reply(
		    s, 501, "5.5.4", "the address is missing");
	return smtp_server_reply(
	    s, 252, "2.0.0", "Addresses are not verified; mail tells");
}

static enum smtp_server_event
do_help(struct smtp_server *s, char *args UNUSED)
{
	return smtp_server_reply(s, 214, "2.0.0", "See RFC 5321");
}

static enum smtp_server_event
do_quit(struct smtp_server *s, char *args UNUSED)
{
	smtp_server_reply(s, 221, "2.0.0", "Bye");
	s->state = SMTP_AT_CLOSED;
	return SMTP_SERVER_WANT;
}

static enum smtp_server_event
do_not_here(struct smtp_server *s, char *args UNUSED)
{
	return smtp_server_reply(
	    s, 502, "5.5.1", "the command is not served here");
}

/* ---- commands that ask the owner ---- */

static enum smtp_server_event
do_mail(struct smtp_server *s, char *args)
{
	if (smtp_server_read_mail(s, args) < 0)
		return SMTP_SERVER_WANT;
	s->rcpts = s->refused_rcpts = 0;
	return SMTP_SERVER_MAIL;
}

/* RFC 5321 section 4.5.3.1.10: 452, and the client sends the message again to
 * the others. */
static enum smtp_server_event
do_rcpt(struct smtp_server *s, char *args)
{
	if (s->rules.rcpt_max != 0 && s->rcpts >= s->rules.rcpt_max)
		return smtp_server_reply(s, 452, "4.5.3",
		    "%u recipients are the limit of a message",
		    s->rules.rcpt_max);
	if (smtp_server_read_rcpt(s, args) == 0)
		return SMTP_SERVER_RCPT;
	s->refused_rcpts++;
	return SMTP_SERVER_WANT;
}

static enum smtp_server_event
do_data(struct smtp_server *s, char *args)
{
	if (*args == '\0')
		return SMTP_SERVER_DATA;
	return smtp_server_reply(s, 501, "5.5.4", "DATA has no parameters");
}

/* ---- the table ---- */

#define START (1u << SMTP_AT_START)
#define READY (1u << SMTP_AT_READY)
#define MAIL  (1u << SMTP_AT_MAIL)
#define RCPT  (1u << SMTP_AT_RCPT)
#define ANY   (START | READY | MAIL | RCPT)

static const struct command {
	const char *verb;
	unsigned states;   /* in which it is allowed */
	const char *wrong; /* the reply to it in others, after EHLO */
	enum smtp_server_event (*run)(struct smtp_server *s, char *args);
} commands[] = {
	{ "EHLO", ANY, NULL, do_ehlo },
	{ "HELO", ANY, NULL, do_helo },
	{ "MAIL", READY, "a transaction is open; RSET ends it", do_mail },
	{ "RCPT", MAIL | RCPT, "MAIL comes first", do_rcpt },
	{ "DATA", RCPT, "MAIL and RCPT come first", do_data },
	{ "RSET", ANY, NULL, do_rset },
	{ "NOOP", ANY, NULL, do_noop },
	{ "QUIT", ANY, NULL, do_quit },
	{ "VRFY", ANY, NULL, do_vrfy },
	{ "EXPN", ANY, NULL, do_not_here },
	{ "HELP", ANY, NULL, do_help },
	{ "AUTH", ANY, NULL, do_not_here },
	{ "STARTTLS", ANY, NULL, do_not_here },
	{ "BDAT", ANY, NULL, do_not_here },
};

static const struct command *
find_command(const char *verb, size_t len)
{
	size_t i;

	for (i = 0; i < ARRAY_LEN(commands); i++)
		if (strlen(commands[i].verb) == len &&
		    strncasecmp(verb, commands[i].verb, len) == 0)
			return &commands[i];
	return NULL;
}

static enum smtp_server_event
refuse_sequence(struct smtp_server *s, const struct command *c)
{
	if (s->state == SMTP_AT_START)
		return smtp_server_reply(
		    s, 503, "5.5.1", "EHLO or HELO comes first");
	if (s->state == SMTP_AT_MAIL && s->refused_rcpts > 0)
		return smtp_server_reply(
		    s, 554, "5.5.1", "no valid recipients");
	return smtp_server_reply(s, 503, "5.5.1", "%s", c->wrong);
}

static bool
has_control(const char *s, size_t len)
{
	size_t i;

	for (i = 0; i < len; i++)
		if ((unsigned char)s[i] < 0x20 || s[i] == 0x7f)
			return true;
	return false;
}

enum smtp_server_event
smtp_server_command(struct smtp_server *s)
{
	const struct command *c;
	char *args = s->line;

	if (has_control(s->line, s->line_len))
		return smtp_server_reply(
		    s, 500, "5.5.2", "control character in the command");
	while (s->line_len > 0 && s->line[s->line_len - 1] == ' ')
		s->line_len--;
	s->line[s->line_len] = '\0';
	args += strcspn(s->line, " ");
	c = find_command(s->line, (size_t)(args - s->line));
	args += strspn(args, " ");
	if (c == NULL)
		return smtp_server_reply(
		    s, 500, "5.5.2", "the command is not known");
	if ((c->states & 1u << s->state) == 0)
		return refuse_sequence(s, c);
	return c->run(s, args);
}
