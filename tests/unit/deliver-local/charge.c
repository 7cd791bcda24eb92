/* What an expansion adds to the share of its user. */
#include "expand.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "scratch.h"
#include "spool/waiting.h"

#define USER 4711

static char base[256], instance[] = "no-such-instance";
static struct spool sp[2];
static struct conf conf;
static struct charge charge;
static usec_t now;
static char trusted[] = "4712";

static usec_t
stopped(void)
{
	return now;
}

static void
begin(void)
{
	const struct spool_owner owner = { geteuid(), geteuid(), getegid(),
		getegid(), true };
	uint32_t i;

	now = 3600 * USEC_PER_SEC;
	charge_clock = stopped;
	snprintf(base, sizeof(base), "%s", scratch_path("base"));
	for (i = 0; i < 2; i++) {
		cr_assert_eq(spool_create(base, i + 1, 1, &owner), 0);
		cr_assert_eq(
		    spool_open(&sp[i], &spool_sys_real, base, i + 1), 0);
		sp[i].private = false;
	}
	conf = (struct conf){ .queue_base = base,
		.instance = instance,
		.trusted_users = trusted,
		.user_message_limit = 10,
		.user_size_limit = 1000 };
}

static void
end(void)
{
	spool_close(&sp[0]);
	spool_close(&sp[1]);
	scratch_done();
}

TestSuite(charge, .init = begin, .fini = end, .timeout = 60);

/* todo-proc has counted this in the second queue. */
static void
counted(uint64_t messages, uint64_t bytes, uint64_t made)
{
	struct waiting_user row = { USER, messages, bytes, made };

	cr_assert_eq(waiting_write(&sp[1], 0, &row, 1), 0);
}

static int
more(struct charge *c, const struct spool *queue, uint64_t bytes)
{
	cr_assert_eq(charge_begin(c, &conf, queue, USER, false), 0);
	return charge_more(c, bytes);
}

/* mutation: charge_more() counts nothing. */
Test(charge, X20_a_message_too_many)
{
	counted(9, 0, 1);
	cr_expect_eq(more(&charge, &sp[0], 1), 0);
	cr_expect_eq(charge_more(&charge, 1), -EUSERS);
	cr_expect_str_eq(charge.reason,
	    "9 messages of uid 4711 wait, the limit is 10 "
	    "(user_message_limit); see \"qctl shares\"");
	charge_end(&charge, false);
}

Test(charge, X20_a_byte_too_many)
{
	counted(1, 900, 1);
	cr_expect_eq(more(&charge, &sp[0], 100), 0);
	charge_end(&charge, false);
	cr_expect_eq(more(&charge, &sp[0], 101), -EUSERS);
	cr_expect_str_eq(charge.reason,
	    "1001 bytes of uid 4711 wait with this message, the limit is 1000 "
	    "(user_size_limit); see \"qctl shares\"");
	charge_end(&charge, false);
}

/* mutation: slots of other processes do not count. */
Test(charge, X20_expansions_at_once_see_each_other)
{
	struct charge other;

	counted(9, 0, 1);
	cr_expect_eq(more(&charge, &sp[0], 1), 0);
	cr_expect_eq(more(&other, &sp[0], 1), -EUSERS, "the same queue");
	charge_end(&other, false);
	cr_expect_eq(more(&other, &sp[1], 1), -EUSERS, "another queue");
	charge_end(&other, false);
	charge_end(&charge, false);
	cr_expect_eq(more(&other, &sp[1], 1), 0, "nothing came of the first");
	charge_end(&other, false);
}

/* mutation: a slot is free at the end of its process. */
Test(charge, X20_what_has_ended_counts_until_todo_proc_has_counted)
{
	struct charge other;

	counted(9, 0, 1);
	cr_expect_eq(more(&charge, &sp[0], 1), 0);
	charge_end(&charge, true);
	now += CHARGE_KEPT - 1;
	cr_expect_eq(more(&other, &sp[1], 1), -EUSERS);
	charge_end(&other, false);
	now++;
	cr_expect_eq(more(&other, &sp[1], 1), 0);
	charge_end(&other, false);
}

Test(charge, X20_a_killed_expansion_counts_no_more)
{
	int status;
	pid_t pid;

	counted(9, 0, 1);
	pid = fork();
	if (pid == 0) {
		struct charge c;

		(void)more(&c, &sp[0], 1);
		_exit(0);
	}
	cr_assert_eq(waitpid(pid, &status, 0), pid);
	cr_expect_eq(more(&charge, &sp[0], 1), 0);
	charge_end(&charge, false);
}

Test(charge, X20_all_slots_are_taken)
{
	uint32_t i;
	int r = 0;

	counted(1, 0, 1);
	conf.user_message_limit = 3 * CHARGE_SLOTS;
	for (i = 0; r == 0 && i < CHARGE_SLOTS + 10; i++) {
		r = more(&charge, &sp[0], 0);
		charge_end(&charge, true);
	}
	cr_expect_eq(r, 0);
	conf.user_message_limit = CHARGE_SLOTS / 2;
	cr_expect_eq(more(&charge, &sp[0], 0), -EUSERS);
	charge_end(&charge, false);
}

/* A share that is full of messages which have to be expanded.
 * mutation: charge_more() has no exception. */
Test(charge, X23_one_expansion_at_a_time_goes_on)
{
	struct charge other;

	counted(20, 5000, 0);
	cr_expect_eq(more(&charge, &sp[0], 100), 0);
	cr_expect_eq(charge_more(&charge, 100), 0, "all of it");
	cr_expect_eq(more(&other, &sp[1], 100), -EUSERS);
	charge_end(&other, false);
	charge_end(&charge, false);
	counted(20, 5000, 1);
	cr_expect_eq(more(&charge, &sp[0], 100), -EUSERS);
	charge_end(&charge, false);
}

/* The message of an alias goes to an account with a forward file.
 * mutation: the parent counts against its own expansion. */
Test(charge, X23_an_expansion_that_has_to_be_expanded_goes_on)
{
	struct charge other;

	counted(20, 5000, 1);
	cr_assert_eq(charge_begin(&charge, &conf, &sp[0], USER, true), 0);
	cr_expect_eq(charge_more(&charge, 100), 0);
	cr_assert_eq(charge_begin(&other, &conf, &sp[1], USER, true), 0);
	cr_expect_eq(charge_more(&other, 100), -EUSERS, "one at a time");
	charge_end(&other, false);
	charge_end(&charge, false);
	counted(20, 5000, 2);
	cr_assert_eq(charge_begin(&charge, &conf, &sp[0], USER, true), 0);
	cr_expect_eq(charge_more(&charge, 100), -EUSERS);
	charge_end(&charge, false);
}

Test(charge, X20_no_limit_is_on_the_system)
{
	static const uid_t free_users[] = { 0, 4712 };
	size_t i;

	counted(1000, 0, 1000);
	for (i = 0; i < ARRAY_LEN(free_users); i++) {
		cr_assert_eq(
		    charge_begin(&charge, &conf, &sp[0], free_users[i], false),
		    0);
		cr_expect_eq(charge_more(&charge, 1 << 30), 0);
		charge_end(&charge, true);
	}
	sp[0].private = true;
	cr_expect_eq(more(&charge, &sp[0], 1 << 30), 0);
}
