/* Text that is put together, and its first error. */
#include "qctl/task/out.h"

#include <criterion/criterion.h>
#include <errno.h>

Test(out, pieces)
{
	struct buf out = { 0 };

	buf_add_str(&out, "{\"a\": 1");
	out_member(&out, "b\\", NULL);
	out_member(&out, "c", "\"\\\033\xff");
	out_clean(&out, " x\n", 2);
	out_time(&out, 90 * USEC_PER_SEC, 30 * USEC_PER_SEC);
	out_time(&out, 30 * USEC_PER_SEC, 30 * USEC_PER_SEC);
	cr_expect_eq(out.error, 0);
	cr_expect_str_eq(buf_str(&out),
	    "{\"a\": 1, \"c\": \"\\\"\\\\??\" x"
	    "Thu, 1 Jan 1970 00:01:30 +0000 (in 60s)"
	    "Thu, 1 Jan 1970 00:00:30 +0000 (0s ago)");
	buf_done(&out);
}

/* mutation: qctl/task/out.c, out_send() returns that of worker_text() alone. */
Test(out, the_first_error_stays_and_nothing_is_sent)
{
	struct buf out = { 0 };
	struct worker w = { .fd = -1 };

	cr_expect_eq(buf_reserve(&out, SIZE_MAX), -ENOMEM);
	out_member(&out, "a", "a");
	cr_expect_eq(out.error, -ENOMEM);
	cr_expect_eq(out_send(&out, &w), -ENOMEM);
	cr_expect_eq(w.out.len, 0);
	/* The next text begins anew. */
	buf_add_str(&out, "a");
	cr_expect_eq(out_send(&out, &w), 0);
	cr_expect_str_eq(buf_str(&w.out), "a");
	cr_expect_eq(out.len, 0);
	buf_done(&out);
	buf_done(&w.out);
}
