/* Builds one report, for check.py: facts on standard input, the report on
 * standard output.
 *
 * The input is strings KEY=VALUE, each with a NUL behind it; `rcpt` begins a
 * recipient, to which the keys behind it belong; behind the string `content`
 * the rest is the message. */
#include "report/report.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define RCPTS_MAX 5000

static struct report_rcpt rcpts[RCPTS_MAX];
static size_t nrcpts;
static struct report_facts facts = {
	.host = "mail.example.net",
	.from = "MAILER-DAEMON@example.net",
	.to = "sender@example.com",
	.sender = "sender@example.com",
	.id = "0006432E9F1B2C0A001DEADBEEF",
	.token = "0123456789abcdef",
	.now_wall = 1800000600 * USEC_PER_SEC,
	.arrival_wall = 1800000000 * USEC_PER_SEC,
};

static size_t
word_of(const char *value, const char *const *words, size_t n)
{
	size_t i;

	for (i = 0; i < n; i++)
		if (strcmp(value, words[i]) == 0)
			return i;
	fprintf(stderr, "no such word: %s\n", value);
	exit(2);
}

static void
begin_rcpt(const char *address)
{
	if (nrcpts == RCPTS_MAX)
		exit(2);
	rcpts[nrcpts++] = (struct report_rcpt){
		.address = address,
		.dsn = "5.1.1",
		.relay = "none",
		.text = "no such user",
	};
}

static void
take(char *key, const char *value)
{
	static const char *const kinds[] = { "failure", "delay", "success",
		"double" };
	static const char *const actions[] = { "failed", "delayed", "delivered",
		"relayed", "expanded" };
	struct report_rcpt *to = nrcpts == 0 ? &rcpts[0] : &rcpts[nrcpts - 1];
	const struct {
		const char *key, **at;
	} strings[] = { { "host", &facts.host }, { "from", &facts.from },
		{ "to", &facts.to }, { "sender", &facts.sender },
		{ "id", &facts.id }, { "token", &facts.token },
		{ "envid", &facts.envid }, { "orcpt", &to->orcpt },
		{ "dsn", &to->dsn }, { "relay", &to->relay },
		{ "text", &to->text } };
	size_t i;

	for (i = 0; i < ARRAY_LEN(strings); i++)
		if (strcmp(key, strings[i].key) == 0)
			*strings[i].at = value;
	if (strcmp(key, "rcpt") == 0)
		begin_rcpt(value);
	else if (strcmp(key, "kind") == 0)
		facts.kind =
		    (enum report_kind)word_of(value, kinds, ARRAY_LEN(kinds));
	else if (strcmp(key, "action") == 0)
		to->action = (enum report_action)word_of(
		    value, actions, ARRAY_LEN(actions));
	else if (strcmp(key, "whole") == 0)
		facts.whole = true;
	else if (strcmp(key, "mixed") == 0)
		facts.mixed = true;
	else if (strcmp(key, "until") == 0)
		facts.until_wall = atoll(value) * USEC_PER_SEC;
	else if (strcmp(key, "when") == 0)
		to->when_wall = atoll(value) * USEC_PER_SEC;
}

static void
read_all(struct buf *in)
{
	char part[65536];
	size_t n;

	while ((n = fread(part, 1, sizeof(part), stdin)) > 0)
		if (buf_add(in, part, n) < 0)
			exit(2);
}

static void
parse(struct buf *in)
{
	char *s = in->data, *end = in->data + in->len, *equals;

	while (s < end && strcmp(s, "content") != 0) {
		equals = strchr(s, '=');
		if (equals == NULL)
			exit(2);
		*equals = '\0';
		take(s, equals + 1);
		s = equals + strlen(equals + 1) + 2;
	}
	if (s >= end)
		exit(2);
	facts.content = s + strlen(s) + 1;
	facts.content_len = (size_t)(end - facts.content);
}

static void
flush(struct buf *out)
{
	fwrite(out->data, 1, out->len, stdout);
	buf_reset(out);
}

int
main(void)
{
	struct buf in = { 0 }, out = { 0 };
	size_t i;
	int r;

	read_all(&in);
	parse(&in);
	r = report_begin(&facts, &out);
	for (i = 0; r == 0 && i < nrcpts; i++) {
		flush(&out);
		r = report_say(&facts, &rcpts[i], &out);
	}
	if (r == 0)
		r = report_middle(&facts, &out);
	for (i = 0; r == 0 && i < nrcpts; i++) {
		flush(&out);
		r = report_state(&facts, &rcpts[i], &out);
	}
	if (r == 0)
		r = report_end(&facts, &out);
	flush(&out);
	buf_done(&in);
	buf_done(&out);
	return r < 0;
}
