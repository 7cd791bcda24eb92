/* Messages that were found twice. */
#include "qctl/act/act.h"

#include <criterion/criterion.h>

/* mutation: qctl/act/targets.c, task_unite_targets() that returns 0 at once;
 * order_of_messages() without the nonce. */
Test(targets, A3_a_message_is_acted_on_once)
{
	struct target targets[] = {
		{ { 5, 1, 1, 20 }, 1, SPOOL_DEFERRED, 0 },
		{ { 5, 1, 1, 10 }, 1, SPOOL_ACTIVE, 0 },
		{ { 5, 2, 1, 20 }, 1, SPOOL_DEFERRED, 0 },
		{ { 6, 1, 1, 20 }, 1, SPOOL_DEFERRED, 0 },
		{ { 5, 1, 1, 10 }, 1, SPOOL_DEFERRED, 0 },
		{ { 5, 1, 1, 10 }, 2, SPOOL_HOLD, 0 },
		{ { 5, 1, 1, 20 }, 1, SPOOL_HOLD, 0 },
	};
	static const struct target want[] = {
		{ { 5, 2, 1, 20 }, 1, SPOOL_DEFERRED, 0 },
		{ { 6, 1, 1, 20 }, 1, SPOOL_DEFERRED, 0 },
		{ { 5, 1, 1, 10 }, 1, SPOOL_DEFERRED, 0 },
		{ { 5, 1, 1, 10 }, 2, SPOOL_HOLD, 0 },
		{ { 5, 1, 1, 20 }, 1, SPOOL_HOLD, 0 },
	};
	struct task t = { .targets = targets, .ntargets = ARRAY_LEN(targets) };
	size_t i;

	cr_assert_eq(task_unite_targets(&t), 0);
	cr_assert_eq(t.ntargets, ARRAY_LEN(want));
	for (i = 0; i < t.ntargets; i++) {
		cr_expect_eq(targets[i].id.inode, want[i].id.inode, "%zu", i);
		cr_expect_eq(targets[i].id.nonce, want[i].id.nonce, "%zu", i);
		cr_expect_eq(targets[i].queue, want[i].queue, "%zu", i);
		cr_expect_eq(targets[i].dir, want[i].dir, "%zu", i);
	}
}

Test(targets, A3_none_and_one)
{
	struct target one = { { 5, 1, 1, 20 }, 1, SPOOL_DEFERRED, 0 };
	struct task t = { .ntargets = 0 };

	cr_expect_eq(task_unite_targets(&t), 0);
	t.targets = &one;
	t.ntargets = 1;
	cr_expect_eq(task_unite_targets(&t), 0);
	cr_expect_eq(t.ntargets, 1);
}
