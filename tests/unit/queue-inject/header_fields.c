#include "queue-inject/message.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>

struct header_case {
	const char *name, *input;
	size_t len; /* 0: strlen(input) */
	/* wanted: what stands before, in and behind the header */
	const char *fields, *body;
	bool separated;
	const char *names; /* of the fields, joined by blanks */
};

static const struct header_case cases[] = {
	{ .name = "usual",
	    .input = "A: 1\nB: 2\n\nbody\n",
	    .fields = "A: 1\nB: 2\n",
	    .body = "body\n",
	    .separated = true,
	    .names = "A B" },
	{ .name = "CRLF",
	    .input = "A: 1\r\nB: 2\r\n\r\nbody\r\n",
	    .fields = "A: 1\r\nB: 2\r\n",
	    .body = "body\r\n",
	    .separated = true,
	    .names = "A B" },
	{ .name = "empty", .input = "", .fields = "", .body = "", .names = "" },
	{ .name = "empty line first",
	    .input = "\nbody",
	    .fields = "",
	    .body = "body",
	    .separated = true,
	    .names = "" },
	{ .name = "fields only",
	    .input = "A: 1\nB: 2\n",
	    .fields = "A: 1\nB: 2\n",
	    .body = "",
	    .names = "A B" },
	{ .name = "field without an end",
	    .input = "A: 1\nB: 2",
	    .fields = "A: 1\nB: 2",
	    .body = "",
	    .names = "A B" },
	{ .name = "folds",
	    .input = "A: 1\n 2\n\t3\nB:\n \n 4\n\nx",
	    .fields = "A: 1\n 2\n\t3\nB:\n \n 4\n",
	    .body = "x",
	    .separated = true,
	    .names = "A B" },
	{ .name = "blanks before the colon",
	    .input = "A \t: 1\n\n",
	    .fields = "A \t: 1\n",
	    .body = "",
	    .separated = true,
	    .names = "A" },
	{ .name = "no value",
	    .input = "A:\nB:\n\n",
	    .fields = "A:\nB:\n",
	    .body = "",
	    .separated = true,
	    .names = "A B" },
	{ .name = "no header",
	    .input = "hello world\nA: 1\n\nx\n",
	    .fields = "",
	    .body = "hello world\nA: 1\n\nx\n",
	    .names = "" },
	{ .name = "one word",
	    .input = "hello\n",
	    .fields = "",
	    .body = "hello\n",
	    .names = "" },
	{ .name = "one word without an end",
	    .input = "hello",
	    .fields = "",
	    .body = "hello",
	    .names = "" },
	{ .name = "first line continues nothing",
	    .input = " x: y\nA: 1\n\n",
	    .fields = "",
	    .body = " x: y\nA: 1\n\n",
	    .names = "" },
	{ .name = "colon first",
	    .input = ": x\n",
	    .fields = "",
	    .body = ": x\n",
	    .names = "" },
	{ .name = "text after fields",
	    .input = "A: 1\nsome text: with colon\n\nx",
	    .fields = "A: 1\n",
	    .body = "some text: with colon\n\nx",
	    .names = "A" },
	{ .name = "CR begins a line",
	    .input = "A: 1\n\rB: 2\n\n",
	    .fields = "A: 1\n",
	    .body = "\rB: 2\n\n",
	    .names = "A" },
	{ .name = "CR at the end",
	    .input = "A: 1\n\r",
	    .fields = "A: 1\n",
	    .body = "\r",
	    .names = "A" },
	{ .name = "8-bit name",
	    .input = "A: 1\nB\xc3\xa4: 2\n",
	    .fields = "A: 1\n",
	    .body = "B\xc3\xa4: 2\n",
	    .names = "A" },
	{ .name = "8-bit value",
	    .input = "A: \xff\xc3\n\n",
	    .fields = "A: \xff\xc3\n",
	    .body = "",
	    .separated = true,
	    .names = "A" },
	{ .name = "NUL in a value",
	    .input = "A: 1\0002\n\nx",
	    .len = 10,
	    .fields = "A: 1",
	    .body = "x",
	    .separated = true,
	    .names = "A" },
	{ .name = "mailbox line",
	    .input = "From me Mon Jan  1\nA: 1\n\nx",
	    .fields = "A: 1\n",
	    .body = "x",
	    .separated = true,
	    .names = "A" },
	{ .name = "mailbox line in front of text",
	    .input = "From now on\nall is well\n",
	    .fields = "",
	    .body = "From now on\nall is well\n",
	    .names = "" },
	{ .name = "mailbox line in front of an empty line",
	    .input = "From now on\n\nA: 1\n",
	    .fields = "",
	    .body = "From now on\n\nA: 1\n",
	    .names = "" },
	{ .name = "mailbox line alone",
	    .input = "From me\n",
	    .fields = "",
	    .body = "From me\n",
	    .names = "" },
	{ .name = "mailbox line, blank",
	    .input = "From \nA: 1\n",
	    .fields = "A: 1\n",
	    .body = "",
	    .names = "A" },
	{ .name = "quoted mailbox line",
	    .input = ">From me Mon\nA: 1\n",
	    .fields = "A: 1\n",
	    .body = "",
	    .names = "A" },
	{ .name = "quoted mailbox line in front of text",
	    .input = ">From now on\nall\n",
	    .fields = "",
	    .body = ">From now on\nall\n",
	    .names = "" },
	{ .name = "mailbox line quoted twice",
	    .input = ">>From me\nA: 1\n",
	    .fields = "",
	    .body = ">>From me\nA: 1\n",
	    .names = "" },
	{ .name = "mailbox line not first",
	    .input = "A: 1\nFrom me\nB: 2\n",
	    .fields = "A: 1\n",
	    .body = "From me\nB: 2\n",
	    .names = "A" },
	{ .name = "field From with a blank",
	    .input = "From : me\n",
	    .fields = "From : me\n",
	    .body = "",
	    .names = "From" },
};

/* All of it, as the program does: what is not taken is body. */
static size_t
feed(struct header *h, const char *data, size_t len, size_t piece)
{
	size_t at = 0;

	while (at < len && !h->complete) {
		size_t used, n = len - at < piece ? len - at : piece;

		cr_assert_eq(header_feed(h, data + at, n, &used), 0);
		cr_assert(used == n || h->complete);
		at += used;
	}
	if (at == len)
		header_finish(h);
	cr_assert(h->complete);
	return at;
}

static void
check_names(const struct header *h, const struct header_case *c)
{
	struct header_field f;
	char names[64] = "";
	size_t pos = 0;

	while (header_next(h, &pos, &f)) {
		if (names[0] != '\0')
			strncat(names, " ", 2);
		strncat(names, f.name, f.name_len);
	}
	cr_expect_str_eq(names, c->names, "%s: %s", c->name, names);
}

static void
check_case(const struct header_case *c, size_t piece)
{
	size_t len = c->len == 0 ? strlen(c->input) : c->len;
	struct header h = { 0 };
	struct buf body = { 0 };
	size_t taken = feed(&h, c->input, len, piece);

	buf_add(&body, h.data.data == NULL ? "" : h.data.data + h.body,
	    h.data.len - h.body);
	buf_add(&body, c->input + taken, len - taken);
	cr_expect_eq(
	    strncmp(buf_str(&h.data) + h.begin, c->fields, strlen(c->fields)),
	    0, "%s by %zu", c->name, piece);
	if (c->len == 0)
		cr_expect_eq(h.end - h.begin, strlen(c->fields),
		    "%s by %zu: %zu", c->name, piece, h.end - h.begin);
	cr_expect_str_eq(buf_str(&body), c->body, "%s by %zu: %s", c->name,
	    piece, buf_str(&body));
	cr_expect_eq(h.separated, c->separated, "%s", c->name);
	check_names(&h, c);
	buf_done(&body);
	header_done(&h);
}

Test(header, C1_ends_where_the_body_begins)
{
	size_t i, piece;

	for (i = 0; i < ARRAY_LEN(cases); i++)
		for (piece = 1; piece < 40; piece++)
			check_case(&cases[i], piece);
}

Test(header, C2_is_limited)
{
	static char line[4096];
	struct header h = { 0 };
	size_t used, sum = 0;
	int r = 0;

	memset(line, 'v', sizeof(line));
	line[0] = 'A';
	line[1] = ':';
	while (r == 0 && sum < 4 * HEADER_MAX) {
		r = header_feed(&h, line, sizeof(line), &used);
		sum += used;
	}
	cr_expect_eq(r, -EFBIG);
	cr_expect_eq(sum, HEADER_MAX);
	header_done(&h);
}

Test(header, C2_a_long_name_is_body)
{
	static char line[8192];
	struct header h = { 0 };
	size_t used;

	memset(line, 'n', sizeof(line));
	cr_assert_eq(header_feed(&h, line, sizeof(line), &used), 0);
	cr_expect(h.complete);
	cr_expect_leq(used, HEADER_NAME_MAX + 1);
	cr_expect_eq(h.end, 0);
	header_done(&h);
}

Test(header, eol_is_that_of_the_first_line)
{
	static const struct {
		const char *input, *want;
	} eols[] = { { "", "\n" }, { "A: 1", "\n" }, { "A: 1\n", "\n" },
		{ "A: 1\r\nB: 2\n", "\r\n" }, { "A: 1\nB: 2\r\n", "\n" },
		{ "\r\n", "\r\n" }, { "\n", "\n" } };
	size_t i;

	for (i = 0; i < ARRAY_LEN(eols); i++) {
		cr_expect_str_eq(
		    header_line_end(eols[i].input, strlen(eols[i].input)),
		    eols[i].want, "%s", eols[i].input);
	}
}

static uint32_t
next_random(uint32_t *seed)
{
	*seed = *seed * 1664525u + 1013904223u;
	return *seed >> 8;
}

/* Whatever comes in, in pieces of whatever size: the same header, nothing lost,
 * and the fields make up all of it. */
Test(header, fuzz_pieces_make_no_difference)
{
	static const char letters[] = "AF:rom \t\r\n\nx\xff";
	uint32_t seed = 20240402;
	int round;

	for (round = 0; round < 20000; round++) {
		char data[48];
		size_t i, len = next_random(&seed) % sizeof(data);
		struct header whole = { 0 }, pieces = { 0 };
		struct header_field f;
		size_t pos = 0, sum = 0;

		for (i = 0; i < len; i++)
			data[i] = letters[next_random(&seed) % sizeof(letters)];
		if (next_random(&seed) % 4 == 0 && len > 8)
			memcpy(data, "From a\nB", 8);
		feed(&whole, data, len, sizeof(data));
		feed(&pieces, data, len, 1 + next_random(&seed) % 5);
		cr_assert_eq(whole.begin, pieces.begin);
		cr_assert_eq(whole.end, pieces.end);
		cr_assert_eq(whole.body, pieces.body);
		cr_assert_eq(whole.separated, pieces.separated);
		cr_assert_eq(
		    memcmp(buf_str(&whole.data), data, whole.data.len), 0);
		while (header_next(&whole, &pos, &f))
			sum += f.raw_len;
		cr_assert_eq(sum, whole.end - whole.begin);
		header_done(&whole);
		header_done(&pieces);
	}
}
