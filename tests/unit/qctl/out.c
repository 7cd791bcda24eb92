/* Text that is put together, and its first error. */
#include "qctl/task/out.h"

#include <criterion/criterion.h>
#include <errno.h>

Test(out, pieces)
{
	struct out out = { 0 };

	out_str(&out, "{\"a\": 1");
	out_member(&out, "b\\", NULL);
	out_member(&out, "c", "\"\\\033\xff");
	out_clean(&out, " x\n", 2);
	out_time(&out, 90 * USEC_PER_SEC, 30 * USEC_PER_SEC);
	out_time(&out, 30 * USEC_PER_SEC, 30 * USEC_PER_SEC);
	cr_expect_eq(out.error, 0);
	cr_expect_str_eq(buf_str(&out.text),
	    "{\"a\": 1, \"c\": \"\\\"\\\\??\" x"
	    "Thu, 1 Jan 1970 00:01:30 +0000 (in 60s)"
	    "Thu, 1 Jan 1970 00:00:30 +0000 (0s ago)");
	out_done(&out);
}

/* mutation: qctl/task/out.c, note_error() takes each error; out_send() returns
 * that of worker_text() alone. */
Test(out, the_first_error_stays_and_nothing_follows_it)
{
	struct out out = { .error = -ENOMEM };
	struct worker w = { .fd = -1 };

	out_printf(&out, "%d", 1);
	out_str(&out, "a");
	out_clean(&out, "a", 1);
	out_span(&out, USEC_PER_SEC);
	out_time(&out, USEC_PER_SEC, 0);
	out_json(&out, "a");
	out_member(&out, "a", "a");
	cr_expect_eq(out.error, -ENOMEM);
	cr_expect_eq(out.text.len, 0);
	cr_expect_eq(out_send(&out, &w), -ENOMEM);
	cr_expect_eq(w.out.len, 0);
	/* The next text begins anew. */
	out_str(&out, "a");
	cr_expect_eq(out_send(&out, &w), 0);
	cr_expect_str_eq(buf_str(&w.out), "a");
	cr_expect_eq(out.text.len, 0);
	out_done(&out);
	buf_done(&w.out);
}
