/* A message as a mailbox or a program gets it, and the look for loops. */
#include "tests/fuzz/fuzz.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/address.h"
#include "deliver-local/child.h"

/* ---- a plain look for loops: lines as strings, one after the other ---- */

/* The line at *at without its end; NULL at the end. */
static char *
next_line(const char *s, size_t len, size_t *at)
{
	const char *lf;
	size_t n, skip;
	char *line;

	if (*at >= len)
		return NULL;
	lf = memchr(s + *at, '\n', len - *at);
	n = lf == NULL ? len - *at : (size_t)(lf - s) - *at;
	skip = n + (lf != NULL);
	if (n > 0 && s[*at + n - 1] == '\r')
		n--;
	line = malloc(n + 1);
	MUST(line != NULL);
	memcpy(line, s + *at, n);
	line[n] = '\0';
	*at += skip;
	return line;
}

/* Behind "NAME:", blanks taken off; NULL: another field. */
static char *
value_of(char *line, const char *name)
{
	char *p = line + strlen(name), *end;

	if (strncasecmp(line, name, strlen(name)) != 0)
		return NULL;
	p += strspn(p, " \t");
	if (*p != ':')
		return NULL;
	p++;
	p += strspn(p, " \t");
	end = p + strlen(p);
	while (end > p && (end[-1] == ' ' || end[-1] == '\t'))
		*--end = '\0';
	return p;
}

static bool
is_same(const char *a, const char *b)
{
	size_t local = address_local_len(b);

	return strlen(a) == strlen(b) && strncmp(a, b, local) == 0 &&
	    strcasecmp(a + local, b + local) == 0;
}

/* Without folded Delivered-To fields and NULs: those the model leaves out. */
static int
model_loop(const char *s, size_t len, const char *recipient)
{
	size_t at = 0;
	int found = -1;

	while (found < 0) {
		char *line = next_line(s, len, &at), *to;

		if (line == NULL || line[0] == '\0')
			found = MESSAGE_NO_LOOP;
		else if ((to = value_of(line, "Delivered-To")) != NULL)
			found = is_same(to, recipient) ? MESSAGE_WAS_HERE
			    : to[0] == '\0'            ? -2
						       : -1;
		free(line);
		if (found == -2)
			return -1;
	}
	return found;
}

/* ---- */

static void
check_read(struct message *m, const char *content, size_t len, size_t piece)
{
	struct buf got = { 0 }, want = { 0 };
	char chunk[300];
	int64_t n;

	MUST(message_begin(m) == 0);
	while ((n = message_read(m, chunk, piece)) > 0) {
		MUST((size_t)n <= piece);
		MUST(buf_add(&got, chunk, (size_t)n) == 0);
	}
	MUST(n == 0);
	MUST(buf_printf(&want, "Return-Path: <%s>\nDelivered-To: %s\n",
		 m->sender, m->recipient) == 0);
	MUST(buf_add(&want, content, len) == 0);
	MUST(got.len == want.len && memcmp(got.data, want.data, got.len) == 0);
	/* The content is shorter than it should be: an error, no end. */
	m->len += 10;
	MUST(message_begin(m) == 0);
	while ((n = message_read(m, chunk, sizeof(chunk))) > 0)
		;
	MUST(n == -EIO);
	MUST(message_find_loop(m) == -EIO);
	buf_done(&got);
	buf_done(&want);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_in in = { data, size };
	size_t off = fuzz_number(&in, 1), piece = 1 + fuzz_number(&in, 1), len;
	struct message m = { .off = off };
	struct buf file = { 0 };
	char *recipient = fuzz_string(&in), *content = fuzz_rest(&in, &len);
	int r, want;

	while (file.len < off)
		MUST(buf_add_char(&file, '#') == 0);
	MUST(buf_add(&file, content, len) == 0);
	m.fd = fuzz_file("mail", file.data, file.len);
	m.len = len;
	m.sender = "s@y";
	if (recipient[0] == '\0') {
		free(recipient);
		recipient = strdup("r@x");
	}
	m.recipient = recipient;
	r = message_find_loop(&m);
	MUST(r >= MESSAGE_NO_LOOP && r <= MESSAGE_WAS_HERE);
	want = memchr(content, '\0', len) != NULL
	    ? -1
	    : model_loop(content, len, recipient);
	MUST(want < 0 || r == want);
	check_read(&m, content, len, piece);
	message_done(&m);
	buf_done(&file);
	free(recipient);
	free(content);
	return 0;
}
