/* Files of one message: which of them is kept. */
#include "cut_queue.h"

#include "qctl/check/check.h"

#include <criterion/criterion.h>
#include <stdlib.h>

static struct cut_queue q;
static struct check check;

static void
note(uint64_t inode, usec_t arrival_wall, uint32_t advanced)
{
	const struct place p = { .dir = SPOOL_DEFERRED,
		.st.st_ino = (ino_t)inode };
	const struct queue_file file = {
		.arrival_wall = arrival_wall, .queue = 1, .nonce = 7
	};

	cr_assert_eq(copies_note(&check, &p, &file, advanced), 0);
}

/* A message may have prepared members under its id: they are those of the
 * message that is kept.
 * mutation: qctl/check/copies.c: copies_find() returns any equal message. */
Test(copies, A9_the_message_that_is_kept_is_found)
{
	const struct queue_id id = {
		.arrival_wall = 5, .queue = 1, .nonce = 7
	};
	const struct queue_id other = {
		.arrival_wall = 6, .queue = 1, .nonce = 7
	};
	const struct seen *s;
	uint64_t i, n;

	cut_queue_open(&q);
	check.sp = q.sp;
	cr_expect_null(copies_find(&check, &id));
	for (n = 2; n < 9; n++) {
		check.nseen = 0;
		note(1, 4, 0);
		for (i = 0; i < n; i++)
			note(200 + i, 5, 0);
		note(100, 5, 3);
		note(2, 9, 0);
		copies_judge(&check);
		s = copies_find(&check, &id);
		cr_assert_not_null(s);
		cr_expect_eq(s->inode, 100, "of %d copies", (int)n);
		cr_expect_null(copies_find(&check, &other));
	}
	free(check.seen);
	cut_queue_close(&q);
}
