#include "base/buf.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>

Test(base_buf, an_empty_one_is_a_string)
{
	struct buf b = { 0 };

	cr_expect_str_eq(buf_str(&b), "");
	buf_reset(&b);
	buf_done(&b);
	cr_expect_eq(buf_add(&b, "", 0), 0);
	cr_expect_str_eq(buf_str(&b), "");
	buf_done(&b);
}

Test(base_buf, what_is_added_stays_and_ends_in_nul)
{
	struct buf b = { 0 };
	size_t i;

	for (i = 0; i < 10000; i++) {
		cr_assert_eq(buf_add_char(&b, (char)('a' + i % 26)), 0);
		cr_assert_eq(b.data[b.len], '\0');
	}
	cr_expect_eq(b.len, 10000);
	for (i = 0; i < 10000; i++)
		cr_assert_eq(b.data[i], (char)('a' + i % 26));
	cr_expect_eq(buf_add(&b, "\0x", 2), 0);
	cr_expect_eq(b.len, 10002);
	buf_reset(&b);
	cr_expect_eq(b.len, 0);
	cr_expect_str_eq(buf_str(&b), "");
	buf_done(&b);
	cr_expect_null(b.data);
}

Test(base_buf, the_first_error_is_kept_until_a_reset)
{
	struct buf b = { 0 };

	cr_expect_eq(buf_reserve(&b, SIZE_MAX), -ENOMEM);
	cr_expect_eq(b.error, -ENOMEM);
	cr_expect_eq(buf_add_str(&b, "a"), 0);
	cr_expect_eq(b.error, -ENOMEM);
	buf_reset(&b);
	cr_expect_eq(b.error, 0);
	buf_done(&b);
}

Test(base_buf, printf_of_any_length)
{
	struct buf b = { 0 };

	cr_expect_eq(buf_printf(&b, "%s-%d", "a", 7), 0);
	cr_expect_eq(buf_printf(&b, "%0*d", 5000, 1), 0);
	cr_expect_eq(b.len, 5003);
	cr_expect_eq(strncmp(buf_str(&b), "a-70000", 7), 0);
	cr_expect_eq(b.data[5002], '1');
	buf_done(&b);
}

Test(base_buf, an_impossible_size_leaves_it_unchanged)
{
	struct buf b = { 0 };

	cr_assert_eq(buf_add_str(&b, "kept"), 0);
	cr_expect_eq(buf_reserve(&b, SIZE_MAX), -ENOMEM);
	cr_expect_eq(buf_reserve(&b, SIZE_MAX - b.len), -ENOMEM);
	cr_expect_str_eq(buf_str(&b), "kept");
	buf_done(&b);
}

Test(base_buf, quotes_are_escaped)
{
	struct buf b = { 0 };

	cr_assert_eq(buf_add_quoted(&b, "", 0), 0);
	cr_assert_eq(buf_add_quoted(&b, "a \"b\" \\", 7), 0);
	cr_expect_str_eq(buf_str(&b), "\"\"\"a \\\"b\\\" \\\\\"");
	buf_done(&b);
}
