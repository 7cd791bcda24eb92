/* What the header and the sender add to an offer. */
#include "tests/unit/todo-proc/world.h"

#include "base/bytes.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

static struct world w;

static void
start(void)
{
	world_start(&w, "");
	world_link(&w);
	world_run(&w);
}

static void
end(void)
{
	world_end(&w);
}

TestSuite(header, .init = start, .fini = end, .timeout = 60);

/* Of the one row of the census of the first offer. */
static uint32_t
column(int n)
{
	return bytes_get_u32(w.census[0] + 4 * n);
}

/* A header of n Received fields, each in a line of so many octets. */
static char *
header_with_hops(uint32_t n, size_t line)
{
	static const char end[] = "From: a@b\n\nReceived: body\n";
	char *text = malloc(n * line + sizeof(end)), *at = text;
	uint32_t i;

	cr_assert_not_null(text);
	for (i = 0; i < n; i++) {
		memset(at, 'x', line);
		memcpy(at, "Received: ", 10);
		at[line - 1] = '\n';
		at += line;
	}
	memcpy(at, end, sizeof(end));
	return text;
}

/* Pieces of 8 KiB, a file beyond the room of one that is held, and the bound
 * of 256 KiB. */
Test(header, C16_counts_the_hops_of_the_whole_header)
{
	static const struct {
		uint32_t n;
		size_t line;
		uint32_t want;
	} rows[] = {
		{ 0, 100, 0 },
		{ 121, 50, 121 },
		{ 300, 100, 300 },
		{ 1000, 250, 1000 },
		{ 3000, 128, 2048 },
	};
	uint32_t i;

	world_credit(&w, ARRAY_LEN(rows));
	for (i = 0; i < ARRAY_LEN(rows); i++) {
		char *text = header_with_hops(rows[i].n, rows[i].line);

		w.content = text;
		world_bell(&w, world_file(&w, SPOOL_INCOMING, "d", 1));
		world_run(&w);
		free(text);
		cr_assert_eq(w.nmessages, i + 1);
		cr_expect_eq(w.messages[i].hops, rows[i].want, "%u: %u", i,
		    w.messages[i].hops);
	}
	w.content = NULL;
}

/* The census says what queue-send will make: one recipient to an entry. */
Test(header, C14_a_VERP_message_has_an_entry_for_each_recipient)
{
	w.sender = "list-@here.test-@[]";
	world_bell(&w, world_file(&w, SPOOL_INCOMING, "x@smtp.test", 7));
	world_credit(&w, 1);
	w.sender = NULL;
	cr_assert_eq(w.nmessages, 1);
	cr_expect_eq(column(1), 7);
	cr_expect_eq(column(2), 1);
	cr_expect_eq(column(3), 7);
}
