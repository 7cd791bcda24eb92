#include "spool/id.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "spool_scratch.h"

Test(spool_id, what_it_looks_like)
{
	const struct queue_id id = { 0x00060bf7a5995b96, 0xc0, 1, 0xa721cd };
	char text[QUEUE_ID_SIZE];

	queue_id_format(&id, text);
	cr_expect_str_eq(text, "060BF7A5995B96C0001A721CD");
}

static uint64_t
random64(void)
{
	uint64_t value = 0;
	int i;

	for (i = 0; i < 5; i++)
		value = value << 15 ^ (uint64_t)random();
	/* As many small numbers as large ones. */
	return value >> (random() & 63);
}

Test(spool_id, what_was_formatted_is_parsed_again)
{
	int i;

	srandom(1);
	for (i = 0; i < 20000; i++) {
		const struct queue_id id = {
			.arrival_wall =
			    (usec_t)random64() & QUEUE_ID_ARRIVAL_MAX,
			.nonce = (uint8_t)random64(),
			.queue = (uint32_t)random64() & QUEUE_NUM_MAX,
			.inode = random64() | 1,
		};
		struct queue_id back = { 0 };
		char text[QUEUE_ID_SIZE], again[QUEUE_ID_SIZE];

		queue_id_format(&id, text);
		snprintf(again, sizeof(again),
		    "%014" PRIX64 "%02X%03" PRIX32 "%" PRIX64,
		    (uint64_t)id.arrival_wall, id.nonce, id.queue, id.inode);
		cr_assert_str_eq(text, again);
		cr_assert_eq(queue_id_parse(text, &back), 0, "%s", text);
		cr_assert_eq(back.arrival_wall, id.arrival_wall);
		cr_assert_eq(back.nonce, id.nonce);
		cr_assert_eq(back.queue, id.queue);
		cr_assert_eq(back.inode, id.inode);
		queue_id_format(&back, again);
		cr_assert_str_eq(text, again);
	}
}

Test(spool_id, A2_nothing_else_is_parsed)
{
	static const char *const rows[] = {
		"",
		"0",
		"..",
		"060BF7A5995B96C0001",                  /* no inode */
		"060BF7A5995B96C00010",                 /* inode 0 */
		"060BF7A5995B96C00010A721CD",           /* leading zero */
		"060bf7a5995b96c0001a721cd",            /* lower case */
		"060BF7A5995B96C0001A721CD\n",          /* more behind */
		" 060BF7A5995B96C0001A721CD",           /* more before */
		"060BF7A5995B96C0001A721CG",            /* not hexadecimal */
		"060BF7A5995B96C0001/../../etc/passwd", /* a path */
		"060BF7A5995B96C000110000000000000000", /* 2^64 */
		"+60BF7A5995B96C0001A721CD",
		"060BF7A5995B96C0001-1",
		"060BF7A5995B96C0001FFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFF",
	};
	struct queue_id id = { .inode = 77 };
	size_t i;

	for (i = 0; i < ARRAY_LEN(rows); i++)
		cr_expect_eq(
		    queue_id_parse(rows[i], &id), -EINVAL, "\"%s\"", rows[i]);
	cr_expect_eq(id.inode, 77u, "untouched on failure");
}

Test(spool_id, D17_foreign_file_names)
{
	static const struct {
		const char *name;
		uint64_t want; /* 0: foreign */
	} rows[] = {
		{ "1", 1 }, { "4711", 4711 },
		{ "18446744073709551615", UINT64_MAX },
		{ "18446744073709551616", 0 },
		{ "99999999999999999999999999", 0 }, { "0", 0 }, { "00", 0 },
		{ "01", 0 }, { "", 0 }, { "-1", 0 }, { "+1", 0 }, { " 1", 0 },
		{ "1 ", 0 }, { "1\n", 0 }, { "1.", 0 }, { "0x10", 0 },
		{ "..", 0 }, { ".", 0 }, { "core", 0 }, { "4711.swp", 0 },
		{ "\xd9\xa1", 0 }, /* an Arabic one */
	};
	char name[QUEUE_FILE_MAX];
	size_t i;

	for (i = 0; i < ARRAY_LEN(rows); i++) {
		uint64_t inode = 0;
		int r = queue_file_parse(rows[i].name, &inode);

		cr_expect_eq(
		    r, rows[i].want == 0 ? -EINVAL : 0, "\"%s\"", rows[i].name);
		cr_expect_eq(inode, rows[i].want, "\"%s\"", rows[i].name);
		if (r < 0)
			continue;
		queue_file_name(inode, name);
		cr_expect_str_eq(name, rows[i].name);
	}
}

/* The file system gives the same inode again and again. */
Test(spool_id, D22_an_inode_that_comes_back_gets_another_id)
{
	enum {
		ROUNDS = 100
	};
	struct scratch s;
	char ids[ROUNDS][QUEUE_ID_SIZE];
	int i, j;

	scratch_open(&s);
	for (i = 0; i < ROUNDS; i++) {
		const struct queue_id id = scratch_put(&s);

		queue_id_format(&id, ids[i]);
		cr_assert_eq(spool_remove(&s.sp, SPOOL_INCOMING, id.inode), 0);
		for (j = 0; j < i; j++)
			cr_assert_str_neq(ids[i], ids[j]);
	}
	scratch_close(&s);
}
