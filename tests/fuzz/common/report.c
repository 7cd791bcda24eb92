/* A report of delivery: whatever the strings and the message are, the report
 * has the structure that it was given. */
#include "tests/fuzz/fuzz.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/report.h"

#define RCPTS 3
#define PER   5 /* strings of a recipient */
#define OWN   7 /* strings of the message */

static size_t
count(const char *s, size_t len, const char *what)
{
	const size_t n = strlen(what);
	const char *at = s, *end = s + len;
	size_t found = 0;

	while (at < end &&
	    (at = memmem(at, (size_t)(end - at), what, n)) != NULL) {
		found++;
		at += n;
	}
	return found;
}

/* Lines of at most 998 bytes, and no byte that could end one for a reader. */
static void
check_lines(const char *s, size_t len, bool whole)
{
	size_t i, column = 0;

	for (i = 0; i < len; i++) {
		MUST(s[i] != '\0' && s[i] != '\r');
		MUST(whole || (unsigned char)s[i] <= 0x7f); /* 7bit */
		column = s[i] == '\n' ? 0 : column + 1;
		MUST(column <= 998);
	}
	MUST(len > 0 && s[len - 1] == '\n');
}

static bool
is_field(const char *line, const char *end)
{
	const char *colon = memchr(line, ':', (size_t)(end - line));

	if (colon == NULL || colon == line || colon + 1 == end)
		return false;
	for (; line < colon; line++)
		if (*line <= ' ' || *line > '~')
			return false;
	return true;
}

/* Groups of fields with an empty line between each two; of each group of a
 * recipient the fields that there are once. */
static void
check_fields(const char *s, size_t len, size_t nrcpts)
{
	const char *at = s, *end = s + len, *line_end;
	size_t groups = 1;
	bool empty = true;

	for (; at < end; at = line_end + 1) {
		line_end = memchr(at, '\n', (size_t)(end - at));
		MUST(line_end != NULL);
		if (line_end == at) {
			MUST(!empty);
			groups++;
			empty = true;
			continue;
		}
		if (*at == ' ')
			MUST(!empty && line_end > at + 1 && at[1] != ' ');
		else
			MUST(is_field(at, line_end));
		empty = false;
	}
	MUST(!empty && groups == nrcpts + 1);
	MUST(count(s, len, "\nFinal-Recipient: ") == nrcpts);
	MUST(count(s, len, "\nAction: ") == nrcpts);
	MUST(count(s, len, "\nStatus: ") == nrcpts);
	MUST(count(s, len, "\nReporting-MTA: ") == 0); /* the first line */
}

static void
check(const struct report_facts *r, const struct buf *out, size_t nrcpts)
{
	char part[REPORT_BOUNDARY_MAX + 8], last[REPORT_BOUNDARY_MAX + 8];
	const char *words, *fields, *third, *blank;

	snprintf(part, sizeof(part), "\n--%s\n", r->boundary);
	snprintf(last, sizeof(last), "\n--%s--\n", r->boundary);
	check_lines(out->data, out->len, r->whole);
	MUST(count(out->data, out->len, part) == 3);
	MUST(count(out->data, out->len, last) == 1);
	part[strlen(part) - 1] = '\0';
	MUST(count(out->data, out->len, part) == 4);
	part[strlen(part)] = '\n';
	MUST(memcmp(out->data + out->len - strlen(last), last, strlen(last)) ==
	    0);
	words = strstr(out->data, part) + strlen(part);
	fields = strstr(words, part) + strlen(part);
	third = strstr(fields, part);
	blank = strstr(fields, "\n\n");
	MUST(blank != NULL && blank < third);
	check_fields(blank + 2, (size_t)(third - (blank + 2)), nrcpts);
	/* The header of the report ends at its own empty line. */
	blank = strstr(out->data, "\n\n");
	MUST(
	    strncmp(blank + 2, "This is a message in MIME format.\n", 34) == 0);
	MUST(count(out->data, (size_t)(blank - out->data), "\nTo: ") == 1);
}

static void
build(struct report_facts *r, const struct report_rcpt *rcpts, size_t n,
    struct buf *out)
{
	size_t i;

	MUST(report_begin(r, out) == 0);
	for (i = 0; i < n; i++)
		MUST(report_say(r, &rcpts[i], out) == 0);
	MUST(report_middle(r, out) == 0);
	for (i = 0; i < n; i++)
		MUST(report_state(r, &rcpts[i], out) == 0);
	MUST(report_end(r, out) == 0);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_in in = { data, size };
	const uint64_t bits = fuzz_number(&in, 4);
	char *own[OWN], *of[RCPTS][PER], *content;
	struct report_rcpt rcpts[RCPTS];
	struct buf out = { 0 };
	size_t i, j;
	struct report_facts r = {
		.kind = bits % REPORT_NKINDS,
		.whole = (bits & 0x100) != 0,
		.mixed = (bits & 0x1000) != 0,
		.token = "t",
		.now_wall = (usec_t)(bits << 20),
		.arrival_wall = (usec_t)(bits << 19),
		.until_wall = (usec_t)(bits & 0x200) << 30,
	};

	for (i = 0; i < OWN; i++)
		own[i] = fuzz_string(&in);
	for (i = 0; i < RCPTS; i++)
		for (j = 0; j < PER; j++)
			of[i][j] = fuzz_string(&in);
	r.host = own[0];
	r.from = own[1];
	r.to = own[2];
	r.sender = own[3];
	r.id = own[4];
	r.envid = (bits & 0x400) != 0 ? own[5] : NULL;
	for (i = 0; i < RCPTS; i++)
		rcpts[i] = (struct report_rcpt){
			.address = of[i][0],
			.orcpt = (bits & 0x800) != 0 ? of[i][1] : NULL,
			.dsn = of[i][2],
			.relay = of[i][3],
			.text = of[i][4],
			.action = (bits >> (16 + 3 * i)) % REPORT_NACTIONS,
			.when_wall = (usec_t)(bits & 0x1000) << 30,
		};
	content = fuzz_rest(&in, &r.content_len);
	r.content = content;
	build(&r, rcpts, (bits >> 14) % (RCPTS + 1), &out);
	check(&r, &out, (bits >> 14) % (RCPTS + 1));
	for (i = 0; i < OWN; i++)
		free(own[i]);
	for (i = 0; i < RCPTS; i++)
		for (j = 0; j < PER; j++)
			free(of[i][j]);
	free(content);
	buf_done(&out);
	return 0;
}
